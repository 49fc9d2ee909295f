"""Attention: its definition, causal masks and the cache."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.layers.attention import Cache, MultiHeadAttention

KEY = tk.random.key(0)


def attention(**options: Any) -> MultiHeadAttention:
    return MultiHeadAttention(6, 2, key=tk.random.key(0), **options)


def sequences(time: int = 5, dtype: Any = tk.float32) -> Tensor:
    return tk.random.normal(tk.random.key(1), (2, time, 6), dtype)


def by_definition(layer: MultiHeadAttention, x: Tensor) -> list[Any]:
    """The definition, separately for each sequence, position and head."""
    size, result = 6 // layer.heads, []
    for sequence in layer.inputs(x):
        rows = []
        for i in range(len(sequence)):
            outputs = []
            for head in range(layer.heads):
                part = slice(head * size, head * size + size)
                q, k, v = sequence[i, :6][part], sequence[:, 6:12][:, part], sequence[:, 12:][:, part]
                visible = range(i + 1) if layer.causal else range(len(sequence))
                weights = tk.exp(tk.stack([(q * k[j]).sum() / math.sqrt(size) for j in visible]))
                outputs.append(sum([weights[j] * v[j] for j in visible]) / weights.sum())
            rows.append(layer.output(tk.concatenate(outputs)))
        result.append(tk.stack(rows).tolist())
    return result


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_attention_agrees_with_its_definition(causal: bool, bias: bool) -> None:
    layer = attention(causal=causal, bias=bias, dtype=tk.float64)
    x = sequences(4, tk.float64)
    assert tk.allclose(layer(x), tk.tensor(by_definition(layer, x), tk.float64), rtol=1e-12, atol=1e-12)
    assert (layer.inputs.bias is None) is (layer.output.bias is None) is not bias


def test_causal_attention_ignores_later_positions(backend: str) -> None:
    x = sequences()
    changed = x.at[:, 3:].set(100.0)
    layer = attention()
    assert tk.allclose(layer(x)[:, :3], layer(changed)[:, :3], rtol=1e-6, atol=1e-6)
    both = attention(causal=False)
    assert not tk.allclose(both(x)[:, :3], both(changed)[:, :3], rtol=1e-1)


def test_derivatives() -> None:
    layer, x = attention(dtype=tk.float64), sequences(3, tk.float64)
    tk.testing.check_grads(lambda layer, x: layer(x), (layer, x), order=1)


@pytest.mark.parametrize("compiled", [False, True])
def test_extending_a_cache_gives_the_same_outputs(backend: str, compiled: bool) -> None:
    """First several positions at once, then one by one; compiled once for all positions."""
    layer, x = attention(), sequences(6)
    traced = []

    def step(layer: MultiHeadAttention, x: Tensor, cache: Cache, position: Any) -> Any:
        traced.append(x.shape)
        return layer.extend(x, cache, position)

    run = tk.jit(step, donate_argnums=2) if compiled else step
    output, cache = run(layer, x[:, :3], layer.cache(2, 8), 0)
    parts = [output]
    for i in range(3, 6):
        output, cache = run(layer, x[:, i : i + 1], cache, i)
        parts.append(output)
    assert tk.allclose(tk.concatenate(parts, 1), layer(x), rtol=1e-5, atol=1e-5)
    assert cache.keys.shape == cache.values.shape == (2, 2, 8, 3)
    assert len(traced) == (2 if compiled else 4)


def test_dropout_needs_a_key() -> None:
    layer, x = attention(dropout=0.5), sequences()
    assert layer(x).tolist() == attention()(x).tolist()
    first, again, other = (layer(x, key=tk.random.key(i)).tolist() for i in (1, 1, 2))
    assert first == again != other != layer(x).tolist()


def test_errors() -> None:
    with pytest.raises(ArgumentError, match="need heads that divide the width 6, got 4"):
        MultiHeadAttention(6, 4, key=KEY)
    layer, x = attention(), sequences()
    with pytest.raises(ShapeError, match=r"got shape \(2, 5, 5\), need \(batch, time, 6\)"):
        layer(x[:, :, :5])
    with pytest.raises(ShapeError, match=r"a cache of shape \(3, 2, 8, 3\) for keys of shape \(2, 2, 5, 3\)"):
        layer.extend(x, layer.cache(3, 8), 0)
    with pytest.raises(ArgumentError, match="a cache needs causal attention"):
        attention(causal=False).extend(x, layer.cache(2, 8), 0)
