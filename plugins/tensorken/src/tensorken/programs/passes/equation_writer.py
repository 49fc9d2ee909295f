"""Equation writer: a backend that computes nothing and records ops as equations for another backend.

A pass that changes the meaning of ops is an interpreter over it: the program runs once on that interpreter, and the
recorded equations are the new program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from tensorken.programs.passes.common_subexpressions import exact_key, same_value
from tensorken.programs.passes.constants import MAX_FOLDED_SIZE, remember_unequal
from tensorken.programs.passes.elements import MOVEMENT_OPS, remember_elements
from tensorken.programs.passes.recorded_loops import MIN_STEPS, scan_equation, scan_of
from tensorken.programs.passes.rewriting import substituted
from tensorken_core.errors import ConcretizationError
from tensorken_core.language.dtypes import DType, int32
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.tensor.tensor import Tensor


class _Lacks(dict[Op, bool]):
    """For each op whether a writer writes the op's body instead; computed at first use."""

    def __init__(self, writer: EquationWriter) -> None:
        self.writer = writer

    def __missing__(self, op: Op) -> bool:
        self[op] = op.body is not None and not self.writer.has(op)
        return self[op]


@runtime_checkable
class SelectiveBackend(Protocol):
    """A backend that has an op for some operands only."""

    def runs_body(self, op: Op, operands: Sequence[Any]) -> bool:
        """Whether an op that the backend has runs its body for operands of these shapes and dtypes."""


