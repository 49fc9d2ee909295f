"""The laws on exponential sums and norms: careless formulas fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import failures, faulty
from tensorken_numpy.backend import Numpy

LAW = "values.exponential-sums"


def quiet(change: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return change(*args)

    return call


@quiet
def without_shift(right: Callable[..., Any], x: Any, axes: Any) -> Any:
    powers = np.exp(x)
    return (powers / np.add.reduce(powers, axes, keepdims=True)).astype(x.dtype)


@quiet
def log_of_softmax(right: Callable[..., Any], x: Any, axes: Any) -> Any:
    return np.log(Numpy().softmax(x, axes))


@quiet
def minus_logsumexp(right: Callable[..., Any], x: Any, axes: Any) -> Any:
    return np.where(np.isfinite(x), x - Numpy().logsumexp(x, axes), right(x, axes))


@quiet
def nothing_for_masked(right: Callable[..., Any], x: Any, axes: Any) -> Any:
    return np.where(np.isneginf(x), x.dtype.type(0), right(x, axes))


@quiet
def shares_of_infinity(right: Callable[..., Any], x: Any, axes: Any) -> Any:
    """NaN where a maximum is infinite, as inf - inf is."""
    return np.where(np.isposinf(x), x.dtype.type(np.nan), right(x, axes))


FAULTS = {
    "no shift": ("softmax", without_shift, "wide"),
    "log of softmax": ("log_softmax", log_of_softmax, "wide"),
    "minus logsumexp": ("log_softmax", minus_logsumexp, "shifted"),
    "masked": ("softmax", nothing_for_masked, "all-masked"),
    "infinite": ("softmax", shares_of_infinity, "infinite"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_careless_formula_fails(name: str) -> None:
    op, change, values = FAULTS[name]
    found = failures(faulty(op, change), LAW, where=lambda case: case.op == op and case.dtype == "float32")
    assert values in {id.split("/")[4] for id in found}


@quiet
def without_scale(right: Callable[..., Any], x: Any, axes: Any) -> Any:
    return np.sqrt(np.add.reduce(x * x, axes, x.dtype, keepdims=True))


@quiet
def of_two(right: Callable[..., Any], x: Any, axes: Any) -> Any:
    """Off by two units in the last place."""
    y = right(x, axes)
    return y * y.dtype.type(1 + 4 * np.finfo(y.dtype).eps) if x.size == 7 else y


def test_a_careless_norm_fails() -> None:
    found = failures(
        faulty("norm", without_scale), "values.norms", where=lambda case: case.dtype == "float32"
    )
    assert {"large", "small"} <= {id.split("/")[4] for id in found}
    found = failures(faulty("norm", of_two), "values.norms", where=lambda case: case.dtype == "float64")
    assert {id.split("/")[3] for id in found} == {"prime"}
