"""errors.refused: an invalid call raises the exception of the language, with one line that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorken_conformance.backends.loading import record_of
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law, reading_back
from tensorken_conformance.laws.errors import of_shapes, of_uses  # noqa: F401, they fill the table
from tensorken_conformance.laws.errors.mistakes import BUILT_IN, MISTAKES, Mistake, Operands
from tensorken_conformance.levels import MANDATORY_DTYPES
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DTYPES

LONGEST = 300
"""The most characters of the line of a message, without the name of the backend."""

LINES = 8
"""The most lines of a message that lists alternatives."""


def possible(subject: Subject) -> list[Mistake]:
    """The mistakes that can be made on a backend; none without the dtypes that level 1 requires."""
    declared = subject.capabilities.dtypes
    if not set(MANDATORY_DTYPES) <= set(declared):
        return []
    holds: dict[str, Callable[[], bool]] = {
        "": lambda: True,
        "absent": lambda: len(declared) < len(DTYPES),
        "installed": lambda: record_of(subject.name) is not None,
    }
    return [mistake for mistake in MISTAKES.values() if holds[mistake.where]()]


def cases(subject: Subject) -> Iterator[Case]:
    """Each mistake; in the smoke run the first of each group."""
    groups: set[str] = set()
    for mistake in possible(subject):
        if subject.depth != "smoke" or mistake.group not in groups:
            groups.add(mistake.group)
            yield Case("errors.refused", mistake.name)


NEEDED = tuple([reading_back(dtype) for dtype in MANDATORY_DTYPES])
"""The cases on which all operands depend."""


@law("errors.refused", cases, level=4, needs=lambda case: NEEDED)
def refused(subject: Subject, case: Case) -> None:
    """An invalid call raises the exception of the language, with the op and the conflicting operands in one line.

    The class is exact, and derives from the built-in exceptions that users catch; where the error depends on the
    backend, the message names it.
    """
    operands = Operands(subject)
    operands.number  # noqa: B018, made on the backend, so that the case is about it
    refuse(MISTAKES[case.op], operands)


def refuse(mistake: Mistake, operands: Operands) -> None:
    """Make a mistake, and check the exception.

    Raises:
        Failure: if it is not the specified one.
    """
    expected = f"{mistake.name}: expected {mistake.error.__name__}"
    try:
        result = mistake.call(operands)
    except Exception as error:  # noqa: BLE001, the class is compared
        answer = error
    else:
        raise Failure(f"{expected}, got {_described(result)}")
    text = str(answer)
    lines = text.splitlines() or [""]
    if type(answer) is not mistake.error:
        raise Failure(f"{expected}, got {type(answer).__name__}: {lines[0][:200]}")
    if missing := [kind.__name__ for kind in BUILT_IN[mistake.error] if not isinstance(answer, kind)]:
        raise Failure(f"{expected} that derives from {missing[0]}, got {type(answer).__mro__}")
    if len(lines) > (LINES if mistake.listing else 1):
        raise Failure(f"{expected} in {LINES if mistake.listing else 1} lines, got {len(lines)}: {text!r}")
    names = (repr(operands.place), operands.subject.name)
    if len(lines[0]) > LONGEST + max(map(len, names)):
        raise Failure(f"{expected} in {LONGEST} characters, got {len(lines[0])}: {lines[0]!r}")
    if not lines[0].startswith(str(mistake.words[0])):
        raise Failure(f"{expected} whose message begins with {mistake.words[0]!r}, got {lines[0]!r}")
    place = 0
    for words in mistake.words:
        ends = [place]
        for word in (words,) if isinstance(words, str) else words:
            forms = _forms(word, operands)
            found = [at + len(form) for form in forms if (at := lines[0].find(form, place)) >= 0]
            if not found:
                raise Failure(f"{expected} that says {forms[0]!r} in its place, got {lines[0]!r}")
            ends.append(min(found))
        place = max(ends)


def _forms(word: str, operands: Operands) -> list[str]:
    """The words that may replace a placeholder: for a backend the name by which it was selected, or its repr."""
    subject = operands.subject
    if word == "{backend}":
        return [repr(operands.place), subject.name]
    if word == "{name}":
        return [subject.name.partition(":")[0].strip()]
    if word == "{absent}":
        return [operands.absent]
    if word == "{dtypes}":
        return [", ".join(subject.capabilities.dtypes)]
    return [word]


def _described(result: Any) -> str:
    try:
        return f"a result: {' '.join(repr(result).split())[:100]}"
    except Exception:  # noqa: BLE001, it is enough that there is one
        return f"a {type(result).__name__}"
