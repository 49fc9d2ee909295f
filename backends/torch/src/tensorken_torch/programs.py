"""Compiled programs: a graph of `torch.fx` for each set of inputs whose memory may be overwritten."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from tensorken.programs.passes.inlining import inline
from tensorken_core.host.variables import choice
from tensorken_core.program.program import Equation, Program
from tensorken_torch import control_flow
from tensorken_torch.graph import GraphBuilder

VARIABLE = "TENSORKEN_TORCH_COMPILE"
"""The environment variable with the mode of `torch.compile`."""

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

Function = Callable[..., Sequence[Tensor]]


def compile_mode() -> str | None:
    """The mode of `torch.compile` that the environment asks for; None if programs run as they are.

    Raises:
        SettingError: if torch has no such mode.
    """
    return choice(VARIABLE, *MODES) or None


class Compiled:
    """A function from the inputs of a program to its outputs.

    Attributes:
        compile_seconds: the time of the calls in which `torch.compile` compiled.
    """

    def __init__(self, program: Program, backend: Any) -> None:
        self.program, self.backend = program, backend
        self.mode = compile_mode()
        self.compile_seconds = 0.0
        self._donated = tuple(sorted(program.donated))
        self._functions: dict[frozenset[int], tuple[Function, list[Tensor]]] = {}

    def __call__(self, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        self.program.check_inputs(self.backend, inputs, repeats=True)
        free = _NONE
        if self._donated and all([_is_free(inputs, i) for i in self._donated]):
            free = self.program.donated
        made = self._functions.get(free)
        if made is None:
            return self._first_call(free, inputs)
        function, constants = made
        return function(*inputs, *constants)

    def _first_call(self, free: frozenset[int], inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        builder = self._builder(free)
        module = fx.GraphModule(torch.nn.Module(), builder.build(), "Program")
        function: Any = module.forward
        if self.mode is not None:
            function = torch.compile(module, mode=self.mode, dynamic=False)
        begin = time.perf_counter()
        results: Sequence[Tensor] = function(*inputs, *builder.constants)
        if self.mode is not None:
            self.compile_seconds += time.perf_counter() - begin
        self._functions[free] = function, builder.constants
        return results

    def _builder(self, free: frozenset[int]) -> GraphBuilder:
        blocks = self.mode is None and self.backend.device.type == "cpu"
        return GraphBuilder(self.program, self.backend, free, self._run_program, blocks=blocks)

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
        """The graph as a function in Python, with the time that `torch.compile` took."""
        return {"torch": self._text}

    def _text(self) -> str:
        code: str = self._builder(self.program.donated).build().python_code("self").src
        if self.mode is None:
            return code.strip()
        return f"# torch.compile, mode {self.mode!r}: {self.compile_seconds:.1f} s\n{code.strip()}"

    def kernels(self) -> Sequence[Any]:
        """None: torch decides what a kernel is."""
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


def _references() -> tuple[int, int]:
    """The numbers of references to a tensor, and to its memory, that nothing else refers to."""
    inputs = [torch.empty(1, device="cpu")]
    storage = inputs[0].untyped_storage()
    return sys.getrefcount(inputs[0]), torch._C._storage_Use_Count(storage._cdata)


_UNSHARED, _UNSHARED_STORAGE = _references()
