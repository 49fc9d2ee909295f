"""Devices: torch's names of the devices of this process, such as `cpu` and `cuda:1`."""

from __future__ import annotations

import torch

from tensorken_core.errors import BackendError


def names() -> list[str]:
    """The names of the devices; the first is the default."""
    found = ["cpu"]
    if torch.cuda.is_available():
        found += [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return found


def device_of(name: str | None) -> torch.device:
    """The device of a name; the CPU if None, and the first of its kind if the name has no number.

    Raises:
        BackendError: if there is no such device.
    """
    found = names()
    for candidate in (name, f"{name}:0"):
        if candidate in found:
            return torch.device(candidate)
    if name is None:
        return torch.device(found[0])
    raise BackendError(f"torch has no device {name!r} here, only {', '.join(found)}; choose one of these")
