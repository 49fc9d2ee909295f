"""Compilers: how many programs each compiler plugin was offered and compiled, in the figures of cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tensorken_conformance.case import Result

_OFFERED, _COMPILED = "programs offered to ", "programs compiled by "


@dataclass(slots=True)
class Programs:
    """How many programs a compiler was offered, and how many of them it compiled."""

    offered: int = 0
    compiled: int = 0


def figures(counts: dict[str, Programs]) -> dict[str, float]:
    """The counts as figures of a case.

    >>> figures({"llvm": Programs(3, 2)})
    {'programs offered to llvm': 3.0, 'programs compiled by llvm': 2.0}
    """
    offered = {f"{_OFFERED}{name}": float(one.offered) for name, one in counts.items()}
    return offered | {f"{_COMPILED}{name}": float(one.compiled) for name, one in counts.items()}


def totals(results: Iterable[Result]) -> dict[str, Programs]:
    """The sums of these figures over the cases of a run."""
    sums: Counter[str] = Counter()
    for result in results:
        sums.update({name: int(n) for name, n in result.figures.items() if name.startswith("programs ")})
    names = [name.removeprefix(_OFFERED) for name in sums if name.startswith(_OFFERED)]
    return {name: Programs(sums[f"{_OFFERED}{name}"], sums[f"{_COMPILED}{name}"]) for name in names}
