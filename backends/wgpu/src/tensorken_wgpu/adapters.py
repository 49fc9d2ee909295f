"""Adapters: the GPUs that WebGPU finds, the best first."""

from __future__ import annotations

import functools
from typing import Any

import wgpu

from tensorken.errors import BackendError

_ORDER = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "Unknown", "CPU")
_WITHOUT_COMPUTE = ("OpenGL", "OpenGLES")


@functools.cache
def adapters() -> tuple[Any, ...]:
    """All adapters on Vulkan, Metal or Direct3D 12: discrete ones first, those in software last."""
    found = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] not in _WITHOUT_COMPUTE]
    return tuple(sorted(found, key=lambda a: _ORDER.index(a.info["adapter_type"])))


def adapter_of(device: str | None) -> Any:
    """The adapter of a device's name, which is its number; the first one for None.

    Raises:
        BackendError: if there is none, or none of that number.
    """
    found = adapters()
    if not found:
        raise BackendError(
            "wgpu: there is no adapter for Vulkan, Metal or Direct3D 12; install the GPU's driver, or one in software "
            "(on Debian and Ubuntu: apt-get install mesa-vulkan-drivers)"
        )
    number = int(device or 0)
    if number >= len(found):
        raise BackendError(
            f"wgpu: there is no device {number}, only {len(found)}: {', '.join(map(name_of, found))}"
        )
    return found[number]


def name_of(adapter: Any) -> str:
    """What people call it: the device, its driver, and by what it is reached."""
    info = adapter.info
    return f"{info['device']} ({info['description']}, {info['backend_type']})"
