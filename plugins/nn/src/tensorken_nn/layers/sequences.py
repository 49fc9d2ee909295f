"""Sequences of different lengths as one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError


def pad_sequence(
    sequences: Sequence[Tensor],
    padding_value: float = 0.0,
    padding_side: Literal["right", "left"] = "right",
) -> Tensor:
    """Stack sequences, the shorter ones with padding behind their elements, or before them.

    Args:
        sequences: one or more tensors of shape (length, ...), equal but for the length.
        padding_value: the elements of the padding.
        padding_side: where the padding is, "right", behind the elements, or "left".

    Returns:
        A tensor of shape (number of sequences, largest length, ...). As everywhere in this library the first axis is
        the batch.

    Raises:
        ArgumentError: if there are no sequences, or the side is another one.
        ShapeError: if a sequence has no axes, or other axes after the first one.

    >>> pad_sequence([tk.tensor([1, 2, 3]), tk.tensor([4])]).tolist()
    [[1, 2, 3], [4, 0, 0]]
    """
    if not sequences:
        raise ArgumentError("pad_sequence: need one sequence or more, got none")
    if padding_side not in ("right", "left"):
        raise ArgumentError(f"pad_sequence: padding_side must be 'right' or 'left', got {padding_side!r}")
    rest = sequences[0].shape[1:]
    for x in sequences:
        if not x.ndim or x.shape[1:] != rest:
            raise ShapeError(
                f"pad_sequence: got a sequence of shape {x.shape}, need (length, {', '.join(map(str, rest))}), as the "
                f"first one; reshape it"
            )
    longest = max([x.shape[0] for x in sequences])
    padded = []
    for x in sequences:
        missing = longest - x.shape[0]
        around = (0, missing) if padding_side == "right" else (missing, 0)
        padded.append(tk.pad(x, [around, *[(0, 0)] * len(rest)], constant_values=padding_value))
    return tk.stack(padded)


def unpad_sequence(padded: Tensor, lengths: Tensor | Sequence[int]) -> list[Tensor]:
    """The sequences of a tensor without the padding behind their elements: the inverse of `pad_sequence`.

    Args:
        padded: shape (number of sequences, steps, ...).
        lengths: shape (number of sequences,), int; known numbers, as the shapes of the results depend on them.

    Returns:
        For each sequence a tensor of shape (length, ...).

    Raises:
        ShapeError: if the shapes do not fit together.
        ArgumentError: if a length is not from 0 to the number of steps.

    >>> [x.tolist() for x in unpad_sequence(tk.tensor([[1, 2, 3], [4, 0, 0]]), [3, 1])]
    [[1, 2, 3], [4]]
    """
    numbers = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    if padded.ndim < 2 or not isinstance(numbers, list) or len(numbers) != padded.shape[0]:
        raise ShapeError(
            f"unpad_sequence: got shape {padded.shape} and lengths {numbers}, need (count, steps, ...) and a length "
            f"for each sequence"
        )
    for n in numbers:
        if not 0 <= n <= padded.shape[1]:
            raise ArgumentError(
                f"unpad_sequence: got length {n}, need 0 to {padded.shape[1]}, the number of steps"
            )
    return [x[:n] for x, n in zip(padded, numbers, strict=True)]


def is_inside(name: str, x: Tensor, lengths: Tensor | Sequence[int]) -> Tensor:
    """Whether each step of x, of shape (..., steps, inputs), is inside of its sequence: bools of shape (..., steps, 1).

    Args:
        name: of the caller, for error messages.
        x: the sequences.
        lengths: of the sequences, shape (...), int.

    Raises:
        ShapeError: if there is not one length for each sequence.
        DTypeError: if the lengths are no ints.
    """
    lead, steps = x.shape[:-2], x.shape[-2]
    given = lengths if isinstance(lengths, Tensor) else x.constant(lengths, tk.int32, (len(lengths),))
    if given.dtype.kind != "int":
        raise DTypeError(f"{name}: lengths must be ints, got {given.dtype}; cast them (x.astype)")
    if given.shape != lead:
        raise ShapeError(
            f"{name}: got lengths of shape {given.shape}, need {lead}, one for each sequence of shape {x.shape}"
        )
    return x.constant(range(steps), tk.int32, (steps, 1)) < given.reshape((*lead, 1, 1))
