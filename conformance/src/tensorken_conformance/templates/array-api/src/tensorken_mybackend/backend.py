"""A backend on a library that implements the Python array API standard, here array_api_strict."""

from typing import Any

import array_api_strict as xp
import numpy as np
from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.raw import RawTensor

NATIVE = {d: getattr(xp, name) for name, d in DTYPES.items() if "float16" not in name and hasattr(xp, name)}
DTYPE_OF = {xp.asarray([], dtype=native).dtype: dtype for dtype, native in NATIVE.items()}
BITS = {"float32": np.int32, "float64": np.int64, "int32": np.float32, "int64": np.float64}
NAMES = "sub:subtract mul:multiply div:divide eq:equal exp log sin cos sqrt floor add plain_pow:pow where floor_divide"
A = Any


# fmt: off
class Mybackend(RawTensor[Any]):
    """The required ops by functions of the standard or of numpy; `pow` avoids the library's square root for 0.5."""
    capabilities = Capabilities(dtypes=tuple(map(str, DTYPE_OF.values())), shares_memory=True)
    def new(self, shape: A, data: A, dtype: A) -> A:
        return xp.asarray(np.array(data, dtype.name).reshape(shape), dtype=NATIVE[dtype])
    def full(self, shape: A, value: A, dtype: A) -> A: return xp.full(shape, value, dtype=NATIVE[dtype])
    def shape(self, x: A) -> A: return x.shape
    def dtype(self, x: A) -> A: return DTYPE_OF[x.dtype]
    def ravel(self, x: A) -> A: return np.array(x).reshape(-1)
    def sum(self, x: A, axes: A) -> A: return xp.sum(x, axis=axes, keepdims=True, dtype=x.dtype) if axes else x
    def lt(self, a: A, b: A) -> A: return ~a & b if a.dtype == xp.bool else xp.less(a, b)
    def max(self, x: A, axes: A) -> A: return (xp.any if x.dtype == xp.bool else xp.max)(x, axis=axes, keepdims=True)
    def reshape(self, x: A, shape: A) -> A: return xp.reshape(x, shape)
    def permute(self, x: A, order: A) -> A: return xp.permute_dims(x, order)
    def expand(self, x: A, shape: A) -> A: return xp.broadcast_to(x, shape)
    def flip(self, x: A, axes: A) -> A: return xp.flip(x, axis=axes)
    def crop(self, x: A, limits: A) -> A: return x[tuple([slice(*pair) for pair in limits])]
    def gather(self, x: A, indices: A, axis: A) -> A: return xp.take(x, indices, axis=axis)
    def to_bits(self, x: A) -> A: return xp.asarray(np.array(x).view(BITS[DTYPE_OF[x.dtype].name]))
    from_bits = to_bits
    def pow(self: A, a: A, b: A) -> A: return self.plain_pow(xp.where((b == 0.5) & (0.5 * a == a), xp.abs(a), a), b)
    def shift_left(self, a: A, b: A) -> A: return self.shifted(xp.bitwise_left_shift, a, b)
    def shift_right(self, a: A, b: A) -> A: return self.shifted(xp.bitwise_right_shift, a, b)
    def shifted(self, shift: A, a: A, b: A) -> A:  # shifts the bits; negative or too large shifts give 0
        bits, unsigned = (n := xp.iinfo(a.dtype).bits), getattr(xp, f"uint{n}")
        y = xp.astype(shift(xp.astype(a, unsigned), xp.astype(b % bits, unsigned)), a.dtype)
        return xp.where((b >= 0) & (b < bits), y, xp.zeros_like(y))
    def cast(self, x: A, dtype: A) -> A:
        if dtype.kind != "int" or not xp.isdtype(x.dtype, "real floating"):
            return xp.astype(x, NATIVE[dtype])
        y, low, high = np.array(x), np.iinfo(dtype.name).min, np.iinfo(dtype.name).max  # saturates at the limits
        inside = np.where((y >= low) & (y < high), y, 0).astype(dtype.name)  # NaN gives 0
        return xp.asarray(np.where(y >= high, high, np.where(y < low, low, inside)))
    def pad(self, x: A, pads: A) -> A: return xp.asarray(np.pad(np.array(x), pads) if pads else np.array(x))
    def scatter_add(self, x: A, indices: A, axis: A, size: A) -> A:
        y = np.zeros((*x.shape[:axis], size, *x.shape[axis + 1:]), np.array(x).dtype)
        np.add.at(np.moveaxis(y, axis, 0), np.array(indices), np.moveaxis(np.array(x), axis, 0))
        return xp.asarray(y)

for name in [*NAMES.split(), "bitwise_and", "bitwise_or", "bitwise_xor"]:
    call = np.errstate(all="ignore")(getattr(xp, name.rpartition(":")[2]))
    setattr(Mybackend, name.partition(":")[0], lambda self, *operands, call=call: call(*operands))
