"""Import of arrays of other libraries through DLPack."""

from __future__ import annotations

from typing import Any

from tensorken.arrays.creation import adopted, is_complex_array, shared, tensor
from tensorken.interchange.dlpack import release_unclaimed
from tensorken.interchange.interop import check_exporter, strided_of_dlpack
from tensorken_core.errors import DTypeError
from tensorken_core.host.registry import resolve
from tensorken_core.tensor.tensor import Tensor

__all__ = ["from_dlpack"]


def from_dlpack(
    x: Any, /, *, device: str | None = None, copy: bool | None = None, backend: Any = None
) -> Tensor:
    """A tensor of another library's array.

    The values are copied, on the device of the array if the backend's library can use it, else through the CPU.

    Args:
        x: an object with the methods `__dlpack__` and `__dlpack_device__`, such as an array of numpy, PyTorch or JAX.
        device: one of the backend's devices.
        copy: False shares the memory of x, which must then never change; an error if the backend cannot share it.
        backend: a name such as `"numpy"`, or an interpreter; the default backend if None.

    Raises:
        ArgumentError: if x does not have these methods.
        DTypeError: if no dtype corresponds to the dtype of x.
        ExchangeError: if the memory of x is not accessible, or cannot be shared; a subclass of BufferError.

    >>> import numpy as np
    >>> import tensorken as tk
    >>> tk.from_dlpack(np.arange(3.0)).dtype
    tensorken.float64
    """
    if isinstance(x, Tensor):
        return x if device is None and backend is None else x.to(backend, device)
    check_exporter(x)
    interpreter = resolve(backend, device)
    if copy is False:
        return shared("from_dlpack", x, None, interpreter)
    if is_complex_array(x):
        return tensor(x, backend=interpreter)
    found = adopted("from_dlpack", x, None, interpreter, copy=True)
    if found is not None:
        return found
    keep: list[Any] = [x]
    try:
        return tensor(strided_of_dlpack(x, keep), backend=interpreter)
    except DTypeError as error:
        raise DTypeError(f"from_dlpack: {str(error).partition(': ')[2]}; see tk.asarray") from None
    finally:
        keep.clear()
        release_unclaimed()
