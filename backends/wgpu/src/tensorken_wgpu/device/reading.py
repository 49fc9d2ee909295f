"""Reading: mapped buffers, through which the host sees a device's results, and writes its data.

The driver reports that a buffer is mapped while it is polled.  wgpu polls in its own thread, which it wakes for each
buffer and which passes the result through a promise, a callback and a struct: that takes longer than the rest of
reading a few numbers.  So the waiting thread polls the driver itself, if wgpu has the driver's functions under the
expected names; else wgpu's documented calls are used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident
from typing import Any


@dataclass(frozen=True, slots=True)
class DriverFunctions:
    """The driver's functions, as wgpu wraps them: they raise the errors that the driver reports.

    Attributes:
        ffi: of cffi, to create arguments.
        map: requests that a buffer is mapped.
        poll: waits for the device, and runs callbacks.
        range: the bytes of a mapped buffer.
        unmap: unmaps a buffer.
        callback: called by the driver when a buffer is mapped.
        mode: of the callback.
        read: the mode of a mapping to read.
        write: the mode of a mapping to write.
        success: the status of a mapped buffer.
    """

    ffi: Any
    map: Callable[..., Any]
    poll: Callable[..., Any]
    range: Callable[..., Any]
    unmap: Callable[..., Any]
    callback: Any
    mode: int
    read: int
    write: int
    success: int


_numbers = itertools.count(1)  # of mappings; passed through the callback
_statuses: dict[int, tuple[int, str]] = {}  # number of a mapping -> the driver's status and message
_raised: dict[int, BaseException] = {}  # thread -> an exception raised in its callback


def _direct() -> DriverFunctions | None:
    """The driver's functions; None if wgpu does not have them under the expected names."""
    try:
        from wgpu.backends.wgpu_native import ffi, lib
        from wgpu.backends.wgpu_native._api import libf
    except ImportError:
        return None

    def interrupted(exception_type: type[BaseException], error: BaseException, traceback: Any) -> None:
        """Keep an exception raised in the callback, such as Ctrl-C in the waiting thread: its caller cannot see it."""
        arguments = traceback.tb_frame.f_locals
        _raised[get_ident()] = error
        _statuses[int(ffi.cast("intptr_t", arguments["number"]))] = arguments["status"], ""

    def mapped(status: int, message: Any, number: Any, unused: Any) -> None:
        text = (
            ffi.unpack(message.data, message.length)
            if message.data and message.length != lib.WGPU_STRLEN
            else b""
        )
        _statuses[int(ffi.cast("intptr_t", number))] = status, text.decode(errors="replace")

    try:
        return DriverFunctions(
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
            lib.WGPUMapMode_Write,
            lib.WGPUMapAsyncStatus_Success,
        )
    except AttributeError:
        return None


DIRECT = _direct()


def read(
    device: Any,
    buffer: Any,
    size: int,
    submission: int | None = None,
    direct: DriverFunctions | None = DIRECT,
) -> memoryview:
    """The first bytes of a buffer, once submitted work is done; other threads may continue meanwhile.

    Args:
        device: of the driver.
        buffer: of the device; made to be mapped, and not mapped.
        size: in bytes; a multiple of 4.
        submission: the number of the last submission to wait for, as there may be later ones.
        direct: the driver's functions; None for wgpu's documented calls.

    Raises:
        GPUError: if the driver refuses.
        RuntimeError: if the buffer could not be mapped.
    """
    if direct is None or not _is_of_driver(device, buffer):
        buffer.map_async("READ_NOSYNC", 0, size).sync_wait()  # wgpu would submit again to be sure
        data: memoryview = buffer.read_mapped(0, size)
        buffer.unmap()
        return data
    bytes_of_buffer = _mapped(device, buffer, size, direct.read, submission, direct)
    copied = bytearray(bytes_of_buffer)
    direct.unmap(buffer._internal)
    return memoryview(copied)


def read_into(
    target: memoryview,
    device: Any,
    buffer: Any,
    submission: int | None = None,
    direct: DriverFunctions | None = DIRECT,
) -> None:
    """Copy the first bytes of a buffer to the host's memory; see `read`.

    Args:
        target: the host's memory; its size is a multiple of 4.
        device: as for `read`.
        buffer: as for `read`.
        submission: as for `read`.
        direct: as for `read`.

    Raises:
        GPUError: if the driver refuses.
        RuntimeError: if the buffer could not be mapped.
    """
    if direct is None or not _is_of_driver(device, buffer):
        target[:] = read(device, buffer, len(target), submission, direct)
        return
    target[:] = _mapped(device, buffer, len(target), direct.read, submission, direct)
    direct.unmap(buffer._internal)


def write(
    data: memoryview,
    device: Any,
    buffer: Any,
    submission: int | None = None,
    direct: DriverFunctions | None = DIRECT,
) -> None:
    """Copy data to the first bytes of a buffer, once a submission that uses the buffer is done.

    Args:
        data: its size is a multiple of 4.
        device: of the driver.
        buffer: of the device; made to be mapped for writing, and not mapped.
        submission: the number of the submission that uses the buffer, if there is one.
        direct: the driver's functions; None for wgpu's documented calls.

    Raises:
        GPUError: if the driver refuses.
        RuntimeError: if the buffer could not be mapped.
    """
    if direct is None or not _is_of_driver(device, buffer):
        buffer.map_async("WRITE", 0, len(data)).sync_wait()
        buffer.write_mapped(data, 0)
        buffer.unmap()
        return
    _mapped(device, buffer, len(data), direct.write, submission, direct)[:] = data
    direct.unmap(buffer._internal)


def uncleared(size: int, direct: DriverFunctions | None = DIRECT) -> memoryview:
    """Memory of the host with undefined contents, to be overwritten: for large results, clearing takes time."""
    if direct is None:
        return memoryview(bytearray(size))
    allocate = direct.ffi.new_allocator(should_clear_after_alloc=False)
    return memoryview(direct.ffi.buffer(allocate("char[]", size)))


def _is_of_driver(device: Any, buffer: Any) -> bool:
    """Whether the driver's functions can be called with a device and a buffer of wgpu."""
    return hasattr(buffer, "_internal") and hasattr(device, "_internal")


def _mapped(
    device: Any, buffer: Any, size: int, mode: int, submission: int | None, direct: DriverFunctions
) -> Any:
    """The first bytes of a buffer, mapped once submitted work is done."""
    number = next(_numbers)
    ffi = direct.ffi
    info = ffi.new("WGPUBufferMapCallbackInfo *")
    info.mode, info.callback, info.userdata1 = direct.mode, direct.callback, ffi.cast("void *", number)
    direct.map(buffer._internal, mode, 0, size, info[0])
    until = ffi.NULL if submission is None else ffi.new("WGPUSubmissionIndex *", submission)
    while number not in _statuses:  # the callback may run in another thread that polls
        direct.poll(device._internal, True, until)
        if _raised and (error := _raised.pop(get_ident(), None)) is not None:
            _statuses.pop(number, None)
            raise error
    status, message = _statuses.pop(number)
    if status != direct.success:
        raise RuntimeError(f"a buffer could not be mapped ({status}): {message}")
    return ffi.buffer(direct.range(buffer._internal, 0, size), size)
