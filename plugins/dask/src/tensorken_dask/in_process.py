"""Shards in this process, without a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken_core.errors import ArgumentError
from tensorken_dask.computations import Computation, LoadedShard, Packed, load_shard


class InProcess:
    """Data in shards, in this process: results have the same bits as on a cluster.

    Args:
        load: from the number of a shard to its data, a tree of tensors or arrays; called once for each shard.
        count: the number of shards.

    Raises:
        ArgumentError: if `count` is not positive.

    >>> import tensorken as tk
    >>> from tensorken_dask import map_reduce
    >>> map_reduce(lambda x: x.sum(), InProcess(lambda i: tk.full(2, float(i)), 3))().item()
    6.0
    """

    def __init__(self, load: Callable[[int], Any], count: int) -> None:
        check_count("InProcess", count)
        self.load = load
        self.count = count

    def prepare(self, computation: Computation) -> Callable[[Packed], Packed]:
        """A function from arguments to the combined results of all shards."""
        shards: list[LoadedShard] = []

        def run(arguments: Packed) -> Packed:
            if not shards:
                shards.extend([load_shard(self.load, i, computation.backend) for i in range(self.count)])
            return computation.reduce([computation.apply(shard, arguments) for shard in shards])

        return run


def check_count(name: str, count: int) -> None:
    """Raise an ArgumentError unless the number of shards is positive."""
    if count < 1:
        raise ArgumentError(f"{name}: need one shard or more, got {count}")
