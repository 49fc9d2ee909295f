"""Constants: compute values that do not depend on the inputs once, when the program is prepared."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping
from typing import Any

from tensorken.programs.passes.dead_code import without_dead_code
from tensorken.programs.passes.elements import (
    MOVEMENT_OPS,
    computed_elements,
    elements_of,
    elements_of_number,
    remember_elements,
)
from tensorken.programs.passes.rewriting import substituted
from tensorken_core.language.dtypes import exact
from tensorken_core.language.op import OPS, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.tensor.tensor import Tensor

MAX_FOLDED_SIZE = 4096
"""The largest number of elements of a constant that replaces the equation that computes it."""

MAX_SEARCHED_SIZE = 1 << 20
"""The largest number of elements of a constant that is checked for being uniform."""

_unequal: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()
"""The constants that are known to have unequal elements, by identity; reading one from a device would wait for the
device.
"""

MAX_REMEMBERED = 4096
"""The largest number of folded numbers that are remembered for each backend."""

_numbers: weakref.WeakKeyDictionary[RawTensor[Any], dict[Any, bool | int | float]] = (
    weakref.WeakKeyDictionary()
)
_CROP, _EXPAND = OPS["crop"], OPS["expand"]
_PRESERVE_ELEMENTS = MOVEMENT_OPS - {_CROP, _EXPAND}
"""Movement ops that neither drop nor repeat elements."""

_KEPT = frozenset(("program", "placement"))
"""The kinds of params of ops that are never folded."""


def remember_unequal(x: Tensor) -> None:
    """Remember that not all elements of a constant are equal."""
    _unequal[id(x)] = x


def with_constants_folded(program: Program, backend: RawTensor[Any]) -> Program:
    """Replace equations whose operands are all literals or small constants by their results.

    Constants whose elements are all equal become literals.  Bit for bit the same: the backend computes the results,
    except results on which all backends agree.
    """
    if backend.capabilities.symbolic:
        return program
    replacements: dict[Variable, Variable] = {}
    constants: dict[Variable, Tensor] = {}
    for v, x in program.constants.items():
        literal = _uniform(x, v) if math.prod(v.shape) <= MAX_SEARCHED_SIZE else None
        if literal is None:
            constants[v] = x
        else:
            replacements[v] = literal
    values = _Values(constants, backend)
    folded: list[Variable] = []
    written: list[Equation] = []
    for equation in program.equations:
        equation = substituted(equation, replacements)
        if not _foldable(equation, values.known_values):
            written.append(equation)
            continue
        result = equation.results[0]
        if equation.op in MOVEMENT_OPS and isinstance(equation.operands[0], Literal):
            replacements[result] = Literal(result.shape, result.dtype, equation.operands[0].value)
            continue
        if equation.op.elementwise and all([isinstance(v, Literal) for v in equation.operands]):
            replacements[result] = _of_numbers(equation, backend)
            continue
        values.compute(equation)
        if equation.op is _EXPAND:  # kept for the contraction pass; its uses may be folded
            written.append(equation)
        elif math.prod(result.shape) == 1:
            replacements[result] = Literal(result.shape, result.dtype, values.number(result))
        else:
            folded.append(result)
    if not replacements and len(written) == len(program.equations):
        return program
    outputs = tuple([replacements.get(v, v) for v in program.outputs])
    needed = {v for equation in written for v in equation.operands}.union(outputs)
    constants.update({v: values.constant(v) for v in folded if v in needed})
    return without_dead_code(program.changed(equations=tuple(written), outputs=outputs, constants=constants))


class _Values:
    """The values of constants, and of equations of constants.

    Attributes:
        known_values: the variables whose values are known, besides literals.
    """

    def __init__(self, constants: Mapping[Variable, Tensor], backend: RawTensor[Any]) -> None:
        small = {
            v: x
            for v, x in constants.items()
            if math.prod(v.shape) <= MAX_FOLDED_SIZE and x.interpreter.below is None
        }
        self.known_values = set(small)
        self._backend = backend
        self._constants = small
        self._elements = {v: elements_of(x) for v, x in small.items()}
        self._unequal = {v for v, x in small.items() if _unequal.get(id(x)) is x}
        self._values: dict[Variable, Any] = {}  # on the backend, computed when needed

    def compute(self, equation: Equation) -> None:
        """Compute a result: in Python if all operands have known elements and all backends agree on the result, else on
        the backend.
        """
        op, operands, result = equation.op, equation.operands, equation.results[0]
        operand_elements = [
            elements_of_number(v) if isinstance(v, Literal) else self._elements[v] for v in operands
        ]
        elements = [xs for xs in operand_elements if xs is not None]
        result_elements = (
            computed_elements(equation, elements) if len(elements) == len(operand_elements) else None
        )
        if result_elements is None:
            self._values[result] = run(self._backend, op, [self._value(v) for v in operands], equation.params)
        if op in _PRESERVE_ELEMENTS and operands[0] in self._unequal:
            self._unequal.add(result)
        self._elements[result] = result_elements
        self.known_values.add(result)

    def number(self, v: Variable) -> bool | int | float:
        """The only element of a value."""
        elements = self._elements[v]
        return elements[0] if elements is not None else _number(self._backend.ravel(self._value(v))[0])

    def constant(self, v: Variable) -> Tensor:
        """A value as a constant; the known facts about its elements are remembered."""
        x, elements = Tensor(self._backend, self._value(v), v.shape, v.dtype), self._elements[v]
        if elements is not None:
            remember_elements(x, elements)
        elif v in self._unequal:
            remember_unequal(x)
        return x

    def _value(self, v: Variable) -> Any:
        if v not in self._values:
            self._values[v] = self._outside(v)
        return self._values[v]

    def _outside(self, v: Variable) -> Any:
        backend = self._backend
        if isinstance(v, Literal):
            return backend.full(v.shape, v.value, v.dtype)
        if v not in self._constants:
            return backend.new(v.shape, self._elements[v], v.dtype)
        return self._constants[v].representation


def _foldable(equation: Equation, known_values: set[Variable]) -> bool:
    """Whether all operands are known, and the only result is small enough to be a constant."""
    for v in equation.operands:
        if not isinstance(v, Literal) and v not in known_values:
            return False
    if equation.op.results != 1 or not _KEPT.isdisjoint(equation.op.params) or not equation.operands:
        return False
    literals = all([isinstance(v, Literal) for v in equation.operands])
    if literals and (equation.op.elementwise or equation.op in MOVEMENT_OPS):
        return True
    return math.prod(equation.results[0].shape) <= MAX_FOLDED_SIZE and all(
        [math.prod(v.shape) <= MAX_FOLDED_SIZE for v in equation.operands]
    )


def _of_numbers(equation: Equation, backend: RawTensor[Any]) -> Literal:
    """Compute an elementwise op on literals for one element; the result is remembered, since reading a device means
    waiting.
    """
    result = equation.results[0]
    literals = [v for v in equation.operands if isinstance(v, Literal)]
    cache = _numbers.setdefault(backend, {})
    key = equation.op, repr(equation.params), *[(v.dtype, exact(v.value)) for v in literals]
    number = cache.get(key)
    if number is None:
        operands: list[Any] = [backend.full((), v.value, v.dtype) for v in literals]
        (value,) = backend.ravel(run(backend, equation.op, operands, equation.params))
        if len(cache) >= MAX_REMEMBERED:
            cache.clear()  # this drops entries of other threads too, so no entry is read after this
        number = cache[key] = _number(value)
    return Literal(result.shape, result.dtype, number)


def _uniform(x: Tensor, v: Variable) -> Literal | None:
    """A constant as a literal, if all its elements have the same bits."""
    known_elements = elements_of(x)
    if known_elements:
        return (
            Literal(v.shape, v.dtype, known_elements[0])
            if known_elements.count(known_elements[0]) == len(known_elements)
            else None
        )
    backend: Any = x.interpreter
    if backend.below is not None or backend.capabilities.symbolic or 0 in v.shape or _unequal.get(id(x)) is x:
        return None
    elements = backend.ravel(x.representation)
    first = elements[0]
    if isinstance(elements, list):
        equal = len(elements) <= MAX_FOLDED_SIZE and all(
            [repr(element) == repr(first) for element in elements]
        )
    else:
        view = memoryview(elements)
        data = view.tobytes()
        equal = data == data[: view.itemsize] * math.prod(v.shape)
    if equal:
        return Literal(v.shape, v.dtype, _number(first))
    remember_unequal(x)
    return None


def _number(element: Any) -> bool | int | float:
    """An element as a Python number."""
    value: bool | int | float = element.item() if hasattr(element, "item") else element
    return value


def zeros(shape: Shape, like: Variable) -> Literal:
    """Zeros of the dtype of a value."""
    return Literal(shape, like.dtype, 0)
