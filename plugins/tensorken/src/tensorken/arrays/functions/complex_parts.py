"""The parts of complex numbers, and complex numbers of parts."""

from __future__ import annotations

import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import first_tensor, floating_of
from tensorken.complex_numbers import arithmetic
from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import float32, promote
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import broadcast
from tensorken_core.tensor.coercion import pair_of_operands
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "angle",
    "complex",
    "conj",
    "conjugate",
    "imag",
    "iscomplex",
    "iscomplexobj",
    "isreal",
    "isrealobj",
    "real",
]


def conj(x: ArrayLike) -> Tensor:
    """The complex conjugate, elementwise; of a real tensor, the tensor itself.

    >>> import tensorken as tk
    >>> print(tk.conj([1.0 + 2.0j, -2.0]))
    [ 1.-2.j -2.-0.j]
    """
    y = as_tensor(x)
    return arithmetic.conjugate(y) if isinstance(y, ComplexTensor) else y


def real(x: ArrayLike) -> Tensor:
    """The real part; of a real tensor, the tensor itself.

    >>> import tensorken as tk
    >>> print(tk.real([1.0 + 2.0j, -2.0]))
    [ 1. -2.]
    """
    return as_tensor(x).real


def imag(x: ArrayLike) -> Tensor:
    """The imaginary part; of a real tensor, zeros.

    >>> import tensorken as tk
    >>> print(tk.imag([1.0 + 2.0j, -2.0]))
    [2. 0.]
    """
    return as_tensor(x).imag


def angle(x: ArrayLike, deg: bool = False) -> Tensor:
    """The argument of complex numbers, in (-pi, pi]; of real ones 0 or pi.  Its derivative at 0 is 0.

    Args:
        deg: whether the result is in degrees instead of radians.

    >>> import tensorken as tk
    >>> print(tk.angle([1.0j, -1.0], deg=True))
    [ 90. 180.]
    """
    y = floating_of(as_tensor(x))
    result: Tensor = y.imag.apply(OPS["atan2"], y.real)
    return result * (180.0 / math.pi) if deg else result


def complex(real: ArrayLike, imag: ArrayLike) -> Tensor:
    """The complex numbers of real and imaginary parts: complex128 for float64, else complex64; the shapes broadcast.

    Raises:
        DTypeError: if a part is complex.

    >>> import tensorken as tk
    >>> tk.complex(tk.tensor([1.0, 2.0]), -1.0).tolist()
    [(1-1j), (2-1j)]
    """
    x, y = pair_of_operands("complex", real, imag, first_tensor(real, imag))
    if x.dtype.kind == "complex":
        raise DTypeError(f"complex: the parts must be real, got {x.dtype}; take x.real")
    x, y = (part.astype(promote(part.dtype, float32)) for part in (x, y))
    shape = broadcast(x.shape, y.shape)
    return ComplexTensor(x.broadcast_to(shape), y.broadcast_to(shape))


def iscomplexobj(x: Any) -> bool:
    """Whether x is of a complex dtype.

    >>> import tensorken as tk
    >>> tk.iscomplexobj(tk.tensor([1.0j])), tk.iscomplexobj(2.0)
    (True, False)
    """
    return as_tensor(x).dtype.kind == "complex"


def isrealobj(x: Any) -> bool:
    """Whether x is of a dtype that is not complex.

    >>> import tensorken as tk
    >>> tk.isrealobj(tk.tensor([1.0]))
    True
    """
    return not iscomplexobj(x)


def iscomplex(x: ArrayLike) -> Tensor:
    """Whether the imaginary part is not 0, elementwise.

    >>> import tensorken as tk
    >>> tk.iscomplex([1.0j, 2.0]).tolist()
    [True, False]
    """
    return ~isreal(x)


def isreal(x: ArrayLike) -> Tensor:
    """Whether the imaginary part is 0, elementwise.

    >>> import tensorken as tk
    >>> tk.isreal([1.0j, 2.0]).tolist()
    [False, True]
    """
    return as_tensor(x).imag.eq(0)


conjugate = conj
