"""errors.survived: after an error all state is as before, and the next program gives the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import tensorken as tk
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.errors.mistakes import Operands, total
from tensorken_conformance.laws.errors.refused import NEEDED, possible
from tensorken_conformance.levels import MANDATORY_DTYPES
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.host.registry import SELECTION
from tensorken_core.tensor.level import interpreter_below

Function = Callable[[Any], Any]


class Accident(Exception):
    """An exception of a function of the user."""


class Interruption(BaseException):
    """An exception from outside the program, such as KeyboardInterrupt."""


def _breaks(error: type[BaseException]) -> Function:
    """A function that computes, and then raises."""

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


def _in_callback(o: Operands) -> None:
    """An exception of a callback leaves a compiled program in its middle; then the same program runs again."""
    fails = [True]

    def host(x: Any) -> Any:
        if fails:
            raise Accident("in the middle")
        return x

    def f(x: Any) -> Any:
        y = x * 2.0 + x
        return (tk.pure_callback(host, y, y) - x) * y, y

    compiled = tk.jit(f)
    try:
        compiled(o.vector)
    finally:
        fails.clear()
        with tk.disable_jit():
            expected = [y.tolist() for y in f(o.vector)]
        got = [y.tolist() for y in compiled(o.vector)]
        if got != expected:
            raise Failure(f"the program after an exception of its callback: expected {expected}, got {got}")


UNDER: dict[str, Callable[[Function, Operands], Any]] = {
    "": lambda f, o: f(o.vector),
    "-in-grad": lambda f, o: tk.grad(f)(o.vector),
    "-in-jvp": lambda f, o: tk.jvp(f, (o.vector,), (o.vector,)),
    "-in-vjp": lambda f, o: tk.vjp(f, o.vector),
    "-in-vmap": lambda f, o: tk.vmap(f)(o.matrix),
    "-in-jacfwd": lambda f, o: tk.jacfwd(f)(o.vector),
    "-in-hessian": lambda f, o: tk.hessian(f)(o.vector),
    "-in-checkpoint": lambda f, o: tk.grad(tk.checkpoint(f))(o.vector),
}
"""The transforms that call a function."""

Scenario = tuple[type[BaseException], Callable[[Operands], Any]]


def _scenarios(
    name: str, error: type[BaseException], function: Callable[[Operands], Function], *under: str
) -> dict[str, Scenario]:
    """A function that raises an error, called under each of some transforms."""

    def call(where: str, o: Operands) -> Any:
        return UNDER[where](function(o), o)

    return {name + where: (error, partial(call, where)) for where in under}


SCENARIOS: dict[str, Scenario] = {
    **_scenarios("accident", Accident, lambda o: _breaks(Accident), *UNDER),
    "accident-in-a-nesting": (Accident, _in_nesting),
    "accident-in-use-backend": (Accident, _in_block),
    "accident-in-a-callback": (Accident, _in_callback),
    **_scenarios(
        "interruption", Interruption, lambda o: _breaks(Interruption), "-in-grad", "-in-jvp", "-in-vmap"
    ),
    **_scenarios("failing-op", tk.errors.ShapeError, _fails, "", "-in-grad", "-in-jvp", "-in-vmap"),
}
"""Errors in the middle of a program: the exception that leaves it, and the call."""


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
    """After an error the same program gives the same bits, operands are unchanged, and no transform is active.

    The error is a refused call, an exception of the user's function, or an interruption.
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
    """Records state, and compares it with later state."""

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

    def _run(self) -> dict[str, Array]:
        return {name: self.subject.read(program(self.operands)) for name, program in self.parts.items()}

    def check(self, after: str) -> None:
        """Compare.

        Raises:
            Failure: if anything has changed.
        """
        interpreter: Any = self.subject.stack
        if interpreter_below([interpreter], "survived") is not interpreter:
            raise Failure(f"after {after}: a transform goes on, though its function has ended")
        if (choice := SELECTION.default_backend().name) != self.choice:
            raise Failure(f"after {after}: the backend in use was {self.choice}, it is {choice}")
        for x, values in self.operands.made:
            exact.agree(self.subject, x, values, f"after {after}: an operand has changed")
        for name, y in self._run().items():
            exact.same(y, self.results[name], f"after {after}: the program {name!r} gives other bits")


STEADY: dict[str, Callable[[Operands], Any]] = {"polynomial": lambda o: o.vector * o.vector + o.vector}
"""Programs without sums, so that every backend gives the same bits again."""

PROGRAMS: dict[str, Callable[[Operands], Any]] = {
    **STEADY,
    "contraction": lambda o: tk.exp(o.matrix @ o.vector / 16.0),
    "gradient": lambda o: tk.grad(lambda x: total(tk.sin(o.matrix * x)))(o.vector),
    "batch": lambda o: tk.vmap(lambda row: row - row.max())(o.matrix),
    "ints": lambda o: (o.ints * 3 + 1) & 5,
}
"""Programs that run before and after an error."""
