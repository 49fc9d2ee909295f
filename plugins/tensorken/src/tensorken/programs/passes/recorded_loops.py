"""Recorded loops: loops in the bodies of ops as `scan` equations, for backends that run all steps as one program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from tensorken_core.language.dtypes import int32
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Program, Variable

MIN_STEPS = 8
"""The fewest steps of a loop that is recorded; fewer are written one after the other."""


@runtime_checkable
class RecordsLoops(Protocol):
    """A backend that may run all steps of a `scan` as one program."""

    @property
    def scan(self) -> Op | None:
        """The op `scan`; None if each step is a program."""


def scan_of(backend: Any) -> Op | None:
    """The op `scan` if a backend runs all its steps as one program, else None."""
    return backend.scan if isinstance(backend, RecordsLoops) else None


def scan_equation(
    writer: RawTensor[Variable],
    scan: Op,
    program: Program,
    carry: Sequence[Variable],
    steps: Sequence[Sequence[Variable | int]],
) -> Equation:
    """The equation of a loop: its results are the last carry, then each output of the steps, stacked.

    Args:
        writer: writes the equations of the operands.
        scan: the op.
        program: of a step, from the carry and the inputs of the step to the next carry and its outputs.
        carry: the initial carry.
        steps: for each step its inputs.
    """
    operands = [*carry]
    of_inputs: list[Any] = ["carry"] * len(carry)
    for column in zip(*steps, strict=True):
        first = column[0]
        if isinstance(first, Variable) and all([x is first for x in column]):
            operands.append(first)
            of_inputs.append("constant")
        else:
            operands.append(_stacked(writer, column))
            of_inputs.append(0)
    outputs: list[Any] = ["carry"] * len(carry) + [0] * (len(program.outputs) - len(carry))
    params = (program, tuple(of_inputs), tuple(outputs), len(steps), False)
    shapes = [v.shape if i < len(carry) else (len(steps), *v.shape) for i, v in enumerate(program.outputs)]
    results = [Variable(shape, v.dtype) for shape, v in zip(shapes, program.outputs, strict=True)]
    return Equation(scan, tuple(operands), params, tuple(results))


def _stacked(writer: RawTensor[Variable], column: Sequence[Variable | int]) -> Variable:
    """The inputs of all steps along a new first axis; inputs that repeat are stacked once."""
    if all([isinstance(x, int) for x in column]):
        return writer.new((len(column), 1), [*column], int32)
    period = next(
        p
        for p in range(1, len(column) + 1)
        if len(column) % p == 0 and all([x is column[i % p] for i, x in enumerate(column)])
    )
    first: Any = column[0]
    rows: list[Variable] = [run(writer, OPS["reshape"], (x,), ((1, *first.shape),)) for x in column[:period]]
    while len(rows) > 1:  # pairs, so that no value is copied more often than the logarithm of their number
        rows = [
            run(writer, OPS["concatenate"], rows[i : i + 2], (0,)) if len(rows[i : i + 2]) == 2 else rows[i]
            for i in range(0, len(rows), 2)
        ]
    repeats = len(column) // period
    if repeats == 1:
        return rows[0]
    once = run(writer, OPS["reshape"], (rows[0],), ((1, period, *first.shape),))
    repeated = run(writer, OPS["expand"], (once,), ((repeats, period, *first.shape),))
    result: Variable = run(writer, OPS["reshape"], (repeated,), ((len(column), *first.shape),))
    return result
