"""Activation functions of networks.

Values and derivatives agree with PyTorch, also at kinks.  Integers and bools become float32.

Raises:
    DTypeError: if the function is not defined for the dtype.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

from tensorken.arrays.functions.arithmetic import minimum
from tensorken.arrays.functions.elementary import erf, expm1, hypot, sigmoid, softplus, tanh
from tensorken.arrays.functions.operands import floating_of
from tensorken.arrays.functions.shaping import moveaxis
from tensorken.derivatives import elementwise
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "mish",
    "relu6",
    "selu",
    "silu",
    "soft_sign",
    "squareplus",
    "swish",
]


P = ParamSpec("P")


def _of_floats(f: Callable[Concatenate[Tensor, P], Tensor]) -> Callable[Concatenate[Any, P], Tensor]:
    """Decorate a function whose first argument becomes a tensor of floats."""

    @functools.wraps(f)
    def call(x: Any, *arguments: P.args, **keywords: P.kwargs) -> Tensor:
        return f(floating_of(as_tensor(x)), *arguments, **keywords)

    return call  # type: ignore[return-value]  # mypy takes x, which has a name, for another parameter


# ---- smooth everywhere -------------------------------------------------------------------------------------


@_of_floats
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x times the probability that a standard normal number is below x.

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units (2016).

    Args:
        x: a tensor.
        approximate: "none" for the error function; "tanh" for the paper's approximation, which GPT-2 uses.

    Raises:
        ArgumentError: if `approximate` is neither.

    >>> import tensorken as tk
    >>> print(f"{tk.gelu(tk.tensor([-1.0, 0.0, 1.0])):.4f}")
    [-0.1587  0.0000  0.8413]
    >>> print(f"{tk.gelu(tk.tensor([-1.0, 0.0, 1.0]), 'tanh'):.4f}")
    [-0.1588  0.0000  0.8412]
    """
    if approximate == "none":
        return x * 0.5 * (erf(x * math.sqrt(0.5)) + 1.0)
    if approximate == "tanh":
        return _gelu_by_tanh(x)
    raise ArgumentError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")


def _by_tanh(x: Tensor) -> Tensor:
    """x * (1 + tanh(y / 2)) / 2 with y = x * (rate + curvature * x**2)."""
    return x * _gate(x)


def _derivative_by_tanh(x: Tensor) -> Tensor:
    """The derivative of `_by_tanh`, with fewer passes over x than by the derivatives of its ops."""
    gate = _gate(x)
    return (1.0 - gate) * gate * x * (_scaled_square(x, 3.0 * _CURVATURE) + _RATE) + gate


def _gate(x: Tensor) -> Tensor:
    """sigmoid(y), which equals (1 + tanh(y / 2)) / 2."""
    return sigmoid((_scaled_square(x, _CURVATURE) + _RATE) * x)


def _scaled_square(x: Tensor, curvature: float) -> Tensor:
    """curvature * x**2, clipped where `_gate` is 0 or 1 already, so that infinity is never multiplied by zero."""
    return minimum(x * curvature * x, 500.0 * curvature)


_RATE = math.sqrt(8.0 / math.pi)
_CURVATURE = 0.044715 * _RATE
_gelu_by_tanh = elementwise(_by_tanh, _derivative_by_tanh)


@_of_floats
def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x).

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units (2016).

    >>> import tensorken as tk
    >>> print(f"{tk.silu(tk.tensor([-1.0, 0.0, 1.0])):.4f}")
    [-0.2689  0.0000  0.7311]
    """
    return x * sigmoid(x)


swish = silu


@_of_floats
def mish(x: Tensor) -> Tensor:
    """x * tanh(softplus(x)).

    Source: Misra, Mish: A Self Regularized Non-Monotonic Activation Function (2019).

    >>> import tensorken as tk
    >>> print(f"{tk.mish(tk.tensor([-1.0, 0.0, 1.0])):.4f}")
    [-0.3034  0.0000  0.8651]
    """
    return x * tanh(softplus(x))


@_of_floats
def log_sigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x)), computed without rounding sigmoid(x) to 0 or 1.

    >>> import tensorken as tk
    >>> print(f"{tk.log_sigmoid(tk.tensor([-1000.0, 0.0, 1000.0])):.4f}")
    [-1000.0000    -0.6931    -0.0000]
    """
    return -softplus(-x)


@_of_floats
def soft_sign(x: Tensor) -> Tensor:
    """`x / (1 + |x|)`.

    >>> import tensorken as tk
    >>> tk.soft_sign(tk.tensor([-3.0, 0.0, 1.0])).tolist()
    [-0.75, 0.0, 0.5]
    """
    return x / (x.abs() + 1.0)


