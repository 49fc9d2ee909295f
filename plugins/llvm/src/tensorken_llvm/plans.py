"""Plans: a lowered program as steps over values in memory, which can be written as the body of any LLVM function.

A value in memory is an input, a constant, a result, a result of a called op, or in the arena: memory that is planned by
lifetimes.  The caller of `write` knows where each of these is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from tensorken.kernels.lowering import Lowered, lower
from tensorken.kernels.nests import FusionGroup
from tensorken_llvm.builder import Builder
from tensorken_llvm.dtypes import BYTE, NUMPY, index_number
from tensorken_llvm.nests import operands_of, write_kernel
from tensorken_llvm.products import MatrixProduct
from tensorken_llvm.target import CpuTarget
from tensorken_numpy.compiled.memory import Planner, Region

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable

Address = Callable[["Variable"], Any]
"""From a value in memory to a pointer to its elements."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A lowered program as steps over values in memory.

    Attributes:
        lowered: the program as fusion groups.
        inputs: of the program.
        constants: of the program, and the literals among its outputs.
        results: the outputs that kernels write, and values without elements, which nothing writes.
        called: the results of called ops.
        steps: kernels, and equations of called ops, in order.
        regions: of the arena, for all other values that kernels write.
        arena_size: in bytes.
    """

    lowered: Lowered
    inputs: tuple[Variable, ...]
    constants: tuple[Variable, ...]
    results: tuple[Variable, ...]
    called: tuple[Variable, ...]
    steps: tuple[Kernel | Equation, ...]
    regions: Mapping[Variable, Region]
    arena_size: int

    @property
    def has_code(self) -> bool:
        """Whether any step is a kernel."""
        return any([isinstance(step, Kernel) for step in self.steps])

    def root(self, x: Variable) -> Variable:
        """The value in memory with the elements of x."""
        return self.lowered.reshaped_from.get(x, x)

    def write(self, b: Builder, kernels: Sequence[Kernel], pointer: Address, arena: Any) -> None:
        """Write calls of kernels, and their functions.

        Args:
            b: writes the instructions.
            kernels: consecutive steps.
            pointer: from an input, constant, result or result of a called op to its elements.
            arena: a pointer to this plan's memory.
        """

        def address(v: Variable) -> Any:
            region = self.regions.get(v)
            if region is None:
                return pointer(v)
            return b.gep(arena, [index_number(region.offset)], source_etype=BYTE)

        for kernel in kernels:
            function = self._function(b.module, kernel)
            b.call(function, [address(v) for v in (*kernel.reads, *kernel.writes)])

    def _function(self, module: ir.Module, kernel: Kernel) -> ir.Function:
        name = module.get_unique_name("kernel")
        if isinstance(kernel.computes, MatrixProduct):
            return kernel.computes.write(module, name)
        operands = [*kernel.reads, *kernel.writes]
        return write_kernel(
            module, name, kernel.computes, self.lowered.producers, self.lowered.kept, operands
        )


def plan(program: Program, target: CpuTarget) -> Plan:
    """The plan of a program.

    Args:
        program: in ops that kernels compute or the backend has.
        target: of the lowering.
    """
    lowered = lower(program, target)
    steps = tuple([_step(group, lowered, target) for group in lowered.groups])
    called = [v for step in steps if not isinstance(step, Kernel) for v in step.results]
    made = {v for step in steps for v in (step.writes if isinstance(step, Kernel) else step.results)}
    empty = [v for v in lowered.producers if v in lowered.kept and 0 in v.shape and v not in made]
    literals = [v for v in lowered.outputs if hasattr(v, "value")]
    constants = tuple(dict.fromkeys([*program.constants, *literals]))
    results = dict.fromkeys([v for v in (*lowered.outputs, *empty) if v in made or v in empty])
    for v in called:
        results.pop(v, None)
    in_arrays = {*program.inputs, *constants, *results, *called}
    regions, size = _regions(steps, lowered, in_arrays)
    return Plan(lowered, program.inputs, constants, tuple(results), tuple(called), steps, regions, size)


def _step(group: FusionGroup, lowered: Lowered, target: CpuTarget) -> Kernel | Equation:
    equation = lowered.producers[group.values[0]]
    product = target.products.get(equation)
    if product is not None:
        return Kernel(product, product.reads, [product.result])
    if not target.has_code(equation):
        return equation
    return Kernel(group, *operands_of(group, lowered.producers, lowered.kept))


def _regions(
    steps: Sequence[Kernel | Equation], lowered: Lowered, in_arrays: set[Variable]
) -> tuple[dict[Variable, Region], int]:
    """The regions of all values that are not in arrays, and the size of the arena."""
    last = {
        x: i
        for i, step in enumerate(steps)
        for x in (
            [*step.reads, *step.writes]
            if isinstance(step, Kernel)
            else [lowered.reshaped_from.get(x, x) for x in step.operands]
        )
    }
    planner, regions = Planner(), {}
    for i, step in enumerate(steps):
        if isinstance(step, Kernel):
            for v in step.writes:
                if v not in in_arrays:
                    regions[v] = planner.take(prod(v.shape) * NUMPY[v.dtype.name].itemsize)
        for x in [x for x, end in last.items() if end == i and x in regions]:
            planner.free(regions[x])
    return regions, planner.size
