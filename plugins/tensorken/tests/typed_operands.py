"""The types of the operands of functions, which mypy and pyright check; `test_typed_calls.py` runs the file."""

from __future__ import annotations

import array
from collections import deque
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import tensorken as tk

x = tk.ones((2, 2))
numbers: NDArray[np.float64] = np.eye(2)
rows = [[1.0, 2.0], [3.0, 4.0]]
of_anything: list[Any] = [1, [2]]

# Numbers of Python and numpy, nested sequences, arrays, buffers, and sequences of all of these are operands.
assert_type(tk.sin(x), tk.Tensor)
assert_type(tk.sin(True), tk.Tensor)
assert_type(tk.sin(1), tk.Tensor)
assert_type(tk.sin(1j), tk.Tensor)
assert_type(tk.sin(np.float32(2.0)), tk.Tensor)
assert_type(tk.add(np.int64(2), x), tk.Tensor)
assert_type(tk.sin(rows), tk.Tensor)
assert_type(tk.sin([]), tk.Tensor)
assert_type(tk.sin([1, 2.0, (True)]), tk.Tensor)
assert_type(tk.sin(((1, 2), [3.0, 4])), tk.Tensor)
assert_type(tk.sin(range(3)), tk.Tensor)
assert_type(tk.sin(deque([1, 2])), tk.Tensor)
assert_type(tk.sin([x, x * 2.0]), tk.Tensor)
assert_type(tk.sin([x[0, 0], 1.0, np.float64(2.0)]), tk.Tensor)
assert_type(tk.sin(numbers), tk.Tensor)
assert_type(tk.sin(array.array("d", [1.0])), tk.Tensor)
assert_type(tk.sin(memoryview(b"ab")), tk.Tensor)
assert_type(tk.where(x > 0.0, x, 0.0), tk.Tensor)
assert_type(tk.clip(x, 0.0, numbers), tk.Tensor)
assert_type(tk.maximum(0.0, rows), tk.Tensor)
assert_type(tk.einsum("ij,jk->ik", x, numbers), tk.Tensor)
assert_type(tk.interp(0.5, [0.0, 1.0], numbers[0]), tk.Tensor)
assert_type(tk.quantile(rows, [0.1, 0.9], axis=0), tk.Tensor)

# Functions of several tensors take any iterable of them.
assert_type(tk.concatenate([x, rows, numbers]), tk.Tensor)
assert_type(tk.stack([x, numbers]), tk.Tensor)
assert_type(tk.vstack((1.0, [2.0])), tk.Tensor)
assert_type(tk.hstack(x), tk.Tensor)
assert_type(tk.stack([row * 2.0 for row in x]), tk.Tensor)
assert_type(tk.meshgrid([1, 2], x[0]), tuple[tk.Tensor, ...])

# The modules have the same operands.
assert_type(tk.linalg.solve(rows, [1.0, 2.0]), tk.Tensor)
assert_type(tk.linalg.inv(numbers), tk.Tensor)
assert_type(tk.fft.fft([1.0, 2.0j]), tk.Tensor)
assert_type(tk.special.erfc(rows), tk.Tensor)
assert_type(tk.special.xlogy(0.0, numbers), tk.Tensor)
assert_type(tk.special.zeta(2), tk.Tensor)
assert_type(tk.random.uniform(tk.random.key(0), (2,), minval=[0.0, 1.0], maxval=2.0), tk.Tensor)
assert_type(tk.random.choice(tk.random.key(0), 5, (2,), p=[0.2] * 5), tk.Tensor)


def of_any_operand(operand: tk.ArrayLike) -> tk.Tensor:
    """A function of users with the operands of ours."""
    return tk.asarray(operand) * tk.exp(operand)


of_any_operand(rows)
of_any_operand(2)


def wrong_operands() -> None:
    """Operands of other types: errors to type checkers; never run."""
    tk.sin("text")  # type: ignore[arg-type]
    tk.sin(["text"])  # type: ignore[list-item]
    tk.sin(None)  # type: ignore[arg-type]
    tk.sin({1, 2})  # type: ignore[arg-type]
    tk.sin(object())  # type: ignore[arg-type]
    tk.sin(number for number in rows[0])  # type: ignore[arg-type]
    tk.sin(tk.sin)  # type: ignore[arg-type]
    tk.sin(tk.float32)  # type: ignore[arg-type]
    tk.add(1.0, "text")  # type: ignore[arg-type]
    tk.concatenate(1.0)  # type: ignore[arg-type]
    tk.linalg.solve(rows, None)  # type: ignore[arg-type]
    tk.fft.fft("text")  # type: ignore[arg-type]
    tk.special.erfc(None)  # type: ignore[arg-type]
    tk.special.xlogy(1.0, None)  # type: ignore[arg-type]
    of_any_operand("text")  # type: ignore[arg-type]
