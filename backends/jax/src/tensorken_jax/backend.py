"""The JAX backend: each op is a call of `jax.numpy` or `lax`, and a program is one computation of XLA."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tensorken_core.errors import ExchangeError
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType, bfloat16, round_float
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Axes, Pairs, Shape
from tensorken_core.program.program import Program, opaque_ops
from tensorken_jax import elementary, factorizations
from tensorken_jax.callbacks import awaited, is_awaited, run_opaque
from tensorken_jax.control_flow import compute_constants, run_branch, run_loop
from tensorken_jax.devices import device_named
from tensorken_jax.placement import placed
from tensorken_jax.programs import Computation

Array = Any
"""An array of JAX, or its tracer."""

CPU = (1, 0)
"""The CPU as a device of DLPack."""

_DTYPE: dict[Any, DType] = {np.dtype(name): dtype for name, dtype in DTYPES.items()}
_SAME_SIZE = {"float16": jnp.int16, "bfloat16": jnp.int16, "float32": jnp.int32, "float64": jnp.int64}
_FLOATS = {"int32": jnp.float32, "int64": jnp.float64}


def wide(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that computes in 64 bits, whatever the user's own setting `jax_enable_x64` is."""

    @functools.wraps(method)
    def call(*args: Any) -> Any:
        with jax.enable_x64(True):
            return method(*args)

    return call


def _ops(*functions: Any) -> list[Any]:
    """Methods that call functions of JAX on their operands and params."""
    return [wide(lambda self, *args, call=function: call(*args)) for function in functions]


