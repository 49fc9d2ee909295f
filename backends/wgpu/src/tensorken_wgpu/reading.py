"""Reading: buffers that are mapped, which is how the host sees what a device has computed.

The driver says that a buffer is mapped while it is polled.  wgpu polls in a thread of its own, which it wakes for each
buffer, and to which it hands over by a promise, a callback and a struct: that takes longer than all else that reading a
few numbers takes.  So the thread that waits polls here itself, where wgpu has the driver's functions where they are
today; else wgpu is asked as its documentation says.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident
from typing import Any


@dataclass(frozen=True, slots=True)
class Direct:
    """The driver's own functions, as wgpu has them: they raise what the driver reports.

    Attributes:
        ffi: of cffi's, to make what the driver is given.
        map: asks for a buffer to be mapped.
        poll: waits for the device, and lets the driver say what it has to say.
        range: where the bytes are of a buffer that is mapped.
        unmap: gives a buffer back.
        callback: to be told by `map`.
        mode: when.
        read: what `map` is asked for.
        success: what it says if it has been done.
    """

    ffi: Any
    map: Callable[..., Any]
    poll: Callable[..., Any]
    range: Callable[..., Any]
    unmap: Callable[..., Any]
    callback: Any
    mode: int
    read: int
    success: int


_numbers = itertools.count(1)  # of what is mapped: the driver says it where it tells of that
_told: dict[int, tuple[int, str]] = {}  # for each of them the driver's status, and why
_raised: dict[int, BaseException] = {}  # for a thread what was raised while it was told


def _direct() -> Direct | None:
    """The driver's own functions; None where wgpu does not have them as we know them."""
    try:
        from wgpu.backends.wgpu_native import ffi, lib
        from wgpu.backends.wgpu_native._api import libf
    except ImportError:
        return None

    def interrupted(kind: type[BaseException], error: BaseException, where: Any) -> None:
        """Keep what was raised in the callback, as Ctrl-C is in a thread that waits: who called it cannot see that."""
        told = where.tb_frame.f_locals
        _raised[get_ident()] = error
        _told[int(ffi.cast("intptr_t", told["number"]))] = told["status"], ""

    def mapped(status: int, why: Any, number: Any, unused: Any) -> None:
        said = ffi.unpack(why.data, why.length) if why.data and why.length != lib.WGPU_STRLEN else b""
        _told[int(ffi.cast("intptr_t", number))] = status, said.decode(errors="replace")

    try:
        return Direct(
            ffi,
            libf.wgpuBufferMapAsync,
            libf.wgpuDevicePoll,
            libf.wgpuBufferGetMappedRange,
            libf.wgpuBufferUnmap,
            ffi.callback(
                "void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)", mapped, onerror=interrupted
            ),
            lib.WGPUCallbackMode_AllowProcessEvents,
            lib.WGPUMapMode_Read,
            lib.WGPUMapAsyncStatus_Success,
        )
    except AttributeError:
        return None


DIRECT = _direct()


def read(
    device: Any, buffer: Any, size: int, submission: int | None = None, direct: Direct | None = DIRECT
) -> memoryview:
    """The first bytes of a buffer, once what was handed over is done; other threads may go on meanwhile.

    Args:
        device: the driver's.
        buffer: its; made to be mapped, and not mapped.
        size: how many bytes; a multiple of 4.
        submission: the number of the last one that is to be done, if others may have come since.

    Raises:
        GPUError: if the driver refuses.
        RuntimeError: if the buffer could not be mapped.
    """
    if direct is None or not hasattr(buffer, "_internal") or not hasattr(device, "_internal"):
        buffer.map_async("READ_NOSYNC", 0, size).sync_wait()  # wgpu would submit again to be sure
        found: memoryview = buffer.read_mapped(0, size)
        buffer.unmap()
        return found
    number = next(_numbers)
    ffi = direct.ffi
    asked = ffi.new("WGPUBufferMapCallbackInfo *")
    asked.mode, asked.callback, asked.userdata1 = direct.mode, direct.callback, ffi.cast("void *", number)
    direct.map(buffer._internal, direct.read, 0, size, asked[0])
    until = ffi.NULL if submission is None else ffi.new("WGPUSubmissionIndex *", submission)
    while number not in _told:  # another thread that polls may be about to note it
        direct.poll(device._internal, True, until)
        if _raised and (error := _raised.pop(get_ident(), None)) is not None:
            _told.pop(number, None)
            raise error
    status, why = _told.pop(number)
    if status != direct.success:
        raise RuntimeError(f"a buffer could not be mapped ({status}): {why}")
    copied = bytearray(ffi.buffer(direct.range(buffer._internal, 0, size), size))
    direct.unmap(buffer._internal)
    return memoryview(copied)
