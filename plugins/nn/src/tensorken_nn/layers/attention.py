"""Attention as a function, and multi-head self-attention with a cache for generation."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.initializers import Initializer, lecun_normal
from tensorken_nn.layers.dropout import Dropout
from tensorken_nn.layers.linear import Linear
from tensorken_nn.module import Module, static


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    dropout_key: Tensor | None = None,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value: the mean of the values that each query attends to.

    Source: Vaswani et al., Attention Is All You Need (2017), section 3.2.1.

    Args:
        query: of shape (..., queries, size).
        key: of shape (..., keys, size).
        value: of shape (..., keys, width).
        attn_mask: of a shape that broadcasts to (..., queries, keys): bools, True where a query attends to a key; or
            floats, which are added to the scores.
        dropout_p: the dropout rate of the weights, used with a `dropout_key`.
        is_causal: whether query i attends only to keys 0, ..., i.
        scale: of the scores; by default 1 / sqrt(size).
        enable_gqa: whether several heads of queries, along axis -3, share a head of keys and values.
        dropout_key: the random key for dropout; None for none, as after training.

    Returns:
        A tensor of shape (..., queries, width). It is 0 for a query that attends to no key.

    Raises:
        ShapeError: if the shapes do not fit together.
        ArgumentError: if the dropout rate is not in [0, 1].

    >>> q = k = tk.zeros((1, 2, 4))
    >>> scaled_dot_product_attention(q, k, tk.tensor([[[1.0], [3.0]]]), is_causal=True).tolist()
    [[[1.0], [2.0]]]
    """
    if min(query.ndim, key.ndim, value.ndim) < 2 or (query.shape[-1], key.shape[-2]) != (
        key.shape[-1],
        value.shape[-2],
    ):
        raise ShapeError(
            f"scaled_dot_product_attention: got shapes {query.shape}, {key.shape} and {value.shape}, need "
            f"(..., queries, size), (..., keys, size) and (..., keys, width); transpose or reshape them"
        )
    if enable_gqa:
        key, value = (_shared(query, heads) for heads in (key, value))
    mask, unseen = attn_mask, None
    if is_causal:
        visible = _positions(query, key.shape[-2]) <= _positions(query, query.shape[-2]).reshape((-1, 1))
        if mask is None:
            mask = visible
        else:
            mask = mask & visible if mask.dtype.kind == "bool" else visible.where(mask, -math.inf)
    if attn_mask is not None and mask is not None:  # its rows without any key would give NaN
        if mask.dtype.kind == "bool":
            unseen = ~mask.any(-1, keepdims=True)
            mask = mask | unseen
        else:
            unseen = (mask == -math.inf).all(-1, keepdims=True)
            mask = unseen.where(0.0, mask).astype(query.dtype)
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    y = _attention(query * factor, key, value, mask, Dropout(dropout_p), dropout_key)
    return y if unseen is None else unseen.where(0.0, y)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: Dropout,
    dropout_key: Tensor | None,
) -> Tensor:
    """Attention of scaled queries; a mask of bools allows, a mask of floats is added."""
    scores = query @ key.swapaxes(-1, -2)
    if mask is not None:
        scores = tk.where(mask, scores, -math.inf) if mask.dtype.kind == "bool" else scores + mask
    return dropout(tk.softmax(scores), key=dropout_key) @ value


