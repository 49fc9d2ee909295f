"""Files: the text form of a program, which other processes and later versions can read; see docs/programs.md."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from tensorken.interchange.elements import packed
from tensorken.programs.forms.json_values import format_float, structure_to_json, to_json
from tensorken.programs.inline_user_ops import with_user_ops_inlined
from tensorken.programs.names import callers_first
from tensorken_core.errors import ProgramError, TensorkenError
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.tensor.tensor import Tensor

FORMAT = "tensorken program"
VERSION = 1


def serialize(program: Program, drop_rules: bool = False) -> str:
    """The text of a program's file.

    Raises:
        ProgramError: if the program has a value without a text form.
    """
    writer = _Writer()
    try:
        programs = [
            writer.program(p, drop_rules) for p in reversed(callers_first(with_user_ops_inlined(program)))
        ]
    except ProgramError as error:
        raise ProgramError(f"save: {program.name}: {error}") from None
    content = {
        "format": FORMAT,
        "version": VERSION,
        "files": list(writer.file_indices),
        "constants": writer.constants,
        "programs": programs,
    }
    content = {**content, "checksum": checksum(content)}
    return "\n".join(_json_lines(content, 4)) + "\n"


def checksum(content: Mapping[str, Any]) -> str:
    """The checksum of all entries except the checksum; it does not depend on the layout."""
    rest = {key: value for key, value in content.items() if key != "checksum"}
    data = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"


@functools.lru_cache(maxsize=256)
def portable_name(file: str) -> str:
    """The name of a source file without the folders of its author's machine: relative to the folder of its package.

    >>> portable_name("/home/me/model.py"), portable_name("<stdin>")
    ('model.py', '<stdin>')
    >>> import tensorken_core.tree
    >>> portable_name(tensorken_core.tree.__file__)
    'tensorken_core/tree.py'
    """
    path = PureWindowsPath(file) if "\\" in file else PurePosixPath(file)
    if not path.is_absolute():
        return file
    parts = [path.name]
    for folder in path.parents:
        if not Path(folder, "__init__.py").is_file():
            break
        parts.append(folder.name)
    return "/".join(reversed(parts))


class _Writer:
    def __init__(self) -> None:
        self.program_indices: dict[Program, int] = {}
        self.file_indices: dict[str, int] = {}
        self.constants: list[Any] = []
        self.constant_indices: dict[int, int] = {}  # by id of the representation; programs share constants

    def program(self, program: Program, drop_rules: bool) -> dict[str, Any]:
        values: dict[Variable, int] = {}
        rows: list[Any] = []

        def index_of(v: Variable) -> int:
            if v not in values:
                values[v] = len(rows)
                row = [v.dtype.name, list(v.shape)]
                rows.append([*row, self._number(v.value)] if isinstance(v, Literal) else row)
            return values[v]

        content: dict[str, Any] = {
            "name": program.name,
            "parameters": list(program.parameters),
            "values": rows,
            "inputs": [index_of(v) for v in program.inputs],
            "constants": [[index_of(v), self._constant(x)] for v, x in program.constants.items()],
            "equations": [self._equation(e, index_of, drop_rules) for e in program.equations],
            "outputs": [index_of(v) for v in program.outputs],
        }
        for key in ("arguments", "result"):
            structure = getattr(program, key)
            if structure is not None:
                content[key] = structure_to_json(structure, self.program_indices.__getitem__)
        if program.donated:
            content["donated"] = sorted(program.donated)
        self.program_indices[program] = len(self.program_indices)
        return content

    def _equation(
        self, equation: Equation, index_of: Callable[[Variable], int], drop_rules: bool
    ) -> dict[str, Any]:
        content: dict[str, Any] = {"op": self._op(equation.op, drop_rules)}
        content["operands"] = [index_of(v) for v in equation.operands]
        if equation.params:
            content["params"] = [to_json(p, self.program_indices.__getitem__) for p in equation.params]
        content["results"] = [index_of(v) for v in equation.results]
        if equation.origin is not None:
            name = portable_name(equation.origin.file)
            file = self.file_indices.setdefault(name, len(self.file_indices))
            content["origin"] = [file, equation.origin.line]
        if equation.scope:
            content["scope"] = equation.scope
        return content

    def _op(self, op: Op, drop_rules: bool) -> str:
        registered = OPS.get(op.name)
        if registered is op:
            return op.name
        if op.higher_order is not None:
            if (
                registered is None or registered.higher_order is not op.higher_order
            ):  # an op with custom rules shares the higher-order rules
                names = [other.name for other in OPS.values() if other.higher_order is not None]
                raise ProgramError(
                    f"the op {op.name!r} runs programs, but a file can only contain {', '.join(names)} of these ops"
                )
            return op.name
        if not drop_rules:
            raise ProgramError(
                f"{op.name!r} has custom derivative rules, which are Python code; pass drop_rules=True to "
                f"save it without the rules, or add the op to the op table "
                f"(tensorken_core.language.op.register)"
            )
        return "call"

    def _number(self, value: bool | int | float) -> Any:
        return format_float(value) if isinstance(value, float) else value

    def _constant(self, x: Tensor) -> int:
        key = id(x.representation)
        if key not in self.constant_indices:
            self.constant_indices[key] = len(self.constants)
            data = base64.b64encode(elements_of(x)).decode()
            self.constants.append({"dtype": x.dtype.name, "shape": list(x.shape), "data": data})
        return self.constant_indices[key]


def elements_of(x: Tensor) -> bytes:
    """The elements as bytes, row-major and little-endian."""
    if not isinstance(x.interpreter, RawTensor):
        transform = getattr(x.interpreter, "transform", "a transform")
        raise ProgramError(
            f"a constant of shape {x.shape} belongs to {transform}, so it has no value to save; pass it as an argument"
        )
    try:
        flat = x.flat()
    except TensorkenError as error:
        raise ProgramError(f"a constant of shape {x.shape} has no elements to save: {error}") from None
    return little_endian(packed(flat, x.dtype), x.dtype)


def little_endian(data: bytes, dtype: DType) -> bytes:
    """Bytes with the byte order swapped on big-endian machines; the function is its own inverse."""
    if sys.byteorder == "little":
        return data
    size = dtype.itemsize
    return b"".join([data[i : i + size][::-1] for i in range(0, len(data), size)])


def _json_lines(value: Any, depth: int, before: str = "", after: str = "") -> Iterator[str]:
    """JSON with each value down to a depth on a separate line."""
    if depth == 0 or not isinstance(value, list | dict) or not value:
        yield f"{before}{json.dumps(value, ensure_ascii=True)}{after}"
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    indent = " " * (len(before) - len(before.lstrip()))
    yield f"{before}{opening}"
    items = value.items() if isinstance(value, dict) else [(None, v) for v in value]
    for i, (key, item) in enumerate(items):
        name = "" if key is None else f"{json.dumps(key)}: "
        yield from _json_lines(item, depth - 1, f"{indent} {name}", "," if i < len(value) - 1 else "")
    yield f"{indent}{closing}{after}"
