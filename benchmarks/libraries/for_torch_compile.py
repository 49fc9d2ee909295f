"""PyTorch under torch.compile: seconds for each task, by a C++ compiler, and so only where it is asked for."""

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
