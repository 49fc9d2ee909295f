"""Copies: ops that move elements and whose result is one of the device's copies of bytes, or none at all.

No kernel is planned or bound for them, so it costs the same wherever the elements lie: a loop that takes one slice
after the other would have a new kernel for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any, Protocol

from tensorken_core.language.op import OPS, Op
from tensorken_wgpu.device import Device
from tensorken_wgpu.dtypes import size_of
from tensorken_wgpu.programs import Array

ALIGNED = 4
"""A copy begins at a multiple of so many bytes, and has so many times some."""


class Computes(Protocol):
    """What has a device, and computes there what no copy is enough for."""

    @property
    def device(self) -> Device:
        """The one that there is now."""
        ...

    def interpret(self, op: Op, operands: Sequence[Array], params: tuple[Any, ...]) -> Any:
        """The result of an op."""
        ...


def copied(op: str, backend: Computes, operands: Sequence[Array], params: tuple[Any, ...]) -> Array | None:
    """The result of an op, if it is one that needs no kernel of its own here; else None.

    Raises:
        BackendError: if the device is lost, or has no memory left.
    """
    copy = _COPIES.get(op)
    return None if copy is None else copy(backend, operands, *params)


def _reshaped(backend: Computes, operands: Sequence[Array], shape: tuple[int, ...]) -> Array:
    (x,) = operands
    return Array(shape, x.dtype, x.memory)


def _cropped(backend: Computes, operands: Sequence[Array], limits: Sequence[tuple[int, int]]) -> Array | None:
    """Elements that lie side by side: before the last axis that is cut, the result has one element along each.

    Where they begin at no multiple of 4 bytes, the element before them comes too, and one kernel for all such places
    leaves it out.
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
    besides = begin % ALIGNED  # 2 bytes, of float16
    if besides == begin != 0:
        return None
    count = prod(shape)
    wide = Array(shape if not besides else (count + 1,), x.dtype, None)
    size = size_of(wide)
    wide.memory = backend.device.allocate(size)
    backend.device.copy([(x.memory, begin - besides, wide.memory, 0, _whole(size))])
    if not besides:
        return wide
    rest: Array = backend.interpret(OPS["crop"], [wide], (((1, count + 1),),))
    return Array(shape, x.dtype, rest.memory)


def _joined(backend: Computes, operands: Sequence[Array], axis: int) -> Array | None:
    """Pieces one behind the other in memory: before the axis there is one element along each."""
    first = operands[0]
    shape = (*first.shape[:axis], sum([x.shape[axis] for x in operands]), *first.shape[axis + 1 :])
    pieces = [x for x in operands if x.memory is not None]
    places = [0, *accumulate([size_of(x) for x in pieces])]
    total = places.pop()
    if not total or prod(shape[:axis]) != 1 or any([place % ALIGNED for place in places]):
        return None
    memory = backend.device.allocate(total)
    backend.device.copy(
        [
            (x.memory, 0, memory, place, _whole(size_of(x)))
            for x, place in zip(pieces, places, strict=True)
            if x.memory
        ]
    )
    return Array(shape, first.dtype, memory)


def _whole(size: int) -> int:
    """So many bytes, or some more, which are there: blocks end at multiples of 4, and what follows is copied later."""
    return size + -size % ALIGNED


_COPIES: Mapping[str, Callable[..., Array | None]] = {
    "reshape": _reshaped,
    "crop": _cropped,
    "concatenate": _joined,
}
