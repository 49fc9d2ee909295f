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
from tensorken_core.errors import TensorkenError

jax.config.update("jax_enable_x64", True)

Array = Any
Terms = Callable[[Array], tuple[Array, float]]
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
    unknown = without_derivative(function, row, case, dtype, exact, order)
    local = np.ndim(unknown) > 0
    operands = [np.asarray(x) for x in case.operands if is_operand(x)]
    is_drawn = function.names[0].startswith("tk.random.")  # whose bits differ in float64
    if expected is None and (is_drawn or exact_terms(row, case, at[0], exact) is None):
        return Verdict("alone")
    for k, g, e in zip(at, got, expected or [None] * len(at), strict=True):
        x = operands[k]
        e = _without_jax(x, unknown, local) if e is None else e
        if g.shape == e.shape:
            e = _where_known(g, e, case, unknown, local)
        verdict = compared(g, e, case, local, 1.0 if row.scale == "one" else 0.0)
        if verdict.kind == "wrong":
            terms_at = exact_terms(row, case, k, exact) if order == 1 else terms_of_gradient(f, xs, at, k)
            cancelling = order > 1  # the second derivatives by two operands
            if terms_at is not None:
                verdict = differences(terms_at, g, e, x, verdict, local, cancelling, expected is None)
        if verdict.kind == "wrong":
            return verdict
    return RIGHT


def _without_jax(x: Array, unknown: Array, local: bool) -> Array:
    """In place of JAX's derivatives: NaN where there is none, else infinity, which only differences may refute."""
    nowhere = unknown if local else unknown.any()
    return np.where(nowhere | ~np.isfinite(x.astype("complex128")), np.nan, np.inf)


def _where_known(g: Array, e: Array, case: Case, unknown: Array, local: bool) -> Array:
    """The expected derivatives, NaN where they are unknown.

    At an infinite operand only NaN in place of a number is a fault, since JAX's numbers there are often wrong; and
    infinite complex numbers are products of infinities and zeros, which are NaN in numpy.
    """
    e = np.where(unknown, np.nan, e) if not local or np.shape(unknown) == e.shape else e
    at_infinity = _at_infinity(case, e.shape)
    undefined = np.isinf(e) & (g.dtype.kind == "c") & at_infinity.any()
    return np.where((at_infinity & ~np.isnan(g)) | undefined, np.nan, e)


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
    "sort": lambda x: np.array(len(np.unique(x)) != x.size),
    "ldexp": lambda x, n: (x == 0) | (np.abs(x) > 1e308),  # JAX's is 0 at the largest number
    "leaky_relu": lambda x: x == 0,
    "hard_tanh": lambda x: np.abs(x) == 1,
    "xlogy": lambda a, b: a == 0,
    "rel_entr": lambda a, b: (a == 0) | (a > 1e38),  # differences of neighbours of the largest overflow
    "kl_div": lambda a, b: (a == 0) | (a > 1e38),
    "entr": lambda x: x == 0,
    "sinc": lambda x: np.abs(x) > 1e15,  # JAX and differences know no angle of it
    "interp": lambda x, xp, fp: np.array(np.isin(x, xp).any()),
    "power": lambda a, b: np.abs(b) > 2048,  # b - 1 may be rounded, to a number of other parity
    "float_power": lambda a, b: np.abs(b) > 2048,
    "polydiv": lambda a, b: np.array(np.iscomplexobj(a)),  # JAX's gradient is that of a conjugate
    "heaviside": lambda a, b: a == 0,
    "eigh": lambda x: np.array(
        np.abs(x).max(initial=0.0) > 1e20
    ),  # JAX's overflow, and differences are not symmetric
    **dict.fromkeys(
        ("median", "nanmedian"),
        lambda x: np.array(np.iscomplexobj(x) and len(np.unique(x.real)) != x.size),  # their order changes
    ),
    "eig": lambda x: np.array(True),  # the compared residual is 0 but for rounding
    "cosine_similarity": lambda a, b: np.array(not (np.any(a) and np.any(b))),  # of a vector shorter than eps
    "cond": lambda x: np.ones((), bool),  # of equal singular values
}
"""Where derivatives differ from JAX's by decision, as docs/numerics.md says, or where both are arbitrary."""

SECOND_KINKS: dict[str, Callable[..., Array]] = {
    **dict.fromkeys(("elu", "celu", "selu"), lambda x: x == 0),
    **dict.fromkeys(("i0e", "i1e"), lambda x: np.abs(x) < 1e-7),
    **dict.fromkeys(("power", "float_power"), lambda a, b: a == 0),
    **dict.fromkeys(("abs", "fabs"), lambda x: x == 0),
    "global_norm": lambda *xs: np.array(not any(map(np.any, xs))),  # of no length
}
"""The same of second derivatives."""


