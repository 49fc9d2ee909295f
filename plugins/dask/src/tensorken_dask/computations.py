"""Functions of a shard as they run in a process: on a backend, from and to arrays of numpy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np

import tensorken as tk
from tensorken import Tensor
from tensorken_core import tree
from tensorken_dask.errors import ClusterError

DISTRIBUTIONS = ("tensorken", "tensorken-core", "tensorken-dask", "numpy")
"""The distributions whose versions must agree in all processes."""


def to_arrays(data: Any) -> Any:
    """A tree with numpy arrays in place of tensors.

    >>> to_arrays({"x": tk.tensor([1.0, 2.0])})
    {'x': array([1., 2.], dtype=float32)}
    """
    return tree.map(lambda x: np.asarray(x) if isinstance(x, Tensor) else x, data)


def to_tensors(data: Any) -> Any:
    """A tree with tensors on the backend in use in place of numpy arrays.

    >>> to_tensors([np.array([True, False]), 3])
    [tensor([True, False], dtype=bool), 3]
    """
    return tree.map(lambda x: tk.asarray(x) if isinstance(x, np.ndarray) else x, data)


class LoadedShard:
    """A loaded shard.  Its arrays are placed on a backend once in each process; they alone are pickled."""

    def __init__(self, arrays: Any) -> None:
        self.arrays = arrays
        self._placed: dict[str, Any] = {}

    def on(self, backend: str) -> Any:
        """The shard with its arrays as tensors of a backend, which is in use."""
        if backend not in self._placed:
            self._placed[backend] = to_tensors(self.arrays)
        return self._placed[backend]

    def __reduce__(self) -> tuple[Any, ...]:
        return LoadedShard, (self.arrays,)


def load_shard(load: Callable[[int], Any], number: int, backend: str) -> LoadedShard:
    """Load a shard."""
    with tk.use_backend(backend):
        return LoadedShard(to_arrays(load(number)))


class Computation:
    """A function of a shard and further arguments, on a backend, and the function that combines two of its results.

    Args:
        function: from a shard and trees of tensors to a tree of tensors.
        combine: from two results to one.
        backend: the name of the backend.
        versions: by distribution, which all processes must have.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        backend: str,
        versions: Mapping[str, str | None],
    ) -> None:
        self.function = function
        self.combine = combine
        self.backend = backend
        self.versions = versions

    def apply(self, shard: LoadedShard, arguments: Any) -> Any:
        """The result of one shard, in numpy arrays."""
        self._check_versions()
        with tk.use_backend(self.backend):
            return to_arrays(self.function(shard.on(self.backend), *to_tensors(arguments)))

    def reduce(self, results: Sequence[Any]) -> Any:
        """The results of all shards, combined in their order; in numpy arrays."""
        with tk.use_backend(self.backend):
            return to_arrays(functools.reduce(self.combine, map(to_tensors, results)))

    def _check_versions(self) -> None:
        check_versions("a worker", self.versions, _installed_versions(tuple(self.versions)))


def installed_versions(distributions: Sequence[str]) -> dict[str, str | None]:
    """The versions of these distributions in this process; None if a distribution is not installed.

    >>> installed_versions(["tensorken-of-atlantis"])
    {'tensorken-of-atlantis': None}
    """
    found: dict[str, str | None] = {}
    for name in distributions:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


_installed_versions = functools.lru_cache(installed_versions)


def check_versions(worker: str, expected: Mapping[str, str | None], found: Mapping[str, str | None]) -> None:
    """Compare the versions of a worker with those of the driver.

    Raises:
        ClusterError: if one differs.

    >>> check_versions("a worker", {"numpy": "2.1"}, {"numpy": None})
    Traceback (most recent call last):
    tensorken_dask.errors.ClusterError: a worker lacks numpy, need 2.1 as here; install the same versions on all workers
    """
    for name, version in expected.items():
        if found.get(name) != version:
            other = f"has {name} {found[name]}" if found.get(name) else f"lacks {name}"
            need = f"need {version} as here" if version else "which is not installed here"
            raise ClusterError(f"{worker} {other}, {need}; install the same versions on all workers")
