"""Derivatives of orders 1 and 2, compared with JAX's in float64 and with differences of the exact function.

An element is right if one of the two agrees. Where JAX has NaN at an infinite operand, its derivative at large numbers
is the limit. Elements at which no oracle has a derivative are not compared.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np

import tensorken as tk
from oracles.sweep.functions import Function
from oracles.sweep.judge import RIGHT, Verdict, of_error
from oracles.sweep.modes import closed, is_operand, leaves
from oracles.sweep.operands import COMPLEX, FLOATS, limits
from oracles.sweep.row import Case, Row

jax.config.update("jax_enable_x64", True)

Array = Any
ORDERS = {"grad": 1, "grad of grad": 2}
TOLERANCE = {
    "float16": 4e-2,
    "bfloat16": 2e-1,
    "float32": 2e-5,
    "complex64": 1e-4,
    "float64": 1e-9,
    "complex128": 1e-8,
}
"""The bounds of relative errors: a few hundred units in the last place of half precision and more of the others."""

PLACES = {
    "tk": (jnp, jax.nn, jax.scipy.special),
    "tk.linalg": (jnp.linalg, jax.scipy.linalg),
    "tk.fft": (jnp.fft,),
    "tk.special": (jax.scipy.special,),
    "nn": (jax.nn,),
}


def in_jax(function: Function) -> Callable[..., Any] | None:
    """The function of JAX with one of these names; None if it has none."""
    for full in function.names:
        prefix, _, name = full.rpartition(".")
        for place in PLACES.get(prefix, ()):
            found = getattr(place, name, None)
            if callable(found):
                return functools.partial(found, approximate=False) if name == "gelu" else found
    return None


def weighted(as_weights: Callable[[Array, Any], Any], f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of all floating-point results, each element times a weight."""

    def loss(*xs: Any) -> Any:
        total = 0.0
        for y in leaves(f(*xs)):
            name = str(getattr(y, "dtype", "")).rpartition(".")[2]
            w = (
                np.cos(np.arange(int(np.prod(np.shape(y))))).reshape(np.shape(y))
                if hasattr(y, "shape")
                else 0
            )
            if "complex" in name:
                total = (
                    total
                    + (y.real * as_weights(w, y.real)).sum()
                    + (y.imag * as_weights(np.sin(1 + w), y.real)).sum()
                )
            elif "float" in name:
                total = total + (y * as_weights(w, y)).sum()
        return total

    return loss


ours = functools.partial(weighted, lambda w, y: tk.tensor(w, dtype=y.dtype))
theirs = functools.partial(weighted, lambda w, y: jnp.asarray(w))


def gradients(
    library: Any, loss_of: Callable[..., Any], f: Callable[..., Any], at: Sequence[int], order: int
) -> Any:
    """The gradient of the weighted sum; of order 2, that of the weighted sum of the gradient."""
    first = library.grad(loss_of(f), tuple(at))
    return first if order == 1 else library.grad(loss_of(lambda *xs: tuple(first(*xs))), tuple(at))


def differentiable(case: Case) -> list[int]:
    """The places of the floating-point operands among all."""
    tensors = [x for x in case.operands if is_operand(x)]
    return [k for k, x in enumerate(tensors) if np.asarray(x).dtype.name in (*FLOATS, *COMPLEX)]


def tried(
    function: Function,
    row: Row,
    case: Case,
    dtype: str,
    order: int,
    call: Callable[..., Any],
    exact: Sequence[Array],
) -> Verdict | None:
    """Judge the derivatives of a call, whose results should be `exact`; None if it has no floating-point operands."""
    at = differentiable(case)
    if not at:
        return None
    f, xs = closed(call, case.operands)
    try:
        got = [np.asarray(g) for g in gradients(tk, ours, f, at, order)(*xs)]
    except Exception as error:  # noqa: BLE001, judged
        return of_error(error, function.spellings | {"grad"})
    expected = expected_derivatives(function, row, case, at, order)
    if expected is None:
        return Verdict("alone")
    unknown = without_derivative(function, case, dtype, exact)
    local = np.ndim(unknown) > 0
    for k, g, e in zip(at, got, expected, strict=True):
        x = np.asarray([x for x in case.operands if is_operand(x)][k])
        if g.shape == e.shape:
            e = np.where(unknown, np.nan, e) if not local or np.shape(unknown) == e.shape else e
            # at an infinite operand only NaN instead of a number is a fault: JAX's numbers there are often wrong
            at_infinity = _at_infinity(case, e.shape)
            e = np.where(at_infinity & ~np.isnan(g), np.nan, e)
        verdict = compared(g, e, x, case, dtype, local)
        if verdict.kind == "wrong":
            verdict = differences(row, case, k, g, e, x, dtype, verdict, local) if order == 1 else verdict
        if verdict.kind == "wrong":
            return verdict
    return RIGHT


