"""Programs as machine code: kernels in one function, with calls of the backend's ops between."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from tensorken.kernels.lowering import Lowered, lower
from tensorken.kernels.nests import FusionGroup
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.language.op import run
from tensorken_llvm.blas import find_blas
from tensorken_llvm.dtypes import BYTE, NUMPY, index_number
from tensorken_llvm.entry import method, write_entry
from tensorken_llvm.machine import compile_module, target_machine
from tensorken_llvm.nests import operands_of, write_kernel
from tensorken_llvm.products import MatrixProduct, matrix_products, with_matrices_last
from tensorken_llvm.target import CpuTarget, Expanded
from tensorken_numpy.compiled.memory import CACHE_LINE, Planner
from tensorken_numpy.compiled.results import LARGEST, SMALLEST, ResultPool, has_reference_counts

if TYPE_CHECKING:
    from tensorken_core.language.raw import RawTensor
    from tensorken_core.program.program import Equation, Program, Variable

EXPANDED = Expanded()

MIN_UNLOCKED = 2**15
"""From this many elements on other Python threads run meanwhile: releasing the lock costs as much as some hundred."""


def compiled(program: Program, backend: RawTensor[Any]) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """The machine code of a program; None if no kernel would compute any of it."""
    program = optimised(program, EXPANDED)
    blas = find_blas()
    if blas is not None:
        program = with_matrices_last(program, backend, blas)
    target = CpuTarget({} if blas is None else matrix_products(program, blas))
    lowered = lower(program, target)
    if not any([target.has_code(lowered.producers[group.values[0]]) for group in lowered.groups]):
        return None
    return MachineProgram(program, lowered, target, backend)


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A kernel, or a product of matrices by BLAS.

    Attributes:
        computes: what it computes.
        reads: the values that it reads.
        writes: the values that it writes.
    """

    computes: FusionGroup | MatrixProduct
    reads: Sequence[Variable]
    writes: Sequence[Variable]


