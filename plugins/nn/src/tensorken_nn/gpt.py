"""GPT: a transformer that predicts what comes next in a sequence of tokens, and continues one."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, overload

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.activations import gelu
from tensorken_nn.initializers import normal
from tensorken_nn.layers.attention import Cache, MultiHeadAttention
from tensorken_nn.layers.dropout import Dropout
from tensorken_nn.layers.embedding import Embedding
from tensorken_nn.layers.linear import Linear
from tensorken_nn.layers.normalization import LayerNorm
from tensorken_nn.module import Module
from tensorken_nn.sampling import draw

DEVIATION = 0.02
"""The standard deviation that weights begin with, as in GPT-2."""


class Block(Module):
    """A layer of a GPT: attention, then a perceptron, each of what is normalised, and added to what comes in.

    Args:
        width: of what passes; the perceptron is four times as wide within.
        heads: of the attention.
        bias: whether the linear layers and the norms have one.
        dropout: with which probability a number that is to be added, or what a place sees of another, is dropped.
        deviation: the standard deviation that those weights begin with whose outputs are added.
        key: for the parameters to begin with.
        dtype: of the parameters, a float.
    """

    attention_norm: LayerNorm
    attention: MultiHeadAttention
    perceptron_norm: LayerNorm
    up: Linear
    down: Linear
    dropout: Dropout

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        bias: bool,
        dropout: float,
        deviation: float,
        key: Tensor,
        dtype: Any = tk.float32,
    ) -> None:
        inner, added = normal(DEVIATION), normal(deviation)
        first, second, third = tk.random.split(key, 3)
        self.attention_norm = LayerNorm(width, bias=bias, key=key, dtype=dtype)
        self.attention = MultiHeadAttention(
            width,
            heads,
            bias=bias,
            dropout=dropout,
            key=first,
            weight_initializer=inner,
            output_initializer=added,
            dtype=dtype,
        )
        self.perceptron_norm = LayerNorm(width, bias=bias, key=key, dtype=dtype)
        self.up = Linear(width, 4 * width, bias, key=second, weight_initializer=inner, dtype=dtype)
        self.down = Linear(4 * width, width, bias, key=third, weight_initializer=added, dtype=dtype)
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
        """From and to shape (batch, time, width); the arguments are those of the attention."""
        keys = [None, None, None] if key is None else tk.random.split(key, 3)
        y = self.attention_norm(x)
        if cache is None:
            y = self.attention(y, key=keys[0])
        else:
            y, cache = self.attention(y, cache=cache, position=position, key=keys[0])
        x = x + self.dropout(y, key=keys[1])
        y = self.down(gelu(self.up(self.perceptron_norm(x)), "tanh"))
        x = x + self.dropout(y, key=keys[2])
        return x if cache is None else (x, cache)


class GPT(Module):
    """A decoder of GPT-2's kind: from tokens to the logits of the token that follows each.

    What is added in a layer begins smaller the more layers there are, so that their sum begins as small.

    Source: Radford et al., Language Models are Unsupervised Multitask Learners (2019), section 2.3.

    Args:
        vocabulary: how many tokens there are.
        context: how many places it sees at most.
        layers, heads, width: how many layers, each with so many heads, and the size of what passes.
        bias: whether the linear layers and the norms have one.
        dropout: with which probability numbers are dropped, while training.
        tied: whether the same parameters turn tokens into vectors and vectors into logits.
        key: for the parameters to begin with; they live on its backend.
        dtype: of the parameters, a float.

    Raises:
        ArgumentError: if a size is not positive, the heads do not divide the width, or the dropout is no probability.

    >>> model = GPT(65, context=16, layers=2, heads=2, width=8, key=tk.random.key(0))
    >>> model(tk.tensor([[1, 2, 3]])).shape
    (1, 3, 65)
    """

    tokens: Embedding
    positions: Embedding
    blocks: tuple[Block, ...]
    norm: LayerNorm
    head: Linear | None
    dropout: Dropout

    def __init__(
        self,
        vocabulary: int,
        context: int,
        layers: int,
        heads: int,
        width: int,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        tied: bool = True,
        key: Tensor,
        dtype: Any = tk.float32,
    ) -> None:
        if min(vocabulary, context, layers, heads, width) < 1:
            raise ArgumentError(
                f"GPT: need sizes of 1 or more, got vocabulary {vocabulary}, context {context}, layers {layers}, "
                f"heads {heads}, width {width}"
            )
        drawn = normal(DEVIATION)
        first, second, third, last = tk.random.split(key, 4)
        self.tokens = Embedding(vocabulary, width, key=first, weight_initializer=drawn, dtype=dtype)
        self.positions = Embedding(context, width, key=second, weight_initializer=drawn, dtype=dtype)
        self.blocks = tuple(
            [
                Block(
                    width,
                    heads,
                    bias=bias,
                    dropout=dropout,
                    deviation=DEVIATION / math.sqrt(2 * layers),
                    key=own,
                    dtype=dtype,
                )
                for own in tk.random.split(third, layers)
            ]
        )
        self.norm = LayerNorm(width, bias=bias, key=key, dtype=dtype)
        self.head = (
            None
            if tied
            else Linear(width, vocabulary, False, key=last, weight_initializer=drawn, dtype=dtype)
        )
        self.dropout = Dropout(dropout)

    @property
    def context(self) -> int:
        """How many places it sees at most."""
        return self.positions.weight.shape[0]

    @overload
    def __call__(self, tokens: Tensor, *, key: Tensor | None = None) -> Tensor: ...

    @overload
    def __call__(
        self, tokens: Tensor, *, cache: Sequence[Cache], position: Any, key: Tensor | None = None
    ) -> tuple[Tensor, tuple[Cache, ...]]: ...

    def __call__(
        self,
        tokens: Tensor,
        *,
        cache: Sequence[Cache] | None = None,
        position: Any = None,
        key: Tensor | None = None,
    ) -> Any:
        """The logits, shape (batch, time, vocabulary), of what follows each token; with a cache also that.

        Args:
            tokens: shape (batch, time), int, each in [0, vocabulary), which is not checked.
            cache: of the places before these, from `cache` or an earlier call.
            position: with a cache: that of the first token, an int or a tensor of one; all must fit into the context,
                which is not checked.
            key: for dropout, while training; without one nothing is dropped.

        Raises:
            ShapeError: if the tokens have another shape, or are more than the context.
        """
        if tokens.ndim != 2 or tokens.shape[1] > self.context:
            raise ShapeError(
                f"GPT: got tokens of shape {tokens.shape}, need (batch, time) with at most {self.context} in a row; "
                f"give it the last of them"
            )
        if (cache is None) != (position is None) or (cache is not None and len(cache) != len(self.blocks)):
            raise ArgumentError(
                f"GPT: need a position and a cache of {len(self.blocks)} layers, or neither; cache() gives an empty one"
            )
        time = tokens.shape[1]
        if cache is None:
            places = self.positions.weight[:time]
        else:
            places = self.positions(tk.zeros_like(tokens, shape=(time,)) + range(time) + position)
        x = self.dropout(self.tokens(tokens) + places, key=None if key is None else tk.random.fold_in(key, 0))
        filled = []
        for i, block in enumerate(self.blocks):
            own = None if key is None else tk.random.fold_in(key, i + 1)
            if cache is None:
                x = block(x, key=own)
            else:
                x, one = block(x, cache=cache[i], position=position, key=own)
                filled.append(one)
        x = self.norm(x)
        logits = x @ self.tokens.weight.T if self.head is None else self.head(x)
        return logits if cache is None else (logits, tuple(filled))

    def cache(self, batch: int) -> tuple[Cache, ...]:
        """An empty cache for so many sequences: of each layer, with places for the whole context."""
        return tuple([block.attention.cache(batch, self.context) for block in self.blocks])


def generate(
    model: GPT, tokens: Tensor, count: int, key: Tensor, temperature: float = 1.0, top_k: int | None = None
) -> Tensor:
    """The tokens, and so many more, each drawn by the chances that the model gives it after those before.

    Nothing is compiled anew from token to token, nor for another prompt or another temperature.  When the context is
    full, the model goes on from the later half of it.

    Args:
        model: which predicts.
        tokens: shape (batch, time), int, with at least one token.
        count: how many to draw after each row.
        key: for what is drawn.
        temperature: logits are divided by it: below 1 likely tokens become likelier; 0 takes the likeliest.
        top_k: only so many of the likeliest can be drawn, and those as likely as the last of them; None for all.

    Returns:
        Shape (batch, time + count).

    Raises:
        ShapeError: if the tokens have another shape.
        ArgumentError: if the count or the temperature is negative, or top_k is not positive.

    >>> model = GPT(65, context=16, layers=2, heads=2, width=8, key=tk.random.key(0))
    >>> generate(model, tk.tensor([[1, 2, 3]]), 20, tk.random.key(1)).shape
    (1, 23)
    """
    if tokens.ndim != 2 or tokens.shape[1] < 1:
        raise ShapeError(
            f"generate: got tokens of shape {tokens.shape}, need (batch, time) with one token or more"
        )
    if count < 0 or not temperature >= 0.0 or (top_k is not None and top_k < 1):
        raise ArgumentError(
            f"generate: need a count and a temperature of 0 or more and a top_k of 1 or more, got {count}, "
            f"{temperature}, {top_k}"
        )
    if temperature == 0.0:
        temperature, top_k = 1.0, 1
    drawn: list[Tensor] = []
    context = model.context
    read = list(tk.unstack(tokens[:, -context:], axis=1))  # a row of tokens for each place
    cache: Any = None
    position = context  # the first place that is free in the cache
    for i in range(count):
        if position < context:
            token, cache = _continued(model, cache, read[-1], position, key, i, temperature, top_k)
            position += 1
        else:
            read = read[-context:] if cache is None else read[-max(1, context // 2) :]
            position = len(read)
            padded = tk.stack(read + read[:1] * (context - position), axis=1)
            token, cache = _begun(model, padded, position - 1, key, i, temperature, top_k)
        read.append(token)
        drawn.append(token)
    return tk.concatenate([tokens, *[token.reshape((-1, 1)) for token in drawn]], axis=1)


@functools.partial(tk.jit, static_argnums=6)
def _begun(
    model: GPT, tokens: Tensor, last: Tensor, key: Tensor, i: Tensor, temperature: Tensor, top_k: int | None
) -> Any:
    """Draw number i, after one of these tokens, and the cache with all of them; those after that one are never seen."""
    logits, cache = model(tokens, cache=model.cache(tokens.shape[0]), position=0)
    return draw(tk.random.fold_in(key, i), logits[:, last], temperature, top_k).astype(tokens.dtype), cache


@functools.partial(tk.jit, static_argnums=7, donate_argnums=1)
def _continued(
    model: GPT,
    cache: tuple[Cache, ...],
    token: Tensor,
    position: Tensor,
    key: Tensor,
    i: Tensor,
    temperature: Tensor,
    top_k: int | None,
) -> Any:
    """Draw number i, after one more token, and the cache with that."""
    logits, cache = model(token.reshape((-1, 1)), cache=cache, position=position)
    return draw(tk.random.fold_in(key, i), logits[:, 0], temperature, top_k).astype(token.dtype), cache
