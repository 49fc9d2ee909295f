"""Initialisers: how the parameters of a layer begin.

All draw from a `random.Random` in Python numbers, which are then rounded once, so the same seed gives the same
parameters on every backend.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, TypeAlias

import tensorken as tk
from tensorken import Tensor

Shape: TypeAlias = tuple[int, ...]
Initializer: TypeAlias = Callable[[Shape, random.Random, Any, Any], Tensor]
"""From the shape, the source of random numbers, the dtype and the backend: the parameter."""


def he(shape: Shape, rng: random.Random, dtype: Any = tk.float32, backend: Any = None) -> Tensor:
    """Normal numbers of variance 2 / inputs: they keep the size of what passes a layer that relu follows.

    Source: He, Zhang, Ren, Sun, Delving Deep into Rectifiers (2015), equation 10.

    Args:
        shape: the outputs first, then the inputs of one output, along one axis or several.
        rng: where the numbers come from.
        dtype: of the result, float.
        backend: as for `tk.tensor`.

    >>> he((1, 2), random.Random(42), tk.float64).tolist()
    [[-0.14409032957792836, -0.1729036003315193]]
    """
    deviation = math.sqrt(2 / math.prod(shape[1:]))
    values = [rng.gauss(0.0, deviation) for _ in range(math.prod(shape))]
    return tk.new(shape, values, dtype, backend=backend)


def zeros(shape: Shape, rng: random.Random, dtype: Any = tk.float32, backend: Any = None) -> Tensor:
    """Zeros, as biases begin; nothing is drawn.

    >>> zeros((2,), random.Random(0)).tolist()
    [0.0, 0.0]
    """
    return tk.zeros(shape, dtype, backend=backend)