class MachineProgram:
    """A program whose kernels are machine code.

    The values in memory are the inputs, the constants, the results and those of called ops, which are arrays; and all
    others, which are regions of one array, planned by their lifetimes.

    Args:
        program: in ops that kernels compute or the backend has.
        lowered: the program as fusion groups.
        target: of the lowering.
        backend: runs the other ops.
    """

    def __init__(
        self, program: Program, lowered: Lowered, target: CpuTarget, backend: RawTensor[Any]
    ) -> None:
        self._backend = backend
        self._lowered = lowered
        self._target = target
        self._inputs = program.inputs
        self._steps = [self._step(group) for group in lowered.groups]
        self._place(program)
        self._constants = [
            np.ascontiguousarray(program.outside(v, backend)).reshape(v.shape) for v in self._constant_values
        ]
        self._outputs = [
            (self._numbers[kept], v.shape, kept.shape != v.shape)
            for v, kept in zip(program.outputs, lowered.outputs, strict=True)
        ]
        self._segments = self._compiled()
        self._idle: list[Any] = []

    def _step(self, group: FusionGroup) -> Kernel | Equation:
        producers = self._lowered.producers
        equation = producers[group.values[0]]
        product = self._target.products.get(equation)
        if product is not None:
            return Kernel(product, product.reads, [product.result])
        if not self._target.has_code(equation):
            return equation
        return Kernel(group, *operands_of(group, producers, self._lowered.kept))

    # ---- memory --------------------------------------------------------------------------------------------

    def _place(self, program: Program) -> None:
        """Number the arrays, and plan the regions of all other values."""
        made = {
            v for step in self._steps for v in (step.writes if isinstance(step, Kernel) else step.results)
        }
        called = [v for step in self._steps if not isinstance(step, Kernel) for v in step.results]
        empty = [
            v for v in self._lowered.producers if v in self._lowered.kept and 0 in v.shape and v not in made
        ]
        literals = [v for v in self._lowered.outputs if hasattr(v, "value")]
        self._constant_values = list(dict.fromkeys([*program.constants, *literals]))
        self._results = list(
            dict.fromkeys([v for v in (*self._lowered.outputs, *empty) if v in made or v in empty])
        )
        self._results = [v for v in self._results if v not in called]
        arrays = [*self._inputs, *self._constant_values, *self._results, *called]
        self._numbers = {v: i for i, v in reversed([*enumerate(arrays)])}
        self._called_from = len(self._inputs) + len(self._constant_values) + len(self._results)
        self._count = len(arrays)
        last = {
            x: i
            for i, step in enumerate(self._steps)
            for x in (
                [*step.reads, *step.writes]
                if isinstance(step, Kernel)
                else [self._root(x) for x in step.operands]
            )
        }
        planner, self._regions = Planner(), {}
        for i, step in enumerate(self._steps):
            if isinstance(step, Kernel):
                for v in step.writes:
                    if v not in self._numbers:
                        self._regions[v] = planner.take(prod(v.shape) * NUMPY[v.dtype.name].itemsize)
            for x in [x for x, end in last.items() if end == i and x in self._regions]:
                planner.free(self._regions[x])
        self._arena_size = planner.size

    def _root(self, x: Variable) -> Variable:
        """The value in memory with the elements of x."""
        return self._lowered.reshaped_from.get(x, x)

    # ---- code ----------------------------------------------------------------------------------------------

    def _compiled(self) -> list[Callable[..., Any] | Equation]:
        """What runs, in order: entries of consecutive kernels, and called ops."""
        module = ir.Module("program")
        module.triple = target_machine().triple
        found: list[Any] = []
        pending: list[tuple[Kernel, ir.Function]] = []
        names: list[str] = []

        def flush() -> None:
            if pending:
                names.append(f"entry{len(names)}")
                self._write_entry(module, names[-1], list(pending))
                found.append(names[-1])
                pending.clear()

        for i, step in enumerate(self._steps):
            if isinstance(step, Kernel):
                pending.append((step, self._write_step(module, f"kernel{i}", step)))
            else:
                flush()
                found.append(step)
        flush()
        library = compile_module(module, names)
        return [method(library.addresses[x], library) if isinstance(x, str) else x for x in found]

    def _write_step(self, module: ir.Module, name: str, step: Kernel) -> ir.Function:
        if isinstance(step.computes, MatrixProduct):
            return step.computes.write(module, name)
        producers, kept = self._lowered.producers, self._lowered.kept
        return write_kernel(module, name, step.computes, producers, kept, [*step.reads, *step.writes])

    def _write_entry(
        self, module: ir.Module, name: str, kernels: Sequence[tuple[Kernel, ir.Function]]
    ) -> None:
        used = [self._numbers[v] for kernel, _ in kernels for v in kernel.reads if v in self._numbers]
        checked = sorted({i for i in used if i < len(self._inputs) or i >= self._called_from})

        def body(b: Any, pointer: Any) -> None:
            def address(v: Variable) -> Any:
                if v in self._numbers:
                    return pointer(self._numbers[v])
                offset = index_number(self._regions[v].offset)
                return b.gep(pointer(self._count), [offset], source_etype=BYTE)

            for kernel, function in kernels:
                b.call(function, [address(v) for v in (*kernel.reads, *kernel.writes)])

        work = sum([kernel.computes.work for kernel, _ in kernels])
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
        for v in self._results:
            dtype = NUMPY[v.dtype.name]
            if SMALLEST <= prod(v.shape) * dtype.itemsize <= LARGEST and has_reference_counts():
                makers.append(ResultPool(v.shape, dtype).take)
            else:
                makers.append(functools.partial(np.empty, v.shape, dtype))
        memory = np.empty(self._arena_size + CACHE_LINE, np.uint8)
        return makers, memory[-memory.ctypes.data % CACHE_LINE :]

    def _call(self, equation: Equation, arrays: list[Any]) -> None:
        """Run an op of the backend."""

        def operand(x: Variable) -> Any:
            value = getattr(x, "value", None)
            if value is not None:
                return self._backend.full(x.shape, value, x.dtype)
            root = self._root(x)
            if root in self._numbers:
                return arrays[self._numbers[root]].reshape(x.shape)
            region, dtype = self._regions[root], NUMPY[x.dtype.name]
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
