"""errors.survived: after an error everything is as it was, and the next program gives the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorken as tk
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.errors.mistakes import Operands, total
from tensorken_conformance.laws.errors.refused import NEEDED, possible
from tensorken_conformance.laws.read_back import bits
from tensorken_conformance.levels import MANDATORY_DTYPES
from tensorken_conformance.subject import Subject
from tensorken_core.host.registry import SELECTION
from tensorken_core.tensor.level import interpreter_below

Function = Callable[[Any], Any]


class Accident(Exception):
    """What a function of the user's raises."""


class Interruption(BaseException):
    """What comes from outside, as KeyboardInterrupt does."""


def _breaks(error: type[BaseException]) -> Function:
    """A function that computes a little, and then raises."""

    def f(x: Any) -> Any:
        y = x * 2.0 + x
        y.sum()
        raise error("in the middle")

    return f


def _fails(o: Operands) -> Function:
    """A function with an op in its middle that does not fit its operands."""

    def f(x: Any) -> Any:
        return total(tk.exp(x * x) + o.zeros(7))

    return f


def _in_block(o: Operands) -> None:
    with tk.use_backend(o.place):
        _breaks(Accident)(tk.ones(3))


def _in_nesting(o: Operands) -> None:
    def f(x: Any) -> Any:
        inner = tk.vmap(lambda row: tk.grad(_breaks(Accident))(row))
        return total(inner(o.matrix * x))

    tk.jvp(tk.grad(f), (o.vector,), (o.vector,))


SCENARIOS: dict[str, tuple[type[BaseException], Callable[[Operands], Any]]] = {
    "accident": (Accident, lambda o: _breaks(Accident)(o.vector)),
    "accident-in-grad": (Accident, lambda o: tk.grad(_breaks(Accident))(o.vector)),
    "accident-in-jvp": (Accident, lambda o: tk.jvp(_breaks(Accident), (o.vector,), (o.vector,))),
    "accident-in-vjp": (Accident, lambda o: tk.vjp(_breaks(Accident), o.vector)),
    "accident-in-vmap": (Accident, lambda o: tk.vmap(_breaks(Accident))(o.matrix)),
    "accident-in-jacfwd": (Accident, lambda o: tk.jacfwd(_breaks(Accident))(o.vector)),
    "accident-in-hessian": (Accident, lambda o: tk.hessian(_breaks(Accident))(o.vector)),
    "accident-in-checkpoint": (Accident, lambda o: tk.grad(tk.checkpoint(_breaks(Accident)))(o.vector)),
    "accident-in-a-nesting": (Accident, _in_nesting),
    "accident-in-use-backend": (Accident, _in_block),
    "interruption-in-grad": (Interruption, lambda o: tk.grad(_breaks(Interruption))(o.vector)),
    "interruption-in-jvp": (
        Interruption,
        lambda o: tk.jvp(_breaks(Interruption), (o.vector,), (o.vector,)),
    ),
    "interruption-in-vmap": (Interruption, lambda o: tk.vmap(_breaks(Interruption))(o.matrix)),
    "failing-op": (tk.errors.ShapeError, lambda o: _fails(o)(o.vector)),
    "failing-op-in-grad": (tk.errors.ShapeError, lambda o: tk.grad(_fails(o))(o.vector)),
    "failing-op-in-jvp": (tk.errors.ShapeError, lambda o: tk.jvp(_fails(o), (o.vector,), (o.vector,))),
    "failing-op-in-vmap": (tk.errors.ShapeError, lambda o: tk.vmap(_fails(o))(o.matrix)),
}
"""What goes wrong in the middle of a program, and the exception that comes out of it."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each group of mistakes, and each scenario."""
    if set(MANDATORY_DTYPES) <= set(subject.capabilities.dtypes):
        for group in dict.fromkeys(mistake.group for mistake in possible(subject)):
            yield Case("errors.survived", group)
        for scenario in SCENARIOS:
            if subject.depth != "smoke" or scenario == "accident-in-grad":
                yield Case("errors.survived", scenario)


@law("errors.survived", cases, level=4, needs=lambda case: NEEDED)
def survived(subject: Subject, case: Case) -> None:
    """After an error the same program gives the same bits, operands are unchanged, and no transform goes on.

    Be it that a call was refused, that a function of the user's raised, or that it was interrupted.
    """
    watch = Watch(subject)
    if case.op in SCENARIOS:
        error, call = SCENARIOS[case.op]
        try:
            call(watch.operands)
        except error:
            pass
        else:
            raise Failure(f"{case.op}: expected {error.__name__}, got a result")
        watch.check(case.op)
        return
    for mistake in possible(subject):
        if mistake.group == case.op:
            try:
                mistake.call(watch.operands)
            except Exception:  # noqa: BLE001, errors.refused says which it must be
                watch.check(mistake.name)


class Watch:
    """Remembers how things were, to compare with how they are."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.operands = Operands(subject)
        before = subject.call_counter.counts.copy()
        self.parts = PROGRAMS
        self.results = self._run()
        ran = {name for name, count in subject.call_counter.counts.items() if count > before[name]}
        if ran & set(subject.capabilities.nondeterministic):
            self.parts = STEADY
            self.results = self._run()
        self.choice = SELECTION.default_backend().name

    def _run(self) -> dict[str, bytes]:
        found = {}
        for name, program in self.parts.items():
            y = program(self.operands)
            found[name] = bits(self.subject.read(y))
        return found

    def check(self, after: str) -> None:
        """Compare.

        Raises:
            Failure: if anything is not as it was.
        """
        place: Any = self.subject.stack
        if interpreter_below([place], "survived") is not place:
            raise Failure(f"after {after}: a transform goes on, though its function has ended")
        if (choice := SELECTION.default_backend().name) != self.choice:
            raise Failure(f"after {after}: the backend in use was {self.choice}, it is {choice}")
        for x, values in self.operands.made:
            if bits(got := self.subject.read(x)) != bits(values):
                raise Failure(f"after {after}: an operand was {values.tolist()}, it is {got.tolist()}")
        now = self._run()
        if changed := [name for name in now if now[name] != self.results[name]]:
            raise Failure(f"after {after}: the program {changed[0]!r} gives other bits than before")


STEADY: dict[str, Callable[[Operands], Any]] = {
    "polynomial": lambda o: o.vector * o.vector + o.vector,
}
"""What runs no op that adds up, so that every backend gives the same bits again."""

PROGRAMS: dict[str, Callable[[Operands], Any]] = {
    **STEADY,
    "contraction": lambda o: tk.exp(o.matrix @ o.vector / 16.0),
    "gradient": lambda o: tk.grad(lambda x: total(tk.sin(o.matrix * x)))(o.vector),
    "batch": lambda o: tk.vmap(lambda row: row - row.max())(o.matrix),
    "ints": lambda o: (o.ints * 3 + 1) & 5,
}
"""What is computed before and after an error."""
