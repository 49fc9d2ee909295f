"""Encoding: kernels that wait, and copies between them, written down for the driver, and handed over.

Kernels that no copy comes between are one pass.  There are three calls a kernel, and they are most of what a kernel
costs the host.  wgpu wraps each of them to look for errors, and makes an array of no offsets, which takes twice the
time of the call itself; but errors within a pass come when its encoder is finished.  It also makes objects and structs
for each encoder and what comes of it.  So the driver's own functions are called where wgpu has them where they are
today, and wgpu looks for errors where one is reported; else wgpu is asked as its documentation says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

Waiting = tuple[Any, Any, tuple[int, int, int]]
"""A pipeline and a bind group of the driver's, and how many workgroups."""


class Copy(NamedTuple):
    """Bytes that come from one buffer to another; where they begin and how many they are is a multiple of 4.

    Attributes:
        source: a buffer of the driver's.
        start: where in it.
        target: another one.
        place: where in that.
        size: how many bytes.
    """

    source: Any
    start: int
    target: Any
    place: int
    size: int


Work = Waiting | Copy
"""What waits to be handed over."""

Call = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Direct:
    """The driver's own functions.

    Attributes:
        null: of cffi's.
        create: an encoder; this one and the next three raise what the driver reports.
        copy: between buffers.
        finish: an encoder, which gives commands.
        submit: commands to a queue, which gives a number.
        begin: a pass.
        set_pipeline: of a pass.
        set_group: of a pass.
        dispatch: in a pass.
        end: a pass.
        release_pass: and the next two: give back what they are called for.
        release_encoder: as it says.
        release_commands: as it says.
        array: makes one of so many commands.
    """

    null: Any
    create: Call
    copy: Call
    finish: Call
    submit: Call
    begin: Call
    set_pipeline: Call
    set_group: Call
    dispatch: Call
    end: Call
    release_pass: Call
    release_encoder: Call
    release_commands: Call
    array: Call


def _direct() -> Direct | None:
    """The driver's own functions; None where wgpu does not have them as we know them."""
    try:
        from wgpu.backends.wgpu_native import ffi, lib
        from wgpu.backends.wgpu_native._api import libf

        return Direct(
            ffi.NULL,
            libf.wgpuDeviceCreateCommandEncoder,
            libf.wgpuCommandEncoderCopyBufferToBuffer,
            libf.wgpuCommandEncoderFinish,
            libf.wgpuQueueSubmitForIndex,
            lib.wgpuCommandEncoderBeginComputePass,
            lib.wgpuComputePassEncoderSetPipeline,
            lib.wgpuComputePassEncoderSetBindGroup,
            lib.wgpuComputePassEncoderDispatchWorkgroups,
            lib.wgpuComputePassEncoderEnd,
            lib.wgpuComputePassEncoderRelease,
            lib.wgpuCommandEncoderRelease,
            lib.wgpuCommandBufferRelease,
            lambda commands: ffi.new("WGPUCommandBuffer[]", [commands]),
        )
    except (ImportError, AttributeError):
        return None


DIRECT = _direct()


def encoded(device: Any, waiting: Sequence[Work], direct: Direct | None = DIRECT) -> Any:
    """Commands of the driver's: kernels and copies, where each sees what those before it have written.

    Args:
        device: the driver's.
        waiting: the kernels and copies.

    Raises:
        GPUError: if the driver refuses something of it; on a lost device it does.  To submit would end the process.
    """
    if direct is None or not hasattr(device, "_internal"):
        return _documented(device, waiting)
    encoder = direct.create(device._internal, direct.null)
    try:
        for are_copies, together in _runs(waiting):
            if are_copies:
                for source, start, target, place, size in together:
                    direct.copy(encoder, source._internal, start, target._internal, place, size)
            else:
                _encode(encoder, together, direct)
        return direct.finish(encoder, direct.null)
    finally:
        direct.release_encoder(encoder)


def hand_over(queue: Any, commands: Any, direct: Direct | None = DIRECT) -> int | None:
    """Hand over to a queue of the driver's what has been encoded; by what number to wait for it, if it has one.

    Raises:
        GPUError: if the driver refuses it.
    """
    if direct is None or not hasattr(queue, "_internal"):
        queue.submit([commands])
        return None
    try:
        number: int = direct.submit(queue._internal, 1, direct.array(commands))
        return number
    finally:
        direct.release_commands(commands)


def _runs(waiting: Sequence[Work]) -> Iterator[tuple[bool, Iterator[Any]]]:
    """What waits, as turns of copies and of kernels; whether each is one of copies."""
    return groupby(waiting, lambda work: type(work) is Copy)


def _documented(device: Any, waiting: Sequence[Work]) -> Any:
    encoder = device.create_command_encoder()
    for are_copies, together in _runs(waiting):
        if are_copies:
            for copy in together:
                encoder.copy_buffer_to_buffer(*copy)
            continue
        compute = encoder.begin_compute_pass()
        for pipeline, group, groups in together:
            compute.set_pipeline(pipeline)
            compute.set_bind_group(0, group)
            compute.dispatch_workgroups(*groups)
        compute.end()
    return encoder.finish()


def _encode(encoder: Any, waiting: Iterable[Any], direct: Direct) -> None:
    set_pipeline, set_group, dispatch = direct.set_pipeline, direct.set_group, direct.dispatch
    null = direct.null
    compute = direct.begin(encoder, null)
    bound = last = None
    for pipeline, group, (x, y, z) in waiting:
        if pipeline is not last:
            set_pipeline(compute, pipeline._internal)
            last = pipeline
        if group is not bound:
            set_group(compute, 0, group._internal, 0, null)
            bound = group
        dispatch(compute, x, y, z)
    direct.end(compute)
    direct.release_pass(compute)
