"""Write the Python function of a program: the lines of each scheduled unit, in order."""

from __future__ import annotations

from collections.abc import Sequence

from tensorken_numpy.arrays import Array
from tensorken_numpy.compiled.blocks import write_group
from tensorken_numpy.compiled.emitter import Emitter
from tensorken_numpy.compiled.equations import write_equation
from tensorken_numpy.compiled.schedule import FusionGroup


def write_function(emitter: Emitter, inputs: Sequence[Array]) -> None:
    """Write all lines of the function, for inputs with these layouts."""
    emitter.begin(inputs)
    for step, unit in enumerate(emitter.units):
        emitter.step = step
        if isinstance(unit, FusionGroup):
            write_group(emitter, unit)
        else:
            write_equation(emitter, unit)
        emitter.end_step()
    emitter.finish()
