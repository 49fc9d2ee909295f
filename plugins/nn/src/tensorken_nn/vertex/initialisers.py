"""Initialisers of weights."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Protocol

from tensorken_nn.vertex.matrix import Matrix


class WeightInitialiser(Protocol):
    """A function that draws a matrix of weights."""

    def __call__(self, out_dim: int, in_dim: int, rng: random.Random) -> Matrix:
        """Draw the weights, with a row for each of `out_dim` outputs and a column for each of `in_dim` inputs."""


@dataclass(frozen=True, slots=True)
class Normal:
    """Normal numbers of mean 0 and the given standard deviation, drawn row by row.

    >>> Normal(0.0)(1, 2, random.Random(0))
    Matrix([[0.0, 0.0]])
    """

    deviation: float

    def __call__(self, out_dim: int, in_dim: int, rng: random.Random) -> Matrix:
        return Matrix([[rng.gauss(0, self.deviation) for _ in range(in_dim)] for _ in range(out_dim)])


@dataclass(frozen=True, slots=True)
class He:
    """Normal numbers of variance 2 / inputs, which keep the scale of activations in layers followed by relu.

    Source: He, Zhang, Ren, Sun, Delving Deep into Rectifiers (2015), equation 10.

    >>> He()(1, 2, random.Random(42))
    Matrix([[-0.14409032957792836, -0.1729036003315193]])
    """

    def __call__(self, out_dim: int, in_dim: int, rng: random.Random) -> Matrix:
        return Normal(math.sqrt(2 / in_dim))(out_dim, in_dim, rng)


@dataclass(frozen=True, slots=True)
class Xavier:
    """Uniform numbers of variance 2 / (inputs + outputs), for layers followed by tanh.

    Source: Glorot, Bengio, Understanding the difficulty of training deep feedforward neural networks (2010),
    equation 16.

    >>> weights = Xavier()(10, 20, random.Random(0))
    >>> max(abs(v.value) for row in weights for v in row) < math.sqrt(6 / 30)
    True
    """

    def __call__(self, out_dim: int, in_dim: int, rng: random.Random) -> Matrix:
        limit = math.sqrt(6 / (in_dim + out_dim))
        return Matrix([[rng.uniform(-limit, limit) for _ in range(in_dim)] for _ in range(out_dim)])


@dataclass(frozen=True, slots=True)
class Zeros:
    """Zeros; no random numbers are used.

    >>> Zeros()(1, 2, random.Random(0))
    Matrix([[0.0, 0.0]])
    """

    def __call__(self, out_dim: int, in_dim: int, rng: random.Random) -> Matrix:
        return Matrix([[0.0] * in_dim] * out_dim)
