"""Designs: few rows in which each value of an axis meets each value of every other axis, as covering arrays.

A fault needs, as a rule, two or three circumstances together: a layout and a size, a dtype and a special value.  Rows
that vary one axis at a time miss it, and all combinations are too many.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product

import numpy as np

Row = dict[str, str]
"""The value of each axis, by the name of the axis."""

Compatible = Callable[[Row], bool]
"""Whether the values of two axes may stand in one row."""

TRIES = 8
"""How often a row is begun anew, before its first values count as impossible beside the other axes."""


def covering(
    axes: Mapping[str, Sequence[str]],
    seed: object,
    strength: int = 2,
    compatible: Compatible = lambda pair: True,
) -> list[Row]:
    """Rows that have each combination of the values of any `strength` axes, but for values that exclude each other.

    The rows are chosen one after the other: each begins with a combination that no row has yet, then takes the value
    that brings most new combinations, axis by axis (D. M. Cohen et al., "The AETG system", 1997).

    Args:
        axes: the values of each axis, the cheapest first, which is taken where it makes no difference.
        seed: decides between equally good values, and the order.
        strength: how many axes are combined.
        compatible: whether two values may stand in one row, given the values of two axes.

    >>> axes = {"dtype": ("int32", "float32"), "layout": ("plain", "flip"), "size": ("7", "8")}
    >>> rows = covering(axes, seed=0)
    >>> (
    ...     len(rows),
    ...     {(row["dtype"], row["size"]) for row in rows} == {(d, n) for d in axes["dtype"] for n in "78"},
    ... )
    (4, True)
    """
    return _Search(axes, seed, min(strength, len(axes)), compatible).rows()


class _Search:
    """The combinations that no row has yet."""

    def __init__(
        self, axes: Mapping[str, Sequence[str]], seed: object, strength: int, compatible: Compatible
    ) -> None:
        self._axes = axes
        self._names = list(axes)
        self._random = random.Random(f"{seed} {strength} {list(axes.items())}")
        sizes = [len(values) for values in axes.values()]
        self._fits = {}
        for i, j in combinations(range(len(sizes)), 2):
            a, b = self._names[i], self._names[j]
            pairs = [compatible({a: x, b: y}) for x, y in product(axes[a], axes[b])]
            self._fits[i, j] = np.array(pairs, bool).reshape(sizes[i], sizes[j])
            self._fits[j, i] = self._fits[i, j].T
        self._limited = [
            [j for j in range(len(sizes)) if j != i and not self._fits[i, j].all()] for i in range(len(sizes))
        ]
        """For each axis the others that exclude some of its values."""
        self._open = {}
        for places in combinations(range(len(sizes)), strength):
            grid = np.ones([sizes[i] for i in places], bool)
            for one, other in combinations(range(strength), 2):
                fits = self._fits[places[one], places[other]]
                grid &= fits.reshape([sizes[i] if i in (places[one], places[other]) else 1 for i in places])
            self._open[places] = grid

    def rows(self) -> list[Row]:
        found = []
        for places, grid in self._open.items():
            while grid.any():
                first = np.argwhere(grid)
                start = dict(zip(places, map(int, first[self._random.randrange(len(first))]), strict=True))
                chosen = next(filter(None, (self._filled(start) for _ in range(TRIES))), None)
                if chosen is None:
                    grid[tuple(start.values())] = False
                    continue
                for others, open_ in self._open.items():
                    open_[tuple([chosen[i] for i in others])] = False
                found.append({name: self._axes[name][chosen[i]] for i, name in enumerate(self._names)})
        self._random.shuffle(found)
        return found

    def _filled(self, start: Mapping[int, int]) -> dict[int, int] | None:
        """The values of all axes, beginning with some; None if no value of an axis fits to the others."""
        chosen = dict(start)
        able_of = [np.ones(len(self._axes[name]), bool) for name in self._names]
        for other, value in chosen.items():
            for axis in self._limited[other]:
                able_of[axis] &= self._fits[other, axis][value]
        rest = [i for i in range(len(self._names)) if i not in chosen]
        self._random.shuffle(rest)
        while rest:
            axis = rest.pop()
            able = able_of[axis]
            for other in self._limited[axis]:
                if other in rest:  # which has to have a value beside this one
                    able = able & (self._fits[axis, other] & able_of[other]).any(1)
            if not able.any():
                return None
            brings = np.zeros(len(able))
            for places, grid in self._open.items():
                if axis in places and all(i in chosen for i in places if i != axis):
                    brings += grid[tuple([slice(None) if i == axis else chosen[i] for i in places])]
            most = brings[able].max()
            best = np.flatnonzero(able & (brings == most))
            chosen[axis] = int(best[self._random.randrange(len(best)) if most else 0])
            for other in self._limited[axis]:
                able_of[other] = able_of[other] & self._fits[axis, other][chosen[axis]]
        return chosen
