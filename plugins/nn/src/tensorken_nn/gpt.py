"""GPT: a decoder-only transformer, and text generation with it."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

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

INITIAL_STD = 0.02
"""The standard deviation of initial weights, as in GPT-2."""


class Block(Module):
    """A transformer block: attention, then a perceptron, each on normalised input and with a residual connection.

    Args:
        width: the size of the last axis; the perceptron's hidden layer is four times as wide.
        heads: the number of attention heads.
        bias: whether linear layers and norms have biases.
        dropout: the dropout rate of attention weights and of the residual branches.
        output_std: the standard deviation of the initial weights of the last layer of each residual branch.
        key: for the initial parameters.
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
        output_std: float,
        key: Tensor,
        dtype: Any = tk.float32,
    ) -> None:
        hidden_initializer, residual_initializer = normal(INITIAL_STD), normal(output_std)
        first, second, third = tk.random.split(key, 3)
        self.attention_norm = LayerNorm(width, bias=bias, key=key, dtype=dtype)
        self.attention = MultiHeadAttention(
            width,
            heads,
            bias=bias,
            dropout=dropout,
            key=first,
            weight_initializer=hidden_initializer,
            output_initializer=residual_initializer,
            dtype=dtype,
        )
        self.perceptron_norm = LayerNorm(width, bias=bias, key=key, dtype=dtype)
        self.up = Linear(
            width, 4 * width, bias, key=second, weight_initializer=hidden_initializer, dtype=dtype
        )
        self.down = Linear(
            4 * width, width, bias, key=third, weight_initializer=residual_initializer, dtype=dtype
        )
        self.dropout = Dropout(dropout)

    def __call__(self, x: Tensor, *, key: Tensor | None = None) -> Tensor:
        """Map shape (batch, time, width) to the same; the key is for dropout."""
        keys = [None, None, None] if key is None else tk.random.split(key, 3)
        y = self.attention(self.attention_norm(x), key=keys[0])
        x = x + self.dropout(y, key=keys[1])
        return x + self.dropout(self._perceptron(x), key=keys[2])

    def extend(self, x: Tensor, cache: Cache, position: Any) -> tuple[Tensor, Cache]:
        """The output for new positions, and the extended cache; the arguments are those of the attention's `extend`."""
        y, cache = self.attention.extend(self.attention_norm(x), cache, position)
        x = x + y
        return x + self._perceptron(x), cache

    def _perceptron(self, x: Tensor) -> Tensor:
        return self.down(gelu(self.up(self.perceptron_norm(x)), "tanh"))