class Jax(RawTensor[Array]):
    """Arrays of JAX, on one device, or on several if they were placed so.

    Args:
        device: the name of the device on which new arrays are made; JAX's default if None.

    Raises:
        BackendError: if there is no such device.
    """

    compiles_opaque_ops = True

    capabilities = Capabilities(
        dtypes=tuple(DTYPES),
        flushes_subnormals=("bfloat16", "float32", "float64"),
        contracts=True,  # LLVM does
        shares_memory=True,
    )

    def __init__(self, device: str | None = None) -> None:
        self.device = device_named(device)

    # ---- create, inspect -------------------------------------------------------------------------------------

    @wide
    @np.errstate(over="ignore")
    def new(self, shape: Shape, data: Any, dtype: DType) -> Array:
        if dtype is bfloat16 and isinstance(data, list | tuple | range):  # numpy would round twice
            data = [round_float(float(number), dtype) for number in data]
        # A copy: XLA reads the memory of a numpy array later, or keeps it.
        return jax.device_put(np.array(data, dtype.name).reshape(shape), self.device)

    @wide
    @np.errstate(over="ignore")
    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Array:
        if dtype is bfloat16:
            value = round_float(float(value), dtype)
        return jax.device_put(np.full(shape, value, dtype.name), self.device)

    @wide
    def adopt(self, array: Any, copy: bool) -> Array | None:
        if isinstance(array, jax.core.Tracer):
            raise ExchangeError(
                "adopt: this array of JAX is being traced, and has no values; call the function outside of jax.jit"
            )
        if not isinstance(array, jax.Array):
            if copy and self.device is None and tuple(array.__dlpack_device__()) == CPU:
                # `jnp.from_dlpack` would tie the copy to its device, so that it could not meet arrays on several.
                array = jax.device_put(np.array(np.from_dlpack(array)))
                return array if array.dtype in _DTYPE else None
            array = jnp.from_dlpack(array)
            if copy:  # now, as a computation that is not awaited could read memory that has changed
                array = jnp.array(array, copy=True).block_until_ready()
            if self.device is not None:
                array = jax.device_put(array, self.device)
        return array if array.dtype in _DTYPE else None

    def export(self, x: Array) -> Array:
        return x

    def placement(self, x: Array) -> Any:
        return x.sharding

    @wide
    def with_placement(self, x: Array, placement: Any, batch_axes: int) -> Array:
        return placed(x, placement, batch_axes)

    shape = staticmethod(attrgetter("shape"))  # type: ignore[assignment]

    def dtype(self, x: Array) -> DType:
        return _DTYPE[x.dtype]

    @wide
    def ravel(self, x: Array) -> Any:
        return np.array(x, np.float32 if x.dtype == jnp.bfloat16 else None, order="C").reshape(-1)

    # ---- elementwise -----------------------------------------------------------------------------------------

    exp, log, sin, cos, sqrt, floor = _ops(jnp.exp, elementary.log, jnp.sin, jnp.cos, jnp.sqrt, jnp.floor)
    tan, tanh, asin, acos, atan = _ops(jnp.tan, elementary.tanh, jnp.arcsin, jnp.arccos, jnp.arctan)
    log1p, expm1, exp2, log2, log10 = _ops(elementary.log1p, jnp.expm1, elementary.exp2, jnp.log2, jnp.log10)
    neg, abs, square, signbit = _ops(jnp.negative, jnp.abs, jnp.square, jnp.signbit)
    ceil, trunc, round = _ops(jnp.ceil, jnp.trunc, jnp.round)
    add, sub, mul, div, pow = _ops(lax.add, lax.sub, lax.mul, elementary.div, elementary.pow)
    maximum, minimum = _ops(jnp.maximum, jnp.minimum)
    copysign, nextafter, remainder = _ops(jnp.copysign, elementary.nextafter, elementary.remainder)
    eq, lt, where = _ops(lax.eq, lax.lt, jnp.where)
    bitwise_and, bitwise_or, bitwise_xor = _ops(lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor)
    shift_left, shift_right = _ops(lax.shift_left, lax.shift_right_logical)

    sigmoid, softplus, sech_squared = _ops(elementary.sigmoid, elementary.softplus, elementary.sech_squared)
    softmax, log_softmax, logsumexp = _ops(elementary.softmax, elementary.log_softmax, elementary.logsumexp)
    (norm,) = _ops(elementary.norm)

    @wide
    def cast(self, x: Array, dtype: DType) -> Array:
        return elementary.cast(x, jnp.dtype(dtype.name))

    @wide
    def to_bits(self, x: Array) -> Array:
        bits = lax.bitcast_convert_type(x, _SAME_SIZE[x.dtype.name])
        return bits.astype(jnp.int32) if bits.dtype == jnp.int16 else bits

    @wide
    def from_bits(self, x: Array) -> Array:
        return lax.bitcast_convert_type(x, _FLOATS[x.dtype.name])

    @wide
    def floor_divide(self, a: Array, b: Array) -> Array:
        return jnp.where(b == 0, 0, jnp.floor_divide(a, jnp.where(b == 0, 1, b)))

    # ---- reductions and movement -----------------------------------------------------------------------------

    @wide
    def sum(self, x: Array, axes: Axes) -> Array:
        return jnp.sum(x, axes, x.dtype, keepdims=True) if axes else x

    @wide
    def prod(self, x: Array, axes: Axes) -> Array:
        return jnp.prod(x, axes, x.dtype, keepdims=True) if axes else x

    @wide
    def max(self, x: Array, axes: Axes) -> Array:
        return jnp.max(x, axes, keepdims=True) if axes else x

    @wide
    def min(self, x: Array, axes: Axes) -> Array:
        return jnp.min(x, axes, keepdims=True) if axes else x

    @wide
    def fused_multiply_add(self, a: Array, b: Array, axes: Axes) -> Array:
        return _contracted(a, b, axes)

    reshape, permute, expand, flip = _ops(jnp.reshape, jnp.transpose, jnp.broadcast_to, jnp.flip)

    @wide
    def pad(self, x: Array, pads: Pairs) -> Array:
        return lax.pad(x, jnp.zeros((), x.dtype), [(*pair, 0) for pair in pads])

    @wide
    def crop(self, x: Array, limits: Pairs) -> Array:
        return lax.slice(x, [start for start, _ in limits], [stop for _, stop in limits])

    @wide
    def concatenate(self, *args: Any) -> Array:
        return jnp.concatenate(args[:-1], args[-1])

    @wide
    def gather(self, x: Array, indices: Array, axis: int) -> Array:
        return jnp.take(x, indices, axis, mode="clip")

    @wide
    def scatter_add(self, x: Array, indices: Array, axis: int, size: int) -> Array:
        zeros = jnp.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)
        return _added(zeros, x, indices, axis)

    @wide
    def add_at(self, y: Array, x: Array, indices: Array, axis: int) -> Array:
        return _added(y, x, indices, axis)

    @wide
    def sort(self, x: Array, axis: int) -> Array:
        return jnp.sort(x, axis)

    @wide
    def argsort(self, x: Array, axis: int) -> Array:
        return jnp.argsort(x, axis, stable=True).astype(jnp.int32)

    @wide
    def argmax(self, x: Array, axis: int) -> Array:
        return jnp.expand_dims(lax.argmax(x, axis, jnp.int32), axis)

    @wide
    def argmin(self, x: Array, axis: int) -> Array:
        return jnp.expand_dims(lax.argmin(x, axis, jnp.int32), axis)

    # ---- matrices --------------------------------------------------------------------------------------------

    solve, triangular_solve, inv, det, slogdet, cholesky = _ops(
        *factorizations.ops("solve triangular_solve inv det slogdet cholesky")
    )
    qr, eigh, eigvalsh, svd, svdvals = _ops(*factorizations.ops("qr eigh eigvalsh svd svdvals"))
    complex_solve, complex_triangular_solve, complex_inv = _ops(
        *factorizations.ops("complex_solve complex_triangular_solve complex_inv")
    )
    complex_det, complex_slogdet, complex_cholesky, complex_qr = _ops(
        *factorizations.ops("complex_det complex_slogdet complex_cholesky complex_qr")
    )
    complex_eigh, complex_eigvalsh, complex_svd, complex_svdvals = _ops(
        *factorizations.ops("complex_eigh complex_eigvalsh complex_svd complex_svdvals")
    )

    # ---- Fourier transforms, without factors -----------------------------------------------------------------

    @wide
    def fft(self, real: Array, imag: Array, inverse: bool) -> Any:
        z = lax.complex(real, imag)
        y = jnp.fft.ifft(z, norm="forward") if inverse else jnp.fft.fft(z)
        return y.real, y.imag

    @wide
    def rfft(self, x: Array) -> Any:
        y = jnp.fft.rfft(x)
        return y.real, y.imag

    @wide
    def irfft(self, real: Array, imag: Array, size: int) -> Array:
        return jnp.fft.irfft(lax.complex(real, imag), size, norm="forward")

    # ---- programs --------------------------------------------------------------------------------------------

    def interpret(self, op: Op, operands: Sequence[Array], params: tuple[Any, ...]) -> Any:
        if (op.opaque or opaque_ops(params)) and not is_awaited():
            compute_constants(params)
            return awaited(lambda: self.interpret(op, operands, params), [])
        if op.opaque:
            return wide(run_opaque)(self, op, operands, params)
        if op.higher_order is not None:
            layout = op.higher_order.layout(params)
            if layout.loop is not None:
                return wide(run_loop)(self, layout.loop, operands)
            if layout.branches is not None:
                return wide(run_branch)(self, layout.branches, operands)
        return super().interpret(op, operands, params)

    def compile(self, program: Program) -> Callable[[Sequence[Array]], Sequence[Array]]:
        return Computation(program, self)

    def realize(self, x: Array) -> Array:
        return x.block_until_ready()


