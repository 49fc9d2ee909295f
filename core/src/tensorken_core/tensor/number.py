"""Number: a Python number whose value is not known, for example while a function is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core import tree
from tensorken_core.language.dtypes import (
    DType,
    bool_,
    float32,
    float64,
    int32,
    int64,
    of_scalar,
    real_dtype,
    uint64,
)
from tensorken_core.tensor.coercion import NUMBERS, is_supported, promoted_dtype
from tensorken_core.tensor.tensor import Tensor, as_tensor


class NumberOperators:
    """The operators of numbers: on numbers alone they give a number, with all digits, as in Python."""

    __slots__ = ()
    wide: Tensor
    """The value as a tensor, of float64 or complex128 for a number with a fraction if the backend has it."""

    is_number = True

    def astype(self, dtype: Any) -> Tensor:
        return self.wide.astype(dtype)


class Number(NumberOperators, Tensor):  # type: ignore[misc]  # astype gives a tensor, which does not take other dtypes
    """A tensor in place of a Python number: it takes the dtype of the tensors that it is combined with, if it can.

    Operators on numbers alone give a number, as in Python, or a bool tensor.  All other functions see a tensor of the
    number's default dtype, as they do for a Python number, and return tensors.

    Attributes:
        wide: a tensor of the value, of float64 for a float if the backend has it, so that no digit is lost where the
            number meets a tensor of float64.

    >>> import tensorken as tk
    >>> from tensorken_core.tensor.number import Number
    >>> n = Number.of(tk.scalar(2))
    >>> (tk.ones(3, "uint8") * n).dtype, (tk.ones(3, "float16") * (n + 0.5)).dtype
    (tensorken.uint8, tensorken.float16)
    """

    __slots__ = ("wide",)
    wide: Tensor

    @property
    def representation(self) -> Any:
        return self.wide.astype(self.dtype).representation

    def __new__(cls, *args: Any) -> Tensor:  # type: ignore[misc]  # type(x)(...) makes the results of ops
        return Tensor(*args)

    @staticmethod
    def like(x: Tensor, interpreter: Any, representation: Any) -> Tensor:
        """A value of another level in place of x: a number if x is one."""
        y = Tensor(interpreter, representation, x.shape, x.dtype)
        return Number.of(y) if x.is_number else y

    @staticmethod
    def of(x: Tensor) -> Number:
        """The number with the value of a tensor of shape ()."""
        number: Number = object.__new__(Number)
        number.wide, number.interpreter, number._shape = x, x.interpreter, x.shape
        number._dtype = float32 if x.dtype is float64 else x.dtype
        return number


_REAL = (bool, int, float, Number)


def is_number(x: Any) -> bool:
    """Whether x is a Python number, or stands for one.

    >>> is_number(2.0), is_number([2.0])
    (True, False)
    """
    return type(x) in NUMBERS or isinstance(x, NumberOperators)


def numbers_among(leaves: Sequence[Any]) -> tuple[int, ...]:
    """The indices of the leaves that are Python numbers, or stand for them; complex numbers are tensors of their own.

    >>> numbers_among([1, 2.0, [3.0]])
    (0, 1)
    """
    return tuple([i for i, x in enumerate(leaves) if type(x) in _REAL])


def with_numbers(tensors: Sequence[Tensor], indices: Sequence[int]) -> list[Tensor]:
    """The tensors, of which those at the indices stand for Python numbers."""
    chosen = frozenset(indices)
    return [Number.of(x) if i in chosen else x for i, x in enumerate(tensors)]


def as_argument(data: Any) -> Tensor:
    """A tensor unchanged, a Python number as a number, other data as a tensor on the default backend."""
    return Number.of(as_tensor(data)) if type(data) in _REAL else as_tensor(data)


def carrying_dtype(number: bool | int | float, wide: DType = float32) -> DType:
    """The dtype that carries a Python number: its default dtype, or that of 64 bits for large ints, `wide` for floats.

    >>> carrying_dtype(2), carrying_dtype(2**40), carrying_dtype(0.5)
    (tensorken.int32, tensorken.int64, tensorken.float32)
    """
    if type(number) is not int or -(2**31) <= number < 2**31:
        return wide if type(number) is float else of_scalar(number)
    return uint64 if 2**63 <= number < 2**64 else int64 if -(2**63) <= number < 2**63 else int32


def carried(x: Tensor) -> Tensor:
    """The tensor that carries a number, with all digits; other tensors unchanged."""
    return x.wide if isinstance(x, Number) else x


def wide_float(interpreter: Any) -> DType:
    """The dtype that carries a Python float where it may meet a float64: float64, if the backend has it."""
    return float64 if is_supported(interpreter.base, float64) else float32


def _strong(x: Any, arithmetic: bool = False) -> Any:
    """The number as a tensor; for arithmetic of numbers a bool as an int, as in Python."""
    if not isinstance(x, NumberOperators):
        return int(x) if arithmetic and type(x) is bool else x
    return x.astype(int32) if arithmetic and x.wide.dtype is bool_ else x.wide


_INEXACT = frozenset({float, complex, "float", "complex"})  # types of Python numbers, kinds of dtypes
_COMPARISONS = frozenset("__lt__ __le__ __gt__ __ge__ __eq__ __ne__".split())
_LOGIC = frozenset("invert and or xor rand ror rxor lt le gt ge eq ne".split())
"""Operators of bools whose result is a bool; `~` too, which is the logical not."""


def _with_floats(name: str, numbers: list[Any]) -> list[Any]:
    """Ints whose result is no int as floats of as many digits as the backend has."""
    tensors = [x for x in numbers if isinstance(x, Tensor)]
    stays_int = name not in ("__truediv__", "__rtruediv__") and _INEXACT.isdisjoint(map(type, numbers))
    if stays_int or any([x.dtype.kind in _INEXACT for x in tensors]):
        return numbers
    return [x.astype(wide_float(x.interpreter)) if isinstance(x, Tensor) else x for x in numbers]


def _operator(name: str) -> Callable[..., Any]:
    """An operator: of numbers it is a number again, otherwise the tensor's with the number in the tensor's dtype."""
    arithmetic = name.strip("_") not in _LOGIC
    plain = f"__{name[3:]}" if name.startswith("__r") else None

    def method(self: Any, *others: Any) -> Any:
        if all([is_number(x) for x in others]):
            numbers = [_strong(x, arithmetic) for x in (self, *others)]
            y = getattr(Tensor, name)(*(_with_floats(name, numbers) if arithmetic else numbers))
            is_other = y is NotImplemented or getattr(y, "dtype", None) is bool_
            return y if is_other else tree.map(Number.of, y)  # of each part of a pair or of a complex number
        (other,) = others
        x = _strong(self)
        if isinstance(other, Tensor):
            dtype = promoted_dtype(self, other)
            by_value = dtype.kind == "int" and name in _COMPARISONS  # also beyond the range of the dtype
            if not by_value:
                x = x.astype(dtype if x.dtype.kind == "complex" else real_dtype(dtype))
            if plain is not None:
                return getattr(Tensor, plain)(other, x)
        return getattr(Tensor, name)(x, other)

    method.__name__, method.__qualname__ = name, f"Number.{name}"
    return method


_BINARY = "add sub mul truediv floordiv mod divmod pow lshift rshift and or xor".split()
for _name in (
    *[f"__{prefix}{name}__" for name in _BINARY for prefix in ("", "r")],
    *[f"__{name}__" for name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert")],
    "conjugate",
):
    setattr(NumberOperators, _name, _operator(_name))
