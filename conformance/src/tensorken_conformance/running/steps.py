"""Steps: the ops that a failing case ran on the backend, as Python that runs without the kit."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tensorken_conformance.case import Case, Unsupported
from tensorken_conformance.law import Law
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DType
from tensorken_core.language.observe import observe, unobserve
from tensorken_core.language.op import Op

MOST_ELEMENTS = 64
"""The largest number of elements of all operands that a script shows."""

MOST_STEPS = 12
"""The largest number of ops in a script."""

LONGEST = 200
"""The number of characters of the message at the end of a script."""

IMPORTS = {
    "resolve(": "from tensorken_core.host.registry import resolve",
    "named(": "import tensorken; from tensorken_core.language.op import named, run",
    "DTYPES[": "from tensorken_core.language.dtypes import DTYPES",
    "inf": "from math import inf",
    "nan": "from math import nan",
}
"""By a part of a script the import that it needs."""


@dataclass(slots=True)
class Step:
    """An op that ran on the backend: its operands and results by the numbers of values."""

    op: Op
    operands: tuple[int, ...]
    params: tuple[Any, ...]
    results: tuple[int, ...] = ()
    is_one: bool = True


class Recorder:
    """An observer that records the ops of the backend, and the values that it was given.

    Args:
        backend: the bare backend.

    Attributes:
        steps: the ops, in their order.
        made: by the number of a value that no op made, the text that makes it; None if it is too large.
        last: the number of the value that was read last; None if none was.
    """

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.steps: list[Step] = []
        self.made: dict[int, str | None] = {}
        self.last: int | None = None
        self._values: list[Any] = []  # kept, so that no two have one id
        self._numbers: dict[int, int] = {}
        self._thread = threading.get_ident()
        self._is_within = False
        self.is_whole = True  # whether one thread ran all ops

    def __call__(
        self, proceed: Any, interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...]
    ) -> Any:
        if interpreter is not self.backend or self._is_within:
            return proceed(interpreter, op, operands, params)
        self.is_whole &= threading.get_ident() == self._thread
        self._is_within = True
        try:
            step = Step(op, tuple([self._number(x) for x in operands]), params)
            self.steps.append(step)
            result = proceed(interpreter, op, operands, params)
            step.is_one = not isinstance(result, tuple) or op.results == 1
            step.results = tuple([self._new(y) for y in ((result,) if step.is_one else result)])
            return result
        finally:
            self._is_within = False

    def read(self, x: Any) -> None:
        """Note that a value was read."""
        self.last = self._number(x)

    def value(self, number: int) -> Any:
        """The representation of a number."""
        return self._values[number]

    def _new(self, x: Any) -> int:
        self._values.append(x)
        self._numbers[id(x)] = number = len(self._values) - 1
        return number

    def _number(self, x: Any) -> int:
        if id(x) in self._numbers:
            return self._numbers[id(x)]
        number = self._new(x)
        shape, dtype = tuple(self.backend.shape(x)), self.backend.dtype(x)
        small = math.prod(shape) <= MOST_ELEMENTS
        numbers = ", ".join(map(str, self.backend.ravel(x))) if small else None
        self.made[number] = None if numbers is None else f"raw.new({shape}, [{numbers}], {_text(dtype)})"
        return number


@contextmanager
def recorded(subject: Subject) -> Iterator[Recorder]:
    """Record the ops of a subject's backend within the block."""
    recorder = Recorder(subject.backend)
    observe(recorder)
    subject.call_counter.reads = recorder.read
    try:
        yield recorder
    finally:
        subject.call_counter.reads = None
        unobserve(recorder)


