"""Calls of programs that are one function in machine code, by Python code without loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorken.programs.code import Code
from tensorken_llvm.dtypes import NUMPY
from tensorken_numpy.compiled.memory import CACHE_LINE
from tensorken_numpy.compiled.results import LARGEST, SMALLEST, ResultPool, has_reference_counts

if TYPE_CHECKING:
    from tensorken_llvm.layouts import Layout

MAX_ARRAYS = 64
"""The most arrays of a program whose call is written: for others the loops take little of the time."""


class Workspace:
    """What one call at a time uses: pools of arrays for large results, and the memory of values that are no results.

    Args:
        layout: of the program.
    """

    def __init__(self, layout: Layout) -> None:
        self.pools = {
            i: ResultPool(shape, NUMPY[dtype]).take
            for i, (shape, dtype) in enumerate(layout.results)
            if SMALLEST <= prod(shape) * NUMPY[dtype].itemsize <= LARGEST and has_reference_counts()
        }
        memory = np.empty(layout.arena_size + CACHE_LINE, np.uint8)
        self.arena = memory[-memory.ctypes.data % CACHE_LINE :]

    def results(self, layout: Layout) -> list[Any]:
        """Arrays for the results."""
        pools = self.pools
        return [
            pools[i]() if i in pools else np.empty(shape, NUMPY[dtype])
            for i, (shape, dtype) in enumerate(layout.results)
        ]


class Workspaces:
    """The workspaces of a program that no call uses.

    Args:
        layout: of the program.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._idle: list[Workspace] = []
        self.give_back = self._idle.append

    def take(self) -> Workspace:
        """One that no other call uses, until `give_back` gets it."""
        try:
            return self._idle.pop()
        except IndexError:  # all are in use
            return Workspace(self._layout)


@dataclass(frozen=True, slots=True)
class Caller:
    """Writes calls of a program.

    Args:
        layout: of the program.
        inputs: how many there are.
        run: the machine code.
        constants: of the program.
        workspaces: of the program.
        general: a function from inputs to outputs for arguments that the machine code does not take.
    """

    layout: Layout
    inputs: int
    run: Callable[..., Any]
    constants: Sequence[Any]
    workspaces: Workspaces
    general: Callable[[Sequence[Any]], Sequence[Any]]

    @property
    def can_write(self) -> bool:
        """Whether there are few arrays, and no called ops, donated inputs or outputs that are inputs."""
        layout = self.layout
        return (
            len(layout.segments) == 1
            and not layout.called
            and not layout.donated
            and self.inputs + len(self.constants) + len(layout.results) <= MAX_ARRAYS
            and all([y.array >= self.inputs for y in layout.outputs])
        )

    def function(self) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """A function from inputs to outputs."""
        code = Code()
        inputs = code.variables(self.inputs)
        code.lines.append(f"[{', '.join(inputs)}] = inputs")
        outputs = self.write(code, inputs)
        code.lines.append(f"return [{', '.join(outputs)}]")
        return code.function("inputs", "call of machine code")

    def write(self, code: Code, inputs: Sequence[str]) -> list[str]:
        """Write a call; returns the names of the outputs.

        A call has a workspace of its own if there are pools, or if another call may need the arena meanwhile.

        Args:
            code: gets the statements.
            inputs: expressions for the inputs.
        """
        layout = self.layout
        workspace, taken = self.workspaces.take(), code.variable()
        arena = code.constant(workspace.arena)
        may_overlap = layout.may_overlap or not has_reference_counts()  # free-threaded Python has no lock
        is_taken = bool(workspace.pools or (may_overlap and layout.arena_size))
        if is_taken:
            arena = code.variable()
            code.lines += [
                f"{taken} = {code.constant(self.workspaces.take)}()",
                f"{arena} = {taken}.arena",
            ]
        self.workspaces.give_back(workspace)
        results, outputs = code.variables(len(layout.results)), code.variables(len(layout.outputs))
        for i, (y, (shape, dtype)) in enumerate(zip(results, layout.results, strict=True)):
            made = f"{code.constant(np.empty)}({code.constant(shape)}, {code.constant(NUMPY[dtype])})"
            code.lines.append(f"{y} = {f'{taken}.pools[{i}]()' if i in workspace.pools else made}")
        arrays = [*inputs, *map(code.constant, self.constants), *results]
        found = code.variable()
        code.lines.append(f"{found} = {code.constant(self.run)}({', '.join([*arrays, arena])})")
        if is_taken:
            code.lines.append(f"{code.constant(self.workspaces.give_back)}({taken})")
        code.lines.append(f"if {found} is {arena}:")
        for name, output in zip(outputs, layout.outputs, strict=True):
            reshaped = f".reshape({code.constant(output.shape)})" if output.is_reshaped else ""
            code.lines.append(f"    {name} = {arrays[output.array]}{reshaped}")
        given = ", ".join(inputs)
        code.lines += ["else:", f"    [{', '.join(outputs)}] = {code.constant(self.general)}([{given}])"]
        return outputs
