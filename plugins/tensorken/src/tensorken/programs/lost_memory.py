"""Caches of values in the memory of a device, which must forget them when a backend has lost that memory."""

from __future__ import annotations

from typing import Protocol
from weakref import WeakSet


class ForgetsMemory(Protocol):
    """A cache of values, or of programs with constants."""

    def forget_memory(self) -> None:
        """Drop all values that were computed."""
        ...


CACHES: WeakSet[ForgetsMemory] = WeakSet()
"""The caches in use."""


def forget_memory() -> None:
    """Drop the values in all caches: a backend calls this when it has lost its memory, and can be used again."""
    for cache in list(CACHES):
        cache.forget_memory()
