"""values.exponential-sums and values.norms: numerically unstable formulas fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import failed_cases, faulty_backend
from tensorken_numpy.backend import Numpy

LAW = "values.exponential-sums"


def quiet(change: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return change(*args)

    return call


@quiet
def without_shift(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    powers = np.exp(x)
    return (powers / np.add.reduce(powers, axes, keepdims=True)).astype(x.dtype)


@quiet
def log_of_softmax(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    return np.log(Numpy().softmax(x, axes))


@quiet
def minus_logsumexp(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    return np.where(np.isfinite(x), x - Numpy().logsumexp(x, axes), original(x, axes))


@quiet
def zero_for_masked(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    return np.where(np.isneginf(x), x.dtype.type(0), original(x, axes))


@quiet
def nan_for_infinity(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    """Return NaN for infinite maxima, as inf - inf does."""
    return np.where(np.isposinf(x), x.dtype.type(np.nan), original(x, axes))


FAULTS = {
    "no shift": ("softmax", without_shift, "wide"),
    "log of softmax": ("log_softmax", log_of_softmax, "wide"),
    "minus logsumexp": ("log_softmax", minus_logsumexp, "shifted"),
    "masked": ("softmax", zero_for_masked, "all-masked"),
    "infinite": ("softmax", nan_for_infinity, "infinite"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_unstable_formulas_fail(name: str) -> None:
    op, change, values = FAULTS[name]
    failed = failed_cases(
        faulty_backend(op, change), LAW, where=lambda case: case.op == op and case.dtype == "float32"
    )
    assert values in {id.split("/")[4] for id in failed}


@quiet
def without_scale(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    return np.sqrt(np.add.reduce(x * x, axes, x.dtype, keepdims=True))


@quiet
def off_by_two_ulp(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    """Return norms of seven elements with an error of two units in the last place."""
    y = original(x, axes)
    return y * y.dtype.type(1 + 4 * np.finfo(y.dtype).eps) if x.size == 7 else y


def test_inaccurate_norms_fail() -> None:
    failed = failed_cases(
        faulty_backend("norm", without_scale), "values.norms", where=lambda case: case.dtype == "float32"
    )
    assert {"large", "small"} <= {id.split("/")[4] for id in failed}
    failed = failed_cases(
        faulty_backend("norm", off_by_two_ulp), "values.norms", where=lambda case: case.dtype == "float64"
    )
    assert {id.split("/")[3] for id in failed} == {"prime"}
