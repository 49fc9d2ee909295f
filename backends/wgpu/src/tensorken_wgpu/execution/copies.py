"""Copies: movement ops whose result is a copy of contiguous bytes, or no copy at all.

They need no kernel, so they cost the same at any offset: a loop over slices would otherwise need a new kernel for
each slice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any, Protocol

from tensorken_core.language.op import OPS, Op
from tensorken_wgpu.device.device import Device
from tensorken_wgpu.execution.programs import Array
from tensorken_wgpu.wgsl.dtypes import size_of

ALIGNMENT = 4
"""Offsets and sizes of copies are multiples of this many bytes."""


class DeviceInterpreter(Protocol):
    """An interpreter with a device."""

    @property
    def device(self) -> Device:
        """The current device."""
        ...

    def interpret(self, op: Op, operands: Sequence[Array], params: tuple[Any, ...]) -> Any:
        """The result of an op."""
        ...


def run_as_copy(
    op: str, backend: DeviceInterpreter, operands: Sequence[Array], params: tuple[Any, ...]
) -> Array | None:
    """The result of an op that needs no kernel for these operands, else None.

    Raises:
        BackendError: if the device is lost, or has no memory left.
    """
    copy = _COPIES.get(op)
    return None if copy is None else copy(backend, operands, *params)


def _reshaped(backend: DeviceInterpreter, operands: Sequence[Array], shape: tuple[int, ...]) -> Array:
    (x,) = operands
    return Array(shape, x.dtype, x.memory)


def _cropped(
    backend: DeviceInterpreter, operands: Sequence[Array], limits: Sequence[tuple[int, int]]
) -> Array | None:
    """A crop of adjacent elements: before the last axis that is cropped, the result has size 1.

    If they do not start at a multiple of 4 bytes, the element before them is copied too, and a kernel, the same for
    all such offsets, drops it.
    """
    (x,) = operands
    shape = tuple([end - start for start, end in limits])
    cut = max([i for i, n in enumerate(x.shape) if shape[i] != n], default=0)
    if x.memory is None or 0 in shape or prod(shape[:cut]) != 1:
        return None
    begin = 0
    for (start, _), n in zip(limits, x.shape, strict=True):
        begin = begin * n + start
    begin *= size_of(x) // prod(x.shape)
    surplus = begin % ALIGNMENT  # 2 bytes for float16
    if surplus == begin != 0:
        return None
    count = prod(shape)
    wide = Array(shape if not surplus else (count + 1,), x.dtype, None)
    size = size_of(wide)
    wide.memory = backend.device.allocate(size)
    backend.device.copy([(x.memory, begin - surplus, wide.memory, 0, _rounded_up(size))])
    if not surplus:
        return wide
    rest: Array = backend.interpret(OPS["crop"], [wide], (((1, count + 1),),))
    return Array(shape, x.dtype, rest.memory)


def _concatenated(backend: DeviceInterpreter, operands: Sequence[Array], axis: int) -> Array | None:
    """Concatenated operands that are contiguous in the result: before the axis it has size 1."""
    first = operands[0]
    shape = (*first.shape[:axis], sum([x.shape[axis] for x in operands]), *first.shape[axis + 1 :])
    pieces = [x for x in operands if x.memory is not None]
    offsets = [0, *accumulate([size_of(x) for x in pieces])]
    total = offsets.pop()
    if not total or prod(shape[:axis]) != 1 or any([offset % ALIGNMENT for offset in offsets]):
        return None
    memory = backend.device.allocate(total)
    backend.device.copy(
        [
            (x.memory, 0, memory, offset, _rounded_up(size_of(x)))
            for x, offset in zip(pieces, offsets, strict=True)
            if x.memory
        ]
    )
    return Array(shape, first.dtype, memory)


def _rounded_up(size: int) -> int:
    """This many bytes, rounded up: blocks end at multiples of 4, and later copies overwrite the bytes that follow."""
    return size + -size % ALIGNMENT


_COPIES: Mapping[str, Callable[..., Array | None]] = {
    "reshape": _reshaped,
    "crop": _cropped,
    "concatenate": _concatenated,
}
