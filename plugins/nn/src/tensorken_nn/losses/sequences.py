"""The loss of sequences of labels whose positions are unknown."""

from __future__ import annotations

import math

import tensorken as tk
from tensorken import Tensor
from tensorken.arrays.indexing.checks import require
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_nn.losses.reduction import Reduction, check_float, reduce_losses
from tensorken_nn.precision import widen

NEVER = -1e30
"""The logarithm of the probability of an impossible position: finite, so that derivatives are."""


def ctc(
    log_probabilities: Tensor,
    labels: Tensor,
    input_lengths: Tensor | None = None,
    label_lengths: Tensor | None = None,
    blank: int = 0,
    *,
    zero_infinity: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """Connectionist temporal classification: -log of the probability of all ways to write the labels into the steps.

    Each step has a label or the blank. The labels are written once or several times in sequence, with blanks between
    or not; equal neighbours need a blank between them.

    Source: Graves et al., Connectionist Temporal Classification (2006), equations 5 to 8.

    Args:
        log_probabilities: shape (..., steps, classes), float, such as the result of `tk.log_softmax`.
        labels: shape (..., labels), int, each in [0, classes) and not blank, which is checked where they are known.
        input_lengths: shape (...), int: the number of steps of each example; None for all.
        label_lengths: shape (...), int: the number of labels of each example; None for all. The others are ignored.
        blank: the class that stands for no label.
        zero_infinity: whether the loss of labels that do not fit into the steps is 0 instead of infinite.
        reduction: "mean", of the losses divided by the numbers of labels, as in PyTorch; "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> even = tk.log_softmax(tk.zeros((1, 2, 2)))
    >>> round(ctc(even, tk.tensor([[1]])).item(), 4)  # 3 of 4 ways: 1 1, 1 blank, blank 1
    0.2877
    """
    _check(log_probabilities, labels, input_lengths, label_lengths, blank)
    lead, count = labels.shape[:-1], labels.shape[-1]
    steps, classes = log_probabilities.shape[-2:]
    # Positions: a blank, the first label, a blank, the second label, and so on.
    known = labels.clip(0, classes - 1)
    pairs = tk.stack([tk.full_like(known, blank), known], -1).reshape((*lead, 2 * count))
    positions = tk.concatenate([pairs, tk.full_like(known, blank, shape=(*lead, 1))], -1)
    emitted = tk.take_along_axis(log_probabilities, positions.reshape((*lead, 1, 2 * count + 1)), -1)
    emitted = tk.moveaxis(widen(emitted).maximum(NEVER), -2, 0)
    # From the position before the last one only to a label that differs from the last label.
    before = tk.full_like(positions, blank, shape=(*lead, 2))
    skips = (positions != tk.concatenate([before, positions], -1)[..., :-2]) & (positions != blank)
    numbers = tk.zeros_like(emitted, tk.int32, shape=(2 * count + 1,)) + range(2 * count + 1)
    first = tk.broadcast_to((numbers == 0).where(tk.zeros_like(emitted, shape=()), NEVER), emitted.shape[1:])
    ends = None if input_lengths is None else input_lengths.reshape((*lead, 1))

    def step(state: Tensor, inputs: tuple[Tensor, Tensor]) -> tuple[Tensor, None]:
        number, emission = inputs
        never = tk.full_like(state, NEVER, shape=(*lead, 2))
        shifted = tk.concatenate([never, state], -1)
        ways = tk.stack([state, shifted[..., 1:-1], skips.where(shifted[..., :-2], NEVER)])
        new = (tk.logsumexp(ways, 0) + emission).maximum(NEVER)
        return (new if ends is None else (number < ends).where(new, state)), None

    times = tk.zeros_like(emitted, tk.int32, shape=(steps,)) + range(steps)
    last, _ = tk.scan(step, first, (times, emitted))
    lengths = tk.full_like(labels, count, shape=lead) if label_lengths is None else label_lengths
    end = 2 * lengths.reshape((*lead, 1))
    is_end = (numbers == end) | (numbers == end - 1)
    losses = 0.0 - tk.logsumexp(is_end.where(last, NEVER), -1)
    is_possible = losses < -0.5 * NEVER
    losses = is_possible.where(losses, 0.0 if zero_infinity else math.inf)
    if reduction == "mean":
        losses = losses / lengths.maximum(1).astype(losses.dtype)
    return reduce_losses("ctc", losses.astype(log_probabilities.dtype), reduction)


def _check(
    x: Tensor, labels: Tensor, input_lengths: Tensor | None, label_lengths: Tensor | None, blank: int
) -> None:
    if x.ndim < 2 or not labels.ndim or labels.shape[:-1] != x.shape[:-2]:
        raise ShapeError(
            f"ctc: labels of shape {labels.shape} for log-probabilities of shape {x.shape}; "
            f"need (..., labels) and (..., steps, classes)"
        )
    check_float("ctc", x)
    if not 0 <= blank < x.shape[-1]:
        raise ArgumentError(f"ctc: blank must be from 0 to {x.shape[-1] - 1}, got {blank}")
    for name, given in (
        ("labels", labels),
        ("input_lengths", input_lengths),
        ("label_lengths", label_lengths),
    ):
        if given is None:
            continue
        if given.dtype.kind != "int":
            raise DTypeError(f"ctc: {name} must be ints, got {given.dtype}; cast them (x.astype)")
        if given is not labels and given.shape != labels.shape[:-1]:
            raise ShapeError(
                f"ctc: {name} of shape {given.shape}, need {labels.shape[:-1]}, one for each example"
            )
    count, (steps, classes) = labels.shape[-1], x.shape[-2:]
    for name, given, most in (
        ("input_lengths", input_lengths, steps),
        ("label_lengths", label_lengths, count),
    ):
        if given is not None:
            require("ctc", name, (given >= 0) & (given <= most), f"from 0 to {most}", given)
    is_label = (labels >= 0) & (labels < classes) & (labels != blank)
    if label_lengths is not None:
        is_label = is_label | (tk.arange(count) >= label_lengths.reshape((*label_lengths.shape, 1)))
    require("ctc", "labels", is_label, f"from 0 to {classes - 1} and not {blank}, the blank", labels)
