"""Checks of users' functions: whether their derivatives are correct."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core import tree
from tensorken_core.errors import ArgumentError
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.transforms.conjugates import conjugated_tree
from tensorken_core.transforms.grad import jvp, vjp

__all__ = [
    "check_grads",
]

MODES = ("fwd", "rev")


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = MODES,
    *,
    eps: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
) -> None:
    """Compare the derivatives of f at args with central finite differences along random directions.

    Args:
        f: a function of pytrees of floating-point or complex tensors, smooth near args.
        args: the arguments.
        order: the highest order of derivatives; all combinations of the modes are checked.
        modes: `"fwd"`, `"rev"` or both.
        eps: the step; by default the cube root of the dtype's rounding error.
        rtol, atol: the tolerances; by default 1e-5 and 1e-6 for float64, 3e-2 and 1e-2 for other dtypes.
        seed: the seed of the random directions.

    Raises:
        AssertionError: if a derivative differs; the message names the mode, the order and both numbers.
        ArgumentError: if a mode is unknown, or order is below 1.

    >>> import tensorken as tk
    >>> check_grads(lambda x: tk.tanh(x) * x, (tk.tensor([0.3, -1.2], "float64"),))
    """
    if order < 1 or not modes or any(mode not in MODES for mode in modes):
        raise ArgumentError(
            f"check_grads: need order >= 1 and modes from {MODES}, got order={order}, modes={tuple(modes)}"
        )
    primals = tuple([tree.map(as_tensor, a) for a in args])
    leaves = tree.leaves(primals)
    low_precision = any(x.dtype.name != "float64" for x in leaves)
    step = eps if eps is not None else 5e-3 if low_precision else 6e-6
    tolerance = (
        rtol if rtol is not None else 3e-2 if low_precision else 1e-5,
        atol if atol is not None else 1e-2 if low_precision else 1e-6,
    )
    _check(f, primals, order, modes, step, tolerance, random.Random(seed), "")


def _check(
    f: Callable[..., Any],
    primals: tuple[Any, ...],
    order: int,
    modes: Sequence[str],
    step: float,
    tolerance: tuple[float, float],
    rng: random.Random,
    prefix: str,
) -> None:
    direction = tree.map(lambda x: _random_like(x, rng), primals)
    difference = tree.map(
        lambda high, low: (high - low) / (2.0 * step),
        f(*_shifted(primals, direction, step)),
        f(*_shifted(primals, direction, -step)),
    )
    cotangent = tree.map(lambda y: _random_like(y, rng), difference)
    expected = _inner(cotangent, difference)
    for mode in modes:
        name = f"{prefix}{mode}"
        if mode == "fwd":
            _, tangent = jvp(f, primals, direction)
            actual = _inner(cotangent, tangent)
        else:
            _, pull_back = vjp(f, *primals)
            actual = _inner(pull_back(cotangent), direction)
        rtol, atol = tolerance
        if not math.isclose(actual, expected, rel_tol=rtol, abs_tol=atol * max(1.0, _norm(difference))):
            raise AssertionError(
                f"check_grads: {name} gives {actual:.10g} along a random direction, "
                f"finite differences give {expected:.10g}"
            )
        if order > 1:
            inner = _jvp_function(f, direction) if mode == "fwd" else _vjp_function(f, cotangent)
            _check(inner, primals, order - 1, modes, step, tolerance, rng, f"{name} of ")


def _jvp_function(f: Callable[..., Any], direction: Any) -> Callable[..., Any]:
    return lambda *primals: jvp(f, primals, direction)[1]


def _vjp_function(f: Callable[..., Any], cotangent: Any) -> Callable[..., Any]:
    return lambda *primals: vjp(f, *primals)[1](cotangent)


def _shifted(primals: Any, direction: Any, step: float) -> Any:
    return tree.map(lambda x, d: x + d * step, primals, direction)


def _random_like(x: Tensor, rng: random.Random) -> Tensor:
    return x.constant([rng.uniform(-1.0, 1.0) for _ in range(x.size)], x.dtype, x.shape)


def _inner(a: Any, b: Any) -> float:
    """The pairing of a cotangent and a tangent: the real part of the sum of their products."""
    a = conjugated_tree(a)
    return math.fsum(float((x * y).sum().item()) for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True))


def _norm(a: Any) -> float:
    return math.sqrt(_inner(conjugated_tree(a), a))
