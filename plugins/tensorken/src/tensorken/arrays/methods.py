"""Methods of tensors that call functions; importing this module attaches them to Tensor.

Their signatures are declared in Tensor, for editors and type checkers.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from tensorken.arrays import display, indexing, numpy_functions, view_methods
from tensorken.arrays.creation import move, unpickle
from tensorken.arrays.elsewhere.methods import NameElsewhere
from tensorken.arrays.functions import (
    arithmetic,
    complex_parts,
    cumulative as scans,
    diagonals,
    products,
    reductions,
    repeating,
    searching,
    shaping,
    sorting,
    statistics,
    strides,
)
from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken.arrays.reflected import or_reflected
from tensorken.complex_numbers import methods as complex_methods  # noqa: F401 -- attaches methods
from tensorken.interchange import interop
from tensorken.interchange.elements import packed
from tensorken_core.errors import ArgumentError, ImmutableError, IndexingError
from tensorken_core.host.registry import name_of
from tensorken_core.language.dtypes import DType
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.level import lower
from tensorken_core.tensor.normalization import integer_of
from tensorken_core.tensor.tensor import Tensor


class Methods(Tensor):
    """The methods, in a subclass so that a type checker compares them with the signatures in Tensor.

    >>> import tensorken as tk
    >>> tk.tensor([1.0, 3.0]).mean().item()
    2.0
    """

    __slots__ = ()

    all = reductions.all
    any = reductions.any
    argmax = reductions.argmax
    argmin = reductions.argmin
    argsort = sorting.argsort
    as_strided = strides.as_strided
    clip = arithmetic.clip
    conj = complex_parts.conj
    conjugate = complex_parts.conj
    cumprod = scans.cumprod
    cumsum = scans.cumsum
    diagonal = diagonals.diagonal
    dot = products.dot
    flatten = shaping.flatten
    mean = reductions.mean
    nonzero = searching.nonzero
    ravel = shaping.ravel
    repeat = repeating.repeat
    round = arithmetic.round
    searchsorted = searching.searchsorted
    sort = sorting.sort
    squeeze = shaping.squeeze
    std = statistics.std
    swapaxes = shaping.swapaxes
    take = shaping.take
    trace = diagonals.trace
    var = statistics.var

    flip = with_numpys_names(Tensor.flip)
    max = with_numpys_names(Tensor.max, reductions.max)
    min = with_numpys_names(Tensor.min, reductions.min)
    prod = with_numpys_names(Tensor.prod, reductions.prod)
    sum = with_numpys_names(Tensor.sum, reductions.sum)

    def item(self, *index: int) -> Any:
        """The only element as a Python number, or the element at an index: one int per axis, or one row-major position.

        Raises:
            IndexingError: if an index is out of range.
            ShapeError: if there is not exactly one element.

        >>> import tensorken as tk
        >>> (
        ...     tk.tensor([2.5]).item(),
        ...     tk.tensor([[1, 2], [3, 4]]).item(1, 0),
        ...     tk.tensor([[1, 2], [3, 4]]).item(1),
        ... )
        (2.5, 3, 2)
        """
        if index:
            return self.crop([(i, i + 1) for i in _position(self.shape, index)]).item()
        return super(Tensor, self).item()

    def copy(self) -> Tensor:
        """The tensor itself, since tensors are immutable.

        >>> import tensorken as tk
        >>> x = tk.tensor([1.0, 2.0])
        >>> x.copy() is x
        True
        """
        return self

    def transpose(self, *axes: Any) -> Tensor:
        """The axes in another order; reversed by default, as in numpy."""
        if not axes or axes == (None,):
            return self.permute(tuple(range(self.ndim))[::-1])
        return self.permute(*axes)

    @property
    def T(self) -> Tensor:
        """The axes reversed.

        >>> import tensorken as tk
        >>> tk.zeros((2, 3, 4)).T.shape
        (4, 3, 2)
        """
        return self.transpose()

    def __round__(self, decimals: int | None = None) -> Tensor:
        return self.round(decimals or 0)

    @or_reflected("__rdivmod__")
    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return other // self, other % self

    def settle(self) -> Tensor:
        """This tensor, with deferred products and sums computed; work that a device delays stays delayed.

        >>> import tensorken as tk
        >>> x = tk.ones((2, 1)) * tk.ones((1, 2))
        >>> x.settle() is x
        True
        """
        base, value = lower(self.representation, self.interpreter)
        if isinstance(base, RawTensor):
            base.settle(value)
        return self

    def realize(self) -> Tensor:
        """This tensor, with all delayed work of its backend done.

        >>> import tensorken as tk
        >>> x = tk.ones(3) + 1.0
        >>> x.realize() is x
        True
        """
        base, value = self.interpreter, self.representation
        if not isinstance(base, RawTensor):
            base, value = lower(value, base)
            if not isinstance(base, RawTensor):
                return self
        base.realize(value)
        return self

    @property
    def backend(self) -> str:
        """The name of the backend that holds the value.

        >>> import tensorken as tk
        >>> tk.zeros(2, backend="reference").backend
        'reference'
        """
        return name_of(self.interpreter.base)[0]

    @property
    def device(self) -> str:
        """The name of the backend's device that holds the value.

        >>> import tensorken as tk
        >>> tk.zeros(2, backend="numpy").device
        'cpu'
        """
        return name_of(self.interpreter.base)[1]

    @property
    def real(self) -> Tensor:
        """The real part: of a real tensor, the tensor itself.

        >>> import tensorken as tk
        >>> tk.tensor([1.0 + 2.0j]).real.tolist()
        [1.0]
        """
        return self

    @property
    def imag(self) -> Tensor:
        """The imaginary part: of a real tensor, zeros.

        >>> import tensorken as tk
        >>> tk.tensor([1.0 + 2.0j]).imag.tolist()
        [2.0]
        """
        return self.zeros_like()

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes.

        >>> import tensorken as tk
        >>> tk.zeros((2, 3)).nbytes
        24
        """
        return self.size * self.dtype.itemsize

    @property
    def placement(self) -> Any:
        """The devices that hold the value, as an object of the backend's library; None if it has no such object.

        On the backend `jax` it is the sharding of the array.

        Raises:
            ConcretizationError: inside a transform, where the value is not known.

        >>> import tensorken as tk
        >>> tk.zeros(2, backend="numpy").placement is None
        True
        """
        return interop.placement(self)

    def to(self, backend: Any, device: Any = None) -> Tensor:
        """The same values on another backend.

        Args:
            backend: a name such as `"numpy"`, or an interpreter.
            device: one of the backend's devices by name, or a placement, as in `tk.with_placement`.

        Raises:
            BackendError: if there is no such backend or device, or the backend has no placements.
            ArgumentError: inside a transform, if the backend is another.

        >>> import tensorken as tk
        >>> tk.tensor([1.0, 2.0]).to("reference").backend
        'reference'
        """
        if isinstance(backend, DType):
            raise ArgumentError(f"to: {backend.name} is a dtype, not a backend; use x.astype(dtype)")
        return move(self, backend, device)

    def to_device(self, device: str, /, *, stream: Any = None) -> Tensor:
        """The same values on another device of the same backend.

        >>> import tensorken as tk
        >>> tk.tensor([1.0, 2.0]).to_device("cpu").device
        'cpu'
        """
        if stream is not None:
            raise ArgumentError(f"to_device: streams are not supported, got stream={stream!r}; leave it out")
        return self if device == self.device else self.to(self.backend, device)

    def to_mutable(self) -> memoryview:
        """A mutable copy of the values, indexed with one int per axis; `tk.tensor` makes a tensor of it again.

        For many changes at once, `x.at[rows, columns].add(1)` is faster, and differentiable.

        >>> import tensorken as tk
        >>> counts = tk.zeros((3, 3), "int32").to_mutable()
        >>> for first, second in [(0, 1), (1, 2), (0, 1)]:
        ...     counts[first, second] += 1
        >>> tk.tensor(counts).tolist()
        [[0, 2, 0], [0, 0, 1], [0, 0, 0]]

        Raises:
            DTypeError: if the elements are float16.
            ShapeError: if there are no elements.
            ConcretizationError: inside a transform, which cannot record the changes.
        """
        return interop.to_mutable(self)

    def array(self) -> Any:
        """The values as an array of the library that computes them, such as a numpy array, without a copy.

        It shares the memory of the tensor, so never change it; a numpy array is read-only.

        Raises:
            ExchangeError: if the backend has no such library.
            ConcretizationError: inside a transform, which cannot trace another library.

        >>> import tensorken as tk
        >>> tk.tensor([1.0, 2.0]).array()
        array([1., 2.], dtype=float32)
        """
        return interop.own_array(self)

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise ArgumentError(
                "iteration: a tensor of shape () has no axis to iterate over; use x.item() for its value"
            )
        return iter([self[i] for i in range(self.shape[0])])

    def numpy(self) -> Any:
        """A new numpy array of the values, which may be changed; `numpy.asarray(x)` copies nothing, and is read-only.

        Raises:
            ConcretizationError: inside a transform, where the derivative would be lost.

        >>> import tensorken as tk
        >>> tk.tensor([1.0, 2.0]).numpy()
        array([1., 2.], dtype=float32)
        """
        return interop.to_numpy(self, copy=True)

    def __array_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        """A call of a numpy function with tensors: that of the function here of the same name."""
        return numpy_functions.call(function, arguments, keywords)

    def __array_ufunc__(self, ufunc: Any, method: str, /, *operands: Any, **keywords: Any) -> Any:
        """A call of an elementwise function of numpy with tensors: that of the function here of the same name."""
        return numpy_functions.call_ufunc(ufunc, method, operands, keywords)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """A numpy array of the values; an error inside a transform, since the derivative would be lost.

        It is read-only and shares the tensor's memory where the backend's arrays are in the memory of the host.
        `numpy.array(x)` and casts make a new array that may be changed; copy=False is an error if a copy is needed.
        """
        return interop.to_numpy(self, dtype, copy)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of the values; an error inside a transform.

        On a backend whose library has arrays, it shares the memory of the tensor, which must not be written to: it is
        marked as read-only, which numpy respects, and PyTorch and version 0 of DLPack do not.
        """
        return interop.to_dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device that `__dlpack__` exports to: that of the backend's library, or the CPU."""
        return interop.device_of_dlpack(self)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The namespace of the array API standard that tensors belong to: the module `tensorken`."""
        return interop.namespace(api_version)

    def __repr__(self) -> str:
        return display.representation(self)

    def __str__(self) -> str:
        return display.text(self)

    def __format__(self, spec: str) -> str:
        return display.text(self, spec)

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return self

    def __reduce__(self) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
        if self.interpreter.below is not None:
            raise ArgumentError(
                "pickle: a tensor inside a transform cannot be pickled; return it from the function first"
            )
        flat = self.flat()
        # An interpreter passed as an object has no name, so another process could not find it.
        backend = None if self.device == "default" else self.backend
        data = flat if isinstance(flat, list) else packed(flat, self.dtype)
        return unpickle, (self.shape, data, self.dtype, backend)

    def __dir__(self) -> list[str]:
        """The names of attributes, without those that only name an equivalent."""
        kind = type(self)
        return [
            n
            for n in object.__dir__(self)
            if not isinstance(inspect.getattr_static(kind, n, None), NameElsewhere)
        ]

    __add__ = or_reflected("__radd__")(Tensor.__add__)
    __sub__ = or_reflected("__rsub__")(Tensor.__sub__)
    __mul__ = or_reflected("__rmul__")(Tensor.__mul__)
    __truediv__ = or_reflected("__rtruediv__")(Tensor.__truediv__)
    __pow__ = or_reflected("__rpow__")(Tensor.__pow__)
    __floordiv__ = or_reflected("__rfloordiv__")(Tensor.__floordiv__)
    __mod__ = or_reflected("__rmod__")(Tensor.__mod__)
    __and__ = or_reflected("__rand__")(Tensor.__and__)
    __or__ = or_reflected("__ror__")(Tensor.__or__)
    __xor__ = or_reflected("__rxor__")(Tensor.__xor__)
    __lshift__ = or_reflected("__rlshift__")(Tensor.__lshift__)
    __rshift__ = or_reflected("__rrshift__")(Tensor.__rshift__)
    __eq__ = or_reflected("__eq__")(Tensor.__eq__)  # type: ignore[assignment]
    __ne__ = or_reflected("__ne__")(Tensor.__ne__)  # type: ignore[assignment]
    __lt__ = or_reflected("__gt__")(Tensor.__lt__)
    __gt__ = or_reflected("__lt__")(Tensor.__gt__)
    __le__ = or_reflected("__ge__")(Tensor.__le__)
    __ge__ = or_reflected("__le__")(Tensor.__ge__)
    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__
    __matmul__ = or_reflected("__rmatmul__")(products.matmul)

    def __rmatmul__(self, other: Any) -> Tensor:
        return products.matmul(other, self)

    def __getitem__(self, key: Any) -> Tensor:
        return indexing.get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise ImmutableError(
            "assignment: tensors are immutable; x.at[i].set(v) returns a new tensor with v at i"
        )

    def __delitem__(self, key: Any) -> None:
        raise ImmutableError(
            "del: tensors are immutable; tk.delete(x, i, axis) returns a new tensor without them"
        )

    @property
    def at(self) -> indexing.At:
        """`x.at[i].set(v)`, `.add(v)`, `.multiply(v)`, `.max(v)`, `.get()` and others: a new tensor, changed at i.

        Raises:
            IndexingError: if an index is out of range; it is an IndexError.

        >>> import tensorken as tk
        >>> x = tk.tensor([1, 2, 3])
        >>> x.at[0].set(10).tolist(), x.at[1:].add(1).tolist()
        ([10, 2, 3], [1, 3, 4])
        """
        return indexing.At(self)

    @property
    def oindex(self) -> indexing.Outer:
        """`x.oindex[rows, columns]`: each index works along its own axis, as a slice does (NEP 21).

        Raises:
            IndexingError: if an index is out of range; it is an IndexError.

        >>> import tensorken as tk
        >>> tk.tensor([[1, 2, 3], [4, 5, 6]]).oindex[[0, 1], [0, 2]].tolist()
        [[1, 3], [4, 6]]
        """
        return indexing.Outer(self)

    @property
    def vindex(self) -> indexing.Vectorized:
        """`x.vindex[rows, :, columns]`: indices broadcast together, and their axes always come first (NEP 21).

        Raises:
            IndexingError: if an index is out of range; it is an IndexError.

        >>> import tensorken as tk
        >>> tk.tensor([[1, 2, 3], [4, 5, 6]]).vindex[[0, 1], [0, 2]].tolist()
        [1, 6]
        """
        return indexing.Vectorized(self)


def _position(shape: Shape, index: tuple[int, ...]) -> Shape:
    """The index of one element of this shape along each axis, none negative."""
    sizes = (math.prod(shape),) if len(index) == 1 else shape
    if len(index) != len(sizes):
        raise IndexingError(
            f"index: {len(index)} indices for shape {shape}, which has {len(shape)} axes; "
            f"give one for each axis, or one into the flattened elements"
        )
    position = []
    for axis, (entry, size) in enumerate(zip(index, sizes, strict=True)):
        i = integer_of("item", "an index", entry)
        if not -size <= i < size:
            raise IndexingError(
                f"index: {i} is out of range for axis {axis} of shape {sizes}; it has {size} elements"
            )
        position.append(i % size)
    if sizes is shape:
        return tuple(position)
    remaining = position[0]
    for size in reversed(shape):
        remaining, i = divmod(remaining, size)
        position.append(i)
    return tuple(position[:0:-1])


ATTACHED = {n: member for n, member in vars(Methods).items() if isinstance(member, FunctionType | property)}
"""The methods by name."""

for _name, _member in ATTACHED.items():
    setattr(Tensor, _name, _member)

view_methods.attach()
