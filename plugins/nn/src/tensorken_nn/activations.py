"""Activation functions.

Values and derivatives agree with PyTorch, also at kinks. `relu`, `sigmoid`, `softmax`, `log_softmax`, `softplus` and
`tanh` are re-exported from `tensorken`.
"""

from __future__ import annotations

import math

import tensorken as tk
from tensorken import Tensor, log_softmax, relu, sigmoid, softmax, softplus, tanh
from tensorken_core.errors import ArgumentError, ShapeError

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "softsign",
    "swish",
    "tanh",
]

# ---- smooth everywhere -------------------------------------------------------------------------------------


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x times the probability that a standard normal number is below x.

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units (2016).

    Args:
        approximate: "none" for the error function; "tanh" for the paper's approximation, which GPT-2 uses.

    Raises:
        ArgumentError: if `approximate` is neither.

    >>> print(f"{gelu(tk.tensor([-1.0, 0.0, 1.0])):.4f}")
    [-0.1587  0.0000  0.8413]
    >>> print(f"{gelu(tk.tensor([-1.0, 0.0, 1.0]), 'tanh'):.4f}")
    [-0.1588  0.0000  0.8412]
    """
    if approximate == "none":
        return x * 0.5 * (tk.erf(x * math.sqrt(0.5)) + 1.0)
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
    return tk.minimum(x * curvature * x, 500.0 * curvature)


_RATE = math.sqrt(8.0 / math.pi)
_CURVATURE = 0.044715 * _RATE
_gelu_by_tanh = tk.elementwise(_by_tanh, _derivative_by_tanh)


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x).

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units (2016).

    >>> print(f"{silu(tk.tensor([-1.0, 0.0, 1.0])):.4f}")
    [-0.2689  0.0000  0.7311]
    """
    return x * sigmoid(x)


swish = silu


def mish(x: Tensor) -> Tensor:
    """x * tanh(softplus(x)).

    Source: Misra, Mish: A Self Regularized Non-Monotonic Activation Function (2019).

    >>> print(f"{mish(tk.tensor([-1.0, 0.0, 1.0])):.4f}")
    [-0.3034  0.0000  0.8651]
    """
    return x * tanh(softplus(x))


def log_sigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x)), computed without rounding sigmoid(x) to 0 or 1.

    >>> print(f"{log_sigmoid(tk.tensor([-1000.0, 0.0, 1000.0])):.4f}")
    [-1000.0000    -0.6931    -0.0000]
    """
    return -softplus(-x)


def softsign(x: Tensor) -> Tensor:
    """`x / (1 + |x|)`.

    >>> softsign(tk.tensor([-3.0, 0.0, 1.0])).tolist()
    [-0.75, 0.0, 0.5]
    """
    return x / (x.abs() + 1.0)


def glu(x: Tensor, axis: int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second half.

    Source: Dauphin, Fan, Auli, Grangier, Language Modeling with Gated Convolutional Networks (2017).

    Raises:
        ShapeError: if the axis has an odd size.

    >>> glu(tk.tensor([3.0, 4.0, 0.0, 0.0])).tolist()
    [1.5, 2.0]
    """
    x = tk.moveaxis(x, axis, -1)
    if x.shape[-1] % 2:
        raise ShapeError(
            f"glu: axis {axis} has size {x.shape[-1]}, need an even one; leave out one or add one"
        )
    half = x.shape[-1] // 2
    return tk.moveaxis(x[..., :half] * sigmoid(x[..., half:]), -1, axis)


# ---- piecewise ---------------------------------------------------------------------------------------------


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x where it is positive, else `negative_slope` times x; the derivative at 0 is `negative_slope`.

    >>> leaky_relu(tk.tensor([-2.0, 3.0]), 0.25).tolist()
    [-0.5, 3.0]
    """
    return (x > 0.0).where(x, x * negative_slope)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (e**x - 1); the derivative at 0 is alpha.

    Source: Clevert, Unterthiner, Hochreiter, Fast and Accurate Deep Network Learning by ELUs (2015).

    >>> print(f"{elu(tk.tensor([-1.0, 0.0, 1.0])):.4f}")
    [-0.6321  0.0000  1.0000]
    """
    return _with_exponential(x, alpha, 1.0)


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (e**(x / alpha) - 1); the derivative at 0 is 1.

    Source: Barron, Continuously Differentiable Exponential Linear Units (2017).

    >>> print(f"{celu(tk.tensor([-2.0, 0.0, 1.0]), 2.0):.4f}")
    [-1.2642  0.0000  1.0000]
    """
    return _with_exponential(x, alpha, 1.0 / alpha)


def selu(x: Tensor) -> Tensor:
    """`elu`, scaled so that layers keep mean 0 and variance 1.

    Source: Klambauer, Unterthiner, Mayr, Hochreiter, Self-Normalizing Neural Networks (2017), with its two constants.

    >>> print(f"{selu(tk.tensor([-1.0, 0.0, 1.0])):.4f}")
    [-1.1113  0.0000  1.0507]
    """
    return elu(x, 1.6732632423543772) * 1.0507009873554805


def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x clipped to [min_val, max_val]; the derivative at both ends is 0.

    >>> hardtanh(tk.tensor([-3.0, 0.5, 3.0])).tolist()
    [-1.0, 0.5, 1.0]
    """
    return (x <= min_val).where(min_val, (x >= max_val).where(max_val, x))


def relu6(x: Tensor) -> Tensor:
    """x clipped to [0, 6]; the derivative at both ends is 0.

    >>> relu6(tk.tensor([-3.0, 0.5, 9.0])).tolist()
    [0.0, 0.5, 6.0]
    """
    return hardtanh(x, 0.0, 6.0)


def hardsigmoid(x: Tensor) -> Tensor:
    """(x + 3) / 6 clipped to [0, 1]; the derivative at both ends is 0.

    >>> hardsigmoid(tk.tensor([-3.0, 0.0, 9.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return relu6(x + 3.0) / 6.0


def hardswish(x: Tensor) -> Tensor:
    """x * hardsigmoid(x); the derivative is 0 at -3 and 1 at 3.

    Source: Howard et al., Searching for MobileNetV3 (2019).

    >>> hardswish(tk.tensor([-4.0, 1.5, 9.0])).tolist()
    [0.0, 1.125, 9.0]
    """
    inside = hardtanh(x, -3.0, 3.0)  # without the clipping, the product could be infinity times zero
    return (x <= -3.0).where(0.0, (x >= 3.0).where(x, inside * (inside + 3.0) / 6.0))


def _with_exponential(x: Tensor, alpha: float, rate: float) -> Tensor:
    """x where it is positive, else alpha * (e**(rate * x) - 1)."""
    positive = x > 0.0
    negative = positive.where(0.0, x)  # the exponential must not overflow where it is not selected
    return positive.where(x, tk.expm1(negative * rate) * alpha)
