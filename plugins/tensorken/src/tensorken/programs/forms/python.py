"""Python: the source of a function that runs a program op by op, without the program."""

from __future__ import annotations

import ast
import base64
import builtins
import keyword
import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from tensorken.interchange.elements import unpacked
from tensorken.programs.forms.expressions import COMPARISONS, Expression, expression_of
from tensorken.programs.forms.files import elements_of, little_endian
from tensorken.programs.forms.text import INDENT, source_text
from tensorken.programs.inline_user_ops import with_user_ops_inlined
from tensorken.programs.names import Names, all_programs, fold, labels, parameters, root, unique_names
from tensorken_core import tree
from tensorken_core.errors import ProgramError
from tensorken_core.language.dtypes import DType
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.tensor.tensor import Tensor

MAX_INLINE_SIZE = 24
"""The largest number of elements of a constant that is written where it is used; larger ones are in base64."""

BUILT_IN_CONTAINERS = (dict, list, tuple, type(None))
"""Containers that are written as displays."""

IMPORTED = ("tk", "OPS")
"""Names that the module imports; an argument of the function must not shadow them."""

RESERVED = (
    "base64",
    "functools",
    "struct",
    "CONSTANTS",
    "elements_of",
    "carry",
    "row",
    "both",
    "ys",
    "slice",
)
"""Other names that the module uses."""

_VALUES = f'''
@functools.cache
def elements_of(name):
{INDENT}"""The elements of a constant."""
{INDENT}format, text = CONSTANTS[name]
{INDENT}return [x for (x,) in struct.iter_unpack(format, base64.b64decode(text))]
'''


def source(program: Program) -> str:
    """The source of a module with a function of the program's name; see `Program.to_python`.

    Raises:
        ProgramError: if a constant belongs to a transform, or an op is opaque, or runs programs, and has no form in
            Python.
    """
    try:
        program = with_user_ops_inlined(program)
    except ProgramError as error:
        raise ProgramError(f"to_python: {program.name}: {error}") from None
    program = _flat_where_needed(program)
    programs = [program, *[p for p in all_programs(program) if p is not program]]
    avoid = {*IMPORTED, *RESERVED, *[root(label) for label in labels(program)]}
    functions = _Functions(unique_names(programs, identifier, avoid), program.backend)
    flat = [p if p is program else p.changed(arguments=None, result=None) for p in programs]
    function_names = dict(zip(flat, [functions.function_names[p] for p in programs], strict=True))
    runs = _line_above(programs)
    written = [
        "\n".join(functions.lines(f, function_names[f], runs.get(p, "")))
        for p, f in zip(programs, flat, strict=True)
    ]
    body = "\n\n\n".join(reversed(written)) + "\n"
    imports = ["import tensorken as tk"]
    if "OPS[" in body:
        imports.append("from tensorken_core.language.op import OPS")
    if functions.large:
        imports = ["import base64", "import functools", "import struct", "", *imports]
        rows = [f'{INDENT}"{name}": ("{form}", """\n{data}"""),' for name, form, data in functions.large]
        body += "\n".join([f"\n{_VALUES}", "", "CONSTANTS = {", *rows, "}", ""])
    return "\n".join([f'"""{function_names[program]}, op by op."""', "", *imports, "", "", body])


def identifier(name: str) -> str:
    """A valid function name: `jvp_of_f` for `jvp of f`."""
    result = re.sub(r"\W+", "_", name.strip("<>"), flags=re.ASCII).strip("_")
    if result in ("", "lambda"):
        return "function"
    return f"f{result}" if result[0].isdigit() else f"{result}_" if keyword.iskeyword(result) else result


