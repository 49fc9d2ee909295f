"""Small language models of characters, trained with the same layers, losses and optimisers."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import islice, pairwise
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn

pytestmark = pytest.mark.slow

TEXT = (
    "every op is declared once. a backend says what it means in numbers, a printer in words, a tape in derivatives; "
    "since all of them speak one language, they stack in any order. "
)
LETTERS = sorted(set(TEXT))


def one_hot(indices: list[int]) -> tk.Tensor:
    return tk.take(tk.eye(len(LETTERS)), tk.tensor(indices), axis=0)


@pytest.mark.feature(119)
def test_a_bigram_network_learns_the_counts(backend: str) -> None:
    """A linear layer from a letter to the next can at best reach the conditional entropy of the counted pairs."""
    codes = [LETTERS.index(letter) for letter in TEXT[:80]]
    pairs, firsts = Counter(pairwise(codes)), Counter(codes[:-1])
    limit = -sum(n * math.log(n / firsts[a]) for (a, _), n in pairs.items()) / len(codes[1:])
    model = nn.Linear(len(LETTERS), len(LETTERS), bias=False, key=tk.random.key(0))
    inputs, labels = one_hot(codes[:-1]), tk.tensor(codes[1:])
    gradient = tk.value_and_grad(lambda model: nn.cross_entropy(model(inputs), labels))
    optimizer = nn.Adam(0.3)
    state = optimizer.init(model)
    value = None
    for _ in range(100):
        value, slope = gradient(model)
        model, state = optimizer.update(model, slope, state)
    assert value is not None
    assert limit < value.item() < limit + 0.02


@pytest.mark.feature(119)
def test_a_perceptron_memorizes_a_text() -> None:
    """A perceptron from the embeddings of eight letters to the next letter."""
    context, width = 8, 10
    codes = [LETTERS.index(letter) for letter in TEXT]
    passages = [codes[i : i + context] for i in range(len(codes) - context)]
    assert len(set(map(tuple, passages))) == len(passages)  # so the next letter is unique
    windows = tk.tensor(passages)
    labels = tk.tensor(codes[context:])
    rng = random.Random(0)
    parameters: Any = {
        "table": tk.randn((len(LETTERS), width), rng),
        "network": nn.mlp((context * width, 64, len(LETTERS)), tk.tanh, key=tk.random.key(0)),
    }

    def logits(parameters: Any, windows: tk.Tensor) -> tk.Tensor:
        rows = tk.take(parameters["table"], windows, axis=0)
        return parameters["network"](rows.reshape((windows.shape[0], context * width)))

    gradient = tk.value_and_grad(lambda p, x, y: nn.cross_entropy(logits(p, x), y))
    optimizer = nn.Adam(1e-2)
    state = optimizer.init(parameters)
    loader = nn.DataLoader((windows, labels), 32, key=tk.random.key(1))
    for x, y in islice(loader.from_step(0), 30 * len(loader)):
        _, slope = gradient(parameters, x, y)
        parameters, state = optimizer.update(parameters, slope, state)
    assert nn.cross_entropy(logits(parameters, windows), labels).item() < 0.1
    text = codes[:context]
    while len(text) < len(codes):
        text.append(logits(parameters, tk.tensor([text[-context:]])).argmax(-1)[0].item())
    assert "".join([LETTERS[code] for code in text]) == TEXT
