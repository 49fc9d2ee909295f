"""Functions along axes: sums, extremes and their places, softmax."""

from __future__ import annotations

from typing import Any

from tensorken.creation import as_tensor
from tensorken.normalization import Axis, axes_of
from tensorken.spec.op import OPS
from tensorken.tensor import Tensor

__all__ = [
    "argmax",
    "argmin",
    "cumsum",
    "log_softmax",
    "logsumexp",
    "max",
    "mean",
    "min",
    "softmax",
    "sum",
]


def sum(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum over axes, all by default; of bool in int32, else in x's dtype."""
    return as_tensor(x).sum(axis, keepdims)


def max(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The maximum over axes, all by default; NaN propagates; ties share the derivative equally."""
    return as_tensor(x).max(axis, keepdims)


def min(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The minimum over axes, all by default; NaN propagates; ties share the derivative equally."""
    return as_tensor(x).min(axis, keepdims)


def mean(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean over axes, all by default; of ints and bools in float32."""
    return as_tensor(x).mean(axis, keepdims)


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int32 index of the first maximum along an axis, or in the flat tensor."""
    return as_tensor(x).argmax(axis, keepdims)


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int32 index of the first minimum along an axis, or in the flat tensor; a NaN counts as the minimum.

    >>> import tensorken as tk
    >>> tk.argmin([3.0, 1.0, 2.0]).item()
    1
    """
    return as_tensor(x).argmin(axis, keepdims)


def cumsum(x: Any, axis: int | None = None) -> Tensor:
    """The running sum along an axis, or over the flat tensor."""
    return as_tensor(x).cumsum(axis)


def logsumexp(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over axes, all by default, without overflow; -inf where all are -inf; for floats.

    Its derivative is `softmax`.

    >>> import tensorken as tk
    >>> print(f"{tk.logsumexp([1000.0, 1000.0]):.3f}")
    1000.693
    """
    x = as_tensor(x)
    axes = axes_of("logsumexp", x.shape, axis)
    result: Tensor = x.apply(OPS["logsumexp"], axes)
    return result if keepdims else result.reshape(tuple([n for i, n in enumerate(x.shape) if i not in axes]))


def softmax(x: Any, axis: Axis = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along axes, without overflow; infinite maxima share the whole; for floats.

    >>> import tensorken as tk
    >>> tk.softmax([0.0, 0.0]).tolist()
    [0.5, 0.5]
    """
    x = as_tensor(x)
    result: Tensor = x.apply(OPS["softmax"], axes_of("softmax", x.shape, axis))
    return result


def log_softmax(x: Any, axis: Axis = -1) -> Tensor:
    """log(softmax(x)) along axes, without its rounding to 0 and to 1; for floats.

    >>> import tensorken as tk
    >>> print(f"{tk.log_softmax([0.0, -1000.0]):.1f}")
    [0.0 -1000.0]
    """
    x = as_tensor(x)
    result: Tensor = x.apply(OPS["log_softmax"], axes_of("log_softmax", x.shape, axis))
    return result
