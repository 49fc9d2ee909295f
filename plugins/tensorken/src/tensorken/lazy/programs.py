"""The programs of a lazy backend for graphs of one structure: numbers that change become inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

from tensorken.lazy.graph import CROP, ITEM, Graph, Number, cropped_axes, fits_int32
from tensorken.lazy.origins import step_origin
from tensorken_core.language.dtypes import DType, int32
from tensorken_core.language.interpreter import R
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.tensor.tensor import Tensor

MAX_SPECIALIZATIONS = 3
"""The largest number of programs of a structure with constants; in later programs all numbers are inputs."""

ADD, EXPAND, GATHER, RESHAPE = (OPS[name] for name in ("add", "expand", "gather", "reshape"))


@dataclass(frozen=True, slots=True)
class SpecializedProgram:
    """A program for graphs of one structure, with some of their numbers as constants.

    Attributes:
        program: its inputs are the leaves of the graph, and one array for each dtype of the numbers that change.
        constants: for each number in the program its index and key.
        equal: pairs of indices of numbers that are the same element of an array.
        arrays: the dtype of each array, and the indices of the numbers that are its elements.
    """

    program: Program
    constants: tuple[tuple[int, Any], ...]
    equal: tuple[tuple[int, int], ...]
    arrays: tuple[tuple[DType, tuple[int, ...]], ...]

    def matches(self, keys: tuple[Any, ...]) -> bool:
        """Whether the program computes a graph with these numbers."""
        for i, value in self.constants:
            if keys[i] != value:
                return False
        return all([keys[i] == keys[j] for i, j in self.equal])

    def inputs(self, numbers: Sequence[Any], backend: RawTensor[R]) -> list[R]:
        """The arrays of the numbers that are inputs."""
        return [
            backend.new((len(indices),), [_value(numbers[i]) for i in indices], dtype)
            for dtype, indices in self.arrays
        ]


class SpecializedPrograms(Generic[R]):
    """The programs of one structure: the program of the first graph, and the most general program so far.

    The program of the first graph contains all numbers as constants.  Numbers that differ in a later graph are inputs
    of the next program; numbers that have always been equal are one input.  If a graph does not match the last program,
    a program with more inputs replaces that program.

    Args:
        outputs: the steps whose results are the outputs.
        backend: where the programs run.

    Attributes:
        used: the serial of the last use; the cache evicts the least recently used.
    """

    def __init__(self, outputs: tuple[int, ...], backend: RawTensor[R]) -> None:
        self.outputs = outputs
        self.backend = backend
        self.used = 0
        self._number_keys: list[tuple[Any, ...]] = []  # for each program, the keys of its graph's numbers
        self._programs: list[SpecializedProgram] = []  # the first program and the last

    def specialized(self, graph: Graph[R]) -> SpecializedProgram:
        """The program for a graph of this structure; made if no program matches."""
        if self._number_keys and graph.number_keys == self._number_keys[0]:
            return self._programs[0]
        if not self._number_keys or not self._programs[-1].matches(graph.number_keys):
            number_keys = [*self._number_keys, graph.number_keys]
            self._programs = [
                *self._programs[:1],
                _specialize(graph, number_keys, self.outputs, self.backend),
            ]
            self._number_keys = number_keys
        return self._programs[-1]


def _specialize(
    graph: Graph[R], number_keys: Sequence[tuple[Any, ...]], outputs: Sequence[int], backend: RawTensor[R]
) -> SpecializedProgram:
    """A program for a graph; `number_keys` has the keys of all graphs of the structure so far, this graph's last."""
    constants: list[tuple[int, Any]] = []
    inputs: dict[Any, list[int]] = {}  # for each input the indices of its uses
    for i, history in enumerate(zip(*number_keys, strict=True)):
        number = graph.numbers[i]
        changes = any([key != history[0] for key in history])
        if len(number_keys) > MAX_SPECIALIZATIONS and (changes or isinstance(number, Number)):
            inputs[i] = [i]
        elif changes:
            inputs.setdefault((_dtype(number), history), []).append(i)
        else:
            constants.append((i, graph.number_keys[i]))
    arrays: dict[DType, list[list[int]]] = {}
    for uses in inputs.values():
        arrays.setdefault(_dtype(graph.numbers[uses[0]]), []).append(uses)
    return SpecializedProgram(
        _ProgramWriter(graph, arrays, backend).program(outputs),
        tuple(constants),
        tuple([(uses[0], i) for uses in inputs.values() for i in uses[1:]]),
        tuple([(dtype, tuple([uses[0] for uses in elements])) for dtype, elements in arrays.items()]),
    )


