"""Monte Carlo rounding: bounds where intervals are too wide, from runs with random exaggerated roundings.

Intervals of the vectors of factorizations are wide, since their signs are not determined, and so are intervals of
results computed from them.  Therefore the computation runs on numpy, several times, with each result moved by a random
relative amount that is far larger than a rounding, yet so small that the effects add up linearly; the movement of the
final numbers measures how far roundings can move them.  This is Monte Carlo arithmetic: D. S. Parker, "Monte Carlo
arithmetic: exploiting randomness in floating-point arithmetic", UCLA CSD-970002, 1997.

Let s be what a unit error in each of N places does to a number.  A run moves it by a random sum of the s, whose mean
square is the sum of their squares; the worst that errors of that size can do is the sum of |s|, at most the root of N
times the root of that (Cauchy and Schwarz).  So the bound is that root of N, times the root mean square, scaled from
the exaggerated errors to those that the backend may make.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorken_conformance.enclosure.errors import EXACT, Errors
from tensorken_conformance.enclosure.interval import PRECISION
from tensorken_conformance.numbers.host_arrays import is_float
from tensorken_conformance.subject import Array
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy

RUNS = 3
"""The number of runs with random roundings."""

UNROUNDED = EXACT | set("reshape permute expand flip pad crop gather where concatenate".split())
"""The ops whose results are among their operands, or need no rounding."""


class MonteCarloRounding(RawTensor[Array]):
    """Numpy, with each result moved by a random relative amount.

    Args:
        errors: the rounding errors of a backend, of which the amounts are multiples.
        seed: of the random amounts; None: no result is moved.

    Attributes:
        places: the count of rounded numbers.
    """

    broadcasts = True

    def __init__(self, errors: Errors, seed: int | None) -> None:
        self.numpy = Numpy()
        self.capabilities = errors.capabilities
        self.errors = errors
        self.random = None if seed is None else np.random.default_rng(seed)
        self.places = 0

    def interpret(self, op: Op, operands: Sequence[Array], params: tuple[Any, ...]) -> Any:
        if op.name in UNROUNDED:
            return run(self.numpy, op, operands, params)
        if op.adjust_samples is not None:
            operands = [self._near(x) for x in operands]
        elif not op.elementwise:
            operands = [self._perturbed(x, float(x.size)) for x in operands]
        result = run(self.numpy, op, operands, params)
        return tuple([self._rounded(op, y) for y in result]) if op.results != 1 else self._rounded(op, result)

    def _rounded(self, op: Op, y: Array) -> Array:
        if not is_float(y):
            return y
        self.places += y.size
        if op.adjust_samples is not None:
            return self._near(y)
        return self._perturbed(y, 2.0 * self.errors.steps(op.name, DTYPES[y.dtype.name]) + 1.0)

    def _near(self, x: Array) -> Array:
        """A matrix near x, as the backward error of a stable algorithm, or its result, is.

        The distance is relative to the largest element, and grows with the number of elements: N. J. Higham, "Accuracy
        and Stability of Numerical Algorithms", 2nd edition, 2002, theorem 19.4 and section 19.3.
        """
        if not is_float(x) or not x.size:
            return x
        return self._moved(x, float(x.size) * np.abs(x).max())

    def _perturbed(self, x: Array, by: float) -> Array:
        return x if not is_float(x) else self._moved(x, by * np.abs(x))

    def _moved(self, x: Array, sizes: Any) -> Array:
        if self.random is None:
            return x
        signs = np.where(self.random.random(x.shape) < 0.5, -1.0, 1.0)
        signs *= self.random.uniform(0.5, 1.5, x.shape)  # of one size, two moves could cancel exactly
        with np.errstate(all="ignore"):
            moved = np.asarray(x + signs * exaggerated(x.dtype.name) * sizes).astype(x.dtype)
        return np.where(np.isfinite(moved), moved, x)

    def has(self, op: Op) -> bool:
        return True

    def new(self, shape: Shape, data: Any, dtype: DType) -> Array:
        return self.numpy.new(shape, data, dtype)

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Array:
        return self.numpy.full(shape, value, dtype)

    def shape(self, x: Array) -> Shape:
        return self.numpy.shape(x)

    def dtype(self, x: Array) -> DType:
        return self.numpy.dtype(x)

    def ravel(self, x: Array) -> Array:
        return self.numpy.ravel(x)


def exaggerated(dtype: str) -> float:
    """The error that replaces a rounding error: its root, whose square is negligible."""
    return math.sqrt(PRECISION[dtype])


def monte_carlo_bounds(
    capabilities: Capabilities, computation: Callable[[RawTensor[Any]], Sequence[Tensor]]
) -> list[tuple[Array, Array]]:
    """The bounds of each number of the results; not finite where they are not known."""
    errors = Errors(capabilities)
    still = MonteCarloRounding(errors, None)
    centres = [_read(y) for y in computation(still)]
    squares = [np.zeros(x.shape) for x in centres]
    for seed in range(RUNS):
        results = computation(MonteCarloRounding(errors, seed))
        for square, centre, y in zip(squares, centres, results, strict=True):
            moved = _read(y)
            with np.errstate(invalid="ignore"):
                square += np.where(moved == centre, 0.0, moved - centre) ** 2 / RUNS
    found = []
    for centre, square in zip(centres, squares, strict=True):
        name = "float64" if not is_float(centre) else centre.dtype.name
        share = math.sqrt(still.places) * PRECISION[name] / exaggerated(name)
        away = 2.0 * share * np.sqrt(square)  # the centre is rounded as well
        found.append((centre - away, centre + away))
    return found


def _read(y: Tensor) -> Array:
    return np.asarray(y.representation)
