"""Debugging: examine one case in this process, with the traceback of the backend's exception."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Mapping
from typing import Any

from tensorken_conformance.backends.loading import load
from tensorken_conformance.case import Case, Failure, Measured, Result, Unsupported
from tensorken_conformance.law import Law
from tensorken_conformance.running.plan import PlanError, law_named
from tensorken_conformance.running.worker import examined
from tensorken_conformance.subject import Depth, Subject
from tensorken_core.host.discovery import close_matches, suggested


@dataclasses.dataclass(frozen=True, slots=True)
class Again:
    """A case that was examined again: its law, the new result, the backend's traceback, if any, and the depth."""

    law: Law
    result: Result
    traceback: str
    depth: Depth


def examine_again(
    id: str, backend: str, seed: int = 0, options: Mapping[str, Any] | None = None, depth: Depth | None = None
) -> Again:
    """Examine one case in this process.

    Args:
        id: the id of the case, as reports have it.
        backend: the name of the backend.
        seed: the seed of the run of the report.
        options: arguments of the backend's factory.
        depth: the depth of that run; None: the first of default, smoke and deep that has the case.

    Raises:
        PlanError: if the law or the case is unknown.
        BackendError: if the backend is unknown, or cannot be loaded.

    >>> examine_again("values.read-back/new/float32/small", "numpy").result.status
    'passed'
    """
    law = law_named(id.partition("/")[0])
    depths: tuple[Depth, ...] = (depth,) if depth else ("default", "smoke", "deep")
    known: list[str] = []
    for tried in depths:
        subject = load(backend, options, seed, tried)
        for case in law.cases(subject):
            if case.id == id.strip():
                return _recorded(subject, law, case, tried)
            known.append(case.id)
    raise PlanError(f"backend {backend!r} has no case {id!r}{suggested(close_matches(id, set(known)))}")


def _recorded(subject: Subject, law: Law, case: Case, depth: Depth) -> Again:
    """Examine a case, and keep the traceback of the backend's exception, also if the law handled it."""
    traces: list[str] = []

    def check(subject: Subject, case: Case) -> Measured | None:
        try:
            return law.check(subject, case)
        except Failure as failure:
            if failure.__context__ is not None and not isinstance(failure.__context__, Failure):
                traces.append("".join(traceback.format_exception(failure.__context__)))
            raise
        except BaseException as error:
            if not isinstance(error, Unsupported):
                traces.append(traceback.format_exc())
            raise

    result = examined(subject, dataclasses.replace(law, check=check), case)
    return Again(law, result, "".join(traces), depth)
