"""Text: a program as one reads it: an equation a line, with shapes, dtypes, and where it came from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensorken.programs.program import Literal, Program, Variable

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Names(dict[Variable, str]):
    """Names for variables, given out as they are asked for: a, b, ..., z, aa, ab, ...; a literal is its number."""

    def __missing__(self, v: Variable) -> str:
        if isinstance(v, Literal):
            return repr(v.value)
        self[v] = name_of(len(self))
        return self[v]


def name_of(place: int) -> str:
    """The name of the value at a place: a for 0, z for 25, aa for 26."""
    name = ""
    place += 1
    while place:
        place, letter = divmod(place - 1, len(LETTERS))
        name = LETTERS[letter] + name
    return name


def type_of(v: Variable) -> str:
    """Such as `float32[2, 3]`."""
    return f"{v.dtype.name}{list(v.shape)}"


def text(program: Program, names: Names | None = None) -> str:
    """The whole program, a line an equation."""
    return "\n".join(lines(program, Names() if names is None else names))


def lines(program: Program, names: Names, indent: str = "") -> Iterator[str]:
    """The lines of `text`; programs in params are shown below the equation that holds them."""
    given = ", ".join([f"{names[v]}: {type_of(v)}" for v in program.inputs])
    yield f"{indent}{program.name}({given}):"
    deeper = indent + "    "
    for v in program.constants:
        yield f"{deeper}{names[v]}: {type_of(v)} = constant"
    for equation in program.equations:
        operands = [names[v] for v in equation.operands]
        kinds = equation.op.params
        params = [
            f"{kind}={_param(p)}"
            for kind, p in zip(kinds, equation.params, strict=True)
            if not isinstance(p, Program)
        ]
        results = ", ".join([f"{names[v]}: {type_of(v)}" for v in equation.results])
        origin = equation.origin
        where = "" if origin is None else f"  # {Path(origin.file).name}:{origin.line}"
        yield f"{deeper}{results} = {equation.op.name}({', '.join([*operands, *params])}){where}"
        for p in equation.params:
            if isinstance(p, Program):
                yield from lines(p, Names(), deeper + "    ")
    yield f"{deeper}return {', '.join([names[v] for v in program.outputs])}"


def _param(param: Any) -> str:
    return getattr(param, "name", None) or repr(param)
