"""Diagonals: replace a product with a diagonal matrix by a product of elements.

The derivatives of all outputs, or with respect to all inputs, begin with an identity matrix: each of its rows is a
basis vector.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tensorken.programs.passes.constants import MAX_FOLDED_SIZE
from tensorken.programs.passes.elements import elements_of
from tensorken.programs.passes.rewriting import Rewriting, rewritten
from tensorken_core.language.dtypes import bool_
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.tensor.tensor import Tensor

CAST, CONTRACT, EQ, EXPAND, MUL, PERMUTE, RESHAPE = (
    OPS[name] for name in ("cast", "fused_multiply_add", "eq", "expand", "mul", "permute", "reshape")
)

_MAX_OPS = 16
"""How many ops between an identity matrix and a product are examined."""


@dataclass(frozen=True, slots=True)
class _Diagonal:
    """An array with two axes of size n and others of size 1, whose elements off the diagonal are 0.

    Attributes:
        axes: those of size n.
        factors: numbers, and values with n elements along one axis, whose product the diagonal is.
    """

    axes: tuple[int, int]
    factors: tuple[Variable, ...] = ()


def with_diagonals_multiplied(program: Program, backend: RawTensor[Any]) -> Program:
    """Multiply by the elements of a diagonal matrix that is an identity matrix, maybe with scaled rows or columns.

    The same numbers, as all other products are 0; but an infinity or NaN of the other operand makes no other elements
    NaN, and a -0.0 stays -0.0, where its sum with 0.0 is 0.0.
    """
    if CONTRACT not in program.ops:
        return program

    def rule(rewriting: Rewriting, e: Equation) -> Variable | None:
        a, b = e.operands
        found = _product(rewriting, program, e, a, b)
        return found if found is not None else _product(rewriting, program, e, b, a)

    return rewritten(program, backend, {CONTRACT: (rule,)})


def _product(
    rewriting: Rewriting, program: Program, e: Equation, a: Variable, b: Variable
) -> Variable | None:
    """The product of a diagonal matrix and another operand, summed over one of the two axes."""
    summed = [i for i in e.params[0] if a.shape[i] != 1 or b.shape[i] != 1]
    if len(summed) != 1 or [n for n in a.shape if n != 1] != [a.shape[summed[0]]] * 2:
        return None
    diagonal = _diagonal(rewriting, program, a)
    if diagonal is None or summed[0] not in diagonal.axes:
        return None
    inner, (outer,) = summed[0], [i for i in diagonal.axes if i != summed[0]]
    if b.shape[inner] != a.shape[inner] or b.shape[outer] != 1:
        return None
    order = list(range(len(b.shape)))
    order[inner], order[outer] = outer, inner
    y: Variable = rewriting.write(PERMUTE, (b,), (tuple(order),))
    along = tuple([n if i == outer else 1 for i, n in enumerate(a.shape)])
    for factor in diagonal.factors:
        y = rewriting.write(MUL, (y, _repeated(rewriting, factor, along, y.shape)))
    return y


def _repeated(rewriting: Rewriting, v: Variable, along: Shape, shape: Shape) -> Variable:
    """A value with the elements along one axis, repeated along all others."""
    if isinstance(v, Literal):
        return Literal(shape, v.dtype, v.value)
    v = v if v.shape == along else rewriting.write(RESHAPE, (v,), (along,))
    return v if v.shape == shape else rewriting.write(EXPAND, (v,), (shape,))


def _diagonal(rewriting: Rewriting, program: Program, v: Variable, depth: int = 0) -> _Diagonal | None:
    """A value as a diagonal matrix; None if it is not known to be one."""
    axes = [i for i, n in enumerate(v.shape) if n != 1]
    if len(axes) != 2 or v.shape[axes[0]] != v.shape[axes[1]] or depth > _MAX_OPS:
        return None
    if v in program.constants:
        number = _of_identity(_elements(program.constants[v]), v.shape[axes[0]])
        if number is None:
            return None
        return _Diagonal((axes[0], axes[1]), () if number == 1 else (Literal((), v.dtype, number),))
    e = rewriting.definition(v)
    if e is None:
        return None
    x = e.operands[0] if e.operands else v
    if e.op is CAST:
        found = rewriting.operands_if(x, EQ) if x.dtype is bool_ and v.dtype.kind == "float" else None
        is_identity = found is not None and _count_alike(rewriting, program, found, axes)
        return _Diagonal((axes[0], axes[1])) if is_identity else None
    if e.op in (RESHAPE, PERMUTE):
        inner = _diagonal(rewriting, program, x, depth + 1)
        return None if inner is None else replace(inner, axes=(axes[0], axes[1]))
    if e.op is MUL:
        for a, b in (e.operands, e.operands[::-1]):
            factor = _factor(rewriting, b, axes)
            inner = None if factor is None else _diagonal(rewriting, program, a, depth + 1)
            if inner is not None and factor is not None:
                return replace(inner, factors=(*inner.factors, factor))
    return None


def _factor(rewriting: Rewriting, v: Variable, axes: Sequence[int]) -> Variable | None:
    """The factor of each element of the diagonal: a number, or a value that is repeated along one of the axes."""
    if isinstance(v, Literal):
        return v
    inner = rewriting.operands_if(v, EXPAND)
    repeated = inner is not None and 1 in [inner[0].shape[i] for i in axes]
    return inner[0] if inner is not None and repeated and max(inner[0].shape) > 1 else None


def _count_alike(
    rewriting: Rewriting, program: Program, operands: Sequence[Variable], axes: Sequence[int]
) -> bool:
    """Whether two constants have the same distinct elements, one along each of the axes."""
    found = []
    for v in operands:
        inner = rewriting.operands_if(v, EXPAND)
        if inner is None or inner[0] not in program.constants:
            return False
        along = [i for i, n in enumerate(inner[0].shape) if n != 1]
        elements = _elements(program.constants[inner[0]])
        if len(along) != 1 or not elements or inner[0].dtype.kind != "int":
            return False
        found.append((along[0], elements))
    (first, elements), (second, others) = found
    return {first, second} == {*axes} and elements == others and len({*elements}) == len(elements)


def _elements(x: Tensor) -> list[Any]:
    """The elements of a small constant; none of any other."""
    backend: Any = x.interpreter
    if math.prod(x.shape) > MAX_FOLDED_SIZE or backend.below is not None or backend.capabilities.symbolic:
        return []
    known = elements_of(x)
    return [*(backend.ravel(x.representation) if known is None else known)]


def _of_identity(elements: Sequence[Any], n: int) -> bool | int | float | None:
    """The number that the elements of a square matrix have on its diagonal, with 0 elsewhere; None for any other."""
    if n == 0 or len(elements) != n * n or elements[1] != 0 or not math.isfinite(elements[0]):
        return None
    factor: bool | int | float = getattr(elements[0], "item", lambda: elements[0])()
    same = all([element == (0 if i % (n + 1) else factor) for i, element in enumerate(elements)])
    return factor if same and factor else None
