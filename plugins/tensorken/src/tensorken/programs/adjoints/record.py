"""Record: the program with the adjoints, the steps that computed each adjoint, and their text form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tensorken.programs.forms.text import text
from tensorken.programs.names import Names
from tensorken_core.program.program import Equation, Program, Variable


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step in the computation of one adjoint.

    Attributes:
        kind: initialise, increment, pass on or finalise.
        value: the value whose adjoint it is.
        position: the number of equations before the step, in the program of the adjoints.
        term: the contribution; for finalise the adjoint itself, or None if it was not accumulated.
    """

    kind: str
    value: Variable
    position: int
    term: Variable | None


@dataclass(frozen=True, slots=True, eq=False)
class Adjoint:
    """How the adjoint of one value was computed; positions count equations of the program of the adjoints.

    Attributes:
        accumulated: whether increments were summed; if not, each was passed on.
        initialised: the position of the first contribution.
        increments: the number of contributions.
        finalised: the position where the adjoint was complete, and its storage could be freed.
    """

    accumulated: bool
    initialised: int
    increments: int
    finalised: int


@dataclass(frozen=True, slots=True, eq=False)
class Adjoints:
    """A program with the ops that compute adjoints, and a record of how each adjoint was computed.

    Attributes:
        forward: the program that is differentiated.
        program: maps the same arguments to the requested adjoints; the forward equations come first.
        steps: all steps, in order.
        requested: the values whose adjoints the program returns.
    """

    forward: Program
    program: Program
    steps: tuple[Step, ...]
    requested: tuple[Variable, ...]

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the program."""
        return self.program(*arguments, **keywords)

    @property
    def record(self) -> Mapping[Variable, Adjoint]:
        """How the adjoint of each value between the requested values and the output was computed."""
        adjoints: dict[Variable, Adjoint] = {}
        for step in self.steps:
            adjoint = adjoints.get(step.value)
            if adjoint is None:
                adjoints[step.value] = Adjoint(step.kind != "pass on", step.position, 1, step.position)
            elif step.kind == "finalise":
                adjoints[step.value] = replace(adjoint, finalised=step.position)
            else:
                adjoints[step.value] = replace(adjoint, increments=adjoint.increments + 1)
        return adjoints

    @property
    def added(self) -> tuple[Equation, ...]:
        """The equations that were added to the forward program."""
        return self.program.equations[len(self.forward.equations) :]

    @property
    def max_live(self) -> int:
        """The largest number of adjoints of intermediate values that are stored at the same time."""
        live = max_live = 0
        for step in self.steps:
            if step.value not in self.requested and step.term is not None:
                live += {"initialise": 1, "finalise": -1}.get(step.kind, 0)
                max_live = max(max_live, live)
        return max_live

    def __str__(self) -> str:
        """The program's text, with a comment for each step between the equations."""
        steps_at: dict[int, list[Step]] = {}
        for step in self.steps:
            if step.kind != "finalise" or step.term is not None:
                steps_at.setdefault(step.position, []).append(step)

        def remarks(position: int, names: Names) -> list[str]:
            return [_remark(step, names) for step in steps_at.get(position, ())]

        return text(self.program, remarks)


def _remark(step: Step, names: Names) -> str:
    assert step.term is not None
    value, term = names[step.value], names[step.term]
    if step.kind == "finalise":
        return f"{value}: finalise, the adjoint is {term}"
    return f"{value}: {step.kind} {'by' if step.kind != 'pass on' else 'the increment'} {term}"
