"""Programs as computations of XLA."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax

from tensorken_core.errors import BackendError
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program
from tensorken_jax.callbacks import awaited


def compiled(program: Program, backend: RawTensor[Any]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A function of arrays that runs the program as one computation; XLA compiles it at the first call.

    Donated inputs give their memory to results, if nobody else refers to their arrays.
    """

    def trace(*xs: Any) -> tuple[Any, ...]:
        return tuple(program.replay(backend, xs))

    runs: dict[tuple[int, ...], Any] = {}
    errors: list[Exception] = []
    donated = tuple(sorted(program.donated))

    def call(xs: Sequence[Any]) -> Sequence[Any]:
        free = tuple([i for i in donated if _references(xs, i) <= _UNSHARED])
        if free not in runs:
            runs[free] = jax.jit(trace, donate_argnums=free)
        run = runs[free]
        try:
            with jax.enable_x64(True):
                results: Sequence[Any] = awaited(lambda: run(*xs), errors) if program.opaque else run(*xs)
        except ValueError as error:
            if "incompatible devices" not in str(error):
                raise
            raise BackendError(
                f"{program.name}: operands are on different devices, {_devices(xs)}; place all of them alike "
                f"(tk.with_placement)"
            ) from error
        return results

    return call


def _devices(xs: Sequence[Any]) -> str:
    """The numbers of the devices of each array, without repetitions."""
    numbers = [tuple(sorted([device.id for device in x.devices()])) for x in xs]
    return " and ".join([str(list(ids)) for ids in dict.fromkeys(numbers)])


def _references(arrays: Sequence[Any], i: int) -> int:
    return sys.getrefcount(arrays[i])


_UNSHARED = _references([object()], 0)
