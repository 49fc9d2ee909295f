"""Activation functions: their definitions in numpy, at random points, at kinks and where naive formulas overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from core.tests.drawing import Array
from plugins.tensorken.tests.namespace.laws import Call, Law, call, law

RNG = np.random.default_rng(11)
POINTS = RNG.normal(size=(3, 4)) * 3.0
FAR = np.array([-1e4, -800.0, -90.0, -6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0, 90.0, 800.0, 1e4])
WHOLE = np.array([-4, -3, 0, 2, 7], "int32")


def calls(*further: dict[str, Any]) -> tuple[Call, ...]:
    """Calls in both dtypes, of integers, and with further arguments; derivatives only at random points."""
    narrow = [call(x.astype("float32")) for x in (POINTS, FAR)]
    return call(POINTS), call(WHOLE), *narrow, *[call(POINTS, **keywords) for keywords in further]


def sigmoid(x: Array) -> Array:
    return special.expit(x)  # type: ignore[no-any-return]


def exponential(x: Array, alpha: float, rate: float) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) * rate))


def gelu(x: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        x = np.asarray(x, "float64")
        return x * 0.5 * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))
    return x * special.ndtr(x)  # type: ignore[no-any-return]


def glu(x: Array, axis: int = -1) -> Array:
    first, second = np.split(x, 2, axis)
    return first * sigmoid(second)


def clipped(x: Array, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    return np.clip(x, min_val, max_val)


def squareplus(x: Array, b: float = 4.0) -> Array:
    x = np.asarray(x, np.longdouble)
    return ((x + np.sqrt(x * x + b)) / 2).astype("float64")


def hard_swish(x: Array) -> Array:
    return x * np.clip(x + 3.0, 0, 6) / 6.0


LAWS: dict[str, Law] = {
    "celu": law(
        *calls({"alpha": 2.5}), numpy=lambda x, alpha=1.0: exponential(x, alpha, 1 / alpha), smooth=True
    ),
    "elu": law(*calls({"alpha": 0.5}), numpy=lambda x, alpha=1.0: exponential(x, alpha, 1.0), smooth=True),
    "gelu": law(*calls({"approximate": "tanh"}), numpy=gelu, smooth=True),
    "glu": law(call(POINTS), call(POINTS[:2], axis=0), numpy=glu, smooth=True),
    "hard_sigmoid": law(*calls(), numpy=lambda x: np.clip(x + 3.0, 0, 6) / 6.0, smooth=True),
    "hard_silu": law(*calls(), numpy=hard_swish, smooth=True),
    "hard_swish": law(*calls(), numpy=hard_swish, smooth=True),
    "hard_tanh": law(*calls({"min_val": -2.0, "max_val": 0.5}), numpy=clipped, smooth=True),
    "leaky_relu": law(
        *calls({"negative_slope": 0.3}),
        numpy=lambda x, negative_slope=0.01: np.where(x > 0, x, x * negative_slope),
        smooth=True,
    ),
    "log_sigmoid": law(*calls(), numpy=special.log_expit, smooth=True),
    "mish": law(*calls(), numpy=lambda x: x * np.tanh(np.logaddexp(x, 0)), smooth=True),
    "relu6": law(*calls(), numpy=lambda x: np.clip(x, 0.0, 6.0), smooth=True),
    "selu": law(
        *calls(),
        numpy=lambda x: exponential(x, 1.6732632423543772, 1.0) * 1.0507009873554805,
        smooth=True,
    ),
    "silu": law(*calls(), numpy=lambda x: x * sigmoid(x), smooth=True),
    "soft_sign": law(*calls(), numpy=lambda x: x / (1.0 + np.abs(x)), smooth=True),
    "squareplus": law(*calls({"b": 0.1}), numpy=squareplus, smooth=True),
    "swish": law(*calls(), numpy=lambda x: x * sigmoid(x), smooth=True),
}