def script_of_steps(subject: Subject, law: Law, case: Case, says: str) -> tuple[str, ...]:
    """Python that runs the ops of a failing case up to the value that was read last, or to the op that raised.

    It is empty if the value cannot be shown so: operands are too large, programs or threads ran, or the ops alone
    give another result.
    """
    raised = False
    with recorded(subject) as recorder:
        try:
            law.check(subject, case)
        except (KeyboardInterrupt, SystemExit, Unsupported):
            return ()
        except BaseException:  # noqa: BLE001, the failure that is shown
            raised = bool(recorder.steps) and not recorder.steps[-1].results
        else:
            return ()
    if not recorder.is_whole:
        return ()
    target = None if raised else recorder.last
    needed = _needed(recorder.steps, target, raised)
    if not needed:
        return ()
    lines = _lines(subject.name, recorder, needed, target, " ".join(says.split())[:LONGEST])
    return lines if lines and _gives(recorder, lines, target) else ()


def _needed(steps: Sequence[Step], target: int | None, raised: bool) -> list[Step]:
    """The steps that make a value, or the last step and those that make its operands."""
    wanted = set(steps[-1].operands) if raised else {target}
    found = [steps[-1]] if raised else []
    for step in reversed(steps[:-1] if raised else steps):
        if wanted & set(step.results):
            wanted |= set(step.operands)
            found.append(step)
    return found[::-1]


def _lines(
    name: str, recorder: Recorder, steps: Sequence[Step], target: int | None, says: str
) -> tuple[str, ...]:
    """The script; empty if it would be too long or has params that no text makes."""
    made = {x for step in steps for x in step.results}
    given = list(dict.fromkeys([x for step in steps for x in step.operands if x not in made]))
    texts = [recorder.made.get(x) for x in given]
    calls = [_call(step) for step in steps]
    if len(steps) > MOST_STEPS or None in texts or None in calls:
        return ()
    if sum([math.prod(recorder.backend.shape(recorder.value(x))) for x in given]) > MOST_ELEMENTS:
        return ()
    lines = [
        f"raw = resolve({name!r}); raw = getattr(raw, 'raw', raw)  # the bare backend",
        "; ".join([f"x{x} = {text}" for x, text in zip(given, texts, strict=True)]),
        "; ".join([str(call) for call in calls[: None if target is not None else -1]]),
    ]
    results = ', "and", '.join([f"*raw.ravel(x{x})" for x in steps[-1].results])
    last = calls[-1] if target is None else f"print({results})"
    text = "\n".join(lines)
    imports = "; ".join([line for part, line in IMPORTS.items() if part in f"{text}{last}"])
    return tuple([line for line in (imports, *lines, f"{last}  # {says}") if line])


def _call(step: Step) -> str | None:
    """The call of an op as text; None if a param has no text."""
    params = [_text(p) for p in step.params]
    if None in params:
        return None
    operands = ", ".join([f"x{x}" for x in step.operands])
    call = (
        f'run(raw, named("{step.op.name}"), [{operands}], ({"".join([f"{p}, " for p in params]).rstrip()}))'
    )
    if not step.results:
        return call
    comma = "" if step.is_one else ","
    return f"{', '.join([f'x{x}' for x in step.results])}{comma if len(step.results) == 1 else ''} = {call}"


def _text(param: Any) -> str | None:
    """The text of a param; None if there is none."""
    if isinstance(param, DType):
        return f'DTYPES["{param.name}"]'
    if isinstance(param, tuple):
        parts = [_text(p) for p in param]
        return None if None in parts else f"({''.join([f'{p}, ' for p in parts]).rstrip()})"
    return repr(param) if isinstance(param, bool | int | float | str | type(None)) else None


def _gives(recorder: Recorder, lines: Sequence[str], target: int | None) -> bool:
    """Whether the lines give the recorded value again, or raise."""
    names: dict[str, Any] = {}
    try:
        exec("\n".join(lines[:-1]), names)
        if target is None:
            exec(lines[-1], names)
            return False
        again, before = (
            names["raw"].ravel(names[f"x{target}"]),
            recorder.backend.ravel(recorder.value(target)),
        )
        return repr(list(again)) == repr(list(before))
    except Exception:  # noqa: BLE001, whatever a backend raises
        return target is None
