"""The numpy backend: each op is one line where numpy has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorken_core.errors import IndexingError, ShapeError
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType, bfloat16
from tensorken_core.language.shapes import MOST_AXES, Axes, Pairs, Shape
from tensorken_numpy import exponential_sums, reductions, special
from tensorken_numpy.arrays import Array
from tensorken_numpy.bfloat16 import BFLOAT16, INSTALL, in_float32, rounded
from tensorken_numpy.clamping import clamp
from tensorken_numpy.compiled.program import compiled
from tensorken_numpy.complex_matrices import ComplexMatrices
from tensorken_numpy.contraction import contract, multiply_matrices
from tensorken_numpy.convolution import convolve
from tensorken_numpy.factorizations import Factorizations
from tensorken_numpy.fourier import FourierTransforms
from tensorken_numpy.quiet import method, quiet
from tensorken_numpy.sums import BLAS_MIN_SIZE, NARROW
from tensorken_numpy.threefry import threefry2x32

if TYPE_CHECKING:
    from tensorken_core.program.program import Program

_NUMPY_DTYPE: dict[DType, Any] = {
    dtype: np.dtype(name) for name, dtype in DTYPES.items() if dtype is not bfloat16 or BFLOAT16 is not None
}
_DTYPE: dict[Any, DType] = {of_numpy: dtype for dtype, of_numpy in _NUMPY_DTYPE.items()}
_UNSIGNED: dict[Any, Any] = {np.dtype(f"int{bits}"): np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)}
_ULP: dict[str, int] = {
    **dict.fromkeys(("add", "sub", "mul", "square", "div", "reciprocal", "sqrt"), 0),
    "log.float32": 4,
    "sech_squared.float32": 4,
    "*.float16": 1,
    "*.bfloat16": 1,
    "*.float32": 3,
    "*": 2,
}
"""Largest measured errors in ulps, over the vector instructions of several processor generations."""

_CPU = 1
"""The DLPack type of memory that the processor reads."""

_OUT_OF_RANGE = "{}: an index is not in [0, {}) (is the program damaged?); take indices modulo the size first"


class Numpy(Factorizations, ComplexMatrices, FourierTransforms):
    """The numpy backend.  Arrays never change after their creation, so results may be views."""

    broadcasts = True
    compiles_opaque_ops = True

    capabilities = Capabilities(
        dtypes=tuple([dtype.name for dtype in _NUMPY_DTYPE]),
        unsupported={} if BFLOAT16 is not None else {"*.bfloat16": INSTALL},
        ulp=_ULP,
        shares_memory=True,
    )

    # ---- create, inspect -------------------------------------------------------------------------------------

    def new(self, shape: Shape, data: Any, dtype: DType) -> Array:
        _check_axes("new", shape)
        if type(data) is range and dtype is not bfloat16:
            numbers: Array = np.arange(data.start, data.stop, data.step, dtype=_NUMPY_DTYPE[dtype])
            return numbers.reshape(shape)
        if dtype is bfloat16:
            return quiet.run(rounded, np.array(data)).reshape(shape)
        return quiet.run(np.array, data, _NUMPY_DTYPE[dtype]).reshape(shape)

    def adopt(self, array: Any, copy: bool) -> Array | None:
        if not isinstance(array, np.ndarray):
            if array.__dlpack_device__()[0] != _CPU:
                return None
            array = np.from_dlpack(array)
        if array.dtype not in _DTYPE or not array.flags.aligned:
            return None
        if copy:
            return np.array(array)
        return array if type(array) is np.ndarray else array.view(np.ndarray)

    def export(self, x: Array) -> Array:
        return np.asarray(x)  # numpy's functions return scalars for arrays without axes

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Array:
        _check_axes("full", shape)
        if dtype is bfloat16:
            return np.full(shape, quiet.run(rounded, np.asarray(value)))
        return quiet.run(np.full, shape, value, _NUMPY_DTYPE[dtype])

    # Every op reads a shape; attrgetter reads it without a Python frame.
    shape: staticmethod[[Array], Shape] = staticmethod(attrgetter("shape"))  # type: ignore[assignment]

    def dtype(self, x: Array) -> DType:
        return _DTYPE[x.dtype]

    def ravel(self, x: Array) -> Array:
        if x.dtype is BFLOAT16:
            return x.astype(np.float32, "C").reshape(-1)
        return np.array(x, order="C").reshape(-1)

    # ---- elementwise -----------------------------------------------------------------------------------------
    # `quiet.method` where numpy may warn of an overflow or a NaN, `method` where it never does.

    exp = quiet.method(np.exp)
    log = quiet.method(np.log)
    log1p = quiet.method(np.log1p)
    log2 = quiet.method(np.log2)
    log10 = quiet.method(in_float32(special.log10))
    logaddexp = quiet.method(np.logaddexp)
    expm1 = quiet.method(np.expm1)
    exp2 = quiet.method(np.exp2)
    sqrt = quiet.method(np.sqrt)
    square = quiet.method(np.square)

    sin = quiet.method(np.sin)
    cos = quiet.method(np.cos)
    tan = quiet.method(np.tan)
    asin = quiet.method(np.arcsin)
    acos = quiet.method(np.arccos)
    atan = quiet.method(np.arctan)
    atan2 = quiet.method(np.arctan2)
    sinh = quiet.method(np.sinh)
    cosh = quiet.method(np.cosh)
    tanh = quiet.method(np.tanh)
    asinh = quiet.method(np.arcsinh)
    acosh = quiet.method(np.arccosh)
    atanh = quiet.method(np.arctanh)
    hypot = quiet.method(np.hypot)

    sigmoid = quiet.method(in_float32(special.sigmoid))
    softplus = quiet.method(in_float32(special.softplus))
    sech_squared = quiet.method(in_float32(special.sech_squared))
    gaussian = quiet.method(in_float32(special.gaussian))
    erf = quiet.method(in_float32(special.erf))
    erfinv = quiet.method(in_float32(special.erfinv))

    floor = quiet.method(np.floor)
    ceil = quiet.method(np.ceil)
    trunc = quiet.method(np.trunc)
    round = quiet.method(np.rint)
    sign = quiet.method(in_float32(np.sign))
    neg = method(np.negative)
    abs = method(np.absolute)
    signbit = method(np.signbit)
    copysign = method(np.copysign)
    nextafter = quiet.method(special.nextafter)

    add = quiet.method(np.add)
    sub = quiet.method(np.subtract)
    mul = quiet.method(np.multiply)
    div = quiet.method(np.divide)
    remainder = quiet.method(in_float32(np.remainder))
    pow = quiet.method(in_float32(special.power))
    maximum = quiet.method(np.maximum)
    minimum = quiet.method(np.minimum)
    lt = quiet.method(np.less)
    eq = method(np.equal)
    where = method(np.where)

    to_bits = method(special.to_bits)
    from_bits = method(special.from_bits)

    def relu(self, x: Array) -> Array:
        return clamp(np.maximum, x, 0)

    def cast(self, x: Array, dtype: DType) -> Array:
        return quiet.run(_cast, x, _NUMPY_DTYPE[dtype])

    # ---- integers --------------------------------------------------------------------------------------------

    floor_divide = quiet.method(np.floor_divide)
    integer_pow = quiet.method(special.integer_pow)
    bitwise_and = method(np.bitwise_and)
    bitwise_or = method(np.bitwise_or)
    bitwise_xor = method(np.bitwise_xor)
    threefry2x32 = method(threefry2x32)

    def shift_left(self, a: Array, b: Array) -> Array:
        return _shift(np.left_shift, a, b)

    def shift_right(self, a: Array, b: Array) -> Array:
        return _shift(np.right_shift, a, b)

    # ---- reductions ------------------------------------------------------------------------------------------

    def sum(self, x: Array, axes: Axes) -> Array:
        if not axes:
            return x  # numpy would add each element to 0.0, which turns -0.0 into 0.0
        if x.size < BLAS_MIN_SIZE and x.dtype not in NARROW:
            return quiet.run(np.add.reduce, x, axes, x.dtype, None, True)  # the dtype, as numpy widens int32
        return quiet.run(reductions.total, x, axes)

    prod = quiet.method(reductions.prod)
    max = quiet.method(reductions.greatest)
    min = quiet.method(reductions.least)
    argmax = method(reductions.argmax)
    argmin = method(reductions.argmin)
    sort = method(reductions.sort)
    argsort = method(reductions.argsort)
    cumsum = quiet.method(reductions.cumsum)
    cumprod = quiet.method(reductions.cumprod)

    softmax = quiet.method(in_float32(exponential_sums.softmax))
    log_softmax = quiet.method(in_float32(exponential_sums.log_softmax))
    logsumexp = quiet.method(in_float32(exponential_sums.logsumexp))
    fused_multiply_add = quiet.method(in_float32(contract))
    matmul = quiet.method(in_float32(multiply_matrices))
    convolution = quiet.method(in_float32(convolve))

    # ---- movement --------------------------------------------------------------------------------------------

    def reshape(self, x: Array, shape: Shape) -> Array:
        if len(shape) > MOST_AXES:
            _check_axes("reshape", shape)
        return x.reshape(shape)

    def permute(self, x: Array, order: Axes) -> Array:
        return x.transpose(order)

    expand = method(np.broadcast_to)
    flip = method(np.flip)

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
            raise IndexingError(_OUT_OF_RANGE.format("gather", x.shape[axis])) from None

    def scatter_add(self, x: Array, indices: Array, axis: int, size: int) -> Array:
        y = np.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)
        return _updated("scatter_add", y, x, indices, axis)

    def add_at(self, y: Array, x: Array, indices: Array, axis: int) -> Array:
        return _updated("add_at", y.copy(), x, indices, axis)

    # ---- programs --------------------------------------------------------------------------------------------

    def compile(self, program: Program) -> Callable[[Sequence[Array]], Sequence[Array]] | None:
        if any([v.dtype is bfloat16 for v in program.variables()]):
            return None
        names = {equation.op.name for equation in program.equations}
        if any([getattr(type(self), name, None) is not getattr(Numpy, name, None) for name in names]):
            return None  # a subclass overrides a method, which the compiled program would not call
        return compiled(program, self)


def _check_axes(name: str, shape: Shape) -> None:
    if len(shape) > MOST_AXES:
        raise ShapeError(
            f"{name}: numpy has arrays of at most {MOST_AXES} axes, got {len(shape)}; use fewer, or another backend"
        )


def _updated(name: str, y: Array, x: Array, indices: Array, axis: int) -> Array:
    """Add the slices of x to y in place, and return y."""
    try:
        quiet.run(special.add_at, y, x, indices, axis)
    except IndexError:
        raise IndexingError(_OUT_OF_RANGE.format(name, y.shape[axis])) from None
    return y


def _cast(x: Array, dtype: Any) -> Array:
    """Float to int truncates, maps NaN to 0 and clips to the range; numpy leaves the last two undefined."""
    if dtype is BFLOAT16:
        return rounded(x)
    if x.dtype is BFLOAT16:
        x = x.astype(np.float32)
    if dtype.kind in "iu" and x.dtype.kind == "f":
        limits = np.iinfo(dtype)
        beyond = float(limits.max // 2 + 1) * 2.0  # a power of two; the largest int64 is not a float64
        wide = np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf).astype(np.float64)
        y = np.clip(wide, limits.min, np.nextafter(beyond, 0.0)).astype(dtype)
        return np.where(wide >= beyond, np.asarray(limits.max, dtype), y)
    return x.astype(dtype)


def _shift(shift: Callable[..., Array], a: Array, b: Array) -> Array:
    """Shift the bits logically; amounts outside [0, bits) give 0 (negative ones are huge as unsigned)."""
    unsigned = _UNSIGNED.get(a.dtype, a.dtype)
    bits, amount = np.asarray(a).view(unsigned), np.asarray(b).view(unsigned)
    return np.where(amount < 8 * a.itemsize, shift(bits, amount), unsigned.type(0)).view(a.dtype)
