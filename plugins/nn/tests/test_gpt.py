"""GPT: agreement with PyTorch, initial parameters, training and generation."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.gpt import GPT, INITIAL_STD, generate

KEY = tk.random.key(0)
RECORDED = Path(__file__).parent / "recorded" / "gpt.json"
TEXT = Path(__file__).parent / "recorded" / "text.txt"


def small(**options: Any) -> GPT:
    return GPT(7, context=6, layers=2, heads=2, width=8, key=tk.random.key(0), **options)


@pytest.mark.feature(119)
def test_logits_and_gradients_are_those_of_pytorch(backend: str) -> None:
    """With the same weights; recorded by oracles/record_gpt.py."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    weights = {name: tk.tensor(numbers, tk.float64) for name, numbers in recorded["parameters"].items()}
    count, width = weights["tokens.weight"].shape
    context, layers = (
        weights["positions.weight"].shape[0],
        1 + max(int(n.split(".")[1]) for n in weights if "blocks" in n),
    )
    model = GPT(count, context, layers, recorded["heads"], width, key=tk.random.key(0), dtype=tk.float64)
    names = nn.named_parameters(model)
    assert set(names) == set(weights)
    model = tk.tree.unflatten(tk.tree.structure(model), [weights[name] for name in names])
    tokens, labels = tk.tensor(recorded["tokens"]), tk.tensor(recorded["labels"])
    assert tk.allclose(model(tokens), tk.tensor(recorded["logits"], tk.float64), rtol=1e-12, atol=1e-12)
    loss, gradient = tk.value_and_grad(lambda model: nn.cross_entropy(model(tokens), labels))(model)
    assert math.isclose(loss.item(), recorded["loss"], rel_tol=1e-12)
    for name, slope in nn.named_parameters(gradient).items():
        assert tk.allclose(
            slope, tk.tensor(recorded["gradients"][name], tk.float64), rtol=1e-10, atol=1e-12
        ), name


def test_initial_parameters_have_the_scale_of_gpt2() -> None:
    model = GPT(65, 32, layers=8, heads=4, width=64, key=KEY)
    deviations = {name: x.std().item() for name, x in nn.named_parameters(model).items()}
    residual = [n for n in deviations if n.endswith(("output.weight", "down.weight"))]
    assert len(residual) == 2 * 8 and all([abs(deviations[n] / (0.02 / 4) - 1.0) < 0.05 for n in residual])
    others = [n for n in deviations if deviations[n] and n not in residual]
    assert len(others) == 2 + 2 * 8 and all([abs(deviations[n] / 0.02 - 1.0) < 0.06 for n in others])
    tokens, labels = tk.random.randint(KEY, (2, 4, 32), 0, 65)
    assert abs(nn.cross_entropy(model(tokens), labels).item() - math.log(65)) < 0.1
    assert "head.weight" not in deviations
    untied = nn.named_parameters(small(tied=False, bias=False))
    assert untied["head.weight"].shape == (7, 8) and not any(["bias" in name for name in untied])


def test_dropout_needs_a_key() -> None:
    tokens, plain = tk.tensor([[1, 2, 3]]), small()(tk.tensor([[1, 2, 3]])).tolist()
    model = small(dropout=0.3)
    assert model(tokens).tolist() == plain
    first, again, other = (model(tokens, key=tk.random.key(i)).tolist() for i in (1, 1, 2))
    assert first == again != other != plain


@pytest.mark.feature(119)
def test_cached_and_uncached_logits_agree(backend: str) -> None:
    model, tokens = small(), tk.tensor([[1, 2, 3, 4, 5, 6], [6, 0, 4, 3, 2, 1]])
    step = tk.jit(lambda model, token, cache, position: model.extend(token, cache, position))
    cache, parts = model.cache(2), []
    for i in range(6):
        logits, cache = step(model, tokens[:, i : i + 1], cache, i)
        parts.append(logits)
    assert tk.allclose(tk.concatenate(parts, 1), model(tokens), rtol=1e-5, atol=1e-5)


