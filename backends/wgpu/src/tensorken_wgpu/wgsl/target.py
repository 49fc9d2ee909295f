"""Target: the properties of a device that planning depends on."""

from __future__ import annotations

from dataclasses import dataclass

from tensorken_core.host.variables import choice
from tensorken_wgpu.wgsl.vectors import EIGHT, FOUR

WINDOW_ALIGNMENT = 256
"""Bytes to which windows are aligned: no device requires more."""

VARIABLE = "TENSORKEN_WGPU_KERNELS"

_KERNELS = {"gpu": False, "software": True}


def has_software_kernels(is_software: bool) -> bool:
    """Whether a device gets the kernels for software adapters.

    Args:
        is_software: whether it is one; `TENSORKEN_WGPU_KERNELS`, gpu or software, overrules it, to test the kernels
            for GPUs without one.

    Raises:
        SettingError: if the variable has another value.
    """
    return _KERNELS.get(choice(VARIABLE, *_KERNELS), is_software)


@dataclass(frozen=True, slots=True)
class Target:
    """The properties of a device that kernels depend on.

    Attributes:
        bindings: how many values one kernel may read and write.
        binding_size: bytes of the largest binding.
        is_software: whether a CPU emulates the GPU.
        fast_64_bit: whether access to 64-bit numbers is faster than to twice as many 32-bit numbers.
        workgroup_memory: bytes that the invocations of a workgroup may share; WebGPU guarantees 16 KiB.
        has_subgroups: whether invocations of a subgroup exchange numbers directly, see `subgroups`.
    """

    bindings: int
    binding_size: int
    is_software: bool
    fast_64_bit: bool = False
    workgroup_memory: int = 2**14
    has_subgroups: bool = False

    @property
    def busy_invocations(self) -> int:
        """The number of invocations that keep the device busy."""
        return 2**13 if self.is_software else 2**16

    @property
    def vector_sizes(self) -> tuple[int, ...]:
        """The vector widths for large arrays, the best first."""
        return (EIGHT, FOUR) if self.fast_64_bit else (FOUR,)

    def windows(self, size: int) -> list[tuple[int, int]]:
        """How a value of this size is bound: the offset and size in bytes of each binding.

        >>> Target(8, 1000, False).windows(1800)
        [(0, 768), (768, 768), (1536, 264)]
        """
        step = (
            self.binding_size
            if size <= self.binding_size
            else self.binding_size // WINDOW_ALIGNMENT * WINDOW_ALIGNMENT
        )
        return [(start, min(step, size - start)) for start in range(0, size, step)]
