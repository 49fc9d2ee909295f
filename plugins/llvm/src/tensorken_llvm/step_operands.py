"""Operands of scans: where only the steps of a scan read the slices of a value, the steps compute them.

A value with a slice for each step is then never in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_llvm.products import is_in_memory
from tensorken_llvm.target import COSTS, is_computed

if TYPE_CHECKING:
    pass

EXPAND, MULTIPLY, RESHAPE = OPS["expand"], OPS["fused_multiply_add"], OPS["reshape"]


def with_operands_in_steps(
    program: Program, is_code: Callable[[Equation], bool], multiplies: Callable[[Equation, Equation], bool]
) -> Program:
    """The program with cheap elementwise ops, and products of matrices, as part of the steps of scans.

    Args:
        program: whose scans have slices along the first axis.
        is_code: whether a scan is machine code: numpy would take longer for each step.
        multiplies: whether the steps may compute a product: gets the product and that of a step, the last operand of
            which is the same for all steps.
    """
    if not any([e.op.name == "scan" for e in program.equations]):
        return program
    producers = {v: e for e in program.equations for v in e.results}
    uses = Counter([*[x for e in program.equations for x in e.operands], *program.outputs])
    moved: set[Variable] = set()
    equations: list[Equation] = []
    for e in program.equations:
        scan = _Scan(e, producers, uses, multiplies) if e.op.name == "scan" else None
        if scan is not None and scan.finds_any() and is_code(e):
            equations.append(scan.written(moved))
        else:
            equations.append(e)
    if not moved:
        return program
    return program.changed(equations=tuple([e for e in equations if moved.isdisjoint(e.results)]))


class _Scan:
    """A scan whose operands are moved into the steps.

    Args:
        equation: the scan.
        producers: of the values of the program.
        uses: how often each value is read.
        multiplies: see `with_operands_in_steps`.
    """

    def __init__(
        self,
        equation: Equation,
        producers: Mapping[Variable, Equation],
        uses: Mapping[Variable, int],
        multiplies: Callable[[Equation, Equation], bool],
    ) -> None:
        self._equation, self._producers, self._uses = equation, producers, uses
        self._multiplies = multiplies
        self._step, inputs, self._outputs, self._length, self._reverse = equation.params
        self._operands = list(equation.operands)
        self._specs: list[int | str] = list(inputs)
        self._inputs = list(self._step.inputs)

    def finds_any(self) -> bool:
        """Whether any operand can be moved."""
        return any(
            [self._can_move(x) for x, spec in zip(self._operands, self._specs, strict=True) if spec == 0]
        )

    def _can_move(self, x: Variable) -> bool:
        """Whether steps can compute the slices of a value, from at most one value that is not in memory anyway."""
        return self._is_movable(x) and self._written_for(x) <= 1

    def _is_movable(self, x: Variable) -> bool:
        """Whether steps can compute the slices of a value from those of other values."""
        e = self._producers.get(x)
        if e is None or self._uses[x] != 1 or e.scope:
            return False
        if e.op is RESHAPE:
            return e.operands[0].shape[:1] == x.shape[:1] and self._is_movable(e.operands[0])
        if e.op is MULTIPLY:
            return self._can_multiply(e)
        return (e.op.elementwise or e.op.name == "cast") and e.op.name not in COSTS.ops and is_computed(e)

    def _written_for(self, x: Variable) -> int:
        """How many values with a slice for each step are written to memory for the steps to compute a value."""
        if not self._is_movable(x):
            return int(not is_in_memory(x, self._producers))
        sources = [self._source(y) for y in self._producers[x].operands if not isinstance(y, Literal)]
        return sum([self._written_for(z) for z in sources if z.shape[0] == self._length])

    def _source(self, y: Variable) -> Variable:
        """The value that an operand of a step expands; otherwise the operand."""
        e = self._producers.get(y)
        expands = e is not None and e.op is EXPAND and not isinstance(e.operands[0], Literal)
        return e.operands[0] if e is not None and expands else y

    def _can_multiply(self, e: Equation) -> bool:
        """Whether steps can compute the slices of a product: of slices of one operand, and the other one."""
        first, second = sorted(e.operands, key=lambda y: -y.shape[0])
        if 0 in e.params[0] or first.shape[0] != self._length or second.shape[0] != 1 or self._length == 1:
            return False
        operands = tuple([Variable(y.shape[1:], y.dtype) for y in (first, second)])
        (x,) = e.results
        of_step = Equation(e.op, operands, _params_of_step(e, x), (Variable(x.shape[1:], x.dtype),))
        return self._multiplies(e, of_step)

    def written(self, moved: set[Variable]) -> Equation:
        """The new scan; add the values that the program needs no more."""
        before: list[list[Equation]] = []
        i = 0
        while i < len(self._operands):
            if self._specs[i] != 0 or not self._can_move(self._operands[i]):
                i += 1
                continue
            x, slice_ = self._operands.pop(i), self._inputs.pop(i)
            del self._specs[i]
            e = self._producers[x]
            moved.add(x)
            group: list[Equation] = []
            slices = tuple([self._slice(y, group) for y in e.operands])
            group.append(Equation(e.op, slices, _params_of_step(e, x), (slice_,), e.origin))
            before.append(group)
        equations = [e for group in reversed(before) for e in group]
        step = self._step.changed(inputs=tuple(self._inputs), equations=(*equations, *self._step.equations))
        params = step, tuple(self._specs), self._outputs, self._length, self._reverse
        e = self._equation
        return Equation(e.op, tuple(self._operands), params, e.results, e.origin, e.scope)

    def _slice(self, y: Variable, group: list[Equation]) -> Variable:
        """The slice of an operand in a step; add what computes it."""
        if isinstance(y, Literal):
            return Literal(y.shape[1:], y.dtype, y.value)
        z = self._source(y)
        if z.shape[0] == self._length:
            part = self._input(z, 0, z.shape[1:])
        else:  # the same for all steps
            part = Variable(z.shape[1:], z.dtype)
            group.append(Equation(RESHAPE, (self._input(z, "constant", z.shape),), (part.shape,), (part,)))
        if part.shape == y.shape[1:]:
            return part
        expanded = Variable(y.shape[1:], y.dtype)
        group.append(Equation(EXPAND, (part,), (expanded.shape,), (expanded,)))
        return expanded

    def _input(self, x: Variable, spec: int | str, shape: tuple[int, ...]) -> Variable:
        """A new input of the step."""
        found = Variable(shape, x.dtype)
        self._operands.append(x)
        self._specs.append(spec)
        self._inputs.append(found)
        return found


def _params_of_step(e: Equation, x: Variable) -> tuple[object, ...]:
    """The params of an op for a slice of its result x."""
    if e.op is RESHAPE:
        return (x.shape[1:],)
    if e.op is MULTIPLY:
        return (tuple([axis - 1 for axis in e.params[0]]),)
    return e.params