def _shared(query: Tensor, heads: Tensor) -> Tensor:
    """Keys or values with each head repeated for the queries' heads that share it."""
    if min(query.ndim, heads.ndim) < 3 or query.shape[-3] % heads.shape[-3]:
        raise ShapeError(
            f"scaled_dot_product_attention: enable_gqa needs heads of queries that are a multiple of those of keys and "
            f"values, got shapes {query.shape} and {heads.shape}; change the heads"
        )
    return tk.repeat(heads, query.shape[-3] // heads.shape[-3], -3)


class Cache(NamedTuple):
    """The keys and values of earlier positions, each of shape (batch, heads, length, width / heads)."""

    keys: Tensor
    values: Tensor


class MultiHeadAttention(Module):
    """Multi-head self-attention: softmax(q @ k.T / sqrt(size)) @ v in each head; maps (batch, time, width) to the same.

    One linear layer computes queries q, keys k and values v, which are split into heads of size width / heads. Another
    linear layer combines the outputs of the heads.

    Source: Vaswani et al., Attention Is All You Need (2017), section 3.2.

    Args:
        width: the size of the last axis.
        heads: the number of heads, a divisor of the width.
        causal: whether a position attends only to itself and earlier positions.
        bias: whether the linear layers have biases.
        dropout: the dropout rate of the attention weights while training.
        key: for the initial parameters, which are on the key's backend.
        weight_initializer, output_initializer: of the weights of the first and of the last layer.
        dtype: of the parameters, a float.

    Raises:
        ArgumentError: if the heads do not divide the width, or the dropout rate is not in [0, 1].

    >>> attention = MultiHeadAttention(8, 2, key=tk.random.key(0))
    >>> attention(tk.ones((1, 5, 8))).shape
    (1, 5, 8)
    """

    inputs: Linear  # computes queries, keys and values, concatenated
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

    def __call__(self, x: Tensor, *, key: Tensor | None = None) -> Tensor:
        """The output for each position.

        Args:
            x: shape (batch, time, width).
            key: for dropout; None for none, as after training.

        Raises:
            ShapeError: if x has another shape.
        """
        q, k, v = self._projections(x)
        positions = _positions(x, x.shape[1])
        visible = positions <= positions.reshape((-1, 1)) if self.causal else None
        return self._attend(q, k, v, visible, key)

    def extend(self, x: Tensor, cache: Cache, position: Any) -> tuple[Tensor, Cache]:
        """The output for new positions, which also attend to the positions in the cache, and the extended cache.

        Args:
            x: shape (batch, time, width).
            cache: of earlier positions, from `cache` or an earlier call.
            position: of the first new position; an int or a scalar tensor. All new positions must fit into the cache,
                which is not checked.

        Raises:
            ShapeError: if x has another shape, or the cache has another batch size.
            ArgumentError: if the attention is not causal: cached positions cannot attend to later ones.
        """
        q, k, v = self._projections(x)
        cache = self._updated(cache, k, v, position)
        new = (_positions(x, x.shape[1]) + position).reshape((-1, 1))
        visible = _positions(x, cache.keys.shape[2]) <= new
        return self._attend(q, cache.keys, cache.values, visible, None), cache

    def cache(self, batch: int, length: int) -> Cache:
        """An empty cache for a batch of this size, with `length` positions.

        >>> attention = MultiHeadAttention(8, 2, key=tk.random.key(0))
        >>> x = tk.random.normal(tk.random.key(1), (1, 5, 8))
        >>> y, cache = attention.extend(x[:, :4], attention.cache(1, 5), position=0)
        >>> last, cache = attention.extend(x[:, 4:], cache, position=4)
        >>> tk.allclose(last, attention(x)[:, 4:], atol=1e-6).item()
        True
        """
        width = self.output.weight.shape[1]
        zeros = tk.zeros_like(self.output.weight, shape=(batch, self.heads, length, width // self.heads))
        return Cache(zeros, zeros)

    def _projections(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The scaled queries, the keys and the values, each of shape (batch, heads, time, size)."""
        width = self.output.weight.shape[1]
        if x.ndim != 3 or x.shape[-1] != width:
            raise ShapeError(
                f"MultiHeadAttention: got shape {x.shape}, need (batch, time, {width}); reshape it"
            )
        batch, time, _ = x.shape
        size = width // self.heads
        parts = self.inputs(x).reshape((batch, time, 3, self.heads, size)).permute((2, 0, 3, 1, 4))
        return parts[0] * (1.0 / math.sqrt(size)), parts[1], parts[2]

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None, key: Tensor | None) -> Tensor:
        """The output for queries; `visible` is a mask of the keys that each query may attend to, None for all."""
        batch, heads, time, size = q.shape
        mixed = _attention(q, k, v, visible, self.dropout, key)
        return self.output(mixed.swapaxes(1, 2).reshape((batch, time, heads * size)))

    def _updated(self, cache: Cache, k: Tensor, v: Tensor, position: Any) -> Cache:
        """The cache with the keys and values of new positions."""
        if not self.causal:
            raise ArgumentError(
                "MultiHeadAttention: a cache needs causal attention, as cached positions cannot attend to later ones; "
                "pass the whole sequence"
            )
        batch, heads, time, size = k.shape
        length = cache.keys.shape[2]
        if cache.keys.shape != (batch, heads, length, size) or time > length:
            raise ShapeError(
                f"MultiHeadAttention: a cache of shape {cache.keys.shape} for keys of shape {k.shape}; "
                f"make it with cache(batch, length)"
            )
        positions = _positions(k, time) + position
        return Cache(cache.keys.at[:, :, positions].set(k), cache.values.at[:, :, positions].set(v))


def _positions(like: Tensor, count: int) -> Tensor:
    """Positions 0, 1, ... on the backend of a tensor."""
    return tk.zeros_like(like, tk.int32, shape=(count,)) + range(count)
