"""The reference backend: it defines every op, in plain Python.

Each result is the exact value rounded once to the dtype. Sums, sums of products and running sums are exact before
they are rounded; integers wrap in two's complement; infinities, NaN and signed zeros follow IEEE 754; no op raises.
Speed comes second, but loops run in C where Python has them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import chain
from math import copysign, floor, inf, isfinite, nan, prod
from typing import Any

from tensorken_core.language import scalar
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType, bool_, float32, float64, int32, int64
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Axes, Pairs, Shape, reduced
from tensorken_core.rewriting.view import View
from tensorken_reference import bits, circular, exponentials, logarithms, power
from tensorken_reference.arrays import (
    Array,
    expand_axes,
    map_arrays,
    map_elements,
    map_rows,
    row_indices,
    rows_over,
    take_view,
)
from tensorken_reference.conversion import convert, unpack
from tensorken_reference.products import row_products, running_products
from tensorken_reference.rows import argsort_row, index_of, largest, row_sums, running_totals, smallest
from tensorken_reference.sums import products, wrapped_products
from tensorken_reference.windows import windows_of

_ULP = {"*": 0, "erfinv.float64": 1, "softplus.float64": 1, "gaussian.float64": 2, "sech_squared.float64": 2}
"""The four functions named here run in double by their scalar definitions, which suffices for the narrower dtypes."""


def _floor(v: float) -> float:
    """The largest integer that is at most v; zeros keep their sign."""
    return (float(floor(v)) or copysign(0.0, v)) if isfinite(v) else v


class Reference(RawTensor[Array]):
    """The definition of the language in plain Python.

    >>> from tensorken_core.language.dtypes import float32
    >>> reference = Reference()
    >>> x = reference.new((3,), [1e8, 1.0, -1e8], float32)
    >>> reference.ravel(reference.sum(x, (0,)))
    [1.0]
    """

    capabilities = Capabilities(dtypes=tuple(DTYPES), ulp=_ULP, shares_memory=True)

    # ---- create, inspect ----------------------------------------------------------------------------------

    def new(self, shape: Shape, data: Any, dtype: DType) -> Array:
        """A tensor from row-major flat data: a C-contiguous buffer, or a sequence of Python numbers."""
        return Array(shape, tuple(convert(unpack(data), dtype)), dtype)

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Array:
        """A tensor whose elements are all `value`."""
        return Array(shape, tuple(convert([value], dtype)) * prod(shape), dtype)

    def shape(self, x: Array) -> Shape:
        """The shape of x."""
        return x.shape

    def dtype(self, x: Array) -> DType:
        """The dtype of x."""
        return x.dtype

    def ravel(self, x: Array) -> list[Any]:
        """The elements in row-major order, as a new list."""
        return list(x.data)

    # ---- elementwise --------------------------------------------------------------------------------------

    def exp(self, x: Array) -> Array:
        return map_arrays(exponentials.exp, x)

    def log(self, x: Array) -> Array:
        return map_arrays(logarithms.log, x)

    def sin(self, x: Array) -> Array:
        return map_arrays(circular.sin, x)

    def cos(self, x: Array) -> Array:
        return map_arrays(circular.cos, x)

    def sqrt(self, x: Array) -> Array:
        return map_elements(scalar.sqrt, x)

    def floor(self, x: Array) -> Array:
        return map_elements(_floor, x)

    def cast(self, x: Array, dtype: DType) -> Array:
        return Array(x.shape, tuple(convert(x.data, dtype)), dtype)

    # Double is wide enough that rounding its sums, products, quotients and roots of narrower floats once more
    # is innocuous (S. A. Figueroa, "When is double rounding innocuous?", 1995).

    def add(self, a: Array, b: Array) -> Array:
        return map_elements(operator.add, a, b)

    def sub(self, a: Array, b: Array) -> Array:
        return map_elements(operator.sub, a, b)

    def mul(self, a: Array, b: Array) -> Array:
        return map_elements(operator.mul, a, b)

    def div(self, a: Array, b: Array) -> Array:
        return map_elements(scalar.div, a, b)

    def pow(self, a: Array, b: Array) -> Array:
        return map_arrays(power.pow, a, b)

    def eq(self, a: Array, b: Array) -> Array:
        return Array(a.shape, tuple(map(operator.eq, a.data, b.data)), bool_)

    def lt(self, a: Array, b: Array) -> Array:
        return Array(a.shape, tuple(map(operator.lt, a.data, b.data)), bool_)

    def where(self, condition: Array, a: Array, b: Array) -> Array:
        data = [p if c else q for c, p, q in zip(condition.data, a.data, b.data, strict=True)]
        return Array(a.shape, tuple(data), a.dtype)

    # ---- integers -----------------------------------------------------------------------------------------

    def floor_divide(self, a: Array, b: Array) -> Array:
        return map_elements(lambda p, q: p // q if q else 0, a, b)

    def bitwise_and(self, a: Array, b: Array) -> Array:
        return map_elements(operator.and_, a, b)

    def bitwise_or(self, a: Array, b: Array) -> Array:
        return map_elements(operator.or_, a, b)

    def bitwise_xor(self, a: Array, b: Array) -> Array:
        return map_elements(operator.xor, a, b)

    def shift_left(self, a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        return map_elements(lambda p, q: p << q if 0 <= q < bits else 0, a, b)

    def shift_right(self, a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        return map_elements(lambda p, q: p % (1 << bits) >> q if 0 <= q < bits else 0, a, b)

    def to_bits(self, x: Array) -> Array:
        return Array(x.shape, tuple(bits.to_bits(x.data, x.dtype)), int64 if x.dtype is float64 else int32)

    def from_bits(self, x: Array) -> Array:
        dtype = float64 if x.dtype is int64 else float32
        return Array(x.shape, tuple(bits.from_bits(x.data, dtype)), dtype)

    # ---- derived ops that are more accurate than their bodies ---------------------------------------------

    def reciprocal(self, x: Array) -> Array:
        return map_elements(lambda v: scalar.div(1.0, v), x)

    def tan(self, x: Array) -> Array:
        return map_arrays(circular.tan, x)

    def tanh(self, x: Array) -> Array:
        return map_arrays(exponentials.tanh, x)

    def sigmoid(self, x: Array) -> Array:
        return map_arrays(exponentials.sigmoid, x)

    def log1p(self, x: Array) -> Array:
        return map_arrays(logarithms.log1p, x)

    def expm1(self, x: Array) -> Array:
        return map_arrays(exponentials.expm1, x)

    def erf(self, x: Array) -> Array:
        return map_arrays(exponentials.erf, x)

    def asin(self, x: Array) -> Array:
        return map_arrays(circular.asin, x)

    def acos(self, x: Array) -> Array:
        return map_arrays(circular.acos, x)

    def atan(self, x: Array) -> Array:
        return map_arrays(circular.atan, x)

    def atan2(self, y: Array, x: Array) -> Array:
        return map_arrays(circular.atan2, y, x)

    def sinh(self, x: Array) -> Array:
        return map_arrays(exponentials.sinh, x)

    def cosh(self, x: Array) -> Array:
        return map_arrays(exponentials.cosh, x)

    def asinh(self, x: Array) -> Array:
        return map_arrays(logarithms.asinh, x)

    def acosh(self, x: Array) -> Array:
        return map_arrays(logarithms.acosh, x)

    def atanh(self, x: Array) -> Array:
        return map_arrays(logarithms.atanh, x)

    def exp2(self, x: Array) -> Array:
        return map_arrays(power.exp2, x)

    def log2(self, x: Array) -> Array:
        return map_arrays(logarithms.log2, x)

    def log10(self, x: Array) -> Array:
        return map_arrays(logarithms.log10, x)

    def logaddexp(self, a: Array, b: Array) -> Array:
        return map_arrays(logarithms.logaddexp, a, b)

    def nextafter(self, a: Array, b: Array) -> Array:
        return map_arrays(bits.nextafter, a, b)

    def hypot(self, a: Array, b: Array) -> Array:
        return map_arrays(power.hypot, a, b)

    # ---- reductions ---------------------------------------------------------------------------------------

    def sum(self, x: Array, axes: Axes) -> Array:
        return Array(reduced(x.shape, axes), row_sums(rows_over(x, axes), x.dtype), x.dtype)

    def prod(self, x: Array, axes: Axes) -> Array:
        return Array(reduced(x.shape, axes), tuple(row_products(rows_over(x, axes), x.dtype)), x.dtype)

    def max(self, x: Array, axes: Axes) -> Array:
        return Array(reduced(x.shape, axes), tuple(map(largest, rows_over(x, axes))), x.dtype)

    def min(self, x: Array, axes: Axes) -> Array:
        return Array(reduced(x.shape, axes), tuple(map(smallest, rows_over(x, axes))), x.dtype)

    def argmax(self, x: Array, axis: int) -> Array:
        indices = [index_of(row, largest(row)) for row in rows_over(x, (axis,))]
        return Array(reduced(x.shape, (axis,)), tuple(indices), int32)

    def argmin(self, x: Array, axis: int) -> Array:
        indices = [index_of(row, smallest(row)) for row in rows_over(x, (axis,))]
        return Array(reduced(x.shape, (axis,)), tuple(indices), int32)

    def fused_multiply_add(self, a: Array, b: Array, axes: Axes) -> Array:
        """Multiply rows of a with rows of b; axes of size 1 in one operand determine which pairs of rows."""
        full = tuple([n if m == 1 else m for m, n in zip(a.shape, b.shape, strict=True)])
        left, right = (rows_over(expand_axes(x, axes, full), axes) for x in (a, b))
        i, j = (row_indices(x.shape, axes, full) for x in (a, b))
        multiply = products if a.dtype.kind == "float" else wrapped_products
        return Array(reduced(full, axes), tuple(multiply(left, right, i, j, a.dtype)), a.dtype)

    def convolution(self, x: Array, kernel: Array, *params: Any) -> Array:
        """Each sum over a window is exact before it is rounded."""
        outputs, inputs, *sizes = kernel.shape
        groups = params[-1]
        shape: Shape = OPS["convolution"].shape(x.shape, kernel.shape, *params)
        windows = windows_of(x, tuple(sizes), shape[2:], *params)
        kernels = (1, groups, outputs // groups, 1, inputs * prod(sizes))
        y = self.fused_multiply_add(windows, self.reshape(kernel, kernels), (4,))
        return self.reshape(y, shape)

    # ---- along an axis ------------------------------------------------------------------------------------

    def cumsum(self, x: Array, axis: int) -> Array:
        """Each running sum is exact before it is rounded, so rounding errors do not accumulate."""
        return map_rows(x, axis, lambda row: running_totals(row, x.dtype), x.dtype)

    def cumprod(self, x: Array, axis: int) -> Array:
        """Each running product is exact before it is rounded."""
        return map_rows(x, axis, lambda row: running_products(row, x.dtype), x.dtype)

    def sort(self, x: Array, axis: int) -> Array:
        return map_rows(x, axis, lambda row: [row[i] for i in argsort_row(row)], x.dtype)

    def argsort(self, x: Array, axis: int) -> Array:
        return map_rows(x, axis, argsort_row, int32)

    # ---- movement -----------------------------------------------------------------------------------------

    def reshape(self, x: Array, shape: Shape) -> Array:
        return Array(shape, x.data, x.dtype)

    def permute(self, x: Array, order: Axes) -> Array:
        return take_view(x, View.contiguous(x.shape).permute(order))

    def expand(self, x: Array, shape: Shape) -> Array:
        return take_view(x, View.contiguous(x.shape).expand(shape))

    def flip(self, x: Array, axes: Axes) -> Array:
        return take_view(x, View.contiguous(x.shape).flip(axes))

    def crop(self, x: Array, limits: Pairs) -> Array:
        return take_view(x, View.contiguous(x.shape).crop(limits))

    def pad(self, x: Array, pads: Pairs) -> Array:
        shape = tuple([before + n + after for n, (before, after) in zip(x.shape, pads, strict=True)])
        inside = tuple([(before, before + n) for n, (before, _) in zip(x.shape, pads, strict=True)])
        data = convert([0], x.dtype) * prod(shape)
        for index, value in zip(View.contiguous(shape).crop(inside).indices(), x.data, strict=True):
            data[index] = value
        return Array(shape, tuple(data), x.dtype)

    def concatenate(self, *operands: Any) -> Array:
        """For each index over the axes before `axis`, join the blocks of all operands."""
        *pieces, axis = operands
        first: Array = pieces[0]
        shape = (*first.shape[:axis], sum([x.shape[axis] for x in pieces]), *first.shape[axis + 1 :])
        blocks = [(x.data, prod(x.shape[axis:])) for x in pieces]
        outer = range(prod(first.shape[:axis]))
        data = chain(*[block[i * n : (i + 1) * n] for i in outer for block, n in blocks])
        return Array(shape, tuple(data), first.dtype)

    # ---- indexing -----------------------------------------------------------------------------------------

    def gather(self, x: Array, indices: Array, axis: int) -> Array:
        outer, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
        data: list[Any] = []
        for i in range(outer):
            for j in indices.data:
                start = (i * x.shape[axis] + j) * inner
                data += x.data[start : start + inner]
        return Array((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), tuple(data), x.dtype)

    def scatter_add(self, x: Array, indices: Array, axis: int, size: int) -> Array:
        """Each sum includes the initial zero, so no result is -0.0."""
        count = x.shape[axis]
        outer, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
        sources: list[list[int]] = [[] for _ in range(size)]
        for source, target in enumerate(indices.data):
            sources[target].append(source)
        zero = convert([0], x.dtype)
        rows = [
            zero + [x.data[(i * count + source) * inner + k] for source in row]
            for i in range(outer)
            for row in sources
            for k in range(inner)
        ]
        return Array((*x.shape[:axis], size, *x.shape[axis + 1 :]), row_sums(rows, x.dtype), x.dtype)

    # ---- any other op -------------------------------------------------------------------------------------

    def has(self, op: Op) -> bool:
        """Whether the op runs without its body: by a method, or by its scalar definition."""
        return super().has(op) or (op.elementwise and op.scalar is not None)

    def interpret(self, op: Op, operands: Sequence[Array], params: tuple[Any, ...]) -> Any:
        """Apply the op's scalar definition, if it has one, to each element; else run its body.

        The result of `op.scalar` is rounded to the dtype: infinity where it overflows, NaN (0 for integers) where
        it is undefined.
        """
        definition = op.scalar
        if definition is None or not op.elementwise:
            return super().interpret(op, operands, params)
        dtype = op.result_dtype(tuple([x.dtype for x in operands]), params)
        rows = zip(*[x.data for x in operands], strict=True)
        values = [_attempt(definition, *row, *params) for row in rows]
        return Array(operands[0].shape, tuple(convert(values, dtype)), dtype)


def _attempt(definition: Callable[..., Any], *operands: Any) -> Any:
    """Call the scalar definition of an op; exceptions become infinity or NaN."""
    try:
        value = definition(*operands)
    except OverflowError:
        return inf
    except (ArithmeticError, ValueError):
        return nan
    return nan if isinstance(value, complex) else value
