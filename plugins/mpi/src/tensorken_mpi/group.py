"""The group "mpi": the processes of an MPI job, which `mpirun -n 4 python program.py` starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tensorken.distributed import Group
from tensorken_core.errors import GroupError
from tensorken_core.host.plugin import hookimpl

FIRST_PAUSE, LONGEST_PAUSE = 1e-6, 1e-3
"""How long, in seconds, a member sleeps between two looks at a request."""


@hookimpl
def tensorken_group() -> tuple[str, Callable[..., Group]]:
    """The group "mpi"."""
    return "mpi", MPIGroup


class MPIGroup(Group):
    """The processes of an MPI communicator.

    MPI ends the whole job if a process dies, unless it is told otherwise.

    Args:
        communicator: of mpi4py; None: a copy of the one of all processes.
        timeout: the time in seconds that a process waits for the others.

    Raises:
        GroupError: if there is no MPI library.
    """

    def __init__(self, communicator: Any = None, *, timeout: float = Group.timeout) -> None:
        try:
            self._mpi = import_module("mpi4py.MPI")
        except (ImportError, RuntimeError) as error:
            cause = " ".join(str(error).split())
            raise GroupError(
                f"mpi: no MPI library can be loaded: {cause:.200}; install openmpi or mpich"
            ) from error
        self._communicator = self._mpi.COMM_WORLD.Dup() if communicator is None else communicator
        self.rank = self._communicator.Get_rank()
        self.size = self._communicator.Get_size()
        self.timeout = timeout

    def all_gather(self, x: Any) -> Any:
        result = np.empty((self.size, *x.shape), x.dtype)
        self._wait(self._communicator.Iallgather(_bytes(x), _bytes(result)))
        return result

    def all_reduce(self, x: Any, reduction: str) -> Any:
        if x.dtype.kind not in "fi" or x.dtype.itemsize < 4:
            return super().all_reduce(x, reduction)
        result = np.empty_like(x)
        op = getattr(self._mpi, reduction.upper())
        self._wait(self._communicator.Iallreduce(x.reshape(-1), result.reshape(-1), op))
        return result

    def all_to_all(self, x: Any) -> Any:
        result = np.empty_like(x)
        self._wait(self._communicator.Ialltoall(_bytes(x), _bytes(result)))
        return result

    def permute(self, x: Any, pairs: Sequence[tuple[int, int]]) -> Any:
        result = np.zeros_like(x)
        requests = []
        for source, target in pairs:
            if target == self.rank:
                requests.append(self._communicator.Irecv(_bytes(result), source))
            if source == self.rank:
                requests.append(self._communicator.Isend(_bytes(x), target))
        for request in requests:
            self._wait(request)
        return result

    def _wait(self, request: Any) -> None:
        """Wait for a request; other threads of Python run meanwhile.

        Raises:
            TimeoutError: after `timeout`.
        """
        end, pause = time.monotonic() + self.timeout, FIRST_PAUSE
        while not request.Test():
            if time.monotonic() > end:
                raise TimeoutError("the other processes did not answer")
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def _bytes(x: Any) -> Any:
    """The memory of an array in C order."""
    return x.reshape(-1).view(np.uint8)
