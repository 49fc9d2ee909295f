"""Drawing: the program of a seed."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from core.tests.random_programs.draft import Draft, Refused
from core.tests.random_programs.steps import ROWS
from core.tests.random_programs.steps.row import Row

STEPS = (4, 14)
SMOOTH_STEPS = (2, 6)


def drawn(
    seed: int,
    smooth: bool | None = None,
    whole: bool = False,
    weight: Callable[[Row], float] = attrgetter("weight"),
    wide: bool = False,
) -> Draft:
    """The program of a seed.

    If Tensorken refuses a step, that is the last one, and the draft has the error.  A wide program goes on without
    the steps that Tensorken refuses with an error of its own.

    Args:
        seed: of all that is drawn.
        smooth: whether derivatives can be compared; by default for every third seed.
        whole: whether all numbers are small integers, so that nothing is rounded.
        weight: the relative frequency of each kind of step.
        wide: whether values have any dtype, and arguments may be Python numbers.
    """
    smooth = seed % 3 == 2 if smooth is None else smooth
    d = Draft(seed, smooth, whole, wide)
    table = [row for row in ROWS if row.fits(smooth, whole, wide)]
    weights = [weight(row) for row in table]
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
