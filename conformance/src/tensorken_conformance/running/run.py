"""Run: examine a backend, in worker processes or in this one, where a debugger reaches it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence

from tensorken_conformance.backends.loading import OptionsError, load
from tensorken_conformance.case import Case, Result
from tensorken_conformance.running.options import ENDED, Options, Run, RunError, Tell
from tensorken_conformance.running.plan import Plan, check_select, stage_of
from tensorken_conformance.running.runner import examine_apart
from tensorken_conformance.running.worker import examined, introduction
from tensorken_core.errors import BackendError, UnknownBackendError


def run(
    options: Options,
    tell: Tell = lambda result: None,
    begun: Callable[[Run], None] = lambda outcome: None,
    earlier: Sequence[Result] = (),
) -> Run:
    """Examine a backend.  Ctrl-C, or a spent budget, ends the run early, and keeps its results.

    Args:
        options: the settings of the run.
        tell: receives each result at once.
        begun: called with the run before its first case.
        earlier: the results of a run that this one resumes; their cases do not run again.

    Raises:
        RunError: if the backend or a law is unknown.
    """
    check_select(options.select, ":" in options.backend)
    outcome = Run(options, results=[*earlier], begun=begun)
    try:
        (examine_here if options.in_process else examine_apart)(outcome, tell)
    except KeyboardInterrupt:
        outcome.partial = ENDED
    outcome.seconds = time.monotonic() - outcome.began
    return outcome


def examine_here(outcome: Run, tell: Callable[[Result], None]) -> None:
    """Examine a backend in this process; the results are those of worker processes, unless a case crashes."""
    options = outcome.options
    try:
        subject = load(options.backend, options.options, options.seed, options.depth)
        plan = Plan(subject, options.select, outcome.ids, options.turns)
    except (UnknownBackendError, OptionsError) as error:
        raise RunError(str(error)) from error
    except BackendError as error:
        outcome.results.append(Result(Case("host.load", "load"), "failed", 0, str(error)))
        return
    outcome.take(introduction(plan, options.options))
    outcome.planned = len(outcome.results) + plan.count()
    failed = set(outcome.failed)
    known = frozenset(failed)
    stage = 0
    places: dict[str, int] = {}
    for turn, law in itertools.product(range(options.turns), plan.laws):
        if stage_of(law) != stage:
            stage, known = stage_of(law), frozenset(failed)
        for place, case in plan.part(law, turn, options.turns):
            if outcome.is_over_budget:
                outcome.end_at_budget()
                break
            result = examined(subject, law, case, known)
            places[case.id] = place
            outcome.results.append(result)
            if result.status in ("failed", "crashed"):
                failed.add(result.case.id)
            tell(result)
    outcome.put_in_order(places)
