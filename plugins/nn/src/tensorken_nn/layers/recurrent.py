"""Recurrent layers: RNN, GRU and LSTM, of several layers of cells in both directions, for sequences of any lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import tensorken as tk
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.layers.dropout import Dropout
from tensorken_nn.layers.recurrent_cells import GRUCell, LSTMCell, RecurrentCell, RNNCell, checked_state
from tensorken_nn.layers.sequences import is_inside
from tensorken_nn.module import Module, static


class Recurrent(Module):
    """The base class of recurrent layers: one or more layers of cells, in one or both directions, run by `tk.scan`.

    The contribution of the inputs to the gates is computed for all steps at once.

    Args:
        inputs: the size of the last axis of an input.
        width: the size of the state and of an output in one direction.
        num_layers: the number of layers; each has the outputs of the one before as inputs.
        bias: whether there are biases.
        dropout: the dropout rate of the outputs of all layers but the last while training.
        bidirectional: whether each layer also has a cell that begins with the last step. Its outputs follow those of
            the other cell along the last axis.
        key: for the initial parameters, uniform in [-1 / sqrt(width), 1 / sqrt(width)), on the key's backend.
        dtype: of the parameters, a float.

    Raises:
        ArgumentError: if a size is not positive, or the dropout rate is not in [0, 1].
    """

    cells: tuple[Any, ...]  # of the first layer, forwards and then backwards, of the second layer, and so on
    dropout: Dropout
    bidirectional: bool = static()

    cell: ClassVar[type[RecurrentCell]]

    def __init__(
        self,
        inputs: int,
        width: int,
        num_layers: int = 1,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        key: Tensor,
        dtype: Any = tk.float32,
        **options: Any,
    ) -> None:
        name = type(self).__name__
        if inputs < 1 or width < 1 or num_layers < 1:
            raise ArgumentError(
                f"{name}: need one input, a width and a number of layers of 1 or more, got {inputs}, {width}, "
                f"{num_layers}"
            )
        directions = 2 if bidirectional else 1
        cells = []
        for i in range(num_layers * directions):
            size = inputs if i < directions else width * directions
            of_cell = key if num_layers * directions == 1 else tk.random.fold_in(key, i)
            cells.append(self.cell(size, width, bias, key=of_cell, dtype=dtype, **options))
        self.cells = tuple(cells)
        self.dropout = Dropout(dropout)
        self.bidirectional = bidirectional

    def __call__(
        self,
        x: Tensor,
        state: Any = None,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        key: Tensor | None = None,
    ) -> tuple[Tensor, Any]:
        """The outputs of all steps, and the last state.

        Args:
            x: of shape (..., steps, inputs); usually the first axis is the batch.
            state: the initial state, of shape (..., width), or an `LSTMState` of two; by default zeros. With several
                cells, its parts have a leading axis for the cells, in the order of `cells`, as in PyTorch.
            lengths: of the sequences, shape (...), ints; None if all have the same number of steps. The steps behind a
                sequence are padding: they do not affect any result or derivative, their outputs are 0, the last state
                is that after the last step of the sequence, and a cell for the other direction begins there. The
                results are those of PyTorch's packed sequences; `pad_sequence` makes one tensor of sequences.
            key: for dropout; None for none, as after training.

        Returns:
            The outputs, of shape (..., steps, width), twice the width with both directions; and the state.

        Raises:
            ShapeError: if x has another last axis or no axis of steps, or the state or the lengths do not fit.
            ArgumentError: if the state has another structure.
            DTypeError: if the lengths are no ints.
        """
        name, inputs, count = type(self).__name__, self.cells[0].input_weight.shape[1], len(self.cells)
        if x.ndim < 2 or x.shape[-1] != inputs:
            raise ShapeError(f"{name}: got shape {x.shape}, need (..., steps, {inputs}); reshape the input")
        first = self.cells[0].first(x, x.shape[:-2])
        if state is not None and count > 1:
            checked_state(name, state, tree.map(lambda x: tk.broadcast_to(x, (count, *x.shape)), first))
            states = [tree.map(lambda part, i=i: part[i], state) for i in range(count)]
        else:
            states = [first if state is None else checked_state(name, state, first)] * count
        inside = None
        if lengths is not None:
            inside = is_inside(name, x, lengths)
            x = inside.where(x, 0)  # the padding may be NaN, and affects no derivative
            inside = tk.moveaxis(inside, -2, 0)
        outputs, lasts = tk.moveaxis(x, -2, 0), []
        directions = 2 if self.bidirectional else 1
        for i in range(0, count, directions):
            if i and key is not None:
                outputs = self.dropout(outputs, key=tk.random.fold_in(key, i))
            found = [
                self.cells[i + j].scan(outputs, states[i + j], j == 1, inside) for j in range(directions)
            ]
            outputs = tk.concatenate([part for part, _ in found], -1) if directions > 1 else found[0][0]
            lasts += [last for _, last in found]
        last = lasts[0] if count == 1 else tree.map(lambda *parts: tk.stack(parts), *lasts)
        return tk.moveaxis(outputs, 0, -2), last


class RNN(Recurrent):
    """Simple recurrent layers, of `RNNCell`.

    Source: Elman, Finding Structure in Time (1990).

    Args:
        inputs, width, num_layers, bias, dropout, bidirectional, key, dtype: as for `Recurrent`.
        nonlinearity: replaces tanh.

    >>> layer = RNN(3, 5, key=tk.random.key(0))
    >>> outputs, state = layer(tk.ones((2, 7, 3)))
    >>> outputs.shape, state.shape
    ((2, 7, 5), (2, 5))
    """

    cell = RNNCell

    def __init__(
        self,
        inputs: int,
        width: int,
        num_layers: int = 1,
        nonlinearity: Callable[[Tensor], Tensor] = tk.tanh,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        key: Tensor,
        dtype: Any = tk.float32,
    ) -> None:
        super().__init__(
            inputs,
            width,
            num_layers,
            bias,
            dropout,
            bidirectional,
            key=key,
            dtype=dtype,
            nonlinearity=nonlinearity,
        )


class GRU(Recurrent, init=False):
    """Layers of gated recurrent units, `GRUCell`; the arguments are those of `Recurrent`.

    Source: Cho et al., Learning Phrase Representations using RNN Encoder-Decoder (2014); in PyTorch's variant,
        which resets after the product with the state.

    >>> layer = GRU(3, 5, bidirectional=True, key=tk.random.key(0))
    >>> outputs, state = layer(tk.ones((2, 7, 3)))
    >>> outputs.shape, state.shape
    ((2, 7, 10), (2, 2, 5))
    """

    cell = GRUCell


class LSTM(Recurrent, init=False):
    """Layers of long short-term memory, `LSTMCell`; the arguments are those of `Recurrent`.

    Source: Hochreiter and Schmidhuber, Long Short-Term Memory (1997); Gers, Schmidhuber, Cummins, Learning to Forget
    (2000).

    >>> outputs, state = LSTM(3, 5, num_layers=2, dropout=0.1, key=tk.random.key(0))(tk.ones((4, 7, 3)))
    >>> outputs.shape, state.output.shape, state.cell.shape
    ((4, 7, 5), (2, 4, 5), (2, 4, 5))
    """

    cell = LSTMCell
