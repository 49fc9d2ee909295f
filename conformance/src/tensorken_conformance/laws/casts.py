"""values.cast: every number in every other dtype, exactly, on every shape."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law, reading_back
from tensorken_conformance.laws.elementwise import (
    ROWS,
    WHOLE,
    flushed_to_zero,
    level,
    places,
    shown,
    subnormal_hint,
)
from tensorken_conformance.layouts.shapes import SHAPES, need, operand
from tensorken_conformance.limits import NARROW
from tensorken_conformance.operands import pools
from tensorken_conformance.oracles import ulp
from tensorken_conformance.oracles.casts import cast as cast_exactly
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import Tensor


def cases(subject: Subject) -> Iterator[Case]:
    """Each pair of dtypes, shape and value class; the detail is the dtype of the result.

    A smoke run has the pairs with float32 or int32, or with the first dtype if the backend has neither.
    """
    dtypes, smoke = subject.dtypes(), subject.depth == "smoke"
    frequent = [dtype for dtype in dtypes if dtype.name in ("float32", "int32")] or dtypes[:1]
    for source, target in itertools.product(dtypes, dtypes):
        if smoke and source not in frequent and target not in frequent:
            continue
        if smoke:
            yield Case("values.cast", "cast", source.name, "small", "mixed", target.name)
            continue
        shapes = [*SHAPES, WHOLE] if subject.depth == "deep" else SHAPES
        for shape, values in itertools.product(shapes, pools.classes(source)):
            yield Case("values.cast", "cast", source.name, shape, values, target.name)
        if source.name in NARROW:
            yield Case("values.cast", "cast", source.name, WHOLE, pools.EXHAUSTIVE, target.name)


@dataclass(frozen=True, slots=True)
class Pool:
    """Numbers, the first of which is zero, and their casts to another dtype."""

    values: Array
    expected: Array


@cache
def pool(source: str, target: str, values: str, seed: int, count: int) -> Pool:
    """The pool of a pair of dtypes for a value class."""
    (column,) = pools.rows(OPS["cast"], DTYPES[source], values, seed, count)
    column = np.concatenate([np.zeros(1, column.dtype), column])
    return Pool(column, cast_exactly(column, DTYPES[target]))


@law("values.cast", cases, level=level, needs=lambda case: (reading_back(case.detail), *need(case.shape)))
def cast(subject: Subject, case: Case) -> Measured:
    """A cast rounds to the nearest number, ties to even; to int it truncates, saturates, and makes NaN 0; ints wrap.

    To bool every number but 0 is True, NaN too.
    """
    source, target = DTYPES[case.dtype], DTYPES[case.detail]
    p = pool(source.name, target.name, case.values, subject.seed, ROWS[subject.depth])
    rows = places(subject, case, len(p.values) - 1)
    values, expected = np.take(p.values, rows), np.take(p.expected, rows)

    def run(x: Tensor) -> Array:
        return subject.read(subject.run(OPS["cast"], [x], (target,)))

    got = run(operand(subject, case.shape, values, source))
    off = ulp.distance(got, expected)
    flushing = subject.capabilities.flushes_subnormals
    if off.size and off.max() and (source.name in flushing or target.name in flushing):
        operands = [values, flushed_to_zero(values, source) if source.name in flushing else values]
        for other in [cast_exactly(v.reshape(-1), target).reshape(v.shape) for v in operands]:
            off = np.minimum(off, ulp.distance(got, other))
            if target.name in flushing:
                off = np.minimum(off, ulp.distance(got, flushed_to_zero(other, target)))
    if not off.size or not off.max():
        return Measured(0.0)
    index = int(np.argmax(off))
    value, correct, error = np.ravel(values)[index], np.ravel(expected)[index], int(off.flat[index])
    fails_alone = ulp.distance(run(subject.tensor(np.array([value]), source)), np.array([correct])).any()
    script = [
        "import tensorken as tk; from math import inf, nan",
        f'x = tk.tensor([{shown(value)}], "{source}", backend={subject.name!r})',
        f'print(x.astype("{target}"))  # {shown(correct)}',
    ]
    raise Failure(
        f"cast({shown(value)}, {source} to {target}): expected {shown(correct)}, got {shown(np.ravel(got)[index])}"
        f"{subnormal_hint(subject, off > 0, (values, expected))}",
        ulp=float(error) if target.kind == "float" and error < ulp.FAR else None,
        worst=f"cast({shown(value)})",
        script=script if fails_alone else None,
    )
