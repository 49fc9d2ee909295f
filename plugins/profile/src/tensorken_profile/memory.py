"""Memory: the bytes of the live results of ops, from their creation until they are freed."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import accumulate
from time import perf_counter_ns
from typing import Any

from tensorken.programs.costs import ShapeDtype, size_in_bytes


class Memory:
    """Tracks the memory of the results of ops by weak references, so it keeps nothing alive.

    A view does not count, but keeps the memory of its owner alive: the end of the chain of numpy's `base`.
    """

    def __init__(self) -> None:
        self.changes: list[tuple[int, int]] = []
        """Times, and the change in bytes at each."""
        self.untracked = 0
        """The bytes of results that take no weak references, so that their end cannot be tracked."""
        self._live: dict[int, weakref.ref[Any]] = {}

    def add(
        self, operands: Sequence[Any], results: Sequence[Any], shape_dtypes: Sequence[ShapeDtype], views: bool
    ) -> None:
        """Count results, except operands and views of operands.

        Args:
            views: whether results without a `base` are views of operands.
        """
        owners = [_owner(x) for x in operands]
        for result, shape_dtype in zip(results, shape_dtypes, strict=True):
            owner = _owner(result)
            if not (views and not hasattr(result, "base")) and not any([owner is x for x in owners]):
                self._add(owner, shape_dtype)

    def _add(self, owner: Any, shape_dtype: ShapeDtype) -> None:
        key, live, changes = id(owner), self._live, self.changes
        if key in live:
            return
        size = size_in_bytes((shape_dtype,))

        def freed(_: Any) -> None:  # called at any time in any thread, so it must not wait for a lock
            if live.pop(key, None) is not None:
                changes.append((perf_counter_ns(), -size))

        try:
            live[key] = weakref.ref(owner, freed)
        except TypeError:
            self.untracked += size
        else:
            changes.append((perf_counter_ns(), size))

    def close(self) -> None:
        """Stop tracking."""
        self._live.clear()

    def timeline(self) -> list[tuple[int, int]]:
        """The time of each change by `perf_counter_ns`, and the sum after it."""
        changes = sorted(self.changes[:], key=lambda change: change[0])
        sums = accumulate([size for _, size in changes])
        return [(when, total) for (when, _), total in zip(changes, sums, strict=True)]


def _owner(x: Any) -> Any:
    """The owner of a representation's memory: the end of the chain of `base`."""
    base = getattr(x, "base", None)
    while base is not None:
        x, base = base, getattr(base, "base", None)
    return x
