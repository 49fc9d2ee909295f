"""Plans: a lowered program as steps over values in memory, which can be written as the body of any LLVM function.

A value in memory is an input, a constant, a result, a result of a called op, or in the arena: memory that is planned by
lifetimes.  The caller of `write` knows where each of these is.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from tensorken.kernels.lowering import Lowered, lower
from tensorken.kernels.nests import FusionGroup
from tensorken_llvm.builder import Builder, new_function
from tensorken_llvm.dtypes import BIT, BYTE, INT32, POINTER, index_number
from tensorken_llvm.nests import operands_of, reads_in_place, write_kernel
from tensorken_llvm.products import MatrixProduct
from tensorken_llvm.routines import Routine
from tensorken_llvm.scatters import Scatter
from tensorken_llvm.sharing import kernel_text, product_text, shared
from tensorken_llvm.target import CpuTarget
from tensorken_numpy.compiled.memory import Planner, Region

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable

Address = Callable[["Variable"], Any]
"""From a value in memory to a pointer to its elements."""

MAX_LOCAL = 512
"""Inner programs keep values of at most this many bytes in variables of their function, which may become registers."""

MAX_LOCALS = 2**15
"""The most bytes of these variables: they are on the stack."""

MIN_DONATED = 2**16
"""Donated inputs of at least this many bytes give their memory to results: smaller memory is soon found."""

MAX_CALLS = 128
"""The most calls of kernels in one function: the time of LLVM grows faster than a function."""

MAX_INLINED = 64
"""Kernels of inner programs that compute at most this many elements are part of the function that calls them."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A kernel, or another routine in machine code: a product of matrices by BLAS, or control flow.

    Attributes:
        computes: what it computes.
        reads: the values that it reads.
        writes: the values that it writes.
        replaces: for some of the values that it writes, the donated input whose memory each has; the kernel reads no
            other element of the input than the one that it writes.
    """

    computes: FusionGroup | Routine
    reads: Sequence[Variable]
    writes: Sequence[Variable]
    replaces: Mapping[Variable, Variable] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A lowered program as steps over values in memory.

    Attributes:
        program: in ops that kernels compute or the backend has.
        lowered: the program as fusion groups.
        constants: the values that no step writes, and for each the program that has it: constants of this program and
            of inner programs, and literals that are read in memory.
        results: the outputs that kernels write, and values without elements, which nothing writes.
        called: the results of called ops.
        steps: kernels, and equations of called ops, in order.
        updated: for each value that has the memory of another, because a scatter updates it or an output takes the
            memory of a donated input, that other value.
        local: values in variables of the function that the plan is written into.
        regions: of the arena, for all other values that kernels write.
        arena_size: in bytes.
        is_inner: whether a loop or branch runs the program.
    """

    program: Program
    lowered: Lowered
    constants: Mapping[Variable, Program]
    results: tuple[Variable, ...]
    called: tuple[Variable, ...]
    steps: tuple[Kernel | Equation, ...]
    updated: Mapping[Variable, Variable]
    local: tuple[Variable, ...]
    regions: Mapping[Variable, Region]
    arena_size: int
    is_inner: bool

    @property
    def has_code(self) -> bool:
        """Whether any step is a kernel."""
        return any([isinstance(step, Kernel) for step in self.steps])

    @property
    def work(self) -> int:
        """The number of elements that kernels compute."""
        return sum([step.computes.work for step in self.steps if isinstance(step, Kernel)])

    def root(self, x: Variable) -> Variable:
        """The value in memory with the elements of x."""
        return _last_of(self.lowered.reshaped_from.get(x, x), self.updated)

    def write(
        self,
        b: Builder,
        kernels: Sequence[Kernel],
        pointer: Address,
        arena: Any,
        stop: Callable[[], None],
    ) -> None:
        """Write calls of kernels, and their functions.

        Args:
            b: writes the instructions.
            kernels: consecutive steps; of more than MAX_CALLS, parts are functions of their own.
            pointer: from an input, constant, result or result of a called op to its elements.
            arena: a pointer to this plan's memory.
            stop: writes the end of a block that a kernel was interrupted in.
        """
        local = {v: b.variable(bytes_of(v)) for v in self.local}

        def address(v: Variable) -> Any:
            v = _last_of(v, self.updated)
            region = self.regions.get(v)
            if region is not None:
                return b.gep(arena, [index_number(region.offset)], source_etype=BYTE)
            return local[v] if v in local else pointer(v)

        if len(kernels) <= MAX_CALLS:
            self._write_calls(b, kernels, address, stop)
            return
        parts = [kernels[i : i + MAX_CALLS] for i in range(0, len(kernels), MAX_CALLS)]
        values = [
            dict.fromkeys([_last_of(v, self.updated) for kernel in part for v in _operands(kernel)])
            for part in parts
        ]
        with b.goto_entry_block():
            table = b.alloca(POINTER, ir.Constant(INT32, max(map(len, values))))
        for part, of_part in zip(parts, values, strict=True):
            places = {v: index_number(i) for i, v in enumerate(of_part)}
            for v, place in places.items():
                b.store(address(v), b.gep(table, [place], source_etype=POINTER))
            with b.if_then(b.call(self._part(b.module, part, places), [table]), likely=False):
                stop()

    def _part(
        self, module: ir.Module, kernels: Sequence[Kernel], places: Mapping[Variable, Any]
    ) -> ir.Function:
        """The function of some kernels; it gets a table of pointers to the values, and returns whether one stops."""
        function = new_function(module, module.get_unique_name("part"), [POINTER], BIT)
        function.attributes.add("noinline")
        b = Builder(function.append_basic_block("entry"))
        (table,) = function.args

        def address(v: Variable) -> Any:
            place = b.gep(table, [places[_last_of(v, self.updated)]], source_etype=POINTER)
            return b.load(place, typ=POINTER)

        self._write_calls(b, kernels, address, lambda: b.ret(ir.Constant(BIT, 1)))
        b.ret(ir.Constant(BIT, 0))
        return function

    def _write_calls(
        self, b: Builder, kernels: Sequence[Kernel], address: Address, stop: Callable[[], None]
    ) -> None:
        for kernel in kernels:
            function = self._function(b.module, kernel)
            found = b.call(function, [address(v) for v in _operands(kernel)])
            if found.type is BIT:
                with b.if_then(found, likely=False):
                    stop()

    def _function(self, module: ir.Module, kernel: Kernel) -> ir.Function:
        computes = kernel.computes
        if isinstance(computes, MatrixProduct):
            return shared(module, product_text(computes), lambda: computes.write(module))
        if not isinstance(computes, FusionGroup):
            return shared(module, f"routine {id(computes)}", lambda: computes.write(module))
        producers, kept = self.lowered.producers, self.lowered.kept
        operands = [*kernel.reads, *kernel.writes]
        is_inlined = self.is_inner and computes.work <= MAX_INLINED

        def write() -> ir.Function:
            name = module.get_unique_name("kernel")
            return write_kernel(
                module, name, computes, producers, kept, operands, is_inlined, kernel.replaces
            )

        return shared(module, kernel_text(computes, producers, kept, operands, is_inlined), write)


