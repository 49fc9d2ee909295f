"""Functions of a shard as they run in a process: on a backend, from and to arrays of numpy."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import cloudpickle
import numpy as np

import tensorken as tk
from tensorken import Tensor
from tensorken_core import tree
from tensorken_dask.errors import ClusterError

DISTRIBUTIONS = ("tensorken", "tensorken-core", "tensorken-dask", "numpy")
"""The distributions whose versions must agree in all processes."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A tree to send to another process: its arrays, and all else in bytes, which dask's scheduler need not read.

    >>> packed = Packed.of({"x": tk.tensor([1.0, 2.0]), "y": 3})
    >>> packed.arrays
    [array([1., 2.], dtype=float32)]
    >>> unpacked = packed.unpack()
    >>> unpacked["x"].tolist(), unpacked["y"]
    ([1.0, 2.0], 3)
    """

    arrays: list[Any]
    rest: bytes  # the structure of the tree, and its leaves with None in place of arrays

    @classmethod
    def of(cls, data: Any) -> Packed:
        """A tree of tensors, arrays and any other leaves."""
        leaves, structure = tree.flatten(data)
        arrays = [np.asarray(x) for x in leaves if isinstance(x, _ARRAYS)]
        others = [(isinstance(x, _ARRAYS), None if isinstance(x, _ARRAYS) else x) for x in leaves]
        return cls(arrays, cloudpickle.dumps((structure, others)))

    def unpack(self) -> Any:
        """The tree, with its arrays as tensors on the backend in use."""
        structure, others = pickle.loads(self.rest)
        arrays = iter(self.arrays)
        return tree.unflatten(
            structure, [tk.asarray(next(arrays)) if is_array else x for is_array, x in others]
        )


_ARRAYS = (Tensor, np.ndarray)


class LoadedShard:
    """A loaded shard.  Its arrays are placed on a backend once in each process; they alone are pickled."""

    def __init__(self, data: Packed) -> None:
        self.data = data
        self._placed: dict[str, Any] = {}

    def on(self, backend: str) -> Any:
        """The shard with its arrays as tensors of a backend, which is in use."""
        if backend not in self._placed:
            self._placed[backend] = self.data.unpack()
        return self._placed[backend]

    def __reduce__(self) -> tuple[Any, ...]:
        return LoadedShard, (self.data,)


def load_shard(load: Callable[[int], Any], number: int, backend: str) -> LoadedShard:
    """Load a shard."""
    with tk.use_backend(backend):
        return LoadedShard(Packed.of(load(number)))


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

    def apply(self, shard: LoadedShard, arguments: Packed) -> Packed:
        """The result of one shard."""
        self._check_versions()
        with tk.use_backend(self.backend):
            return Packed.of(self.function(shard.on(self.backend), *arguments.unpack()))

    def reduce(self, results: Sequence[Packed]) -> Packed:
        """The results of all shards, combined in their order."""
        with tk.use_backend(self.backend):
            return Packed.of(functools.reduce(self.combine, [result.unpack() for result in results]))

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
    tensorken_dask.errors.ClusterError: a worker lacks numpy, need 2.1 as here; install the same versions everywhere
    """
    for name, version in expected.items():
        if found.get(name) != version:
            other = f"has {name} {found[name]}" if found.get(name) else f"lacks {name}"
            need = f"need {version} as here" if version else "which is not installed here"
            raise ClusterError(f"{worker} {other}, {need}; install the same versions everywhere")
