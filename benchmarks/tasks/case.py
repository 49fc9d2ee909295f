"""Benchmark cases, their table, and random inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Task = Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]
"""A function from a library to the function to run, and its arguments as numpy arrays."""

CASES: dict[str, Case] = {}
BOTH = ("traced", "eager")


@dataclass(frozen=True, slots=True)
class Case:
    """A task with its suites, and the tolerance of its results relative to the largest number.

    A training step returns new values of its donated arguments, with which it is repeated; its other results are
    compared.
    """

    name: str
    make: Task
    tolerance: float
    suites: tuple[str, ...]
    donates: tuple[int, ...]


def task(
    name: str, tolerance: float = 1e-4, suites: tuple[str, ...] = ("traced",), donates: tuple[int, ...] = ()
) -> Callable[[Task], Task]:
    """Register a task."""

    def register(make: Task) -> Task:
        CASES[name] = Case(name, make, tolerance, suites, donates)
        return make

    return register


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    """Normal float32 numbers."""
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32)


def random_integers(below: int, *shape: int, seed: int) -> Any:
    """Uniform int32 numbers from 0 to `below` - 1."""
    return np.random.default_rng(seed).integers(0, below, shape).astype(np.int32)
