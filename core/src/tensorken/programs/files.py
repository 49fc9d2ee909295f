"""Files: a program as text that another process or a later version reads; docs/programs.md describes the format."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tensorken.errors import ProgramError, TensorkenError
from tensorken.origin import Origin
from tensorken.programs.bodies import with_bodies
from tensorken.programs.names import called_last
from tensorken.programs.plain import float_of, float_text, plain, plain_structure, structure_of, value_of
from tensorken.programs.program import Equation, Literal, Program, Variable
from tensorken.spec.dtypes import DTYPES, DType
from tensorken.spec.op import OPS, Op
from tensorken.spec.raw import RawTensor
from tensorken.tensor import Tensor

FORMAT = "tensorken program"
VERSION = 1

Make = Callable[[tuple[int, ...], Any, DType], Tensor]
"""From shape, elements and dtype to a tensor."""


# ---- writing -----------------------------------------------------------------------------------------------


def written(program: Program, drop_rules: bool = False) -> str:
    """The text of a program.

    Raises:
        ProgramError: if something in it has no form in text.
    """
    writer = _Writer()
    try:
        programs = [writer.program(p, drop_rules) for p in reversed(called_last(with_bodies(program)))]
    except ProgramError as error:
        raise ProgramError(f"save: {program.name}: {error}") from None
    content = {
        "format": FORMAT,
        "version": VERSION,
        "files": list(writer.files),
        "constants": writer.constants,
        "programs": programs,
    }
    content = {**content, "checksum": checksum(content)}
    return "\n".join(_laid_out(content, 4)) + "\n"


def checksum(content: Mapping[str, Any]) -> str:
    """Of all but the checksum itself, however it is laid out."""
    rest = {key: value for key, value in content.items() if key != "checksum"}
    data = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"


class _Writer:
    def __init__(self) -> None:
        self.places: dict[Program, int] = {}
        self.files: dict[str, int] = {}
        self.constants: list[Any] = []
        self.known: dict[
            int, int
        ] = {}  # by the identity of a representation, as programs may share constants

    def program(self, program: Program, drop_rules: bool) -> dict[str, Any]:
        values: dict[Variable, int] = {}
        rows: list[Any] = []

        def place(v: Variable) -> int:
            if v not in values:
                values[v] = len(rows)
                row = [v.dtype.name, list(v.shape)]
                rows.append([*row, self._number(v.value)] if isinstance(v, Literal) else row)
            return values[v]

        found: dict[str, Any] = {
            "name": program.name,
            "parameters": list(program.parameters),
            "values": rows,
            "inputs": [place(v) for v in program.inputs],
            "constants": [[place(v), self._constant(x)] for v, x in program.constants.items()],
            "equations": [self._equation(e, place, drop_rules) for e in program.equations],
            "outputs": [place(v) for v in program.outputs],
        }
        for key in ("arguments", "result"):
            structure = getattr(program, key)
            if structure is not None:
                found[key] = plain_structure(structure, self.places.__getitem__)
        if program.donated:
            found["donated"] = sorted(program.donated)
        self.places[program] = len(self.places)
        return found

    def _equation(
        self, equation: Equation, place: Callable[[Variable], int], drop_rules: bool
    ) -> dict[str, Any]:
        found: dict[str, Any] = {"op": self._op(equation.op, drop_rules)}
        found["operands"] = [place(v) for v in equation.operands]
        if equation.params:
            found["params"] = [plain(p, self.places.__getitem__) for p in equation.params]
        found["results"] = [place(v) for v in equation.results]
        if equation.origin is not None:
            file = self.files.setdefault(equation.origin.file, len(self.files))
            found["origin"] = [file, equation.origin.line]
        if equation.scope:
            found["scope"] = equation.scope
        return found

    def _op(self, op: Op, drop_rules: bool) -> str:
        if op.whole is not None:
            if op.name not in with_programs():
                raise ProgramError(
                    f"the op {op.name!r} runs programs and is none of {', '.join(with_programs())}"
                )
            return op.name
        if OPS.get(op.name) is op:
            return op.name
        if not drop_rules:
            raise ProgramError(
                f"{op.name!r} has derivative rules of its own, which are Python and no data; pass drop_rules=True to "
                f"keep what it computes, differentiated as that is, or give it a place in the op table "
                f"(tensorken.spec.op.register)"
            )
        return "call"

    def _number(self, value: bool | int | float) -> Any:
        return float_text(value) if isinstance(value, float) else value

    def _constant(self, x: Tensor) -> int:
        key = id(x.representation)
        if key not in self.known:
            self.known[key] = len(self.constants)
            data = base64.b64encode(elements_of(x)).decode()
            self.constants.append({"dtype": x.dtype.name, "shape": list(x.shape), "data": data})
        return self.known[key]


def elements_of(x: Tensor) -> bytes:
    """The elements, row-major and little-endian."""
    if not isinstance(x.interpreter, RawTensor):
        transform = getattr(x.interpreter, "transform", "a transform")
        raise ProgramError(
            f"a constant of shape {x.shape} belongs to {transform}, so it has no value to keep; pass it as an argument"
        )
    try:
        flat = x.flat()
    except TensorkenError as error:
        raise ProgramError(f"a constant of shape {x.shape} has no elements to keep: {error}") from None
    if isinstance(flat, list):
        return struct.pack(f"<{len(flat)}{x.dtype.format}", *flat)
    return _little_endian(memoryview(flat).tobytes(), x.dtype)


def _little_endian(data: bytes, dtype: DType) -> bytes:
    """From, or to, the order of this machine."""
    if sys.byteorder == "little":
        return data
    size = dtype.itemsize
    return b"".join([data[i : i + size][::-1] for i in range(0, len(data), size)])


def _laid_out(value: Any, depth: int, before: str = "", after: str = "") -> Iterator[str]:
    """JSON with a line for each of the values down to a depth."""
    if depth == 0 or not isinstance(value, list | dict) or not value:
        yield f"{before}{json.dumps(value, ensure_ascii=True)}{after}"
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    indent = " " * (len(before) - len(before.lstrip()))
    yield f"{before}{opening}"
    items = value.items() if isinstance(value, dict) else [(None, v) for v in value]
    for i, (key, item) in enumerate(items):
        name = "" if key is None else f"{json.dumps(key)}: "
        yield from _laid_out(item, depth - 1, f"{indent} {name}", "," if i < len(value) - 1 else "")
    yield f"{indent}{closing}{after}"


# ---- reading -----------------------------------------------------------------------------------------------


def with_programs() -> dict[str, Op]:
    """The ops that run programs."""
    from tensorken.branches import COND
    from tensorken.calls import CALL
    from tensorken.loops import SCAN, WHILE

    return {op.name: op for op in (CALL, COND, SCAN, WHILE)}


def read(data: bytes, where: str, backend: Any, make: Make) -> Program:
    """The program of a text.

    Args:
        data: the text in UTF-8.
        where: it comes from, for messages.
        backend: on which the program runs if nothing says otherwise.
        make: makes its constants.

    Raises:
        ProgramError: if that is no text of a program, or not one for this version.
    """
    try:
        return _Reader(_content(data), backend, make).last()
    except ProgramError as error:
        raise ProgramError(f"load: {where}: {error}") from None
    except RecursionError:
        raise ProgramError(f"load: {where}: the file is damaged: it is nested too deep") from None
    except Exception as error:  # noqa: BLE001 - whatever a rule makes of facts that contradict one another
        told = " ".join(str(error).split())
        raise ProgramError(
            f"load: {where}: the file is damaged: {type(error).__name__}: {told:.120}"
        ) from None


def _content(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        told = " ".join(str(error).split())
        raise ProgramError(f"this is no JSON, so no program, or a damaged one: {told:.120}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ProgramError(f"this is no program: it lacks the entry 'format': {FORMAT!r}")
    version = content.get("version")
    if type(version) is not int or version > VERSION or version < 1:
        raise ProgramError(
            f"the format has version {version!r}, and this Tensorken reads up to {VERSION}; use a newer one"
        )
    if "checksum" in content and content["checksum"] != checksum(content):
        raise ProgramError(
            "the file is damaged: it differs from its checksum; if you changed it on purpose, remove that entry"
        )
    return content


def _entries(what: str, data: Any, needed: Sequence[str], known: Sequence[str] = ()) -> dict[str, Any]:
    """An object that has these entries, and no others than the known ones."""
    if not isinstance(data, dict):
        raise ProgramError(f"{what} is {data!r:.40}, need an object")
    lacking = [key for key in needed if key not in data]
    more = [key for key in data if key not in needed and key not in known]
    if lacking or more:
        told = f"lacks {lacking[0]!r}" if lacking else f"has an unknown entry {more[0]!r:.40}"
        raise ProgramError(f"the file is damaged: {what} {told}")
    return data


class _Reader:
    def __init__(self, content: dict[str, Any], backend: Any, make: Make) -> None:
        self.content = _entries(
            "the file", content, ("format", "version", "files", "constants", "programs"), ("checksum",)
        )
        self.backend = backend
        self.files = [str(file) for file in content["files"]]
        self.constants = [self._constant(row, make) for row in content["constants"]]
        self.programs: list[Program] = []
        self.ops = OPS | with_programs()

    def last(self) -> Program:
        for row in self.content["programs"]:
            self.programs.append(self._program(row))
        if not self.programs:
            raise ProgramError("the file has no program")
        return self.programs[-1]

    def _constant(self, row: Any, make: Make) -> Tensor:
        row = _entries("a constant", row, ("dtype", "shape", "data"))
        variable = self._variable([row["dtype"], row["shape"]])
        dtype = variable.dtype
        try:
            data = _little_endian(base64.b64decode(row["data"], validate=True), dtype)
        except binascii.Error as error:
            raise ProgramError(f"the file is damaged: a constant is no base64: {error}") from None
        count, needed = len(data), math.prod(variable.shape) * dtype.itemsize
        if count != needed:
            raise ProgramError(
                f"the file is damaged: a constant {dtype.name} {variable.shape} has {count} bytes, need {needed}"
            )
        if (
            dtype.format in "e?"
        ):  # which memoryview has not before Python 3.12, and whose bytes may be others than 0, 1
            return make(
                variable.shape, list(struct.unpack(f"{count // dtype.itemsize}{dtype.format}", data)), dtype
            )
        return make(variable.shape, memoryview(data).cast(dtype.format), dtype)  # type: ignore[call-overload]

    def _variable(self, row: Any) -> Variable:
        name, sizes, *literal = row
        if name not in DTYPES or not all([type(n) is int and n >= 0 for n in sizes]) or len(literal) > 1:
            raise ProgramError(f"the file is damaged: no value is {row!r:.60}")
        dtype, shape = DTYPES[name], tuple(sizes)
        if not literal:
            return Variable(shape, dtype)
        value: Any = literal[0]
        kinds: dict[str, type] = {"bool": bool, "int": int, "float": str}
        if type(value) is not kinds[dtype.kind]:
            raise ProgramError(f"the file is damaged: {value!r:.40} is no {dtype.name}")
        number: Any = float_of(str(value)) if dtype.kind == "float" else value
        return Literal(shape, dtype, number)

    def _at(self, place: Any) -> Program:
        if type(place) is not int or not 0 <= place < len(self.programs):
            raise ProgramError(
                f"the file is damaged: no program {place!r:.20} stands before the one that runs it"
            )
        return self.programs[place]

    def _program(self, row: Any) -> Program:
        row = _entries(
            "a program",
            row,
            ("name", "parameters", "values", "inputs", "constants", "equations", "outputs"),
            ("arguments", "result", "donated"),
        )
        values = [self._variable(value) for value in row["values"]]
        defined: set[Variable] = {v for v in values if isinstance(v, Literal)}

        def define(places: Any) -> tuple[Variable, ...]:
            found = tuple([values[_index(place, values)] for place in places])
            for v in found:
                if v in defined:
                    raise ProgramError("the file is damaged: a value is defined twice")
                defined.add(v)
            return found

        def use(places: Any) -> tuple[Variable, ...]:
            found = tuple([values[_index(place, values)] for place in places])
            if not defined.issuperset(found):
                raise ProgramError("the file is damaged: a value is used before it is defined")
            return found

        inputs = define(row["inputs"])
        constants: dict[Variable, Tensor] = {}
        for place, of in row["constants"]:
            (v,), x = define([place]), self.constants[_index(of, self.constants)]
            if (v.shape, v.dtype) != (x.shape, x.dtype):
                raise ProgramError(f"the file is damaged: a constant is {x.dtype.name} {x.shape}, not {v!r}")
            constants[v] = x
        equations = tuple([self._equation(e, define, use) for e in row["equations"]])
        outputs = use(row["outputs"])
        structures = {
            key: structure_of(row[key], self._at) if row.get(key) is not None else None
            for key in ("arguments", "result")
        }
        for structure, ends in ((structures["arguments"], inputs), (structures["result"], outputs)):
            if structure is not None and structure.size != len(ends):
                raise ProgramError(f"the file is damaged: {structure.size} leaves for {len(ends)} values")
        return Program(
            inputs,
            outputs,
            equations,
            constants,
            structures["arguments"],
            structures["result"],
            tuple([str(name) for name in row["parameters"]]),
            str(row["name"]),
            self.backend,
            frozenset([_index(place, inputs) for place in row.get("donated", ())]),
        )

    def _equation(
        self,
        row: Any,
        define: Callable[[Any], tuple[Variable, ...]],
        use: Callable[[Any], tuple[Variable, ...]],
    ) -> Equation:
        row = _entries("an equation", row, ("op", "operands", "results"), ("params", "origin", "scope"))
        op = self.ops.get(row["op"])
        if op is None:
            raise ProgramError(
                f"it needs the op {row['op']!r:.60}, which is not in the op table; install and import what brings it"
            )
        operands = use(row["operands"])
        params = tuple([value_of(p, self._at) for p in row.get("params", ())])
        _check_params(op, operands, params)
        shapes = op.shape(*[v.shape for v in operands], *params)
        dtypes = op.dtype(*[v.dtype for v in operands], *params)
        results = define(row["results"])
        expected = [(shapes, dtypes)] if op.results == 1 else list(zip(shapes, dtypes, strict=True))
        if [(v.shape, v.dtype) for v in results] != expected:
            raise ProgramError(f"the file is damaged: {op.name} gives other shapes or dtypes than it says")
        origin = None
        if row.get("origin") is not None:
            file, line = row["origin"]
            origin = Origin(self.files[_index(file, self.files)], line)
        scope = row.get("scope", 0)
        if type(scope) is not int or (origin is not None and type(origin.line) is not int):
            raise ProgramError("the file is damaged: a line or a scope is no number")
        return Equation(op, operands, params, results, origin, scope)


def _index(place: Any, values: Sequence[Any]) -> int:
    if type(place) is not int or not 0 <= place < len(values):
        raise ProgramError(f"the file is damaged: {place!r:.20} is no place among {len(values)}")
    return place


def _check_params(op: Op, operands: Sequence[Variable], params: Sequence[Any]) -> None:
    """Raise unless there are as many operands and params as the op takes, programs where it takes programs."""
    kinds = [kind == "program" for kind in op.params]
    if (op.arity not in (None, len(operands))) or [isinstance(p, Program) for p in params] != kinds:
        raise ProgramError(f"the file is damaged: {op.name} has other operands or params than it takes")
    if op.name == "call" and op.params == ("program",):
        given = [(v.shape, v.dtype) for v in operands]
        if given != [(v.shape, v.dtype) for v in params[0].inputs]:
            raise ProgramError("the file is damaged: a call gives its program other values than this takes")
