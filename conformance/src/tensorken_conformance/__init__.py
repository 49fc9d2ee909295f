"""The conformance kit of Tensorken: proves a backend right, and its own power of doing so."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["check"]


if TYPE_CHECKING:
    from tensorken_conformance.subject import Depth


def check(case: str, backend: str, seed: int = 0, depth: Depth | None = None) -> None:
    """Run one case of a report again, here and now, and print what became of it.

    If the backend raised an exception, its traceback is printed, too.

    Args:
        case: its id, as reports have it.
        backend: the name of the backend.
        seed: of the run that the report is from.
        depth: of that run: `smoke`, `default` or `deep`; None: the first of default, smoke and deep which has the case.

    Raises:
        ValueError: if there is no such case.
        BackendError: if there is no such backend, or it cannot be loaded.

    >>> check("values.read-back/new/float32/small", backend="reference")
    passed
    """
    from tensorken_conformance.cli import say
    from tensorken_conformance.running.debugging import examine_again

    again = examine_again(case, backend, seed, depth=depth)
    say(": ".join(filter(None, (again.result.status, again.result.says))))
    if again.traceback:
        say(f"\n{again.traceback.rstrip()}")
