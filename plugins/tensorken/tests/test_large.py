"""More than 2**31 elements: `nox -s "nightly(large)"` runs each function once, one after the other, in 16 GB."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk

N = 2**31 + 7
LAST = N - 4

SMALL: dict[str, Callable[[Any], Any]] = {
    "argmax": tk.argmax,
    "argmin": tk.argmin,
    "argmax of an axis": lambda x: tk.argmax(x.reshape((1, N)), 1),
    "nonzero": tk.nonzero,
    "flatnonzero": tk.flatnonzero,
    "argwhere": tk.argwhere,
    "count_nonzero": tk.count_nonzero,
    "count of zeros": lambda x: tk.sum(x.eq(0)),
    "sum": lambda x: x.sum(dtype="int64"),
    "mean": tk.mean,
    "prod": lambda x: x[:LAST].prod(dtype="int64"),
    "max": tk.max,
    "min": tk.min,
    "any": tk.any,
    "all": tk.all,
    "an int": lambda x: x[LAST],
    "a negative int": lambda x: x[-4],
    "a slice": lambda x: x[LAST - 1 : LAST + 2],
    "an index": lambda x: x[tk.tensor([LAST, 5], "int64")],
    "negative indices": lambda x: x[tk.tensor([-4, 5])],
    "take": lambda x: tk.take(x, tk.tensor([-4, 5])),
    "a mask": lambda x: x[x > 0],
    "set": lambda x: x.at[LAST].set(7)[LAST - 1 : LAST + 2],
    "add at an index": lambda x: x.at[tk.tensor([LAST, LAST], "int64")].add(1)[LAST - 1 : LAST + 2],
    "searchsorted": lambda x: tk.searchsorted(x[6:LAST], tk.tensor([1], "int8")),
    "bincount": lambda x: tk.bincount(x[6:], length=4),
    "roll": lambda x: tk.roll(x, 5)[:4],
    "delete": lambda x: tk.delete(x, 5)[LAST - 2 : LAST],
    "insert": lambda x: tk.insert(x, 0, 1)[LAST : LAST + 2],
    "flip": lambda x: tk.flip(x)[:5],
    "concatenate": lambda x: tk.concatenate([x, x[:3]])[LAST - 1 : LAST + 1],
    "add": lambda x: (x + 1)[LAST : LAST + 2],
    "where": lambda x: tk.where(x > 0, x, 9)[LAST : LAST + 2],
    "a sum of rows": lambda x: x[: N // 8 * 8].reshape((-1, 8)).sum(0, dtype="int64"),
    "a sum of columns": lambda x: x[: N // 8 * 8].reshape((8, -1)).sum(1, dtype="int64"),
    "unravel_index": lambda x: tk.unravel_index(tk.argmax(x), (N // 7, 7)),
}
"""By a description a function of zeros but for -2 at 5 and 3 at LAST."""

EXPECTED: dict[str, Any] = {
    "argmax": LAST,
    "argmin": 5,
    "argmax of an axis": [LAST],
    "nonzero": [[5, LAST]],
    "flatnonzero": [5, LAST],
    "argwhere": [[5], [LAST]],
    "count_nonzero": 2,
    "count of zeros": N - 2,
    "sum": 1,
    "mean": pytest.approx(1 / N, rel=1e-6),
    "prod": 0,
    "max": 3,
    "min": -2,
    "any": True,
    "all": False,
    "an int": 3,
    "a negative int": 3,
    "a slice": [0, 3, 0],
    "an index": [3, -2],
    "negative indices": [3, -2],
    "take": [3, -2],
    "a mask": [3],
    "set": [0, 7, 0],
    "add at an index": [0, 5, 0],
    "searchsorted": [LAST - 6],
    "bincount": [N - 7, 0, 0, 1],
    "roll": [0, 3, 0, 0],
    "delete": [0, 3],
    "insert": [0, 3],
    "flip": [0, 0, 0, 3, 0],
    "concatenate": [0, 3],
    "add": [4, 1],
    "where": [3, 9],
    "a sum of rows": [0, 0, 0, 0, 0, -2, 0, 0],
    "a sum of columns": [-2, 0, 0, 0, 0, 0, 0, 0],
    "unravel_index": [LAST // 7, LAST % 7],
}

OF_VALUES = {"nonzero", "flatnonzero", "argwhere", "a mask"}
"""Functions whose shape depends on the values, which are not compiled."""

PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (16 * 10**9, 16 * 10**9))
from plugins.tensorken.tests.test_large import check
check(sys.argv[1])
"""


def operand() -> tk.Tensor:
    values = np.zeros(N, "int8")
    values[5], values[LAST] = -2, 3
    return tk.from_dlpack(values, copy=False)


def plain(y: Any) -> Any:
    return [plain(part) for part in y] if isinstance(y, tuple) else y.tolist()


def check(name: str) -> None:
    """Assert the result, eager and compiled."""
    f, x = SMALL[name], operand()
    assert plain(f(x)) == EXPECTED[name], plain(f(x))
    gc.collect()
    if name not in OF_VALUES:
        assert plain(tk.jit(f)(x)) == EXPECTED[name], plain(tk.jit(f)(x))


@pytest.mark.nightly
@pytest.mark.large
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of a process's memory")
@pytest.mark.parametrize("name", SMALL)
def test_more_elements_than_int32_has_numbers(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_each_function_has_a_result() -> None:
    assert SMALL.keys() == EXPECTED.keys()
