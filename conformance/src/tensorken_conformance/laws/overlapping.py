"""values.overlapping: operands of one call that share memory, or are one tensor."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.layouts import chains
from tensorken_conformance.layouts.shapes import class_of
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS, Op
from tensorken_core.tensor.tensor import Tensor

ID = "values.overlapping"

SIZE = 4
"""The number of rows and of columns: equal, so that a transposed operand has the same shape."""

SMOKE = class_of("small").shape
"""The shape of operands of the smoke run, as in other laws; none is transposed there."""

VIEWS: dict[str, tuple[tuple[str, Any], ...]] = {
    "itself": (),
    "flipped": (("flip", ((0, 1),)),),
    "flipped rows": (("flip", ((0,),)),),
    "transposed": (("permute", ((1, 0),)),),
    "shifted": (("crop", (((1, SIZE + 1), (0, SIZE)),)),),
    "first row": (("crop", (((0, 1), (0, SIZE)),)), ("expand", ((SIZE, SIZE),))),
}
"""The movements that make an operand from the tensor of the other."""

OTHERS = ("where", "concatenate", "fused_multiply_add", "gather", "scatter_add")


def cases(subject: Subject) -> Iterator[Case]:
    """Each op of several operands in each dtype; a case tries all pairs of views of one tensor."""
    nondeterministic = subject.capabilities.nondeterministic
    for op in OPS.values():
        pairwise = op.elementwise and op.arity == 2
        if not (pairwise or op.name in OTHERS) or op.name in nondeterministic:
            continue
        for dtype in _dtypes(subject, op):
            yield Case(ID, op.name, dtype.name)


def _dtypes(subject: Subject, op: Op) -> list[DType]:
    if op.name in ("gather", "scatter_add"):
        return [d for d in subject.dtypes() if d.name == "int32"]
    if op.name == "where":
        found = exact.dtypes_for(subject, OPS["maximum"], operands=2)
        return found if "bool" in subject.capabilities.dtypes else []
    if op.name == "concatenate":
        return exact.dtypes_for(subject, op, (0,))
    return exact.dtypes_for(subject, op, ((0,),) if op.name == "fused_multiply_add" else (), operands=2)


def shape_of(subject: Subject) -> tuple[int, int]:
    """The rows and columns of the operands."""
    return (SMOKE[0], SMOKE[1]) if subject.depth == "smoke" else (SIZE, SIZE)


def values_of(subject: Subject, case: Case) -> Array:
    """Values for two operands that overlap in all rows but one; floats include NaN and infinities."""
    rng = np.random.default_rng([subject.seed, zlib.crc32(case.id.encode())])
    rows, columns = shape_of(subject)
    shape, kind = (rows + 1, columns), DTYPES[case.dtype].kind
    if kind == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    whole = rng.permutation(np.arange(1, 1 + (rows + 1) * columns)).reshape(shape)
    if case.op in ("gather", "scatter_add"):
        return (whole % SIZE).astype(case.dtype)
    if kind == "int":
        return (whole % 7 + (case.op == "floor_divide")).astype(case.dtype)
    values = np.asarray(whole / 4).astype(case.dtype)
    if case.op != "fused_multiply_add":
        values[1, :] = rng.permutation(np.array([np.nan, np.inf, 0.0, -np.inf], case.dtype))[:columns]
    return values


@law(ID, cases, level=2, needs=lambda case: chains.needs(case.dtype))
def overlapping(subject: Subject, case: Case) -> None:
    """An op gives the same bits for operands that share memory, or are one tensor, as for operands that do not.

    Each operand is the tensor itself, or is flipped, transposed, shifted by a row, or one row repeated.  The expected
    result is that of the backend itself for operands made in the same way from separate tensors.
    """
    values, dtype, op = values_of(subject, case), DTYPES[case.dtype], OPS[case.op]
    shape = shape_of(subject)
    condition = np.arange(math.prod(shape)).reshape(shape) % 3 > 0
    for first, second in _pairs(subject, case):
        base = subject.tensor(values, dtype)
        together = [_made(subject, first, base), _made(subject, second, base)]
        if first == second:
            together[1] = together[0]
        alone = [_made(subject, name, subject.tensor(values, dtype)) for name in (first, second)]
        chosen = [subject.tensor(condition, DTYPES["bool"])] if case.op == "where" else []
        shared, separate = [_applied(subject, op, [*chosen, *operands]) for operands in (together, alone)]
        for y, z in zip(shared, separate, strict=True):
            words = f"{case.op} of {case.dtype} operands of one tensor, {first} and {second}"
            exact.same(subject.read(y), subject.read(z), f"{words}, compared with two tensors")


def _pairs(subject: Subject, case: Case) -> list[tuple[str, str]]:
    """Names of views for the first operand and the second."""
    refused = subject.capabilities.why_not
    able = [name for name, steps in VIEWS.items() if not any(refused(op, case.dtype) for op, _ in steps)]
    if subject.depth == "smoke":
        able = able[:2]
    pairs = [("itself", name) for name in able] + [(name, "itself") for name in able[1:]]
    return pairs + [(name, name) for name in able[1:]]


def _made(subject: Subject, name: str, base: Tensor) -> Tensor:
    """A view of a tensor that has one row more than the operands."""
    rows, columns = shape_of(subject)
    if name != "shifted":
        base = subject.run(OPS["crop"], [base], (((0, rows), (0, columns)),))
    for op, params in VIEWS[name]:
        base = subject.run(OPS[op], [base], params)
    return subject.apart(base)


def _applied(subject: Subject, op: Op, operands: Sequence[Tensor]) -> list[Tensor]:
    """The results of an op on the operands, reshaped where the op needs it."""
    if op.name == "concatenate":
        return [subject.run(op, operands, (0,))]
    if op.name == "fused_multiply_add":
        a, b = operands
        rows, columns = shape_of(subject)
        left = subject.run(OPS["reshape"], [a], ((rows, columns, 1),))
        right = subject.run(OPS["reshape"], [b], ((1, columns, rows),))
        return [subject.run(op, operands, ((0, 1),)), subject.run(op, [left, right], ((1,),))]
    if op.name in ("gather", "scatter_add"):
        x, indices = [subject.run(OPS["reshape"], [x], ((x.size,),)) for x in operands]
        return [subject.run(op, [x, indices], (0,) if op.name == "gather" else (0, SIZE))]
    return [subject.run(op, operands)]
