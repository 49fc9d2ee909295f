"""The programs of a lazy backend that graphs of one structure share: numbers that change are inputs of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

from tensorken.lazy.graph import CROP, ITEM, Graph, Number, movable, shortened
from tensorken_core.language.dtypes import DType, int32
from tensorken_core.language.interpreter import R
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.tensor.tensor import Tensor

MAX_SPECIALIZATIONS = 3
"""How many programs of a structure have numbers in them; after these all its numbers are inputs."""

ADD, EXPAND, GATHER, RESHAPE = (OPS[name] for name in ("add", "expand", "gather", "reshape"))


@dataclass(frozen=True, slots=True)
class SpecializedProgram:
    """A program, and the numbers that it serves.

    Attributes:
        program: its inputs are the leaves of the graph, and an array of numbers for each dtype of those that change.
        fixed: the places of the numbers that stand in it, and what tells each from others.
        equal: pairs of places whose numbers are the same element of an array.
        arrays: the dtype of each array, and the places of its elements.
    """

    program: Program
    fixed: tuple[tuple[int, Any], ...]
    equal: tuple[tuple[int, int], ...]
    arrays: tuple[tuple[DType, tuple[int, ...]], ...]

    def serves(self, told: tuple[Any, ...]) -> bool:
        """Whether the program is that of these numbers."""
        for i, value in self.fixed:
            if told[i] != value:
                return False
        return all([told[i] == told[j] for i, j in self.equal])

    def inputs(self, numbers: Sequence[Any], backend: RawTensor[R]) -> list[R]:
        """The arrays."""
        return [
            backend.new((len(places),), [_value(numbers[i]) for i in places], dtype)
            for dtype, places in self.arrays
        ]


class SpecializedPrograms(Generic[R]):
    """The programs of one structure: that of the first graph, and the one that serves all others so far.

    The numbers of the first graph stand in its program.  Those that another graph has changed are inputs of the next
    program, and such that have always been equal are one input.  When a graph comes that it does not serve, a program
    of which more numbers are inputs takes its place.

    Args:
        outputs: the steps whose results are wanted.
        backend: where the programs run.

    Attributes:
        used: when they were last asked for; for whoever keeps them.
    """

    def __init__(self, outputs: tuple[int, ...], backend: RawTensor[R]) -> None:
        self.outputs = outputs
        self.backend = backend
        self.used = 0
        self._seen: list[tuple[Any, ...]] = []  # the numbers for which each program was made
        self._served: list[SpecializedProgram] = []  # the first program and the last

    def serving(self, graph: Graph[R]) -> SpecializedProgram:
        """What computes a graph of this structure; made if there is none yet."""
        if self._seen and graph.told == self._seen[0]:
            return self._served[0]
        if not self._seen or not self._served[-1].serves(graph.told):
            seen = [*self._seen, graph.told]
            self._served = [*self._served[:1], _serving(graph, seen, self.outputs, self.backend)]
            self._seen = seen
        return self._served[-1]


def _serving(
    graph: Graph[R], seen: Sequence[tuple[Any, ...]], outputs: Sequence[int], backend: RawTensor[R]
) -> SpecializedProgram:
    """A program for a graph whose structure has been seen with these numbers, the graph's own last."""
    fixed: list[tuple[int, Any]] = []
    inputs: dict[Any, list[int]] = {}  # for each the places where it is used
    for i, history in enumerate(zip(*seen, strict=True)):
        number = graph.numbers[i]
        changes = any([told != history[0] for told in history])
        if len(seen) > MAX_SPECIALIZATIONS and (changes or isinstance(number, Number)):
            inputs[i] = [i]
        elif changes:
            inputs.setdefault((_dtype(number), history), []).append(i)
        else:
            fixed.append((i, graph.told[i]))
    arrays: dict[DType, list[list[int]]] = {}
    for places in inputs.values():
        arrays.setdefault(_dtype(graph.numbers[places[0]]), []).append(places)
    return SpecializedProgram(
        _Writer(graph, arrays, backend).program(outputs),
        tuple(fixed),
        tuple([(places[0], i) for places in inputs.values() for i in places[1:]]),
        tuple([(dtype, tuple([places[0] for places in each])) for dtype, each in arrays.items()]),
    )


def _value(number: Any) -> Any:
    return number.number if isinstance(number, Number) else number


def _dtype(number: Any) -> DType:
    return number.dtype if isinstance(number, Number) else int32


