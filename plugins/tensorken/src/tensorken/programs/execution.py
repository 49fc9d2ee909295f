"""Execution: run a program on a backend, compiled by a plugin or by the backend, else op by op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken.programs.passes.inlining import inline
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.host.loading import Run
from tensorken_core.host.registry import REGISTRY
from tensorken_core.language.observe import OBSERVERS, notify, unobserved
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program
from tensorken_core.rewriting.wrapper import Wrapper
from tensorken_core.tensor.tensor import Tensor


def prepared(program: Program, backend: RawTensor[Any]) -> Run:
    """A function that runs the program on a backend; made once.  Observers see each run as one op, PROGRAM."""
    if OBSERVERS:
        return lambda xs: notify(_run, backend, PROGRAM, xs, (program,))
    return runner(program, backend)


def runner(program: Program, backend: RawTensor[Any]) -> Run:
    """The same function, unobserved."""
    return program.once(("run", backend), lambda: _prepare(program, backend))


def _run(backend: RawTensor[Any], _: Op, xs: Sequence[Any], params: tuple[Any, ...]) -> Sequence[Any]:
    return runner(params[0], backend)(xs)


PROGRAM = Op(
    "program",
    None,
    shape=lambda *args: tuple([v.shape for v in args[-1].outputs]),
    dtype=lambda *args: tuple([v.dtype for v in args[-1].outputs]),
    params=("program",),
    results=None,
)
"""A run of a prepared program, as observers see it; no interpreter runs this op."""


def _prepare(program: Program, backend: RawTensor[Any]) -> Run:
    with unobserved():
        run = compiled(program, backend)
    if run is not None:
        return run
    flat = inline(program)
    return lambda xs: flat.replay(backend, xs)


def compiled(program: Program, backend: RawTensor[Any]) -> Run | None:
    """The program compiled by a plugin's compiler, or else by the backend; None if neither compiles it."""
    if isinstance(backend, Wrapper):
        below = compiled(_unwrapped(program, backend), backend.raw)
        if below is None:
            return None
        around: Run = backend.wrap_program(below, [v.shape for v in program.outputs], program.donated)
        return around
    of_plugins = REGISTRY.compiler()
    if of_plugins is None and type(backend).compile is RawTensor.compile:
        return None
    program = optimised(program, backend)
    run = of_plugins(program, backend) if of_plugins is not None else None
    return backend.compile(program) if run is None else run


def _unwrapped(program: Program, wrapper: Wrapper[Any]) -> Program:
    """The program with its constants on the backend below a wrapper."""
    raw = wrapper.raw
    constants = {
        v: Tensor(raw, wrapper.value(program.outside(v, wrapper)), v.shape, v.dtype)
        for v in program.constants
    }
    return program.changed(constants=constants)
