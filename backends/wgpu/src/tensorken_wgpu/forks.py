"""Forks: a process that was forked has the memory of its parent's driver, and none of the threads by which it works.

Whatever is asked of the driver there may wait for ever for one of those threads, and so may what the driver does when
its objects are released, or the process ends.  So each device says that it cannot be used, nothing of the driver's is
released, and the process ends without what was to be done at its end when it was forked.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any, Protocol

from tensorken_wgpu.failures import LostDeviceError


class Parting(Protocol):
    """What holds objects of the driver's, and is asked for more of them."""

    def part(self) -> None:
        """Ask nothing more of the driver, and hold what there is of it."""


_adapters: weakref.WeakSet[Any] = weakref.WeakSet()
_devices: weakref.WeakSet[Parting] = weakref.WeakSet()
_parted = False  # whether the driver is the parent's


def found(adapter: Any) -> None:
    """Note an adapter of the driver's."""
    _adapters.add(adapter)


def opened(device: Parting) -> None:
    """Note a device that has been opened."""
    _devices.add(device)


def refusal(name: str) -> LostDeviceError:
    """What to raise for a device in a process that was forked."""
    return LostDeviceError(
        f"wgpu: {name} cannot be used here, nor what was on it, as this process was forked from one that used it; "
        "start processes by multiprocessing's `spawn`"
    )


def check(name: str) -> None:
    """Go on only if the driver was not in use when this process was forked.

    Raises:
        LostDeviceError: if it was.
    """
    if _parted:
        raise refusal(name)


def _part() -> None:
    """Part from the parent's driver, in the child."""
    global _parted
    devices, adapters = [*_devices], [*_adapters]
    if not devices and not adapters:
        return
    _parted = True
    for device in devices:
        device.part()
    for thing in (*devices, *adapters):
        _hold_for_ever(thing)
    _end_at_once()


def _hold_for_ever(thing: Any) -> None:
    """Have nothing of this released, not even where Python ends."""
    python = getattr(ctypes, "pythonapi", None)
    if python is not None:  # else it is not one that counts references
        python.Py_IncRef(ctypes.py_object(thing))


def _end_at_once() -> None:
    """Have the process end, once Python has, by what is noted last and so is run first: `_exit`, with its status."""
    system = ctypes.CDLL(None)
    try:
        on_exit, at_exit, end, flush = system.on_exit, system.__cxa_atexit, system._exit, system.fflush
    except AttributeError:  # glibc has them
        return
    on_exit(end, None)
    at_exit(flush, None, None)  # what is written through C: this comes before


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_part)