def _operands(kernel: Kernel) -> list[Variable]:
    """The values to which the function of a kernel gets pointers."""
    return [*kernel.reads, *kernel.writes]


def bytes_of(v: Variable) -> int:
    """The bytes of a value's elements."""
    return prod(v.shape) * v.dtype.itemsize


def plan(program: Program, target: CpuTarget, is_inner: bool = False) -> Plan:
    """The plan of a program.

    Args:
        program: in ops that kernels compute or the backend has.
        target: of the lowering.
        is_inner: whether a loop or branch runs the program.
    """
    lowered = lower(program, target)
    steps = [_step(group, lowered, target) for group in lowered.groups if group.written]
    updated = _updated_values(steps, lowered)
    steps = [_in_place(step, updated) for step in steps]
    called = [v for step in steps if not isinstance(step, Kernel) for v in step.results]
    made = {v for step in steps for v in (step.writes if isinstance(step, Kernel) else step.results)}
    empty = [v for v in lowered.producers if v in lowered.kept and 0 in v.shape and v not in made]
    read = [v for step in steps if isinstance(step, Kernel) for v in step.reads]
    literals = [v for v in (*lowered.outputs, *read) if hasattr(v, "value")]
    constants = dict.fromkeys([*program.constants, *literals], program)
    for routine in target.routines.values():
        constants |= routine.constants
    results = dict.fromkeys([v for v in (*lowered.outputs, *empty) if v in made or v in empty])
    for v in called:
        results.pop(v, None)
    in_arrays = {*program.inputs, *constants, *results, *called}
    if not is_inner:
        steps, taken = _with_donations(program, steps, lowered, {*results}.difference(updated.values()))
        updated |= taken
        for v in taken:
            del results[v]
    local = _local(steps, updated, in_arrays) if is_inner else []
    regions, size = _regions(steps, lowered, updated, in_arrays.union(local))
    return Plan(
        program=program,
        lowered=lowered,
        constants=constants,
        results=tuple(results),
        called=tuple(called),
        steps=tuple(steps),
        updated=updated,
        local=tuple(local),
        regions=regions,
        arena_size=size,
        is_inner=is_inner,
    )


def _step(group: FusionGroup, lowered: Lowered, target: CpuTarget) -> Kernel | Equation:
    equation = lowered.producers[group.values[0]]
    routine = target.routines.get(equation)
    if routine is not None:
        return Kernel(routine, [lowered.reshaped_from.get(x, x) for x in routine.reads], routine.writes)
    if not target.has_code(equation):
        return equation
    return Kernel(group, *operands_of(group, lowered.producers, lowered.kept))


