"""values.read-back: what is put into a tensor comes out again; all laws on values stand on this one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tensorken.spec.dtypes import DTYPES, DType
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.subject import Array, Subject

SHAPES = {"scalar": (), "empty": (0,), "one": (1,), "small": (2, 3), "inner-zero": (2, 0, 3), "prime": (7,)}

SPECIALS = (0.0, -0.0, 1.0, -1.5, float("inf"), -float("inf"), float("nan"))


def need(dtype: str) -> str:
    """The id of the case that all cases on values of a dtype need."""
    return Case("values.read-back", "new", dtype, "small").id


def cases(subject: Subject) -> Iterator[Case]:
    """Each way to make a tensor, dtype and shape."""
    for dtype in subject.dtypes():
        for shape in SHAPES:
            for way in ("new", "sequence", "full"):
                yield Case("values.read-back", way, dtype.name, shape)


def numbers(subject: Subject, case: Case, dtype: DType, count: int) -> Array:
    """Values of a dtype, special ones among them."""
    rng = subject.random(case)
    if dtype.kind == "bool":
        return np.array([rng.random() < 0.5 for _ in range(count)], bool)
    if dtype.kind == "int":
        ends = np.iinfo(dtype.name)
        pool = [0, 1, -1, int(ends.min), int(ends.max), *(rng.randint(-1000, 1000) for _ in range(4))]
        return np.array([rng.choice(pool) for _ in range(count)], dtype.name)
    return np.array([rng.choice(SPECIALS) for _ in range(count)], dtype.name)


@law("values.read-back", cases, level=lambda case: 1, stage=0)
def read_back(subject: Subject, case: Case) -> None:
    """A tensor made from a buffer, a sequence or one number reads back as the same bits."""
    dtype, shape = DTYPES[case.dtype], SHAPES[case.shape]
    place = subject.witness
    count = int(np.prod(shape, dtype=int))
    values = numbers(subject, case, dtype, count).reshape(shape)
    if case.op == "full":
        value = numbers(subject, case, dtype, 1).item()
        values = np.full(shape, value, dtype.name)
        x = subject.wrap(place.full(shape, value, dtype), shape, dtype)
    elif case.op == "sequence":
        x = subject.wrap(place.new(shape, values.reshape(-1).tolist(), dtype), shape, dtype)
    else:
        x = subject.tensor(values, dtype)
    found = (tuple(place.shape(x.representation)), place.dtype(x.representation))
    if found != (shape, dtype):
        raise Failure(
            f"{case.op}: expected {dtype} {shape}, got {found[1]} {found[0]} by dtype() and shape()"
        )
    got = subject.read(x)
    if bits(got) != bits(values):
        raise Failure(f"{case.op}: expected {values.tolist()}, read {got.tolist()}")


def bits(values: Array) -> bytes:
    """The bits of values in row-major order, all NaNs alike."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    return np.ascontiguousarray(values).tobytes()
