"""The suite of modules: training a network of `tensorken_nn` against the same network of PyTorch modules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from call import STEPS
from harness import Row, compare
from tasks.case import random_integers
from tasks.networks import SMALL

import tensorken as tk
import tensorken_nn as nn

RATE, BETAS, DECAY = 1e-3, (0.9, 0.99), 0.1


def training(peers: Sequence[str], select: str) -> Iterator[Row]:
    """A step of AdamW on a GPT with nanoGPT's small settings: forward, backward and update, compiled by Tensorken."""
    name = "gpt_training_step"
    if select not in name:
        return
    model = nn.GPT(
        SMALL.vocabulary,
        SMALL.context,
        SMALL.layers,
        SMALL.heads,
        SMALL.width,
        bias=False,
        key=tk.random.key(0),
    )
    tokens, labels = random_integers(SMALL.vocabulary, 2, SMALL.batch, SMALL.context, seed=7)
    weights = {name: np.array(x) for name, x in nn.named_parameters(model).items()}
    try:
        import torch_gpt
    except ImportError:
        print("torch is not installed")
        theirs: dict[str, Any] = dict.fromkeys(peers)
    else:
        theirs = {
            peer: torch_gpt.Training(
                weights, SMALL.heads, tokens, labels, RATE, BETAS, DECAY, peer == "softmax"
            )
            for peer in peers
        }
    yield compare(name, Training(model, tokens, labels), theirs, 1e-3)


class Training:
    """Training by Tensorken; each call is a step."""

    def __init__(self, model: nn.GPT, tokens: Any, labels: Any) -> None:
        optimizer = nn.AdamW(RATE, *BETAS, weight_decay=DECAY)

        def step(model: nn.GPT, state: Any, tokens: tk.Tensor, labels: tk.Tensor) -> Any:
            def loss(model: nn.GPT) -> tk.Tensor:
                return nn.cross_entropy(model(tokens), labels)

            value, gradient = tk.value_and_grad(loss)(model)
            return (*optimizer.update(model, gradient, state), value)

        self.step = tk.jit(step, donate_argnums=(0, 1))
        self.data = tk.tensor(tokens), tk.tensor(labels)
        self.model, self.state = model, optimizer.init(model)

    def __call__(self) -> Any:
        self.model, self.state, value = self.step(self.model, self.state, *self.data)
        return value.realize()

    def numbers(self) -> list[Any]:
        """The losses of the first steps."""
        return [np.array([self().item() for _ in range(STEPS)])]