def _added(y: Array, x: Array, indices: Array, axis: int) -> Array:
    """y with the slices of x added at the indices; narrow floats are added up in float32."""
    dtype = y.dtype
    if dtype.itemsize == 2 and jnp.issubdtype(dtype, jnp.floating):
        y, x = y.astype(jnp.float32), x.astype(jnp.float32)
    return y.at[(*[slice(None)] * axis, indices)].add(x).astype(dtype)


def _contracted(a: Array, b: Array, axes: Axes) -> Array:
    """sum(a * b, axes) as one `dot_general`: along each axis the sizes are equal, or one is 1."""
    full = [max(n, m) if min(n, m) else 0 for n, m in zip(a.shape, b.shape, strict=True)]
    # An axis of size 1 in one operand belongs to the other alone, and is summed there first.
    shared = [i for i, n in enumerate(full) if a.shape[i] == b.shape[i]]
    summed = [i for i in shared if i in axes]
    batch = [i for i in shared if i not in axes]
    a, b = (_summed_alone(x, [i for i in axes if i not in shared]) for x in (a, b))
    only_a = [i for i in range(len(full)) if i not in shared and a.shape[i] != 1]
    only_b = [i for i in range(len(full)) if i not in shared and b.shape[i] != 1]
    a, a_axes = _squeezed(a, [*batch, *summed, *only_a])
    b, b_axes = _squeezed(b, [*batch, *summed, *only_b])
    dimensions = (
        ([a_axes[i] for i in summed], [b_axes[i] for i in summed]),
        ([a_axes[i] for i in batch], [b_axes[i] for i in batch]),
    )
    y = lax.dot_general(a, b, dimensions, precision=lax.Precision.HIGHEST)
    order = [*batch, *only_a, *only_b]
    y = y.transpose([order.index(i) for i in sorted(order)])
    return y.reshape([1 if i in axes else n for i, n in enumerate(full)])


def _summed_alone(x: Array, axes: Sequence[int]) -> Array:
    own = tuple([i for i in axes if x.shape[i] != 1])
    return jnp.sum(x, own, x.dtype, keepdims=True) if own else x


def _squeezed(x: Array, kept: Sequence[int]) -> tuple[Array, dict[int, int]]:
    """x without the other axes, which have size 1, and the new number of each axis."""
    numbers = {axis: i for i, axis in enumerate(sorted(kept))}
    return lax.squeeze(x, [i for i in range(x.ndim) if i not in numbers]), numbers
