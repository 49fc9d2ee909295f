"""map_reduce: a function of each shard, and its results combined in the order of the shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tensorken_core import tree
from tensorken_core.host.registry import REGISTRY
from tensorken_dask.computations import DISTRIBUTIONS, Computation, Packed, installed_versions


class AnyShards(Protocol):
    """The shards of some data: `Shards` on a cluster, or `InProcess`."""

    def prepare(self, computation: Computation) -> Callable[[Packed], Packed]:
        """A function from arguments to the combined results of all shards."""


def add(a: Any, b: Any) -> Any:
    """The sum of two trees of tensors or numbers.

    >>> add({"x": 1}, {"x": 2})
    {'x': 3}
    """
    return tree.map(lambda x, y: x + y, a, b)


def map_reduce(
    f: Callable[..., Any],
    shards: AnyShards,
    combine: Callable[[Any, Any], Any] = add,
    *,
    backend: str = "numpy",
) -> Callable[..., Any]:
    """A function from arguments to `combine(combine(f(shard 0, ...), f(shard 1, ...)), f(shard 2, ...))` and so on.

    f and combine must be pure: they run again if a worker dies.  f may be called in several threads at once.

    Args:
        f: from a shard, whose arrays are tensors of the backend, and the arguments to a tree of tensors and numbers.
        shards: `Shards` or `InProcess`.
        combine: from two results to one; the sum by default.
        backend: the name of the backend that workers compute on.

    Returns:
        A function from the arguments, trees of tensors and numbers, to the result, on the backend in use here.

    Raises:
        ClusterError: by the returned function, if the cluster has no workers or has lost its scheduler.

    >>> import tensorken as tk
    >>> from tensorken_dask import InProcess
    >>> largest = map_reduce(lambda x: x.max(), InProcess(lambda i: tk.arange(3) + i, 4), tk.maximum)
    >>> largest().item()
    5
    """
    run = shards.prepare(Computation(f, combine, backend, required_versions(backend)))

    def reduced(*arguments: Any) -> Any:
        return run(Packed.of(arguments)).unpack()

    return reduced


def required_versions(backend: str) -> Mapping[str, str | None]:
    """The versions that workers need: those of this process."""
    records = REGISTRY.find("backends", *backend.split("@"))
    return installed_versions([*DISTRIBUTIONS, *sorted({record.distribution for record in records})])
