"""The compiler: it turns the equations of a program into one Python function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
from tensorken_core.program.program import Equation, Literal, Program, Variable

UFUNCS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "abs": np.absolute, "square": np.square, "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "sin": np.sin,
    "cos": np.cos, "tanh": np.tanh, "maximum": np.maximum, "minimum": np.minimum,
    "eq": np.equal, "lt": np.less,
}  # fmt: skip
"""The supported ops, with the numpy function that the backend uses, so that results are identical."""

sources: dict[str, str] = {}
"""The source of the compiled functions by the name of the program."""


def compiled(program: Program) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """Compile a program to a function of arrays; None if the program is not supported."""
    computed = {v for e in program.equations for v in e.results}
    if not set(program.outputs) <= computed or not all([_is_supported(e) for e in program.equations]):
        return None
    names: dict[Variable, str] = {v: f"v{i}" for i, v in enumerate(program.inputs, 1)}
    bound: dict[str, Any] = {f.__name__: f for f in UFUNCS.values()}
    lines = [f"    [{', '.join(names.values())}] = inputs"]
    fresh, constants = count(len(names) + 1), count(1)
    last = {v: i for i, e in enumerate(program.equations) for v in e.operands}

    def name(v: Variable) -> str:
        if v not in names:  # neither an input nor a result of an equation
            names[v] = f"c{next(constants)}"
            if isinstance(v, Literal):
                bound[names[v]] = np.dtype(v.dtype.name).type(v.value)
            else:
                bound[names[v]] = program.constants[v].representation
        return names[v]

    for i, equation in enumerate(program.equations):
        (result,) = equation.results
        call = f"{UFUNCS[equation.op.name].__name__}({', '.join(map(name, equation.operands))}"
        free = [v for v in equation.operands if v in computed and last[v] == i and v not in program.outputs]
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


def _is_supported(equation: Equation) -> bool:
    """Whether there is a numpy function for the op, and its result has the right shape."""
    arrays = [v for v in equation.operands if not isinstance(v, Literal)]
    return equation.op.name in UFUNCS and bool(arrays)
