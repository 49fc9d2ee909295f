"""Devices: the names of JAX's devices, such as `cpu` and `gpu:1`; the first is JAX's default."""

from __future__ import annotations

from typing import Any

import jax

from tensorken_core.errors import BackendError

_PLATFORMS = {"cuda": "gpu", "rocm": "gpu"}


def devices() -> dict[str, Any]:
    """The devices of this process by their names."""
    found = {}
    for platform in (None, "cpu"):  # JAX lists those of the default platform; there is always a CPU
        for device in jax.devices(platform):
            name = _PLATFORMS.get(device.platform, device.platform)
            found[f"{name}:{device.id}" if device.id else name] = device
    return found


def device_named(name: str | None) -> Any:
    """The device of this name; None for JAX's default, whose arrays JAX moves to wherever a program's others are.

    Raises:
        BackendError: if there is no such device.
    """
    found = devices()
    if name is None or name == next(iter(found)):
        return None
    if name not in found:
        raise BackendError(f"JAX has no device {name!r}; its devices are {', '.join(found)}")
    return found[name]
