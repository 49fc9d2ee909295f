"""A backend on OpenCL: tensors are buffers in row-major order, and an op is a kernel made of a line of C.

A kernel is compiled once for an op and its dtypes: shapes are arguments, and all work-groups have one size.
The script in `bugs/` shows why `exp` is not pocl's own function.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType, bool_
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Axes, Pairs, Shape, multiplied, reduced
from tensorken_core.rewriting.fuse import Fuse

DTYPE_NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64"
C_NAMES = "uchar char short int long uchar ushort uint ulong float double"
C = dict(zip(DTYPE_NAMES.split(), C_NAMES.split(), strict=True))
"""The type in C of each dtype."""

OPTIONS = ["-cl-std=CL1.2", "-cl-fp32-correctly-rounded-divide-sqrt"]

GROUP = 64
"""The size of a work-group: one for all launches, since pocl compiles a kernel for each size."""

RANK = 16
"""The largest number of axes."""

POSITION = f"""
typedef struct {{ long rank, start, sizes[{RANK}], steps[{RANK}]; }} Layout;
long position(long i, const Layout *x) {{
    long at = x->start;
    for (long k = x->rank - 1; k >= 0; i /= x->sizes[k--]) at += i % x->sizes[k] * x->steps[k];
    return at;
}}"""

ELEMENTWISE = """
    exp: a > (T)709 ? exp(a - 1) * (T)2.718281828459045 : exp(a)
    log: log(a); sin: sin(a); cos: cos(a); sqrt: sqrt(a); floor: floor(a); pow: pow(a, b)
    add: a + b; sub: a - b; mul: a * b; div: a / b; eq: a == b; lt: a < b; where: a ? b : c
    bitwise_and: a & b; bitwise_or: a | b; bitwise_xor: a ^ b
    shift_left: b < 0 || b >= (T)(8 * sizeof(T)) ? (T)0 : (T)((U)a << b)
    shift_right: b < 0 || b >= (T)(8 * sizeof(T)) ? (T)0 : (T)((U)a >> b)
    floor_divide: b == 0 ? 0 : (T)-1 < 0 && b == (T)-1 ? 0 - (U)a : a / b - (a % b != 0 && (a < 0) != (b < 0))
