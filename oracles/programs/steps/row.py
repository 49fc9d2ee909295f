"""Row: a kind of step, and how one is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oracles.programs.draft import Draft


@dataclass(frozen=True)
class Row:
    """A kind of step.

    Attributes:
        name: the kind.
        draw: writes the expression of a step, with operands of a draft; None if nothing fits.
        exact: whether it rounds nothing.
        smooth: whether it has derivatives of all orders almost everywhere.
        weight: how often it is drawn, beside others.
    """

    name: str
    draw: Callable[[Draft], str | None]
    exact: bool = False
    smooth: bool = True
    weight: float = 1.0
