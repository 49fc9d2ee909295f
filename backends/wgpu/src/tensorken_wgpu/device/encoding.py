"""Encoding: pending kernels and copies as commands of the driver, and their submission.

Kernels without a copy between them are one pass.  Each kernel takes three calls, which are most of its cost on the
host.  wgpu wraps each call to look for errors, and creates an empty array of offsets, which takes twice the time of
the call; but errors within a pass are reported when its encoder is finished.  wgpu also creates objects and structs
for each encoder and its results.  So the driver's functions are called directly, if wgpu has them under the expected
names, and wgpu looks for errors where they are reported; else wgpu's documented calls are used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import wgpu

Dispatch = tuple[Any, Any, tuple[int, int, int]]
"""The driver's pipeline and bind group, and the number of workgroups."""


class Copy(NamedTuple):
    """A copy between buffers; offsets and size are multiples of 4.

    Attributes:
        source: a buffer of the driver.
        start: the offset in the source.
        target: another buffer.
        offset: the offset in the target.
        size: in bytes.
    """

    source: Any
    start: int
    target: Any
    offset: int
    size: int


class Step(NamedTuple):
    """The number of a loop's step, for the kernels that follow.

    Attributes:
        number: from 0 up.
    """

    number: int


Command = Dispatch | Copy | Step
"""A pending kernel or copy, or a number for the kernels that follow."""

Call = Callable[..., Any]

_SUBMIT = "wgpuQueueSubmitForIndex"


@dataclass(frozen=True, slots=True)
class DriverFunctions:
    """The driver's functions.

    Attributes:
        null: of cffi.
        create: creates an encoder; this function and the next three raise the errors that the driver reports.
        copy: copies between buffers.
        finish: finishes an encoder and returns commands.
        submit: submits commands to a queue and returns the number of the submission; it raises no errors.
        errors: collects the errors that the driver reports.
        begin: begins a pass.
        set_pipeline: of a pass.
        set_group: sets the bind group of a pass.
        dispatch: dispatches workgroups in a pass.
        set_immediates: sets the numbers that kernels get when they run.
        number: creates an unsigned integer in memory.
        end: ends a pass.
        release_pass: releases a pass.
        release_encoder: releases an encoder.
        release_commands: releases commands.
        array: creates an array of commands.
    """

    null: Any
    create: Call
    copy: Call
    finish: Call
    submit: Call
    errors: Any
    begin: Call
    set_pipeline: Call
    set_group: Call
    dispatch: Call
    set_immediates: Call
    number: Call
    end: Call
    release_pass: Call
    release_encoder: Call
    release_commands: Call
    array: Call


def _direct() -> DriverFunctions | None:
    """The driver's functions; None if wgpu does not have them under the expected names."""
    try:
        from wgpu.backends.wgpu_native import ffi, lib
        from wgpu.backends.wgpu_native._api import libf

        return DriverFunctions(
            ffi.NULL,
            libf.wgpuDeviceCreateCommandEncoder,
            libf.wgpuCommandEncoderCopyBufferToBuffer,
            libf.wgpuCommandEncoderFinish,
            lib.wgpuQueueSubmitForIndex,
            libf._error_handler,
            lib.wgpuCommandEncoderBeginComputePass,
            lib.wgpuComputePassEncoderSetPipeline,
            lib.wgpuComputePassEncoderSetBindGroup,
            lib.wgpuComputePassEncoderDispatchWorkgroups,
            lib.wgpuComputePassEncoderSetImmediates,
            lambda: ffi.new("uint32_t *"),
            lib.wgpuComputePassEncoderEnd,
            lib.wgpuComputePassEncoderRelease,
            lib.wgpuCommandEncoderRelease,
            lib.wgpuCommandBufferRelease,
            lambda commands: ffi.new("WGPUCommandBuffer[]", [commands]),
        )
    except (ImportError, AttributeError):
        return None


DIRECT = _direct()


