"""values.indexing: gather takes the slices at indices bit by bit; scatter_add of integers adds them there, wrapping."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.operands import shapes
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import Tensor

PATTERNS = {
    "int32": ("each", "reversed", "repeated", "last", "none"),
    "int64": ("each", "more", "shuffled"),
}
"""Which indices there are in which dtype; a case tries all of one dtype."""

VIEWED = {"reversed": "257-flip", "repeated": "65-crop"}
"""The classes by which indices are made that are views themselves."""


def indices_of(pattern: str, size: int, key: str) -> Array:
    """Indices into an axis of some size: for gather."""
    rng = np.random.default_rng(zlib.crc32(f"{key} {pattern}".encode()))
    if pattern == "each":
        return np.arange(size)
    if pattern == "reversed":
        return np.arange(size)[::-1]
    if pattern == "shuffled":
        return rng.permutation(size)
    if pattern == "none" or not size:
        return np.arange(0)
    if pattern == "last":
        return np.array([size - 1])
    return rng.integers(0, size, 2 * size + 1 if pattern == "more" else size)


def targets_of(pattern: str, count: int, key: str) -> tuple[Array, int]:
    """For each of some slices where it is added, and how large the axis becomes: for scatter_add."""
    rng = np.random.default_rng(zlib.crc32(f"{key} {pattern}".encode()))
    if pattern == "each":
        return np.arange(count), count
    if pattern == "reversed":
        return np.arange(count)[::-1], count
    if pattern == "shuffled":
        return rng.permutation(count), count
    if pattern == "last":
        return np.full(count, 2), 3
    if pattern == "none":
        return (np.arange(count), count + 2) if count else (np.arange(0), 0)
    size = 2 * count + 1 if pattern == "more" else (count + 1) // 2
    return (rng.integers(0, size, count) if count else np.arange(0)), size


def added(values: Array, indices: Array, axis: int, size: int) -> Array:
    """Zeros with slices added, in the arithmetic of numpy's integers, which wrap."""
    result = np.zeros((*values.shape[:axis], size, *values.shape[axis + 1 :]), values.dtype)
    whole: tuple[Any, ...] = (slice(None),) * axis
    with np.errstate(over="ignore"):
        for place, index in enumerate(indices.tolist()):
            result[(*whole, index)] += values[(*whole, place)]
    return result


def placed(subject: Subject, pattern: str, indices: Array, dtype: str) -> Tensor:
    """The indices as a tensor; of some patterns as a view of another."""
    shape = VIEWED.get(pattern, "")
    if not exact.makes(subject, shape, DTYPES[dtype]) or not indices.size:
        shape = ""
    return shapes.operand(subject, shape, indices.astype(dtype), DTYPES[dtype])


def cases(subject: Subject) -> Iterator[Case]:
    """Each op, dtype and dtype of indices on each class of shapes and values; a case tries all axes and patterns."""
    indices = [index for index in PATTERNS if index in subject.capabilities.dtypes]
    if subject.depth == "smoke":
        del indices[1:]
    for op, kinds in (("gather", ("bool", "int", "float")), ("scatter_add", ("int",))):
        for index in indices:
            params = (0, 1)[: len(OPS[op].params)]
            found = exact.dtypes_for(subject, OPS[op], params, beside=(DTYPES[index],), kinds=kinds)
            for dtype in found:
                if subject.depth == "smoke":
                    yield Case("values.indexing", op, dtype.name, "small", "ordinary", index)
                    continue
                for shape in exact.classes(subject):
                    if shapes.class_of(shape).shape and exact.makes(subject, shape, dtype):
                        for values in exact.VALUES:
                            yield Case("values.indexing", op, dtype.name, shape, values, index)


@law("values.indexing", cases, level=exact.level_of, needs=exact.needs_of)
def indexing(subject: Subject, case: Case) -> None:
    """Gather gives the slices at the indices with the same bits; scatter_add of integers their sums, which wrap.

    Indices may repeat, be none, and be a view themselves, in int32 and int64 alike.
    """
    for number in range(exact.draws(case, shapes.class_of(case.shape).shape)):
        _check(subject, case, number)


def _check(subject: Subject, case: Case, number: int) -> None:
    shape, op = shapes.class_of(case.shape).shape, OPS[case.op]
    values = shapes.fitted(case.shape, exact.drawn(subject, case, shape, number=number))
    x = shapes.operand(subject, case.shape, values, DTYPES[case.dtype])
    key = f"{subject.seed} {case.shape}"
    params: tuple[Any, ...]
    for axis, count in enumerate(shape):
        for pattern in PATTERNS[case.detail]:
            if case.op == "gather":
                indices, params = indices_of(pattern, count, key), (axis,)
                expected = values[(slice(None),) * axis + (indices,)]
            else:
                indices, size = targets_of(pattern, count, key)
                params = (axis, size)
                expected = added(values, indices, axis, size)
            y = subject.run(op, [x, placed(subject, pattern, indices, case.detail)], params)
            operands = [values, indices.astype(case.detail)]
            script = functools.partial(
                exact.script_of, subject, [(case.op, params)], operands, expected, case.shape
            )
            says = f"{case.op} of {case.dtype} {shape} along axis {axis}, {pattern} of {case.detail} indices"
            exact.agree(subject, y, expected, says, script)