def without_derivative(
    function: Function, row: Row, case: Case, dtype: str, exact: Sequence[Array], order: int
) -> Array:
    """The elements at which nothing is known of a derivative: NaN, subnormal numbers, poles, kinks.

    JAX flushes subnormal numbers to zero.  The result has the shape of the operands of an elementwise function, else
    no axes.
    """
    xs = [np.asarray(x) for x in case.operands if is_operand(x)]
    shape = xs[0].shape
    names = [n.rpartition(".")[2] for n in function.names]
    kinks = [table[n] for table in (KINKS, SECOND_KINKS)[:order] for n in names if n in table]
    found = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        smallest = 1e-300 if dtype in ("float64", "complex128") else 1.2e-38 if dtype != "float16" else 6.2e-5
        for x in xs:
            if x.dtype.name in (*FLOATS, *COMPLEX):
                wide = x.astype("complex128")
                sizes = np.abs([wide.real, wide.imag])
                found.append(np.any(np.isnan(sizes) | ((sizes > 0) & (sizes < smallest)), axis=0))
        for y in map(np.asarray, exact):
            if y.dtype.kind in "fc":
                largest = float(limits(dtype).max) if dtype in (*FLOATS, *COMPLEX) else 1e38
                found.append(~np.isfinite(y) | (np.abs(y) > largest))
        if row.skip is not None and exact:
            found.append(np.broadcast_to(row.skip(exact, *case.operands), np.shape(exact[0])))
        for kink in kinks:
            found.append(kink(*[x.astype("float64") if x.dtype.name in FLOATS else x for x in xs]))
    elementwise = not function.names[0].startswith(("tk.linalg.", "tk.fft."))
    if elementwise and shape and all(f.shape == shape for f in found):
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


def _close(g: Array, e: Array, local: bool, least: float = 0.0) -> Array:
    """Whether derivatives agree, relative to themselves for elementwise functions, else to the largest; or to `least`.

    A derivative may overflow before it is multiplied by the weight of its element.
    """
    wide = "complex128" if g.dtype.kind == "c" or np.iscomplexobj(e) else "float64"
    name = g.dtype.name
    limit = {
        "float16": (65504.0, 1e-7),
        "bfloat16": (3.3e38, 1e-38),
        "float32": (3.4e38, 1e-37),
        "complex64": (3.4e38, 1e-37),
    }
    largest, smallest = limit.get(name, (1.7e308, 1e-300))
    a, b = np.asarray(g, wide), np.asarray(e, wide)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(b), least) if local else np.max(np.abs(b)[np.isfinite(b)], initial=0.0)
        close = np.abs(a - b) <= TOLERANCE[name] * size + smallest * 100
        weights = np.cos(np.arange(b.size)).reshape(b.shape) if local else 1.0
        beyond = (np.abs(b / weights) > largest * 0.99) & (~np.isfinite(a) | (np.abs(a) > largest * 0.9))
        unknown = ~np.isfinite(b) & ~np.isinf(b)
        infinite = np.isinf(b) & (np.isinf(a) | (np.abs(a) > largest * 0.9))
    return close | beyond | unknown | infinite


def compared(g: Array, e: Array, case: Case, local: bool, least: float) -> Verdict:
    """Compare derivatives with expected ones, where these are known."""
    if g.shape != e.shape:
        return Verdict("wrong", f"derivative of shape {g.shape}, not {e.shape}")
    bad = np.array(~_close(g, e, local, least))
    if not bad.any():
        return RIGHT
    k = tuple(np.argwhere(bad)[0]) if bad.ndim else ()
    others = [y for y in case.operands if is_operand(y)]
    at = ", ".join(str(y[k]) if np.shape(y) == g.shape else str(np.asarray(y).tolist())[:60] for y in others)
    return Verdict("wrong", f"{int(bad.sum())} of {bad.size}: derivative at ({at}) is {g[k]}, not {e[k]}")


def terms(results: Any) -> tuple[Array, float]:
    """The terms of the sum of `weighted`, in one vector, and the relative error of their dtype."""
    found, rounding = [np.zeros(0, "longdouble")], 0.0
    for y in map(np.asarray, leaves(results)):
        rounding = max(rounding, float(np.finfo(y.dtype).eps) if y.dtype.kind in "fc" else 0.0)
        w = np.cos(np.arange(y.size)).reshape(y.shape)
        if y.dtype.kind == "c":
            found += [(y.real * w).ravel(), (y.imag * np.sin(1 + w)).ravel()]
        elif y.dtype.kind == "f":
            found.append((y * w).ravel())
    return np.concatenate(found), rounding


