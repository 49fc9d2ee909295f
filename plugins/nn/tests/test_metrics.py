"""Metrics: invalid arguments are refused."""

from __future__ import annotations

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken_core.errors import ArgumentError, ShapeError


@pytest.mark.parametrize("metric", [nn.accuracy, nn.correct])
@pytest.mark.parametrize(("logits", "labels"), [((2, 2), (2, 1)), ((2, 2), ()), ((), ())])
def test_each_row_has_one_label(metric: object, logits: tuple[int, ...], labels: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="need one for each row"):
        metric(tk.zeros(logits), tk.zeros(labels, tk.int32))  # type: ignore[operator]


@pytest.mark.parametrize(("label", "prediction"), [(-1, 0), (0, 2)])
def test_classes_out_of_range_are_refused(label: int, prediction: int) -> None:
    with pytest.raises(
        ArgumentError, match=f"confusion: {label} taken for {prediction}, need classes from 0 to 1"
    ):
        nn.confusion([label], [prediction], 2)
