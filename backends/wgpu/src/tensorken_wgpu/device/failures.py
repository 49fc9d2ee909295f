"""Failures: the driver's errors in one line, and their kinds."""

from __future__ import annotations

import re
from typing import Any

import wgpu

from tensorken_core.errors import BackendError

_BOILERPLATE = re.compile(
    r"Validation Error|Out of Memory|Internal Error|Caused by:|In wgpu\w+", re.IGNORECASE
)
_FRAME = re.compile(r"[┌│╭╰=]|\d+ *│")
_POSITION = re.compile(r"wgsl:(\d+):(\d+)")


class KernelError(BackendError):
    """The driver, or a check before it, refuses a kernel.

    Attributes:
        reason: in one line.
        text: the kernel, in WGSL.
    """

    def __init__(self, device: str, reason: str, text: str) -> None:
        super().__init__(f"wgpu: {device} refuses a kernel: {reason}\n{text}")
        self.reason = reason
        self.text = text


class LostDeviceError(BackendError):
    """A device is lost, with all its memory."""


class ExhaustedError(BackendError):
    """A device has no memory left."""


def reason(error: Exception) -> str:
    """The message of a driver's error, without the driver's function names and drawings of the text.

    >>> reason(
    ...     ValueError('''Validation Error
    ...
    ... Caused by:
    ...   In wgpuDeviceCreateShaderModule
    ...
    ... Shader '' parsing error: expected assignment
    ...   ┌─ wgsl:1:22
    ...   │''')
    ... )
    'parsing error: expected assignment (line 1, column 22)'
    """
    message: list[str] = []
    for line in map(str.strip, str(error).splitlines()):
        if _FRAME.match(line):
            break
        if line and not _BOILERPLATE.fullmatch(line):
            message.append(line.removeprefix("Shader '' "))
    position = _POSITION.search(str(error))
    location = f" (line {position[1]}, column {position[2]})" if position else ""
    return (": ".join(message) or type(error).__name__) + location


def is_lost(error: Exception) -> bool:
    """Whether the device is lost: the driver was reset or updated, a kernel ran too long, or the card was removed."""
    return bool(re.search(r"device (is|was) lost|device ?lost", str(error), re.IGNORECASE))


def is_exhausted(error: Exception) -> bool:
    """Whether no memory was left."""
    exhausted: tuple[Any, ...] = (wgpu.GPUOutOfMemoryError, MemoryError)
    return isinstance(error, exhausted) or bool(
        re.search(r"out of memory|not enough memory|memory left", str(error), re.IGNORECASE)
    )
