"""The law on sums of products: backends that mistake an axis, or compute in a narrower format, fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import failures, faulty, results
from tensorken_conformance.case import Case
from tensorken_numpy.backend import Numpy

LAW = "values.contractions"


def truncated(right: Callable[..., Any], a: Any, b: Any, axes: Any) -> Any:
    """Operands of 11 bits, as in matrix units of GPUs."""
    if a.dtype != np.float32:
        return right(a, b, axes)
    mask = np.uint32(0xFFFFE000)
    short = [
        (np.ascontiguousarray(x).view(np.uint32) & mask).view(np.float32).reshape(x.shape) for x in (a, b)
    ]
    return right(*short, axes)


def transposed(right: Callable[..., Any], a: Any, b: Any, axes: Any) -> Any:
    """Only square results, of one pattern of axes."""
    y = right(a, b, axes)
    return y.swapaxes(0, 1) if axes == (2,) and y.ndim == 3 and y.shape[0] == y.shape[1] else y


def without_last(right: Callable[..., Any], a: Any, b: Any, axes: Any) -> Any:
    if axes == (1,) and a.ndim == 3 and a.shape[1] == b.shape[1] == 65:
        a, b = a[:, :-1], b[:, :-1]
    return right(a, b, axes)


def by_floats(right: Callable[..., Any], a: Any, b: Any, axes: Any) -> Any:
    if a.dtype != np.int64:
        return right(a, b, axes)
    with np.errstate(all="ignore"):
        return right(a.astype(float), b.astype(float), axes).astype(np.int64)


def of_strides(right: Callable[..., Any], a: Any, b: Any, axes: Any) -> Any:
    """A second operand that is a flipped view is taken as it lies."""
    if b.ndim == 3 and min(b.strides) < 0:
        b = b[::-1, ::-1, ::-1]
    return right(a, b, axes)


def by_fewer_products(right: Callable[..., Any], a: Any, b: Any, axes: Any) -> Any:
    """(a + s) b - s b: right but for the rounding of small elements beside large ones."""
    y = right(a, b, axes)
    if a.dtype != np.float64 or not (np.isfinite(a).all() and np.isfinite(b).all()) or not a.size:
        return y
    scale = np.abs(a).max()
    whole = np.full_like(a, scale)
    return right(a + whole, b, axes) - right(whole, b, axes)


FAULTS = {
    "11 bits": (truncated, f"{LAW}/fused_multiply_add/float32/matrices/normals"),
    "transposed": (transposed, f"{LAW}/fused_multiply_add/int32/square-last/small-integers"),
    "last": (without_last, f"{LAW}/fused_multiply_add/int32/thresholds/small-integers"),
    "floats": (by_floats, f"{LAW}/fused_multiply_add/int64/matrices/wrapping"),
    "strides": (of_strides, f"{LAW}/fused_multiply_add/float32/matrices/normals/plain-flipped"),
    "products": (by_fewer_products, f"{LAW}/fused_multiply_add/float64/matrices/mixed"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_contraction_fails(name: str) -> None:
    change, example = FAULTS[name]
    dtype = Case.parse(example).dtype
    found = failures(faulty("fused_multiply_add", change), LAW, where=lambda case: case.dtype == dtype)
    assert example in found, sorted(found)[:5]


def test_the_stack_is_examined_too() -> None:
    def by_matmul(case: Case) -> bool:
        return case.op == "matmul" and case.dtype == "float32"

    found = results(Numpy(), LAW, where=by_matmul)
    assert {result.status for result in found} == {"passed"}
    assert all(result.calls for result in found)
    assert any(
        case.shape == "batch-broadcast"
        for case in map(Case.parse, failures(faulty("fused_multiply_add", truncated), LAW, where=by_matmul))
    )
