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

OTHER_PLACEMENT = (ValueError, TypeError)
"""The errors of a compiled computation for arrays that are placed otherwise than those it was compiled for."""


class Computation:
    """A program as one computation, a function of arrays; XLA compiles it at the first call.

    Donated inputs give their memory to results, if nobody else refers to their arrays.
    """

    def __init__(self, program: Program, backend: RawTensor[Any]) -> None:
        self._program, self._backend = program, backend
        self._donated = tuple(sorted(program.donated))
        self._compiled: dict[tuple[int, ...], Callable[..., Any]] = {}  # by the donated inputs that are free
        self._jitted: dict[tuple[int, ...], Any] = {}
        self._errors: list[Exception] = []  # of callbacks

    def __call__(self, xs: Sequence[Any]) -> Sequence[Any]:
        """The outputs, as arrays."""
        self._program.check_inputs(self._backend, xs, repeats=True)
        free = tuple([i for i in self._donated if _references(xs, i) <= _UNSHARED])
        results: Sequence[Any]
        if self._program.opaque:
            results = awaited(lambda: self._run(free, xs), self._errors)
            return results
        compiled = self._compiled.get(free)
        if compiled is None:
            compiled = self._compile(free, xs)
        try:
            results = compiled(*xs)
        except OTHER_PLACEMENT:
            return self._run(free, xs)
        return results

    def write_call(self, code: Any, inputs: Sequence[str]) -> Sequence[str] | None:
        """Write a call into a function that is generated; see `tensorken.programs.execution.Writable`."""
        compiled = self._compiled.get(())
        if compiled is None or self._donated or self._program.opaque:
            return None
        results: list[str] = code.variables(len(self._program.outputs))
        target, arguments = ", ".join(results), ", ".join(inputs)
        code.lines += [
            f"try: [{target}] = {code.constant(compiled)}({arguments})",
            f"except {code.constant(OTHER_PLACEMENT)}: [{target}] = {code.constant(self)}([{arguments}])",
        ]
        return results

    def _compile(self, free: tuple[int, ...], xs: Sequence[Any]) -> Callable[..., Any]:
        """The computation for arrays placed as these; a call of it need not enable 64 bits again, which takes time."""
        try:
            with jax.enable_x64(True):
                compiled: Callable[..., Any] = self._function(free).lower(*xs).compile()
        except ValueError as error:
            self._explain(error, xs)
            raise
        self._compiled[free] = compiled
        return compiled

    def _function(self, free: tuple[int, ...]) -> Any:
        """The program as a jitted function of JAX, which compiles again where it must, and takes these donations."""

        def trace(*xs: Any) -> tuple[Any, ...]:
            return tuple(self._program.replay(self._backend, xs))

        trace.__name__ = self._program.name  # for the profiles of XLA, and the names of cached computations
        if free not in self._jitted:
            self._jitted[free] = jax.jit(trace, donate_argnums=free)
        return self._jitted[free]

    def _run(self, free: tuple[int, ...], xs: Sequence[Any]) -> Sequence[Any]:
        """The outputs for arrays in any placement."""
        try:
            with jax.enable_x64(True):
                results: Sequence[Any] = self._function(free)(*xs)
        except ValueError as error:
            self._explain(error, xs)
            raise
        return results

    def _explain(self, error: ValueError, xs: Sequence[Any]) -> None:
        """Raise an error of one line if the operands are on different devices."""
        if "incompatible devices" in str(error):
            numbers = [tuple(sorted([device.id for device in x.devices()])) for x in xs]
            groups = " and ".join([str(list(ids)) for ids in dict.fromkeys(numbers)])
            raise BackendError(
                f"{self._program.name}: operands are on different devices, {groups}; place all of them alike "
                f"(tk.with_placement)"
            ) from error


def _references(arrays: Sequence[Any], i: int) -> int:
    return sys.getrefcount(arrays[i])


_UNSHARED = _references([object()], 0)
