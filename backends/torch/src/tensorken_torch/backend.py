"""The PyTorch backend: each op is a call of torch, and a program is a graph of `torch.fx`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.utils.dlpack
from torch import Tensor

from tensorken_core.errors import DTypeError, ExchangeError
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DType, bfloat16, float32, round_float
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Program
from tensorken_torch import factorizations, functions
from tensorken_torch.contraction import contract
from tensorken_torch.devices import device_of
from tensorken_torch.functions import TORCH_DTYPES
from tensorken_torch.programs import Compiled

_DTYPES: dict[torch.dtype, DType] = {of_torch: dtype for dtype, of_torch in TORCH_DTYPES.items()}


def _ops(*called: Any) -> list[Any]:
    """Methods that call functions of tensors on their operands and params."""
    return [_op(function) for function in called]


def _op(function: Callable[..., Any]) -> Any:
    def call(self: Any, *args: Any) -> Any:
        return function(*args)

    call.function = function  # type: ignore[attr-defined]
    return call


class Torch(RawTensor[Tensor]):
    """Tensors of torch on one device.

    Args:
        device: the name of the device; the CPU if None.
    """

    broadcasts = True

    def __init__(self, device: str | None = None) -> None:
        self.device = device_of(device)
        dtypes = [
            dtype.name for dtype in TORCH_DTYPES if self.device.type != "mps" or dtype.name != "float64"
        ]
        self.capabilities = Capabilities(
            dtypes=tuple(dtypes),
            shares_memory=True,
            nondeterministic=() if self.device.type == "cpu" else ("scatter_add",),
        )

    def __repr__(self) -> str:
        return f"Torch({str(self.device)!r})"

    # ---- create, inspect -------------------------------------------------------------------------------------

    @np.errstate(over="ignore")
    def new(self, shape: Shape, data: Any, dtype: DType) -> Tensor:
        if dtype not in TORCH_DTYPES:
            raise DTypeError(f"new: torch has no arithmetic on {dtype}; use int64")
        if dtype is bfloat16:  # by its bits: torch would round twice, and drop the signs of NaNs
            if isinstance(data, list | tuple | range):
                data = [round_float(float(number), dtype) for number in data]
            upper = (np.array(data, np.float32).view(np.int32) >> 16).astype(np.int16)
            return torch.from_numpy(upper.reshape(shape)).view(torch.bfloat16).to(self.device)
        return torch.from_numpy(np.array(data, dtype.name).reshape(shape)).to(self.device)

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Tensor:
        if dtype is bfloat16:
            value = round_float(float(value), dtype)
            if value != value:  # torch.full loses the sign of a NaN in bfloat16
                return self.full(shape, value, float32).to(torch.bfloat16)
        try:
            return torch.full(shape, value, dtype=TORCH_DTYPES[dtype], device=self.device)
        except RuntimeError:  # torch refuses a number beyond the range of its dtype
            if dtype.kind != "float":
                raise
            rounded = round_float(float(value), dtype)
            return torch.full(shape, rounded, dtype=TORCH_DTYPES[dtype], device=self.device)

    def adopt(self, array: Any, copy: bool) -> Tensor | None:
        if isinstance(array, np.ndarray) and min(array.strides, default=0) < 0:
            return None  # torch has no negative strides
        if not isinstance(array, Tensor):
            array = torch.utils.dlpack.from_dlpack(array)
        elif array.requires_grad:
            raise ExchangeError(
                "adopt: this tensor of torch requires grad, and torch would lose its derivative; pass x.detach()"
            )
        found: Tensor = array
        if found.dtype not in _DTYPES:
            return None
        if found.device != self.device:
            return found.to(self.device)
        return found.clone() if copy else found

    def export(self, x: Tensor) -> Tensor:
        return x

    def shape(self, x: Tensor) -> Shape:
        return tuple(x.shape)

    def dtype(self, x: Tensor) -> DType:
        return _DTYPES[x.dtype]

    def ravel(self, x: Tensor) -> Any:
        return np.array((x.float() if x.dtype == torch.bfloat16 else x).cpu().contiguous().numpy()).reshape(
            -1
        )

    # ---- elementwise -----------------------------------------------------------------------------------------

    exp, log, sin, cos, floor = _ops(torch.exp, torch.log, torch.sin, torch.cos, torch.floor)
    tan, tanh, asin, acos, atan = _ops(torch.tan, torch.tanh, torch.asin, torch.acos, torch.atan)
    asinh, acosh, atanh = _ops(torch.asinh, torch.acosh, torch.atanh)
    log1p, expm1, exp2, log2, log10 = _ops(functions.log1p, torch.expm1, torch.exp2, torch.log2, torch.log10)
    erf, erfinv, gaussian = _ops(functions.erf, torch.erfinv, functions.gaussian)
    neg, abs, square, signbit = _ops(torch.neg, torch.abs, torch.square, torch.signbit)
    ceil, trunc, round = _ops(torch.ceil, torch.trunc, torch.round)
    relu, reciprocal = _ops(torch.relu, torch.reciprocal)
    add, sub, mul, div, pow = _ops(torch.add, torch.sub, torch.mul, torch.div, torch.pow)
    maximum, minimum = _ops(torch.maximum, torch.minimum)
    atan2, hypot, logaddexp = _ops(torch.atan2, torch.hypot, torch.logaddexp)
    copysign, nextafter = _ops(torch.copysign, torch.nextafter)
    eq, lt, where = _ops(torch.eq, torch.lt, torch.where)
    bitwise_and, bitwise_or, bitwise_xor = _ops(torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor)

    sqrt, sign = _ops(functions.sqrt, functions.sign)
    sigmoid, softplus, sech_squared = _ops(functions.sigmoid, functions.softplus, functions.sech_squared)
    to_bits, from_bits, floor_divide = _ops(functions.to_bits, functions.from_bits, functions.floor_divide)
    shift_left, shift_right = _ops(functions.shift_left, functions.shift_right)

    (cast,) = _ops(lambda x, dtype: functions.cast(x, TORCH_DTYPES[dtype]))

    # ---- reductions, movement, indexing ----------------------------------------------------------------------

    sum, prod, max, min = _ops(functions.sum, functions.prod, functions.max, functions.min)
    argmax, argmin = _ops(functions.argmax, functions.argmin)
    sort, argsort = _ops(functions.sort, functions.argsort)
    cumsum, cumprod = _ops(functions.cumsum, functions.cumprod)
    softmax, log_softmax, logsumexp = _ops(functions.softmax, functions.log_softmax, functions.logsumexp)
    (fused_multiply_add,) = _ops(contract)

    reshape, permute, expand, flip = _ops(torch.reshape, torch.permute, Tensor.expand, torch.flip)
    pad, crop, concatenate = _ops(functions.pad, functions.crop, functions.concatenate)
    gather, scatter_add, add_at = _ops(functions.gather, functions.scatter_add, functions.add_at)

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

    fft, rfft, irfft = _ops(functions.fft, functions.rfft, functions.irfft)

    # ---- programs --------------------------------------------------------------------------------------------

    def compile(self, program: Program) -> Callable[[Sequence[Tensor]], Sequence[Tensor]]:
        return Compiled(program, self)

    def realize(self, x: Tensor) -> Tensor:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return x
