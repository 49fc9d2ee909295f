"""Memory: how many bytes the results of ops take that are alive, from when they are made until they are freed."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import accumulate
from time import perf_counter_ns
from typing import Any

from tensorken_profile.costs import Kind, size_in_bytes


class Memory:
    """The results that ops have made since it was made, as long as something refers to them.

    A weak reference tells when a result dies, so nothing is kept alive.  What only is a view is not counted, but keeps
    the memory that it views: what owns that is asked for as numpy's `base`.
    """

    def __init__(self) -> None:
        self.changes: list[tuple[int, int]] = []
        """When, and by how many bytes, the sum changed."""
        self.untold = 0
        """How many bytes results have of whose death nothing is told."""
        self._alive: dict[int, weakref.ref[Any]] = {}

    def add(
        self, operands: Sequence[Any], results: Sequence[Any], kinds: Sequence[Kind], views: bool
    ) -> None:
        """Count results, but not those that are operands or views of them.

        Args:
            views: whether results that do not tell who owns their memory are views of operands.
        """
        known = [_owner(x) for x in operands]
        for result, kind in zip(results, kinds, strict=True):
            owner = _owner(result)
            if not (views and not hasattr(result, "base")) and not any([owner is x for x in known]):
                self._add(owner, kind)

    def _add(self, owner: Any, kind: Kind) -> None:
        key, alive, changes = id(owner), self._alive, self.changes
        if key in alive:
            return
        size = size_in_bytes((kind,))

        def died(_: Any) -> None:  # at any time and in any thread, so that it may wait for no lock
            if alive.pop(key, None) is not None:
                changes.append((perf_counter_ns(), -size))

        try:
            alive[key] = weakref.ref(owner, died)
        except TypeError:
            self.untold += size
        else:
            changes.append((perf_counter_ns(), size))

    def close(self) -> None:
        """Note nothing any more."""
        self._alive.clear()

    def timeline(self) -> list[tuple[int, int]]:
        """The sum after each change, and when that was by `perf_counter_ns`."""
        changes = sorted(self.changes[:], key=lambda change: change[0])
        sums = accumulate([size for _, size in changes])
        return [(when, total) for (when, _), total in zip(changes, sums, strict=True)]


def _owner(x: Any) -> Any:
    """What owns the memory of a representation, where it tells."""
    base = getattr(x, "base", None)
    while base is not None:
        x, base = base, getattr(base, "base", None)
    return x
