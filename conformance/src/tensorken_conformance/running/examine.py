"""Examine: run one case of any law on a subject."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Collection, Container

from tensorken.programs.execution import failing_compilers
from tensorken_conformance.case import Case, Failure, Measured, Result, Status, Unsupported, script_of
from tensorken_conformance.law import LAWS, Law
from tensorken_conformance.running.bodies import cause_in_body
from tensorken_conformance.running.steps import script_of_steps
from tensorken_conformance.subject import Subject
from tensorken_core.errors import RetraceWarning, TensorkenError
from tensorken_core.language.dtypes import DTYPES

HOST_LAWS = "host"
"""The group of laws that need not run ops on the backend."""


SHOWN = 5
"""The number of failing cases of a law whose steps are shown."""

ABOUT_MISSING_OPS = ("declarations.levels", "declarations.refuses")
"""The laws on missing ops: the first one fails for each op that is missing and not declared unsupported."""


def laws_for(subject: Subject, select: Collection[str] = ()) -> list[Law]:
    """The laws for a subject, those of lower stages first; `select` has ids or groups (empty: all).

    Raises:
        ValueError: if `select` names an unknown law.
    """
    import tensorken_conformance.laws  # noqa: F401, importing it registers the laws

    for name in select:
        if not any(name in (law.id, law.group) for law in LAWS.values()):
            raise ValueError(f"there is no law {name!r}; the laws are {', '.join(LAWS)}")
    symbolic = subject.capabilities.symbolic
    chosen = [
        law
        for law in LAWS.values()
        if (law.group == HOST_LAWS or law.symbolic == symbolic)
        and (not select or law.id in select or law.group in select)
    ]
    return sorted(chosen, key=lambda law: law.stage)


def examine(subject: Subject, law: Law, case: Case, failed: Container[str] = ()) -> Result:
    """Check one case.

    A case is blocked if a case that it needs is among the ids of `failed`.  A case that fails because the backend lacks
    an op is blocked by the case on the missing op.
    """
    level = law.level(case)
    blocked = next((need for need in law.needs(case) if need in failed), None)
    if blocked:
        return Result(case, "failed", level, f"blocked by {blocked}")
    if law.group not in (HOST_LAWS, "declarations") and case.dtype:
        reason = subject.capabilities.why_not(case.op, case.dtype)
        if reason:
            return Result(case, "unsupported", level, reason)
    subject.call_counter.missing.clear()
    before, start = subject.call_counter.calls, time.perf_counter()
    status: Status = "passed"
    measured: Measured | None = None
    says = cause = ""
    script: tuple[str, ...] = ()
    try:
        with warnings.catch_warnings(), failing_compilers():
            warnings.simplefilter("ignore", RetraceWarning)  # laws compile many functions
            measured = law.check(subject, case)
    except Unsupported as outcome:
        ours, says = _ours(outcome), str(outcome)
        status, says = ("unsupported", says) if ours else ("failed", f"not the backend's to say: {says}")
    except Failure as failure:
        status, says, measured = "failed", failure.says, Measured(failure.ulp, failure.worst)
        script = tuple(failure.script) or default_script(subject, case)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001, whatever a backend raises is a result
        kind = type(error).__name__
        expected = "; expected a result" if isinstance(error, TensorkenError) else ""
        says = f"{kind}: {' '.join(str(error).split())}{expected}"
        cause = cause_of(error)
        status, script = "failed", default_script(subject, case)
    seconds, calls = time.perf_counter() - start, subject.call_counter.calls - before
    if status == "passed" and not calls and law.group != HOST_LAWS:
        status, says = "failed", "nothing ran on the backend, so this proves nothing"
        script = default_script(subject, case)
    if status == "failed" and (missing := _missing(subject, law, case, failed)):
        return Result(case, status, level, f"blocked by {missing}", calls=calls, seconds=seconds)
    if (
        status == "failed"
        and script == default_script(subject, case)
        and _may_be_shown(subject, law, seconds)
    ):
        script = script_of_steps(subject, law, case, says) or script
    if status == "failed":
        found, why = cause_in_body(subject, law, case, seconds)
        cause, says = cause or found, f"{says}; {why}" if why else says
    measured = measured or Measured()
    return Result(
        case,
        status,
        level,
        says,
        script,
        measured.ulp,
        measured.worst,
        measured.figures,
        calls,
        seconds,
        cause,
    )


def _may_be_shown(subject: Subject, law: Law, seconds: float) -> bool:
    """Whether a failing case is examined again for its steps: a short one, and few of each law."""
    subject.shown[law.id] += 1
    return law.group != HOST_LAWS and seconds < 2.0 and subject.shown[law.id] <= SHOWN


def cause_of(error: BaseException) -> str:
    """The class of an exception, and the line that raised it.

    >>> import json
    >>> try:
    ...     json.loads("")
    ... except ValueError as error:
    ...     cause_of(error).partition(" in line ")[0]
    'JSONDecodeError raised by json.decoder'
    """
    frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
    return f"{type(error).__name__} raised by {frame.f_globals.get('__name__', '?')} in line {line}"


def _missing(subject: Subject, law: Law, case: Case, failed: Container[str]) -> str:
    """The failed case on an op that is missing and that the backend was asked to run; empty if there is none."""
    if law.id in ABOUT_MISSING_OPS:
        return ""
    dtypes = [case.dtype, *(dtype for dtype in DTYPES if dtype != case.dtype)]
    ids = (
        Case(ABOUT_MISSING_OPS[0], op, d).id for op in sorted(subject.call_counter.missing) for d in dtypes
    )
    return next((id for id in ids if id in failed), "")


def _ours(outcome: BaseException) -> bool:
    """Whether the kit raised this exception; a backend that raises it must not excuse itself."""
    innermost = list(traceback.walk_tb(outcome.__traceback__))[-1][0]
    return str(innermost.f_globals.get("__name__", "")).startswith("tensorken_conformance.")


def default_script(subject: Subject, case: Case) -> tuple[str, ...]:
    """Python that examines a case again."""
    return script_of(case, subject.name, subject.seed, subject.depth)