def test_generate_takes_the_likeliest_token_at_temperature_0(backend: str) -> None:
    """Beyond the context, generation continues from the second half of the window."""
    model, rows = small(), [[1, 2], [3, 4]]
    generated = generate(model, tk.tensor(rows), 12, tk.random.key(0), temperature=0.0)
    window = 2
    for _ in range(12):
        likeliest = model(tk.tensor([row[-window:] for row in rows]))[:, -1].argmax(-1).tolist()
        rows = [[*row, token] for row, token in zip(rows, likeliest, strict=True)]
        window = window + 1 if window < 6 else 3
    assert generated.tolist() == rows
    assert generate(model, tk.tensor([[1, 2]]), 0, tk.random.key(0)).tolist() == [[1, 2]]


def test_generate_compiles_once() -> None:
    """For all prompt lengths, positions, keys and temperatures."""
    model, traced = small(), []

    class Counted(GPT):
        def extend(self, *arguments: Any) -> Any:
            traced.append(1)
            return super().extend(*arguments)

    counted = tk.tree.unflatten(
        tk.tree.structure(Counted.__new__(Counted).replace(**vars(model))), tk.tree.leaves(model)
    )
    for prompt, temperature, i in (([[1, 2]], 1.0, 0), ([[1, 2, 3, 4]], 0.5, 1), ([list(range(7))], 2.0, 2)):
        generate(counted, tk.tensor(prompt), 15, tk.random.key(i), temperature)
    assert len(traced) == 2


def test_generate_draws_from_the_models_distribution() -> None:
    """The frequencies of the next token over many equal prompts agree with the model's probabilities."""
    model, prompt = small(), tk.zeros((4000, 1), tk.int32)
    model = model.replace(tokens=model.tokens.replace(weight=model.tokens.weight * 20.0))
    logits = model(tk.tensor([[0]]))[0, 0]
    for temperature, top_k in ((1.0, None), (2.0, None), (1.0, 2)):
        drawn = generate(model, prompt, 1, KEY, temperature, top_k)[:, 1]
        least = tk.sort(logits)[-(top_k or 7)]
        probabilities = tk.softmax(tk.where(logits < least, -math.inf, logits / temperature))
        shares = tk.bincount(drawn, length=7) / 4000
        assert abs(shares - probabilities).max().item() < 0.04
        assert (shares > 0.0).sum().item() <= (top_k or 7)
    draws = [generate(model, prompt[:3], 5, tk.random.key(i)).tolist() for i in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.feature(119)
@pytest.mark.nightly
def test_a_gpt_memorizes_a_thousand_characters() -> None:
    text = TEXT.read_text(encoding="utf-8")
    letters = sorted(set(text))
    codes = tk.tensor([letters.index(letter) for letter in text])
    x, y = codes[:-1].reshape((16, 64)), codes[1:].reshape((16, 64))
    model = GPT(len(letters), 64, layers=2, heads=4, width=64, key=tk.random.key(0))
    optimizer = nn.AdamW(5e-3)
    state = optimizer.init(model)

    @tk.jit
    def step(model: GPT, state: Any) -> Any:
        loss, slope = tk.value_and_grad(lambda model: nn.cross_entropy(model(x), y))(model)
        return (*optimizer.update(model, slope, state), loss)

    loss = tk.tensor(math.inf)
    for _ in range(150):
        model, state, loss = step(model, state)
    assert loss.item() < 0.1


def test_errors() -> None:
    with pytest.raises(ArgumentError, match="need sizes of 1 or more, got vocabulary 7, context 6, layers 0"):
        GPT(7, 6, 0, 2, 8, key=KEY)
    model = small()
    with pytest.raises(
        ShapeError, match=r"got tokens of shape \(1, 7\), need \(batch, time\) with at most 6"
    ):
        model(tk.zeros((1, 7), tk.int32))
    with pytest.raises(ShapeError, match=r"generate: got tokens of shape \(3,\), need \(batch, time\)"):
        generate(model, tk.tensor([1, 2, 3]), 5, KEY)
    with pytest.raises(ArgumentError, match=r"got -1, 1\.0, None"):
        generate(model, tk.tensor([[1]]), -1, KEY)
    assert INITIAL_STD == 0.02


def test_a_cache_must_have_all_layers() -> None:
    model = GPT(5, context=4, layers=2, heads=1, width=4, key=tk.random.key(0))
    with pytest.raises(ArgumentError, match=r"GPT: need a cache of 2 layers, got 0; cache\(batch\) makes"):
        model.extend(tk.tensor([[1, 2]]), (), 0)