def _value(number: Any) -> Any:
    return number.fill_value if isinstance(number, Number) else number


def _dtype(number: Any) -> DType:
    return number.dtype if isinstance(number, Number) else int32


class _ProgramWriter(Generic[R]):
    """Writes the program of a graph.

    Args:
        graph: the graph.
        arrays: for each dtype the numbers that are inputs: for each element of the array the indices of its uses.
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
        self._cache: dict[Any, Variable] = {}
        self._results: list[Any] = []
        self._next = 0  # the index of the next number

    def program(self, outputs: Sequence[int]) -> Program:
        """The program whose outputs are the results of some steps."""
        for i, (op, _, *operands) in enumerate(self.graph.steps):
            params, (shape, dtype) = self.graph.params[i], self.graph.types[i]
            if op is ITEM:
                self._results.append(self._results[operands[0]][params[0]])
                continue
            xs = [self._operand(source) for source in operands]
            if op is CROP and fits_int32(xs[0].shape):
                self._results.append(self._cropped(xs[0], params[0], shape))
                continue
            one = op.results == 1
            types = [(shape, dtype)] if one else zip(shape, dtype, strict=True)
            defined = tuple([Variable(*type_) for type_ in types])
            origin = step_origin(i, self.graph.positions[i])
            self.equations.append(Equation(op, tuple(xs), params, defined, origin))
            self._results.append(defined[0] if one else defined)
        return Program(
            (*self.leaves, *self.arrays),
            tuple([self._results[i] for i in outputs]),
            tuple(self.equations),
            self.constants,
            name="lazy",
            backend=self.backend,
        )

    def _operand(self, source: Any) -> Variable:
        if type(source) is int:
            result: Variable = self._results[source] if source >= 0 else self.leaves[~source]
            return result
        i = self._next
        self._next += 1
        shape, dtype = source
        if i in self._elements:
            return self._repeated(i, shape)
        number = self.graph.numbers[i]
        return self._cached((shape, dtype, number.key), lambda: Literal(shape, dtype, number.fill_value))

    def _cropped(self, x: Variable, limits: Sequence[tuple[int, int]], shape: Shape) -> Variable:
        """A crop; along axes where its start is an input, a gather."""
        limits = list(limits)
        gathered = []
        for axis in cropped_axes(x.shape, shape):
            if self._next in self._elements:
                gathered.append((axis, self._next))
                limits[axis] = (0, x.shape[axis])
            self._next += 1
        if limits != [(0, n) for n in x.shape]:
            x = self._write(CROP, (x,), (tuple(limits),))
        for axis, i in gathered:
            size = shape[axis]
            indices = self._write(ADD, (self._repeated(i, (size,)), self._arange(size)))
            x = self._write(GATHER, (x, indices), (axis,))
        return x

    def _repeated(self, i: int, shape: Shape) -> Variable:
        """A number that is an input, expanded to a shape."""
        array, k = self._elements[i]
        x = array
        if array.shape != (1,):
            x = self._cached((array, k), lambda: self._write(CROP, (array,), (((k, k + 1),),)))
        ones = (1,) * len(shape)
        if ones != (1,):
            one = x
            x = self._cached((array, k, ones), lambda: self._write(RESHAPE, (one,), (ones,)))
        if shape != ones:
            small = x
            x = self._cached((array, k, shape), lambda: self._write(EXPAND, (small,), (shape,)))
        return x

    def _arange(self, size: int) -> Variable:
        """The constant 0, 1, 2, ..."""

        def make() -> Variable:
            v = Variable((size,), int32)
            value = self.backend.new((size,), list(range(size)), int32)
            self.constants[v] = Tensor(self.backend, value, v.shape, v.dtype)
            return v

        return self._cached(("arange", size), make)

    def _write(self, op: Op, operands: tuple[Variable, ...], params: tuple[Any, ...] = ()) -> Variable:
        shape = op.shape(*[v.shape for v in operands], *params)
        v = Variable(shape, operands[0].dtype)
        self.equations.append(Equation(op, operands, params, (v,)))
        return v

    def _cached(self, key: Any, make: Any) -> Variable:
        variable = self._cache.get(key)
        if variable is None:
            variable = self._cache[key] = make()
        return variable
