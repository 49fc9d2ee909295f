"""Initialisers: how the parameters of a layer begin.

An initialiser takes a key, a shape and a dtype. The shape has the outputs first, then the inputs of one output, along
one axis (a linear layer) or several (a convolution). The same key gives the same parameters on every backend, up to
the rounding of its elementary functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import tensorken as tk
from tensorken import Tensor

Shape: TypeAlias = tuple[int, ...]
Initializer: TypeAlias = Callable[[Tensor, Shape, Any], Tensor]
"""From a key, the shape and the dtype: the parameter, on the backend of the key."""


def he_normal(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
    """Normal numbers of variance 2 / inputs: they keep the size of what passes a layer that relu follows.

    Source: He, Zhang, Ren, Sun, Delving Deep into Rectifiers (2015), equation 10.

    >>> print(f"{he_normal(tk.random.key(0), (2000, 50)).std():.2f}")
    0.20
    """
    return tk.random.normal(key, shape, dtype) * math.sqrt(2 / math.prod(shape[1:]))


def lecun_normal(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
    """Normal numbers of variance 1 / inputs: they keep the size of what passes a layer without an activation.

    Source: LeCun, Bottou, Orr, Mueller, Efficient BackProp (1998), section 4.6.

    >>> print(f"{lecun_normal(tk.random.key(0), (2000, 25)).std():.2f}")
    0.20
    """
    return tk.random.normal(key, shape, dtype) * math.sqrt(1 / math.prod(shape[1:]))


def zeros(key: Tensor, shape: Shape, dtype: Any = tk.float32) -> Tensor:
    """Zeros, as biases begin; nothing is drawn.

    >>> zeros(tk.random.key(0), (2,)).tolist()
    [0.0, 0.0]
    """
    return tk.zeros_like(key, dtype, shape=shape)
