"""Failures: what a driver says when it refuses or cannot go on, in one line, and of which kind it is."""

from __future__ import annotations

import re
from typing import Any

import wgpu

from tensorken_core.errors import BackendError

_BOILERPLATE = re.compile(
    r"Validation Error|Out of Memory|Internal Error|Caused by:|In wgpu\w+", re.IGNORECASE
)
_FRAME = re.compile(r"[┌│╭╰=]|\d+ *│")
_PLACE = re.compile(r"wgsl:(\d+):(\d+)")


class KernelError(BackendError):
    """The driver, or we before it, refuse a kernel.

    Attributes:
        reason: why, in a line.
        text: the kernel, in WGSL.
    """

    def __init__(self, device: str, reason: str, text: str) -> None:
        super().__init__(f"wgpu: {device} refuses a kernel: {reason}\n{text}")
        self.reason = reason
        self.text = text


class LostDeviceError(BackendError):
    """A device is gone, and with it all that lay in its memory."""


class ExhaustedError(BackendError):
    """A device has no memory left."""


def reason(error: Exception) -> str:
    """What a driver's error says, without the names of its own functions and its drawings.

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
    said: list[str] = []
    for line in map(str.strip, str(error).splitlines()):
        if _FRAME.match(line):
            break
        if line and not _BOILERPLATE.fullmatch(line):
            said.append(line.removeprefix("Shader '' "))
    place = _PLACE.search(str(error))
    where = f" (line {place[1]}, column {place[2]})" if place else ""
    return (": ".join(said) or type(error).__name__) + where


def is_lost(error: Exception) -> bool:
    """Whether the device is gone: the driver was reset or updated, a kernel ran too long, the card was taken out."""
    return bool(re.search(r"device (is|was) lost|device ?lost", str(error), re.IGNORECASE))


def is_exhausted(error: Exception) -> bool:
    """Whether there was no memory left."""
    exhausted: tuple[Any, ...] = (wgpu.GPUOutOfMemoryError, MemoryError)
    return isinstance(error, exhausted) or bool(
        re.search(r"out of memory|not enough memory|memory left", str(error), re.IGNORECASE)
    )
