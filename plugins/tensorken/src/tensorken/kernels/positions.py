"""Positions: compute constants that count along an axis, and recognise indices within rows.

The kernel that computes a row of a matrix can then gather from it, and a scatter of one number to each row becomes a
`where` over the elements of the row.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.kernels.integer_bounds import end_of
from tensorken.programs.ops import ADD_AT, IOTA
from tensorken.programs.passes.common_subexpressions import without_common_subexpressions
from tensorken.programs.passes.movement import RULES as MOVEMENT_RULES
from tensorken.programs.passes.rewriting import Rewriting, rewritten
from tensorken_core.language.dtypes import int32
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Literal, Program, Variable

if TYPE_CHECKING:
    from tensorken_core.language.raw import RawTensor
    from tensorken_core.tensor.tensor import Tensor

ADD, EQ, EXPAND, FLOOR_DIVIDE, RESHAPE, SCATTER_ADD, WHERE = (
    OPS[name] for name in ("add", "eq", "expand", "floor_divide", "reshape", "scatter_add", "where")
)

MAX_EXAMINED = 2**16
"""The most elements of a constant that is examined."""


def with_positions(program: Program, backend: RawTensor[Any]) -> Program:
    """The program with positions computed, and without scatters of one number to each row of a matrix.

    Exact, except that a row has the sign of a zero that is added to it.
    """
    counting = {v: e for v in program.constants if (e := _counting(v, program)) is not None}
    if not counting:
        return program
    program = program.changed(
        equations=(*counting.values(), *program.equations),
        constants={v: x for v, x in program.constants.items() if v not in counting},
    )
    rules = {SCATTER_ADD: (_of_rows,), ADD_AT: (_of_rows,), **MOVEMENT_RULES}
    return without_common_subexpressions(rewritten(program, backend, rules))


def _counting(v: Variable, program: Program) -> Equation | None:
    """The equation of a constant that counts along an axis."""
    params = counted(program.constants[v])
    return None if params is None else Equation(IOTA, (), (v.shape, *params, v.dtype), (v,))


def counted(x: Tensor) -> tuple[int, int, int] | None:
    """Axis, start and step of a constant of integers that are not negative and count along one axis, in equal steps.

    Machine code that computes such a constant depends on these three numbers.
    """
    backend: Any = x.interpreter
    if x.dtype.kind != "int" or not 1 < prod(x.shape) <= MAX_EXAMINED or backend.below is not None:
        return None
    elements = [*map(int, backend.ravel(x.representation))]
    start, after = elements[0], len(elements)
    for axis, n in enumerate(x.shape):
        after //= n
        step = elements[after] - start if n > 1 else 0
        is_counting = step > 0 and 0 <= start < start + (n - 1) * step < 2**31
        if is_counting and all([x == start + i // after % n * step for i, x in enumerate(elements)]):
            return axis, start, step
    return None


def _of_rows(rewriting: Rewriting, e: Equation) -> Variable | None:
    """A scatter of one number to each row of a matrix, at an index in the row."""
    *ys, x, indices = e.operands
    (v,) = e.results
    rows = indices.shape[0]
    if len(v.shape) != 1 or rows == 0 or v.shape[0] % rows:
        return None
    columns = v.shape[0] // rows
    index = _within_rows(rewriting, indices, rows, columns)
    if index is None:
        return None
    shape = rows, columns

    def repeated(y: Variable) -> Variable:
        if isinstance(y, Literal):
            return Literal(shape, y.dtype, y.value)
        return rewriting.write(EXPAND, (_reshaped(rewriting, y, (rows, 1)),), (shape,))

    start = _reshaped(rewriting, ys[0], shape) if ys else Literal(shape, x.dtype, 0)
    total = repeated(x)
    if isinstance(x, Literal) and getattr(start, "value", None) == 0:
        total = Literal(shape, x.dtype, x.value + 0)  # 0.0 + -0.0 is 0.0
    else:
        total = rewriting.write(ADD, (start, total))
    if columns > 1:
        positions = rewriting.write(IOTA, (), (shape, 1, 0, 1, int32))
        total = rewriting.write(WHERE, (rewriting.write(EQ, (positions, repeated(index))), total, start))
    return _reshaped(rewriting, total, v.shape)


def _within_rows(rewriting: Rewriting, v: Variable, rows: int, columns: int) -> Variable | None:
    """The int32 index within its row that each number of a vector of indices into a flat matrix adds to the row's
    start; None if the numbers are not known to be such sums, one for each row in order.
    """
    producers = rewriting.definitions
    equation = producers.get(v)
    while equation is not None and equation.op is RESHAPE:
        (v,) = equation.operands
        equation = producers.get(v)
    if equation is None or v.dtype is not int32:
        return None
    if equation.op is FLOOR_DIVIDE and columns == 1:
        return _row_of(rewriting, equation, rows)
    if equation.op is IOTA and columns == 1:
        return Literal((rows,), int32, 0) if _counts(equation, rows, 1) else None
    if equation.op is not ADD:
        return None
    for index, start in (equation.operands, equation.operands[::-1]):
        end, counting = end_of(index, producers), producers.get(start)
        if end is not None and end <= columns and counting is not None and _counts(counting, rows, columns):
            return _reshaped(rewriting, index, (rows,))
    return None


def _row_of(rewriting: Rewriting, equation: Equation, rows: int) -> Variable | None:
    """Zeros, if the equation divides indices into a flat matrix, one in each row, by its number of columns."""
    indices, divisor = equation.operands
    columns = getattr(divisor, "value", 0)
    if columns < 1 or _within_rows(rewriting, indices, rows, columns) is None:
        return None
    return Literal((rows,), int32, 0)


def _counts(equation: Equation, rows: int, step: int) -> bool:
    """Whether an equation counts along its only axis of size other than 1, from 0 in these steps."""
    if equation.op is not IOTA:
        return False
    shape, axis, start, axis_step, _ = equation.params
    return shape[axis] == rows and prod(shape) == rows and (start, axis_step) == (0, step)


def _reshaped(rewriting: Rewriting, v: Variable, shape: tuple[int, ...]) -> Variable:
    if isinstance(v, Literal):
        return Literal(shape, v.dtype, v.value)
    return v if v.shape == shape else rewriting.write(RESHAPE, (v,), (shape,))