def encode(device: Any, pending: Sequence[Command], direct: DriverFunctions | None = DIRECT) -> Any:
    """Commands of the driver: kernels and copies, each of which sees the writes of all previous ones.

    Args:
        device: of the driver.
        pending: the kernels and copies.
        direct: the driver's functions; None for wgpu's documented calls.

    Raises:
        GPUError: if the driver refuses one, as on a lost device, where submitting would end the process.
    """
    if direct is None or not hasattr(device, "_internal"):
        return _encode_documented(device, pending)
    encoder = direct.create(device._internal, direct.null)
    try:
        for are_copies, run in _runs(pending):
            if are_copies:
                for source, start, target, offset, size in run:
                    direct.copy(encoder, source._internal, start, target._internal, offset, size)
            else:
                _encode_pass(encoder, run, direct)
        return direct.finish(encoder, direct.null)
    finally:
        direct.release_encoder(encoder)


def is_direct(queue: Any, direct: DriverFunctions | None = DIRECT) -> bool:
    """Whether `submit_commands` calls the driver's function directly."""
    return direct is not None and hasattr(queue, "_internal")


def submit_commands(
    queue: Any, commands: Any, numbers: list[int | None], direct: DriverFunctions | None = DIRECT
) -> None:
    """Submit encoded commands to a queue of the driver.

    Args:
        queue: of the driver.
        commands: as `encode` returns them.
        numbers: takes the number of the submission, or None if the driver has none.  A signal, such as Ctrl-C, may
            interrupt this function; then the list has the number if the commands were submitted.
        direct: the driver's functions; None for wgpu's documented calls.

    Raises:
        GPUError: if the driver refuses them.
    """
    if direct is None or not hasattr(queue, "_internal"):
        queue.submit([commands])
        numbers.append(None)
        return
    try:
        direct.errors.capture(_SUBMIT)
        try:
            # Python runs handlers of signals between its instructions, and this is one.
            numbers.extend(map(direct.submit, (queue._internal,), (1,), (direct.array(commands),)))
        finally:
            reported = direct.errors.release(_SUBMIT)
        if reported is not None:
            raise wgpu.GPUError(reported[1])
    finally:
        direct.release_commands(commands)


def _runs(pending: Sequence[Command]) -> Iterator[tuple[bool, Iterator[Any]]]:
    """Pending work as runs of copies and of kernels, each with whether it is a run of copies."""
    return groupby(pending, lambda command: type(command) is Copy)


def _encode_documented(device: Any, pending: Sequence[Command]) -> Any:
    encoder = device.create_command_encoder()
    for are_copies, run in _runs(pending):
        if are_copies:
            for copy in run:
                encoder.copy_buffer_to_buffer(*copy)
            continue
        encode_pass_documented(encoder.begin_compute_pass(), run)
    return encoder.finish()


def encode_pass_documented(compute: Any, pending: Iterable[Dispatch | Step]) -> None:
    """Encode kernels into a pass of the driver, and end it, by wgpu's documented calls."""
    number = None
    for command in pending:
        if isinstance(command, Step):
            number = command.number.to_bytes(4, sys.byteorder)
            continue
        pipeline, bind_group, workgroups = command
        compute.set_pipeline(pipeline)
        if number is not None:
            compute.set_immediates(0, number, 0, len(number))
        compute.set_bind_group(0, bind_group)
        compute.dispatch_workgroups(*workgroups)
    compute.end()


def _encode_pass(encoder: Any, pending: Iterable[Any], direct: DriverFunctions) -> None:
    set_pipeline, set_group, dispatch = direct.set_pipeline, direct.set_group, direct.dispatch
    null = direct.null
    compute = direct.begin(encoder, null)
    bound = last = number = None
    for command in pending:
        if type(command) is Step:
            number = number or direct.number()
            number[0] = command.number
            last = None  # so that the next kernel gets the number
            continue
        pipeline, group, (x, y, z) = command
        if pipeline is not last:
            set_pipeline(compute, pipeline._internal)
            if number is not None:
                direct.set_immediates(compute, 0, number, 4)
            last = pipeline
        if group is not bound:
            set_group(compute, 0, group._internal, 0, null)
            bound = group
        dispatch(compute, x, y, z)
    direct.end(compute)
    direct.release_pass(compute)
