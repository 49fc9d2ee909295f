"""Record: the program with the adjoints, each step that led to one, and how that reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tensorken.programs.forms.text import text
from tensorken.programs.names import Names
from tensorken_core.program.program import Equation, Program, Variable


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step of one adjoint.

    Attributes:
        kind: initialise, increment, pass on (an increment that goes straight on) or finalise.
        value: whose adjoint.
        place: how many equations of the program of the adjoints stand before it.
        term: the contribution; for finalise the whole adjoint, None if nothing was kept.
    """

    kind: str
    value: Variable
    place: int
    term: Variable | None


@dataclass(frozen=True, slots=True, eq=False)
class Adjoint:
    """What became of the adjoint of one value; places count equations of the program of the adjoints.

    Attributes:
        kept: whether it was accumulated; if not, each increment went straight on.
        initialised: where the first contribution arrived.
        increments: how many contributions arrived, the first among them.
        finalised: where it was complete, and its storage could be freed.
    """

    kept: bool
    initialised: int
    increments: int
    finalised: int


@dataclass(frozen=True, slots=True, eq=False)
class Adjoints:
    """A program with the ops that compute the adjoints, and how each adjoint came about.

    Attributes:
        forward: the program whose derivatives these are.
        program: from the same arguments to the adjoints that were asked for; the forward equations stand first.
        steps: all steps, in their order.
        asked: the values whose adjoints the program gives.
    """

    forward: Program
    program: Program
    steps: tuple[Step, ...]
    asked: tuple[Variable, ...]

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the program."""
        return self.program(*arguments, **keywords)

    @property
    def record(self) -> Mapping[Variable, Adjoint]:
        """For each value of the forward program that the output depends on, and that depends on an input asked for."""
        found: dict[Variable, Adjoint] = {}
        for step in self.steps:
            known = found.get(step.value)
            if known is None:
                found[step.value] = Adjoint(step.kind != "pass on", step.place, 1, step.place)
            elif step.kind == "finalise":
                found[step.value] = replace(known, finalised=step.place)
            else:
                found[step.value] = replace(known, increments=known.increments + 1)
        return found

    @property
    def added(self) -> tuple[Equation, ...]:
        """The equations that were added to those of the forward program."""
        return self.program.equations[len(self.forward.equations) :]

    @property
    def most_kept(self) -> int:
        """How many adjoints of inner values are kept at most at one time."""
        kept = most = 0
        for step in self.steps:
            if step.value not in self.asked and step.term is not None:
                kept += {"initialise": 1, "finalise": -1}.get(step.kind, 0)
                most = max(most, kept)
        return most

    def __str__(self) -> str:
        """The program, with each step between its equations."""
        at: dict[int, list[Step]] = {}
        for step in self.steps:
            if step.kind != "finalise" or step.term is not None:
                at.setdefault(step.place, []).append(step)

        def remarks(place: int, names: Names) -> list[str]:
            return [_told(step, names) for step in at.get(place, ())]

        return text(self.program, remarks)


def _told(step: Step, names: Names) -> str:
    assert step.term is not None
    value, term = names[step.value], names[step.term]
    if step.kind == "finalise":
        return f"{value}: finalise, the adjoint is {term}"
    return f"{value}: {step.kind} {'by' if step.kind != 'pass on' else 'the increment'} {term}"
