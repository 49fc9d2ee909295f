"""Initialisers of parameters.

An initialiser is a function of a key, a shape and a dtype. The first axis of the shape counts the outputs, the other
axes the inputs of one output: one axis for a linear layer, several for a convolution. The same key gives the same
parameters on every backend, up to rounding of elementary functions.

Some functions return an initialiser, such as `normal(0.02)` and `constant(1.0)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError

__all__ = [
    "Initializer",
    "constant",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]

Shape: TypeAlias = tuple[int, ...]
Initializer: TypeAlias = Callable[[Tensor, Shape, Any], Tensor]
"""A function of a key, a shape and a dtype that returns a parameter on the key's backend."""


# ---- scaled by the number of inputs and outputs ------------------------------------------------------------


def he_normal(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
    """Normal numbers of variance 2 / inputs, which keep the scale of activations in layers followed by relu.

    Source: He, Zhang, Ren, Sun, Delving Deep into Rectifiers (2015), equation 10.

    Raises:
        ShapeError: if the shape has fewer than two axes.

    >>> print(f"{he_normal(tk.random.key(0), (2000, 50)).std():.2f}")
    0.20
    """
    inputs, _ = fans("he_normal", shape)
    return _normal(key, shape, dtype, 2.0 / inputs)


def he_uniform(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
    """Uniform numbers of variance 2 / inputs; see `he_normal`.

    Raises:
        ShapeError: if the shape has fewer than two axes.

    >>> print(f"{he_uniform(tk.random.key(0), (2000, 50)).std():.2f}")
    0.20
    """
    inputs, _ = fans("he_uniform", shape)
    return _uniform(key, shape, dtype, 2.0 / inputs)


def xavier_normal(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
    """Normal numbers of variance 2 / (inputs + outputs), which keep the scale of activations and gradients.

    Source: Glorot, Bengio, Understanding the Difficulty of Training Deep Feedforward Neural Networks (2010),
    equation 12.

    Raises:
        ShapeError: if the shape has fewer than two axes.

    >>> print(f"{xavier_normal(tk.random.key(0), (750, 50)).std():.2f}")
    0.05
    """
    inputs, outputs = fans("xavier_normal", shape)
    return _normal(key, shape, dtype, 2.0 / (inputs + outputs))


def xavier_uniform(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
    """Uniform numbers of variance 2 / (inputs + outputs).

    Source: as `xavier_normal`, equation 16.

    Raises:
        ShapeError: if the shape has fewer than two axes.

    >>> print(f"{xavier_uniform(tk.random.key(0), (750, 50)).std():.2f}")
    0.05
    """
    inputs, outputs = fans("xavier_uniform", shape)
    return _uniform(key, shape, dtype, 2.0 / (inputs + outputs))


glorot_normal = xavier_normal
glorot_uniform = xavier_uniform


def lecun_normal(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
    """Normal numbers of variance 1 / inputs, which keep the scale of activations in linear layers.

    Source: LeCun, Bottou, Orr, Mueller, Efficient BackProp (1998), section 4.6.

    Raises:
        ShapeError: if the shape has fewer than two axes.

    >>> print(f"{lecun_normal(tk.random.key(0), (2000, 25)).std():.2f}")
    0.20
    """
    inputs, _ = fans("lecun_normal", shape)
    return _normal(key, shape, dtype, 1.0 / inputs)


def lecun_uniform(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
    """Uniform numbers of variance 1 / inputs; see `lecun_normal`.

    Raises:
        ShapeError: if the shape has fewer than two axes.

    >>> print(f"{lecun_uniform(tk.random.key(0), (2000, 25)).std():.2f}")
    0.20
    """
    inputs, _ = fans("lecun_uniform", shape)
    return _uniform(key, shape, dtype, 1.0 / inputs)


def fans(name: str, shape: Shape) -> tuple[int, int]:
    """The number of inputs of an output, and of outputs of an input; at least 1, also for an empty layer.

    Raises:
        ShapeError: if the shape has fewer than two axes; the message begins with `name`.

    >>> fans("he_normal", (8, 3)), fans("he_normal", (8, 3, 5, 5))
    ((3, 8), (75, 200))
    """
    if len(shape) < 2:
        raise ShapeError(
            f"{name}: shape {tuple(shape)} has no axes for outputs and inputs; need two axes or more"
        )
    outputs, inputs, *window = shape
    return max(inputs * math.prod(window), 1), max(outputs * math.prod(window), 1)


def _normal(key: Tensor, shape: Shape, dtype: Any, variance: float) -> Tensor:
    return tk.random.normal(key, shape, dtype) * math.sqrt(variance)


def _uniform(key: Tensor, shape: Shape, dtype: Any, variance: float) -> Tensor:
    bound = math.sqrt(3.0 * variance)  # the variance of numbers in [-b, b) is b**2 / 3
    return tk.random.uniform(key, shape, dtype, -bound, bound)


# ---- of a given scale --------------------------------------------------------------------------------------


def normal(std: float = 1.0) -> Initializer:
    """Normal numbers of mean 0 and standard deviation `std`.

    Raises:
        ArgumentError: if `std` is negative.

    >>> print(f"{normal(0.02)(tk.random.key(0), (100, 100), tk.float32).std():.2f}")
    0.02
    """
    _check_not_negative("normal", "std", std)

    def initializer(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
        return tk.random.normal(key, shape, dtype) * std

    return initializer


def truncated_normal(std: float = 1.0, lower: float = -2.0, upper: float = 2.0) -> Initializer:
    """Normal numbers truncated to [lower, upper], times `std`.

    Without the tails, their standard deviation is smaller than `std`: 0.88 of it with the default bounds.

    Args:
        std: of the whole distribution.
        lower, upper: the bounds, in units of std, as in JAX.

    Raises:
        ArgumentError: if std is negative, or the bounds are not in order.

    >>> x = truncated_normal(0.02)(tk.random.key(0), (100, 100), tk.float32)
    >>> print(f"{x.std():.4f} {tk.abs(x).max():.4f}")
    0.0178 0.0400
    """
    _check_not_negative("truncated_normal", "std", std)
    if not lower < upper:
        raise ArgumentError(f"truncated_normal: need lower < upper, got {lower}, {upper}")

    def initializer(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
        return tk.random.truncated_normal(key, lower, upper, shape, dtype) * std

    return initializer


def uniform(bound: float = 1.0) -> Initializer:
    """Uniform numbers from [-bound, bound).

    Raises:
        ArgumentError: if the bound is negative.

    >>> print(f"{tk.abs(uniform(0.1)(tk.random.key(0), (100, 100), tk.float32)).max():.4f}")
    0.1000
    """
    _check_not_negative("uniform", "bound", bound)

    def initializer(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
        return tk.random.uniform(key, shape, dtype, -bound, bound)

    return initializer


def orthogonal(gain: float = 1.0) -> Initializer:
    """A random matrix whose rows, or columns if there are fewer of them, are orthogonal and of length `gain`.

    With gain 1 it preserves the lengths of vectors, or of gradients. It is uniformly distributed: the factor Q of a
    matrix of normal numbers, with signs that make the diagonal of R positive. A shape of more than two axes is
    taken as a matrix of outputs by inputs.

    Source: Saxe, McClelland, Ganguli, Exact Solutions to the Nonlinear Dynamics of Learning in Deep Linear Neural
    Networks (2014); the signs: Mezzadri, How to Generate Random Matrices from the Classical Compact Groups (2007).

    Raises:
        ArgumentError: if the gain is negative.
        ShapeError: when called, if the shape has fewer than two axes.

    >>> q = orthogonal()(tk.random.key(0), (2, 3), tk.float32)
    >>> print(f"{tk.abs(q @ q.T):.4f}")
    [[1.0000 0.0000]
     [0.0000 1.0000]]
    """
    _check_not_negative("orthogonal", "gain", gain)

    def initializer(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
        fans("orthogonal", shape)
        outputs, inputs = shape[0], math.prod(shape[1:])
        tall = max(outputs, inputs), min(outputs, inputs)
        drawn = tk.random.normal(key, tall, dtype)
        q, r = tk.linalg.qr(drawn.astype(drawn.dtype.wide))
        q = tk.where(tk.diagonal(r) < 0.0, -q, q) * gain
        return (q if outputs >= inputs else q.T).reshape(shape).astype(drawn.dtype)

    return initializer


def constant(value: float) -> Initializer:
    """The same number everywhere; the key is not used.

    >>> constant(0.5)(tk.random.key(0), (2,), tk.float32).tolist()
    [0.5, 0.5]
    """

    def initializer(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
        return tk.full_like(key, value, dtype, shape=shape)

    return initializer


def zeros(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
    """Zeros, usual for biases; the key is not used.

    >>> zeros(tk.random.key(0), (2,)).tolist()
    [0.0, 0.0]
    """
    return tk.zeros_like(key, dtype, shape=shape)


def ones(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
    """Ones, usual for the weights of a normalisation; the key is not used.

    >>> ones(tk.random.key(0), (2,)).tolist()
    [1.0, 1.0]
    """
    return tk.ones_like(key, dtype, shape=shape)


def _check_not_negative(name: str, what: str, x: float) -> None:
    if not x >= 0.0:
        raise ArgumentError(f"{name}: {what} must not be negative, got {x}")
