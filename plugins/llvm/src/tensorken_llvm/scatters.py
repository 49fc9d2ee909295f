"""Scatters: loops over the slices, which are added one after the other to the elements at their indices.

The slices and indices are computed in the same loops.  A scatter that adds to another value takes the memory of that
value where nothing else needs it.  A slice whose index is out of range is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import TYPE_CHECKING

from llvmlite import ir

from tensorken.kernels.element_indices import INDICES_BEFORE
from tensorken.kernels.index_expressions import IndexExpression, written_variable
from tensorken_llvm import scalars
from tensorken_llvm.builder import Builder, new_function
from tensorken_llvm.dtypes import POINTER, TYPES, index_number, number
from tensorken_llvm.routines import Routine
from tensorken_llvm.walk import Walk

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable

MAX_COMPUTED = 16
"""How many values are computed in the loops, and not read from memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Scatter(Routine):
    """A scatter that machine code computes.

    Attributes:
        equation: of the op `scatter_add` or `add_at`.
        producers: for each computed value its equation.
        start: the value in memory that the slices are added to; None: a number.
        operands: the values in memory that the slices and indices are computed from.
        is_in_place: whether the result has the memory of `start`.
    """

    equation: Equation
    producers: Mapping[Variable, Equation]
    start: Variable | None
    operands: tuple[Variable, ...]
    is_in_place: bool = False

    @property
    def result(self) -> Variable:
        """The value that is computed."""
        (v,) = self.equation.results
        return v

    @property
    def reads(self) -> tuple[Variable, ...]:
        """The values in memory that it reads."""
        return tuple(dict.fromkeys([*self.operands, *([] if self.start is None else [self.start])]))

    @property
    def writes(self) -> tuple[Variable, ...]:
        """The result."""
        return (self.result,)

    @property
    def work(self) -> int:
        """The number of elements that it reads and writes."""
        return prod(self.result.shape) + prod(_slices(self.equation)[0].shape)

    def write(self, module: ir.Module) -> ir.Function:
        """The function that computes it, whose arguments are pointers to the values that it reads, and its result."""
        values = [*self.reads, self.result]
        name = module.get_unique_name("scatter")
        function = new_function(module, name, [POINTER] * len(values))
        for argument in function.args:
            argument.add_attribute("noalias")
        b = Builder(function.append_basic_block("entry"))
        # Slices are never read from `start`, even if made from it: in place it changes between their additions.
        walk = Walk(self.producers, self.operands, (), b, dict(zip(values, function.args, strict=True)))
        if not self.is_in_place:
            self._write_start(b, walk)
        self._write_additions(b, walk)
        b.ret_void()
        return function

    def _write_start(self, b: Builder, walk: Walk) -> None:
        """Write the loop that copies the value to which the slices are added."""
        v = self.result
        y = self.equation.operands[0] if self.equation.op.name == "add_at" else None
        filling = number(getattr(y, "value", 0), v.dtype)

        def copy(i: ir.Value) -> None:
            walk.index_values["element"] = i
            index = written_variable("element", prod(v.shape))
            walk.store(v, index, filling if self.start is None else walk.load(self.start, index))

        b.loop(prod(v.shape), copy)

    def _write_additions(self, b: Builder, walk: Walk) -> None:
        x, indices, axis = _slices(self.equation)
        v, count = self.result, indices.shape[0]
        outer, size, inner = prod(v.shape[:axis]), v.shape[axis], prod(v.shape[axis + 1 :])
        variables = [
            written_variable(*each) for each in (("outer", outer), ("slice", count), ("inner", inner))
        ]
        before, i, within = variables

        def add_slice(o: ir.Value, k: ir.Value) -> None:
            walk.index_values |= {"outer": o, "slice": k}
            with walk.scope():
                place = walk.as_index(
                    walk.value(indices, walk.element(indices.shape, i)), indices.dtype, size
                )
                inside = b.icmp_unsigned("<", walk.index_value(place), index_number(size))
                with b.if_then(inside):
                    b.loop(inner, lambda j: add(place, j))

        def add(place: IndexExpression, j: ir.Value) -> None:
            walk.index_values["inner"] = j
            with walk.scope():
                index = before.times(size * inner) + place.times(inner) + within
                source = before.times(count * inner) + i.times(inner) + within
                element = walk.value(x, walk.element(x.shape, source))
                walk.store(v, index, scalars.compute(b, "add", [walk.load(v, index), element], v.dtype))

        b.loop(outer, lambda o: b.loop(count, lambda k: add_slice(o, k)))


