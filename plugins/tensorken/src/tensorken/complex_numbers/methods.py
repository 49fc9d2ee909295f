"""Methods of complex tensors that work on both parts; importing this module attaches them to ComplexTensor."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken.interchange import interop
from tensorken_core.errors import ExchangeError


class Methods(ComplexTensor):
    """The methods, in a subclass so that a type checker compares them with those of Tensor.

    >>> import tensorken as tk
    >>> tk.tensor([1j]).to("reference").backend
    'reference'
    """

    __slots__ = ()

    def settle(self) -> ComplexTensor:
        """This tensor, with deferred products and sums of both parts computed."""
        self.real.settle()
        self.imag.settle()
        return self

    def realize(self) -> ComplexTensor:
        """This tensor, with all delayed work of its backend done."""
        self.real.realize()
        self.imag.realize()
        return self

    def to(self, backend: Any, device: Any = None) -> ComplexTensor:
        """The same values on another backend."""
        return ComplexTensor(self.real.to(backend, device), self.imag.to(backend, device), self.is_real)

    def numpy(self) -> Any:
        """A new numpy array of the values, which may be changed."""
        return self.__array__(copy=True)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """A new numpy array of the values; an error inside a transform, since the derivative would be lost.

        As that of a real tensor, it is read-only unless copy is True or the values are cast.
        """
        real, imag = interop.to_numpy(self.real), interop.to_numpy(self.imag)
        values = real.astype(self.dtype.name)
        values.imag = imag
        return interop.as_asked(values, dtype, copy, False)

    def array(self) -> Any:
        """An error: no library of a backend holds complex values."""
        raise ExchangeError(
            "array: complex tensors are pairs of real ones; use x.real.array(), x.imag.array()"
        )

    def to_mutable(self) -> memoryview:
        """An error: Python has no mutable memory of complex numbers."""
        raise ExchangeError("to_mutable: complex numbers have no mutable memory; use x.numpy()")

    def __dlpack__(self, **keywords: Any) -> Any:
        """A DLPack capsule of a numpy array of the values."""
        return self.__array__(copy=True).__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU."""
        return 1, 0


for _name, _member in list(vars(Methods).items()):
    if isinstance(_member, FunctionType):
        setattr(ComplexTensor, _name, _member)
