"""The conformance kit of Tensorken: test that a backend is correct, and that the kit detects faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["check"]


if TYPE_CHECKING:
    from tensorken_conformance.subject import Depth


def check(case: str, backend: str, seed: int = 0, depth: Depth | None = None) -> None:
    """Examine one case of a report again, and print the result and the traceback of the backend's exception, if any.

    Args:
        case: the id of the case, as reports have it.
        backend: the name of the backend.
        seed: the seed of the run of the report.
        depth: `smoke`, `default` or `deep`, as in that run; None: the first of default, smoke and deep with the case.

    Raises:
        ValueError: if the case is unknown.
        BackendError: if the backend is unknown, or cannot be loaded.

    >>> check("values.read-back/new/float32/small", backend="reference")
    passed
    """
    from tensorken_conformance.output import say
    from tensorken_conformance.running.debugging import examine_again

    again = examine_again(case, backend, seed, depth=depth)
    say(": ".join(filter(None, (again.result.status, again.result.says))))
    if again.traceback:
        say(f"\n{again.traceback.rstrip()}")
