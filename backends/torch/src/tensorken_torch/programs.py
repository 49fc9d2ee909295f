"""Compiled programs: a graph of `torch.fx` for each set of inputs whose memory may be overwritten."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from tensorken.programs.passes.inlining import inline
from tensorken_core.program.program import Equation, Program
from tensorken_torch import control_flow
from tensorken_torch.graph import GraphBuilder

Function = Callable[..., Sequence[Tensor]]


class Compiled:
    """A function from the inputs of a program to its outputs."""

    def __init__(self, program: Program, backend: Any) -> None:
        self.program, self.backend = program, backend
        self._donated = tuple(sorted(program.donated))
        self._functions: dict[frozenset[int], tuple[Function, list[Tensor]]] = {}

    def __call__(self, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        free = _NONE
        if self._donated and all([_is_free(inputs, i) for i in self._donated]):
            free = self.program.donated
        made = self._functions.get(free)
        if made is None:
            made = self._functions[free] = self._make(free)
        function, constants = made
        return function(*inputs, *constants)

    def _make(self, free: frozenset[int]) -> tuple[Function, list[Tensor]]:
        blocks = self.backend.device.type == "cpu"
        builder = GraphBuilder(self.program, self.backend, free, self._run_program, blocks=blocks)
        module = fx.GraphModule(torch.nn.Module(), builder.build(), "Program")
        return module.forward, builder.constants

    def _run_program(self, equation: Equation) -> Function:
        """A function that runs a loop or a branch."""
        loop, branches = equation.loop, equation.branches
        if branches is not None:
            return control_flow.branch(*[self._inner(program) for program in branches])
        if loop is not None:
            condition = None if loop.condition is None else self._inner(loop.condition)
            stacks = [equation.results[i] for i, _ in loop.stacked]
            empty = [self.backend.full(v.shape, 0, v.dtype) for v in stacks]
            return control_flow.loop(loop, condition, self._inner(loop.body), empty)

        def interpret(*operands: Tensor) -> Any:
            return self.backend.interpret(equation.op, operands, equation.params)

        return interpret

    def _inner(self, program: Program) -> Compiled:
        return Compiled(inline(program), self.backend)

    def texts(self) -> Mapping[str, Callable[[], str]]:
        """The functions of the graph as Python."""
        return {"torch": self._text}

    def _text(self) -> str:
        builder = GraphBuilder(self.program, self.backend, self.program.donated, self._run_program)
        return builder.build().python_code("self").src

    def kernels(self) -> Sequence[Any]:
        """None: a kernel is what torch makes of a node."""
        return ()


_NONE: frozenset[int] = frozenset()


def _is_free(inputs: Sequence[Tensor], i: int) -> bool:
    """Whether nothing else refers to the memory of an input, which torch has allocated."""
    storage = inputs[i].untyped_storage()
    return (
        sys.getrefcount(inputs[i]) <= _UNSHARED
        and torch._C._storage_Use_Count(storage._cdata) == _UNSHARED_STORAGE
        and storage.resizable()
        and not inputs[i].is_inference()
    )


_UNSHARED, _UNSHARED_STORAGE = 3, 2
