"""Forked processes: they have the memory of their parent's driver, but not the driver's threads.

Any call of the driver may wait for one of those threads for ever, and so may the release of its objects and the end
of the process.  So each device reports that it cannot be used, no object of the driver is released, and the process
ends without the exit handlers that were registered when it was forked.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any, Protocol

from tensorken_wgpu.device.failures import LostDeviceError


class Detachable(Protocol):
    """Holds objects of the driver."""

    def detach(self) -> None:
        """Stop calling the driver, and keep its objects alive."""


_adapters: weakref.WeakSet[Any] = weakref.WeakSet()
_devices: weakref.WeakSet[Detachable] = weakref.WeakSet()
_is_forked = False  # whether the driver is the parent's


def register_adapter(adapter: Any) -> None:
    """Register an adapter of the driver."""
    _adapters.add(adapter)


def register_device(device: Detachable) -> None:
    """Register an opened device."""
    _devices.add(device)


def forked_error(name: str) -> LostDeviceError:
    """The error for a device in a forked process."""
    return LostDeviceError(
        f"wgpu: {name} and tensors on it cannot be used here, as this process was forked from one that used it; "
        "start processes with multiprocessing's `spawn`"
    )


def check_not_forked(name: str) -> None:
    """Check that the driver was not in use when this process was forked.

    Raises:
        LostDeviceError: if it was.
    """
    if _is_forked:
        raise forked_error(name)


def _detach() -> None:
    """Detach from the parent's driver, in the child."""
    global _is_forked
    devices, adapters = [*_devices], [*_adapters]
    if not devices and not adapters:
        return
    _is_forked = True
    for device in devices:
        device.detach()
    for item in (*devices, *adapters):
        _never_release(item)
    _skip_exit_handlers()


def _never_release(item: Any) -> None:
    """Never release this object, not even when Python ends."""
    python = getattr(ctypes, "pythonapi", None)
    if python is not None:  # only CPython counts references
        python.Py_IncRef(ctypes.py_object(item))


def _skip_exit_handlers() -> None:
    """Register `_exit` as the last exit handler, which runs first: the process then ends without running the others."""
    system = ctypes.CDLL(None)
    try:
        on_exit, at_exit, end, flush = system.on_exit, system.__cxa_atexit, system._exit, system.fflush
    except AttributeError:  # not glibc
        return
    on_exit(end, None)
    at_exit(flush, None, None)  # runs before `_exit`: flush C's streams


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_detach)