def expected_derivatives(
    function: Function, row: Row, case: Case, at: list[int], order: int
) -> list[Array] | None:
    """JAX's derivatives in float64; None if it has not the function or cannot be called like ours."""
    f = in_jax(function)
    if f is None:
        return None

    def call(*xs: Any) -> Any:
        return f(*xs, **case.params) if row.call is None else row.call(f, *xs, **case.params)

    def wide(x: Array) -> Any:
        x = np.asarray(x)
        return jnp.asarray(
            x.astype("complex128" if x.dtype.kind == "c" else "float64") if x.dtype.kind not in "biu" else x
        )

    places = [k for k, x in enumerate(case.operands) if is_operand(x)]

    def of_tensors(*xs: Any) -> Any:
        given = list(case.operands)
        for k, x in zip(places, xs, strict=True):
            given[k] = x
        return call(*given)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            derive = gradients(jax, theirs, of_tensors, at, order)
            xs = [wide(case.operands[k]) for k in places]
            found = [np.asarray(g) for g in derive(*xs)]
            if len(places) == 1 and all(
                np.asarray(g).shape == np.shape(x) for g, x in zip(found, xs, strict=True)
            ):
                found = [_with_limits(derive, found[0], np.asarray(xs[0]))]
        except Exception:  # noqa: BLE001, JAX's function takes other arguments
            return None
    return found


KINKS: dict[str, Callable[..., Array]] = {
    "hypot": lambda a, b: (a == 0) & (b == 0),
    "fmax": lambda a, b: a == b,
    "fmin": lambda a, b: a == b,
    "copysign": lambda a, b: (a == 0) | (b == 0),
    "sort": lambda x: x == 0,
    "ldexp": lambda x, n: x == 0,
    "heaviside": lambda a, b: a == 0,
    "cond": lambda x: np.ones((), bool),  # of equal singular values
}
"""Where derivatives differ from JAX's by decision, as docs/numerics.md says, or where both are arbitrary."""


def without_derivative(function: Function, case: Case, dtype: str, exact: Sequence[Array]) -> Array:
    """The elements at which nothing is known of a derivative: NaN, subnormal numbers, poles, kinks.

    JAX flushes subnormal numbers to zero.  The result has the shape of the operands of an elementwise function, else
    no axes.
    """
    xs = [np.asarray(x) for x in case.operands if is_operand(x)]
    shape = xs[0].shape
    name = next((n.rpartition(".")[2] for n in function.names if n.rpartition(".")[2] in KINKS), None)
    found = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        smallest = 1e-300 if dtype in ("float64", "complex128") else 1.2e-38 if dtype != "float16" else 6.2e-5
        for x in xs:
            if x.dtype.name in FLOATS:
                size = np.abs(x.astype("float64"))
                found.append(np.isnan(size) | ((size > 0) & (size < smallest)))
        for y in map(np.asarray, exact):
            if y.dtype.kind in "fc":
                largest = float(limits(dtype).max) if dtype in (*FLOATS, *COMPLEX) else 1e38
                found.append(~np.isfinite(y) | (np.abs(y) > largest))
        if name:
            found.append(KINKS[name](*[x.astype("float64") if x.dtype.name in FLOATS else x for x in xs]))
    if all(f.shape == shape for f in found if f.ndim) and shape and all(f.shape == shape for f in found):
        return np.any(found, axis=0)
    return np.array(any(f.any() for f in found))


def _at_infinity(case: Case, shape: tuple[int, ...]) -> Array:
    found = np.zeros(shape, bool)
    for x in case.operands:
        if is_operand(x) and np.shape(x) == shape and np.asarray(x).dtype.name in (*FLOATS, *COMPLEX):
            found |= np.isinf(np.asarray(x).astype("complex128"))
    return found


