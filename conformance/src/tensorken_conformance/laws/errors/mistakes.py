"""Mistakes: what a mistake is, the operands that they are made with, and the table of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.subject import Array, Subject
from tensorken_core.errors import (
    ArgumentError,
    AxisError,
    BackendError,
    ConcretizationError,
    DTypeError,
    EscapedTensorError,
    ExchangeError,
    GradientError,
    ImmutableError,
    IndexingError,
    LinearAlgebraError,
    MixedBackendError,
    ScalarRangeError,
    ShapeError,
    StructureError,
    TensorkenError,
    UnknownBackendError,
)
from tensorken_core.language.dtypes import DTYPES, DType, bool_, float32, int32
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy

BUILT_IN: dict[type[TensorkenError], tuple[type[Exception], ...]] = {
    ShapeError: (ValueError,),
    AxisError: (ValueError, IndexError),
    DTypeError: (TypeError,),
    ScalarRangeError: (OverflowError,),
    IndexingError: (IndexError,),
    ArgumentError: (TypeError,),
    StructureError: (ValueError,),
    GradientError: (TypeError,),
    EscapedTensorError: (RuntimeError,),
    ImmutableError: (TypeError,),
    ConcretizationError: (TypeError,),
    BackendError: (RuntimeError,),
    UnknownBackendError: (RuntimeError, LookupError),
    MixedBackendError: (ValueError,),
    LinearAlgebraError: (ValueError,),
    ExchangeError: (BufferError, ValueError),
}
"""The exceptions of Python that people expect, and catch, for each class of ours."""


class Elsewhere(Numpy):
    """Another backend than the one under test, whichever that is."""

    def __repr__(self) -> str:
        return "Elsewhere()"


class Operands:
    """Tensors to make mistakes with, on the backend under test as users have it."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.place = subject.stack
        self.made: list[tuple[Tensor, Array]] = []
        """What was made so far, with its values."""

    def of(self, values: Any, dtype: DType = float32) -> Tensor:
        """A tensor of these values."""
        array: Array = np.array(values, dtype.name)
        self.made.append((self.subject.tensor(array, dtype, self.place), array))
        return self.made[-1][0]

    def zeros(self, *shape: int) -> Tensor:
        """Zeros of this shape."""
        return self.of(np.zeros(shape))

    @cached_property
    def vector(self) -> Tensor:
        """Floats of shape (3,)."""
        return self.of([1.0, 2.0, 3.0])

    @cached_property
    def matrix(self) -> Tensor:
        """Floats of shape (2, 3)."""
        return self.of([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

    @cached_property
    def cube(self) -> Tensor:
        """Floats of shape (2, 3, 4)."""
        return self.of(np.arange(24.0).reshape(2, 3, 4))

    @cached_property
    def number(self) -> Tensor:
        """A float of shape ()."""
        return self.of(2.0)

    @cached_property
    def empty(self) -> Tensor:
        """No floats, in shape (0, 3)."""
        return self.of(np.zeros((0, 3)))

    @cached_property
    def ints(self) -> Tensor:
        """Ints of shape (3,)."""
        return self.of([1, 2, 3], int32)

    @cached_property
    def bools(self) -> Tensor:
        """Bools of shape (3,)."""
        return self.of([True, False, True], bool_)

    @cached_property
    def elsewhere(self) -> Tensor:
        """Floats of shape (3,) on another backend."""
        return self.subject.tensor(np.array([1.0, 2.0, 3.0]), float32, Elsewhere())

    @property
    def fraction(self) -> Any:
        """What is no size."""
        return 2.5

    @property
    def absent(self) -> str:
        """A dtype that the backend has not."""
        return next(name for name in DTYPES if name not in self.subject.capabilities.dtypes)


Call = Callable[[Operands], Any]


@dataclass(frozen=True, slots=True)
class Mistake:
    """A call that must be refused.

    Attributes:
        name: of the scenario.
        group: to which part of the language it belongs.
        error: the class of the exception, exactly.
        words: what the message holds, in this order, but for those in one tuple; it begins with the first.
            `{backend}` stands for the backend under test, `{absent}` for a dtype that it has not, `{dtypes}` for those
            that it has.
        call: the call.
        where: what it takes to make the mistake: "installed", "absent" for a dtype that the backend has not, or empty.
        listing: whether further lines may list what there is.
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
        if (
            MISTAKES.setdefault(
                name, found := Mistake(name, group, error, tuple(words), call, where, listing)
            )
            != found
        ):
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
