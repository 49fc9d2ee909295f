"""Figures: how the numbers of a training are told.

The name of a figure is what it is, as `loss` or `accuracy`, after the data that it is of, as in `test_loss`; without
that it is of the data that was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping

TRAIN = "train"


def of(name: str) -> tuple[str, str]:
    """The data that a figure is of, and what it is.

    >>> of("test_loss"), of("accuracy")
    (('test', 'loss'), ('train', 'accuracy'))
    """
    data, _, kind = name.rpartition("_")
    return data or TRAIN, kind


def text(name: str, value: float) -> str:
    """A figure's value with its unit.

    >>> text("test_accuracy", 0.5), text("loss", 2.0)
    ('50.0 %', '2.0000')
    """
    return f"{100 * value:.1f} %" if name.endswith("accuracy") else f"{value:.4f}"


def told(figures: Mapping[str, float]) -> str:
    """Figures in a line, those of the same data together.

    >>> told({"loss": 2.0, "accuracy": 0.5, "test_loss": 3.0})
    'train: loss 2.0000, accuracy  50.0 %   test: loss 3.0000'
    """
    groups: dict[str, list[str]] = {}
    for name, value in figures.items():
        data, kind = of(name)
        groups.setdefault(data, []).append(f"{kind} {text(name, value):>{7 if kind == 'accuracy' else 6}}")
    return "   ".join([f"{data}: {', '.join(parts)}" for data, parts in groups.items()])


def last(name: str, value: float) -> str:
    """The line that says how a training ended.

    >>> last("test_accuracy", 0.975)
    'test accuracy: 97.5 %'
    """
    return f"{name.replace('_', ' ')}: {text(name, value)}"
