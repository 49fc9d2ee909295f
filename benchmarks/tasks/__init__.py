"""The benchmark tasks, written with numpy's names for all libraries; see libraries/ for the adapters."""

from __future__ import annotations

from tasks import arrays, derivatives, loops, networks, small
from tasks.case import CASES, Case

__all__ = ["TASKS", "Case"]

TASKS = {
    name: case
    for module in (small, arrays, networks, derivatives, loops)
    for name, case in CASES.items()
    if case.make.__module__ == module.__name__
}
