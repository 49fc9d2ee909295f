"""The laws on sums and products: correct backends pass, and backends with a narrow fault fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import failed_cases, faulty_backend, run_law
from tensorken_conformance.case import Case
from tensorken_conformance.running.examine import laws_for
from tensorken_conformance.subject import Subject
from tensorken_core.language.capabilities import Capabilities
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

LAWS = (
    "values.sums",
    "values.products",
    "values.contractions",
    "values.exponential-sums",
    "values.norms",
    "values.factorizations",
)


def is_quick(case: Case) -> bool:
    """Whether a case takes little time."""
    return case.dtype == "float32" and not case.shape.startswith("long")


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "backend", [Numpy(), pytest.param(Reference(), marks=pytest.mark.nightly)], ids=["numpy", "reference"]
)
def test_correct_backends_pass(backend: Any, law: str) -> None:
    only_3x3 = law == "values.factorizations" and isinstance(backend, Reference)
    results = run_law(
        backend, law, 7, where=lambda case: is_quick(case) and (case.shape == "3x3" or not only_3x3)
    )
    assert [result for result in results if result.status != "passed"] == []
    assert len(results) > 70
    assert len({result.case.id for result in results}) == len(results)


@pytest.mark.parametrize("law", LAWS)
def test_cases_do_not_depend_on_the_seed(law: str) -> None:
    first, second = (Subject(Numpy(), "numpy", seed) for seed in (0, 1))
    (chosen,) = laws_for(first, [law])
    assert list(chosen.cases(first)) == list(chosen.cases(second))


@pytest.mark.parametrize("law", LAWS)
def test_a_smoke_run_has_one_case_for_each_op(law: str) -> None:
    results = run_law(Numpy(), law, depth="smoke")
    assert {result.status for result in results} == {"passed"}
    assert len({result.case.op for result in results}) == len(results) < 14


def test_required_ops_on_ordinary_values_belong_to_level_1() -> None:
    levels = {result.case.op: result.level for result in run_law(Numpy(), "values.sums", depth="smoke")}
    assert levels == {"sum": 1, "cumsum": 2, "scatter_add": 1}


# ---- faults ------------------------------------------------------------------------------------------------


def without_tail(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    """Leave out the last of 257 elements."""
    if axes == (0,) and x.shape == (257,):
        x = x[:256]
    return original(x, axes)


def in_half_precision(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    if x.dtype == np.float32 and np.isfinite(x).all() and (abs(x) < 6e4).all():
        with np.errstate(under="ignore"):
            x = x.astype(np.float16).astype(np.float32)
    return original(x, axes)


def saturated(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    if x.dtype != np.int32 or not axes:
        return original(x, axes)
    total = np.add.reduce(x.astype(np.int64), axes, keepdims=True)
    return np.clip(total, -(2**31), 2**31 - 1).astype(np.int32)


def negative_zero(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    y = original(x, axes)
    return np.where(y == 0, -np.abs(y), y) if x.dtype == np.float64 else y


def without_nan(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    return original(np.where(np.isnan(x), x.dtype.type(0), x) if x.dtype.kind == "f" else x, axes)


def largest_for_infinity(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    """Return the largest number instead of infinity."""
    y = original(x, axes)
    is_finite = x.dtype.kind == "f" and np.isfinite(x).all()
    return np.nan_to_num(y, nan=0.0) if is_finite else y


def last_is_second_last(original: Callable[..., Any], x: Any, axis: int) -> Any:
    y = np.array(original(x, axis))
    if x.shape == (65,) and x.dtype == np.float16:
        y[-1] = y[-2]
    return y


def overwriting(original: Callable[..., Any], x: Any, indices: Any, axis: int, size: int) -> Any:
    y = np.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)
    y[(slice(None),) * axis + (indices,)] = x
    return y


def from_negative_zero(original: Callable[..., Any], x: Any, *rest: Any) -> Any:
    y = original(x, *rest)
    return np.where((y == 0) & (rest[1] == 0), -y, y) if x.dtype == np.float32 else y


SUMS = {
    "tail": ("sum", without_tail, "sum/int32/257/small-integers/0"),
    "half": ("sum", in_half_precision, "sum/float32/257/positive/0"),
    "saturated": ("sum", saturated, "sum/int32/small/wrapping/0"),
    "negative zero": ("sum", negative_zero, "sum/float64/empty/normals/0"),
    "no nan": ("sum", without_nan, "sum/float16/257/nan/0"),
    "infinity": ("sum", largest_for_infinity, "sum/float16/permuted/extremes/0-1-2"),
    "last": ("cumsum", last_is_second_last, "cumsum/float16/65/small-integers/0"),
    "overwriting": ("scatter_add", overwriting, "scatter_add/int32/small/small-integers/1-same"),
    "sign": ("scatter_add", from_negative_zero, "scatter_add/float32/small/zeros/0-shared"),
}


@pytest.mark.parametrize("name", SUMS)
def test_faulty_sums_fail(name: str) -> None:
    op, change, example = SUMS[name]
    dtype = example.split("/")[1]
    results = run_law(
        faulty_backend(op, change), "values.sums", where=lambda case: (case.op, case.dtype) == (op, dtype)
    )
    failed = {result.case.id: result.says for result in results if result.status == "failed"}
    assert f"values.sums/{example}" in failed, sorted(failed)[:5]
    assert len(failed) < len(results)
    assert all("expected" in message for message in failed.values())  # no case fails by an exception


def by_logarithms(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    if x.dtype.kind != "f":
        return original(x, axes)
    with np.errstate(all="ignore"):
        sign = np.where(np.add.reduce(np.signbit(x), axes, keepdims=True) % 2, -1, 1)
        return (sign * np.exp(np.add.reduce(np.log(np.abs(x)), axes, keepdims=True))).astype(x.dtype)


def unsigned_zero(original: Callable[..., Any], x: Any, axes: Any) -> Any:
    y = original(x, axes)
    return np.where(y == 0, abs(y), y) if x.dtype.kind == "f" and axes else y


def skipping_64(original: Callable[..., Any], x: Any, axis: int) -> Any:
    y = np.array(original(x, axis))
    if x.shape[axis] > 64:
        y[(slice(None),) * axis + (64,)] = y[(slice(None),) * axis + (63,)]
    return y


PRODUCTS = {
    "logarithms": ("prod", by_logarithms),
    "zero": ("prod", unsigned_zero),
    "64": ("cumprod", skipping_64),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_faulty_products_fail(name: str) -> None:
    op, change = PRODUCTS[name]
    results = run_law(
        faulty_backend(op, change),
        "values.products",
        where=lambda case: (case.op, case.dtype) == (op, "float32"),
    )
    failed = [result.says for result in results if result.status == "failed"]
    assert 0 < len(failed) < len(results)
    assert all("expected" in message for message in failed)


class Flushing(Numpy):
    """Flushes subnormal sums to zero, and declares that."""

    capabilities = Capabilities(dtypes=("float32",), flushes_subnormals=("float32",))

    def sum(self, x: Any, axes: Any) -> Any:
        y = super().sum(x, axes)
        return np.where(abs(y) < np.finfo(np.float32).tiny, np.float32(0), y)


def test_declared_flushing_of_subnormals_passes() -> None:
    assert not failed_cases(Flushing(), "values.sums", where=lambda case: case.op == "sum")
    undeclared = type("Undeclared", (Flushing,), {"capabilities": Capabilities(dtypes=("float32",))})
    failed = failed_cases(undeclared(), "values.sums", where=lambda case: case.op == "sum")
    assert {id.split("/")[4] for id in failed} == {"subnormals", "zeros"}  # a sum over no axes keeps -0.0