def exact_terms(row: Row, case: Case, k: int, exact: Sequence[Array]) -> Terms | None:
    """The terms of the oracle's results in the longest dtypes, by operand k; None if the oracle refuses."""
    if not exact or row.oracle is None:
        return None
    given = [longest(v) if is_operand(v) else v for v in case.operands]
    place = [i for i, y in enumerate(case.operands) if is_operand(y)][k]

    def of_operand(x: Array) -> tuple[Array, float]:
        given[place] = x
        return terms(row.oracle(*given, **case.params))

    return of_operand


def terms_of_gradient(f: Callable[..., Any], xs: Sequence[Any], at: Sequence[int], k: int) -> Terms:
    """The terms of the first gradient in float64, which is judged itself, by operand k."""
    first = gradients(tk, ours, f, at, 1)
    given = [_in_double(x) for x in xs]

    def of_operand(x: Array) -> tuple[Array, float]:
        given[k] = _in_double(x)
        return terms(first(*given))

    return of_operand


def differences(
    terms_at: Terms,
    g: Array,
    e: Array,
    x: Array,
    verdict: Verdict,
    local: bool,
    cancelling: bool,
    one_sided: bool,
) -> Verdict:
    """Right, if differences of a function agree, up to their own error, where JAX does not.

    Where terms may cancel, errors are also compared with the terms divided by the operand.  Differences to one side may
    agree in place of central ones, as at a kink, where nothing else knows the derivative.
    """
    bad = np.array(~_close(g, e, local))

    def slope(i: tuple[int, ...], direction: complex, size: float, side: float) -> tuple[Any, float]:
        """A difference along a direction, central or to a side, from a part that is 0 that of its sign; its error."""
        part = x[i].real if direction == 1 else x[i].imag
        step = max(abs(float(part)), 1e-3 * min(scale, 1.0)) * size

        def at(steps: float) -> tuple[Array, float]:
            moved = x.copy()
            parts = moved.real if direction == 1 else moved.imag
            if steps:  # else a sum would lose the sign of a zero, and so would one of complex numbers
                parts[i] += steps * step
            return terms_at(moved)

        here, rounding = at(0)
        if part == 0 and x.dtype.kind == "c":
            side = np.copysign(1.0, part)
        if side:
            found = side * (4 * (at(side)[0] - here) - (at(2 * side)[0] - here)) / 2
        else:
            found = (8 * (at(1)[0] - at(-1)[0]) - (at(2)[0] - at(-2)[0])) / 12
        found = np.where(np.isfinite(found), found, 0)
        sizes = (
            np.abs(here).reshape(-1, x.size)[:, np.ravel_multi_index(i, x.shape)] if local else np.abs(here)
        )
        largest = float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))
        error = 1e-14 + 30 * rounding * largest / step
        if cancelling:
            error += 2 * TOLERANCE[g.dtype.name] * largest / max(abs(float(part)), scale)
        return found.sum() / step, error

    def agrees(i: tuple[int, ...], size: float, side: float) -> bool:
        try:
            found, error = slope(i, 1, size, side)
        except TensorkenError:  # a neighbour is no argument of the function
            return True
        if x.dtype.kind == "c":
            along_imag, other = slope(i, 1j, size, side)
            found, error = found - 1j * along_imag, error + other
        close = abs(g[i] - found) <= max(1e-4, TOLERANCE[g.dtype.name]) * abs(found) + error
        return bool(close or _close(g, np.full_like(e, found), local)[i])

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = longest(x)
        scale = 1.0 if local else float(np.max(np.abs(x)[np.isfinite(x)], initial=0.0)) or 1.0
        for i in map(tuple, np.argwhere(bad)[:400]):
            if np.isfinite(x[i]) and not np.isnan(g[i]):
                bad[i] = not any(
                    agrees(i, size, side)
                    for side in ((0.0, 1.0, -1.0) if one_sided else (0.0,))
                    for size in (1e-5, 1e-3)
                )
    return verdict if bad.any() else RIGHT


def _in_double(x: Any) -> Any:
    """A tensor of the same numbers in float64 or complex128; integers and bools as they are."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return tk.tensor(x.astype("complex128"))
    return tk.tensor(x.astype("float64") if x.dtype.kind == "f" or x.dtype.name in FLOATS else x)


def longest(x: Array) -> Array:
    """Numbers in the longest dtype of their kind; integers and bools as they are."""
    x = np.asarray(x)
    longer = {**dict.fromkeys(FLOATS, "longdouble"), **dict.fromkeys(COMPLEX, "clongdouble")}
    return x.astype(longer.get(x.dtype.name, x.dtype))
