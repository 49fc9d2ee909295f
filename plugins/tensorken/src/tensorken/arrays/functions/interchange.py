"""Import of arrays of other libraries through DLPack."""

from __future__ import annotations

from typing import Any

from tensorken.arrays.creation import tensor
from tensorken.interchange.dlpack import release_unclaimed
from tensorken.interchange.interop import strided_of_dlpack
from tensorken_core.errors import DTypeError, ExchangeError
from tensorken_core.tensor.tensor import Tensor

__all__ = ["from_dlpack"]


def from_dlpack(
    x: Any, /, *, device: str | None = None, copy: bool | None = None, backend: Any = None
) -> Tensor:
    """A tensor with a copy of the values of another library's array.

    Args:
        x: an object with the methods `__dlpack__` and `__dlpack_device__`, such as an array of numpy, PyTorch or JAX.
        device: one of the backend's devices.
        copy: whether to copy; False is an error, as the values are always copied.
        backend: a name such as `"numpy"`, or an interpreter; the default backend if None.

    Raises:
        ArgumentError: if x does not have these methods.
        DTypeError: if no dtype corresponds to the dtype of x.
        ExchangeError: if copy is False, or the memory of x is not accessible; a subclass of BufferError.

    >>> import numpy as np
    >>> import tensorken as tk
    >>> tk.from_dlpack(np.arange(3.0)).dtype
    tensorken.float64
    """
    if isinstance(x, Tensor):
        return x if device is None and backend is None else x.to(backend, device)
    if copy is False:
        raise ExchangeError("from_dlpack: the values are always copied; leave out copy=False")
    keep: list[Any] = [x]
    try:
        return tensor(strided_of_dlpack(x, keep), backend=backend, device=device)
    except DTypeError as error:
        raise DTypeError(f"from_dlpack: {str(error).partition(': ')[2]}; see tk.asarray") from None
    finally:
        keep.clear()
        release_unclaimed()