class GPT(Module):
    """A decoder-only transformer as GPT-2: from tokens to the logits of each next token.

    The initial weights of the residual branches shrink with the number of layers, so that the sum of all branches keeps
    its scale.

    Source: Radford et al., Language Models are Unsupervised Multitask Learners (2019), section 2.3.

    Args:
        vocabulary: the number of tokens.
        context: the largest number of positions.
        layers, heads, width: the number of blocks, of attention heads in each, and the size of the hidden state.
        bias: whether linear layers and norms have biases.
        dropout: the dropout rate while training.
        tied: whether the embedding and the output layer share their weights.
        key: for the initial parameters, which are on the key's backend.
        dtype: of the parameters, a float.

    Raises:
        ArgumentError: if a size is not positive, the heads do not divide the width, or the dropout rate is not in
            [0, 1].

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
        initializer = normal(INITIAL_STD)
        first, second, third, last = tk.random.split(key, 4)
        self.tokens = Embedding(vocabulary, width, key=first, weight_initializer=initializer, dtype=dtype)
        self.positions = Embedding(context, width, key=second, weight_initializer=initializer, dtype=dtype)
        self.blocks = tuple(
            [
                Block(
                    width,
                    heads,
                    bias=bias,
                    dropout=dropout,
                    output_std=INITIAL_STD / math.sqrt(2 * layers),
                    key=block_key,
                    dtype=dtype,
                )
                for block_key in tk.random.split(third, layers)
            ]
        )
        self.norm = LayerNorm(width, bias=bias, key=key, dtype=dtype)
        self.head = (
            None
            if tied
            else Linear(width, vocabulary, False, key=last, weight_initializer=initializer, dtype=dtype)
        )
        self.dropout = Dropout(dropout)

    @property
    def context(self) -> int:
        """The largest number of positions."""
        return self.positions.weight.shape[0]

    def __call__(self, tokens: Tensor, *, key: Tensor | None = None) -> Tensor:
        """The logits of the token after each token, shape (batch, time, vocabulary).

        Args:
            tokens: shape (batch, time), int, each in [0, vocabulary), which is not checked.
            key: for dropout; None for none, as after training.

        Raises:
            ShapeError: if the tokens have another shape, or more positions than the context.
        """
        time = self._check_time(tokens)
        x = self.tokens(tokens) + self.positions.weight[:time]
        x = self.dropout(x, key=None if key is None else tk.random.fold_in(key, 0))
        for i, block in enumerate(self.blocks):
            x = block(x, key=None if key is None else tk.random.fold_in(key, i + 1))
        return self._logits(x)

    def extend(
        self, tokens: Tensor, cache: Sequence[Cache], position: Any
    ) -> tuple[Tensor, tuple[Cache, ...]]:
        """The logits of the token after each new token, shape (batch, time, vocabulary), and the extended cache.

        Args:
            tokens: shape (batch, time), int, each in [0, vocabulary), which is not checked.
            cache: of the positions before these, from `cache` or an earlier call.
            position: of the first new token; an int or a scalar tensor. All tokens must fit into the context, which is
                not checked.

        Raises:
            ShapeError: if the tokens have another shape, or more positions than the context.
            ArgumentError: if the cache is not one of this model.
        """
        time = self._check_time(tokens)
        if len(cache) != len(self.blocks):
            raise ArgumentError(
                f"GPT: need a cache of {len(self.blocks)} layers, got {len(cache)}; cache(batch) makes an empty one"
            )
        x = self.tokens(tokens)
        x = x + self.positions(tk.zeros_like(tokens, shape=(time,)) + range(time) + position)
        extended = []
        for block, entry in zip(self.blocks, cache, strict=True):
            x, entry = block.extend(x, entry, position)
            extended.append(entry)
        return self._logits(x), tuple(extended)

    def cache(self, batch: int) -> tuple[Cache, ...]:
        """An empty cache for a batch of this size, with positions for the whole context; one entry for each block."""
        return tuple([block.attention.cache(batch, self.context) for block in self.blocks])

    def _check_time(self, tokens: Tensor) -> int:
        """The number of positions of tokens."""
        if tokens.ndim != 2 or tokens.shape[1] > self.context:
            raise ShapeError(
                f"GPT: got tokens of shape {tokens.shape}, need (batch, time) with at most {self.context} in a row; "
                f"pass only the last of them"
            )
        return tokens.shape[1]

    def _logits(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        return x @ self.tokens.weight.T if self.head is None else self.head(x)


def generate(
    model: GPT, tokens: Tensor, count: int, key: Tensor, temperature: float = 1.0, top_k: int | None = None
) -> Tensor:
    """Append `count` tokens to each row, each drawn from the model's distribution given the previous tokens.

    The compiled functions are reused for all tokens, prompts and temperatures. When the context is full, generation
    continues from its second half.

    Args:
        model: predicts the next token.
        tokens: shape (batch, time), int, with at least one token.
        count: the number of tokens to draw for each row.
        key: for the draws.
        temperature: the divisor of the logits: below 1, likely tokens become likelier; 0 takes the likeliest.
        top_k: draw only from the `top_k` likeliest tokens, and tokens as likely as the last of these; None for all.

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
    generated: list[Tensor] = []
    context = model.context
    recent = list(tk.unstack(tokens[:, -context:], axis=1))  # a tensor of shape (batch,) for each position
    cache: Any = None
    position = context  # the next free position of the cache
    for i in range(count):
        if position < context:
            token, cache = _decode(model, cache, recent[-1], position, key, i, temperature, top_k)
            position += 1
        else:
            recent = recent[-context:] if cache is None else recent[-max(1, context // 2) :]
            position = len(recent)
            padded = tk.stack(recent + recent[:1] * (context - position), axis=1)
            token, cache = _prefill(model, padded, position - 1, key, i, temperature, top_k)
        recent.append(token)
        generated.append(token)
    return tk.concatenate([tokens, *[token.reshape((-1, 1)) for token in generated]], axis=1)


@functools.partial(tk.jit, static_argnums=6)
def _prefill(
    model: GPT,
    tokens: Tensor,
    last: Tensor | int,
    key: Tensor,
    i: Tensor | int,
    temperature: Tensor | float,
    top_k: int | None,
) -> Any:
    """Fill a cache with these tokens, and draw token number i after position `last`; later positions are padding."""
    logits, cache = model.extend(tokens, model.cache(tokens.shape[0]), 0)
    return draw(tk.random.fold_in(key, i), logits[:, last], temperature, top_k).astype(tokens.dtype), cache


@functools.partial(tk.jit, static_argnums=7, donate_argnums=1)
def _decode(
    model: GPT,
    cache: tuple[Cache, ...],
    token: Tensor,
    position: Tensor | int,
    key: Tensor,
    i: Tensor | int,
    temperature: Tensor | float,
    top_k: int | None,
) -> Any:
    """Add one token to the cache, and draw token number i after it."""
    logits, cache = model.extend(token.reshape((-1, 1)), cache, position)
    return draw(tk.random.fold_in(key, i), logits[:, 0], temperature, top_k).astype(token.dtype), cache
