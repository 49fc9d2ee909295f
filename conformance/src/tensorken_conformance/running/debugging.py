"""Debugging: a single case of a run in this process, with the traceback of what the backend raised."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Mapping
from typing import Any

from tensorken_conformance.case import Case, Failure, Measured, Result, Unsupported
from tensorken_conformance.law import Law
from tensorken_conformance.running.loading import load
from tensorken_conformance.running.plan import PlanError, law_named
from tensorken_conformance.running.worker import examined
from tensorken_conformance.subject import Depth, Subject
from tensorken_core.host.discovery import close_matches, suggested


@dataclasses.dataclass(frozen=True, slots=True)
class Again:
    """A case that was examined again.

    Attributes:
        law: of which it is.
        result: what became of it.
        traceback: where it failed, if the backend raised an exception.
        depth: of the run that has the case.
    """

    law: Law
    result: Result
    traceback: str
    depth: Depth


def examine_again(
    id: str, backend: str, seed: int = 0, options: Mapping[str, Any] | None = None, depth: Depth | None = None
) -> Again:
    """Examine one case here and now.

    Args:
        id: of the case, as reports have it.
        backend: its name.
        seed: of the run that the report is from.
        options: for what makes the backend.
        depth: of that run; None: the first of default, smoke and deep which has the case.

    Raises:
        PlanError: if there is no such law or case.
        BackendError: if there is no such backend, or it cannot be loaded.

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
    """Examine a case, and keep the traceback of an exception of the backend, be it that a law has words for it."""
    traces: list[str] = []

    def check(subject: Subject, case: Case) -> Measured | None:
        try:
            return law.check(subject, case)
        except Failure as failure:
            if failure.__context__ is not None and not isinstance(failure.__context__, Failure):
                traces.append("".join(traceback.format_exception(failure.__context__)))
            raise
        except Unsupported:
            raise
        except BaseException:
            traces.append(traceback.format_exc())
            raise

    result = examined(subject, dataclasses.replace(law, check=check), case)
    return Again(law, result, "".join(traces), depth)
