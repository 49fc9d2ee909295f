"""values.layouts: the result of an op depends on the values of its operands, and not on their memory layout."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws import elementwise
from tensorken_conformance.layouts import chains
from tensorken_conformance.layouts.shapes import class_of
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.operands import points
from tensorken_conformance.operands.samples import kinds_of
from tensorken_conformance.oracles import elementwise as oracle, exact, ulp
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES, DType, int32, integer_bounds, wrap_integer
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor

ID = "values.layouts"

LAYOUTS: dict[str, chains.Chain] = {
    "number": (("expand", (0, 1)),),
    "one": (("expand", (0, 1)),),
    "row": (("expand", (0,)),),
    "column": (("expand", (1,)),),
    "transposed": (("permute", (1, 0)),),
    "reversed": (("flip", (0, 1)),),
    "window": (("crop", (0, 1)),),
    "stepped": (("drop", ()),),
    "reversed-row": (("expand", (0,)), ("flip", (1,))),
    "reversed-column": (("expand", (1,)), ("flip", (0,))),
    "whole": (),
}
"""The layouts of a matrix; a `number` is made by `full`.

A backend may keep the result of a movement as a view, an interpreter around it may defer repetitions, and a compiled
program may have the number as a literal.
"""

OF_ELEMENTWISE = ("number", "one", "row", "stepped", "reversed")
"""The layouts of elementwise ops in a default run; `values.covering` has the others, too."""

FEW, MANY = 1, 9
"""How often the numbers repeat along the last axis: below and above thresholds of backends."""

COUNT = 13
"""The number of distinct values of an operand."""

EXACTLY: dict[str, tuple[Any, ...]] = {
    "sort": (1,),
    "argsort": (0,),
    "concatenate": (1,),
    "gather": (0,),
    "scatter_add": (1, COUNT),
    "max": ((1,),),
    "min": ((0,),),
    "argmax": (1,),
    "argmin": (0,),
}
"""Ops that are not elementwise and do not round, with params for matrices."""

INDICES = ("gather", "scatter_add")
"""Ops whose second operand has indices."""

BESIDE = ("row", "column", "transposed", "reversed", "window", "stepped", "reversed-row", "reversed-column")
"""The layouts of the other operands, where all layouts differ."""


def _dtypes(subject: Subject, op: Op) -> list[DType]:
    if op.elementwise:
        return [dtype for dtype in subject.dtypes() if elementwise.takes(subject, op, dtype)]
    if op.name == "cast":
        return subject.dtypes()
    beside = (int32,) if op.name in INDICES else ()
    arity = 2 if op.name == "concatenate" else 1
    return exact.dtypes_for(subject, op, EXACTLY[op.name], arity, beside)


def _ops() -> list[Op]:
    plain = [op for op in OPS.values() if op.elementwise and not op.params]
    return [*plain, OPS["cast"], *[OPS[name] for name in EXACTLY]]


def cases(subject: Subject) -> Iterator[Case]:
    """Each op and dtype on each layout; the detail of a cast is the dtype of the result."""
    for op in _ops():
        dtypes = _dtypes(subject, op)
        if subject.depth == "smoke":
            dtypes = sorted(dtypes, key=lambda dtype: dtype.name != "float32")[:1]
        for dtype in dtypes:
            few = OF_ELEMENTWISE if op.elementwise and subject.depth == "default" else LAYOUTS
            for layout in ("one",) if subject.depth == "smoke" else few:
                if layout == "whole" or not chains.makes(subject, LAYOUTS[layout], dtype.name):
                    continue
                often = subject.depth != "smoke" and op.elementwise and dtype.name in ("float32", "int32")
                details = ["", "many"] if subject.depth == "deep" or often else [""]
                if op.name == "cast":
                    details = [target.name for target in _targets(subject, dtype)]
                yield from [Case(ID, op.name, dtype.name, layout, "special", detail) for detail in details]


def _targets(subject: Subject, dtype: DType) -> list[DType]:
    """The dtypes that a dtype is cast to: all in a deep run, else the next one, and the next of another kind."""
    found = subject.dtypes()
    if subject.depth == "deep":
        return found
    start = found.index(dtype) + 1
    following = found[start:] + found[:start]
    of_another_kind = [target for target in following if target.kind != dtype.kind]
    return list(dict.fromkeys([following[0], *of_another_kind[:1]]))


def numbers(subject: Subject, op: Op, dtype: DType) -> Array:
    """COUNT numbers for an op: numbers for which implementations have shortcuts, and some of its domain."""
    rng = random.Random(f"{subject.seed} {op.name} {dtype.name} layouts")
    if dtype.kind == "bool":
        return np.array([False, True] * COUNT)[:COUNT]
    if dtype.kind == "int":
        bits = 8 * dtype.itemsize
        low, high = integer_bounds(dtype)
        some: list[Any] = [wrap_integer(v, dtype) for v in (0, 1, -1, 2, -3, 7, bits - 1, bits, low, high)]
        some += [rng.randint(low, high) for _ in range(COUNT - len(some))]
        return np.array(some, dtype.name)
    form = FORMATS[dtype.name]
    inf = float("inf")
    some = [0.5, 2.0, -1.0, 0.0, -0.0, inf, -inf, float("nan"), 1.0, -3.0, form.max]
    some += [points.ordinary(op, form, rng) for _ in range(COUNT - len(some))]
    with np.errstate(over="ignore", under="ignore"):
        return np.array(some).astype(dtype.name)


def repeats(layout: str) -> tuple[int, ...]:
    """The axes along which all elements are the same."""
    return tuple([axis for step, axes in LAYOUTS[layout] for axis in axes if step == "expand"])


def laid(interpreter: RawTensor[Any], layout: str, values: Array, dtype: DType) -> Tensor:
    """A tensor with these values (fitted) and this layout on an interpreter."""
    if layout == "number":
        return Tensor(interpreter, interpreter.full(values.shape, values.item(0), dtype), values.shape, dtype)
    return chains.lying(interpreter, LAYOUTS[layout], values, dtype)


def operand_dtypes(op: Op, dtype: DType) -> tuple[DType, ...]:
    """The dtypes of the operands, without indices."""
    return kinds_of(op, 2 if op.name == "concatenate" else 1 if op.name in INDICES else op.arity or 1, dtype)


@dataclass(frozen=True, slots=True)
class Round:
    """The layouts and values of operands.

    Attributes:
        lies: for each operand the name of its layout.
        values: for each operand a matrix.
    """

    lies: tuple[str, ...]
    values: tuple[Array, ...]


def rounds(subject: Subject, case: Case) -> Iterator[list[Round]]:
    """The operands for each combination of layouts: each number in turn where one number is repeated."""
    op, dtype = OPS[case.op], DTYPES[case.dtype]
    dtypes = operand_dtypes(op, dtype)
    some = [numbers(subject, op, d) for d in dtypes]
    width = MANY if case.detail == "many" else FEW
    other = BESIDE[(list(LAYOUTS).index(case.shape) + 1) % len(BESIDE)]
    arity = len(dtypes)
    combined = [
        *[tuple([case.shape if i == k else "whole" for i in range(arity)]) for k in range(arity)],
    ]
    if subject.depth != "smoke" or arity == 1:
        combined.append((case.shape,) * arity)
    if subject.depth != "smoke":
        combined += [tuple([case.shape if i == k else other for i in range(arity)]) for k in range(arity)]
    for lies in dict.fromkeys(combined):
        if subject.depth == "smoke" and op.elementwise:
            yield list(_few(lies, some))
            continue
        singles = any([len(repeats(name)) == 2 for name in lies])
        yield [
            Round(lies, _values(lies, [np.roll(x, -turn) for x in some], width))
            for turn in range(COUNT if singles else 1)
        ]


def _few(lies: Sequence[str], some: Sequence[Array]) -> Iterator[Round]:
    """Operands of the shape that they have in other laws of the smoke run; those that lie as `one` repeat one number.

    The others have all numbers but one, in two rounds for each repeated number.
    """
    shape = class_of("small").shape
    size = math.prod(shape)
    for turn in range(COUNT):
        for start in range(0, COUNT - 1 if "whole" in lies else 1, size):
            yield Round(
                tuple(lies),
                tuple(
                    [
                        np.full(shape, x[turn], x.dtype)
                        if name == "one"
                        else np.roll(x, -i)[start : start + size].reshape(shape)
                        for i, (name, x) in enumerate(zip(lies, some, strict=True))
                    ]
                ),
            )


def _values(lies: Sequence[str], some: Sequence[Array], width: int) -> tuple[Array, ...]:
    """Matrices in which each number of an operand meets each number of the others."""
    along: dict[tuple[int, ...], int] = {(0,): 1, (1,): 0}  # the axis of change, by the axes of repetition
    fixed = [along[r] for name in lies if (r := repeats(name)) in along]
    found = []
    for i, (name, x) in enumerate(zip(lies, some, strict=True)):
        axis = along.get(repeats(name), 1 - fixed[0] if fixed else i % 2)
        turned = np.roll(x, -3 * i)
        matrix = np.repeat(turned[:, None], COUNT, 1) if axis == 0 else np.repeat(turned[None], COUNT, 0)
        found.append(chains.fitted(LAYOUTS[name], np.tile(matrix, (1, width))))
    return tuple(found)


@law(ID, cases, level=2, needs=lambda case: chains.needs(case.dtype, chains.movements(LAYOUTS[case.shape])))
def check_layouts(subject: Subject, case: Case) -> None:
    """An op has the same result for the same values, whatever the layout: repeated, one number, or any view.

    Results have the bits of the result of plain operands, or are right by values.elementwise.  Each operand in turn has
    the layout, then all have it, then the others have another one; on the backend itself, as a user has it, and in a
    compiled program.  The values are ordinary numbers, zeros, infinities, NaN, the ends of the format, and numbers with
    shortcuts in implementations: 1, -1, 2, 0.5.
    """
    op = OPS[case.op]
    dtypes = operand_dtypes(op, DTYPES[case.dtype])
    params, beside = _params(subject, case)
    for some in rounds(subject, case):
        plain = []
        for one in some:
            operands = [subject.tensor(x, d) for x, d in zip(one.values, dtypes, strict=True)]
            plain.append(subject.read(subject.run(op, [*operands, *beside(subject.call_counter)], params)))
        for interpreter in dict.fromkeys((subject.call_counter, subject.stack)):
            way = "" if interpreter is subject.call_counter else " as a user has it"
            for one, want in zip(some, plain, strict=True):
                operands = [
                    subject.apart(laid(interpreter, name, x, d))
                    for name, x, d in zip(one.lies, one.values, dtypes, strict=True)
                ]
                got = subject.read(subject.run(op, [*operands, *beside(interpreter)], params))
                _agree(subject, case, one, got, want, way)
        if subject.depth == "smoke" and len(dtypes) == 1:  # one program less for each op
            continue
        for one, got, want in zip(some, _compiled(subject, op, dtypes, some, case), plain, strict=True):
            _agree(subject, case, one, got, want, " compiled")


def _params(subject: Subject, case: Case) -> tuple[tuple[Any, ...], Any]:
    """The params of an op, and a function that makes the operands that are the same in each round: indices."""
    if case.op == "cast":
        return (DTYPES[case.detail],), lambda interpreter: []
    if case.op not in INDICES:
        return EXACTLY.get(case.op, ()), lambda interpreter: []
    width = COUNT * (MANY if case.detail == "many" else FEW)
    indices = np.arange(width if case.op == "scatter_add" else COUNT) * 5 % COUNT
    return EXACTLY[case.op], lambda interpreter: [subject.tensor(indices.astype("int32"), int32, interpreter)]


def _compiled(
    subject: Subject, op: Op, dtypes: Sequence[DType], some: Sequence[Round], case: Case
) -> list[Array]:
    """The results of a compiled program for all rounds; a program with literals has one result for each round."""
    params, beside = _params(subject, case)
    arity, fixed = len(dtypes), beside(subject.stack)
    written = [i for i, name in enumerate(some[0].lies) if name == "number"]
    steps = [chains.origin(LAYOUTS[n], x)[1] for n, x in zip(some[0].lies, some[0].values, strict=True)]
    together = some if written else some[:1]

    def program(*given: Tensor) -> list[Tensor]:
        found = []
        for turn, one in enumerate(together):
            own = given[arity * turn : arity * (turn + 1)]
            operands = [
                x.scalar(one.values[i].item(0)) if i in written else chains.by(x, steps[i])
                for i, x in enumerate(own)
            ]
            found.append(apply(op, [*operands, *given[arity * len(together) :]], params))
        return found

    def sources(one: Round) -> list[Tensor]:
        return [
            subject.tensor(x if name == "number" else chains.origin(LAYOUTS[name], x)[0], d, subject.stack)
            for name, x, d in zip(one.lies, one.values, dtypes, strict=True)
        ]

    run = tensorken.jit(program)
    calls = [[x for one in some for x in sources(one)]] if written else [sources(one) for one in some]
    return [subject.read(y) for given in calls for y in run(*given, *fixed)]


def _agree(subject: Subject, case: Case, one: Round, got: Array, expected: Array, way: str) -> None:
    """Compare with the result of plain operands; where they differ, with the correct result."""
    op, dtype = OPS[case.op], DTYPES[case.dtype]
    lies = ", ".join(one.lies)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise Failure(
            f"{op.name} of {case.dtype} ({lies}){way}: "
            f"expected {expected.dtype} {expected.shape}, got {got.dtype} {got.shape}"
        )
    differ = exact.differing(got, expected)
    if differ is None:
        return
    columns = tuple([x[differ] for x in one.values]) if got.shape == one.values[0].shape else ()
    bad, correct = np.ones(int(differ.sum()), bool), expected[differ]
    if op.elementwise:
        bad, correct = _wrong(subject, op, dtype, columns, got[differ], correct)
    if bad.any():
        index = int(np.argmax(bad))
        point = ", ".join([elementwise.shown(column[index]) for column in columns])
        raise Failure(
            f"{op.name}({point}) of {case.dtype} matrices that lie as {lies}{way}: "
            f"expected {elementwise.shown(correct[index])}, got {elementwise.shown(got[differ][index])}",
            worst=f"{op.name}({point})",
        )


def _wrong(
    subject: Subject, op: Op, dtype: DType, columns: tuple[Array, ...], got: Array, plain: Array
) -> tuple[Array, Array]:
    """Where results are incorrect, and the correct results; without an oracle those of plain operands are correct."""
    bound = elementwise.allowed(subject, op, dtype, 2)
    try:
        expected = oracle.expected(op, dtype, columns)
    except LookupError:
        return ulp.distance(got, plain) > bound, plain
    pool = elementwise.Pool(op, dtype, columns, expected)
    return elementwise.distances(subject, pool, got, expected, columns, bound) > bound, expected
