"""values.workgroups, values.tiles: ops on more elements than a device computes at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.layouts.shapes import WORKGROUPS
from tensorken_conformance.limits import NARROW
from tensorken_conformance.operands.samples import kinds_of
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS

ROWS = (2051, 2049)
"""A matrix that still has more elements than that without its first row and column."""

STEP = 1_000_003
"""The distance between successive indices of gather; it has no common divisor with the sizes."""


@dataclass(frozen=True, slots=True)
class Large:
    """An op on large operands.

    Attributes:
        operands: their values, from the dtype.
        params: of the op.
        expected: the result, from the operands.
        count: of the operands.
    """

    operands: Callable[[str], tuple[Array, ...]]
    params: tuple[Any, ...]
    expected: Callable[..., Array]
    count: int = 1


@functools.lru_cache(maxsize=4)
def repeated(dtype: str, period: int, most: int) -> Array:
    """Integers from -most to most, or bools, that repeat after a period."""
    numbers = np.random.default_rng(period).integers(-most, most + 1, period)
    return np.resize(numbers % 2 == 1 if dtype == "bool" else numbers.astype(dtype), WORKGROUPS)


def dense(dtype: str) -> Array:
    """Numbers with partial sums below 2**24 in any order, so that float32 represents them without rounding.

    For narrow floats all but every 4099th are zero, which keeps float16's sums below 2**11; sums of more than 256 ones
    would be rounded in bfloat16.
    """
    if dtype not in NARROW:
        return repeated(dtype, 1021, 2)
    values = np.zeros(WORKGROUPS, dtype)
    values[5::4099] = 1
    return values


def matrix(dtype: str) -> Array:
    """Numbers in rows and columns."""
    return np.resize(repeated(dtype, 1021, 100), ROWS)


def peaked(dtype: str) -> Array:
    """Numbers of which the last is the largest."""
    values = np.array(repeated(dtype, 1021, 100)) if dtype != "bool" else np.zeros(WORKGROUPS, dtype)
    values[-1] = 1 if dtype == "bool" else 120
    return values


def places(dtype: str) -> tuple[Array, Array]:
    """A table, and a permutation of its indices."""
    return repeated(dtype, 1021, 100), (np.arange(WORKGROUPS) * STEP % WORKGROUPS).astype("int32")


def pieces(dtype: str) -> tuple[Array, ...]:
    """The numbers in three pieces."""
    return tuple(np.split(repeated(dtype, 1021, 100), (5, WORKGROUPS // 2)))


LARGE: dict[str, Large] = {
    "neg": Large(lambda d: (repeated(d, 1021, 100),), (), lambda x: -x),
    "add": Large(lambda d: (repeated(d, 1021, 100), repeated(d, 1019, 100)), (), lambda a, b: a + b, count=2),
    "lt": Large(lambda d: (repeated(d, 1021, 100), repeated(d, 1019, 100)), (), lambda a, b: a < b, count=2),
    "cast": Large(lambda d: (repeated(d, 1021, 100),), (), lambda x, dtype: x.astype(dtype.name)),
    "sum": Large(lambda d: (dense(d),), ((0,),), lambda x, axes: x.sum(axes, x.dtype, keepdims=True)),
    "max": Large(lambda d: (peaked(d),), ((0,),), lambda x, axes: x[-1:]),
    "cumsum": Large(lambda d: (dense(d),), (0,), lambda x, axis: x.cumsum(axis, x.dtype)),
    "fused_multiply_add": Large(
        lambda d: (dense(d), dense(d)[::-1]),
        ((0,),),
        lambda a, b, axes: (a * b).sum(axes, a.dtype, keepdims=True),
        count=2,
    ),
    "gather": Large(places, (0,), lambda x, indices, axis: x[indices], count=2),
    "crop": Large(lambda d: (matrix(d),), (((1, ROWS[0]), (1, ROWS[1])),), lambda x, limits: x[1:, 1:]),
    "flip": Large(lambda d: (matrix(d),), ((0, 1),), lambda x, axes: x[::-1, ::-1]),
    "permute": Large(lambda d: (matrix(d),), ((1, 0),), lambda x, order: x.T),
    "concatenate": Large(pieces, (0,), lambda *rest: np.concatenate(rest[:-1]), count=3),
}
"""One op of each kind, since each kind is one kernel of a device."""


def params_of(subject: Subject, op: str, dtype: str) -> tuple[Any, ...] | None:
    """The params of an op; for a cast the first dtype of another kind that the backend has, None if there is none."""
    if op != "cast":
        return LARGE[op].params
    kind = DTYPES[dtype].kind
    others = [other for other in subject.dtypes() if other.kind not in (kind, "bool")]
    return (others[0],) if others else None


def cases(subject: Subject) -> Iterator[Case]:
    """Each op in one dtype, in a deep run in all that it takes; none in a smoke run."""
    for op in LARGE:
        for dtype in dtypes_for(subject, op):
            yield Case("values.workgroups", op, dtype, str(WORKGROUPS))


def dtypes_for(subject: Subject, op: str) -> list[str]:
    """The first dtype that an op takes on this backend, in a deep run all; none in a smoke run."""
    order = ("float32", "float64", "int32", "int64", "float16", "bool")
    found = [name for name in order if name in subject.capabilities.dtypes and taken(subject, op, name)]
    return {"smoke": [], "deep": found}.get(subject.depth, found[:1])


def taken(subject: Subject, op: str, dtype: str) -> bool:
    """Whether the op is defined for a dtype of its data, and the backend has the dtypes of all operands."""
    params, dtypes = params_of(subject, op, dtype), kinds_of(OPS[op], LARGE[op].count, DTYPES[dtype])
    has = all(d.name in subject.capabilities.dtypes for d in dtypes)
    return has and params is not None and exact.takes(OPS[op], dtypes, params)


@law("values.workgroups", cases, level=2, needs=exact.needs_of)
def workgroups(subject: Subject, case: Case) -> None:
    """An op on more elements than 65 535 workgroups of 64 threads is exact in every element."""
    large, params = LARGE[case.op], params_of(subject, case.op, case.dtype) or ()
    values = large.operands(case.dtype)
    dtypes = kinds_of(OPS[case.op], large.count, DTYPES[case.dtype])
    operands = [subject.tensor(x, dtype) for x, dtype in zip(values, dtypes, strict=True)]
    with np.errstate(over="ignore"):
        expected = large.expected(*values, *params)
    result = subject.run(OPS[case.op], operands, params)
    exact.agree(subject, result, expected, f"{case.op} of {case.dtype} {values[0].shape}")


SIZES = {
    "few-rows": (16, 7, 128, 74),
    "few-columns": (16, 74, 128, 7),
    "odd": (2, 77, 83, 85),
    "thin": (9, 13, 600, 15),
    "long-few-rows": (1, 7, 4099, 38),
    "long-few-columns": (1, 38, 4099, 7),
}
"""Matrices in the batch, rows, elements of each sum, and columns: a million products each.

