"""The group "gloo": processes on one or several machines that exchange arrays by PyTorch's gloo."""

from __future__ import annotations

import atexit
import os
import socket
from collections.abc import Callable, Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any

import numpy as np

from tensorken.distributed import Group
from tensorken_core.errors import ArgumentError, GroupError
from tensorken_core.host.plugin import hookimpl

REDUCED = ("float32", "float64", "int32", "int64")
"""The dtypes that gloo reduces; arrays of others are gathered and reduced here."""


@hookimpl
def tensorken_group() -> tuple[str, Callable[..., Group]]:
    """The group "gloo"."""
    return "gloo", Gloo


class Gloo(Group):
    """Processes that exchange arrays by gloo, without PyTorch's global process group.

    Args:
        rank: the number of this process; None: the environment variable RANK, which torchrun sets.
        size: the number of processes; None: WORLD_SIZE.
        address: "host:port" of the process with rank 0; None: MASTER_ADDR and MASTER_PORT.
        interface: the network interface; None: the loopback for an address on this machine, else gloo's choice.
        timeout: the time in seconds that a process waits for the others.

    Raises:
        ArgumentError: if rank, size or address are not known, or do not fit.
        GroupError: if not all processes join in time.
    """

    def __init__(
        self,
        rank: int | None = None,
        size: int | None = None,
        address: str | None = None,
        *,
        interface: str | None = None,
        timeout: float = Group.timeout,
    ) -> None:
        self.rank = _number("rank", rank, "RANK")
        self.size = _number("size", size, "WORLD_SIZE")
        if not 0 <= self.rank < self.size:
            raise ArgumentError(f"gloo: rank must be from 0 to {self.size - 1}, got {self.rank}")
        self.timeout = timeout
        host, port = _host_and_port(address)
        self._torch = import_module("torch")
        self._distributed: Any = import_module("torch.distributed")
        distributed, wait = self._distributed, timedelta(seconds=timeout)
        try:
            store = distributed.TCPStore(host, port, self.size, self.rank == 0, wait)
            store.set(f"size {self.rank}", str(self.size))
            sizes = {i: int(store.get(f"size {i}")) for i in range(self.size)}
            options = distributed.ProcessGroupGloo._Options()
            options._timeout = wait
            if interface is None and host in ("localhost", "127.0.0.1", "::1"):
                known = {name for _, name in socket.if_nameindex()}
                interface = next((name for name in ("lo", "lo0") if name in known), None)
            if interface is not None:
                options._devices = [distributed.ProcessGroupGloo.create_device(interface=interface)]
            self._group: Any = distributed.ProcessGroupGloo(store, self.rank, self.size, options)
            atexit.register(self.close)
        except RuntimeError as error:
            cause = " ".join(str(error).split())
            raise GroupError(
                f"gloo: member {self.rank} of {self.size} did not meet all others at {host}:{port} within "
                f"{timeout:g} s: {cause:.200}"
            ) from error
        for other, size in sizes.items():
            if size != self.size:
                raise GroupError(
                    f"gloo: member {self.rank} expects {self.size} members, and member {other} expects {size}; start "
                    f"all with the same size"
                )

    def all_gather(self, x: Any) -> Any:
        result = np.empty((self.size, *x.shape), x.dtype)
        rows = [self._tensor(row) for row in result]
        self._group.allgather([rows], [self._tensor(x)]).wait()
        return result

    def all_reduce(self, x: Any, reduction: str) -> Any:
        if x.dtype.name not in REDUCED:
            return super().all_reduce(x, reduction)
        result = x.copy()
        options = self._distributed.AllreduceOptions()
        options.reduceOp = getattr(self._distributed.ReduceOp, reduction.upper())
        self._group.allreduce([self._tensor(result)], options).wait()
        return result

    def all_to_all(self, x: Any) -> Any:
        result = np.empty_like(x)
        self._group.alltoall_base(self._tensor(result), self._tensor(x), [], []).wait()
        return result

    def permute(self, x: Any, pairs: Sequence[tuple[int, int]]) -> Any:
        result = np.zeros_like(x)
        waiting = []
        for source, target in pairs:
            if source == target == self.rank:
                result[...] = x
            elif source == self.rank:
                waiting.append(self._group.send([self._tensor(x)], target, 0))
            elif target == self.rank:
                waiting.append(self._group.recv([self._tensor(result)], source, 0))
        for work in waiting:
            work.wait()
        return result

    def close(self) -> None:
        """Leave the group, and end its threads; without that PyTorch may abort the process at its end."""
        atexit.unregister(self.close)
        group, self._group = self._group, None
        if group is not None:
            group.shutdown()

    def _tensor(self, array: Any) -> Any:
        """A tensor of PyTorch that shares the memory of a numpy array; one of a copy if that is read-only."""
        flat = array.reshape(-1)
        return self._torch.from_numpy(flat if flat.flags.writeable else flat.copy())


def _number(name: str, value: int | None, variable: str) -> int:
    """The value; if it is None, that of an environment variable."""
    text = os.environ.get(variable) if value is None else value
    try:
        return int(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        found = "it is not set" if text is None else f"got {text!r:.40}"
        raise ArgumentError(
            f"gloo: {name} must be an int, {found}; pass {name}=, or set {variable}, as torchrun does"
        ) from None


def _host_and_port(address: str | None) -> tuple[str, int]:
    if address is None:
        address = f"{os.environ.get('MASTER_ADDR', '')}:{os.environ.get('MASTER_PORT', '')}"
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ArgumentError(
            f"gloo: address must be host:port of the process with rank 0, got {address!r:.60}; pass address=, or set "
            f"MASTER_ADDR and MASTER_PORT, as torchrun does"
        )
    return host.strip("[]"), int(port)
