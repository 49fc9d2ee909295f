"""Subgroups: invocations of a workgroup that run together, and exchange numbers without memory.

Devices have subgroups of 4 to 128 invocations, and may choose another size for each kernel.  WGSL does not promise
which invocations a subgroup has.  So kernels use subgroups only on devices whose reductions and scans by subgroups give
the same bits as those in workgroup memory, which is checked when a device is first opened.  With
TENSORKEN_WGPU_SUBGROUPS=off no kernel uses them.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from tensorken.kernels.index_expressions import variable
from tensorken_core.host.variables import switch
from tensorken_core.language.dtypes import DTYPES
from tensorken_wgpu.device.failures import KernelError
from tensorken_wgpu.device.limits import SUBGROUPS
from tensorken_wgpu.kernels.kernel import kernel_template
from tensorken_wgpu.kernels.workgroups import Workgroup
from tensorken_wgpu.wgsl.dtypes import packed
from tensorken_wgpu.wgsl.ops import expressions, maxima, sums
from tensorken_wgpu.wgsl.single_op import Value
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.templates import number, specialised_text
from tensorken_wgpu.wgsl.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorken_wgpu.device.device import Device

VARIABLE = "TENSORKEN_WGPU_SUBGROUPS"

SIZES = (64, 256)
"""The invocations of the workgroups that are checked: those of kernels that combine numbers of a workgroup."""

RESULTS = ("added", "largest", "part", "before")
"""The checked results: a sum, a maximum, combined numbers of `SHARING` neighbours, and a scan."""

SHARING = 32

_HALF = 0x3F000000


def are_off() -> bool:
    """Whether the user has turned subgroups off."""
    return not switch(VARIABLE, default=True)


def are_right(device: Device, target: Target) -> bool:
    """Whether a device has subgroups, and reductions and scans by subgroups give the bits of those in memory.

    Args:
        device: to be checked.
        target: its properties.

    Raises:
        BackendError: if the device is lost.
    """
    if SUBGROUPS not in device.features:
        return False
    try:
        return all(
            [_results(device, target, size, True) == _results(device, target, size, False) for size in SIZES]
        )
    except KernelError:
        return False


def _results(device: Device, target: Target, size: int, has_subgroups: bool) -> bytes:
    """The bytes of `RESULTS` over the invocations of a workgroup of this size."""
    template = check_template(replace(target, has_subgroups=has_subgroups), size)
    text = specialised_text(template)
    length = len(RESULTS) * 4 * size
    x, y = device.upload(packed(_numbers(size), "float32")), device.allocate(length)
    device.run(device.pipeline(text.code, 1, 1), device.uniform(text.uniform), [x, y], (1, 1, 1))
    return bytes(device.read(y, length))


def _numbers(count: int) -> list[float]:
    """Numbers for which each order of additions has its own sum."""
    random = Random(0)
    return [random.uniform(-1, 1) * 10.0 ** random.randint(-3, 3) for _ in range(count)]


def check_template(target: Target, size: int) -> str:
    """The kernel of one workgroup of this size that stores `RESULTS` of its operand.

    The results of parts are first / 2 + second, so that the order matters.
    """
    writer = Writer({}, (), frozenset(), None, target)
    workgroup = Workgroup(writer, size, target)
    x: Any = Value((size,), DTYPES["float32"])
    y: Any = Value((len(RESULTS) * size,), DTYPES["float32"])
    element = writer.bind(writer.load(x, variable("l", size)), x.dtype)
    added, largest = sums("float32"), maxima("float32")
    for name in ("added", "largest", "part", "scanned_sum"):
        writer.line(f"var {name} = {element};")

    def combine(pairs: Mapping[str, tuple[str, str]]) -> None:
        for accumulator, name in ((added, "added"), (largest, "largest")):
            first, second = pairs[name]
            writer.line(f"{first} = {accumulator.combine(first, second)};")

    def mixed(pairs: Mapping[str, tuple[str, str]]) -> None:
        first, second = pairs["part"]
        multiplied = expressions("float32")["mul"]
        writer.line(f"{first} = {added.combine(multiplied(first, number('f32', _HALF)), second)};")

    for _ in range(2):  # the second reduction is of equal numbers, in other memory
        workgroup.reduce([("f32", "added"), ("f32", "largest")], combine)
    workgroup.reduce([("f32", "part")], mixed, sharing=SHARING, is_commutative=False)
    workgroup.scan(added, "scanned_sum", "before")
    for i, name in enumerate(RESULTS):
        writer.store(y, [(variable("l", size).plus(i * size), name)])
    return kernel_template(writer, size, workgroup.declarations)
