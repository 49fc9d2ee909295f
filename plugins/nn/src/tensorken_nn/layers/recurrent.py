"""Recurrent layers: RNN, GRU and LSTM.

Parameters and gates are laid out as in PyTorch, so its weights can be used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import tensorken as tk
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.module import Module, static


class Recurrent(Module):
    """The base class of recurrent layers: the parameters, and the loop over the steps by `tk.scan`.

    A subclass defines the number of `gates`, each of size `width`, and `next`, which computes the next state. Gates
    are linear in the input and in the state; the contribution of the inputs is computed for all steps at once.

    Args:
        inputs: the size of the last axis of an input.
        width: the size of the state and of an output.
        bias: whether there are biases.
        key: for the initial parameters, uniform in [-1 / sqrt(width), 1 / sqrt(width)), on the key's backend.
        dtype: of the parameters, a float.

    Raises:
        ArgumentError: if a size is not positive.
    """

    input_weight: Tensor  # (gates * width, inputs)
    state_weight: Tensor  # (gates * width, width)
    input_bias: Tensor | None  # (gates * width,)
    state_bias: Tensor | None  # (gates * width,)

    gates: ClassVar[int] = 1

    def __init__(
        self, inputs: int, width: int, bias: bool = True, *, key: Tensor, dtype: Any = tk.float32
    ) -> None:
        if inputs < 1 or width < 1:
            raise ArgumentError(
                f"{type(self).__name__}: need one input and a width of 1 or more, got {inputs}, {width}"
            )
        limit = 1.0 / math.sqrt(width)
        rows = self.gates * width
        keys = tk.random.split(key, 4)
        shapes = [(rows, inputs), (rows, width), *([(rows,), (rows,)] if bias else [])]
        parameters = [tk.random.uniform(keys[i], s, dtype, -limit, limit) for i, s in enumerate(shapes)]
        self.input_weight, self.state_weight = parameters[:2]
        self.input_bias, self.state_bias = parameters[2:] if bias else (None, None)

    def __call__(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """The outputs of all steps, and the last state.

        Args:
            x: of shape (..., steps, inputs); usually the first axis is the batch.
            state: the initial state, of shape (..., width), or an `LSTMState` of two; by default zeros.

        Returns:
            The outputs, of shape (..., steps, width), and the state.

        Raises:
            ShapeError: if x has another last axis or no axis of steps, or the state does not fit.
            ArgumentError: if the state has another structure.
        """
        inputs, width = self.input_weight.shape[1], self.state_weight.shape[1]
        if x.ndim < 2 or x.shape[-1] != inputs:
            raise ShapeError(
                f"{type(self).__name__}: got shape {x.shape}, need (..., steps, {inputs}); reshape the input"
            )
        from_inputs = x @ self.input_weight.T
        if self.input_bias is not None:
            from_inputs = from_inputs + self.input_bias
        first = self._first(tk.zeros_like(from_inputs, shape=(*x.shape[:-2], width)))
        state = first if state is None else self._checked(state, first)

        def step(state: Any, from_inputs: Tensor) -> tuple[Any, Tensor]:
            from_state = self._output(state) @ self.state_weight.T
            if self.state_bias is not None:
                from_state = from_state + self.state_bias
            state = self.next(from_inputs, from_state, state)
            return state, self._output(state)

        last, outputs = tk.scan(step, state, tk.moveaxis(from_inputs, -2, 0))
        return tk.moveaxis(outputs, 0, -2), last

    def next(self, from_inputs: Tensor, from_state: Tensor, state: Any) -> Any:
        """The next state.

        Args:
            from_inputs, from_state: the contributions of input and state to the gates, of shape (..., gates * width).
            state: before the step.
        """
        raise NotImplementedError

    def _first(self, zeros: Tensor) -> Any:
        """The default initial state, made of zeros of shape (..., width)."""
        return zeros

    def _checked(self, state: Any, first: Any) -> Any:
        """Check that a state has the structure and shapes of the default initial state."""
        name = type(self).__name__
        if tree.structure(state) != tree.structure(first):
            raise ArgumentError(
                f"{name}: got a {type(state).__name__} as the state, need a {type(first).__name__}"
            )
        for part, like in zip(tree.leaves(state), tree.leaves(first), strict=True):
            if part.shape != like.shape:
                raise ShapeError(
                    f"{name}: got a state of shape {part.shape}, need {like.shape} with this input"
                )
        return state

    def _output(self, state: Any) -> Tensor:
        """The output, which is part of the state."""
        return state  # type: ignore[no-any-return]


class RNN(Recurrent):
    """The simple recurrent layer: state = tanh(input_weight @ x + input_bias + state_weight @ state + state_bias).

    Source: Elman, Finding Structure in Time (1990).

    Args:
        inputs, width, bias, key, dtype: as for `Recurrent`.
        nonlinearity: replaces tanh.

    >>> layer = RNN(3, 5, key=tk.random.key(0))
    >>> outputs, state = layer(tk.ones((2, 7, 3)))
    >>> outputs.shape, state.shape
    ((2, 7, 5), (2, 5))
    """

    nonlinearity: Callable[[Tensor], Tensor] = static()

    def __init__(
        self,
        inputs: int,
        width: int,
        nonlinearity: Callable[[Tensor], Tensor] = tk.tanh,
        bias: bool = True,
        *,
        key: Tensor,
        dtype: Any = tk.float32,
    ) -> None:
        super().__init__(inputs, width, bias, key=key, dtype=dtype)
        self.nonlinearity = nonlinearity

    def next(self, from_inputs: Tensor, from_state: Tensor, state: Tensor) -> Tensor:
        """See `Recurrent`."""
        return self.nonlinearity(from_inputs + from_state)


class GRU(Recurrent):
    """The gated recurrent unit. Its gates, in order, are the reset gate, the update gate and the new state.

    Let i and s be the contributions of input and state to each gate. With r = sigmoid(i + s) of the reset gate,
    z = sigmoid(i + s) of the update gate and n = tanh(i + r * s) of the new state, the next state is
    (1 - z) * n + z * state.

    Source: Cho et al., Learning Phrase Representations using RNN Encoder-Decoder (2014); in PyTorch's variant,
        which resets after the product with the state.

    >>> outputs, state = GRU(3, 5, key=tk.random.key(0))(tk.ones((2, 7, 3)))
    >>> outputs.shape, state.shape
    ((2, 7, 5), (2, 5))
    """

    gates = 3

    def next(self, from_inputs: Tensor, from_state: Tensor, state: Tensor) -> Tensor:
        """See `Recurrent`."""
        of_reset, of_update, of_new = tk.split(from_inputs, 3, -1)
        reset_of_state, update_of_state, new_of_state = tk.split(from_state, 3, -1)
        update = tk.sigmoid(of_update + update_of_state)
        new = tk.tanh(of_new + tk.sigmoid(of_reset + reset_of_state) * new_of_state)
        return new + update * (state - new)


class LSTMState(NamedTuple):
    """The state of an LSTM; both of shape (..., width)."""

    output: Tensor
    cell: Tensor


class LSTM(Recurrent):
    """Long short-term memory. Its gates, in order, are the input gate, forget gate, new cell and output gate.

    With i, f and o the sigmoids of the gates and g the tanh of the new cell, the next cell is f * cell + i * g, and
    the output o * tanh(cell). The state is an `LSTMState`.

    Source: Hochreiter and Schmidhuber, Long Short-Term Memory (1997); Gers, Schmidhuber, Cummins, Learning to Forget
    (2000).

    >>> outputs, state = LSTM(3, 5, key=tk.random.key(0))(tk.ones((2, 7, 3)))
    >>> outputs.shape, state.output.shape, state.cell.shape
    ((2, 7, 5), (2, 5), (2, 5))
    """

    gates = 4

    def next(self, from_inputs: Tensor, from_state: Tensor, state: LSTMState) -> LSTMState:
        """See `Recurrent`."""
        of_input, of_forget, of_new, of_output = tk.split(from_inputs + from_state, 4, -1)
        cell = tk.sigmoid(of_forget) * state.cell + tk.sigmoid(of_input) * tk.tanh(of_new)
        return LSTMState(tk.sigmoid(of_output) * tk.tanh(cell), cell)

    def _first(self, zeros: Tensor) -> LSTMState:
        return LSTMState(zeros, zeros)

    def _output(self, state: LSTMState) -> Tensor:
        return state.output
