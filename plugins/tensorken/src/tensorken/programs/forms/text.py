"""Text: a program as text, an equation a line, with shapes, dtypes and lines of user code."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from tensorken.programs.names import Names, all_programs, fold, unique_names
from tensorken_core.errors import TensorkenError
from tensorken_core.language.dtypes import DType
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Program, Variable
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.text import printable

INDENT = "    "
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")  # in the representation of a function or another object
WIDTH = 100  # longer lines are continued on the next line
MAX_COLUMN_WIDTH = 40  # wider cells do not move the next column
MAX_SHOWN_ELEMENTS = 6  # larger constants are shown without their elements


def type_of(v: Variable) -> str:
    """The type of a value, such as `float32[2, 3]`."""
    return f"{v.dtype.name}{list(v.shape)}"


Remarks = Callable[[int, Names], Sequence[str]]
"""From the index of an equation and the names of variables to comment lines before the equation."""


def text(program: Program, remarks: Remarks | None = None) -> str:
    """The program, then its inner programs, an equation a line.

    Each equation is followed by its line of user code, if that differs from the previous equation's.

    Args:
        program: the program.
        remarks: returns comment lines between the equations of the program itself.
    """
    programs = all_programs(program)
    titles_of = unique_names(programs)
    return "\n\n".join(["\n".join(_lines(p, titles_of, remarks if p is program else None)) for p in programs])


def summary(program: Program) -> str:
    """One line: the name and the numbers of inputs, constants, equations and outputs."""
    counts = {
        "input": len(program.inputs),
        "constant": len(program.constants),
        "equation": len(program.equations),
        "output": len(program.outputs),
    }
    shown = [f"{n} {what}{'' if n == 1 else 's'}" for what, n in counts.items() if n or what != "constant"]
    return f"<Program {printable(program.name)}: {', '.join(shown)}>"


def _lines(program: Program, titles_of: Mapping[Program, str], remarks: Remarks | None) -> Iterator[str]:
    names = Names(program)
    arguments = [f"{names[v]}: {type_of(v)}" for v in program.inputs]
    head = f"{titles_of[program]}({', '.join(arguments)}):"
    if len(head) <= WIDTH:
        yield head
    else:
        yield f"{titles_of[program]}("
        yield from textwrap.wrap(
            ", ".join(arguments), WIDTH, initial_indent=INDENT * 2, subsequent_indent=INDENT * 2
        )
        yield "):"
    rows: list[Row] = [(f"{names[v]}: {type_of(v)}", constant(x), "") for v, x in program.constants.items()]
    previous_line = ""
    for i, equation in enumerate(program.equations):
        if remarks is not None:
            rows += remarks(i, names)
        left = ", ".join([f"{names[v]}: {type_of(v)}" for v in equation.results])
        line = source_text(equation)
        rows.append((left, application(equation, names, titles_of), line if line != previous_line else ""))
        previous_line = line
    if remarks is not None:
        rows += remarks(len(program.equations), names)
    yield from _columns(rows)
    yield f"{INDENT}return {returned(program, names)}"


Row = tuple[str, str, str] | str
"""`left = right  # line`, or a comment."""


def _columns(rows: Sequence[Row]) -> Iterator[str]:
    """Lines with aligned columns."""
    equations = [row for row in rows if not isinstance(row, str)]
    first = max([len(left) for left, _, _ in equations if len(left) <= MAX_COLUMN_WIDTH], default=0)
    joined = len(" = ")
    widths = [
        len(right) if left else len(right) - first - joined
        for left, right, source_line in equations
        if source_line and len(right) <= MAX_COLUMN_WIDTH
    ]
    second = max([0, *widths])
    for row in rows:
        if isinstance(row, str):
            yield f"{INDENT}# {row}"
            continue
        left, right, source_line = row
        start = f"{INDENT}{left:{first}} = " if left else INDENT
        line = f"{start}{right}"
        if len(line) > WIDTH:
            line = textwrap.fill(
                line, WIDTH, subsequent_indent=INDENT * 3, break_long_words=False, break_on_hyphens=False
            )
        elif source_line:
            line = f"{start}{right:{second if left else first + joined + second}}"
        yield f"{line}  # {source_line}" if source_line else line


def source_text(equation: Equation) -> str:
    """The line of user code of an equation, such as `model.py:12`, and its scope unless it is 0."""
    origin = equation.origin
    line = "" if origin is None else f"{printable(PurePath(origin.file).name)}:{origin.line}"
    if equation.scope:
        line = f"{line}, scope {equation.scope}" if line else f"scope {equation.scope}"
    return line


def application(equation: Equation, names: Names, titles_of: Mapping[Program, str]) -> str:
    """The right side of an equation, such as `sum(x, axes=(0,))`."""
    arguments = [names[v] for v in equation.operands]
    return f"{equation.op.name}({', '.join([*arguments, *params(equation, titles_of)])})"


def params(equation: Equation, titles_of: Mapping[Program, str]) -> list[str]:
    """The params by name, such as `axes=(0,)`; a program by its title."""
    op = equation.op
    names = op.param_names if len(op.param_names) == len(op.params) else op.params
    pairs = zip(names, equation.params, strict=True)
    return [f"{name}={titles_of[p] if isinstance(p, Program) else param_text(p)}" for name, p in pairs]


def param_text(param: Any) -> str:
    """A param, shortened."""
    if isinstance(param, DType):
        return param.name
    shown = repr(param)
    return shown if len(shown) <= WIDTH else f"{shown[: WIDTH - 3]}..."


def returned(program: Program, names: Names) -> str:
    """The outputs, in the structure of the function's result, without addresses: a text is the same each time."""
    outputs = [names[v] for v in program.outputs]
    if program.result is None:
        return ", ".join(outputs) or "()"
    shown = fold(program.result, outputs, lambda container, *rest: container.show(*rest))
    return _ADDRESS.sub("", str(shown))


def constant(x: Tensor) -> str:
    """The text of a constant, such as `constant [1.0, 2.0]`; the elements are shown if there are few."""
    if isinstance(x.interpreter, RawTensor) and x.size <= MAX_SHOWN_ELEMENTS:
        try:
            return f"constant {x.tolist()}"
        except (TensorkenError, AttributeError):  # a symbolic backend has no elements
            return "constant"
    return "constant"
