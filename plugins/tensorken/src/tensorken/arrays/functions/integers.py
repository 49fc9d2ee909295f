"""Functions of integers: common divisors and multiples, counts of bits.

Raises:
    DTypeError: if an operand is not of integers.
    ShapeError: if the shapes do not broadcast.
"""

from __future__ import annotations

from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arithmetic import abs
from tensorken.arrays.functions.operands import first_tensor
from tensorken.arrays.indexing.checks import known_all
from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import DType, bool_, int32, uint8
from tensorken_core.language.op import OPS
from tensorken_core.tensor.coercion import is_supported, pair_of_operands
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["bitwise_count", "gcd", "lcm"]


def gcd(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The greatest common divisor of the absolute values, elementwise; of two zeros, 0; the shapes broadcast.

    >>> import tensorken as tk
    >>> tk.gcd([12, -8, 0], [18, 12, 5]).tolist()
    [6, 4, 5]
    """
    return _divisor(*_magnitudes("gcd", a, b))


def lcm(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The least common multiple of the absolute values, elementwise; 0 if one is 0; the shapes broadcast.

    >>> import tensorken as tk
    >>> tk.lcm([4, 0], [6, 5]).tolist()
    [12, 0]
    """
    x, y = _magnitudes("lcm", a, b)
    result: Tensor = x // _divisor(x, y) * y
    return result


def _magnitudes(name: str, a: Any, b: Any) -> tuple[Tensor, Tensor]:
    x, y = pair_of_operands(name, a, b, first_tensor(a, b))
    if x.dtype.kind != "int":
        raise DTypeError(f"{name}: need integers, got {x.dtype}; cast them (x.astype)")
    return abs(x), abs(y)


def _most_steps(dtype: DType) -> int:
    """The most steps of Euclid's algorithm: the smallest operands for n steps are Fibonacci numbers."""
    steps, small, large = 1, 1, 2
    while large <= 1 << (8 * dtype.itemsize - dtype.signed):
        steps, small, large = steps + 1, large, small + large
    return steps


def _divisor(x: Any, y: Any) -> Tensor:
    """Euclid's algorithm; it ends early where the values are known.  A remainder by 0 is 0 in this language.

    The smallest number of a signed dtype is its own absolute value, so remainders may be negative.
    """
    x, y = x + y * 0, y + x * 0
    for _ in range(_most_steps(x.dtype)):
        ended = y.eq(0)
        if known_all(ended):
            break
        x, y = ended.where(x, y), x % y
    return abs(x)


def bitwise_count(x: ArrayLike) -> Tensor:
    """The number of ones in the binary representation of the absolute value, elementwise, as uint8.

    On a backend without uint8 it is int32.

    >>> import tensorken as tk
    >>> tk.bitwise_count([0, 7, -8]).tolist()
    [0, 3, 1]
    """
    y = as_tensor(x)
    y = y.astype(int32) if y.dtype is bool_ else y
    if y.dtype.kind != "int":
        raise DTypeError(f"bitwise_count: need integers, got {y.dtype}; cast them (x.astype)")
    bits: Any = abs(y)
    size, shift = 8 * y.dtype.itemsize, 1
    while shift < size:  # sums of neighbouring fields of `shift` bits
        mask = sum(((1 << shift) - 1) << i for i in range(0, size, 2 * shift))
        bits = (bits & mask) + (bits.apply(OPS["shift_right"], bits.scalar(shift)) & mask)
        shift *= 2
    result: Tensor = bits.astype(uint8 if is_supported(bits.interpreter.base, uint8) else int32)
    return result
