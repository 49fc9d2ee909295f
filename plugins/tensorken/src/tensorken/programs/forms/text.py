"""Text: a program as one reads it: an equation a line, with shapes, dtypes, and where it came from."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from tensorken.programs.names import Names, folded, printable, titles, within
from tensorken_core.errors import TensorkenError
from tensorken_core.language.dtypes import DType
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Program, Variable
from tensorken_core.tensor.tensor import Tensor

INDENT = "    "
WIDTH = 100  # where a line goes on below
COLUMN = 40  # what is wider does not push the column behind it further
SMALL = 6  # constants of so many elements are shown by value


def type_of(v: Variable) -> str:
    """Such as `float32[2, 3]`."""
    return f"{v.dtype.name}{list(v.shape)}"


Remarks = Callable[[int, Names], Sequence[str]]
"""From the place of an equation, and what values are called, to lines that stand before it."""


def text(program: Program, remarks: Remarks | None = None) -> str:
    """The whole program, then those that its equations hold, an equation a line.

    Behind an equation stands the line of the user's that led to it, where that is another than the line before's.

    Args:
        program: the program.
        remarks: what to write between the program's own equations.
    """
    programs = within(program)
    called = titles(programs)
    return "\n\n".join(["\n".join(_lines(p, called, remarks if p is program else None)) for p in programs])


def summary(program: Program) -> str:
    """One line: the name, and how much there is."""
    counts = {
        "input": len(program.inputs),
        "constant": len(program.constants),
        "equation": len(program.equations),
        "output": len(program.outputs),
    }
    shown = [f"{n} {what}{'' if n == 1 else 's'}" for what, n in counts.items() if n or what != "constant"]
    return f"<Program {printable(program.name)}: {', '.join(shown)}>"


def _lines(program: Program, called: Mapping[Program, str], remarks: Remarks | None) -> Iterator[str]:
    names = Names(program)
    given = [f"{names[v]}: {type_of(v)}" for v in program.inputs]
    head = f"{called[program]}({', '.join(given)}):"
    if len(head) <= WIDTH:
        yield head
    else:
        yield f"{called[program]}("
        yield from textwrap.wrap(
            ", ".join(given), WIDTH, initial_indent=INDENT * 2, subsequent_indent=INDENT * 2
        )
        yield "):"
    rows: list[Row] = [(f"{names[v]}: {type_of(v)}", constant(x), "") for v, x in program.constants.items()]
    before = ""
    for i, equation in enumerate(program.equations):
        if remarks is not None:
            rows += remarks(i, names)
        left = ", ".join([f"{names[v]}: {type_of(v)}" for v in equation.results])
        where = place_of(equation)
        rows.append((left, application(equation, names, called), where if where != before else ""))
        before = where
    if remarks is not None:
        rows += remarks(len(program.equations), names)
    yield from _columns(rows)
    yield f"{INDENT}return {returned(program, names)}"


Row = tuple[str, str, str] | str
"""`left = right  # where`, or a remark."""


def _columns(rows: Sequence[Row]) -> Iterator[str]:
    """Lines, with what fits in columns below one another."""
    equations = [row for row in rows if not isinstance(row, str)]
    first = max([len(left) for left, _, _ in equations if len(left) <= COLUMN], default=0)
    second = max([len(right) for _, right, where in equations if where and len(right) <= COLUMN], default=0)
    for row in rows:
        if isinstance(row, str):
            yield f"{INDENT}# {row}"
            continue
        left, right, where = row
        line = f"{INDENT}{left:{first}} = {right}"
        if len(line) > WIDTH:
            line = textwrap.fill(
                line, WIDTH, subsequent_indent=INDENT * 3, break_long_words=False, break_on_hyphens=False
            )
        elif where:
            line = f"{INDENT}{left:{first}} = {right:{second}}"
        yield f"{line}  # {where}" if where else line


def place_of(equation: Equation) -> str:
    """`model.py:12`, the line that led to an equation, and its scope if that is not the program's own."""
    origin = equation.origin
    where = "" if origin is None else f"{printable(PurePath(origin.file).name)}:{origin.line}"
    if equation.scope:
        where = f"{where}, scope {equation.scope}" if where else f"scope {equation.scope}"
    return where


def application(equation: Equation, names: Names, called: Mapping[Program, str]) -> str:
    """`sum(x, axes=(0,))`."""
    given = [names[v] for v in equation.operands]
    return f"{equation.op.name}({', '.join([*given, *params(equation, called)])})"


def params(equation: Equation, called: Mapping[Program, str]) -> list[str]:
    """The params by their names, as `axes=(0,)`; of a program its title."""
    op = equation.op
    names = op.names if len(op.names) == len(op.params) else op.params
    pairs = zip(names, equation.params, strict=True)
    return [f"{name}={called[p] if isinstance(p, Program) else param_text(p)}" for name, p in pairs]


def param_text(param: Any) -> str:
    """A param in short."""
    if isinstance(param, DType):
        return param.name
    shown = repr(param)
    return shown if len(shown) <= WIDTH else f"{shown[: WIDTH - 3]}..."


def returned(program: Program, names: Names) -> str:
    """The outputs, in the structure of the function's result."""
    outputs = [names[v] for v in program.outputs]
    if program.result is None:
        return ", ".join(outputs) or "()"
    shown = folded(program.result, outputs, lambda container, *rest: container.show(*rest))
    return str(shown)


def constant(x: Tensor) -> str:
    """`constant [1.0, 2.0]`: what a constant holds if that is little."""
    if isinstance(x.interpreter, RawTensor) and x.size <= SMALL:
        try:
            return f"constant {x.tolist()}"
        except (TensorkenError, AttributeError):  # where only expressions are known
            return "constant"
    return "constant"
