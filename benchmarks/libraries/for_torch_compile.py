"""PyTorch with torch.compile; run only on request, as its C++ compiler takes seconds for each task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from libraries.for_torch import Torch


class TorchCompile(Torch):
    """PyTorch, compiled."""

    def jit(self, f: Callable[..., Any], donates: Sequence[int] = ()) -> Callable[..., Any]:
        return torch.compile(f)


adapter = TorchCompile
