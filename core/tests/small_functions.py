"""Small functions of a matrix, and their results on a backend, as on numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tensorken as tk

X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
"""The operand."""


def _loops(x: Any) -> Any:
    """A scan within a while_loop, and a cond."""

    def step(state: Any) -> Any:
        i, y = state
        carry, ys = tk.scan(lambda c, row: (c * 0.5 + row, (c * row).sum()), y, x, reverse=True)
        return i + 1, tk.cond(ys.sum() > 0.0, lambda c: c + ys.mean(), lambda c: c - 1.0, carry)

    return tk.while_loop(lambda state: state[0] < 3, step, (0, x[0]))[1]


def _decompositions(x: Any) -> Any:
    """Functions of matrices that do not depend on the signs and phases of vectors, of real and complex numbers."""
    y = x + 2.0 * tk.eye(3, 4, dtype=x.dtype)
    square = y @ y.T
    left, values, right = tk.linalg.svd(y, full_matrices=False)
    eigenvalues, vectors = tk.linalg.eigh(square)
    root = (vectors * tk.sqrt(eigenvalues)) @ vectors.T
    found = (left * tk.log(values)) @ right + root @ x + tk.abs(tk.linalg.qr(y)[1])
    z = square + 1j * (square[::-1] + x[:, :3])
    lower = tk.linalg.cholesky(z @ z.mT.conj() + 2.0 * tk.eye(3, dtype=x.dtype))
    complex_values = tk.linalg.svd(z, full_matrices=False)[1] + tk.linalg.slogdet(z)[1]
    products = tk.linalg.solve(z, lower) + tk.linalg.det(z) * tk.linalg.inv(lower)
    return found + (tk.real(products) + tk.imag(products)) @ x + complex_values[:, None]


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: tk.tanh(x) * tk.exp(-x) + tk.where(x > 0.0, tk.log1p(tk.abs(x)), x**3),
    "blocks": lambda x: tk.tanh(tk.tile(x, (60, 200)) * 3.0 - x[:1, :1]) * tk.tile(x * x, (60, 200)) / 2.5,
    "products": lambda x: tk.softmax(x @ x.T, -1) @ x,
    "batches": lambda x: x.reshape((2, 3, 2)).transpose((0, 2, 1)) @ x.reshape((2, 3, 2)) + x[:2, :2],
    "einsum": lambda x: tk.einsum("ij,kj,k->i", x, x, x[:, 0]),
    "indexing": lambda x: x[[2, 0, 2], ::-1].at[1, 1:].add(x[0, 1:]) - tk.sort(x, -1)[:, ::-1],
    "scatter": lambda x: tk.zeros((4, 4), x.dtype).at[[1, 1, 3]].add(x),
    "scans": lambda x: tk.cumsum(x, 0) * tk.cumprod(x, 1),
    "windows": lambda x: tk.convolution(x.reshape((1, 3, 4)), x[:2, :2].reshape((1, 2, 2))[:, [0, 1, 0]]),
    "factors": lambda x: tk.linalg.solve(x @ x.T + 3.0 * tk.eye(3, dtype=x.dtype), x),
    "decompositions": _decompositions,
    "loops": lambda x: tk.fori_loop(0, 4, lambda i, y: tk.sin(y) + x * i, x),
    "inner": _loops,
    "random": lambda x: x * tk.random.normal(tk.random.key(3), x.shape, dtype=x.dtype),
}


def assert_results_of_numpy(name: str, transform: Callable[..., Any]) -> None:
    """On the default backend a function and its derivatives have the results that they have on numpy.

    Args:
        name: of the function.
        transform: of the function, such as `tk.jit`.
    """
    f, has_gradient = FUNCTIONS[name], name != "inner"  # reverse mode needs a known number of steps
    with tk.use_backend("numpy"):
        expected = _results(f, tk.tensor(X), has_gradient)
    for got, y in zip(_results(transform(f), tk.tensor(X), has_gradient), expected, strict=True):
        assert (got.dtype, got.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(got, y, rtol=1e-9, atol=1e-9 * np.abs(y).max(initial=1.0))


def _results(f: Any, x: Any, has_gradient: bool) -> list[Any]:
    """The value, a derivative, the gradient's derivative in a direction, and the values of a batch."""

    def total(x: Any) -> Any:
        return (f(x) * tk.cos(f(x))).sum()

    def derivative(f: Any) -> Any:
        return tk.jvp(f, (x,), (tk.ones_like(x),))[1]

    batch = tk.vmap(f)(tk.stack([x, x * 0.5]))
    found = [f(x), derivative(f), *([derivative(tk.grad(total))] if has_gradient else []), batch]
    return [np.asarray(y) for y in found]
