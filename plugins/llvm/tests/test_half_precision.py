"""float16: conversions are exact on each CPU, with instructions for them and without."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from plugins.llvm.tests.test_programs import NUMPY, traced
from tensorken_llvm import half_precision, machine
from tensorken_llvm.program import compiled

HALVES: Any = np.arange(2**16, dtype="uint16").view("float16")


def numbers() -> Any:
    """All float16 numbers, those in the middle between two, and numbers next to these."""
    x = HALVES.astype("float64")
    with np.errstate(over="ignore"):
        middle = (x + np.nextafter(HALVES, np.float16(np.inf)).astype("float64")) / 2
    near = [np.nextafter(middle, side) for side in (np.inf, -np.inf)]
    return np.concatenate([x, middle, *near, [65519.99, 65520.0, 1e300, -1e300, 5e-324, 2.0**-25]])


def assert_exact() -> None:
    """Compare conversions with those of numpy, bit for bit; of NaN the sign."""
    with np.errstate(all="ignore"):
        for dtype in ("float32", "float64"):
            assert_same(cast(HALVES, dtype), HALVES.astype(dtype))
            x = numbers().astype(dtype)
            assert_same(cast(x, "float16"), x.astype("float16"))


def cast(x: Any, dtype: str) -> Any:
    code = compiled(traced(lambda x: x.astype(dtype), x), NUMPY)
    assert code is not None
    return code([x])[0]


def assert_same(found: Any, expected: Any) -> None:
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), nan)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    bits = f"int{8 * expected.itemsize}"
    np.testing.assert_array_equal(found[~nan].view(bits), expected[~nan].view(bits))


@pytest.mark.parametrize("instructions", ["all", "of float32", "none"])
def test_conversions_are_exact(instructions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if instructions != "all":
        monkeypatch.setattr(half_precision, "_converts_doubles", lambda: False)
    if instructions == "none":
        monkeypatch.setattr(half_precision, "_converts_floats", lambda: False)
    assert_exact()


def test_conversions_run_on_the_least_cpu() -> None:
    least = "x86-64" if platform.machine().lower() in ("x86_64", "amd64") else "generic"
    code = "from plugins.llvm.tests.test_half_precision import assert_exact; assert_exact()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, machine.CPU: least, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
