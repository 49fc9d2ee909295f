"""Eager training of a GPT of PyTorch modules, as in nanoGPT; the weights have Tensorken's names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from call import STEPS
from torch import nn
from torch.nn import functional

torch.set_num_threads(1)


class Norm(nn.Module):
    """A layer norm without a bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        """Map (..., width) to the same."""
        return functional.layer_norm(x, self.weight.shape, self.weight, None, 1e-5)


class Attention(nn.Module):
    """Causal attention, by PyTorch's own function or by an explicit softmax."""

    def __init__(self, width: int, heads: int, context: int, explicit: bool) -> None:
        super().__init__()
        self.inputs = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.heads, self.explicit = heads, explicit
        self.register_buffer("hidden", torch.ones(context, context).triu(1).bool(), persistent=False)

    def forward(self, x: Any) -> Any:
        """Map (batch, time, width) to the same."""
        batch, time, width = x.shape
        parts = self.inputs(x).split(width, 2)
        q, k, v = (part.view(batch, time, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        if self.explicit:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(q.shape[-1]))
            mixed = functional.softmax(scores.masked_fill(self.hidden, -math.inf), -1) @ v
        else:
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(mixed.transpose(1, 2).contiguous().view(batch, time, width))


class Block(nn.Module):
    """Attention and a perceptron, each on normalised input."""

    def __init__(self, width: int, heads: int, context: int, explicit: bool) -> None:
        super().__init__()
        self.attention_norm, self.perceptron_norm = Norm(width), Norm(width)
        self.attention = Attention(width, heads, context, explicit)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Any) -> Any:
        """Map (batch, time, width) to the same."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.down(functional.gelu(self.up(self.perceptron_norm(x)), approximate="tanh"))


class GPT(nn.Module):
    """The decoder, with output weights tied to the embedding."""

    def __init__(
        self, vocabulary: int, context: int, layers: int, heads: int, width: int, explicit: bool
    ) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, context, explicit) for _ in range(layers))
        self.norm = Norm(width)

    def forward(self, tokens: Any) -> Any:
        """The logits."""
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


class Training:
    """Training by PyTorch; each call is a step."""

    def __init__(
        self,
        weights: Mapping[str, Any],
        heads: int,
        tokens: Any,
        labels: Any,
        rate: float,
        betas: tuple[float, float],
        decay: float,
        explicit: bool,
    ) -> None:
        vocabulary, width = weights["tokens.weight"].shape
        layers = sum([name.endswith("up.weight") for name in weights])
        self.model = GPT(vocabulary, len(weights["positions.weight"]), layers, heads, width, explicit)
        self.model.load_state_dict({name: torch.tensor(x) for name, x in weights.items()})
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate, betas=betas, weight_decay=decay)
        self.tokens, self.labels = torch.tensor(tokens).long(), torch.tensor(labels).long().reshape(-1)

    def __call__(self) -> Any:
        logits = self.model(self.tokens)
        loss = functional.cross_entropy(logits.view(-1, logits.shape[-1]), self.labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss

    def numbers(self) -> list[Any]:
        """The losses of the first steps."""
        return [np.array([self().item() for _ in range(STEPS)])]
