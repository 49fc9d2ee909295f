"""Devices: the names of JAX's devices, such as `cpu` and `gpu:1`; the first is JAX's default."""

from __future__ import annotations

from typing import Any

import jax

_PLATFORMS = {"cuda": "gpu", "rocm": "gpu"}


def devices() -> dict[str, Any]:
    """The devices of this process by their names."""
    found = {}
    for platform in (None, "cpu"):  # JAX lists those of the default platform; there is always a CPU
        for device in jax.devices(platform):
            name = _PLATFORMS.get(device.platform, device.platform)
            found[f"{name}:{device.id}" if device.id else name] = device
    return found