def _line_above(programs: Sequence[Program]) -> dict[Program, str]:
    """The line above the function of a program that an op runs."""
    result: dict[Program, str] = {}
    for program in programs:
        for equation in program.equations:
            inner = [p for p in equation.params if isinstance(p, Program)]
            if equation.op.higher_order is None:
                result.update(dict.fromkeys(inner, "# Custom derivative rules are not written here."))
            elif equation.op.name == "call":
                result.update(dict.fromkeys(inner, "@tk.jit"))
            elif equation.op.name not in WITH_PROGRAMS:
                raise ProgramError(
                    f"to_python: {program.name} has the op {equation.op.name!r}, which has programs and has no form "
                    f"in Python; use program.save(path) instead"
                )
    return result


def _flat_where_needed(program: Program) -> Program:
    """The program with flat arguments or a flat result where Python has no form for their structure."""
    arguments, result = program.arguments, program.result
    avoided = (*IMPORTED, *RESERVED)
    is_expressible = all([_is_path(label) and root(label) not in avoided for label in labels(program)])
    if arguments is not None:
        _, named = tree.unflatten(arguments, range(arguments.size))
        is_expressible = is_expressible and all([_is_name(name) for name in (*parameters(program), *named)])
    for node in arguments.nodes if arguments is not None else ():
        kind = None if node is None else node[0].kind
        if not (kind in (None, *BUILT_IN_CONTAINERS) or hasattr(kind, "_fields") or is_dataclass(kind)):
            is_expressible = False
    if not is_expressible:
        arguments = None
    for node in result.nodes if result is not None else ():
        if node is not None and not (
            node[0].kind in BUILT_IN_CONTAINERS
            and (node[1] is None or all([_is_literal(key) for key in node[1]]))
        ):
            result = None
    unchanged = arguments is program.arguments and result is program.result
    return program if unchanged else program.changed(arguments=arguments, result=result)