def _with_limits(derive: Callable[..., Any], g: Array, x: Array) -> Array:
    """Derivatives at infinite operands where JAX has NaN: those at large numbers, if they agree."""
    if x.dtype.kind != "f" or not (np.isinf(x) & np.isnan(g)).any():
        return g
    near, far = (
        np.asarray(derive(jnp.asarray(np.where(np.isinf(x), np.sign(x) * v, x)))[0]) for v in (1e60, 1e120)
    )
    with np.errstate(all="ignore"):
        known = np.isinf(x) & np.isnan(g) & (np.abs(near - far) < 1e-9)
    return np.where(known, far, g)


def _close(g: Array, e: Array, local: bool) -> Array:
    """Whether derivatives agree, relative to themselves for elementwise functions, else to the largest."""
    wide = "complex128" if g.dtype.kind == "c" or np.iscomplexobj(e) else "float64"
    name = g.dtype.name
    limit = {
        "float16": (65504.0, 6e-8),
        "bfloat16": (3.3e38, 1e-38),
        "float32": (3.4e38, 1e-37),
        "complex64": (3.4e38, 1e-37),
    }
    largest, smallest = limit.get(name, (1.7e308, 1e-300))
    a, b = np.asarray(g, wide), np.asarray(e, wide)
    with np.errstate(all="ignore"):
        size = np.abs(b) if local else np.max(np.abs(b)[np.isfinite(b)], initial=0.0)
        close = np.abs(a - b) <= TOLERANCE[name] * size + smallest * 100
        beyond = (np.abs(b) > largest * 0.99) & (~np.isfinite(a) | (np.abs(a) > largest * 0.9))
        unknown = ~np.isfinite(b) & ~np.isinf(b)
        infinite = np.isinf(b) & (np.isinf(a) | (np.abs(a) > largest * 0.9))
    return close | beyond | unknown | infinite


def compared(g: Array, e: Array, x: Array, case: Case, dtype: str, local: bool) -> Verdict:
    """Compare derivatives with expected ones, where these are known."""
    if g.shape != e.shape:
        return Verdict("wrong", f"derivative of shape {g.shape}, not {e.shape}")
    bad = np.array(~_close(g, e, local))
    if not bad.any():
        return RIGHT
    k = tuple(np.argwhere(bad)[0]) if bad.ndim else ()
    others = [y for y in case.operands if is_operand(y)]
    at = ", ".join(str(y[k]) if np.shape(y) == g.shape else str(np.asarray(y).tolist())[:60] for y in others)
    return Verdict("wrong", f"{int(bad.sum())} of {bad.size}: derivative at ({at}) is {g[k]}, not {e[k]}")


def differences(
    row: Row, case: Case, k: int, g: Array, e: Array, x: Array, dtype: str, verdict: Verdict, local: bool
) -> Verdict:
    """Right, if central differences of the exact function agree where JAX does not."""
    if row.oracle is None or x.dtype.kind == "c":
        return verdict
    places = [i for i, y in enumerate(case.operands) if is_operand(y)]
    bad = np.array(~_close(g, e, local))

    def loss(y: Array) -> float:
        given = [
            v.astype("longdouble") if is_operand(v) and np.asarray(v).dtype.name in FLOATS else v
            for v in case.operands
        ]
        given[places[k]] = y
        total = 0.0
        for z in leaves(row.oracle(*given, **case.params)):
            z = np.asarray(z)
            if z.dtype.kind == "f":
                w = np.cos(np.arange(z.size)).reshape(z.shape)
                total = total + np.where(np.isfinite(z), z * w, 0).sum(dtype="longdouble")
        return total

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = x.astype("longdouble")
        for i in map(tuple, np.argwhere(bad)[:40]):
            if not np.isfinite(x[i]) or np.isnan(g[i]):
                continue
            step = max(abs(float(x[i])), 1e-3) * 1e-5
            up, down = x.copy(), x.copy()
            up[i] += step
            down[i] -= step
            slope = (loss(up) - loss(down)) / (up[i] - down[i])
            bad[i] = not abs(float(g[i]) - slope) <= max(1e-4, TOLERANCE[g.dtype.name]) * max(
                abs(slope), 1e-3
            )
    return verdict if bad.any() else RIGHT