With as many, devices compute tiles of the result, or add up parts of long sums; the tiles divide none of these sides.
"""


def tiled(subject: Subject) -> Iterator[Case]:
    """Each case in one dtype, in a deep run in all; none in a smoke run."""
    for dtype in dtypes_for(subject, "fused_multiply_add"):
        for sizes in SIZES:
            yield Case("values.tiles", "fused_multiply_add", dtype, sizes)


@law("values.tiles", tiled, level=2, needs=exact.needs_of)
def tiles(subject: Subject, case: Case) -> None:
    """Products of matrices that are large, and of many or few rows and columns, are exact where no order rounds."""
    batch, rows, inner, columns = SIZES[case.shape]
    rng = np.random.default_rng(subject.random(case).getrandbits(32))
    shape = (batch, inner, rows + columns)
    # three of four whole numbers are zero, so that even float16 represents all sums
    both = np.asarray(rng.integers(-3, 4, shape) * (rng.integers(0, 4, shape) == 0), case.dtype)
    a, b = both[:, :, :rows].transpose(0, 2, 1), both[:, :, rows:]
    operands = [subject.tensor(x, DTYPES[case.dtype]) for x in (a[..., None], b[:, None])]
    result = subject.run(OPS[case.op], operands, ((2,),))
    expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(case.dtype)[:, :, None]
    says = f"{case.op} of {case.dtype} {rows}x{inner} and {inner}x{columns}, {batch} of each"
    exact.agree(subject, result, expected, says)
