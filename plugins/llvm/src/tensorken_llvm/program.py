"""Programs as machine code: kernels in one function, with calls of the backend's ops between."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from tensorken.programs.passes.pipeline import optimised
from tensorken_core.language.op import run
from tensorken_llvm import threads
from tensorken_llvm.blas import find_blas
from tensorken_llvm.control_flow import Plans
from tensorken_llvm.dtypes import NUMPY
from tensorken_llvm.entry import method, write_entry
from tensorken_llvm.machine import compile_module, target_machine
from tensorken_llvm.plans import Kernel, Plan
from tensorken_llvm.target import Expanded
from tensorken_numpy.compiled.memory import CACHE_LINE
from tensorken_numpy.compiled.results import LARGEST, SMALLEST, ResultPool, has_reference_counts

if TYPE_CHECKING:
    from tensorken_core.language.raw import RawTensor
    from tensorken_core.program.program import Equation, Program, Variable

EXPANDED = Expanded()

MIN_UNLOCKED = 2**15
"""From this many elements on other Python threads run meanwhile: releasing the lock costs as much as some hundred."""


def compiled(program: Program, backend: RawTensor[Any]) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """The machine code of a program; None if no kernel would compute any of it."""
    found = Plans(backend, find_blas()).plan(optimised(program, EXPANDED))
    return MachineProgram(found, backend) if found.has_code else None


class MachineProgram:
    """A program whose kernels are machine code.

    The inputs, the constants, the results and those of called ops are arrays; the arena is one more.

    Args:
        plan: of the program.
        backend: runs the other ops.
    """

    def __init__(self, plan: Plan, backend: RawTensor[Any]) -> None:
        self._backend = backend
        self._plan = plan
        self._constants = [
            np.ascontiguousarray(program.outside(v, backend)).reshape(v.shape)
            for v, program in plan.constants.items()
        ]
        arrays = [*plan.program.inputs, *plan.constants, *plan.results, *plan.called]
        self._numbers = {v: i for i, v in reversed([*enumerate(arrays)])}
        self._called_from = len(arrays) - len(plan.called)
        self._count = len(arrays)
        self._outputs = [
            (self._numbers[kept], v.shape, kept.shape != v.shape)
            for v, kept in zip(plan.program.outputs, plan.lowered.outputs, strict=True)
        ]
        self._segments = self._compiled()
        self._idle: list[Any] = []

    # ---- code ----------------------------------------------------------------------------------------------

    def _compiled(self) -> list[Callable[..., Any] | Equation]:
        """What runs, in order: entries of consecutive kernels, and called ops."""
        module = ir.Module("program")
        module.triple = target_machine().triple
        found: list[Any] = []
        pending: list[Kernel] = []
        names: list[str] = []

        def flush() -> None:
            if pending:
                names.append(f"entry{len(names)}")
                self._write_entry(module, names[-1], list(pending))
                found.append(names[-1])
                pending.clear()

        for step in self._plan.steps:
            if isinstance(step, Kernel):
                pending.append(step)
            else:
                flush()
                found.append(step)
        flush()
        if threads.RUN in module.globals:
            threads.start()
        library = compile_module(module, names)
        return [method(library.addresses[x], library) if isinstance(x, str) else x for x in found]

    def _write_entry(self, module: ir.Module, name: str, kernels: Sequence[Kernel]) -> None:
        used = [self._numbers[v] for kernel in kernels for v in kernel.reads if v in self._numbers]
        checked = sorted({i for i in used if i < len(self._plan.program.inputs) or i >= self._called_from})

        def body(b: Any, pointer: Any) -> None:
            self._plan.write(b, kernels, lambda v: pointer(self._numbers[v]), pointer(self._count))

        work = sum([kernel.computes.work for kernel in kernels])
        write_entry(module, name, checked, work >= MIN_UNLOCKED, body)

    # ---- calls ---------------------------------------------------------------------------------------------

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs, as arrays."""
        try:
            instance = self._idle.pop()
        except IndexError:
            instance = self._instance()
        makers, arena = instance
        results = [make() for make in makers]
        arrays = [*inputs, *self._constants, *results, *[None] * (self._count - self._called_from), arena]
        for segment in self._segments:
            if callable(segment):
                if segment(*arrays) is not arena:
                    arrays[:-1] = [
                        x if x is None else np.require(x, requirements=["C", "A", "E"]) for x in arrays[:-1]
                    ]
                    segment(*arrays)
            else:
                self._call(segment, arrays)
        self._idle.append(instance)
        return [
            arrays[i].reshape(shape) if is_reshaped else arrays[i] for i, shape, is_reshaped in self._outputs
        ]

    def _instance(self) -> tuple[list[Callable[[], Any]], Any]:
        """What one call at a time uses: makers of the result arrays, and the memory of all other values."""
        makers: list[Callable[[], Any]] = []
        for v in self._plan.results:
            dtype = NUMPY[v.dtype.name]
            if SMALLEST <= prod(v.shape) * dtype.itemsize <= LARGEST and has_reference_counts():
                makers.append(ResultPool(v.shape, dtype).take)
            else:
                makers.append(functools.partial(np.empty, v.shape, dtype))
        memory = np.empty(self._plan.arena_size + CACHE_LINE, np.uint8)
        return makers, memory[-memory.ctypes.data % CACHE_LINE :]

    def _call(self, equation: Equation, arrays: list[Any]) -> None:
        """Run an op of the backend."""

        def operand(x: Variable) -> Any:
            value = getattr(x, "value", None)
            if value is not None:
                return self._backend.full(x.shape, value, x.dtype)
            root = self._plan.root(x)
            if root in self._numbers:
                return arrays[self._numbers[root]].reshape(x.shape)
            region, dtype = self._plan.regions[root], NUMPY[x.dtype.name]
            size = prod(x.shape) * dtype.itemsize
            return arrays[-1][region.offset : region.offset + size].view(dtype).reshape(x.shape)

        operands = [operand(x) for x in equation.operands]
        found = run(self._backend, equation.op, operands, equation.params)
        for v, y in zip(equation.results, [found] if equation.op.results == 1 else found, strict=True):
            if np.may_share_memory(y, arrays[-1]):
                y = y.copy()
            arrays[self._numbers[v]] = np.asarray(
                y
            )  # numpy's functions return scalars in place of 0-d arrays
