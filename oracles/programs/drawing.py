"""Drawing: the program of a seed."""

from __future__ import annotations

from collections.abc import Callable

from oracles.programs.draft import Draft, Refused
from oracles.programs.steps import ROWS
from oracles.programs.steps.row import Row

STEPS = (4, 14)
SMOOTH_STEPS = (2, 6)


def drawn(seed: int, rows: Callable[[Row], bool] | None = None) -> Draft:
    """The program of a seed; every third is one whose derivatives are compared.

    If Tensorken refuses a step, that is the last one, and the draft has the error.
    """
    smooth = seed % 3 == 2
    d = Draft(seed, smooth)
    table = [row for row in ROWS if (row.smooth or not smooth) and (rows is None or rows(row))]
    weights = [row.weight for row in table]
    if smooth:  # the loss depends on at least these
        d.leaf(d.choice(((3,), (2, 3), (3, 3))), "float64")
    count = d.random.randint(*(SMOOTH_STEPS if smooth else STEPS))
    try:
        for _ in range(4 * count):
            (row,) = d.random.choices(table, weights)
            text = row.draw(d)
            if text is not None:
                d.add(row.name, text, row.exact)
            if sum(step.row != "lying" for step in d.steps) >= count:
                break
    except Refused:
        pass
    return d
