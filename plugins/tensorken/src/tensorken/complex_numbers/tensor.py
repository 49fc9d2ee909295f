"""ComplexTensor: a tensor of complex numbers, as a pair of real tensors.

No interpreter has complex values.  An op on complex tensors is a few ops on their parts (`Interpreter.apply_complex`),
so every backend has complex numbers, and every level differentiates, batches and traces them: a complex tensor is a
pytree of its two parts.
"""

from __future__ import annotations

import contextlib
from typing import Any

from tensorken_core import tree
from tensorken_core.errors import ArgumentError, DTypeError
from tensorken_core.language.dtypes import DType, as_dtype, bool_, complex_dtype, real_dtype
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.number import Number, NumberOperators
from tensorken_core.tensor.tensor import Tensor


class ComplexTensor(Tensor):
    """A tensor of complex64 or complex128.

    Attributes:
        real: the real parts, a tensor of float32 or float64.
        imag: the imaginary parts, of the same shape and dtype.
        is_real: whether the imaginary parts are zeros because the tensor was made of a real one.
        interpreter: the interpreter of the real part; ops use those of the parts.

    >>> import tensorken as tk
    >>> z = ComplexTensor(tk.tensor([1.0, 2.0]), tk.tensor([0.0, -1.0]))
    >>> z.dtype, z.tolist()
    (tensorken.complex64, [(1+0j), (2-1j)])
    """

    __slots__ = ("imag", "is_real", "real")
    real: Tensor
    imag: Tensor
    is_real: bool

    def __init__(self, real: Any, imag: Any, is_real: bool = False) -> None:
        self.real, self.imag, self.is_real = real, imag, is_real
        self.representation = None
        if isinstance(real, Tensor):
            self.interpreter = real.interpreter
            self._shape, self._dtype = real.shape, complex_dtype(real.dtype)

    def __reduce__(self) -> tuple[type[ComplexTensor], tuple[Any, Any]]:
        return ComplexTensor, (self.real, self.imag)

    # ---- to Python -----------------------------------------------------------------------------------------------

    def flat(self) -> list[complex]:
        """The elements in row-major order, as Python's complex numbers."""
        return [complex(a, b) for a, b in zip(self.real.flat(), self.imag.flat(), strict=True)]

    def __float__(self) -> float:
        raise DTypeError("float: a complex number is no float; take x.real, x.imag or abs(x)")

    def __int__(self) -> int:
        raise DTypeError("int: a complex number is no int; take x.real, x.imag or abs(x)")

    # ---- constants, dtypes, and ops that do not go through `apply` -----------------------------------------------

    def scalar(self, value: bool | int | float | complex) -> ComplexTensor:
        """A tensor of this shape and dtype filled with the number."""
        number = complex(value)
        parts = self.real.scalar(number.real), self.real.scalar(number.imag)
        return ComplexTensor(*parts, number.imag == 0.0)

    def constant(self, data: Any, dtype: DType, shape: Shape) -> Tensor:
        """Flat row-major data as a constant at the level of the real part."""
        if dtype.kind != "complex":
            return self.real.constant(data, dtype, shape)
        numbers, part = list(data), real_dtype(dtype)
        parts = [n.real for n in numbers], [n.imag for n in numbers]
        real, imag = [self.real.constant(values, part, shape) for values in parts]
        return ComplexTensor(real, imag)

    def astype(self, dtype: Any, *, copy: bool = True) -> Any:
        """The elements in another complex dtype; in bool, whether they are not 0.

        Raises:
            DTypeError: for other dtypes, which would lose the imaginary parts.
        """
        dtype = as_dtype(dtype)
        if dtype is self.dtype:
            return self
        if dtype is bool_:
            return self.real.astype(bool_) | self.imag.astype(bool_)
        if dtype.kind != "complex":
            raise DTypeError(
                f"astype: {self.dtype} to {dtype} would lose the imaginary parts; take x.real, x.imag or abs(x) first"
            )
        part = real_dtype(dtype)
        return ComplexTensor(self.real.astype(part), self.imag.astype(part), self.is_real)

    def floor(self) -> Any:
        """An error: complex numbers have no order."""
        return apply(OPS["floor"], (self,))


class ComplexNumber(NumberOperators, ComplexTensor):  # type: ignore[misc]  # astype takes no other arguments
    """A complex tensor of two numbers, in place of a Python complex number while a function is traced.

    >>> import tensorken as tk
    >>> z = ComplexNumber(Number.of(tk.scalar(1.0)), Number.of(tk.scalar(2.0)))
    >>> (tk.ones(3, "float64") * (z * z)).dtype, tk.square(z).is_number
    (tensorken.complex128, False)
    """

    __slots__ = ()

    @property
    def wide(self) -> Tensor:  # type: ignore[override]  # of its parts
        return ComplexTensor(*[x.wide for x in (self.real, self.imag)])  # type: ignore[attr-defined]


def complex_of(x: Tensor, dtype: DType) -> ComplexTensor:
    """A real tensor in a complex dtype."""
    real = x.astype(real_dtype(dtype))
    return ComplexTensor(real, real.zeros_like(), True)


def is_complex(x: Any) -> bool:
    """Whether it is a complex tensor or number: a leaf for the user, but a pair of leaves of a pytree."""
    return isinstance(x, ComplexTensor | complex)


def _from_parts(_metadata: None, parts: list[Any]) -> ComplexTensor:
    """The complex tensor of two parts: numbers and tensors of one shape; of any two objects, as they are."""
    real, imag = parts
    tensors = [x for x in parts if isinstance(x, Tensor)]
    if tensors and (len(tensors) < 2 or real.shape != imag.shape or real.dtype is not imag.dtype):
        with contextlib.suppress(TypeError, ArgumentError):
            real, imag = [x if isinstance(x, Tensor) else tensors[0].scalar(x) for x in parts]
    return (ComplexNumber if type(real) is type(imag) is Number else ComplexTensor)(real, imag)


def _number_from_parts(_metadata: None, parts: list[Any]) -> Any:
    """A Python number of two floats; else as `_from_parts`."""
    real, imag = parts
    return complex(real, imag) if type(real) is type(imag) is float else _from_parts(None, parts)


_PARTS = ("real", "imag")
tree.register(complex, lambda z: ((z.real, z.imag), None), _number_from_parts, _PARTS)
for _type in (ComplexTensor, ComplexNumber):
    tree.register(_type, lambda z: ((z.real, z.imag), None), _from_parts, _PARTS)
Interpreter.complex_of = staticmethod(complex_of)
Interpreter.complex_type = ComplexTensor