def _is_literal(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _is_path(label: str) -> bool:
    """Whether a path is an expression of names, attributes and literal subscripts."""
    try:
        node: ast.AST = ast.parse(label, mode="eval").body
        if (
            ast.get_source_segment(label, node) != label
        ):  # blanks, brackets or a comment surround the expression
            return False
        while not isinstance(node, ast.Name):
            if isinstance(node, ast.Subscript):
                ast.literal_eval(node.slice)
            elif not isinstance(node, ast.Attribute):
                return False
            node = node.value
    except (ValueError, SyntaxError):
        return False
    return True


class _Functions:
    """The functions of a module, and the large constants that they share."""

    def __init__(self, function_names: Mapping[Program, str], backend: RawTensor[Any]) -> None:
        self.function_names = function_names
        self.backend = backend
        self.expressions: dict[Any, Expression | None] = {}
        self.large: list[tuple[str, str, str]] = []

    def lines(self, program: Program, title: str, line_above: str) -> Iterator[str]:
        names = Names(program, {*RESERVED, *self.function_names.values()})
        anchor = names[program.inputs[0]] if program.inputs else None
        if line_above:
            yield line_above
        yield f"def {title}({', '.join(_signature(program, names))}):"
        for v, x in program.constants.items():
            yield f"{INDENT}{names[v]} = {self._constant(v, x, anchor, f'{title}.{names[v]}')}"
        before = ""
        for equation in program.equations:
            expression = self._application(equation, names, anchor)
            left = ", ".join([names[v] for v in equation.results])
            if equation.op.results != 1:
                left = f"({left},)" if len(equation.results) == 1 else left or "_"
            line = source_text(equation)
            yield f"{INDENT}{left} = {expression}" + (f"  # {line}" if line not in ("", before) else "")
            before = line
        yield f"{INDENT}return {self._return_value(program, names, anchor)}"

    def _application(self, equation: Equation, names: Names, anchor: str | None) -> str:
        op, operands = equation.op, list(equation.operands)
        programs = [p for p in equation.params if isinstance(p, Program)]
        if programs:
            arguments = self._operand_texts(operands, names, anchor)
            write = WITH_PROGRAMS.get(op.name, _call) if op.higher_order is not None else _call
            return write([self.function_names[p] for p in programs], arguments, equation.params)
        params = [_param(p) for p in equation.params]
        expression = self._expression(equation)
        arguments = self._operand_texts(operands, names, anchor)
        if expression is None:
            rest = ", ".join([f'OPS["{op.name}"]', *arguments[1:], *params])
            return f"{arguments[0]}.apply({rest})"
        if expression.operator is None:
            return expression.template.format(*arguments, *params)
        sides = [names[v] for v in operands]  # a literal is its number
        if not all([not isinstance(v, Literal) or _is_plain(v) for v in operands]):
            sides = arguments
        elif expression.operator in COMPARISONS or all([isinstance(v, Literal) for v in operands]):
            sides[0] = arguments[0]
        if expression.operator == "<" and _is_plain(operands[0]) and not isinstance(operands[1], Literal):
            return f"{names[operands[1]]} > {names[operands[0]]}"
        return expression.template.format(*sides)

    def _expression(self, equation: Equation) -> Expression | None:
        """The expression for the op; cached by op, params, shapes and dtypes."""
        operand_keys = [
            (v.shape, v.dtype, isinstance(v, Literal) and repr(v.value)) for v in equation.operands
        ]
        key = (equation.op, repr(equation.params), *operand_keys)
        if key not in self.expressions:
            self.expressions[key] = expression_of(equation, self.backend)
        return self.expressions[key]

    def _operand_texts(self, operands: Sequence[Variable], names: Names, anchor: str | None) -> list[str]:
        return [_filled(v, anchor) if isinstance(v, Literal) else names[v] for v in operands]

    def _constant(self, v: Variable, x: Tensor, anchor: str | None, name: str) -> str:
        try:
            elements = unpacked(little_endian(elements_of(x), v.dtype), v.dtype)
        except ProgramError as error:
            raise ProgramError(f"to_python: {error}") from None
        if x.size <= MAX_INLINE_SIZE:
            shown = f"[{', '.join([_number(e) for e in elements])}]"
        else:
            data = struct.pack(f"<{x.size}{v.dtype.format}", *elements)
            text = base64.b64encode(data).decode()
            lines = [f"{text[i : i + 100]}\n" for i in range(0, len(text), 100)]
            self.large.append((name, f"<{v.dtype.format}", "".join(lines)))
            shown = f'elements_of("{name}")'
        if anchor is None:
            return f"tk.new({v.shape}, {shown}, tk.{_attribute(v.dtype)})"
        return f"{anchor}.constant({shown}, tk.{_attribute(v.dtype)}, {v.shape})"

    def _return_value(self, program: Program, names: Names, anchor: str | None) -> str:
        outputs = self._operand_texts(program.outputs, names, anchor)
        if program.result is None:
            return _tuple(outputs)
        shown = fold(program.result, outputs, lambda container, *rest: container.show(*rest))
        return str(shown)


# ---- ops that run programs: their arguments and results are flat ---------------------------------------


def _call(programs: Sequence[str], arguments: Sequence[str], params: Sequence[Any]) -> str:
    return f"{programs[0]}({', '.join(arguments)})"


def _cond(programs: Sequence[str], arguments: Sequence[str], params: Sequence[Any]) -> str:
    return f"tk.cond({', '.join([arguments[0], *programs, *arguments[1:]])})"


def _scan(programs: Sequence[str], arguments: Sequence[str], params: Sequence[Any]) -> str:
    """A scan over tuples, which are unpacked to the operands of a step; the step's results are packed into tuples."""
    _, inputs, outputs, length, reverse = params
    initial, slices, operands = list[str](), list[str](), list[str]()
    for x, spec in zip(arguments, inputs, strict=True):
        if spec == "constant":
            operands.append(x)
        elif spec == "carry":
            operands.append(f"carry[{len(initial)}]")
            initial.append(x)
        else:
            operands.append(f"row[{len(slices)}]")
            slices.append(x if spec == 0 else f"tk.moveaxis({x}, {_param(spec)}, 0)")
    carried = [f"ys[{i}]" for i, spec in enumerate(outputs) if spec == "carry"]
    stacked = [f"ys[{i}]" for i, spec in enumerate(outputs) if spec != "carry"]
    grouped = f"({_tuple(carried)}, {_tuple(stacked)})"
    step = f"lambda carry, row: (lambda ys: {grouped})({programs[0]}({', '.join(operands)}))"
    rest = f"{_tuple(initial)}, {_tuple(slices)}, length={_param(length)}, reverse={_param(reverse)}"
    positions = {"carry": iter(range(len(outputs))), "stack": iter(range(len(outputs)))}
    results: list[str] = []
    for spec in outputs:
        position = next(positions["carry" if spec == "carry" else "stack"])
        item = f"both[{0 if spec == 'carry' else 1}][{position}]"
        results.append(item if spec in ("carry", 0) else f"tk.moveaxis({item}, 0, {_param(spec)})")
    return f"(lambda both: {_tuple(results)})(tk.scan({step}, {rest}))"


def _while(programs: Sequence[str], arguments: Sequence[str], params: Sequence[Any]) -> str:
    carried = [i for i, spec in enumerate(params[2]) if spec == "carry"]
    operands = [f"carry[{carried.index(i)}]" if i in carried else x for i, x in enumerate(arguments)]
    condition, body = (f"{program}({', '.join(operands)})" for program in programs)
    initial = _tuple([arguments[i] for i in carried])
    return f"tk.while_loop(lambda carry: {condition}[0], lambda carry: {body}, {initial})"


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


WITH_PROGRAMS = {"call": _call, "cond": _cond, "scan": _scan, "while_loop": _while}
"""The writers of ops that run programs.  They cannot be derived from the op table: each op has its own syntax in
Python."""


def _signature(program: Program, names: Names) -> list[str]:
    if program.arguments is None:
        return [names[v] for v in program.inputs]
    positional = parameters(program)
    keywords = list(dict.fromkeys([root(label) for label in labels(program)]))
    named = [name for name in keywords if name not in positional]
    return [*positional, *(["*", *named] if named else [])]


def _filled(v: Literal, anchor: str | None) -> str:
    args = f"{_number(v.value)}, dtype=tk.{_attribute(v.dtype)}"
    if anchor is None:
        return f"tk.full({v.shape}, {args})"
    return f"tk.full_like({anchor}, {args}, shape={v.shape})"


def _is_plain(v: Variable) -> bool:
    """Whether a Python number combined with a tensor becomes this literal."""
    return isinstance(v, Literal) and v.dtype.kind != "bool" and math.isfinite(v.value)


def _number(value: bool | int | float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"{'-' if math.copysign(1.0, value) < 0 else ''}tk.{'nan' if math.isnan(value) else 'inf'}"
    return repr(value)


def _param(value: Any) -> str:
    """The Python expression of a param.

    Raises:
        ProgramError: if there is no expression for its type.
    """
    match value:
        case DType():
            return f"tk.{_attribute(value)}"
        case None | bool() | str() | bytes():
            return repr(value)
        case int():
            return repr(int(value))
        case float():
            return _number(float(value))
        case tuple() if type(value) is tuple:
            return _tuple([_param(v) for v in value])
        case list():
            return f"[{', '.join([_param(v) for v in value])}]"
        case dict():
            return f"{{{', '.join([f'{_param(k)}: {_param(v)}' for k, v in value.items()])}}}"
        case slice():
            return f"slice({_param(value.start)}, {_param(value.stop)}, {_param(value.step)})"
        case range():
            return repr(value)
    name = str(getattr(value, "__name__", ""))
    if isinstance(value, type) and getattr(builtins, name, None) is value:
        return name
    raise ProgramError(
        f"to_python: a param of type {type(value).__name__} has no form in Python: {value!r:.60}"
    )


def _attribute(dtype: DType) -> str:
    return "bool_" if dtype.name == "bool" else dtype.name
