"""Python: the source of a function that does what a program does, op by op, and runs by itself."""

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

from tensorken.programs.forms.files import elements_of
from tensorken.programs.forms.text import INDENT, place_of
from tensorken.programs.inline_user_ops import with_user_ops_inlined
from tensorken.programs.names import Names, folded, labels, parameters, root, titles, within
from tensorken_core import tree
from tensorken_core.errors import ProgramError
from tensorken_core.language.dtypes import DType
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.tensor.tensor import Tensor

SMALL = 24
"""Constants of so many elements stand where they are used; larger ones below the functions, in base64."""

BUILT_IN = (dict, list, tuple, type(None))
"""Containers that are written as they are."""

OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "lt": "<"}

WRITTEN = {
    "neg": "-{}",
    "where": "tk.where({}, {}, {})",
    "cast": "{}.astype({})",
    "reshape": "{}.reshape({})",
    "permute": "{}.permute({})",
    "expand": "{}.expand({})",
    "pad": "{}.pad({})",
    "crop": "{}.crop({})",
    "flip": "{}.flip({})",
    "sum": "{}.sum({}, keepdims=True)",
    "max": "{}.max({}, keepdims=True)",
    "min": "{}.min({}, keepdims=True)",
    "prod": "{}.prod({}, keepdims=True)",
    "maximum": "tk.maximum({}, {})",
    "minimum": "tk.minimum({}, {})",
    **{
        name: f"tk.{name}({{}})"
        for name in (
            *("exp", "log", "sin", "cos", "tan", "sqrt", "tanh", "sigmoid", "relu", "square", "abs", "sign"),
            *("reciprocal", "log1p", "expm1", "erf", "softplus", "floor", "sinh", "cosh", "exp2", "log2"),
        )
    },
}
"""How ops are written that have a name of their own for users; the others are looked up in the op table."""

OVER_AXES = ("sum", "max", "min", "prod", "flip")
"""Over no axes these are no ops for users."""

IMPORTED = ("tk", "OPS")
"""Names that an argument of the function must not have."""

RESERVED = ("base64", "functools", "struct", "CONSTANTS", "elements_of", "carry", "both", "ys", "slice")
"""Names that the module uses besides, for itself or within an expression."""

_VALUES = f'''
@functools.cache
def elements_of(name):
{INDENT}"""The elements of a constant."""
{INDENT}format, text = CONSTANTS[name]
{INDENT}return [x for (x,) in struct.iter_unpack(format, base64.b64decode(text))]
'''


def source(program: Program) -> str:
    """A module with a function of the program's name; see `Program.to_python`.

    Raises:
        ProgramError: if a constant belongs to a transform, or an op runs programs as a loop does.
    """
    program = with_user_ops_inlined(program)
    program = _flat_where_needed(program)
    programs = [program, *[p for p in within(program) if p is not program]]
    avoid = {*IMPORTED, *RESERVED, *[root(label) for label in labels(program)]}
    functions = _Functions(titles(programs, identifier, avoid))
    flat = [p if p is program else p.changed(arguments=None, result=None) for p in programs]
    called = dict(zip(flat, [functions.called[p] for p in programs], strict=True))
    runs = _kinds(programs)
    written = [
        "\n".join(functions.lines(f, called[f], runs.get(p, ""))) for p, f in zip(programs, flat, strict=True)
    ]
    body = "\n\n\n".join(reversed(written)) + "\n"
    imports = ["import tensorken as tk"]
    if "OPS[" in body:
        imports.append("from tensorken_core.language.op import OPS")
    if functions.large:
        imports = ["import base64", "import functools", "import struct", "", *imports]
        rows = [f'{INDENT}"{name}": ("{form}", """\n{data}"""),' for name, form, data in functions.large]
        body += "\n".join([f"\n{_VALUES}", "", "CONSTANTS = {", *rows, "}", ""])
    return "\n".join([f'"""{called[program]}, op by op."""', "", *imports, "", "", body])


def identifier(name: str) -> str:
    """A name that a function can have: `jvp_of_f` for `jvp of f`."""
    found = re.sub(r"\W+", "_", name.strip("<>"), flags=re.ASCII).strip("_")
    if found in ("", "lambda"):
        return "function"
    return f"f{found}" if found[0].isdigit() else f"{found}_" if keyword.iskeyword(found) else found


def _kinds(programs: Sequence[Program]) -> dict[Program, str]:
    """What stands above the function of a program that an op runs."""
    found: dict[Program, str] = {}
    for program in programs:
        for equation in program.equations:
            inner = [p for p in equation.params if isinstance(p, Program)]
            if equation.op.higher_order is None:
                found.update(dict.fromkeys(inner, "# Derivative rules of its own are not written here."))
            elif equation.op.name == "call":
                found.update(dict.fromkeys(inner, "@tk.jit"))
            elif equation.op.name not in WITH_PROGRAMS:
                raise ProgramError(
                    f"to_python: {program.name} has the op {equation.op.name!r}, which runs programs as Python has no "
                    f"words for; keep it by program.save(path)"
                )
    return found


