"""Loading: read a program from its file; every fault of the file is reported in one line."""

from __future__ import annotations

import base64
import binascii
import json
import keyword
import math
from collections.abc import Callable, Sequence
from typing import Any

from tensorken.interchange.elements import unpacked
from tensorken.programs.forms.checks import check_equation
from tensorken.programs.forms.files import FORMAT, VERSION, checksum, little_endian
from tensorken.programs.forms.json_values import from_json, parse_float, structure_from_json
from tensorken_core import tree
from tensorken_core.errors import ProgramError
from tensorken_core.language.dtypes import DTYPES, DType, bool_, check_scalar
from tensorken_core.language.op import named
from tensorken_core.language.shapes import MOST_AXES, MOST_ELEMENTS
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.source_line import Origin
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.text import printable

MakeTensor = Callable[[tuple[int, ...], Any, DType], Tensor]
"""A function from shape, elements and dtype to a tensor."""


def deserialize(data: bytes, where: str, backend: Any, make_tensor: MakeTensor) -> Program:
    """Read a program from the bytes of a file.

    Args:
        data: the text in UTF-8.
        where: the file's name, for messages.
        backend: the backend of programs without constants.
        make_tensor: makes the constants.

    Raises:
        ProgramError: if the text is not a program, or has a version that this library does not read.
    """
    try:
        return _Reader(_content(data), backend, make_tensor).last()
    except ProgramError as error:
        raise ProgramError(f"load: {where}: {printable(str(error)):.300}") from None
    except RecursionError:
        raise ProgramError(f"load: {where}: the file is damaged: it is nested too deeply") from None
    except Exception as error:  # noqa: BLE001 - rules may raise anything on contradictory values
        text = printable(" ".join(str(error).split()))
        raise ProgramError(
            f"load: {where}: the file is damaged: {type(error).__name__}: {text:.120}"
        ) from None


