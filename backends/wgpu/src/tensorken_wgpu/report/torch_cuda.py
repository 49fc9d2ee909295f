"""torch with CUDA, where it is installed: the same work on the same GPU, for comparison."""

from __future__ import annotations

from typing import Any


def cuda() -> Any:
    """The module torch, which then creates float32 tensors on the GPU; None without torch or CUDA."""
    try:
        import torch
    except Exception:  # noqa: BLE001 - also if the installation is broken
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return torch


def facts(torch: Any) -> dict[str, str]:
    """The version of torch and its GPU."""
    if torch is None:
        return {"torch": "not installed, or without CUDA"}
    return {"torch": str(torch.__version__), "GPU of torch": str(torch.cuda.get_device_name())}
