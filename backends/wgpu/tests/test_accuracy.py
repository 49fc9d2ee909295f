"""Accuracy: the errors of a device are measured when it is first opened, declared, and kept in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tensorken_core.language.capabilities import Capabilities
from tensorken_wgpu import accuracy, declarations
from tensorken_wgpu.accuracy import declared, largest_distance, measured_ops
from tensorken_wgpu.device.failures import KernelError
from tensorken_wgpu.device.measurements import Measurements
from tensorken_wgpu.wgsl.functions import ERRORS
from tensorken_wgpu.wgsl.ops import expressions


def test_the_declared_errors_are_those_of_the_device(raw: Any) -> None:
    dtypes = raw.capabilities.dtypes
    measured = accuracy.measure(raw.device, dtypes)
    assert measured.keys() == {f"{op}.{dtype}" for dtype in dtypes for op in measured_ops(dtype)}
    assert raw.capabilities.ulp == declared(measured)
    assert all([measured[f"{op}.float32"] <= error for op, error in ERRORS.items()])


def test_inexact_quotients_and_roots_are_found(raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on drivers that divide by a product with the reciprocal."""
    inexact = {
        "div": lambda a, b: f"exact({a} * exact(1.0 / {b}))",
        "sqrt": lambda x: f"exact({x} * inverseSqrt({x}))",
        "log": lambda x: f"exact(logarithm({x}) * 1.000001)",
    }
    monkeypatch.setattr(accuracy, "measured_ops", lambda dtype: tuple(inexact))
    monkeypatch.setattr(accuracy, "expressions", lambda dtype: {**expressions(dtype), **inexact})
    measured = accuracy.measure(raw.device, ("float32",))
    assert 1 <= measured["div.float32"] <= 3
    assert 1 <= measured["sqrt.float32"] <= 3
    assert measured["log.float32"] > 5
    expected = {"div.float32": 3, "sqrt.float32": 3, "log.float32": measured["log.float32"]}
    assert declared(measured) == ERRORS | expected


def test_distances_are_counted_in_representable_numbers() -> None:
    for dtype, step, least in (("float32", 2.0**-23, 2.0**-149), ("float64", 2.0**-52, 2.0**-1074)):
        for actual, expected, steps in [
            (1.0, 1.0, 0),
            (1.0 + 3 * step, 1.0, 3),
            (-1.0, -1.0 - step, 1),
            (least, -least, 2),
            (-0.0, 0.0, 0),
            (float("nan"), 1.0, accuracy.FAR),
            (float("inf"), 1.0, accuracy.FAR),
        ]:
            assert largest_distance([actual], [expected], dtype) == steps, (dtype, actual, expected)


def test_numbers_are_measured_once_per_driver(
    raw: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dtypes, kept = raw.capabilities.dtypes, Measurements(tmp_path / "numbers.json")
    found = {f"{op}.{dtype}": 0 for dtype in dtypes for op in measured_ops(dtype)}
    calls: list[Any] = []

    def measure(device: Any, dtypes: Any) -> Any:
        calls.append(dtypes)
        return found

    monkeypatch.setattr(accuracy, "measure", measure)
    monkeypatch.setattr(declarations, "flushed", lambda backend: ("float32",))
    monkeypatch.setattr(raw, "capabilities", Capabilities())
    monkeypatch.setattr(raw, "target", raw.target)
    expected = Capabilities(dtypes=dtypes, ulp=declared(found), flushes_subnormals=("float32",))
    for _ in range(2):
        declarations.declare(raw, kept)
        assert raw.capabilities == expected
    assert len(calls) == 1
    good = {"errors": found, "flushes": [], "subgroups": False}
    damaged: list[Any] = [
        3,
        [],
        {},
        {**good, "errors": {}},
        {**good, "errors": {**found, "div.float32": -1}},
        {**good, "errors": {**found, "div.float32": True}},
        {**good, "errors": {**found, "div.float32": "0"}},
        {**good, "errors": {**found, "tan.float32": 0}},
        {**good, "flushes": "float32"},
        {**good, "flushes": ["int32"]},
        {**good, "flushes": [["float32"]]},
        {**good, "subgroups": 1},
    ]
    for value in damaged:
        kept.keep(raw.device, declarations.KEY, value)
        declarations.declare(raw, kept)
        assert raw.capabilities == expected, value
    assert len(calls) == 1 + len(damaged)
    kept.keep(raw.device, declarations.KEY, good)
    declarations.declare(raw, kept)
    assert raw.capabilities.flushes_subnormals == ()
    assert len(calls) == 1 + len(damaged)


def test_a_device_that_refuses_the_measurement_can_be_used(
    raw: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(device: Any, dtypes: Any) -> Any:
        raise KernelError("some GPU", "too many registers", "fn main")

    monkeypatch.setattr(accuracy, "measure", refuse)
    monkeypatch.setattr(raw, "capabilities", Capabilities())
    kept = Measurements(tmp_path / "numbers.json")
    declarations.declare(raw, kept)
    assert raw.capabilities.ulp == ERRORS
    assert kept.of(raw.device) == {}