def scatters(program: Program) -> dict[Equation, Scatter]:
    """The scatters of a program that machine code computes."""
    producers = {v: e for e in program.equations for v in e.results}
    uses = Counter(chain(*[e.operands for e in program.equations], program.outputs))
    return {e: _scatter(e, producers, uses) for e in program.equations if is_scatter(e)}


def is_scatter(equation: Equation) -> bool:
    """Whether an op is a scatter that machine code computes."""
    if equation.op.name not in ("scatter_add", "add_at"):
        return False
    x, _, _ = _slices(equation)
    (v,) = equation.results
    is_narrow = v.dtype.wide is not v.dtype  # numpy's method adds these up in float32
    return v.dtype.name in TYPES and not is_narrow and 0 not in (*x.shape, *v.shape)


def _slices(equation: Equation) -> tuple[Variable, Variable, int]:
    """The slices that are added, their indices, and the axis."""
    *_, x, indices = equation.operands
    return x, indices, equation.params[0]


def _scatter(
    equation: Equation, producers: Mapping[Variable, Equation], uses: Mapping[Variable, int]
) -> Scatter:
    x, indices, axis = _slices(equation)
    is_repeated = prod(x.shape[:axis]) > 1
    found: dict[Variable, None] = {}
    for v, may_compute in ((x, True), (indices, not is_repeated)):
        operands = list(_operands(v, may_compute, producers, uses))
        if len(operands) > MAX_COMPUTED:
            operands = list(_operands(v, False, producers, uses))
        found |= dict.fromkeys(operands)
    start = None
    if equation.op.name == "add_at":
        start = _before_reshapes(equation.operands[0], producers)
    return Scatter(equation, producers, None if hasattr(start, "value") else start, tuple(found))


def _operands(
    v: Variable, may_compute: bool, producers: Mapping[Variable, Equation], uses: Mapping[Variable, int]
) -> Iterator[Variable]:
    """The values to read from memory, from which a value is computed that nothing else needs.

    Args:
        v: the value.
        may_compute: whether ops may be computed here, or only elements be moved.
        producers: for each computed value its equation.
        uses: how many equations and outputs use each value.
    """
    if hasattr(v, "value"):
        return
    equation = producers.get(v)
    name = "" if equation is None else equation.op.name
    may_compute = may_compute and uses[v] == 1
    is_elementwise = may_compute and equation is not None and _is_elementwise(equation)
    if equation is None or not (name in INDICES_BEFORE or is_elementwise):
        yield v
        return
    for x in equation.operands:
        yield from _operands(x, may_compute and name != "expand", producers, uses)


def _is_elementwise(equation: Equation) -> bool:
    """Whether an op is computed element by element."""
    dtypes = [v.dtype.name for v in (*equation.operands, *equation.results)]
    if len(equation.results) != 1 or not all([name in TYPES for name in dtypes]):
        return False
    if equation.op.name == "cast":
        return True
    return equation.op.elementwise and scalars.is_supported(equation.op.name, equation.operands[-1].dtype)


def _before_reshapes(v: Variable, producers: Mapping[Variable, Equation]) -> Variable:
    while v in producers and producers[v].op.name == "reshape":
        (v,) = producers[v].operands
    return v
