"""Elementwise ops in designs: any arrangement of a few numbers per operand, whose results are known in advance."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from tensorken_conformance.case import Case, Failure, Measured, Unsupported
from tensorken_conformance.laws import elementwise
from tensorken_conformance.laws.covering import axes
from tensorken_conformance.operands import pools
from tensorken_conformance.operands.designs import Row, covering
from tensorken_conformance.operands.samples import kinds_of
from tensorken_conformance.oracles import elementwise as oracle
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS, Op

COUNTS = {1: 48, 2: 16, 3: 8}
"""How many numbers an operand takes of a class of values, by the number of operands."""

ORDINARY = ("small", "normals")

TRIPLES = ("add", "mul", "where")
"""The ops that meet every three circumstances: programs consist of them, and backends have shortcuts for them."""

TRIPLE_SIZES = ("few", "16", "64", "256", "4096")
TRIPLE_SPECIALS = (axes.NONE, "nan:last", "-nan:vector", "high:vector")

SMOKE = {
    "size": ("64",),
    "form": ("rows",),
    "situation": ("once", "again", "kept", "jit"),
    "values": ("mixed", "small"),
}
"""The smoke run has one shape, and one row of each op."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A few numbers for each operand, and the results for all their combinations.

    Attributes:
        op: the op.
        dtype: of the data.
        numbers: for each operand; the last are special.
        specials: the names of the special values, in their order.
        expected: the correctly rounded results, with an axis for each operand.
    """

    op: Op
    dtype: DType
    numbers: tuple[Array, ...]
    specials: tuple[str, ...]
    expected: Array

    def columns(self, indices: tuple[Array, ...]) -> tuple[Array, ...]:
        """The operands for indices of their numbers."""
        return tuple([x[i] for x, i in zip(self.numbers, indices, strict=True)])


@cache
def grid(name: str, dtype_name: str, values: str, seed: int) -> Grid:
    """The grid of an op for a value class; LookupError if nothing defines the results."""
    op, dtype = OPS[name], DTYPES[dtype_name]
    rows = pools.rows(op, dtype, values, seed, elementwise.ROWS["default"])
    some = axes.special_values(dtype)
    numbers: list[Array] = []
    dtypes = kinds_of(op, len(rows), dtype)
    for column, kind in zip(rows, dtypes, strict=True):
        different = list({x.tobytes(): x for x in column}.values())[: COUNTS[len(rows)]]
        ends = list(some.values()) if kind is dtype else []
        numbers.append(np.concatenate([np.array(different), np.array(ends, column.dtype)]))
    points = np.meshgrid(*numbers, indexing="ij")
    flat = tuple([np.ascontiguousarray(x).reshape(-1) for x in points])
    expected = oracle.expected(op, dtype, flat).reshape(points[0].shape)
    return Grid(op, dtype, tuple(numbers), tuple(some), expected)


# ---- designs -----------------------------------------------------------------------------------------------


def cases(subject: Subject) -> Iterator[Case]:
    """Each elementwise op on the rows of its design."""
    for op in OPS.values():
        if not op.elementwise or op.params:
            continue
        dtypes = tuple([d.name for d in subject.dtypes() if elementwise.takes(subject, op, d)])
        if not dtypes:
            continue
        arity, wide = op.arity or 1, op.name in TRIPLES
        axes_of_op = every(dtypes, arity)
        if subject.depth == "smoke":
            rows = [one_row({**axes_of_op, **SMOKE}, f"{subject.seed} {op.name}")]
        else:
            rows = design(dtypes, arity, subject.seed, wide or subject.depth == "deep")
        for row in rows:
            layouts = [row[f"layout-{i}"] for i in range(arity)]
            if axes.makes(subject, layouts, row["dtype"]):
                yield axes.case_of(op.name, row, layouts, subject.seed)


def every(dtypes: tuple[str, ...], arity: int) -> dict[str, tuple[str, ...]]:
    """The axes of ops with these dtypes and so many operands."""
    kinds = {DTYPES[d].kind for d in dtypes}
    specials = [axes.NONE, *(axes.FLOATS if "float" in kinds else ()), *(axes.INTS if "int" in kinds else ())]
    return {
        "dtype": tuple(sorted(dtypes, key=lambda name: name not in ("float32", "int32"))),
        "size": axes.SIZES,
        "form": tuple(axes.FORMS),
        **{f"layout-{i}": axes.ALL_LAYOUTS for i in range(arity)},
        "values": tuple(dict.fromkeys([name for d in dtypes for name in pools.classes(DTYPES[d])])),
        "special": tuple(specials),
        "situation": axes.SITUATIONS,
    }


def one_row(names: dict[str, tuple[str, ...]], key: str) -> Row:
    """A row of the first dtype, drawn."""
    rng = random.Random(key)
    while True:
        row = {axis: rng.choice(values) for axis, values in names.items()} | {"dtype": names["dtype"][0]}
        if all(fits({a: row[a], b: row[b]}) for a, b in itertools.combinations(row, 2)):
            return row


@cache
def design(dtypes: tuple[str, ...], arity: int, seed: int, wide: bool) -> list[Row]:
    """The rows for ops with these dtypes; in triples as well if `wide`."""
    names = every(dtypes, arity)
    found = covering(names, seed, 2, fits)
    if not wide:
        return found
    few = {
        **names,
        "size": TRIPLE_SIZES,
        **{f"layout-{i}": axes.FEW_LAYOUTS for i in range(arity)},
        "values": tuple([name for name in names["values"] if name in ("small", "normals", "mixed")]),
        "special": tuple([name for name in TRIPLE_SPECIALS if name in names["special"]]),
    }
    return found + covering(few, seed, 3, fits)


def fits(pair: Row) -> bool:
    """Whether the values of two axes can stand in one row: each dtype has classes of values of its own."""
    if "dtype" in pair and "values" in pair:
        return pair["values"] in pools.classes(DTYPES[pair["dtype"]])
    if "values" in pair and pair.get("special", axes.NONE) != axes.NONE and pair["values"] not in ORDINARY:
        return False
    return axes.fits(pair)


# ---- checks ------------------------------------------------------------------------------------------------


def check(subject: Subject, case: Case) -> Measured:
    """Check an elementwise op in one cell."""
    cell = axes.Cell.of(case)
    try:
        known = grid(case.op, case.dtype, case.values, subject.seed)
    except LookupError as error:
        raise Unsupported(str(error)) from None
    rng = np.random.default_rng(subject.random(case).getrandbits(32))
    indices = [_indices(known, cell, rng) for _ in range(2)]
    arrays = [known.columns(each) for each in indices]
    larger = rng.integers(0, len(known.numbers[-1]), 3 * max(cell.size, 1))
    call = axes.Call(
        cell.layouts,
        (arrays[0], arrays[1]),
        kinds_of(known.op, len(arrays[0]), known.dtype),
        lambda operands: Subject.run(known.op, operands),
        [x[larger % len(x)] for x in known.numbers],
    )
    bound = elementwise.allowed(subject, known.op, known.dtype, 2)
    worst = Measured(0.0)
    for turn, got in call.results(subject, cell.situation):
        found = _judged(subject, cell, known, indices[turn], got, bound)
        worst = max(worst, found, key=lambda measured: measured.ulp or 0.0)
    return worst


def _indices(known: Grid, cell: axes.Cell, rng: np.random.Generator) -> tuple[Array, ...]:
    """The indices of the numbers of each operand; one operand has the special value."""
    width = int(rng.choice([4, 8, 16]))
    able = [i for i, x in enumerate(known.numbers) if x.dtype == known.numbers[-1].dtype]
    chosen = int(rng.choice(able))
    found = []
    for i, (layout, numbers) in enumerate(zip(cell.layouts, known.numbers, strict=True)):
        count = len(numbers) - (len(known.specials) if i in able else 0)
        index = (
            axes.laid(layout, rng.integers(0, count, cell.shape)) if cell.size else np.zeros(cell.shape, int)
        )
        if i == chosen:
            specials = {name: count + place for place, name in enumerate(known.specials)}
            index = axes.put_special(cell, layout, index, specials, width)
        found.append(index)
    return tuple(found)


def _judged(
    subject: Subject, cell: axes.Cell, known: Grid, indices: tuple[Array, ...], got: Array, bound: int
) -> Measured:
    """Compare with the grid; of equal results for equal operands one is judged."""
    columns, expected = known.columns(indices), known.expected[indices]
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise Failure(
            f"{known.op.name} of {known.dtype} ({cell.says}): expected {expected.dtype} {expected.shape}, "
            f"got {got.dtype} {got.shape}"
        )
    pool = elementwise.Pool(known.op, known.dtype, columns, expected)
    off = np.flatnonzero(elementwise.off_by(pool, got, expected, columns))
    if not off.size:
        return Measured(0.0)
    where = np.ravel_multi_index([index.flat[off] for index in indices], known.expected.shape)
    results = np.ascontiguousarray(got.reshape(-1)[off]).view(f"u{got.dtype.itemsize}").astype(np.uint64)
    first = off[np.unique(np.stack([where.astype(np.uint64), results]), axis=1, return_index=True)[1]]
    some = tuple([x.reshape(-1)[first] for x in columns])
    few = elementwise.Pool(known.op, known.dtype, some, expected.reshape(-1)[first])
    beside = f"; in {cell.says}"
    return elementwise.judged(subject, few, some, few.expected, got.reshape(-1)[first], bound, beside)
