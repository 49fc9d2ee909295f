"""Routines: machine code of ops that are no kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable


class Routine(Protocol):
    """Machine code of an op that is no kernel."""

    @property
    def reads(self) -> Sequence[Variable]:
        """The values that it reads: the first arguments of its function."""

    @property
    def writes(self) -> Sequence[Variable]:
        """The values that it writes, and memory that it uses: the other arguments."""

    @property
    def constants(self) -> Mapping[Variable, Program]:
        """Those of the values that it reads which are constants of inner programs, and for each the program."""
        return {}

    @property
    def work(self) -> int:
        """The number of elements that it computes."""

    def write(self, module: Any) -> Any:
        """Write its function, whose arguments are pointers to the values that it reads and writes.

        If the function returns a bit, it is whether the code was interrupted.
        """


@dataclass(frozen=True, slots=True, eq=False)
class EquationRoutine(Routine):
    """A routine that reads the operands of an op from memory, and writes its results.

    Attributes:
        equation: the op.
    """

    equation: Equation

    @property
    def reads(self) -> Sequence[Variable]:
        """The operands."""
        return self.equation.operands

    @property
    def writes(self) -> Sequence[Variable]:
        """The results."""
        return self.equation.results
