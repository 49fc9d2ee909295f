"""Raw constants: move the constants of a program to the backend that the program is compiled for."""

from __future__ import annotations

from typing import Any

from tensorken.programs.passes.inlining import inline
from tensorken.programs.passes.inner_programs import with_inner_programs
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program
from tensorken_core.rewriting.wrapper import Wrapper
from tensorken_core.tensor.tensor import Tensor


def with_raw_constants(program: Program, backend: RawTensor[Any]) -> Program:
    """Replace constants of a wrapper such as Fuse, and of other backends, by constants of the backend itself.

    A program traced under a transform has its constants on the interpreter of the trace, as do the programs of
    its branches and loops.  A wrapper around the backend computes the value, without a copy; another backend copies it.
    """
    constants = {v: on_backend(x, backend) for v, x in program.constants.items()}
    if any([x is not program.constants[v] for v, x in constants.items()]):
        program = program.changed(constants=constants)
    return with_inner_programs(program, lambda inner: _inner(inner, backend))


def _inner(program: Program, backend: RawTensor[Any]) -> Program:
    """`with_raw_constants` of an inner program, cached; calls are inlined first, with their constants."""
    key = ("raw constants", backend)
    result: Program | None = program.derived.get(key)
    if result is None:
        result = with_raw_constants(inline(program), backend)
        if result is not program:  # else the program would refer to itself
            program.derived[key] = result
    return result


def on_backend(x: Tensor, backend: RawTensor[Any]) -> Tensor:
    """The constant on the backend; as it is, if it is on the interpreter of a trace."""
    interpreter: Any = x.interpreter
    if interpreter is backend or interpreter.below is not None:
        return x
    value = x.representation
    while interpreter is not backend and isinstance(interpreter, Wrapper):
        interpreter, value = interpreter.raw, interpreter.value(value)
    if interpreter is not backend:
        value = backend.new(x.shape, interpreter.ravel(value), x.dtype)
    return Tensor(backend, value, x.shape, x.dtype)
