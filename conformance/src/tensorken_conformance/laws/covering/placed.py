"""Movements, reductions, scans, sorts and indexing in designs: exact results, whatever the params."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.laws import placement
from tensorken_conformance.laws.covering import axes
from tensorken_conformance.operands.designs import Row, covering
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES

OPS_OF = placement.ALL

SUMS = ("sum", "cumsum", "scatter_add")
PRODUCTS = ("prod", "cumprod")

SITUATIONS = ("once", "again", "after", "thread")
"""The situations of all params of an op in turn."""

SHORT = axes.SIZES[: axes.SIZES.index("4096") + 1]
"""The sizes of ops that take long on backends in pure Python, or whose results Python's sort checks."""

SLOW = ("sort", "argsort", "concatenate", "scatter_add", *PRODUCTS)
"""These ops."""


def values_for(op: str, indices: tuple[str, ...]) -> tuple[str, ...]:
    """The classes of values of an op; those of indexing have the dtypes of indices as well."""
    names = (
        ("whole", "ones") if op in SUMS else ("signs",) if op in PRODUCTS else ("ordinary", "special", "ties")
    )
    if op not in placement.INDEXING:
        return names
    return tuple([f"{name}-{index}" for name in names for index in indices])


def cases(subject: Subject) -> Iterator[Case]:
    """Each op on the rows of its design; none in the smoke run."""
    if subject.depth == "smoke":
        return
    indices = tuple([index for index in placement.PATTERNS if index in subject.capabilities.dtypes])
    for op in OPS_OF:
        dtypes = tuple([dtype.name for dtype in placement.plain_dtypes(subject, op)])
        if op in placement.INDEXING and not indices:
            continue
        sizes = SHORT if op in SLOW else axes.SIZES
        for row in design(dtypes, sizes, values_for(op, indices), subject.seed) if dtypes else ():
            layouts = [row["layout"]]
            if axes.makes(subject, layouts, row["dtype"]) and not _is_empty(op, row):
                yield axes.case_of(op, row, layouts, subject.seed)


def _is_empty(op: str, row: Row) -> bool:
    """Whether an axis would have no extreme."""
    return op in placement.EXTREMA and row["size"] == "0"


def every(
    dtypes: tuple[str, ...], sizes: tuple[str, ...], values: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """The axes of ops with these dtypes, sizes and classes of values."""
    return {
        "dtype": dtypes,
        "size": sizes,
        "form": tuple(axes.FORMS),
        "layout": axes.ALL_LAYOUTS,
        "values": values,
        "special": axes.SPECIALS,
        "situation": SITUATIONS,
    }


@cache
def design(dtypes: tuple[str, ...], sizes: tuple[str, ...], values: tuple[str, ...], seed: int) -> list[Row]:
    """The rows for these ops."""
    return covering(every(dtypes, sizes, values), seed, 2, fits)


def fits(pair: Row) -> bool:
    """Whether the values of two axes can stand in one row."""
    special, values = pair.get("special", axes.NONE), pair.get("values", "")
    if special != axes.NONE and values.startswith("special"):
        return False
    if special.startswith("-0") and values.startswith(("whole", "ones")):
        return False  # a sum of -0.0 alone may have either sign
    return axes.fits(pair)


def check(subject: Subject, case: Case) -> None:
    """Check an op with all params in one cell."""
    cell, dtype = axes.Cell.of(case), DTYPES[case.dtype]
    values, _, indices = case.values.partition("-")
    inner = Case(case.law, case.op, case.dtype, "", values if values in KINDS else "", indices)
    rng = np.random.default_rng(subject.random(case).getrandbits(32))
    (layout,) = cell.layouts
    array = drawn(subject, cell, values, rng)

    def examine(one: str, given: Array, times: int = 1) -> None:
        x = axes.operand(one, given, dtype, subject.call_counter, subject)
        for _ in range(times):
            says = f"{case.op} of {case.dtype} ({cell.says})"
            placement.Operand(subject, inner, given, x).check(says)

    if cell.situation == "after":
        examine("plain", np.resize(array, (2 * max(cell.size, 1) + 1, 3)) if array.size else array)
    if cell.situation == "thread":
        with ThreadPoolExecutor(1) as other:
            other.submit(examine, layout, array).result()
    else:
        examine(layout, array, 2 if cell.situation == "again" else 1)


def drawn(subject: Subject, cell: axes.Cell, values: str, rng: np.random.Generator) -> Array:
    """The values of the operand."""
    dtype, shape = DTYPES[cell.case.dtype], cell.shape
    array = KINDS[values](subject, cell, rng) if values in KINDS else _numbers(cell, values, rng)
    if not array.size:
        return array.reshape(shape)
    array = axes.laid(cell.layouts[0], array.reshape(shape))
    if cell.special != axes.NONE:
        width = int(rng.choice([4, 8, 16]))
        array = axes.put_special(cell, cell.layouts[0], array, axes.special_values(dtype), width)
    return array


def _of_pool(values: str) -> Callable[[Subject, axes.Cell, np.random.Generator], Array]:
    def draw(subject: Subject, cell: axes.Cell, rng: np.random.Generator) -> Array:
        subnormals = cell.case.dtype not in subject.capabilities.flushes_subnormals
        return rng.choice(exact.pool(subject.seed, cell.case.dtype, values, subnormals), cell.shape)

    return draw


KINDS = {values: _of_pool(values) for values in ("ordinary", "special", "ties")}
"""The classes of values of ops that do not add or multiply."""


def _numbers(cell: axes.Cell, values: str, rng: np.random.Generator) -> Array:
    """Numbers whose sums or products need no rounding in float32."""
    dtype, shape = DTYPES[cell.case.dtype], cell.shape
    if dtype.kind == "int" and values != "ones":
        low, high = np.iinfo(dtype.name).min, np.iinfo(dtype.name).max
        return rng.integers(low, high, shape, dtype.name, endpoint=True)
    few = {"ones": [1], "signs": [1, -1], "whole": [-3, -2, -1, 1, 2, 3, 7]}[values]
    return rng.choice(few, shape).astype(dtype.name)
