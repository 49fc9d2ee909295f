"""Writing: a backend that computes nothing and writes down, as equations, the ops that another backend has.

A pass that gives ops another meaning is an interpreter over it: the program is run once on that, and what is written
is the new program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tensorken.programs.passes.constants import SMALL, know_different
from tensorken.programs.program import Equation, Literal, Program, Variable
from tensorken.spec.dtypes import DType
from tensorken.spec.op import OPS, Op
from tensorken.spec.raw import RawTensor
from tensorken.spec.shapes import Shape
from tensorken.tensor import Tensor

_KEEP_THE_NUMBER = frozenset(OPS[name] for name in ("reshape", "expand", "permute", "flip", "crop"))


class Writer(RawTensor[Variable]):
    """Writes equations of the ops that a backend has, and the bodies of others.

    Attributes:
        at: the equation of the old program that what is written comes from: its line, its scope.
        place: where it stands there; equations are written, in the end, in the order of these places.
    """

    def __init__(self, backend: RawTensor[Any]) -> None:
        self.backend = backend
        self.capabilities = backend.capabilities
        self.constants: dict[Variable, Tensor] = {}
        self.at: Equation | None = None
        self.place = 0
        self._written: list[tuple[int, Equation]] = []
        self._places: dict[Variable, int] = {}

    def shape(self, x: Variable) -> Shape:
        return x.shape

    def dtype(self, x: Variable) -> DType:
        return x.dtype

    def has(self, op: Op) -> bool:
        return "program" in op.params or self.backend.has(op)

    def number(self, x: Variable) -> bool | int | float | None:
        return x.value if isinstance(x, Literal) else None

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Variable:
        return Literal(shape, dtype, float(value) if dtype.kind == "float" else value)

    def new(self, shape: Shape, data: Any, dtype: DType) -> Variable:
        numbers = isinstance(data, list | range) and len(data) <= SMALL
        if numbers and len({repr(number) for number in data}) == 1:  # repr keeps 0.0 from -0.0
            return self.full(shape, data[0], dtype)
        v = Variable(shape, dtype)
        x = self.constants[v] = Tensor(self.backend, self.backend.new(shape, data, dtype), shape, dtype)
        if numbers:
            know_different(x)
        return v

    def interpret(self, op: Op, operands: Sequence[Variable], params: tuple[Any, ...]) -> Any:
        if op in _KEEP_THE_NUMBER and isinstance(operands[0], Literal):
            return Literal(op.shape(operands[0].shape, *params), operands[0].dtype, operands[0].value)
        if op.body is not None and "program" not in op.params and not self.backend.has(op):
            return super().interpret(op, operands, params)
        shapes = op.shape(*[v.shape for v in operands], *params)
        dtypes = op.dtype(*[v.dtype for v in operands], *params)
        one = op.results == 1
        facts = [(shapes, dtypes)] if one else zip(shapes, dtypes, strict=True)
        results = tuple([Variable(*fact) for fact in facts])
        self.write(op, tuple(operands), params, results)
        return results[0] if one else results

    def write(
        self, op: Op, operands: tuple[Variable, ...], params: tuple[Any, ...], results: tuple[Variable, ...]
    ) -> None:
        """Write an equation at the present place, or where its last operand comes from if that is later."""
        place = self.place
        for v in operands:
            place = max(place, self._places.get(v, 0))
        for v in results:
            self._places[v] = place
        at = self.at
        scope, origin = (0, None) if at is None else (at.scope, at.origin)
        self._written.append((place, Equation(op, operands, params, results, origin, scope)))

    def following(self, program: Program) -> Iterator[Equation]:
        """The equations of a program, one by one; what is written meanwhile comes from the one given last."""
        for place, equation in enumerate(program.equations):
            self.at, self.place = equation, place
            yield equation
        self.place = len(program.equations)

    def finished(self, program: Program, outputs: Sequence[Variable]) -> Program:
        """The program with what has been written in place of its equations."""
        in_order = sorted(self._written, key=lambda pair: pair[0])
        return program.changed(
            equations=tuple([equation for _, equation in in_order]),
            outputs=tuple(outputs),
            constants={**program.constants, **self.constants},
        )
