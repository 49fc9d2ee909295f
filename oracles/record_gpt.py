"""Record the results of a small GPT in PyTorch: `python -m oracles.record_gpt plugins/nn/tests/recorded/gpt.json`.

The weights have three decimals and are drawn again at each run; the logits, the loss and its gradients are float64.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, CONTEXT, LAYERS, HEADS, WIDTH, BATCH = 5, 4, 2, 2, 4, 2


class Block(nn.Module):
    """A transformer block, with the parameter names of Tensorken."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.attention = nn.ModuleDict(
            {"inputs": nn.Linear(WIDTH, 3 * WIDTH), "output": nn.Linear(WIDTH, WIDTH)}
        )
        self.perceptron_norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention and a perceptron, each after a normalisation."""
        batch, time, width = x.shape
        parts = self.attention["inputs"](self.attention_norm(x)).split(width, 2)
        q, k, v = (part.view(batch, time, HEADS, width // HEADS).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention["output"](mixed.transpose(1, 2).reshape(batch, time, width))
        return x + self.down(functional.gelu(self.up(self.perceptron_norm(x)), approximate="tanh"))


class GPT(nn.Module):
    """A decoder whose output weights are those of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The logits."""
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


def recorded() -> dict[str, object]:
    """The inputs and results of one training step, as lists of numbers."""
    model = GPT().double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.round(torch.randn_like(parameter) * 500) / 1000)
    tokens, labels = torch.randint(VOCABULARY, (2, BATCH, CONTEXT)).unbind()
    logits = model(tokens)
    loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY), labels.reshape(-1))
    loss.backward()
    return {
        "heads": HEADS,
        "tokens": tokens.tolist(),
        "labels": labels.tolist(),
        "parameters": {name: x.tolist() for name, x in model.named_parameters()},
        "logits": logits.tolist(),
        "loss": loss.item(),
        "gradients": {name: x.grad.tolist() for name, x in model.named_parameters() if x.grad is not None},
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(recorded()) + "\n", encoding="utf-8")