class EquationWriter(RawTensor[Variable]):
    """Writes equations of ops that a backend has, and the bodies of all other ops.

    Attributes:
        source: the equation of the old program that is being rewritten; new equations get its line and scope.  An
            equation that is written unchanged is the same object.
        lacks: for each op whether the op's body is written instead.
        position: the index of `source`; at the end the new equations are sorted by position.
    """

    def __init__(self, backend: RawTensor[Any]) -> None:
        self.backend: Any = backend
        self._is_selective = isinstance(backend, SelectiveBackend)
        self.capabilities = backend.capabilities
        self.constants: dict[Variable, Tensor] = {}
        self.source: Equation | None = None
        self.position = 0
        self._written: list[tuple[int, Equation]] = []
        self._positions: dict[Variable, int] = {}  # of the results of written equations
        self._step_programs: dict[Any, Program] = {}
        self.lacks = _Lacks(self)

    def shape(self, x: Variable) -> Shape:
        return x.shape

    def dtype(self, x: Variable) -> DType:
        return x.dtype

    def has(self, op: Op) -> bool:
        return bool(op.opaque) or "program" in op.params or self.backend.has(op)

    def fill_value(self, x: Variable) -> bool | int | float | None:
        return x.value if isinstance(x, Literal) else None

    def ravel(self, x: Variable) -> Any:
        """The elements of a constant; a body may use them to write less.

        Raises:
            ConcretizationError: if the elements are not known.
        """
        if isinstance(x, Literal):
            return [x.value] * math.prod(x.shape)
        constant = self.constants.get(x)
        if constant is None:
            raise ConcretizationError(
                f"this {x.dtype} of shape {x.shape} has no value while a program is optimised"
            )
        return self.backend.ravel(constant.representation)

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Variable:
        return Literal(shape, dtype, value)

    def new(self, shape: Shape, data: Any, dtype: DType) -> Variable:
        numbers = isinstance(data, list | range) and len(data) <= MAX_FOLDED_SIZE
        if numbers and len({repr(number) for number in data}) == 1:  # repr distinguishes 0.0 and -0.0
            return self.full(shape, data[0], dtype)
        v = Variable(shape, dtype)
        x = self.constants[v] = Tensor(self.backend, self.backend.new(shape, data, dtype), shape, dtype)
        if numbers and dtype.kind == "float":
            remember_unequal(x)
        elif numbers:
            remember_elements(
                x, data if isinstance(data, range) else [*map(int if dtype.kind == "int" else bool, data)]
            )
        return v

    def interpret(self, op: Op, operands: Sequence[Variable], params: tuple[Any, ...]) -> Any:
        if op in MOVEMENT_OPS and isinstance(operands[0], Literal):
            return Literal(op.shape(operands[0].shape, *params), operands[0].dtype, operands[0].value)
        if self.runs_body(op, operands):
            return super().interpret(op, operands, params)
        operands, source = tuple(operands), self.source
        if source is not None and op is source.op and self._equals(source, operands, params):
            self.append(source)
            return source.results[0] if op.results == 1 else source.results
        shapes = operands[0].shape if op.elementwise else op.shape(*[v.shape for v in operands], *params)
        operand_dtypes = tuple([v.dtype for v in operands])
        dtypes = op.result_dtypes.get(operand_dtypes) or op.result_dtype(operand_dtypes, params)
        scope, origin = (0, None) if source is None else (source.scope, source.origin)
        if op.results == 1:
            v = Variable(shapes, dtypes)
            self.append(Equation(op, operands, params, (v,), origin, scope))
            return v
        results = tuple([Variable(*types) for types in zip(shapes, dtypes, strict=True)])
        self.append(Equation(op, operands, params, results, origin, scope))
        return results

    def runs_body(self, op: Op, operands: Sequence[Variable]) -> bool:
        """Whether an op's body is written for these operands."""
        return self.lacks[op] or (self._is_selective and self.backend.runs_body(op, operands))

    def loop(
        self,
        step: Callable[..., Sequence[Tensor]],
        xs: Sequence[Tensor],
        steps: Sequence[Sequence[Tensor | int]],
    ) -> tuple[Sequence[Tensor], list[Sequence[Tensor]]]:
        """Run the first step, and copy its equations for further steps without running the ops again.

        A step with numbers among its arguments always runs, since its equations may depend on the numbers.  A backend
        that records loops gets the equation of a `scan`.
        """
        scan = scan_of(self.backend)
        if len(steps) >= MIN_STEPS and scan is not None:
            return self._recorded_loop(scan, step, xs, steps)

        def run_step(*args: Tensor | int) -> Sequence[Tensor]:
            variables = [x.representation for x in args if not isinstance(x, int)]
            with_numbers = any([self.fill_value(v) is not None for v in variables])
            if len(steps) == 1 or len(variables) < len(args) or with_numbers:
                return step(*args)
            types = [(v.shape, v.dtype) for v in variables]
            key = (step, *types)
            if key not in self._step_programs:
                self._step_programs[key] = program_of(step, types, self.backend)
            results = self._copy_equations(self._step_programs[key], variables)
            return [Tensor(self, v, v.shape, v.dtype) for v in results]

        return super().loop(run_step, xs, steps)

    def _recorded_loop(
        self,
        scan: Op,
        step: Callable[..., Sequence[Tensor]],
        xs: Sequence[Tensor],
        steps: Sequence[Sequence[Tensor | int]],
    ) -> tuple[Sequence[Tensor], list[Sequence[Tensor]]]:
        types = [((1,), int32) if isinstance(x, int) else (x.shape, x.dtype) for x in (*xs, *steps[0])]
        key = (step, *types)
        if key not in self._step_programs:
            self._step_programs[key] = program_of(step, types, self.backend)
        inputs = [[x if isinstance(x, int) else x.representation for x in given] for given in steps]
        e = scan_equation(self, scan, self._step_programs[key], [x.representation for x in xs], inputs)
        scope, origin = (0, None) if self.source is None else (self.source.scope, self.source.origin)
        self.append(replace(e, origin=origin, scope=scope))
        results = [Tensor(self, v, v.shape, v.dtype) for v in e.results]
        last, stacks = results[: len(xs)], results[len(xs) :]
        return last, [[_slice(stack, k) for stack in stacks] for k in range(len(steps))]

    def _copy_equations(self, program: Program, inputs: Sequence[Variable]) -> list[Variable]:
        """Write the equations of a program for these inputs; return its outputs."""
        copies: dict[Variable, Variable] = dict(zip(program.inputs, inputs, strict=True))
        scope, origin = (0, None) if self.source is None else (self.source.scope, self.source.origin)
        for e in program.equations:
            results = tuple([Variable(v.shape, v.dtype) for v in e.results])
            operands = tuple([copies.get(v, v) for v in e.operands])
            copies.update(zip(e.results, results, strict=True))
            self.append(Equation(e.op, operands, e.params, results, origin, scope))
        self.constants.update(program.constants)
        return [copies.get(v, v) for v in program.outputs]

    def append(self, equation: Equation) -> None:
        """Write an equation at the current position, or at the position of its last operand if that is later."""
        position, positions = self.position, self._positions
        for v in equation.operands:
            if positions.get(v, 0) > position:
                position = positions[v]
        for v in equation.results:
            positions[v] = position
        self._written.append((position, equation))

    def _equals(self, equation: Equation, operands: tuple[Variable, ...], params: tuple[Any, ...]) -> bool:
        """Whether an equation, if it is not yet written, has these operands and params."""
        if not self._positions.keys().isdisjoint(equation.results):
            return False
        if len(operands) != len(equation.operands) or not all(map(same_value, operands, equation.operands)):
            return False
        return bool(exact_key(equation.op, params) == exact_key(equation.op, equation.params))

    def equations_of(
        self, program: Program, replacements: Mapping[Variable, Variable] = MappingProxyType({})
    ) -> Iterator[Equation]:
        """The equations of a program in order; while one is current, written equations get its line and scope.

        Args:
            program: the program that is rewritten.
            replacements: of variables of the old program, so far.
        """
        for position, equation in enumerate(program.equations):
            self.source, self.position = substituted(equation, replacements), position
            yield self.source
        self.position = len(program.equations)

    def program_from(self, program: Program, outputs: Sequence[Variable]) -> Program:
        """The program with the written equations; the same object if nothing changed."""
        in_order = sorted(self._written, key=lambda pair: pair[0])
        equations = tuple([equation for _, equation in in_order])
        if (
            equations == program.equations
            and all(map(same_value, outputs, program.outputs))
            and not self.constants
        ):
            return program
        return program.changed(
            equations=equations,
            outputs=tuple(outputs),
            constants={**program.constants, **self.constants},
        )


def _slice(stack: Tensor, k: int) -> Tensor:
    """The slice at an index along the first axis, without the axis."""
    shape = stack.shape[1:]
    return stack.crop(((k, k + 1), *[(0, n) for n in shape])).reshape(shape)


def program_of(
    function: Callable[..., Sequence[Tensor]], types: Sequence[tuple[Shape, DType]], backend: RawTensor[Any]
) -> Program:
    """The program of a function of tensors with these shapes and dtypes, in ops that the backend has."""
    writer = EquationWriter(backend)
    inputs = tuple([Variable(*type_) for type_ in types])
    results = function(*[Tensor(writer, v, v.shape, v.dtype) for v in inputs])
    empty = Program(inputs, (), (), name=function.__name__, backend=backend)
    return writer.program_from(empty, [y.representation for y in results])