@_of_floats
def glu(x: Tensor, axis: int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second half.

    Source: Dauphin, Fan, Auli, Grangier, Language Modeling with Gated Convolutional Networks (2017).

    Raises:
        ShapeError: if the axis has an odd size.

    >>> import tensorken as tk
    >>> tk.glu(tk.tensor([3.0, 4.0, 0.0, 0.0])).tolist()
    [1.5, 2.0]
    """
    x = moveaxis(x, axis, -1)
    if x.shape[-1] % 2:
        raise ShapeError(
            f"glu: axis {axis} has size {x.shape[-1]}, need an even one; leave out one or add one"
        )
    half = x.shape[-1] // 2
    return moveaxis(x[..., :half] * sigmoid(x[..., half:]), -1, axis)


@_of_floats
def squareplus(x: Tensor, b: float = 4.0) -> Tensor:
    """(x + sqrt(x**2 + b)) / 2: a smooth `relu`.

    Source: Barron, Squareplus: A Softplus-Like Algebraic Rectifier (2021).

    >>> import tensorken as tk
    >>> print(f"{tk.squareplus(tk.tensor([-3.0, 0.0, 3.0])):.4f}")
    [0.3028 1.0000 3.3028]
    """
    root = hypot(x, math.sqrt(b))
    # For negative x, the sum of numbers of opposite signs is written as a quotient.
    below = x < 0.0
    far = (root - below.where(x, 0.0)) * 2.0
    return below.where(b / far, (below.where(0.0, x) + root) * 0.5)


# ---- piecewise ---------------------------------------------------------------------------------------------


@_of_floats
def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x where it is positive, else `negative_slope` times x; the derivative at 0 is `negative_slope`.

    >>> import tensorken as tk
    >>> tk.leaky_relu(tk.tensor([-2.0, 3.0]), 0.25).tolist()
    [-0.5, 3.0]
    """
    return (x > 0.0).where(x, x * negative_slope)


@_of_floats
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (e**x - 1); the derivative at 0 is alpha.

    Source: Clevert, Unterthiner, Hochreiter, Fast and Accurate Deep Network Learning by ELUs (2015).

    >>> import tensorken as tk
    >>> print(f"{tk.elu(tk.tensor([-1.0, 0.0, 1.0])):.4f}")
    [-0.6321  0.0000  1.0000]
    """
    return _with_exponential(x, alpha, 1.0)


@_of_floats
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (e**(x / alpha) - 1); the derivative at 0 is 1.

    Source: Barron, Continuously Differentiable Exponential Linear Units (2017).

    >>> import tensorken as tk
    >>> print(f"{tk.celu(tk.tensor([-2.0, 0.0, 1.0]), 2.0):.4f}")
    [-1.2642  0.0000  1.0000]
    """
    return _with_exponential(x, alpha, 1.0 / alpha)


@_of_floats
def selu(x: Tensor) -> Tensor:
    """`elu`, scaled so that layers keep mean 0 and variance 1.

    Source: Klambauer, Unterthiner, Mayr, Hochreiter, Self-Normalizing Neural Networks (2017), with its two constants.

    >>> import tensorken as tk
    >>> print(f"{tk.selu(tk.tensor([-1.0, 0.0, 1.0])):.4f}")
    [-1.1113  0.0000  1.0507]
    """
    return elu(x, 1.6732632423543772) * 1.0507009873554805


@_of_floats
def hard_tanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x clipped to [min_val, max_val]; the derivative at both ends is 0.

    >>> import tensorken as tk
    >>> tk.hard_tanh(tk.tensor([-3.0, 0.5, 3.0])).tolist()
    [-1.0, 0.5, 1.0]
    """
    return (x <= min_val).where(min_val, (x >= max_val).where(max_val, x))


@_of_floats
def relu6(x: Tensor) -> Tensor:
    """x clipped to [0, 6]; the derivative at both ends is 0.

    >>> import tensorken as tk
    >>> tk.relu6(tk.tensor([-3.0, 0.5, 9.0])).tolist()
    [0.0, 0.5, 6.0]
    """
    return hard_tanh(x, 0.0, 6.0)


@_of_floats
def hard_sigmoid(x: Tensor) -> Tensor:
    """(x + 3) / 6 clipped to [0, 1]; the derivative at both ends is 0.

    >>> import tensorken as tk
    >>> tk.hard_sigmoid(tk.tensor([-3.0, 0.0, 9.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return relu6(x + 3.0) / 6.0


@_of_floats
def hard_swish(x: Tensor) -> Tensor:
    """x * hard_sigmoid(x); the derivative is 0 at -3 and 1 at 3.

    Source: Howard et al., Searching for MobileNetV3 (2019).

    >>> import tensorken as tk
    >>> tk.hard_swish(tk.tensor([-4.0, 1.5, 9.0])).tolist()
    [0.0, 1.125, 9.0]
    """
    inside = hard_tanh(x, -3.0, 3.0)  # without the clipping, the product could be infinity times zero
    return (x <= -3.0).where(0.0, (x >= 3.0).where(x, inside * (inside + 3.0) / 6.0))


hard_silu = hard_swish


def _with_exponential(x: Tensor, alpha: float, rate: float) -> Tensor:
    """x where it is positive, else alpha * (e**(rate * x) - 1)."""
    positive = x > 0.0
    negative = positive.where(0.0, x)  # the exponential must not overflow where it is not selected
    return positive.where(x, expm1(negative * rate) * alpha)
