"""Row: a kind of step, and how one is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.tests.random_programs.draft import Draft


@dataclass(frozen=True)
class Row:
    """A kind of step.

    Attributes:
        name: the kind.
        draw: returns the expression of a step with operands of a draft; None if no operand fits.
        exact: whether it rounds nothing.
        smooth: whether it has derivatives of all orders almost everywhere.
        whole: whether it rounds nothing for operands that are small integers; by default `exact`.
        wide: whether only wide programs have such steps.
        weight: its relative frequency.
    """

    name: str
    draw: Callable[[Draft], str | None]
    exact: bool = False
    smooth: bool = True
    weight: float = 1.0
    whole: bool | None = None
    wide: bool = False

    def fits(self, smooth: bool, whole: bool, wide: bool = False) -> bool:
        """Whether programs of that kind may have such steps."""
        return (
            (self.smooth or not smooth)
            and (not whole or (self.exact if self.whole is None else self.whole))
            and (wide or not self.wide)
        )
