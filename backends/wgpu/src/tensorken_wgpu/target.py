"""Target: what planning needs to know of a device."""

from __future__ import annotations

from dataclasses import dataclass

from tensorken_wgpu.vectors import EIGHT, FOUR

WHOLE = 256
"""A window begins at a multiple of so many bytes: no device asks for more."""


@dataclass(frozen=True, slots=True)
class Target:
    """A device, as far as kernels depend on it.

    Attributes:
        bindings: how many values one kernel may read and write.
        binding_size: how many bytes of a value it may see at once.
        in_software: whether a CPU plays the GPU.
        in_pairs: whether it reads and writes numbers of 64 bits in less time than twice as many of 32.
    """

    bindings: int
    binding_size: int
    in_software: bool
    in_pairs: bool = False

    @property
    def enough(self) -> int:
        """How many invocations keep it busy."""
        return 2**13 if self.in_software else 2**16

    @property
    def at_once(self) -> tuple[int, ...]:
        """How many neighbouring elements an invocation computes at once, where there are many: what is best first."""
        return (EIGHT, FOUR) if self.in_pairs else (FOUR,)

    def windows(self, size: int) -> list[tuple[int, int]]:
        """How a value of so many bytes is bound: for each binding where it begins, and how many bytes it has.

        >>> Target(8, 1000, False).windows(1800)
        [(0, 768), (768, 768), (1536, 264)]
        """
        step = self.binding_size if size <= self.binding_size else self.binding_size // WHOLE * WHOLE
        return [(start, min(step, size - start)) for start in range(0, size, step)]
