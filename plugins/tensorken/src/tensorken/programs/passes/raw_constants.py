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

    A program traced under a transform has its constants on the interpreter of that trace, and so have the programs of
    its branches and loops.  A wrapper around the backend computes the value, without a copy; another backend copies it.
    """
    constants = {v: _on_backend(x, backend) for v, x in program.constants.items()}
    if any([x is not program.constants[v] for v, x in constants.items()]):
        program = program.changed(constants=constants)
    return with_inner_programs(program, lambda inner: _inner(inner, backend))


def _inner(program: Program, backend: RawTensor[Any]) -> Program:
    """The same of an inner program, made once; inlined, as an inlined call brings constants of its own."""
    key = ("raw constants", backend)
    found: Program | None = program.derived.get(key)
    if found is None:
        found = with_raw_constants(inline(program), backend)
        if found is not program:  # else it would refer to itself
            program.derived[key] = found
    return found


def _on_backend(x: Tensor, backend: RawTensor[Any]) -> Tensor:
    place: Any = x.interpreter
    if place is backend or place.below is not None:
        return x
    value = x.representation
    while place is not backend and isinstance(place, Wrapper):
        place, value = place.raw, place.value(value)
    if place is not backend:
        value = backend.new(x.shape, place.ravel(value), x.dtype)
    return Tensor(backend, value, x.shape, x.dtype)
