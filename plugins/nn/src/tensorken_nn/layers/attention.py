"""Attention: each place of a sequence looks at others, and takes from them what it looks for."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, overload

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.initializers import Initializer, lecun_normal
from tensorken_nn.layers.dropout import Dropout
from tensorken_nn.layers.linear import Linear
from tensorken_nn.module import Module, static


class Cache(NamedTuple):
    """What places have shown so far to those that come after them, each (batch, heads, length, width / heads)."""

    keys: Tensor
    values: Tensor


class MultiHeadAttention(Module):
    """Self-attention: softmax(q @ k.T / sqrt(size)) @ v in several heads, from and to shape (batch, time, width).

    Queries q, keys k and values v are one linear layer of the input, cut into three, and each of these into heads of
    size width / heads; another linear layer mixes what the heads have found.

    Source: Vaswani et al., Attention Is All You Need (2017), section 3.2.

    Args:
        width: the size of the last axis.
        heads: how many, a divisor of the width.
        causal: whether a place sees only itself and those before it.
        bias: whether the linear layers have one.
        dropout: with which probability a place looks away from another, while training.
        key: for the parameters to begin with; they live on its backend.
        weight_initializer, output_initializer: how the weights begin of the first and of the last layer.
        dtype: of the parameters, a float.

    Raises:
        ArgumentError: if the heads do not divide the width, or the dropout is no probability.

    >>> attention = MultiHeadAttention(8, 2, key=tk.random.key(0))
    >>> attention(tk.ones((1, 5, 8))).shape
    (1, 5, 8)
    """

    inputs: Linear  # to queries, keys and values, one after the other
    output: Linear
    heads: int = static()
    causal: bool = static()
    dropout: Dropout

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        causal: bool = True,
        bias: bool = True,
        dropout: float = 0.0,
        key: Tensor,
        weight_initializer: Initializer = lecun_normal,
        output_initializer: Initializer | None = None,
        dtype: Any = tk.float32,
    ) -> None:
        if heads < 1 or width % heads:
            raise ArgumentError(f"MultiHeadAttention: need heads that divide the width {width}, got {heads}")
        first, last = tk.random.split(key)
        self.inputs = Linear(
            width, 3 * width, bias, key=first, weight_initializer=weight_initializer, dtype=dtype
        )
        self.output = Linear(
            width,
            width,
            bias,
            key=last,
            weight_initializer=output_initializer or weight_initializer,
            dtype=dtype,
        )
        self.heads = heads
        self.causal = causal
        self.dropout = Dropout(dropout)

    @overload
    def __call__(self, x: Tensor, *, key: Tensor | None = None) -> Tensor: ...

    @overload
    def __call__(
        self, x: Tensor, *, cache: Cache, position: Any, key: Tensor | None = None
    ) -> tuple[Tensor, Cache]: ...

    def __call__(
        self, x: Tensor, *, cache: Cache | None = None, position: Any = None, key: Tensor | None = None
    ) -> Any:
        """What each place has found; with a cache also the cache with these places in it.

        Args:
            x: shape (batch, time, width).
            cache: of the places before these, which are seen too.
            position: with a cache: that of the first place, an int or a tensor of one; they must fit into the cache,
                which is not checked.
            key: for dropout, while training; without one nothing is dropped.

        Raises:
            ShapeError: if x has another shape, or the cache that of another batch.
            ArgumentError: if there is a cache without a position or a position without a cache, or the attention is
                not causal, as places in a cache cannot see what comes after them.
        """
        width = self.output.weight.shape[1]
        if x.ndim != 3 or x.shape[-1] != width:
            raise ShapeError(
                f"MultiHeadAttention: got shape {x.shape}, need (batch, time, {width}); reshape it"
            )
        if (cache is None) != (position is None):
            raise ArgumentError("MultiHeadAttention: need a cache and a position, or neither")
        batch, time, _ = x.shape
        size = width // self.heads
        parts = self.inputs(x).reshape((batch, time, 3, self.heads, size)).permute((2, 0, 3, 1, 4))
        q, k, v = parts[0] * (1.0 / math.sqrt(size)), parts[1], parts[2]
        visible = None
        if cache is not None:
            cache = self._extended(cache, k, v, position)
            k, v = cache
            visible = _places(x, k.shape[2]) <= (_places(x, time) + position).reshape((time, 1))
        elif self.causal:
            visible = _places(x, time) <= _places(x, time).reshape((time, 1))
        scores = q @ k.swapaxes(-1, -2)
        if visible is not None:
            scores = tk.where(visible, scores, -math.inf)
        weights = self.dropout(tk.softmax(scores), key=key)
        y = self.output((weights @ v).swapaxes(1, 2).reshape((batch, time, width)))
        return y if cache is None else (y, cache)

    def cache(self, batch: int, length: int) -> Cache:
        """An empty cache for so many places of each of so many sequences.

        >>> attention = MultiHeadAttention(8, 2, key=tk.random.key(0))
        >>> x = tk.random.normal(tk.random.key(1), (1, 5, 8))
        >>> y, cache = attention(x[:, :4], cache=attention.cache(1, 5), position=0)
        >>> last, cache = attention(x[:, 4:], cache=cache, position=4)
        >>> tk.allclose(last, attention(x)[:, 4:], atol=1e-6).item()
        True
        """
        width = self.output.weight.shape[1]
        zeros = tk.zeros_like(self.output.weight, shape=(batch, self.heads, length, width // self.heads))
        return Cache(zeros, zeros)

    def _extended(self, cache: Cache, k: Tensor, v: Tensor, position: Any) -> Cache:
        """The cache with the keys and values of further places."""
        if not self.causal:
            raise ArgumentError(
                "MultiHeadAttention: what is not causal has no use for a cache, as places see what comes after them; "
                "give it the whole sequence"
            )
        batch, heads, time, size = k.shape
        length = cache.keys.shape[2]
        if cache.keys.shape != (batch, heads, length, size) or time > length:
            raise ShapeError(
                f"MultiHeadAttention: a cache of shape {cache.keys.shape} for keys of shape {k.shape}; "
                f"make it with cache(batch, length)"
            )
        places = _places(k, time) + position
        return Cache(cache.keys.at[:, :, places].set(k), cache.values.at[:, :, places].set(v))


def _places(beside: Tensor, count: int) -> Tensor:
    """0, 1, ... on the backend of a tensor."""
    return tk.zeros_like(beside, tk.int32, shape=(count,)) + range(count)
