"""Labels of losses: a label that is no class is refused where it is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken_core.errors import ArgumentError
from tensorken_nn import cross_entropy, ctc, multi_margin, negative_log_likelihood

LOSSES: list[Callable[..., Any]] = [cross_entropy, negative_log_likelihood, multi_margin]
LOGITS = tk.zeros((3, 4))


@each_of("loss", LOSSES)
def test_labels_are_classes(loss: Callable[..., Any]) -> None:
    name = loss.__name__
    for wrong in ([-1, 0, 1], [0, 4, 1], [0, 1, -100]):
        labels = tk.tensor(wrong)
        with pytest.raises(ArgumentError, match=rf"^{name}: labels must be from 0 to 3, got -?\d+$"):
            loss(LOGITS, labels)
        with pytest.raises(ArgumentError, match=rf"^{name}: labels must be"):
            tk.grad(lambda logits, labels=labels: loss(logits, labels))(LOGITS)
        with pytest.raises(ArgumentError, match=rf"^{name}: labels must be"):
            tk.vmap(lambda logits, label: loss(logits, label))(LOGITS, labels)
        tk.jit(lambda logits, labels: loss(logits, labels))(LOGITS, labels)  # unknown labels are not checked


def test_labels_of_sequences_are_classes_and_not_blank() -> None:
    x = tk.log_softmax(tk.zeros((2, 5, 4)))
    for wrong in ([[1, 4], [1, 2]], [[1, 0], [1, 2]], [[1, -1], [1, 2]]):
        with pytest.raises(
            ArgumentError, match=r"^ctc: labels must be from 0 to 3 and not 0, the blank, got -?\d$"
        ):
            ctc(x, tk.tensor(wrong))
        assert (
            ctc(x, tk.tensor(wrong), label_lengths=tk.tensor([1, 2])).item() > 0.0
        )  # the others are ignored
    for name, lengths in (("input_lengths", [6, 5]), ("label_lengths", [3, 1]), ("label_lengths", [-1, 1])):
        with pytest.raises(ArgumentError, match=rf"^ctc: {name} must be from 0 to \d, got -?\d$"):
            ctc(x, tk.tensor([[1, 2], [1, 2]]), **{name: tk.tensor(lengths)})


@each_of("loss", LOSSES[:2])
def test_the_label_to_ignore_need_not_be_a_class(loss: Callable[..., Any]) -> None:
    assert loss(LOGITS, tk.tensor([-100, 0, 3]), ignore_index=-100, reduction="none").tolist()[0] == 0.0
    with pytest.raises(ArgumentError, match=r"labels must be from 0 to 3, or -100, which is ignored, got 7"):
        loss(LOGITS, tk.tensor([-100, 0, 7]), ignore_index=-100)
