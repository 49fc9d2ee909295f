"""Constants: what does not depend on the inputs is computed once, while the program is prepared."""

from __future__ import annotations

import math
import weakref
from typing import Any

from tensorken.programs.passes.dead_code import without_dead_code
from tensorken.programs.passes.rewriting import substituted
from tensorken.programs.program import Equation, Literal, Program, Variable
from tensorken.spec.dtypes import exact
from tensorken.spec.op import OPS, run
from tensorken.spec.raw import RawTensor
from tensorken.spec.shapes import Shape
from tensorken.tensor import Tensor

SMALL = 4096
"""How many elements a constant may have that takes the place of the equation that computes it."""

READ = 1 << 20
"""How many elements a constant may have to be searched for whether they are all equal."""

_different: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()
"""By identity the constants that are known to have unequal elements; to look at one means to wait for a device."""

REMEMBERED = 4096
"""How many numbers are remembered for a backend."""

_numbers: weakref.WeakKeyDictionary[RawTensor[Any], dict[Any, bool | int | float]] = (
    weakref.WeakKeyDictionary()
)
_EXPAND = OPS["expand"]
_KEEP_THE_ELEMENTS = frozenset(OPS[name] for name in ("reshape", "permute", "flip"))
_KEEP_THE_NUMBER = frozenset(OPS[name] for name in ("reshape", "expand", "permute", "flip", "crop"))


def know_different(x: Tensor) -> None:
    """Remember that not all elements of a constant are equal."""
    _different[id(x)] = x


def _is_different(x: Tensor | None) -> bool:
    return x is not None and _different.get(id(x)) is x


def with_constants_folded(program: Program, backend: RawTensor[Any]) -> Program:
    """Equations of literals and small constants alone give way to what they give, computed on the backend.

    Constants whose elements are all equal become literals.  Bit for bit the same: the backend computes it either way.
    """
    if backend.capabilities.symbolic:
        return program
    known: dict[Variable, Variable] = {}
    constants: dict[Variable, Tensor] = {}
    for v, x in program.constants.items():
        literal = _uniform(x, v) if math.prod(v.shape) <= READ else None
        if literal is None:
            constants[v] = x
        else:
            known[v] = literal
    fixed = {v for v in constants if math.prod(v.shape) <= SMALL and constants[v].interpreter.below is None}
    values: dict[Variable, Any] = {}
    written: list[Equation] = []
    for equation in program.equations:
        equation = substituted(equation, known)
        if not _foldable(equation, fixed):
            written.append(equation)
            continue
        result = equation.results[0]
        if equation.op in _KEEP_THE_NUMBER and isinstance(equation.operands[0], Literal):
            known[result] = Literal(result.shape, result.dtype, equation.operands[0].value)
            continue
        if equation.op.elementwise and all([isinstance(v, Literal) for v in equation.operands]):
            known[result] = _of_numbers(equation, backend)
            continue
        for v in equation.operands:
            if v not in values:
                values[v] = _outside(v, constants, backend)
        y = run(backend, equation.op, [values[v] for v in equation.operands], equation.params)
        if (
            equation.op is _EXPAND
        ):  # stays, for contractions to see that it repeats; what uses it may be folded
            values[result] = y
            fixed.add(result)
            written.append(equation)
            continue
        if math.prod(result.shape) == 1:
            known[result] = Literal(result.shape, result.dtype, _number(backend.ravel(y)[0]))
            continue
        values[result] = y
        x = constants[result] = Tensor(backend, y, result.shape, result.dtype)
        if equation.op in _KEEP_THE_ELEMENTS and _is_different(constants.get(equation.operands[0])):
            know_different(x)
        fixed.add(result)
    if not known and len(written) == len(program.equations):
        return program
    outputs = tuple([known.get(v, v) for v in program.outputs])
    return without_dead_code(program.changed(equations=tuple(written), outputs=outputs, constants=constants))


def _foldable(equation: Equation, fixed: set[Variable]) -> bool:
    """Whether all operands are known, and the result is one value that is no larger than a constant may be."""
    for v in equation.operands:
        if not isinstance(v, Literal) and v not in fixed:
            return False
    if equation.op.results != 1 or "program" in equation.op.params or not equation.operands:
        return False
    literals = all([isinstance(v, Literal) for v in equation.operands])
    if literals and (equation.op.elementwise or equation.op in _KEEP_THE_NUMBER):
        return True
    return math.prod(equation.results[0].shape) <= SMALL and all(
        [math.prod(v.shape) <= SMALL for v in equation.operands]
    )


def _of_numbers(equation: Equation, backend: RawTensor[Any]) -> Literal:
    """An elementwise op on literals: computed for one element, and remembered, as to ask a device means to wait."""
    result = equation.results[0]
    literals = [v for v in equation.operands if isinstance(v, Literal)]
    known = _numbers.setdefault(backend, {})
    key = equation.op, repr(equation.params), *[(v.dtype, exact(v.value)) for v in literals]
    if key not in known:
        operands: list[Any] = [backend.full((), v.value, v.dtype) for v in literals]
        (value,) = backend.ravel(run(backend, equation.op, operands, equation.params))
        if len(known) >= REMEMBERED:
            known.clear()
        known[key] = _number(value)
    return Literal(result.shape, result.dtype, known[key])


def _outside(v: Variable, constants: dict[Variable, Tensor], backend: RawTensor[Any]) -> Any:
    if isinstance(v, Literal):
        return backend.full(v.shape, v.value, v.dtype)
    x = constants[v]
    own: Any = x.interpreter
    if own is backend:
        return x.representation
    return backend.new(v.shape, own.ravel(x.representation), v.dtype)


def _uniform(x: Tensor, v: Variable) -> Literal | None:
    """The literal that a constant is if all its elements have the same bits."""
    backend: Any = x.interpreter
    if (
        backend.below is not None
        or backend.capabilities.symbolic
        or 0 in v.shape
        or _different.get(id(x)) is x
    ):
        return None
    elements = backend.ravel(x.representation)
    first = elements[0]
    if isinstance(elements, list):
        same = len(elements) <= SMALL and all([repr(element) == repr(first) for element in elements])
    else:
        data = memoryview(elements).tobytes()
        same = data == data[: v.dtype.itemsize] * math.prod(v.shape)
    if same:
        return Literal(v.shape, v.dtype, _number(first))
    know_different(x)
    return None


def _number(element: Any) -> bool | int | float:
    """An element as a Python number."""
    value: bool | int | float = element.item() if hasattr(element, "item") else element
    return value


def zeros(shape: Shape, like: Variable) -> Literal:
    """Zeros of the dtype of a value."""
    return Literal(shape, like.dtype, {"bool": False, "int": 0, "float": 0.0}[like.dtype.kind])