def _updated_values(steps: Sequence[Kernel | Equation], lowered: Lowered) -> dict[Variable, Variable]:
    """For each value whose memory a scatter takes, as nothing else reads it, the result of the last such scatter."""
    kernels = [step for step in steps if isinstance(step, Kernel)]
    reads = Counter([*itertools.chain(*[_read(step, lowered) for step in steps]), *lowered.outputs])
    written = {v for kernel in kernels for v in kernel.writes}
    updated: dict[Variable, Variable] = {}
    for scatter in reversed([kernel.computes for kernel in kernels]):
        if isinstance(scatter, Scatter):
            start = scatter.start
            if start in written and reads[start] == 1 and start not in scatter.operands:
                updated[start] = updated.get(scatter.result, scatter.result)
    return updated


def _read(step: Kernel | Equation, lowered: Lowered) -> Sequence[Variable]:
    """The values in memory that a step reads."""
    if isinstance(step, Kernel):
        return step.reads
    return [lowered.reshaped_from.get(x, x) for x in step.operands]


def _in_place(step: Kernel | Equation, updated: Mapping[Variable, Variable]) -> Kernel | Equation:
    """The step, which does not copy a value to memory that has it already."""
    if isinstance(step, Kernel) and isinstance(step.computes, Scatter) and step.computes.start in updated:
        return replace(step, computes=replace(step.computes, is_in_place=True))
    return step


def _last_of(v: Variable, updated: Mapping[Variable, Variable]) -> Variable:
    """The result of the last scatter that takes the memory of this value; the value itself if none does."""
    while v in updated:
        v = updated[v]
    return v


def _local(
    steps: Sequence[Kernel | Equation], updated: Mapping[Variable, Variable], in_arrays: set[Variable]
) -> list[Variable]:
    """The values in variables: small ones, as long as there is room."""
    written = [_last_of(v, updated) for step in steps if isinstance(step, Kernel) for v in step.writes]
    found, total = [], 0
    for v in dict.fromkeys([v for v in written if v not in in_arrays]):
        size = bytes_of(v)
        if size <= MAX_LOCAL and total + size <= MAX_LOCALS:
            found.append(v)
            total += size
    return found


def _with_donations(
    program: Program, steps: Sequence[Kernel | Equation], lowered: Lowered, results: set[Variable]
) -> tuple[list[Kernel | Equation], dict[Variable, Variable]]:
    """Steps that write results to the memory of donated inputs; and for each such result the input."""
    outputs = {*lowered.outputs}
    donated = [x for i, x in enumerate(program.inputs) if i in program.donated and x not in outputs]
    donated = [x for x in donated if bytes_of(x) >= MIN_DONATED]
    last = dict.fromkeys(donated, -1)
    last |= {x: i for i, step in enumerate(steps) for x in _read(step, lowered) if x in last}
    free: dict[tuple[Any, int], list[Variable]] = {}  # those that no later step reads, by dtype and size
    ending: dict[int, list[Variable]] = {}
    for x in reversed(donated):
        ending.setdefault(last[x], []).append(x)
    found: list[Kernel | Equation] = []
    taken: dict[Variable, Variable] = {}
    for i, step in enumerate(steps):
        for x in ending.pop(i - 1, ()):
            free.setdefault(_size_of(x), []).append(x)
        own = {*ending.get(i, ())}
        if (free or own) and isinstance(step, Kernel) and isinstance(step.computes, FusionGroup):
            own &= reads_in_place(step.computes, lowered.producers, lowered.kept)
            replaced: dict[Variable, Variable] = {}
            for v in [v for v in step.writes if v in results]:
                if fitting := [x for x in step.reads if x in own and _size_of(x) == _size_of(v)]:
                    own.remove(fitting[0])
                    ending[i].remove(fitting[0])
                    replaced[v] = taken[v] = fitting[0]
                elif alike := free.get(_size_of(v)):
                    taken[v] = alike.pop()
            reads = [x for x in step.reads if x not in replaced.values()]
            step = replace(step, reads=reads, replaces=replaced)
        found.append(step)
    return found, taken


def _size_of(v: Variable) -> tuple[Any, int]:
    """The dtype and the number of elements of a value."""
    return v.dtype, prod(v.shape)


def _regions(
    steps: Sequence[Kernel | Equation],
    lowered: Lowered,
    updated: Mapping[Variable, Variable],
    elsewhere: set[Variable],
) -> tuple[dict[Variable, Region], int]:
    """The regions of all values that are not elsewhere, and the size of the arena."""
    last = {
        _last_of(x, updated): i
        for i, step in enumerate(steps)
        for x in (*_read(step, lowered), *(step.writes if isinstance(step, Kernel) else ()))
    }
    ending: dict[int, list[Variable]] = {}
    for x, end in last.items():
        ending.setdefault(end, []).append(x)
    planner = Planner()
    regions: dict[Variable, Region] = {}
    for i, step in enumerate(steps):
        if isinstance(step, Kernel):
            for v in [_last_of(v, updated) for v in step.writes]:
                if v not in elsewhere and v not in regions:
                    regions[v] = planner.take(bytes_of(v))
        for x in ending.get(i, ()):
            if x in regions:
                planner.free(regions[x])
    return regions, planner.size
