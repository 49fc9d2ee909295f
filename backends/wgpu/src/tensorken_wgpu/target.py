"""Target: what planning needs to know of a device."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A device, as far as kernels depend on it.

    Attributes:
        bindings: how many values one kernel may read and write.
        binding_size: how many bytes of a value it may see at once.
        in_software: whether a CPU plays the GPU.
    """

    bindings: int
    binding_size: int
    in_software: bool
