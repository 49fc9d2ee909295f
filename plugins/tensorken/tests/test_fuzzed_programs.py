"""Damaged and malicious program files: refused in one line, or programs that run like others."""

from __future__ import annotations

import ast
import base64
import json
import math
import os
import random
import warnings
from collections import Counter
from typing import Any

import pytest

import tensorken as tk
from core.tests.known_programs import REAL, bits
from core.tests.support import FUSED
from plugins.tensorken.tests.fuzzing import TooLongError, at_most, damaged_bytes, damaged_json, outcomes
from tensorken.programs.execution import prepared
from tensorken.programs.forms.files import checksum, serialize
from tensorken.programs.forms.loading import deserialize
from tensorken.programs.names import all_programs
from tensorken_core.errors import ProgramError, TensorkenError
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Program
from tensorken_core.tensor.tensor import Tensor

DEEP = int(os.environ.get("FUZZED_FILES", 1_000_000))
"""How many files the nightly test damages."""

SAVED = {name: serialize(program) for name, (program, _, _) in REAL.items()}
LARGE = 200_000  # the most elements of all values, times the steps of loops, for which a program runs


@pytest.fixture(autouse=True)
def _on_numpy():
    with tk.use_backend(FUSED):
        yield


def _make(shape: Any, data: Any, dtype: Any) -> Tensor:
    return tk.new(shape, data, dtype, backend=FUSED)


def with_checksum(content: Any) -> bytes:
    if isinstance(content, dict):
        content = {**content, "checksum": checksum(content)}
    return json.dumps(content).encode()


def arguments_for(program: Program) -> list[Tensor]:
    """Arguments of the program, the same at each call."""
    found = []
    for v in program.inputs:
        values = [
            (i * 7 % 5 - 1) / 2 if v.dtype.kind == "float" else i % 2 for i in range(math.prod(v.shape))
        ]
        found.append(tk.new(v.shape, values, v.dtype, backend=FUSED))
    return found


def size_of(program: Program) -> int:
    """The number of elements that are computed, if each while loop takes one step."""
    found = sum([math.prod(v.shape) for v in (*program.variables(), *program.outputs)])
    found += sum([math.prod(v.shape) for e in program.equations for v in e.operands])
    for equation in program.equations:
        steps = equation.params[3] if equation.op.name == "scan" else 1
        found += sum([size_of(p) * max(steps, 1) for p in equation.params if isinstance(p, Program)])
        if found > LARGE:
            break
    return found


