"""Numpy: the language as numpy calls, one line an op where numpy has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorken_core.errors import IndexingError, ShapeError
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.shapes import MOST_AXES, Axes, Pairs, Shape
from tensorken_numpy import ciphers, exponential_sums, special
from tensorken_numpy.compiled.program import compiled
from tensorken_numpy.contraction import Array, contract
from tensorken_numpy.factorizations import Factorizations
from tensorken_numpy.limits import limited
from tensorken_numpy.quiet import quiet
from tensorken_numpy.sums import MANY, add_up

if TYPE_CHECKING:
    from tensorken_core.program.program import Program

_DTYPES: dict[Any, DType] = {np.dtype(name): dtype for name, dtype in DTYPES.items()}
_OF: dict[DType, Any] = {dtype: np.dtype(name) for name, dtype in DTYPES.items()}
_UNSIGNED: dict[Any, Any] = {np.dtype("int32"): np.dtype("uint32"), np.dtype("int64"): np.dtype("uint64")}
_RANGE: dict[Any, tuple[float, float]] = {
    np.dtype("int32"): (-(2.0**31), 2.0**31 - 1),
    np.dtype("int64"): (-(2.0**63), 2.0**63 - 1024),
}
_ULP: dict[str, int] = {
    **dict.fromkeys(("add", "sub", "mul", "square", "div", "reciprocal", "sqrt"), 0),
    "log.float32": 4,
    "sech_squared.float32": 4,
    "*.float16": 1,
    "*.float32": 3,
    "*": 2,
}
"""The largest errors that were measured, with the vector instructions of several generations of processors."""


_OUTSIDE = (
    "{}: an index is not in [0, {}), as of a program that was damaged; take indices modulo the size before"
)


class Numpy(Factorizations):
    """The numpy backend: arrays are never changed once made, so views of them are safe to hand on."""

    broadcasts = True

    capabilities = Capabilities(dtypes=tuple(DTYPES), ulp=_ULP, shares_memory=True)

    # ---- create, inspect -------------------------------------------------------------------------------------

    def new(self, shape: Shape, data: Any, dtype: DType) -> Array:
        _check_axes("new", shape)
        if type(data) is range:
            numbers: Array = np.arange(data.start, data.stop, data.step, dtype=_OF[dtype])
            return numbers.reshape(shape)
        return quiet.run(np.array, data, _OF[dtype]).reshape(shape)

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Array:
        _check_axes("full", shape)
        return quiet.run(np.full, shape, value, _OF[dtype])

    def shape(self, x: Array) -> Shape:
        shape: Shape = x.shape
        return shape

    def dtype(self, x: Array) -> DType:
        return _DTYPES[x.dtype]

    def ravel(self, x: Array) -> Array:
        return np.array(x, order="C").reshape(-1)

    # ---- elementwise -----------------------------------------------------------------------------------------

    def exp(self, x: Array) -> Array:
        return quiet.run(np.exp, x)

    def log(self, x: Array) -> Array:
        return quiet.run(np.log, x)

    def sin(self, x: Array) -> Array:
        return quiet.run(np.sin, x)

    def cos(self, x: Array) -> Array:
        return quiet.run(np.cos, x)

    def tan(self, x: Array) -> Array:
        return quiet.run(np.tan, x)

    def tanh(self, x: Array) -> Array:
        return quiet.run(np.tanh, x)

    def sqrt(self, x: Array) -> Array:
        return quiet.run(np.sqrt, x)

    def log1p(self, x: Array) -> Array:
        return quiet.run(np.log1p, x)

    def expm1(self, x: Array) -> Array:
        return quiet.run(np.expm1, x)

    def exp2(self, x: Array) -> Array:
        return quiet.run(np.exp2, x)

    def log2(self, x: Array) -> Array:
        return quiet.run(np.log2, x)

    def log10(self, x: Array) -> Array:
        return quiet.run(special.log10, x)

    def logaddexp(self, a: Array, b: Array) -> Array:
        return quiet.run(np.logaddexp, a, b)

    def sigmoid(self, x: Array) -> Array:
        return quiet.run(special.sigmoid, x)

    def softplus(self, x: Array) -> Array:
        return quiet.run(special.softplus, x)

    def sech_squared(self, x: Array) -> Array:
        return quiet.run(special.sech_squared, x)

    def gaussian(self, x: Array) -> Array:
        return quiet.run(special.gaussian, x)

    def erf(self, x: Array) -> Array:
        return quiet.run(special.erf, x)

    def erfinv(self, x: Array) -> Array:
        return quiet.run(special.erfinv, x)

    def asin(self, x: Array) -> Array:
        return quiet.run(np.arcsin, x)

    def acos(self, x: Array) -> Array:
        return quiet.run(np.arccos, x)

    def atan(self, x: Array) -> Array:
        return quiet.run(np.arctan, x)

    def atan2(self, a: Array, b: Array) -> Array:
        return quiet.run(np.arctan2, a, b)

    def sinh(self, x: Array) -> Array:
        return quiet.run(np.sinh, x)

    def cosh(self, x: Array) -> Array:
        return quiet.run(np.cosh, x)

    def asinh(self, x: Array) -> Array:
        return quiet.run(np.arcsinh, x)

    def acosh(self, x: Array) -> Array:
        return quiet.run(np.arccosh, x)

    def atanh(self, x: Array) -> Array:
        return quiet.run(np.arctanh, x)

    def hypot(self, a: Array, b: Array) -> Array:
        return quiet.run(np.hypot, a, b)

    def round(self, x: Array) -> Array:
        return quiet.run(np.rint, x)

    def trunc(self, x: Array) -> Array:
        return quiet.run(np.trunc, x)

    def ceil(self, x: Array) -> Array:
        return quiet.run(np.ceil, x)

    def remainder(self, a: Array, b: Array) -> Array:
        return quiet.run(np.remainder, a, b)

    def floor(self, x: Array) -> Array:
        return quiet.run(np.floor, x)

    def neg(self, x: Array) -> Array:
        return np.negative(x)

    def abs(self, x: Array) -> Array:
        return np.absolute(x)

    def sign(self, x: Array) -> Array:
        return quiet.run(np.sign, x)

    def signbit(self, x: Array) -> Array:
        return np.signbit(x)

    def copysign(self, a: Array, b: Array) -> Array:
        return np.copysign(a, b)

    def nextafter(self, a: Array, b: Array) -> Array:
        return quiet.run(special.nextafter, a, b)

    def square(self, x: Array) -> Array:
        return quiet.run(np.square, x)

    def relu(self, x: Array) -> Array:
        return limited(np.maximum, x, 0)

    def add(self, a: Array, b: Array) -> Array:
        return quiet.run(np.add, a, b)

    def sub(self, a: Array, b: Array) -> Array:
        return quiet.run(np.subtract, a, b)

    def mul(self, a: Array, b: Array) -> Array:
        return quiet.run(np.multiply, a, b)

    def div(self, a: Array, b: Array) -> Array:
        return quiet.run(np.divide, a, b)

    def pow(self, a: Array, b: Array) -> Array:
        return quiet.run(special.power, a, b)

    def maximum(self, a: Array, b: Array) -> Array:
        return quiet.run(np.maximum, a, b)

    def minimum(self, a: Array, b: Array) -> Array:
        return quiet.run(np.minimum, a, b)

    def eq(self, a: Array, b: Array) -> Array:
        return np.equal(a, b)

    def lt(self, a: Array, b: Array) -> Array:
        return quiet.run(np.less, a, b)

    def where(self, condition: Array, a: Array, b: Array) -> Array:
        return np.where(condition, a, b)

    def cast(self, x: Array, dtype: DType) -> Array:
        return quiet.run(_cast, x, _OF[dtype])

    def to_bits(self, x: Array) -> Array:
        return special.to_bits(x)

    def from_bits(self, x: Array) -> Array:
        return special.from_bits(x)

    # ---- integers --------------------------------------------------------------------------------------------

    def floor_divide(self, a: Array, b: Array) -> Array:
        return quiet.run(np.floor_divide, a, b)

    def integer_pow(self, a: Array, b: Array) -> Array:
        return quiet.run(special.integer_pow, a, b)

    def bitwise_and(self, a: Array, b: Array) -> Array:
        return np.bitwise_and(a, b)

    def bitwise_or(self, a: Array, b: Array) -> Array:
        return np.bitwise_or(a, b)

    def bitwise_xor(self, a: Array, b: Array) -> Array:
        return np.bitwise_xor(a, b)

    def shift_left(self, a: Array, b: Array) -> Array:
        return _shift(np.left_shift, a, b)

    def shift_right(self, a: Array, b: Array) -> Array:
        return _shift(np.right_shift, a, b)

    def threefry2x32(self, key: Array, counter: Array) -> Array:
        return ciphers.threefry2x32(key, counter)

    # ---- reductions ------------------------------------------------------------------------------------------

    def sum(self, x: Array, axes: Axes) -> Array:
        if not axes:
            return x  # numpy adds each element to 0.0, which takes the sign from -0.0
        if x.size < MANY:
            return quiet.run(np.add.reduce, x, axes, x.dtype, None, True)  # by itself numpy widens int32
        return quiet.run(add_up, x, axes)

    def prod(self, x: Array, axes: Axes) -> Array:
        return quiet.run(np.multiply.reduce, x, axes, x.dtype, None, True)

    def max(self, x: Array, axes: Axes) -> Array:
        return quiet.run(np.maximum.reduce, x, axes, None, None, True)

    def min(self, x: Array, axes: Axes) -> Array:
        return quiet.run(np.minimum.reduce, x, axes, None, None, True)

    def argmax(self, x: Array, axis: int) -> Array:
        places: Array = np.argmax(x, axis, keepdims=True)
        return places.astype(np.int32)

    def argmin(self, x: Array, axis: int) -> Array:
        places: Array = np.argmin(x, axis, keepdims=True)
        return places.astype(np.int32)

    def sort(self, x: Array, axis: int) -> Array:
        return np.sort(x, axis, "stable")

    def argsort(self, x: Array, axis: int) -> Array:
        return np.argsort(x, axis, "stable").astype(np.int32)

    def cumsum(self, x: Array, axis: int) -> Array:
        return quiet.run(np.add.accumulate, x, axis, x.dtype)

    def cumprod(self, x: Array, axis: int) -> Array:
        return quiet.run(np.multiply.accumulate, x, axis, x.dtype)

    def softmax(self, x: Array, axes: Axes) -> Array:
        return quiet.run(exponential_sums.softmax, x, axes)

    def log_softmax(self, x: Array, axes: Axes) -> Array:
        return quiet.run(exponential_sums.log_softmax, x, axes)

    def logsumexp(self, x: Array, axes: Axes) -> Array:
        return quiet.run(exponential_sums.logsumexp, x, axes)

    def fused_multiply_add(self, a: Array, b: Array, axes: Axes) -> Array:
        return quiet.run(contract, a, b, axes)

    # ---- movement --------------------------------------------------------------------------------------------

    def reshape(self, x: Array, shape: Shape) -> Array:
        _check_axes("reshape", shape)
        return x.reshape(shape)

    def permute(self, x: Array, order: Axes) -> Array:
        return x.transpose(order)

    def expand(self, x: Array, shape: Shape) -> Array:
        return np.broadcast_to(x, shape)

    def flip(self, x: Array, axes: Axes) -> Array:
        return np.flip(x, axes)

    def pad(self, x: Array, pads: Pairs) -> Array:
        y = np.zeros([n + before + after for n, (before, after) in zip(x.shape, pads, strict=True)], x.dtype)
        y[tuple([slice(before, before + n) for n, (before, _) in zip(x.shape, pads, strict=True)])] = x
        return y

    def crop(self, x: Array, limits: Pairs) -> Array:
        return x[tuple([slice(start, end) for start, end in limits])]

    def concatenate(self, *args: Any) -> Array:
        return np.concatenate(args[:-1], axis=args[-1])

    # ---- indexing --------------------------------------------------------------------------------------------

    def gather(self, x: Array, indices: Array, axis: int) -> Array:
        try:
            return np.take(x, indices, axis)
        except IndexError:
            raise IndexingError(_OUTSIDE.format("gather", x.shape[axis])) from None

    def scatter_add(self, x: Array, indices: Array, axis: int, size: int) -> Array:
        y = np.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)
        try:
            quiet.run(special.add_at, y, x, indices, axis)
        except IndexError:
            raise IndexingError(_OUTSIDE.format("scatter_add", size)) from None
        return y

    # ---- programs --------------------------------------------------------------------------------------------

    def compile(self, program: Program) -> Callable[[Sequence[Array]], Sequence[Array]] | None:
        names = {equation.op.name for equation in program.equations}
        if any([getattr(type(self), name, None) is not getattr(Numpy, name, None) for name in names]):
            return None  # a subclass has a method of its own, which the compiled program would pass by
        return compiled(program, self)


def _check_axes(name: str, shape: Shape) -> None:
    if len(shape) > MOST_AXES:
        raise ShapeError(
            f"{name}: numpy has arrays of at most {MOST_AXES} axes, got {len(shape)}; use fewer, or another backend"
        )


def _cast(x: Array, dtype: Any) -> Array:
    """To int: truncated, NaN as 0, values beyond the range as its ends; numpy leaves the last two open."""
    if dtype.kind == "i" and x.dtype.kind == "f":
        low, high = _RANGE[dtype]
        inside = np.clip(
            np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf).astype(np.float64), low, high
        )
        y = inside.astype(dtype)
        return np.where(x >= -low, np.iinfo(dtype).max, y).astype(dtype)
    return x.astype(dtype)


def _shift(shift: Callable[..., Array], a: Array, b: Array) -> Array:
    """A shift of the bare bits; amounts outside [0, bits), negative ones being huge as unsigned, give 0."""
    unsigned = _UNSIGNED[a.dtype]
    bits, amount = np.asarray(a).view(unsigned), np.asarray(b).view(unsigned)
    return np.where(amount < 8 * a.itemsize, shift(bits, amount), unsigned.type(0)).view(a.dtype)
