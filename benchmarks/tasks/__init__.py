"""The work that is measured, written once for all libraries that have numpy's names; the rest is in libraries/."""

from __future__ import annotations

from tasks import arrays, derivatives, networks, small
from tasks.case import Case, entered

__all__ = ["TASKS", "Case"]

TASKS = {
    name: case
    for room in (small, arrays, networks, derivatives)
    for name, case in entered.items()
    if case.make.__module__ == room.__name__
}
