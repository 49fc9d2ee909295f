"""Control flow: cond, scan and while_loop as machine code, if all that their inner programs compute is.

A loop is a function, whose steps are written from the plan of the inner program.  The values that a step takes from the
one before are in memory twice: a step reads one copy and writes the other.  Slices of operands, and of stacked results,
are read and written where they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from llvmlite import ir

from tensorken.control_flow.carries import CARRY, CONSTANT, ArgSpecs, carries, with_carries
from tensorken.kernels.positions import with_positions
from tensorken.programs.passes.equation_writer import EquationWriter
from tensorken_core.language.dtypes import bool_
from tensorken_core.language.op import OPS, run
from tensorken_core.program.program import Variable
from tensorken_llvm.blas import Blas
from tensorken_llvm.builder import Builder, new_function
from tensorken_llvm.concatenations import Concatenation, is_concatenation
from tensorken_llvm.convolutions import convolutions, is_convolution
from tensorken_llvm.dtypes import BIT, BYTE, INT64, NUMPY, POINTER, index_number
from tensorken_llvm.entry import is_interrupted
from tensorken_llvm.nests import KernelAttributes
from tensorken_llvm.plans import MAX_LOCAL, Kernel, Plan, bytes_of, plan
from tensorken_llvm.products import MatrixProduct, is_product, matrix_products, product_of, with_matrices_last
from tensorken_llvm.routines import Routine
from tensorken_llvm.scatters import scatters
from tensorken_llvm.step_operands import with_operands_in_steps
from tensorken_llvm.target import CpuTarget, is_computed
from tensorken_llvm.threads import thread_count

if TYPE_CHECKING:
    from tensorken_core.language.raw import RawTensor
    from tensorken_core.program.program import Equation, Program

PERMUTE = OPS["permute"]

UNKNOWN_STEPS = 2**15
"""The number of steps of a while loop, for estimates: such loops take long."""

UNINTERRUPTED = 2**25
"""After computing so many elements a loop looks for signals such as that of Ctrl-C: after some 10 ms."""

MIN_STACK = 2**22
"""A product with this many bytes does not stay in the second-level cache until the steps of a loop read it."""

CACHE_LINE = 64


class Plans:
    """Plans programs, with those of their branches and loops that are wholly machine code.

    Args:
        backend: runs the other ops.
        blas: multiplies matrices; None if there is no library.
    """

    def __init__(self, backend: RawTensor[Any], blas: Blas | None) -> None:
        self._backend = backend
        self._blas = blas
        self._inner: dict[Program, Plan | None] = {}

    def plan(self, program: Program) -> Plan:
        """The plan of a program."""
        program, target = self._target(program)
        return plan(program, target)

    def _target(self, program: Program) -> tuple[Program, CpuTarget]:
        """The program with other layouts, and the target with the code of its ops that are no kernels."""
        program = self._with_slices_first(with_positions(program, self._backend))
        program = with_operands_in_steps(
            program, lambda e: self._plans_of(e) is not None, self._multiplies_in_steps
        )
        routines: dict[Equation, Routine] = {}
        if self._blas is not None:
            program = with_matrices_last(program, self._backend, self._blas)
            routines.update(matrix_products(program, self._blas))
        routines.update(scatters(program))
        routines.update(convolutions(program))
        for e in program.equations:
            if is_concatenation(e):
                routines[e] = Concatenation(e)
            plans = self._plans_of(e)
            if plans is not None:
                routines[e] = ControlFlow.of(e, plans)
        return program, CpuTarget(routines)

    def _multiplies_in_steps(self, equation: Equation, of_step: Equation) -> bool:
        """Whether a product is faster as one for each step: if its result is large, and the code and the sums the same.

        Several threads divide one product, but not the steps.
        """
        if self._blas is None or thread_count() > 1 or bytes_of(equation.results[0]) < MIN_STACK:
            return False
        outside, inside = [product_of(e, self._blas) for e in (equation, of_step)]
        if outside is None or inside is None or not outside.is_own:
            return False
        return inside.packed() is not None and inside.second.value is of_step.operands[1]

    def _plans_of(self, equation: Equation) -> list[Plan] | None:
        """The plans of the inner programs; None if there are none, or if not all of them are machine code."""
        rules = equation.op.higher_order
        if rules is None or equation.op.name not in WRITERS:
            return None
        found: list[Plan] = []
        for program in rules.layout(equation.params).programs:
            if program not in self._inner:
                self._inner[program] = self._inner_plan(program)
            inner = self._inner[program]
            if inner is None:
                return None
            found.append(inner)
        return found

    def _inner_plan(self, program: Program) -> Plan | None:
        if not self._may_be_code(program):
            return None
        program, target = self._target(program)
        if not all(map(target.has_code, program.equations)):
            return None
        return plan(program, target, is_inner=True)

    def _may_be_code(self, program: Program) -> bool:
        """Whether ops are known to numpy's backend alone; this takes no time."""
        known = all([v.dtype.name in NUMPY for v in (*program.inputs, *program.outputs)])
        return known and all(
            [
                is_computed(e)
                or is_concatenation(e)
                or is_convolution(e)
                or e.op.name in WRITERS
                or (self._blas is not None and is_product(e))
                for e in program.equations
            ]
        )

    def _with_slices_first(self, program: Program) -> Program:
        """The program with moved operands and results of scans, whose slices are then contiguous in memory."""
        moved = {e for e in program.equations if _slices_along_others(e) and self._plans_of(e) is not None}
        if not moved:
            return program
        writer = EquationWriter(self._backend)
        known: dict[Variable, Variable] = {}
        for old, e in zip(program.equations, writer.equations_of(program, known), strict=True):
            if old in moved:
                ys = _with_slices_first(writer, e)
            else:
                found = run(writer, e.op, e.operands, e.params)
                ys = [found] if e.op.results == 1 else found
            known.update(zip(old.results, ys, strict=True))
        return writer.program_from(program, [known.get(v, v) for v in program.outputs])


