"""A task, the table of them, and the numbers that they begin with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Task = Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]
"""From a library to a function to be compiled, and its arguments as numpy arrays."""

entered: dict[str, Case] = {}
BOTH = ("traced", "eager")


@dataclass(frozen=True, slots=True)
class Case:
    """A task, the suites that it is in, and how near two libraries' results must be, as part of the largest number.

    A step gives back what it takes, the donated arguments, and is repeated on that; what it gives besides is compared.
    """

    name: str
    make: Task
    tolerance: float
    suites: tuple[str, ...]
    donates: tuple[int, ...]


def task(
    name: str, tolerance: float = 1e-4, suites: tuple[str, ...] = ("traced",), donates: tuple[int, ...] = ()
) -> Callable[[Task], Task]:
    """Enter a task into the table."""

    def enter(make: Task) -> Task:
        entered[name] = Case(name, make, tolerance, suites, donates)
        return make

    return enter


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    """Numbers in float32."""
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32)


def drawn(below: int, *shape: int, seed: int) -> Any:
    """Integers from 0 up, in int32."""
    return np.random.default_rng(seed).integers(0, below, shape).astype(np.int32)
