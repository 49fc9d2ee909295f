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

from tensorken.arrays.functions.elementary import erf, expm1, hypot, sigmoid, softplus, tanh
from tensorken.arrays.functions.operands import floating_of
from tensorken.arrays.functions.own_derivatives import with_derivative
from tensorken.arrays.functions.shaping import moveaxis
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.op import OPS
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
        return _gelu(x)
    if approximate == "tanh":
        return _gelu_by_tanh(x)
    raise ArgumentError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")


def _clipped(x: Any, limit: float = math.inf) -> Any:
    """x from -1000 to the limit: where a gate is 0 to every digit, so that infinity is never multiplied by zero."""
    y = x.maximum(-1e3)
    return y if limit == math.inf else y.minimum(limit)


def _slope_of_gelu(x: Any) -> Any:
    """P(x) + x * p(x), with the normal distribution P and its density p."""
    y = x * math.sqrt(0.5)
    return erf(y) * 0.5 + 0.5 + _clipped(x, 1e3) * y.apply(OPS["gaussian"]) / math.sqrt(2.0 * math.pi)


@with_derivative(_slope_of_gelu)
def _gelu(x: Any) -> Any:
    return _clipped(x) * 0.5 * (erf(x * math.sqrt(0.5)) + 1.0)


def _slope_by_tanh(x: Any) -> Any:
    """The derivative of `_gelu_by_tanh`, with fewer passes over x than by the derivatives of its ops."""
    y = x.maximum(-_SATURATED).minimum(_SATURATED)
    gate = _gate(y)
    return (1.0 - gate) * gate * y * (y * y * (3.0 * _CURVATURE) + _RATE) + gate


@with_derivative(_slope_by_tanh)
def _gelu_by_tanh(x: Any) -> Any:
    """x * (1 + tanh(y / 2)) / 2 with y = x * (rate + curvature * x**2)."""
    y = x.maximum(-_SATURATED)
    return y * _gate(y.minimum(_SATURATED))


def _gate(x: Any) -> Any:
    """sigmoid(y), which equals (1 + tanh(y / 2)) / 2."""
    return sigmoid((x * x * _CURVATURE + _RATE) * x)


_RATE = math.sqrt(8.0 / math.pi)
_CURVATURE = 0.044715 * _RATE
_SATURATED = 30.0
"""From this size on, `_gate` is 0 or 1."""


@_of_floats
def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x).

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units (2016).

    >>> import tensorken as tk
    >>> print(f"{tk.silu(tk.tensor([-1.0, 0.0, 1.0])):.4f}")
    [-0.2689  0.0000  0.7311]
    """
    return _silu(x) if x.dtype.kind == "float" else x * x.sigmoid()


def _slope_of_sigmoid(x: Any) -> Any:
    return (x * 0.5).apply(OPS["sech_squared"]) * 0.25


@with_derivative(lambda x: sigmoid(x) + _clipped(x, 1e3) * _slope_of_sigmoid(x))
def _silu(x: Any) -> Any:
    return _clipped(x) * sigmoid(x)


swish = silu


@_of_floats
def mish(x: Tensor) -> Tensor:
    """x * tanh(softplus(x)).

    Source: Misra, Mish: A Self Regularized Non-Monotonic Activation Function (2019).

    >>> import tensorken as tk
    >>> print(f"{tk.mish(tk.tensor([-1.0, 0.0, 1.0])):.4f}")
    [-0.3034  0.0000  0.8651]
    """
    return _mish(x)


def _slope_of_mish(x: Any) -> Any:
    y = softplus(x)
    return tanh(y) + _clipped(x, 1e3) * y.apply(OPS["sech_squared"]) * sigmoid(x)


@with_derivative(_slope_of_mish)
def _mish(x: Any) -> Any:
    return _clipped(x) * tanh(softplus(x))


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
    return _soft_sign(x) if x.dtype.kind == "float" else x / (x.abs() + 1.0)


@with_derivative(lambda x: (1.0 / (x.abs() + 1.0)).square())
def _soft_sign(x: Any) -> Any:
    size = x.abs()
    return size.eq(math.inf).where(x.sign(), x / (size + 1.0))


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
    return _squareplus(float(b))(x)


@functools.cache
def _squareplus(b: float) -> Callable[[Any], Tensor]:
    def root(x: Any) -> Any:
        return hypot(x, math.sqrt(b))

    @with_derivative(lambda x: 0.5 * b / root(x) / root(x) / root(x))
    def slope(x: Any) -> Any:
        infinite = x.abs().eq(math.inf)
        return infinite.where((x > 0.0).astype(x.dtype), squareplus(infinite.where(1.0, x)) / root(x))

    @with_derivative(slope)
    def squareplus(x: Any) -> Any:
        """For negative x, the sum of numbers of opposite signs is written as a quotient."""
        below = x < 0.0
        far = root(x) * 0.5 - below.where(x, 0.0) * 0.5
        return below.where(0.25 * b / far, below.where(0.0, x) * 0.5 + root(x) * 0.5)

    return squareplus


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
