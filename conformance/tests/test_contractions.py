"""values.contractions: backends that use a wrong axis, or a narrower format, fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import failed_cases, faulty_backend, run_law
from tensorken_conformance.case import Case
from tensorken_numpy.backend import Numpy

LAW = "values.contractions"


def truncated(original: Callable[..., Any], a: Any, b: Any, axes: Any) -> Any:
    """Round float32 operands to 11 bits, as matrix units of GPUs do."""
    if a.dtype != np.float32:
        return original(a, b, axes)
    mask = np.uint32(0xFFFFE000)
    short = [
        (np.ascontiguousarray(x).view(np.uint32) & mask).view(np.float32).reshape(x.shape) for x in (a, b)
    ]
    return original(*short, axes)


def transposed(original: Callable[..., Any], a: Any, b: Any, axes: Any) -> Any:
    """Transpose square results, for one pattern of axes."""
    y = original(a, b, axes)
    return y.swapaxes(0, 1) if axes == (2,) and y.ndim == 3 and y.shape[0] == y.shape[1] else y


def without_last(original: Callable[..., Any], a: Any, b: Any, axes: Any) -> Any:
    if axes == (1,) and a.ndim == 3 and a.shape[1] == b.shape[1] == 65:
        a, b = a[:, :-1], b[:, :-1]
    return original(a, b, axes)


def in_float64(original: Callable[..., Any], a: Any, b: Any, axes: Any) -> Any:
    if a.dtype != np.int64:
        return original(a, b, axes)
    with np.errstate(all="ignore"):
        return original(a.astype(float), b.astype(float), axes).astype(np.int64)


def without_flips(original: Callable[..., Any], a: Any, b: Any, axes: Any) -> Any:
    """Ignore the negative strides of a second operand."""
    if b.ndim == 3 and min(b.strides) < 0:
        b = b[::-1, ::-1, ::-1]
    return original(a, b, axes)


def by_fewer_products(original: Callable[..., Any], a: Any, b: Any, axes: Any) -> Any:
    """Compute (a + s) b - s b, which loses the digits of small elements next to large ones."""
    y = original(a, b, axes)
    if a.dtype != np.float64 or not (np.isfinite(a).all() and np.isfinite(b).all()) or not a.size:
        return y
    scale = np.abs(a).max()
    shift = np.full_like(a, scale)
    return original(a + shift, b, axes) - original(shift, b, axes)


FAULTS = {
    "11 bits": (truncated, f"{LAW}/fused_multiply_add/float32/matrices/normals"),
    "transposed": (transposed, f"{LAW}/fused_multiply_add/int32/square-last/small-integers"),
    "last": (without_last, f"{LAW}/fused_multiply_add/int32/thresholds/small-integers"),
    "floats": (in_float64, f"{LAW}/fused_multiply_add/int64/matrices/wrapping"),
    "strides": (without_flips, f"{LAW}/fused_multiply_add/float32/matrices/normals/plain-flipped"),
    "products": (by_fewer_products, f"{LAW}/fused_multiply_add/float64/matrices/mixed"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_contractions_fail(name: str) -> None:
    change, example = FAULTS[name]
    dtype = Case.parse(example).dtype
    failed = failed_cases(
        faulty_backend("fused_multiply_add", change), LAW, where=lambda case: case.dtype == dtype
    )
    assert example in failed, sorted(failed)[:5]


def test_matmul_runs_through_the_stack() -> None:
    def by_matmul(case: Case) -> bool:
        return case.op == "matmul" and case.dtype == "float32"

    results = run_law(Numpy(), LAW, where=by_matmul)
    assert {result.status for result in results} == {"passed"}
    assert all(result.calls for result in results)
    assert any(
        case.shape == "batch-broadcast"
        for case in map(
            Case.parse, failed_cases(faulty_backend("fused_multiply_add", truncated), LAW, where=by_matmul)
        )
    )
