"""The plugin that perturbs the rounding of numpy's functions: which numbers, how far, and its effect on a page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.tests.each import each_of
from tools import last_digits
from tools.workspace import ROOT


@each_of("dtype", ["float32", "float64"])
def test_numbers_become_adjacent_floats_and_round_ones_stay(dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=(40, 50)).astype(dtype).T
    y = last_digits.perturbed(x)
    assert (y.shape, y.dtype) == (x.shape, x.dtype)
    up, down = y == np.nextafter(x, x.dtype.type(np.inf)), y == np.nextafter(x, x.dtype.type(-np.inf))
    assert (up | down | (y == x)).all()
    assert up.mean() > 0.2
    assert down.mean() > 0.2
    assert (last_digits.perturbed(x[::-1]) == y[::-1]).all()


def test_a_perturbed_function_supports_out() -> None:
    x, out = np.linspace(0.1, 3.0, 50), np.empty(50)
    assert last_digits.Perturbed(np.exp)(x, out=out) is out
    np.testing.assert_array_equal(out, last_digits.perturbed(np.exp(x)))
    assert last_digits.Perturbed(np.power)(np.int64(3), 2) == 9
    assert isinstance(last_digits.Perturbed(np.exp)(np.float32(0.3)), np.float32)


@pytest.mark.slow
def test_output_that_depends_on_the_library_is_found(tmp_path: Path) -> None:
    """Printing all digits of exponentials fails, rounded ones pass."""
    for shown, passes in (("str(x.tolist())", False), ("f'{x:.3f}'", True)):
        test = (
            "import numpy as np\nimport tensorken as tk\n"
            "x = tk.exp(tk.tensor(np.linspace(0.1, 3, 20), 'float64'))\n"
            "before = np.exp.function(np.linspace(0.1, 3, 20))\n"
            f"def test():\n    now = {shown}\n    globals()['x'] = tk.tensor(before, 'float64')\n"
            f"    assert now == eval({shown!r})\n"
        )
        file = tmp_path / "test_it.py"
        file.write_text(test, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tools.last_digits",
            "-p",
            "no:cacheprovider",
            str(file),
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == (0 if passes else 1), done.stdout
