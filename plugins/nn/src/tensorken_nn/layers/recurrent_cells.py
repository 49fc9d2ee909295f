"""Cells of recurrent layers: one step of an RNN, a GRU or an LSTM.

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


class RecurrentCell(Module):
    """The base class of cells: the parameters of one recurrent layer in one direction, and one step of it.

    A subclass defines the number of `gates`, each of size `width`, and `next`, which computes the next state. Gates
    are linear in the input and in the state.

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

    def __call__(self, x: Tensor, state: Any = None) -> Any:
        """The next state.

        Args:
            x: of shape (..., inputs).
            state: of shape (..., width), or an `LSTMState` of two; by default zeros.

        Raises:
            ShapeError: if x has another last axis, or the state does not fit.
            ArgumentError: if the state has another structure.
        """
        name, inputs = type(self).__name__, self.input_weight.shape[1]
        if x.shape[-1:] != (inputs,):
            raise ShapeError(f"{name}: got shape {x.shape}, need (..., {inputs}); reshape the input")
        first = self.first(x, x.shape[:-1])
        return self.advance(
            self.from_inputs(x), first if state is None else checked_state(name, state, first)
        )

    def from_inputs(self, x: Tensor) -> Tensor:
        """The contributions of inputs to the gates, of shape (..., gates * width)."""
        y = x @ self.input_weight.T
        return y if self.input_bias is None else y + self.input_bias

    def first(self, x: Tensor, lead: tuple[int, ...]) -> Any:
        """The default initial state for an input: zeros, of shape (*lead, width)."""
        dtype = tk.result_type(x.dtype, self.input_weight.dtype)
        return tk.zeros_like(x, dtype, shape=(*lead, self.state_weight.shape[1]))

    def advance(self, from_inputs: Tensor, state: Any) -> Any:
        """The next state, from the contribution of an input."""
        from_state = self.output(state) @ self.state_weight.T
        if self.state_bias is not None:
            from_state = from_state + self.state_bias
        return self.next(from_inputs, from_state, state)

    def next(self, from_inputs: Tensor, from_state: Tensor, state: Any) -> Any:
        """The next state.

        Args:
            from_inputs, from_state: the contributions of input and state to the gates, of shape (..., gates * width).
            state: before the step.
        """
        raise NotImplementedError

    def output(self, state: Any) -> Tensor:
        """The output, which is part of the state."""
        return state  # type: ignore[no-any-return]

    def scan(self, x: Tensor, state: Any, reverse: bool, inside: Tensor | None = None) -> tuple[Tensor, Any]:
        """The outputs of all steps, of shape (steps, ..., width), and the last state.

        Args:
            x: of shape (steps, ..., inputs).
            state: the initial state.
            reverse: whether to begin with the last step.
            inside: bools of shape (steps, ..., 1), whether a step belongs to its sequence; None for all. Another step
                keeps the state, and its output is 0.
        """

        def step(state: Any, operands: tuple[Tensor, Tensor | None]) -> tuple[Any, Tensor]:
            from_inputs, used = operands
            new = self.advance(from_inputs, state)
            if used is None:
                return new, self.output(new)
            output = used.where(self.output(new), 0)
            return tree.map(lambda new, old: used.where(new, old), new, state), output

        last, outputs = tk.scan(step, state, (self.from_inputs(x), inside), reverse=reverse)
        return outputs, last


class RNNCell(RecurrentCell):
    """A step of the simple recurrent layer: tanh(input_weight @ x + input_bias + state_weight @ state + state_bias).

    Args:
        inputs, width, bias, key, dtype: as for `RecurrentCell`.
        nonlinearity: replaces tanh.

    >>> RNNCell(3, 5, key=tk.random.key(0))(tk.ones((2, 3))).shape
    (2, 5)
    """

    nonlinearity: Callable[[Tensor], Tensor] = static()

    def __init__(
        self,
        inputs: int,
        width: int,
        bias: bool = True,
        nonlinearity: Callable[[Tensor], Tensor] = tk.tanh,
        *,
        key: Tensor,
        dtype: Any = tk.float32,
    ) -> None:
        super().__init__(inputs, width, bias, key=key, dtype=dtype)
        self.nonlinearity = nonlinearity

    def next(self, from_inputs: Tensor, from_state: Tensor, state: Tensor) -> Tensor:
        """See `RecurrentCell`."""
        return self.nonlinearity(from_inputs + from_state)


class GRUCell(RecurrentCell, init=False):
    """A step of the gated recurrent unit. Its gates, in order, are the reset gate, the update gate and the new state.

    Let i and s be the contributions of input and state to each gate. With r = sigmoid(i + s) of the reset gate,
    z = sigmoid(i + s) of the update gate and n = tanh(i + r * s) of the new state, the next state is
    (1 - z) * n + z * state.

    >>> GRUCell(3, 5, key=tk.random.key(0))(tk.ones((2, 3))).shape
    (2, 5)
    """

    gates = 3

    def next(self, from_inputs: Tensor, from_state: Tensor, state: Tensor) -> Tensor:
        """See `RecurrentCell`."""
        of_reset, of_update, of_new = tk.split(from_inputs, 3, -1)
        reset_of_state, update_of_state, new_of_state = tk.split(from_state, 3, -1)
        update = tk.sigmoid(of_update + update_of_state)
        new = tk.tanh(of_new + tk.sigmoid(of_reset + reset_of_state) * new_of_state)
        return new + update * (state - new)


class LSTMState(NamedTuple):
    """The state of an LSTM; both of shape (..., width)."""

    output: Tensor
    cell: Tensor


class LSTMCell(RecurrentCell, init=False):
    """A step of an LSTM. Its gates, in order, are the input gate, forget gate, new cell and output gate.

    With i, f and o the sigmoids of the gates and g the tanh of the new cell, the next cell is f * cell + i * g, and
    the output o * tanh(cell). The state is an `LSTMState`.

    >>> LSTMCell(3, 5, key=tk.random.key(0))(tk.ones((2, 3))).cell.shape
    (2, 5)
    """

    gates = 4

    def next(self, from_inputs: Tensor, from_state: Tensor, state: LSTMState) -> LSTMState:
        """See `RecurrentCell`."""
        of_input, of_forget, of_new, of_output = tk.split(from_inputs + from_state, 4, -1)
        cell = tk.sigmoid(of_forget) * state.cell + tk.sigmoid(of_input) * tk.tanh(of_new)
        return LSTMState(tk.sigmoid(of_output) * tk.tanh(cell), cell)

    def first(self, x: Tensor, lead: tuple[int, ...]) -> LSTMState:
        """The default initial state for an input: zeros."""
        zeros = super().first(x, lead)
        return LSTMState(zeros, zeros)

    def output(self, state: LSTMState) -> Tensor:
        """The output, which is part of the state."""
        return state.output


def checked_state(name: str, state: Any, first: Any) -> Any:
    """Check that a state has the structure and shapes of the default initial state.

    Raises:
        ArgumentError: if it has another structure.
        ShapeError: if it has other shapes.
    """
    if tree.structure(state) != tree.structure(first):
        raise ArgumentError(
            f"{name}: got a {type(state).__name__} as the state, need a {type(first).__name__}"
        )
    for part, like in zip(tree.leaves(state), tree.leaves(first), strict=True):
        if part.shape != like.shape:
            raise ShapeError(f"{name}: got a state of shape {part.shape}, need {like.shape} with this input")
    return state