def _flat_where_needed(program: Program) -> Program:
    """The program, its arguments or its result flat if they cannot be written as Python has them."""
    arguments, result = program.arguments, program.result
    avoided = (*IMPORTED, *RESERVED)
    known = all([_is_path(label) and root(label) not in avoided for label in labels(program)])
    if arguments is not None:
        _, named = tree.unflatten(arguments, range(arguments.size))
        known = known and all([_is_name(name) for name in (*parameters(program), *named)])
    for node in arguments.nodes if arguments is not None else ():
        kind = None if node is None else node[0].kind
        if not (kind in (None, *BUILT_IN) or hasattr(kind, "_fields") or is_dataclass(kind)):
            known = False
    if not known:
        arguments = None
    for node in result.nodes if result is not None else ():
        if node is not None and not (
            node[0].kind in BUILT_IN and (node[1] is None or all([_is_literal(key) for key in node[1]]))
        ):
            result = None
    same = arguments is program.arguments and result is program.result
    return program if same else program.changed(arguments=arguments, result=result)


def _is_literal(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _is_path(label: str) -> bool:
    """Whether a path reads as an expression: names, attributes, and subscripts that are literals."""
    try:
        node: ast.AST = ast.parse(label, mode="eval").body
        if ast.get_source_segment(label, node) != label:  # there are blanks, brackets or a comment around it
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

    def __init__(self, called: Mapping[Program, str]) -> None:
        self.called = called
        self.large: list[tuple[str, str, str]] = []

    def lines(self, program: Program, title: str, above: str) -> Iterator[str]:
        names = Names(program, {*RESERVED, *self.called.values()})
        anchor = names[program.inputs[0]] if program.inputs else None
        if above:
            yield above
        yield f"def {title}({', '.join(_signature(program, names))}):"
        for v, x in program.constants.items():
            yield f"{INDENT}{names[v]} = {self._constant(v, x, anchor, f'{title}.{names[v]}')}"
        before = ""
        for equation in program.equations:
            written = self._application(equation, names, anchor)
            left = ", ".join([names[v] for v in equation.results])
            if equation.op.results != 1:
                left = f"({left},)" if len(equation.results) == 1 else left or "_"
            where = place_of(equation)
            yield f"{INDENT}{left} = {written}" + (f"  # {where}" if where not in ("", before) else "")
            before = where
        yield f"{INDENT}return {self._returned(program, names, anchor)}"

    def _application(self, equation: Equation, names: Names, anchor: str | None) -> str:
        op, operands = equation.op, list(equation.operands)
        programs = [p for p in equation.params if isinstance(p, Program)]
        if programs:
            given = self._given(operands, names, anchor)
            write = WITH_PROGRAMS.get(op.name, _call) if op.higher_order is not None else _call
            return write([self.called[p] for p in programs], given, equation.params)
        params = [_param(p) for p in equation.params]
        if op.name in OPERATORS and operands[0].dtype.kind != "bool":
            sides = [names[v] for v in operands]  # of a literal its number
            if not all([not isinstance(v, Literal) or _is_plain(v) for v in operands]):
                sides = self._given(operands, names, anchor)
            elif op.name in ("eq", "lt") or all([isinstance(v, Literal) for v in operands]):
                sides[0] = self._given(operands[:1], names, anchor)[0]
            if op.name == "lt" and _is_plain(operands[0]) and not isinstance(operands[1], Literal):
                return f"{names[operands[1]]} > {names[operands[0]]}"
            return f"{sides[0]} {OPERATORS[op.name]} {sides[1]}"
        given = self._given(operands, names, anchor)
        if op.name == "concatenate":
            return f"tk.concatenate([{', '.join(given)}], {params[0]})"
        if op.name in WRITTEN and (params != ["()"] or op.name not in OVER_AXES):
            return WRITTEN[op.name].format(*given, *params)
        rest = ", ".join([f'OPS["{op.name}"]', *given[1:], *params])
        return f"{given[0]}.apply({rest})"

    def _given(self, operands: Sequence[Variable], names: Names, anchor: str | None) -> list[str]:
        return [_filled(v, anchor) if isinstance(v, Literal) else names[v] for v in operands]

    def _constant(self, v: Variable, x: Tensor, anchor: str | None, name: str) -> str:
        try:
            data = elements_of(x)
        except ProgramError as error:
            raise ProgramError(f"to_python: {error}") from None
        if x.size <= SMALL:
            elements = struct.unpack(f"<{x.size}{v.dtype.format}", data)
            shown = f"[{', '.join([_number(e) for e in elements])}]"
        else:
            text = base64.b64encode(data).decode()
            lines = [f"{text[i : i + 100]}\n" for i in range(0, len(text), 100)]
            self.large.append((name, f"<{v.dtype.format}", "".join(lines)))
            shown = f'elements_of("{name}")'
        if anchor is None:
            return f"tk.new({v.shape}, {shown}, tk.{_attribute(v.dtype)})"
        return f"{anchor}.constant({shown}, tk.{_attribute(v.dtype)}, {v.shape})"

    def _returned(self, program: Program, names: Names, anchor: str | None) -> str:
        outputs = self._given(program.outputs, names, anchor)
        if program.result is None:
            return _tuple(outputs)
        shown = folded(program.result, outputs, lambda container, *rest: container.show(*rest))
        return str(shown)


# ---- ops that run programs: what they are given is flat, and so is what they give ------------------------------


def _call(programs: Sequence[str], given: Sequence[str], params: Sequence[Any]) -> str:
    return f"{programs[0]}({', '.join(given)})"


def _cond(programs: Sequence[str], given: Sequence[str], params: Sequence[Any]) -> str:
    return f"tk.cond({', '.join([given[0], *programs, *given[1:]])})"


def _scan(programs: Sequence[str], given: Sequence[str], params: Sequence[Any]) -> str:
    """A scan over tuples, from which a step takes its operands, and what it gives goes back into two tuples."""
    _, inputs, outputs, length, reverse = params
    initial, slices, operands = list[str](), list[str](), list[str]()
    for x, role in zip(given, inputs, strict=True):
        if role == "constant":
            operands.append(x)
        elif role == "carry":
            operands.append(f"carry[{len(initial)}]")
            initial.append(x)
        else:
            operands.append(f"x[{len(slices)}]")
            slices.append(x if role == 0 else f"tk.moveaxis({x}, {_param(role)}, 0)")
    carried = [f"ys[{i}]" for i, role in enumerate(outputs) if role == "carry"]
    stacked = [f"ys[{i}]" for i, role in enumerate(outputs) if role != "carry"]
    grouped = f"({_tuple(carried)}, {_tuple(stacked)})"
    step = f"lambda carry, x: (lambda ys: {grouped})({programs[0]}({', '.join(operands)}))"
    rest = f"{_tuple(initial)}, {_tuple(slices)}, length={_param(length)}, reverse={_param(reverse)}"
    places = {"carry": iter(range(len(outputs))), "stack": iter(range(len(outputs)))}
    results: list[str] = []
    for role in outputs:
        place = next(places["carry" if role == "carry" else "stack"])
        found = f"both[{0 if role == 'carry' else 1}][{place}]"
        results.append(found if role in ("carry", 0) else f"tk.moveaxis({found}, 0, {_param(role)})")
    return f"(lambda both: {_tuple(results)})(tk.scan({step}, {rest}))"


def _while(programs: Sequence[str], given: Sequence[str], params: Sequence[Any]) -> str:
    carried = [i for i, role in enumerate(params[2]) if role == "carry"]
    operands = [f"carry[{carried.index(i)}]" if i in carried else x for i, x in enumerate(given)]
    condition, body = (f"{program}({', '.join(operands)})" for program in programs)
    initial = _tuple([given[i] for i in carried])
    return f"tk.while_loop(lambda carry: {condition}[0], lambda carry: {body}, {initial})"


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


WITH_PROGRAMS = {"call": _call, "cond": _cond, "scan": _scan, "while_loop": _while}
"""How ops that run programs are written."""


def _signature(program: Program, names: Names) -> list[str]:
    if program.arguments is None:
        return [names[v] for v in program.inputs]
    positional = parameters(program)
    keywords = list(dict.fromkeys([root(label) for label in labels(program)]))
    named = [name for name in keywords if name not in positional]
    return [*positional, *(["*", *named] if named else [])]


def _filled(v: Literal, anchor: str | None) -> str:
    facts = f"{_number(v.value)}, dtype=tk.{_attribute(v.dtype)}"
    if anchor is None:
        return f"tk.full({v.shape}, {facts})"
    return f"tk.full_like({anchor}, {facts}, shape={v.shape})"


def _is_plain(v: Variable) -> bool:
    """Whether a number that stands beside a tensor becomes this literal."""
    return isinstance(v, Literal) and v.dtype.kind != "bool" and math.isfinite(v.value)


def _number(value: bool | int | float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"{'-' if math.copysign(1.0, value) < 0 else ''}tk.{'nan' if math.isnan(value) else 'inf'}"
    return repr(value)


def _param(value: Any) -> str:
    """A param as Python has it.

    Raises:
        ProgramError: if it is of a kind that has no form.
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
        f"to_python: a param of the kind {type(value).__name__} has no form in Python: {value!r:.60}"
    )


def _attribute(dtype: DType) -> str:
    return "bool_" if dtype.name == "bool" else dtype.name
