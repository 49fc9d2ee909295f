"""Draft: a program under construction, with the interval of each node.

A step with an unbounded interval would prove nothing, so it gets other operands. Some of these steps are kept, so that
programs contain infinities and NaN as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorken_conformance.enclosure import Enclosure, Interval, interval, width
from tensorken_conformance.programs.program import Array, Leaf, Node, Program, Step
from tensorken_conformance.subject import put
from tensorken_core.errors import TensorkenError
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType, integer_bounds, uint64
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor

Draw = Callable[[int], int]
"""Returns an integer from 0 to below its argument; smaller integers mean simpler programs."""

LARGEST = 160
"""The largest number of elements of a node."""

SHAPES: tuple[Shape, ...] = (
    *((3,), (2, 3), (), (1,), (3, 1), (1, 3), (2, 2), (3, 3), (2, 1, 3), (4,), (2, 3, 2), (5,)),
    *((0,), (2, 0), (1, 2, 1, 3), (7,), (67,), (9, 17)),
)
"""The shapes of leaves, simple ones first."""

ENCLOSED = [dtype for dtype in DTYPES.values() if dtype is not uint64]
"""The dtypes of programs: those whose numbers an enclosure can hold."""

FREQUENT = ("float32", "int32", "float64", "bool", "float16", "int64")
"""The dtypes that most nodes have, the simplest first."""

_GRID = [0.5, 0.75, 0.25, 1.0, 0.0, 0.625, 0.375, 0.875, 0.125]
_FINE = [round((i * 0.6180339887498949) % 1.0, 6) for i in range(1, 64)]
_INTS = [1, 2, 3, 0, -1, 4, -2, 5, 7, -3, 8, 12, -7, 31, 64, -100]
_WILD = [0.0, -0.0, float("inf"), 1.0, float("nan"), -float("inf"), 1e-42, 3e38, -1e300, 6e-8, 65504.0]
_WILD_INTS = [0, -1, 2**31 - 1, -(2**31), 1, 2**63 - 1, -(2**63), 33]

VAGUE = 2.0**-4
"""An interval this wide, relative to its largest end, is too wide."""

FEW = 64
"""An interval of at most so many representable numbers is never too wide, such as one around zero."""


def vague(x: Interval) -> Array:
    """Where an interval is too wide to prove anything."""
    if x.dtype.kind != "float":
        return np.asarray(x.low != x.high)
    with np.errstate(all="ignore"):
        wide = x.high - x.low > VAGUE * np.maximum(np.abs(x.low), np.abs(x.high))
        wide |= (x.low != x.high) & (np.isinf(x.low) | np.isinf(x.high))
    if wide.any():
        wide &= width(x) > FEW
    return np.asarray((wide | x.maybe_nan) & ~x.empty)


def unknown(x: Interval) -> Array:
    """Where an interval is unbounded."""
    if x.dtype.kind == "float":
        return np.asarray((x.low == -np.inf) & (x.high == np.inf))
    return np.asarray(x.low != x.high) if x.dtype.kind == "bool" else np.asarray(x.high - x.low > 2.0**31)


class Draft:
    """A program under construction for a backend with these capabilities; `draw` makes all random decisions."""

    def __init__(self, draw: Draw, capabilities: Capabilities) -> None:
        self.draw = draw
        self.capabilities = capabilities
        self.place = Enclosure(capabilities)
        self.dtypes = [dtype for dtype in ENCLOSED if dtype.name in capabilities.dtypes]
        self.nodes: list[Node] = []
        self.tensors: list[Tensor] = []
        self.fine: list[bool] = []

    @property
    def program(self) -> Program:
        """The program so far."""
        return Program(tuple(self.nodes))

    def chance(self, of: int) -> bool:
        """True with probability 1 / `of`; False is the simplest decision."""
        return self.draw(of) == of - 1

    def choice(self, options: Sequence[Any]) -> Any:
        """One of these; the first is the simplest."""
        return options[self.draw(len(options))]

    def dtype(self, options: Sequence[DType]) -> DType:
        """One of these dtypes, preferably that of an earlier node."""
        if self.nodes and not self.chance(3):
            seen = [
                x.dtype
                for x, fine in zip(self.tensors, self.fine, strict=True)
                if fine and x.dtype in options
            ]
            if seen:
                return seen[-1 - self.draw(len(seen))]
        frequent = [dtype for dtype in options if dtype.name in FREQUENT]
        return self.choice(options if not frequent or self.chance(8) else frequent)  # type: ignore[no-any-return]

    # ---- leaves ----------------------------------------------------------------------------------------------

    def leaf(
        self, shape: Shape, dtype: DType, domain: tuple[float, float] = (-2.0, 2.0), wild: bool = False
    ) -> int:
        """Add a leaf with random numbers of the domain, or with special values; returns its number."""
        return self.given(self._values(shape, dtype, domain, wild), dtype)

    def given(self, values: Array, dtype: DType) -> int:
        """Add a leaf with these values; returns its number."""
        leaf = Leaf(values, dtype)
        self.nodes.append(leaf)
        self.tensors.append(put(self.place, values, dtype))
        self.fine.append(_moderate(interval(self.tensors[-1])))
        return len(self.nodes) - 1

    def _values(self, shape: Shape, dtype: DType, domain: tuple[float, float], wild: bool) -> Array:
        count = int(np.prod(shape, dtype=int))
        style, start = 15 if wild else self.draw(16), self.draw(16)
        order = (np.arange(count) * (1 + style % 4) + start) % 63
        if dtype.kind == "bool":
            return np.asarray((order * 5 + style) % 3 != 1).reshape(shape)
        if dtype.kind == "int":
            least, most = integer_bounds(dtype)
            pool = [n for n in (_WILD_INTS if style == 15 else _INTS) if least <= n <= most]
            return np.array([pool[i % len(pool)] for i in order], dtype.name).reshape(shape)
        if style == 15:
            with np.errstate(over="ignore"):
                return np.array([_WILD[i % len(_WILD)] for i in order], dtype.name).reshape(shape)
        units = _GRID if style < 6 else _FINE
        low, high = domain
        values = [round(low + (high - low) * units[i % len(units)], 6) for i in order]
        return np.array(values, dtype.name).reshape(shape)

    # ---- steps -----------------------------------------------------------------------------------------------

    def pick(self, fits: Callable[[Tensor], bool], wild: bool = False) -> int | None:
        """The number of a node that fits, preferably the latest; None if none fits.

        With `wild` the node may be infinite, or NaN, or have a wide interval.
        """
        latest = range(len(self.nodes) - 1, -1, -1)
        found = [i for i in latest if (wild or self.fine[i]) and fits(self.tensors[i])]
        return found[self.draw(len(found))] if found else None

    def add(self, step: Step, keep: bool = False) -> bool:
        """Add a step, if it is defined and, unless `keep`, its interval is narrow; returns whether it was added."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                y = step(*[self.tensors[i] for i in step.operands])
            except (TensorkenError, OverflowError):
                return False
        if y.size > LARGEST or y.ndim > 5 or y.dtype.name not in self.capabilities.dtypes:
            return False
        found = interval(y)
        fine = not vague(found).any() and not found.maybe_nan.any() and _moderate(found)
        if not fine and not keep:
            return False
        self.nodes.append(step)
        self.tensors.append(y)
        self.fine.append(fine)
        return True


def _moderate(x: Interval) -> bool:
    """Whether all elements are far from overflow, so that other ops do not overflow."""
    if x.dtype.kind != "float" or not x.low.size:
        return True
    limit = 2.0**10 if x.dtype.name == "float16" else 2.0**40
    return bool(np.maximum(np.abs(x.low), np.abs(x.high)).max() < limit)


Writer = Callable[[Draft], bool]
"""Adds one step and the leaves that it needs; returns whether a step was added."""
