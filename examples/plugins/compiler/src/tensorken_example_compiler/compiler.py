"""The compiler: from the equations of a program to the lines of one Python function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from tensorken_core.program.program import Equation, Literal, Program, Variable

UFUNCS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.absolute,
    "square": np.square, "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "maximum": np.maximum, "minimum": np.minimum, "eq": np.equal, "lt": np.less,
}  # fmt: skip
"""The ops that it knows, each as the numpy function that the backend calls: so results are the same to the last bit."""

sources: dict[str, str] = {}
"""What has been compiled: the source, by the name of the last program that had it."""


def compiled(program: Program) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """A function that runs the program on arrays; None if it has something that this compiler does not know."""
    made = {v for e in program.equations for v in e.results}
    if not set(program.outputs) <= made or not all([_is_known(e) for e in program.equations]):
        return None
    names: dict[Variable, str] = {v: f"v{i}" for i, v in enumerate(program.inputs, 1)}
    bound: dict[str, Any] = {f.__name__: f for f in UFUNCS.values()}
    lines = [f"    [{', '.join(names.values())}] = inputs"]
    fresh, constants = count(len(names) + 1), count(1)
    last = {v: i for i, e in enumerate(program.equations) for v in e.operands}

    def name(v: Variable) -> str:
        if v not in names:  # neither an input nor made by an equation
            names[v] = f"c{next(constants)}"
            if isinstance(v, Literal):
                bound[names[v]] = np.dtype(v.dtype.name).type(v.value)
            else:
                bound[names[v]] = program.constants[v].representation
        return names[v]

    for i, equation in enumerate(program.equations):
        (result,) = equation.results
        call = f"{UFUNCS[equation.op.name].__name__}({', '.join(map(name, equation.operands))}"
        free = [v for v in equation.operands if v in made and last[v] == i and v not in program.outputs]
        reused = next(
            (v for v in free if (v.shape, v.dtype) == (result.shape, result.dtype) and v.shape), None
        )
        if reused is None:
            names[result] = f"v{next(fresh)}"
            lines.append(f"    {names[result]} = {call})")
        else:
            names[result] = names[reused]
            lines.append(f"    {call}, out={names[result]})")
    lines.append(f"    return [{', '.join([names[v] for v in program.outputs])}]")
    sources[program.name] = source = "\n".join(["def run(inputs):", *lines, ""])
    exec(source, bound)
    return np.errstate(all="ignore")(bound["run"])  # type: ignore[no-any-return]


def _is_known(equation: Equation) -> bool:
    """Whether there is a numpy function for it that gives an array of the right shape."""
    arrays = [v for v in equation.operands if not isinstance(v, Literal)]
    return equation.op.name in UFUNCS and bool(arrays)