"""
"""The ops of one line: operands a, b and c; T is the type of the last one, and U the unsigned type of its size."""

REMAINDER = "T r = fmod(a, b); y[i] = r == 0 ? copysign(r, b) : (r < 0) != (b < 0) ? r + b : r;"

INTEGER_POWER = """
    U r = 1, square = a;
    for (U n = b; n; n >>= 1) { if (n & 1) r *= square; square *= square; }
    y[i] = b >= 0 ? (T)r : a == 1 ? 1 : a == (T)-1 ? (b % 2 ? -1 : 1) : 0;"""

MAXIMUM = """
    long row = position(i, &rows);
    T r = x[row];
    for (long j = 1; j < terms; j++) { T v = x[row + position(j, &along)]; r = v != v || v > r ? v : r; }
    y[i] = r;"""

MULTIPLY_ADD = """
    long left = position(i, &la), right = position(i, &lb);
    T r = 0;
    for (long j = 0; j < terms; j++) r += a[left + position(j, &ta)] * b[right + position(j, &tb)];
    y[i] = r;"""

GATHER = "y[i] = x[(i / (count * inner) * size + at[i / inner % count]) * inner + i % inner];"

SCATTER_ADD = """
    long column = i / inner * size * inner + i % inner, from = i / inner * count * inner + i % inner;
    for (long j = 0; j < count; j++) y[column + at[j] * inner] += x[from + j * inner];"""


class Array(NamedTuple):
    """A buffer, and the shape and dtype of its elements."""

    buffer: Any
    shape: Shape
    dtype: DType


class OpenCL(RawTensor[Array]):
    """The required ops as kernels of a device, by default the first one of the first platform."""

    capabilities = Capabilities(dtypes=tuple(C), shares_memory=True)

    def __init__(self, device: Any = None) -> None:
        self.context = cl.Context([device or cl.get_platforms()[0].get_devices()[0]])
        self.queue = cl.CommandQueue(self.context)
        self.kernel = cache(self._kernel)
        self.lock = threading.Lock()  # setting the arguments of a kernel and launching it are two calls

    # ---- kernels -----------------------------------------------------------------------------------------------

    def _kernel(self, params: str, body: str, dtype: DType) -> Any:
        kind = C[dtype.name]
        unsigned = kind if dtype.kind != "int" else f"u{kind.removeprefix('u')}"
        source = f"""
            #pragma OPENCL FP_CONTRACT OFF
            #define T {kind}
            #define U {unsigned}
            {POSITION}
            kernel void run(long items, {params}) {{
                long i = get_global_id(0);
                if (i < items) {{ {body} }}
            }}"""
        with warnings.catch_warnings(action="ignore", category=cl.CompilerWarning):  # remarks of the compiler
            return cl.Program(self.context, source).build(OPTIONS).run

    def _launch(self, items: int, params: str, body: str, dtype: DType, *args: Any) -> None:
        """Run the body for each i below the number of items; T in it is the type of the dtype."""
        if items:
            values = [np.int64(x) if isinstance(x, int) else x for x in args]
            with self.lock:
                kernel = self.kernel(params, body, dtype)
                kernel(self.queue, (-(-items // GROUP) * GROUP,), (GROUP,), np.int64(items), *values)

    def _empty(self, shape: Shape, dtype: DType) -> Array:
        if dtype.name not in C:
            raise NotImplementedError(f"opencl: there is no {dtype}")
        size = max(1, prod(shape)) * dtype.itemsize
        return Array(cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size), tuple(shape), dtype)

    def _elementwise(self, code: str, dtype: DType, *operands: Array) -> Array:
        y = self._empty(operands[0].shape, dtype)
        named = [(C[x.dtype.name], name) for name, x in zip("abc", operands, strict=False)]
        params = [*[f"global const {kind} *{name}_" for kind, name in named], f"global {C[dtype.name]} *y"]
        loads = [f"{kind} {name} = {name}_[i];" for kind, name in named]
        buffers = [x.buffer for x in (*operands, y)]
        self._launch(prod(y.shape), ", ".join(params), " ".join([*loads, code]), operands[-1].dtype, *buffers)
        return y

    def _view(self, x: Array, shape: Shape, steps: Sequence[int], start: int = 0) -> Array:
        """The elements of x at these steps along each axis."""
        y, bits = self._empty(shape, x.dtype), DTYPES[f"uint{8 * x.dtype.itemsize}"]
        params = "global const T *x, global T *y, Layout layout"
        args = (x.buffer, y.buffer, _layout(shape, steps, start))
        self._launch(prod(shape), params, "y[i] = x[position(i, &layout)];", bits, *args)
        return y

    # ---- values ------------------------------------------------------------------------------------------------

    def new(self, shape: Shape, data: Any, dtype: DType) -> Array:
        x = self._empty(shape, dtype)
        host = np.array(data, dtype.name)
        if host.size:
            cl.enqueue_copy(self.queue, x.buffer, host)
        return x

    def full(self, shape: Shape, value: Any, dtype: DType) -> Array:
        x = self._empty(shape, dtype)
        cl.enqueue_fill_buffer(self.queue, x.buffer, np.array(value, dtype.name), 0, x.buffer.size)
        return x

    def shape(self, x: Array) -> Shape:
        return x.shape

    def dtype(self, x: Array) -> DType:
        return x.dtype

    def ravel(self, x: Array) -> Any:
        host = np.empty(prod(x.shape), x.dtype.name)
        if host.size:
            cl.enqueue_copy(self.queue, host, x.buffer)
        return host

    # ---- elements ----------------------------------------------------------------------------------------------

    def cast(self, x: Array, dtype: DType) -> Array:
        kind = C[dtype.name]
        truncates = dtype.kind == "int" and x.dtype.kind == "float"
        code = f"a != a ? 0 : convert_{kind}_sat_rtz(a)" if truncates else f"({kind})a"
        return self._elementwise(f"y[i] = {'a != 0' if dtype is bool_ else code};", dtype, x)

    def to_bits(self, x: Array) -> Array:
        return x._replace(dtype=DTYPES[f"int{8 * x.dtype.itemsize}"])

    def from_bits(self, x: Array) -> Array:
        return x._replace(dtype=DTYPES[f"float{8 * x.dtype.itemsize}"])

    def integer_pow(self, a: Array, b: Array) -> Array:
        return self._elementwise(INTEGER_POWER, a.dtype, a, b)

    def remainder(self, a: Array, b: Array) -> Array:
        if a.dtype.kind == "int":
            return self.interpret(OPS["remainder"], (a, b), ())
        return self._elementwise(REMAINDER, a.dtype, a, b)

    # ---- movements ---------------------------------------------------------------------------------------------

    def reshape(self, x: Array, shape: Shape) -> Array:
        return x._replace(shape=tuple(shape))

    def permute(self, x: Array, order: Shape) -> Array:
        steps = _steps(x.shape)
        return self._view(x, tuple([x.shape[axis] for axis in order]), [steps[axis] for axis in order])

    def expand(self, x: Array, shape: Shape) -> Array:
        return self._view(x, tuple(shape), _steps(x.shape))

    def flip(self, x: Array, axes: Axes) -> Array:
        steps = _steps(x.shape)
        start = sum([(x.shape[axis] - 1) * steps[axis] for axis in axes])
        return self._view(x, x.shape, [-n if axis in axes else n for axis, n in enumerate(steps)], start)

    def crop(self, x: Array, limits: Pairs) -> Array:
        steps = _steps(x.shape)
        start = sum([low * step for (low, _), step in zip(limits, steps, strict=True)])
        return self._view(x, tuple([high - low for low, high in limits]), steps, start)

    def pad(self, x: Array, pads: Pairs) -> Array:
        shape = tuple([low + n + high for n, (low, high) in zip(x.shape, pads, strict=True)])
        y, steps = self.full(shape, 0, x.dtype), _steps(shape)
        start = sum([low * step for (low, _), step in zip(pads, steps, strict=True)])
        params = "global const T *x, global T *y, Layout layout"
        args = (x.buffer, y.buffer, _layout(x.shape, steps, start))
        self._launch(prod(x.shape), params, "y[position(i, &layout)] = x[i];", x.dtype, *args)
        return y

    # ---- reductions and indexing -------------------------------------------------------------------------------

    def sum(self, x: Array, axes: Axes) -> Array:
        return self.fused_multiply_add(x, self.full((1,) * len(x.shape), 1, x.dtype), axes) if axes else x

    def max(self, x: Array, axes: Axes) -> Array:
        y = self._empty(reduced(x.shape, axes), x.dtype)
        terms = tuple([n if axis in axes else 1 for axis, n in enumerate(x.shape)])
        params = "global const T *x, global T *y, long terms, Layout rows, Layout along"
        layouts = [_layout(shape, _steps(x.shape)) for shape in (y.shape, terms)]
        self._launch(prod(y.shape), params, MAXIMUM, x.dtype, x.buffer, y.buffer, prod(terms), *layouts)
        return y

    def fused_multiply_add(self, a: Array, b: Array, axes: Axes) -> Array:
        y = self._empty(multiplied(a.shape, b.shape, axes), a.dtype)
        sizes = enumerate(np.broadcast_shapes(a.shape, b.shape))
        terms = tuple([n if axis in axes else 1 for axis, n in sizes])
        layouts = [_layout(shape, _steps(x.shape)) for shape in (y.shape, terms) for x in (a, b)]
        params = "global const T *a, global const T *b, global T *y, long terms"
        params += ", Layout la, Layout lb, Layout ta, Layout tb"
        args = (a.buffer, b.buffer, y.buffer, prod(terms), *layouts)
        self._launch(prod(y.shape), params, MULTIPLY_ADD, a.dtype, *args)
        return y

    def _indexed(self, body: str, items: int, x: Array, y: Array, indices: Array, *sizes: int) -> Array:
        params = f"global const T *x, global T *y, global const {C[indices.dtype.name]} *at"
        params += ", long size, long count, long inner"
        self._launch(items, params, body, x.dtype, x.buffer, y.buffer, indices.buffer, *sizes)
        return y

    def gather(self, x: Array, indices: Array, axis: int) -> Array:
        sizes = (x.shape[axis], prod(indices.shape), prod(x.shape[axis + 1 :]))
        y = self._empty((*x.shape[:axis], sizes[1], *x.shape[axis + 1 :]), x.dtype)
        return self._indexed(GATHER, prod(y.shape), x, y, indices, *sizes)

    def scatter_add(self, x: Array, indices: Array, axis: int, size: int) -> Array:
        outer, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
        y = self.full((*x.shape[:axis], size, *x.shape[axis + 1 :]), 0, x.dtype)
        return self._indexed(SCATTER_ADD, outer * inner, x, y, indices, size, prod(indices.shape), inner)


def _steps(shape: Shape) -> list[int]:
    """The distance of neighbours along each axis of a row-major array; 0 along axes of size 1, which are repeated."""
    return [prod(shape[axis + 1 :]) * (n != 1) for axis, n in enumerate(shape)]


def _layout(shape: Shape, steps: Sequence[int], start: int = 0) -> Any:
    """The `Layout` of these numbers, as an argument of a kernel."""
    rest = [0] * (RANK - len(shape))
    return np.array([len(shape), start, *shape, *rest, *steps, *rest], np.int64)


def _method(code: str, compares: bool) -> Callable[..., Array]:
    return lambda self, *operands: self._elementwise(
        f"y[i] = {code};", bool_ if compares else operands[-1].dtype, *operands
    )


for _line in ELEMENTWISE.replace(";", "\n").strip().splitlines():
    _name, _, _code = _line.strip().partition(": ")
    setattr(OpenCL, _name, _method(_code, _name in ("eq", "lt")))


def load(device: Any = None) -> RawTensor[Any]:
    """The backend for users: products are fused with the sums of them."""
    return Fuse(OpenCL(device))
