"""Calls of programs that are one function in machine code, by Python code without loops: half a microsecond."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

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


def written_call(
    layout: Layout,
    inputs: int,
    run: Callable[..., Any],
    constants: Sequence[Any],
    idle: list[Workspace],
    general: Callable[[Sequence[Any]], Sequence[Any]],
) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """A function that calls machine code; None if the program has too many arrays, called ops or donated inputs.

    Args:
        layout: of the program.
        inputs: how many there are.
        run: the machine code.
        constants: of the program.
        idle: workspaces that no call uses.
        general: a function for arguments that the machine code cannot read.
    """
    count = inputs + len(constants) + len(layout.results)
    if len(layout.segments) != 1 or layout.called or layout.donated or count > MAX_ARRAYS:
        return None
    arguments = [f"x{i}" for i in range(inputs)]
    results = [f"y{i}" for i in range(len(layout.results))]
    names = [*arguments, *[f"c{i}" for i in range(len(constants))], *results]
    outputs = [
        f"{names[y.array]}.reshape({y.shape})" if y.is_reshaped else names[y.array] for y in layout.outputs
    ]
    pools = Workspace(layout).pools
    makers = [
        f"{y} = pools[{i}]()" if i in pools else f"{y} = empty({shape}, {dtype})"
        for i, (y, (shape, dtype)) in enumerate(zip(results, layout.results, strict=True))
    ]
    lines = [
        "def call(inputs):",
        f"    {''.join([f'{x}, ' for x in arguments])}= inputs" if arguments else "",
        "    try:",
        "        workspace = pop()",
        "    except IndexError:",
        "        workspace = Workspace(layout)",
        "    arena = workspace.arena",
        "    pools = workspace.pools" if pools else "",
        *[f"    {line}" for line in makers],
        f"    done = run({', '.join([*names, 'arena'])}) is arena",
        "    append(workspace)",
        f"    return [{', '.join(outputs)}] if done else general(inputs)",
    ]
    scope: dict[str, Any] = {
        **{name: NUMPY[name] for name in {dtype for _, dtype in layout.results}},
        **{f"c{i}": x for i, x in enumerate(constants)},
        "Workspace": Workspace,
        "append": idle.append,
        "empty": np.empty,
        "general": general,
        "layout": layout,
        "pop": idle.pop,
        "run": run,
    }
    exec("\n".join(lines), scope)
    found: Callable[[Sequence[Any]], Sequence[Any]] = scope["call"]
    return found