def results_of(program: Program) -> Any:
    """The bits of the program's results, or the name of an error of ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # numpy's, for values outside of a dtype
            return bits(program.on(arguments_for(program)))
    except TensorkenError as error:
        return type(error).__name__


EXPECTED = {name: results_of(program) for name, (program, _, _) in REAL.items()}

_IMPORTS = {"base64", "functools", "struct", "tensorken", "tensorken_core.language.op"}
_CALLED = {"OPS", "base64", "struct", "functools", "elements_of", "ys", "both"}


def check_source(source: str) -> None:
    """Fail unless a module has only our header and functions of tensors."""
    module = ast.parse(source)
    functions = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
    for node in module.body:
        assert isinstance(node, ast.FunctionDef | ast.Import | ast.ImportFrom | ast.Assign | ast.Expr), (
            ast.dump(node)
        )
        if isinstance(node, ast.Assign):
            assert ast.unparse(node.targets[0]) == "CONSTANTS"
        if isinstance(node, ast.Expr):
            assert node is module.body[0] and isinstance(node.value, ast.Constant)
    for node in ast.walk(module):
        match node:
            case ast.Import(names=names):
                assert node in module.body and {name.name for name in names} <= _IMPORTS
            case ast.ImportFrom(module=name):
                assert node in module.body and name in _IMPORTS
            case ast.Attribute(attr=name):
                assert not name.startswith("_"), name
            case ast.Call(func=ast.Name(id=name)):
                assert name in functions | {"elements_of", "slice"}, name


TEXTS = (
    "",
    "import os",
    "x # y",
    "a\n    import os",
    "a\rb",
    "__import__",
    "None",
    "class",
    "tk",
    "OPS",
    "ys",
    "ｘ",
    "\x1b[2J",
)
"""Names for programs, parameters, files and keys."""


def altered(text: str, rng: random.Random) -> Any:
    """A file with one to three changes that keep it well-formed, often with the same shapes: a malicious file."""
    content = json.loads(text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        program = rng.choice(content["programs"])
        equations = program["equations"] or [{"op": "sin", "operands": [0], "results": [0]}]
        equation = rng.choice(equations)
        values = program["values"]
        loops = [e for e in equations if e["op"] in ("scan", "while_loop", "cond", "call")]
        match rng.randrange(12):
            case 0:
                equation["op"] = rng.choice([*OPS])
            case 1:  # another op with as many operands and params
                kinds = OPS[equation["op"]].params if equation["op"] in OPS else None
                alike = [
                    op.name
                    for op in OPS.values()
                    if op.params == kinds and op.arity in (None, len(equation["operands"]))
                ]
                equation["op"] = rng.choice(alike or ["sin"])
            case 2 | 3:  # another value of the same shape and dtype
                places = rng.choice((equation["operands"], program["outputs"]))
                if places:
                    i = rng.randrange(len(places))
                    alike_places = [p for p, row in enumerate(values) if row[:2] == values[places[i]][:2]]
                    places[i] = rng.choice(alike_places)
            case 4:
                rows = [row for row in values if len(row) == 3]
                if rows:
                    row = rng.choice(rows)
                    row[2] = rng.choice(
                        ("inf", "-0x0p+0", "nan:fff8000000000000", "0x1p+1023", True, 0, -1, 2**31 - 1, 2**62)
                    )
            case 5:
                if content["constants"]:
                    row = rng.choice(content["constants"])
                    row["data"] = base64.b64encode(rng.randbytes(len(base64.b64decode(row["data"])))).decode()
            case 6:  # specs, lengths, axes
                params = rng.choice(loops or equations).get("params") or [[]]
                i = rng.randrange(len(params))
                if isinstance(params[i], list) and params[i]:
                    params[i][rng.randrange(len(params[i]))] = rng.choice(
                        ("constant", "carry", 0, 1, 2, True, -1, [0, 1])
                    )
                elif isinstance(params[i], dict):
                    params[i] = {"program": rng.randrange(len(content["programs"]))}
                else:
                    params[i] = rng.choice((True, False, 0, 1, 2, 3, 10**6, "import os", None))
            case 7:
                program["name"] = rng.choice(TEXTS)
            case 8:
                program["parameters"] = [rng.choice(TEXTS) for _ in program["parameters"]]
            case 9:
                content["files"] = [rng.choice(TEXTS) for _ in content["files"]]
            case 10:  # keys of dicts in arguments and results
                structure = rng.choice((program.get("arguments"), program.get("result")))
                nodes = [
                    node
                    for node in structure or ()
                    if node is not None and isinstance(node[1], list) and node[1]
                ]
                if nodes:
                    node = rng.choice(nodes)
                    node[1][rng.randrange(len(node[1]))] = rng.choice((*TEXTS, 1, None, {"float": "inf"}))
            case _:
                program["donated"] = [rng.randrange(3)]
    return content


def attempt(rng: random.Random) -> str:
    """Damage a file, load it, and use every method of the program."""
    name = rng.choice(list(SAVED))
    text = SAVED[name]
    if rng.random() < 0.1:
        data = damaged_bytes(text.encode(), rng)
    else:
        damage = altered if rng.random() < 0.6 else damaged_json
        try:
            data = with_checksum(damage(text, rng))
        except (ValueError, UnicodeError):  # JSON that Python does not write
            return "unwritten"
    try:
        program = deserialize(data, "program.tk", FUSED, _make)
    except ProgramError as error:
        told = str(error)
    else:
        return outcome_of(program, EXPECTED[name], rng)
    assert told.startswith("load: program.tk: ") and "\n" not in told, told
    assert len(told) < 400, told
    return "refused"


def outcome_of(program: Program, expected: Any, rng: random.Random) -> str:
    """The outcomes of all uses of a program."""
    drawn = program.to_mermaid(), program.to_dot(), program.to_svg()
    for shown in (str(program), repr(program), program._repr_html_(), *drawn):
        assert isinstance(shown, str)
    again = serialize(program)
    assert serialize(deserialize(again.encode(), "again", FUSED, _make)) == again
    try:
        source = program.to_python()
    except ProgramError:
        source = ""
    if source:
        check_source(source)
    if size_of(program) > LARGE:
        return "large"
    loops = any([e.op.name == "while_loop" for p in all_programs(program) for e in p.equations])
    try:
        with warnings.catch_warnings(), at_most(0.5 if loops else 60.0):
            found = results_of(program)
            if isinstance(found, list) and rng.random() < 0.1:
                warnings.simplefilter("ignore", RuntimeWarning)
                compiled = prepared(program, FUSED)([x.representation for x in arguments_for(program)])
                assert [FUSED.shape(y) for y in compiled] == [v.shape for v in program.outputs]
    except TooLongError:
        if not loops:
            raise
        return "endless"
    if isinstance(found, str):
        return f"runs into {found}"
    return "same" if found == expected else "different"


def tally(seeds: range) -> Counter[str]:
    found = outcomes(attempt, seeds)
    print(dict(found))
    assert found.total() == len(seeds)
    return found


def test_a_damaged_program_file_is_refused_or_runs() -> None:
    found = tally(range(500))
    assert min(found["refused"], found["same"], found["different"]) > 10


@pytest.mark.nightly
def test_a_million_damaged_program_files_are_refused_or_run() -> None:
    tally(range(10_000, 10_000 + DEEP))
