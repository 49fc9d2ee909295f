"""Mistakes: invalid calls, which must raise errors, their operands, and the table of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.subject import Array, Subject
from tensorken_core import errors
from tensorken_core.errors import TensorkenError
from tensorken_core.language.dtypes import DTYPES, DType, bool_, float32, int32
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy

BUILT_IN: dict[type[TensorkenError], tuple[type[Exception], ...]] = {
    errors.ShapeError: (ValueError,),
    errors.AxisError: (ValueError, IndexError),
    errors.DTypeError: (TypeError,),
    errors.ScalarRangeError: (OverflowError,),
    errors.IndexingError: (IndexError,),
    errors.ArgumentError: (TypeError,),
    errors.StructureError: (ValueError,),
    errors.GradientError: (TypeError,),
    errors.EscapedTensorError: (RuntimeError,),
    errors.ImmutableError: (TypeError,),
    errors.ConcretizationError: (TypeError,),
    errors.BackendError: (RuntimeError,),
    errors.SettingError: (RuntimeError, ValueError),
    errors.UnknownBackendError: (RuntimeError, LookupError),
    errors.MixedBackendError: (ValueError,),
    errors.LinearAlgebraError: (ValueError,),
    errors.ExchangeError: (BufferError, ValueError),
}
"""The built-in exceptions from which each exception class of the language must derive."""


class Elsewhere(Numpy):
    """A backend other than the one under test."""

    def __repr__(self) -> str:
        return "Elsewhere()"


TENSORS: dict[str, tuple[Any, DType]] = {
    "vector": ([1.0, 2.0, 3.0], float32),
    "matrix": ([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], float32),
    "cube": (np.arange(24.0).reshape(2, 3, 4), float32),
    "number": (2.0, float32),
    "empty": (np.zeros((0, 3)), float32),
    "ints": ([1, 2, 3], int32),
    "bools": ([True, False, True], bool_),
}
"""The operands of mistakes, by the names of their attributes."""


class Operands:
    """Operands of mistakes, on the stack of the backend under test; each is made at its first use.

    Attributes:
        made: the tensors that exist, with their values.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.place = subject.stack
        self.made: list[tuple[Tensor, Array]] = []

    def of(self, values: Any, dtype: DType = float32) -> Tensor:
        """A tensor of these values."""
        array: Array = np.array(values, dtype.name)
        self.made.append((self.subject.tensor(array, dtype, self.place), array))
        return self.made[-1][0]

    def zeros(self, *shape: int) -> Tensor:
        """Zeros of this shape."""
        return self.of(np.zeros(shape))

    def __getattr__(self, name: str) -> Tensor:
        if name not in TENSORS:
            raise AttributeError(name)
        x = vars(self)[name] = self.of(*TENSORS[name])
        return x

    @property
    def elsewhere(self) -> Tensor:
        """Floats of shape (3,) on another backend."""
        return self.subject.tensor(np.array([1.0, 2.0, 3.0]), float32, Elsewhere())

    @property
    def fraction(self) -> Any:
        """A number that is not a size."""
        return 2.5

    @property
    def absent(self) -> str:
        """A dtype that the backend does not support."""
        return next(name for name in DTYPES if name not in self.subject.capabilities.dtypes)


Call = Callable[[Operands], Any]


@dataclass(frozen=True, slots=True)
class Mistake:
    """A call that must be refused.

    Attributes:
        name: the op of its case.
        group: the part of the language that it belongs to.
        error: the exact class of the exception.
        words: the words of the message, in this order (in any order within one tuple); it begins with the first.
            `{backend}` is replaced by the backend under test, `{absent}` by a dtype that it does not support,
            `{dtypes}` by those that it supports.
        call: the call.
        where: which backends have the case: "installed" ones, those with an "absent" dtype, or all (empty).
        listing: whether further lines may list the alternatives.
    """

    name: str
    group: str
    error: type[TensorkenError]
    words: tuple[str | tuple[str, ...], ...]
    call: Call
    where: str = ""
    listing: bool = False


MISTAKES: dict[str, Mistake] = {}
"""The table, by names."""


def mistakes(group: str, *rows: tuple[Any, ...], where: str = "", listing: bool = False) -> None:
    """Enter rows `(name, call, error, *words)` into the table."""
    for name, call, error, *words in rows:
        found = Mistake(name, group, error, tuple(words), call, where, listing)
        if MISTAKES.setdefault(name, found) != found:
            raise ValueError(f"there are two mistakes {name!r}")


def total(x: Any) -> Any:
    """A function to differentiate."""
    return (x * x).sum()


def escaped(x: Tensor) -> Tensor:
    """A tensor that outlived the transform that made it."""
    kept: list[Any] = []

    def f(y: Tensor) -> Any:
        kept.append(y * y)
        return total(y)

    tk.grad(f)(x)
    found: Tensor = kept[0]
    return found
