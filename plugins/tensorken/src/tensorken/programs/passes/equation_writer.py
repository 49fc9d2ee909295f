"""Writing: a backend that computes nothing and writes down, as equations, the ops that another backend has.

A pass that gives ops another meaning is an interpreter over it: the program is run once on that, and what is written
is the new program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tensorken.programs.passes.common_subexpressions import exactly, same
from tensorken.programs.passes.constants import MAX_FOLDED_SIZE, remember_unequal
from tensorken.programs.passes.elements import MOVEMENT_OPS, remember_elements
from tensorken.programs.passes.rewriting import substituted
from tensorken_core.errors import ConcretizationError
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.tensor.tensor import Tensor


class _Lacks(dict[Op, bool]):
    """For each op whether a writer writes its body in its place; found at first use."""

    def __init__(self, writer: EquationWriter) -> None:
        self.writer = writer

    def __missing__(self, op: Op) -> bool:
        self[op] = op.body is not None and not self.writer.has(op)
        return self[op]


class EquationWriter(RawTensor[Variable]):
    """Writes equations of the ops that a backend has, and the bodies of others.

    Attributes:
        at: the equation of the old program that what is written comes from: its line, its scope.  If what is written is
            just that, it is that equation, and no copy.
        lacks: for each op whether its body is written in its place.
        place: where it stands there; equations are written, in the end, in the order of these places.
    """

    def __init__(self, backend: RawTensor[Any]) -> None:
        self.backend = backend
        self.capabilities = backend.capabilities
        self.constants: dict[Variable, Tensor] = {}
        self.at: Equation | None = None
        self.place = 0
        self._written: list[tuple[int, Equation]] = []
        self._places: dict[Variable, int] = {}  # of the results of what is written
        self._turns: dict[Any, Program] = {}
        self.lacks = _Lacks(self)

    def shape(self, x: Variable) -> Shape:
        return x.shape

    def dtype(self, x: Variable) -> DType:
        return x.dtype

    def has(self, op: Op) -> bool:
        return "program" in op.params or self.backend.has(op)

    def number(self, x: Variable) -> bool | int | float | None:
        return x.value if isinstance(x, Literal) else None

    def ravel(self, x: Variable) -> Any:
        """The elements, where they are known; a body may ask for them to write less.

        Raises:
            ConcretizationError: where they are not.
        """
        if isinstance(x, Literal):
            return [x.value] * math.prod(x.shape)
        known = self.constants.get(x)
        if known is None:
            raise ConcretizationError(
                f"this {x.dtype} of shape {x.shape} has no value while a program is optimised"
            )
        return self.backend.ravel(known.representation)

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Variable:
        return Literal(shape, dtype, float(value) if dtype.kind == "float" else value)

    def new(self, shape: Shape, data: Any, dtype: DType) -> Variable:
        numbers = isinstance(data, list | range) and len(data) <= MAX_FOLDED_SIZE
        if numbers and len({repr(number) for number in data}) == 1:  # repr keeps 0.0 from -0.0
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
        if self.lacks[op]:
            return super().interpret(op, operands, params)
        operands, at = tuple(operands), self.at
        if at is not None and op is at.op and self._is(at, operands, params):
            self.keep(at)
            return at.results[0] if op.results == 1 else at.results
        shapes = operands[0].shape if op.elementwise else op.shape(*[v.shape for v in operands], *params)
        known = tuple([v.dtype for v in operands])
        dtypes = op.result_dtypes.get(known) or op.result_dtype(known, params)
        scope, origin = (0, None) if at is None else (at.scope, at.origin)
        if op.results == 1:
            v = Variable(shapes, dtypes)
            self.keep(Equation(op, operands, params, (v,), origin, scope))
            return v
        results = tuple([Variable(*facts) for facts in zip(shapes, dtypes, strict=True)])
        self.keep(Equation(op, operands, params, results, origin, scope))
        return results

    def loop(
        self,
        turn: Callable[..., Sequence[Tensor]],
        xs: Sequence[Tensor],
        turns: Sequence[Sequence[Tensor | int]],
    ) -> tuple[Sequence[Tensor], list[Sequence[Tensor]]]:
        """The turns; what one writes is written again for others, without asking op by op.

        Where numbers go into a turn it is asked, as what it writes may depend on these.
        """
        left: list[Sequence[Tensor]] = []
        for besides in turns:
            given = [*xs, *besides]
            variables = [x.representation for x in given if not isinstance(x, int)]
            if (
                len(turns) == 1
                or len(variables) < len(given)
                or any([self.number(v) is not None for v in variables])
            ):
                ys = turn(*given)
            else:
                facts = [(v.shape, v.dtype) for v in variables]
                key = (turn, *facts)
                if key not in self._turns:
                    self._turns[key] = program_of(turn, facts, self.backend)
                results = self._write_again(self._turns[key], variables)
                ys = [Tensor(self, v, v.shape, v.dtype) for v in results]
            xs = ys[: len(xs)]
            left.append(ys[len(xs) :])
        return xs, left

    def _write_again(self, program: Program, inputs: Sequence[Variable]) -> list[Variable]:
        """Write the equations of a program for these inputs; what its outputs are then."""
        known: dict[Variable, Variable] = dict(zip(program.inputs, inputs, strict=True))
        scope, origin = (0, None) if self.at is None else (self.at.scope, self.at.origin)
        for e in program.equations:
            results = tuple([Variable(v.shape, v.dtype) for v in e.results])
            operands = tuple([known.get(v, v) for v in e.operands])
            known.update(zip(e.results, results, strict=True))
            self.keep(Equation(e.op, operands, e.params, results, origin, scope))
        self.constants.update(program.constants)
        return [known.get(v, v) for v in program.outputs]

    def keep(self, equation: Equation) -> None:
        """Write an equation at the present place, or where its last operand comes from if that is later."""
        place, places = self.place, self._places
        for v in equation.operands:
            if places.get(v, 0) > place:
                place = places[v]
        for v in equation.results:
            places[v] = place
        self._written.append((place, equation))

    def _is(self, equation: Equation, operands: tuple[Variable, ...], params: tuple[Any, ...]) -> bool:
        """Whether an equation, which is not yet written, has these operands and params."""
        if not self._places.keys().isdisjoint(equation.results):
            return False
        if len(operands) != len(equation.operands) or not all(map(same, operands, equation.operands)):
            return False
        return bool(exactly(equation.op, params) == exactly(equation.op, equation.params))

    def following(
        self, program: Program, known: Mapping[Variable, Variable] = MappingProxyType({})
    ) -> Iterator[Equation]:
        """The equations of a program, one by one; what is written meanwhile comes from the one given last.

        Args:
            program: which is written anew.
            known: what is known by then to be the value of a variable of the old program, if not it itself.
        """
        for place, equation in enumerate(program.equations):
            self.at, self.place = substituted(equation, known), place
            yield self.at
        self.place = len(program.equations)

    def finished(self, program: Program, outputs: Sequence[Variable]) -> Program:
        """The program with what has been written in place of its equations; itself if that is the same."""
        in_order = sorted(self._written, key=lambda pair: pair[0])
        equations = tuple([equation for _, equation in in_order])
        if equations == program.equations and all(map(same, outputs, program.outputs)) and not self.constants:
            return program
        return program.changed(
            equations=equations,
            outputs=tuple(outputs),
            constants={**program.constants, **self.constants},
        )


def program_of(
    function: Callable[..., Sequence[Tensor]], facts: Sequence[tuple[Shape, DType]], backend: RawTensor[Any]
) -> Program:
    """The program of a function of tensors of these shapes and dtypes, in ops that the backend has."""
    writer = EquationWriter(backend)
    inputs = tuple([Variable(*each) for each in facts])
    results = function(*[Tensor(writer, v, v.shape, v.dtype) for v in inputs])
    nothing = Program(inputs, (), (), name=function.__name__, backend=backend)
    return writer.finished(nothing, [y.representation for y in results])