class _Writer(Generic[R]):
    """Writes the program of a graph.

    Args:
        graph: what is computed.
        arrays: for each dtype the numbers that are inputs: for each element of its array the places that it has among
            the graph's numbers.
        backend: where the program runs.
    """

    def __init__(self, graph: Graph[R], arrays: dict[DType, list[list[int]]], backend: RawTensor[R]) -> None:
        self.graph = graph
        self.backend = backend
        self.equations: list[Equation] = []
        self.constants: dict[Variable, Tensor] = {}
        self.leaves = [Variable(x.shape, x.dtype) for x in graph.leaves]
        self.arrays = [Variable((len(elements),), dtype) for dtype, elements in arrays.items()]
        self._elements = {
            i: (array, k)
            for array, elements in zip(self.arrays, arrays.values(), strict=True)
            for k, members in enumerate(elements)
            for i in members
        }
        self._known: dict[Any, Variable] = {}
        self._results: list[Any] = []
        self._next = 0  # of the numbers

    def program(self, outputs: Sequence[int]) -> Program:
        """The program that computes some of the steps."""
        for i, (op, _, *operands) in enumerate(self.graph.steps):
            params, (shape, dtype) = self.graph.params[i], self.graph.facts[i]
            if op is ITEM:
                self._results.append(self._results[operands[0]][params[0]])
                continue
            xs = [self._operand(place) for place in operands]
            if op is CROP and movable(xs[0].shape):
                self._results.append(self._cropped(xs[0], params[0], shape))
                continue
            one = op.results == 1
            facts = [(shape, dtype)] if one else zip(shape, dtype, strict=True)
            defined = tuple([Variable(*each) for each in facts])
            self.equations.append(Equation(op, tuple(xs), params, defined))
            self._results.append(defined[0] if one else defined)
        return Program(
            (*self.leaves, *self.arrays),
            tuple([self._results[i] for i in outputs]),
            tuple(self.equations),
            self.constants,
            name="lazy",
            backend=self.backend,
        )

    def _operand(self, place: Any) -> Variable:
        if type(place) is int:
            found: Variable = self._results[place] if place >= 0 else self.leaves[~place]
            return found
        i = self._next
        self._next += 1
        shape, dtype = place
        if i in self._elements:
            return self._repeated(i, shape)
        number = self.graph.numbers[i]
        return self._once((shape, dtype, number.told), lambda: Literal(shape, dtype, number.number))

    def _cropped(self, x: Variable, limits: Sequence[tuple[int, int]], shape: Shape) -> Variable:
        """A crop; along axes where its beginning is an input what is there is gathered."""
        limits = list(limits)
        moving = []
        for axis in shortened(x.shape, shape):
            if self._next in self._elements:
                moving.append((axis, self._next))
                limits[axis] = (0, x.shape[axis])
            self._next += 1
        if limits != [(0, n) for n in x.shape]:
            x = self._write(CROP, (x,), (tuple(limits),))
        for axis, i in moving:
            size = shape[axis]
            indices = self._write(ADD, (self._repeated(i, (size,)), self._counted(size)))
            x = self._write(GATHER, (x, indices), (axis,))
        return x

    def _repeated(self, i: int, shape: Shape) -> Variable:
        """A number that is an input, in a shape."""
        array, k = self._elements[i]
        x = array
        if array.shape != (1,):
            x = self._once((array, k), lambda: self._write(CROP, (array,), (((k, k + 1),),)))
        ones = (1,) * len(shape)
        if ones != (1,):
            one = x
            x = self._once((array, k, ones), lambda: self._write(RESHAPE, (one,), (ones,)))
        if shape != ones:
            small = x
            x = self._once((array, k, shape), lambda: self._write(EXPAND, (small,), (shape,)))
        return x

    def _counted(self, size: int) -> Variable:
        """0, 1, 2, ..., a constant."""

        def made() -> Variable:
            v = Variable((size,), int32)
            value = self.backend.new((size,), list(range(size)), int32)
            self.constants[v] = Tensor(self.backend, value, v.shape, v.dtype)
            return v

        return self._once(("counted", size), made)

    def _write(self, op: Op, operands: tuple[Variable, ...], params: tuple[Any, ...] = ()) -> Variable:
        shape = op.shape(*[v.shape for v in operands], *params)
        v = Variable(shape, operands[0].dtype)
        self.equations.append(Equation(op, operands, params, (v,)))
        return v

    def _once(self, key: Any, make: Any) -> Variable:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = make()
        return found