def _content(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        text = " ".join(str(error).split())
        raise ProgramError(f"this is not a program, or a damaged one: it is not JSON: {text:.120}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ProgramError(f"this is not a program: it lacks the entry 'format': {FORMAT!r}")
    version = content.get("version")
    if type(version) is not int or version > VERSION or version < 1:
        raise ProgramError(
            f"the format has version {version!r}, but this Tensorken reads up to {VERSION}; install a newer version"
        )
    if "checksum" in content and content["checksum"] != checksum(content):
        raise ProgramError(
            "the file is damaged: it differs from its checksum; if you changed it on purpose, remove that entry"
        )
    return content


def _entries(what: str, data: Any, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """The object, which must have all required entries and no unknown entries."""
    if not isinstance(data, dict):
        raise ProgramError(f"{what} is {data!r:.40}, need an object")
    missing = [key for key in required if key not in data]
    unknown = [key for key in data if key not in required and key not in optional]
    if missing or unknown:
        text = f"lacks {missing[0]!r}" if missing else f"has an unknown entry {unknown[0]!r:.40}"
        raise ProgramError(f"the file is damaged: {what} {text}")
    return data


class _Reader:
    def __init__(self, content: dict[str, Any], backend: Any, make_tensor: MakeTensor) -> None:
        self.content = _entries(
            "the file", content, ("format", "version", "files", "constants", "programs"), ("checksum",)
        )
        self.backend = backend
        self.files = [_text(file) for file in content["files"]]
        self.constants = [self._constant(row, make_tensor) for row in content["constants"]]
        self.programs: list[Program] = []

    def last(self) -> Program:
        rows = self.content["programs"]
        for i, row in enumerate(rows):
            program = self._program(row)
            if program.donated and i < len(rows) - 1:
                # Donation matters only to callers of the last program; passes change the inputs of the others.
                program = program.changed(donated=frozenset())
            self.programs.append(program)
        if not self.programs:
            raise ProgramError("the file has no program")
        return self.programs[-1]

    def _constant(self, row: Any, make_tensor: MakeTensor) -> Tensor:
        row = _entries("a constant", row, ("dtype", "shape", "data"))
        variable = self._variable([row["dtype"], row["shape"]])
        dtype = variable.dtype
        try:
            data = little_endian(base64.b64decode(row["data"], validate=True), dtype)
        except binascii.Error as error:
            raise ProgramError(f"the file is damaged: a constant is not base64: {error}") from None
        count, expected = len(data), math.prod(variable.shape) * dtype.itemsize
        if count != expected:
            raise ProgramError(
                f"the file is damaged: a constant {dtype.name} {variable.shape} has {count} bytes, need {expected}"
            )
        if dtype is bool_:  # a byte may be neither 0 nor 1
            data = bytes(map(bool, data))
        return make_tensor(variable.shape, unpacked(data, dtype), dtype)

    def _variable(self, row: Any) -> Variable:
        name, sizes, *literal = row
        if name not in DTYPES or not all([type(n) is int and n >= 0 for n in sizes]) or len(literal) > 1:
            raise ProgramError(f"the file is damaged: {row!r:.60} is not a value")
        dtype, shape = DTYPES[name], tuple(sizes)
        if len(shape) > MOST_AXES or math.prod([n or 1 for n in shape]) >= MOST_ELEMENTS:
            raise ProgramError(f"the file is damaged: a value of {dtype.name} {shape!s:.60} is too large")
        if not literal:
            return Variable(shape, dtype)
        value: Any = literal[0]
        kinds: dict[str, type] = {"bool": bool, "int": int, "float": str}
        if type(value) is not kinds[dtype.kind]:
            raise ProgramError(f"the file is damaged: {value!r:.40} is not a {dtype.name}")
        number: Any = parse_float(str(value)) if dtype.kind == "float" else value
        check_scalar(number, dtype)
        return Literal(shape, dtype, number)

    def _at(self, index: Any) -> Program:
        if type(index) is not int or not 0 <= index < len(self.programs):
            raise ProgramError(
                f"the file is damaged: there is no program {index!r:.20} before the one that runs it"
            )
        return self.programs[index]

    def _program(self, row: Any) -> Program:
        row = _entries(
            "a program",
            row,
            ("name", "parameters", "values", "inputs", "constants", "equations", "outputs"),
            ("arguments", "result", "donated"),
        )
        values = [self._variable(value) for value in row["values"]]
        defined: set[Variable] = {v for v in values if isinstance(v, Literal)}

        def define(indices: Any) -> tuple[Variable, ...]:
            variables = tuple([values[_index(index, values)] for index in indices])
            for v in variables:
                if v in defined:
                    raise ProgramError("the file is damaged: a value is defined twice")
                defined.add(v)
            return variables

        def use(indices: Any) -> tuple[Variable, ...]:
            variables = tuple([values[_index(index, values)] for index in indices])
            if not defined.issuperset(variables):
                raise ProgramError("the file is damaged: a value is used before it is defined")
            return variables

        inputs = define(row["inputs"])
        constants: dict[Variable, Tensor] = {}
        for index, constant_index in row["constants"]:
            (v,), x = define([index]), self.constants[_index(constant_index, self.constants)]
            if (v.shape, v.dtype) != (x.shape, x.dtype):
                raise ProgramError(f"the file is damaged: a constant is {x.dtype.name} {x.shape}, not {v!r}")
            constants[v] = x
        equations = tuple([self._equation(e, define, use) for e in row["equations"]])
        outputs = use(row["outputs"])
        structures = {
            key: structure_from_json(row[key], self._at) if row.get(key) is not None else None
            for key in ("arguments", "result")
        }
        for structure, variables in ((structures["arguments"], inputs), (structures["result"], outputs)):
            if structure is not None and structure.size != len(variables):
                raise ProgramError(
                    f"the file is damaged: {structure.size} leaves for {len(variables)} values"
                )
        if structures["arguments"] is not None:
            match tree.unflatten(structures["arguments"], inputs):
                case (tuple(), dict() as named) if all([isinstance(name, str) for name in named]):
                    pass
                case _:
                    raise ProgramError(
                        "the file is damaged: the arguments must be a tuple and a dict of keywords"
                    )
        return Program(
            inputs,
            outputs,
            equations,
            constants,
            structures["arguments"],
            structures["result"],
            tuple([_parameter(name) for name in row["parameters"]]),
            _text(row["name"]),
            self.backend,
            frozenset([_index(index, inputs) for index in row.get("donated", ())]),
        )

    def _equation(
        self,
        row: Any,
        define: Callable[[Any], tuple[Variable, ...]],
        use: Callable[[Any], tuple[Variable, ...]],
    ) -> Equation:
        row = _entries("an equation", row, ("op", "operands", "results"), ("params", "origin", "scope"))
        try:
            op = named(row["op"])
        except KeyError:
            raise ProgramError(
                f"it needs the op {row['op']!r:.60}, which is not in the op table; import the package that registers it"
            ) from None
        operands = use(row["operands"])
        params = tuple([from_json(p, self._at) for p in row.get("params", ())])
        check_equation(op, operands, params)
        shapes = op.shape(*[v.shape for v in operands], *params)
        dtypes = op.dtype(*[v.dtype for v in operands], *params)
        results = define(row["results"])
        expected = [(shapes, dtypes)] if op.results == 1 else list(zip(shapes, dtypes, strict=True))
        if [(v.shape, v.dtype) for v in results] != expected:
            raise ProgramError(
                f"the file is damaged: {op.name} does not have the shapes or dtypes that the file states"
            )
        origin = None
        if row.get("origin") is not None:
            file, line = row["origin"]
            origin = Origin(self.files[_index(file, self.files)], line)
        scope = row.get("scope", 0)
        if type(scope) is not int or (origin is not None and type(origin.line) is not int):
            raise ProgramError("the file is damaged: a line or a scope is not a number")
        return Equation(op, operands, params, results, origin, scope)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ProgramError(f"the file is damaged: {value!r:.40} is not a string")
    return value


def _parameter(value: Any) -> str:
    """The name of a function's parameter."""
    if not _text(value).isidentifier() or keyword.iskeyword(value):
        raise ProgramError(f"the file is damaged: {value!r:.40} is not the name of a parameter")
    return str(value)


def _index(index: Any, values: Sequence[Any]) -> int:
    if type(index) is not int or not 0 <= index < len(values):
        raise ProgramError(f"the file is damaged: {index!r:.20} is not an index into {len(values)} values")
    return index
