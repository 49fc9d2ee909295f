"""The backend's entry point for the plugin host.  Only its functions import torch."""

from __future__ import annotations

from typing import Any

from tensorken_core.host.plugin import BackendEntry, hookimpl


@hookimpl
def tensorken_backend() -> BackendEntry:
    """The PyTorch backend."""

    def load(device: str | None = None) -> Any:
        from tensorken_core.rewriting.fuse import Fuse
        from tensorken_torch.backend import Torch

        return Fuse(Torch(device))

    def names() -> list[str]:
        from tensorken_torch.devices import names

        return names()

    return BackendEntry(
        "torch",
        load,
        summary="PyTorch: CPU, NVIDIA and AMD GPUs, Apple's GPUs",
        spec=">=1.0,<2",
        devices=names,
    )
