"""Chains: random functions of matrices of many sizes, made of what programs often do, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tensorken as tk

Array = np.ndarray[Any, Any]

SIZES = (
    *((1, 1), (1, 7), (3, 4), (5, 5), (16, 16), (1, 1000), (17, 65), (100, 3), (64, 129)),
    *((300, 40), (2, 5000), (70, 1000), (1000, 130)),
)

STEPS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a + b * 0.5,
    lambda a, b: a * b,
    lambda a, b: a - tk.sin(b),
    lambda a, b: tk.where(a < b, a, b * 2.0),
    lambda a, b: tk.tanh(a) / (1.0 + b * b),
    lambda a, b: tk.exp(-abs(a)) * b,
    lambda a, b: a + tk.sum(b, 0, keepdims=True) / b.shape[0],
    lambda a, b: a + tk.sum(b, 1, keepdims=True) / b.shape[1],
    lambda a, b: a * tk.max(b, 1, keepdims=True),
    lambda a, b: a - tk.min(b, 0, keepdims=True),
    lambda a, b: tk.softmax(a, 1) + b,
    lambda a, b: a - tk.mean(a * b),
    lambda a, b: tk.flip(a, 1) + b,
    lambda a, b: tk.roll(a, 1, 0) * b,
    lambda a, b: tk.reshape(tk.reshape(a, (-1,))[::-1], a.shape) + b,
    lambda a, b: tk.concatenate([a[:, : a.shape[1] // 2], b[:, a.shape[1] // 2 :]], 1),
    lambda a, b: tk.concatenate([b[a.shape[0] // 2 :], a[: a.shape[0] // 2]], 0),
    lambda a, b: tk.pad(a[1:, :-1] * 2.0, ((1, 0), (0, 1))) + b,
    lambda a, b: (a @ b.T) @ b / (a.shape[0] * a.shape[1]),
    lambda a, b: a @ (b.T @ a) / (a.shape[0] * a.shape[1]),
    lambda a, b: tk.cumsum(a, 1) / a.shape[1] + b,
    lambda a, b: tk.sort(a, 1) - b,
    lambda a, b: a[tk.arange(a.shape[0])[::-1]] + b,
    lambda a, b: a.at[0].set(b[-1]),
    lambda a, b: a.at[:, -1].add(b[:, 0]),
    lambda a, b: tk.fori_loop(0, 5, lambda i, v: v * 0.5 + tk.sin(v + b), a),
    lambda a, b: tk.cond(tk.sum(b) > 0.0, lambda v: v + 1.0, lambda v: v * 0.5, a),
    lambda a, b: tk.scan(lambda c, row: (c * 0.5 + row, c - row), a[0], b)[1] + a,
    lambda a, b: tk.maximum(a, 0.0) + tk.minimum(b, 0.25),
    lambda a, b: (a > 0.0).astype(a.dtype) * b,
    lambda a, b: tk.round(a * 4.0).astype("int32").astype(a.dtype) * 0.25 + b,
    lambda a, b: tk.sqrt(a * a + b * b + 1.0),
    lambda a, b: tk.log(1.0 + tk.exp(a)) * b,
    lambda a, b: tk.stack([a, b], 0)[1] - tk.stack([a, b], 2)[:, :, 0],
    lambda a, b: a + tk.var(b, 1, keepdims=True),
    lambda a, b: tk.argmax(b, 1).reshape((-1, 1)).astype(a.dtype) * 0.01 + a,
    lambda a, b: tk.einsum("ij,ij->i", a, b).reshape((-1, 1)) / a.shape[1] + a,
    lambda a, b: tk.clip(a, -0.5, 0.5) - b,
    lambda a, b: tk.where(a < 0.0, 2.0, b),
    lambda a, b: tk.where(b > 0.25, a, tk.zeros_like(b)) + 1.0,
    lambda a, b: tk.sum(tk.where(a > b, 1.0, 0.0), 1, keepdims=True) * 0.01 + b,
    lambda a, b: a.T.reshape(a.shape) + b,
    lambda a, b: tk.expand_dims(a, 1)[:, 0] * tk.broadcast_to(b[:1], b.shape),
    lambda a, b: tk.prod(tk.clip(b, 0.5, 1.5), 0, keepdims=True) / (1.0 + abs(a)),
)


def drawn(rng: np.random.Generator, largest: int) -> tuple[str, Callable[..., Any], list[Array], bool]:
    """A description, a function of two matrices, its arguments, and whether it is a derivative."""
    shapes = [shape for shape in SIZES if shape[0] * shape[1] <= largest]
    shape = shapes[rng.integers(len(shapes))]
    numbers = rng.integers(len(STEPS), size=int(rng.integers(1, 7))).tolist()
    picks = [int(n) for n in rng.integers(0, 1 << 30, len(numbers))]
    dtype = ("float32", "float32", "float64", "float16")[rng.integers(4)]
    arguments = [rng.normal(size=shape).astype(dtype) for _ in range(2)]

    def f(a: Any, b: Any) -> Any:
        values = [a, b]
        for number, pick in zip(numbers, picks, strict=True):
            values.append(STEPS[number](values[-1], values[pick % (len(values) - 1)]))
        return values[-1]

    is_derivative = bool(rng.random() < 0.3)
    g = tk.grad(lambda a, b: tk.sum(f(a, b) * 0.5), (0, 1)) if is_derivative else f
    return f"{'gradient of ' * is_derivative}steps {numbers} {shape} {dtype}", g, arguments, is_derivative