def _slices_along_others(equation: Equation) -> bool:
    """Whether an op is a scan with slices along other axes than the first."""
    if equation.op.name != "scan":
        return False
    _, inputs, outputs, _, _ = equation.params
    return any([isinstance(spec, int) and spec > 0 for spec in (*inputs, *outputs)])


def _with_slices_first(writer: EquationWriter, equation: Equation) -> list[Variable]:
    program, inputs, outputs, *steps = equation.params
    operands = [
        _moved(writer, x, spec, 0) if isinstance(spec, int) else x
        for x, spec in zip(equation.operands, inputs, strict=True)
    ]
    first = [tuple([0 if isinstance(spec, int) else spec for spec in specs]) for specs in (inputs, outputs)]
    results = run(writer, equation.op, operands, (program, *first, *steps))
    return [
        _moved(writer, y, 0, spec) if isinstance(spec, int) else y
        for y, spec in zip(results, outputs, strict=True)
    ]


def _moved(writer: EquationWriter, x: Variable, axis: int, place: int) -> Variable:
    """A value with an axis moved to another place."""
    if axis == place:
        return x
    order = [i for i in range(len(x.shape)) if i != axis]
    order.insert(place, axis)
    found: Variable = writer.interpret(PERMUTE, [x], (tuple(order),))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class ControlFlow:
    """A cond, scan or while_loop as machine code.

    Attributes:
        equation: the op.
        plans: of its inner programs.
        constants: of these, and for each its program.
        reads: the operands and the constants.
        writes: the results, and the memory that it needs.
        work: an estimate of the number of elements that it computes.
        steps: after so many it looks for signals; None if it never does.
        may_stop: whether a signal may stop it or an inner loop: then its function returns whether one did.
        packings: of matrices that all steps read.
    """

    equation: Equation
    plans: Sequence[Plan]
    constants: Mapping[Variable, Program]
    reads: tuple[Variable, ...]
    writes: tuple[Variable, ...]
    work: int
    steps: int | None
    may_stop: bool
    packings: tuple[Packing, ...]

    @classmethod
    def of(cls, equation: Equation, plans: Sequence[Plan]) -> ControlFlow:
        """The code of an op whose inner programs have these plans."""
        packings: list[Packing] = []
        if equation.op.name != "cond":
            plans = [_with_packed_matrices(inner, _specs(equation)[0], packings) for inner in plans]
        constants: dict[Variable, Program] = {}
        for inner in plans:
            constants |= inner.constants
        reads = (*equation.operands, *constants)
        size = _size_without_packings(equation, plans)
        size += sum([_aligned(bytes_of(packing.packed)) for packing in packings])
        memory = [Variable((size,), bool_)] if size else []
        steps = {"cond": 1, "while_loop": UNKNOWN_STEPS}
        count = steps[equation.op.name] if equation.op.name in steps else equation.params[-2]
        of_step = sum([inner.work + 1 for inner in plans])
        work = count * of_step
        is_long = work >= UNINTERRUPTED or equation.op.name == "while_loop"
        between = 1 << (max(UNINTERRUPTED // of_step, 1).bit_length() - 1) if is_long else None
        inner_flows = [
            step.computes
            for inner in plans
            for step in inner.steps
            if isinstance(step, Kernel) and isinstance(step.computes, ControlFlow)
        ]
        may_stop = is_long or any([flow.may_stop for flow in inner_flows])
        writes = (*equation.results, *memory)
        return cls(equation, plans, constants, reads, writes, work, between, may_stop, tuple(packings))

    def write(self, module: ir.Module) -> ir.Function:
        """Write the function, whose arguments are pointers to the values that it reads and writes."""
        types = [POINTER] * (len(self.reads) + len(self.writes))
        name = module.get_unique_name(self.equation.op.name)
        function = new_function(module, name, types, BIT if self.may_stop else None)
        function.attributes = KernelAttributes(["nounwind", KernelAttributes.WIDEST])
        WRITERS[self.equation.op.name](_Writer(self, function))
        return function


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """The packing of a matrix before a loop.

    Attributes:
        product: which reads the matrix as it is.
        source: the matrix: an input or constant of the inner program.
        operand: the index of that input; None for a constant.
        packed: the packed matrix.
    """

    product: MatrixProduct
    source: Variable
    operand: int | None
    packed: Variable


def _with_packed_matrices(inner: Plan, inputs: ArgSpecs, packings: list[Packing]) -> Plan:
    """The plan whose products read packed matrices, where all steps have the same matrix; add their packings."""
    fixed = {
        v: i for i, (v, spec) in enumerate(zip(inner.program.inputs, inputs, strict=True)) if spec == CONSTANT
    }
    steps: list[Kernel | Equation] = []
    for step in inner.steps:
        if isinstance(step, Kernel) and isinstance(step.computes, MatrixProduct):
            product, packed = step.computes, step.computes.packed()
            source = inner.root(product.second.value)
            if packed is not None and (source in fixed or source in inner.constants):
                step = replace(step, computes=packed, reads=[step.reads[0], packed.second.value])
                packings.append(Packing(product, source, fixed.get(source), packed.second.value))
        steps.append(step)
    return replace(inner, steps=tuple(steps))


def _carried(equation: Equation) -> list[Variable]:
    """The operands that steps replace."""
    return carries(equation.operands, _specs(equation)[0])


def _size_without_packings(equation: Equation, plans: Sequence[Plan]) -> int:
    """The bytes of the memory that a loop or branch needs for values of inner programs, and for large carries."""
    size = _aligned(max([inner.arena_size for inner in plans]))
    if equation.op.name == "cond":
        return size
    return size + sum([_aligned(bytes_of(x)) for x in _carried(equation) if bytes_of(x) > MAX_LOCAL])


def _specs(equation: Equation) -> tuple[ArgSpecs, ArgSpecs]:
    """How a loop passes its operands to the steps, and what their results are."""
    if equation.op.name == "scan":
        return equation.params[1], equation.params[2]
    return equation.params[2], (CARRY,) * len(equation.results)


def _aligned(size: int) -> int:
    return -(-size // CACHE_LINE) * CACHE_LINE


class _Writer:
    """Writes a function.

    Args:
        flow: what it computes.
        function: to write.

    Attributes:
        builder: writes the instructions.
        operands: pointers to the elements of the operands.
        results: the same for the results.
    """

    def __init__(self, flow: ControlFlow, function: ir.Function) -> None:
        self.flow = flow
        self.equation = flow.equation
        self.builder = Builder(function.append_basic_block("entry"))
        count = len(self.equation.operands)
        self.operands = list(function.args[:count])
        self._packed: dict[Variable, Any] = {}
        self._constants = dict(zip(flow.constants, function.args[count : len(flow.reads)], strict=True))
        rest = list(function.args[len(flow.reads) :])
        self.results = rest[: len(self.equation.results)]
        self.memory = rest[-1] if len(rest) > len(self.results) else None

    def end(self, is_interrupted: bool = False) -> None:
        """Write the end of the function."""
        if self.flow.may_stop:
            self.builder.ret(ir.Constant(BIT, int(is_interrupted)))
        else:
            self.builder.ret_void()

    def run(self, inner: Plan, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Write the steps of a plan.

        Args:
            inner: the plan.
            inputs: pointers to the elements of the inputs.
            outputs: pointers to where the outputs are needed, which are no inputs.
        """
        b = self.builder
        pointers = {**self._constants, **self._packed, **dict(zip(inner.program.inputs, inputs, strict=True))}
        roots = inner.lowered.outputs
        copied = []
        for v, pointer in zip(roots, outputs, strict=True):
            if v in pointers:
                copied.append((v, pointer))
            else:
                pointers[v] = pointer
        for v in inner.results:
            if v not in pointers:  # without elements
                pointers[v] = ir.Constant(POINTER, None)
        kernels = [step for step in inner.steps if isinstance(step, Kernel)]
        inner.write(b, kernels, pointers.__getitem__, self.memory, lambda: self.end(is_interrupted=True))
        for v, pointer in copied:
            b.copy(pointer, pointers[v], bytes_of(v))

    def loop(
        self,
        replaced: Sequence[_Carry],
        goes_on: Callable[[Any], Any],
        step: Callable[[Any], None],
    ) -> None:
        """Write a loop.

        Args:
            replaced: the values that steps replace.
            goes_on: from the number of steps done to whether there is another one.
            step: writes a step, from the number of steps done.
        """
        b = self.builder
        before, head = b.block, b.append_basic_block("loop")
        b.branch(head)
        b.position_at_end(head)
        done = b.phi(INT64)
        done.add_incoming(index_number(0), before)
        for carry in replaced:
            carry.enter(before)
        condition = goes_on(done)
        body, after = b.append_basic_block("step"), b.append_basic_block("after")
        b.cbranch(condition, body, after)
        b.position_at_end(body)
        step(done)
        self._look_for_signals(done)
        for carry in replaced:
            carry.advance()
        done.add_incoming(b.add(done, index_number(1), flags=("nuw", "nsw")), b.block)
        b.branch(head)
        b.position_at_end(after)
        for carry in replaced:
            carry.finish()
        self.end()

    def _look_for_signals(self, done: Any) -> None:
        """Write a test for signals, after some steps."""
        b, steps = self.builder, self.flow.steps
        if steps is None:
            return
        position = b.and_(done, index_number(steps - 1))
        with (
            b.if_then(b.icmp_unsigned("==", position, index_number(steps - 1)), likely=False),
            b.if_then(is_interrupted(b), likely=False),
        ):
            self.end(is_interrupted=True)

    def carries(self, last: int | None) -> list[_Carry]:
        """The carries of the loop.

        Args:
            last: the number of steps; None if it is not known.
        """
        found: list[_Carry] = []
        offset = _aligned(max([inner.arena_size for inner in self.flow.plans]))
        inputs, outputs = _specs(self.equation)
        pairs = zip(carries(self.operands, inputs), carries(self.results, outputs), strict=True)
        for v, (x, y) in zip(_carried(self.equation), pairs, strict=True):
            size = bytes_of(v)
            if size <= MAX_LOCAL:
                found.append(_SmallCarry(self.builder, size, x, y))
            else:
                memory = self.builder.gep(self.memory, [index_number(offset)], source_etype=BYTE)
                offset += _aligned(size)
                found.append(_LargeCarry(self.builder, size, x, y, memory, last))
        return found

    def pack_matrices(self) -> None:
        """Write calls that pack matrices."""
        b = self.builder
        offset = _size_without_packings(self.equation, self.flow.plans)
        for packing in self.flow.packings:
            memory = b.gep(self.memory, [index_number(offset)], source_etype=BYTE)
            offset += _aligned(bytes_of(packing.packed))
            i = packing.operand
            source = self._constants[packing.source] if i is None else self.operands[i]
            b.call(packing.product.write_packing(b.module), [source, memory])
            self._packed[packing.packed] = memory


class _Carry(Protocol):
    """A value that steps replace, while the code of its loop is written.

    Attributes:
        current: a pointer to the elements that a step reads.
        next: a pointer to where the step writes the new elements.
    """

    current: Any
    next: Any

    def enter(self, before: ir.Block) -> None:
        """Write the head of the loop, which is entered from this block."""

    def advance(self) -> None:
        """Write the end of a step."""

    def finish(self) -> None:
        """Write what follows the loop."""


class _SmallCarry:
    """Copied at the end of a step, between variables that LLVM may promote to registers."""

    def __init__(self, b: Builder, size: int, operand: Any, result: Any) -> None:
        self._b, self._size, self._result = b, size, result
        self.current, self.next = b.variable(size), b.variable(size)
        b.copy(self.current, operand, size)

    def enter(self, before: ir.Block) -> None:
        """Nothing."""

    def advance(self) -> None:
        """Copy the new elements."""
        self._b.copy(self.current, self.next, self._size)

    def finish(self) -> None:
        """Copy the elements to the result."""
        self._b.copy(self._result, self.current, self._size)


class _LargeCarry:
    """Written in turn to the result and to other memory; the first step reads the operand where it lies.

    If the elements are stacked as well, the next step reads them from the stack: then `next` is changed.
    """

    def __init__(
        self, b: Builder, size: int, operand: Any, result: Any, memory: Any, last: int | None
    ) -> None:
        self._b, self._size, self._result = b, size, result
        self._starts = (
            operand,
            *((memory, result) if last is not None and last % 2 == 0 else (result, memory)),
        )
        self.current = self.next = None

    def enter(self, before: ir.Block) -> None:
        """Three pointers: what a step reads, writes, and leaves alone."""
        self._phis = [self._b.phi(POINTER) for _ in self._starts]
        for phi, start in zip(self._phis, self._starts, strict=True):
            phi.add_incoming(start, before)
        self.current, self.next, _ = self._phis

    def advance(self) -> None:
        """Exchange the pointers."""
        _, written, other = self._phis
        for phi, following in zip(self._phis, (self.next, other, written), strict=True):
            phi.add_incoming(following, self._b.block)

    def finish(self) -> None:
        """Copy the elements to the result, unless the last step wrote them there."""
        is_elsewhere = self._b.icmp_unsigned("!=", self.current, self._result)
        with self._b.if_then(is_elsewhere):
            self._b.copy(self._result, self.current, self._size)


def _write_cond(writer: _Writer) -> None:
    b = writer.builder
    predicate, *operands = writer.operands
    blocks = [b.append_basic_block(name) for name in ("if_true", "if_false")]
    b.cbranch(b.trunc(b.load(predicate, typ=BYTE), BIT), *blocks)
    for block, branch in zip(blocks, writer.flow.plans, strict=True):
        b.position_at_end(block)
        writer.run(branch, operands, writer.results)
        writer.end()


def _write_while(writer: _Writer) -> None:
    b, inputs = writer.builder, writer.equation.params[2]
    condition, body = writer.flow.plans
    writer.pack_matrices()
    replaced = writer.carries(None)
    holds = b.variable(1)

    def values() -> Sequence[Any]:
        return with_carries(writer.operands, inputs, [carry.current for carry in replaced])

    def goes_on(done: Any) -> Any:
        writer.run(condition, values(), [holds])
        return b.trunc(b.load(holds, typ=BYTE), BIT)

    def step(done: Any) -> None:
        writer.run(body, values(), [carry.next for carry in replaced])

    writer.loop(replaced, goes_on, step)


def _write_scan(writer: _Writer) -> None:
    b = writer.builder
    _, inputs, outputs, length, reverse = writer.equation.params
    (body,) = writer.flow.plans
    writer.pack_matrices()
    replaced = writer.carries(length)
    roots = body.lowered.outputs
    stacks = {root: i for i, (root, spec) in enumerate(zip(roots, outputs, strict=True)) if spec != CARRY}

    def slice_of(pointer: Any, v: Variable, index: Any) -> Any:
        offset = b.mul(index, index_number(bytes_of(v)), flags=("nuw", "nsw"))
        return b.gep(pointer, [offset], source_etype=BYTE)

    def step(done: Any) -> None:
        index = b.sub(index_number(length - 1), done, flags=("nuw", "nsw")) if reverse else done
        values = [
            x if isinstance(spec, str) else slice_of(x, v, index)
            for x, v, spec in zip(writer.operands, body.program.inputs, inputs, strict=True)
        ]
        slots = [
            None if spec == CARRY else slice_of(y, v, index)
            for y, v, spec in zip(writer.results, body.program.outputs, outputs, strict=True)
        ]
        for carry, root in zip(replaced, carries(roots, outputs), strict=True):
            if isinstance(carry, _LargeCarry) and root in stacks:
                carry.next = slots[stacks[root]]
        results = with_carries(slots, outputs, [carry.next for carry in replaced])
        writer.run(body, with_carries(values, inputs, [carry.current for carry in replaced]), results)

    def goes_on(done: Any) -> Any:
        return b.icmp_unsigned("<", done, index_number(length))

    writer.loop(replaced, goes_on, step)


WRITERS: Mapping[str, Callable[[_Writer], None]] = {
    "cond": _write_cond,
    "while_loop": _write_while,
    "scan": _write_scan,
}
"""What writes each op."""
