"""Linear algebra over complex numbers compared with JAX: values, both modes, and forward over reverse mode."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tensorken as tk

jax.config.update("jax_enable_x64", True)

linalg, theirs = tk.linalg, jnp.linalg


def gram(x: Any) -> Any:
    return x @ x.mT.conj()


def jax_eig(x: Any) -> Any:
    return tuple(jax.lax.linalg.eig(x, compute_left_eigenvectors=False, enable_eigvec_derivs=True))


FUNCTIONS = {
    "solve": (linalg.solve, theirs.solve, [(2, 3, 3), (2, 3, 2)]),
    "det": (linalg.det, theirs.det, [(4, 4)]),
    "slogdet": (linalg.slogdet, theirs.slogdet, [(3, 3)]),
    "cholesky": (lambda x: linalg.cholesky(gram(x)), lambda x: theirs.cholesky(gram(x)), [(3, 3)]),
    "qr, tall": (linalg.qr, theirs.qr, [(4, 2)]),
    "qr, square": (linalg.qr, theirs.qr, [(3, 3)]),
    "eigh": (linalg.eigh, theirs.eigh, [(3, 3)]),
    **{
        f"svd {shape}": (
            lambda x: linalg.svd(x, full_matrices=False),
            lambda x: theirs.svd(x, full_matrices=False),
            [shape],
        )
        for shape in ((4, 2), (2, 4), (3, 3))
    },
    "pinv": (linalg.pinv, theirs.pinv, [(4, 2)]),
    "eig": (linalg.eig, jax_eig, [(3, 3)]),
    "eig, real": (lambda x: linalg.eig(x.real), lambda x: jax_eig(x.real), [(5, 5)]),
    "eigvals": (linalg.eigvals, lambda x: jax_eig(x)[0], [(3, 3)]),
}


def drawn(rng: Any, shape: Any, like: Any = None) -> Any:
    """Complex numbers, or real ones if `like` is real."""
    z = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return z if like is None or np.iscomplexobj(like) else z.real


def results(y: Any) -> Any:
    return tuple(y) if isinstance(y, tuple) else (y,)


def agree(ours: Any, expected: Any) -> None:
    """Equal dtypes, and numbers that differ by rounding."""
    for y, w in zip(ours, jax.tree.leaves(expected), strict=True):
        x, z = y.numpy(), np.asarray(w)
        assert (x.shape, x.dtype) == (z.shape, z.dtype)
        np.testing.assert_allclose(x, z, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(z).max()))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives_are_those_of_jax(name: str) -> None:
    ours, of_jax, shapes = FUNCTIONS[name]
    rng = np.random.default_rng(len(name))
    xs = [drawn(rng, s) for s in shapes]
    xs = [
        x + 3.0 * np.eye(*x.shape[-2:]) * np.arange(1, x.shape[-2] + 1)[:, None] if x.ndim > 1 else x
        for x in xs
    ]
    ts = [drawn(rng, s) for s in shapes]
    f, g = lambda *a: results(ours(*a)), lambda *a: results(of_jax(*a))
    x, t = [[tk.tensor(a) for a in group] for group in (xs, ts)]
    values = g(*xs)
    cts = [drawn(rng, y.shape, np.asarray(y)) for y in values]

    agree(f(*x), values)
    agree(tk.jvp(f, tuple(x), tuple(t))[1], jax.jvp(g, tuple(xs), tuple(ts))[1])
    agree(tk.vjp(f, *x)[1](tuple(map(tk.tensor, cts))), jax.vjp(g, *xs)[1](tuple(map(jnp.asarray, cts))))

    def loss(function: Any) -> Any:
        return lambda *a: sum((abs(y * c - 0.3) ** 2).sum() for y, c in zip(function(*a), cts, strict=True))

    places = tuple(range(len(xs)))
    slope, slope_in_jax = tk.grad(loss(f), argnums=places), jax.grad(loss(g), argnums=places)
    agree(tk.jvp(slope, tuple(x), tuple(t))[1], jax.jvp(slope_in_jax, tuple(xs), tuple(ts))[1])
