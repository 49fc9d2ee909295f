"""Program files: a saved program loads to the last bit, and a damaged file is refused in one line."""

from __future__ import annotations

import ast
import base64
import dataclasses
import importlib
import json
import random
import re
import struct
import subprocess
import sys
from collections import OrderedDict, defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tensorken as tk
from core.tests import known_programs
from core.tests.examples import examples
from core.tests.known_programs import REAL, Layer, Pair, X, bits, block, same, softplus
from core.tests.random_programs.strategies import of_the_table, programs, traced
from core.tests.support import FUSED
from tensorken.programs.forms.files import checksum, serialize
from tensorken.programs.forms.loading import deserialize
from tensorken.programs.names import all_programs
from tensorken_core.errors import ProgramError
from tensorken_core.language.op import OPS, Op
from tensorken_core.program.program import Literal, Program
from tensorken_core.tensor.tensor import Tensor

each_program = pytest.mark.parametrize("name", REAL)


@pytest.fixture(autouse=True)
def _on_numpy():
    with tk.use_backend(FUSED):
        yield


def through_file(program: Program, tmp_path: Any, **options: Any) -> Program:
    path = tmp_path / "program.tk"
    program.save(path, **options)
    return Program.load(path)


@each_program
def test_a_file_keeps_the_program_and_its_bits(name, tmp_path):
    program, arguments, keywords = REAL[name]
    again = through_file(program, tmp_path)
    assert same(program, again)
    assert bits(again(*arguments, **keywords)) == bits(program(*arguments, **keywords))
    result = again(*arguments, **keywords)
    assert tk.tree.structure(result) == tk.tree.structure(program(*arguments, **keywords))
    assert serialize(again) == serialize(program)


@settings(deadline=None, max_examples=examples(40))
@given(draft=st.booleans().flatmap(lambda whole: programs(whole=whole)))
def test_files_of_random_programs(draft):
    """Equal results where nothing is rounded; loaded constants may have another memory layout."""
    program, leaves = traced(draft, FUSED)
    text = serialize(program, drop_rules=True)  # users' rules are Python
    again = deserialize(text.encode(), "text", FUSED, _make)
    assert serialize(again) == text
    if of_the_table(program):
        assert same(program, again)
        results = again(*leaves), program(*leaves)
        assert not draft.program.whole or bits(results[0]) == bits(results[1])


def _make(shape: Any, data: Any, dtype: Any) -> Tensor:
    return tk.new(shape, data, dtype, backend=FUSED)


def test_a_loaded_program_is_differentiated_batched_and_jitted(tmp_path):
    program, arguments, _ = REAL["softmax"]
    again = through_file(program, tmp_path)
    assert bits(tk.grad(again)(*arguments)) == bits(tk.grad(program)(*arguments))
    assert bits(tk.jit(again)(*arguments)) == bits(tk.jit(program)(*arguments))
    rows = tk.stack([X, X * 2.0])
    assert bits(tk.vmap(again)(rows)) == bits(tk.vmap(program)(rows))


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("backend", [FUSED, "reference"], ids=["numpy", "reference"])
def test_constants_keep_their_bits(dtype, backend, tmp_path):
    values = {
        "bool": [True, False, True, True, False, True, False],
        "int32": [2**31 - 1, -(2**31), 0, 1, -1, 5, 7],
        "int64": [2**63 - 1, -(2**63), 0, 1, -1, 5, 7],
    }.get(dtype, [0.1, -0.0, float("inf"), -float("inf"), float("nan"), 6e-8, 1 / 3])
    if (
        dtype == "float16"
        and "float16" not in tk.tensor([1.0], backend=backend).interpreter.capabilities.dtypes
    ):
        pytest.skip("this backend has no float16")
    held = tk.tensor(values, dtype, backend=backend)

    def kept():
        return held

    with tk.use_backend(held.interpreter):
        program = tk.trace(kept)()
    path = tmp_path / "program.tk"
    program.save(path)
    again = Program.load(path, backend=backend)()
    assert again.backend == held.backend
    assert struct.pack("7d", *again.tolist()) == struct.pack("7d", *held.tolist())
    assert again.dtype is held.dtype
    written: dict[str, Any] = {}
    exec(program.to_python(), written)
    assert struct.pack("7d", *written["kept"]().tolist()) == struct.pack("7d", *held.tolist())


@pytest.mark.parametrize(
    "value", [0.1, -0.0, float("inf"), -float("inf"), float("nan"), 5e-324, 1.7976931348623157e308]
)
def test_numbers_keep_their_bits(value, tmp_path):
    program = tk.trace(lambda x: x * value)(tk.scalar(1.0, "float64"))
    again = through_file(program, tmp_path)
    (a,), (b,) = (
        [v.value for v in p.equations[0].operands if isinstance(v, Literal)] for p in (program, again)
    )
    assert struct.pack("d", a) == struct.pack("d", b)
    negative = struct.unpack("d", struct.pack("d", float("nan"))[:-1] + b"\xff")[0]
    y = Literal((), tk.float64, negative)
    kept = through_file(Program((), (y,), (), backend=FUSED), tmp_path).outputs[0]
    assert struct.pack("d", kept.value) == struct.pack("d", negative)


@pytest.mark.parametrize(
    "argument",
    [
        {"b": (1.0, None), "a": [2.0]},
        OrderedDict([("z", 1.0), ("a", 2.0)]),
        defaultdict(list, {"k": 1.0}),
        Pair(1.0, (2.0,)),
        Layer(1.0, 2.0, "first"),
        {(1, "x"): 1.0, 2: 2.0, "s": 3.0, 0.5: 4.0, None: 5.0, True: 6.0},
        {slice(0, 2) if sys.version_info >= (3, 12) else b"bytes": 1.0},
        (),
    ],
    ids=lambda x: type(x).__name__,
)
def test_structures_are_kept(argument, tmp_path):
    program = tk.trace(lambda x: {"again": x})(argument)
    again = through_file(program, tmp_path)
    assert again.arguments == program.arguments
    assert again.result == program.result
    assert type(again(argument)["again"]) is type(argument)


def test_unsupported_values_are_one_clear_error_and_leave_no_file(tmp_path):
    path = tmp_path / "program.tk"

    def refused(f, *arguments):
        with pytest.raises(ProgramError) as error:
            tk.trace(f)(*arguments).save(path)
        assert "\n" not in str(error.value)
        assert not path.exists()
        return str(error.value)

    class Local(NamedTuple):
        x: Any

    assert "the class" in refused(lambda p: p.x, Local(1.0))
    assert "define it at the top of a module" in refused(lambda p: p.x, Local(1.0))
    assert "type object cannot be saved" in refused(lambda p: p, {object(): 1.0})
    message = refused(lambda x: softplus(x), 1.0)
    assert "custom derivative rules" in message
    assert "drop_rules=True" in message
    assert "custom derivative rules" in refused(lambda x: block(x), 1.0)
    assert "no elements to save" in refused(lambda x: x * tk.symbol("w"), tk.symbol("x"))

    def inside(a):
        tk.trace(lambda x: x * a)(3.0).save(path)
        return a

    with pytest.raises(
        ProgramError, match="belongs to grad, so it has no value to save; pass it as an argument"
    ):
        tk.grad(inside)(2.0)


def test_rules_are_dropped_on_request(tmp_path):
    program = tk.trace(lambda x: softplus(block(x)) + block(x))(tk.scalar(0.5))
    again = through_file(program, tmp_path, drop_rules=True)
    assert bits(again(tk.scalar(0.5))) == bits(program(tk.scalar(0.5)))
    assert tk.grad(again)(0.5).item() == pytest.approx(tk.grad(program)(0.5).item(), rel=1e-6)


def test_scopes_names_and_lines_are_kept(tmp_path):
    program = tk.trace(lambda x, y: tk.sin(x) * y)(1.0, 2.0)
    first, second = program.equations
    program = program.changed(
        equations=(first, dataclasses.replace(second, scope=3)),
        donated=frozenset({1}),
        name='odd "name"\n\u2028',
    )
    again = through_file(program, tmp_path)
    assert same(program, again)
    assert again.equations[1].scope == 3
    assert again.equations[0].origin == dataclasses.replace(first.origin, file=Path(__file__).name)
    assert again.donated == {1}
    assert again.name == program.name


def test_a_file_tells_nothing_of_the_machine_of_its_author(tmp_path, monkeypatch):
    package = tmp_path / "home" / "author" / "nets"
    (package / "layers").mkdir(parents=True)
    for folder in (package, package / "layers"):
        (folder / "__init__.py").touch()
    (package / "layers" / "block.py").write_text("def block(x):\n    return x * 2.0\n")
    (tmp_path / "script.py").write_text("def f(x):\n    return x + 1.0\n")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.syspath_prepend(tmp_path)
    inner, script = importlib.import_module("nets.layers.block"), importlib.import_module("script")
    program = tk.trace(lambda x: script.f(inner.block(x)))(1.0)
    content = json.loads(serialize(program))
    assert content["files"] == ["nets/layers/block.py", "script.py"]
    assert "home" not in serialize(tk.trace(tk.jit(lambda x: script.f(inner.block(x))))(1.0))
    with monkeypatch.context() as patch:  # a saved program that is loaded elsewhere and saved again
        patch.chdir(package.parent)
        assert json.loads(serialize(through_file(program, tmp_path)))["files"] == content["files"]


def test_an_unknown_op_is_named(tmp_path):
    content = json.loads(serialize(REAL["softmax"][0]))
    content["programs"][-1]["equations"][0]["op"] = "sinc"
    assert "needs the op 'sinc', which is not in the op table" in refusal(with_checksum(content))


def test_a_newer_version_is_refused_as_such():
    content = json.loads(serialize(REAL["softmax"][0]))
    content["version"] = 2
    assert "the format has version 2, but this Tensorken reads up to 1; install a newer version" in refusal(
        with_checksum(content)
    )


def test_a_class_that_is_not_imported_is_named():
    content = json.loads(serialize(REAL["named"][0]))
    text = json.dumps(content).replace(f"{known_programs.__name__}:Pair", "elsewhere.models:Pair")
    message = refusal(with_checksum(json.loads(text)))
    assert "needs the class Pair of elsewhere.models" in message
    assert "elsewhere" not in sys.modules


def with_checksum(content: dict[str, Any]) -> bytes:
    return json.dumps({**content, "checksum": checksum(content)}).encode()


def refusal(data: bytes) -> str:
    with pytest.raises(ProgramError) as error:
        deserialize(data, "program.tk", FUSED, _make)
    message = str(error.value)
    assert message.startswith("load: program.tk: ")
    assert "\n" not in message
    return message


SAVED = {
    name: serialize(REAL[name][0]) for name in ("gradient", "jitted", "indices", "named", "many results")
}


@pytest.mark.parametrize("name", SAVED)
def test_damage_is_always_detected(name):
    """Changed, removed or added bytes are an error of one line, or do not change the program."""
    data = SAVED[name].encode()
    chance = random.Random(0)
    meant = json.loads(data)
    for _ in range(150):
        place = chance.randrange(len(data))
        kind = chance.choice(("flip", "cut", "drop", "repeat", "other"))
        damaged = {
            "flip": data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :],
            "cut": data[:place],
            "drop": data[:place] + data[place + 1 :],
            "repeat": data[:place] + data[place : place + 40] + data[place:],
            "other": data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :],
        }[kind]
        try:
            unharmed = json.loads(damaged) == meant
        except ValueError:
            unharmed = False
        if unharmed:
            deserialize(damaged, "program.tk", FUSED, _make)
        else:
            refusal(damaged)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *[place for key, inner in items for place in _places(inner, (*path, key))]]


STRANGE = [
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    "",
    "x",
    "nan:zz",
    [],
    {},
    [None],
    {"float": "x"},
    {"program": 0},
    [[[]]],
]


@pytest.mark.parametrize("name", SAVED)
def test_inconsistent_files_are_errors_even_with_a_valid_checksum(name):
    """Replaced or removed entries give a program that runs or an error of one line."""
    text = SAVED[name]
    chance = random.Random(1)
    places = _places(json.loads(text))
    messages: list[str] = []
    for _ in range(200):
        content = json.loads(text)
        place = chance.choice([p for p in places if p and p[0] != "checksum"])
        holder = content
        for key in place[:-1]:
            holder = holder[key]
        if chance.random() < 0.3:
            del holder[place[-1]]
        else:
            holder[place[-1]] = chance.choice(STRANGE)
        try:
            kept = deserialize(with_checksum(content), "program.tk", FUSED, _make)
            assert str(kept)
            assert kept._repr_html_()
        except ProgramError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert all("\n" not in message for message in messages)


def loops_of(path: tuple[Any, ...], value: Any, name: str = "loops") -> dict[str, Any]:
    """The file of loops, with one entry replaced."""
    content: dict[str, Any] = json.loads(serialize(REAL[name][0]))
    holder: Any = content
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return content


def _equation_of(op: str) -> tuple[Any, ...]:
    content = json.loads(serialize(REAL["loops"][0]))
    found = [
        (("programs", i, "equations", j), equation)
        for i, program in enumerate(content["programs"])
        for j, equation in enumerate(program["equations"])
        if equation["op"] == op
    ]
    return found[0][0]


CODE = "True) or __import__('sys').exit(3) or (0"


@pytest.mark.parametrize(
    ("op", "place", "value", "message"),
    [
        ("scan", ("params", 4), CODE, "reverse|comes first|kind"),
        ("scan", ("params", 3), CODE, "valid size"),
        ("scan", ("params", 3), True, "valid size"),
        ("scan", ("params", 3), 7, "there are no 7 slices along axis 0"),
        ("scan", ("params", 1, 0), CODE, "has the spec"),
        ("scan", ("params", 1, 0), 5, "along axis 5"),
        ("scan", ("params", 1, 0), True, "has the spec True"),
        ("scan", ("params", 1), ["carry"], "need one spec for each"),
        ("scan", ("params", 2, 0), "constant", "has the spec 'constant'"),
        ("scan", ("params", 2, 0), 0, "carries before and after a step differ"),
        ("scan", ("params", 1, 1), "constant", "carries before and after"),
        ("scan", ("params", 1, 2), "constant", "a step takes"),
        ("scan", ("params", 0), {"program": 0}, "specs|spec|step|takes"),
        ("while_loop", ("params", 2, 0), 0, "has the spec 0"),
        ("while_loop", ("params", 2, 1), "constant", "carries before and after"),
        ("while_loop", ("params", 0), {"program": 0}, "condition|differ"),
        ("cond", ("params", 0), {"program": 2}, "differ"),
        ("cond", ("operands",), [0], "differ|bool"),
        ("sum", ("params", 0), ["0); import os; (0"], "valid axes"),
        ("sum", ("params", 0), [1, 0], "valid axes"),
        ("sum", ("params", 0), [True], "valid axes"),
        ("crop", ("params", 0), [[0, 1, 2]], "valid limits"),
        ("reshape", ("params", 0), [{"float": "0x1p+0"}], "valid shape"),
    ],
)
def test_invalid_params_are_refused(op: str, place: Any, value: Any, message: str) -> None:
    told = refusal(with_checksum(loops_of((*_equation_of(op), *place), value)))
    assert re.search(message, told), told


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("programs", -1, "parameters", 0), "x=__import__('os')"),
        (("programs", -1, "parameters", 0), "x # y"),
        (("programs", -1, "parameters", 0), "class"),
        (("programs", -1, "parameters", 0), 3),
        (("programs", -1, "name"), ["f"]),
        (("files", 0), {"list": []}),
        (("programs", -1, "values", 0), ["float32", [2**40, 2**40]]),
        (("programs", -1, "values", 0), ["float32", [1] * 65]),
        (("programs", -1, "values", 0), ["int32", [], 2**40]),
    ],
)
def test_invalid_entries_are_refused(path: Any, value: Any) -> None:
    refusal(with_checksum(loops_of(path, value)))


def test_only_the_last_program_donates_inputs() -> None:
    """Passes change the inputs of inner programs."""
    content = loops_of(("programs", 5, "donated"), [1, 2])
    content["programs"][-1]["donated"] = [0]
    program = deserialize(with_checksum(content), "program.tk", FUSED, _make)
    assert [one.donated for one in all_programs(program)][:1] == [{0}]
    assert not any([one.donated for one in all_programs(program)[1:]])
    _, arguments, keywords = REAL["loops"]
    assert bits(program(*arguments, **keywords)) == bits(REAL["loops"][0](*arguments, **keywords))


def test_no_text_of_a_file_becomes_code() -> None:
    """Names, files and keys are written as data, or refused."""
    code = "a.py\n    raise SystemExit(3)\n    #"
    content = loops_of(("files",), [code, code, code])
    for program in content["programs"]:
        program["name"] = "f():\n    raise SystemExit(3)\ndef g"
    program = deserialize(with_checksum(content), "program.tk", FUSED, _make)
    source = program.to_python()
    module = ast.parse(source)
    assert {type(node) for node in module.body} <= {
        ast.Expr,
        ast.Import,
        ast.ImportFrom,
        ast.FunctionDef,
        ast.Assign,
    }
    assert not [node for node in ast.walk(module) if isinstance(node, ast.Raise)]
    assert "\n    raise" not in str(program)
    _, arguments, _ = REAL["loops"]
    names: dict[str, Any] = {}
    exec(compile(source, "module", "exec"), names)
    function = names[next(name for name in names if name.startswith("f_raise_SystemExit_3_def_g"))]
    assert callable(function) and arguments


def test_a_class_is_looked_up_without_running_its_modules_code() -> None:
    """A module's `__getattr__` may import."""
    module = ModuleType("asks")
    module.__getattr__ = lambda name: pytest.fail(f"asked for {name}")  # type: ignore[method-assign]
    text = json.dumps(json.loads(serialize(REAL["named"][0]))).replace(
        f"{known_programs.__name__}:Pair", "asks:Pair"
    )
    sys.modules["asks"] = module
    try:
        assert "needs the class Pair of asks" in refusal(with_checksum(json.loads(text)))
    finally:
        del sys.modules["asks"]


def test_a_file_without_a_checksum_may_be_changed_by_hand():
    content = json.loads(serialize(tk.trace(lambda x: x * 2.0)(1.0)))
    del content["checksum"]
    values = content["programs"][0]["values"]
    (place,) = [i for i, row in enumerate(values) if len(row) == 3]
    values[place][2] = (5.0).hex()
    program = deserialize(json.dumps(content).encode(), "text", FUSED, _make)
    assert program(3.0).item() == 15.0


def test_large_constants_take_a_third_more_than_their_bytes_and_are_stored_once():
    held = tk.tensor(np.arange(5000, dtype="float32"))
    program = tk.trace(lambda x: tk.jit(lambda a: a * held)(x) + held)(tk.ones(5000))
    text = serialize(program)
    assert len(json.loads(text)["constants"]) == 1
    assert len(text) < 1.4 * 20_000 + 3000
    assert (
        base64.b64decode(json.loads(text)["constants"][0]["data"]) == np.arange(5000, dtype="<f4").tobytes()
    )


def test_missing_files_and_files_that_are_not_json(tmp_path):
    with pytest.raises(FileNotFoundError):
        Program.load(tmp_path / "nowhere.tk")
    assert "it is not JSON" in refusal(b"\xff\xfe\x00")
    assert "it is not JSON" in refusal(b"[" * 100_000)
    assert "this is not a program" in refusal(b"[1, 2]")


def test_an_op_of_a_plugin_is_saved_by_name(tmp_path):
    op = Op(
        "thrice_for_a_test",
        1,
        lambda x: x,
        lambda x: x,
        body=lambda x: x * 3.0,
        jvp=(lambda t, y, x: t * 3.0,),
    )
    f = lambda x: x.apply(op)  # noqa: E731
    program = tk.trace(f)(tk.scalar(2.0))
    with pytest.raises(ProgramError, match="drop_rules"):
        program.save(tmp_path / "program.tk")
    OPS[op.name] = op
    try:
        again = through_file(program, tmp_path)
        assert again.equations[0].op is op
        assert again(tk.scalar(2.0)).item() == 6.0
    finally:
        del OPS[op.name]
    with pytest.raises(ProgramError, match="needs the op 'thrice_for_a_test'"):
        Program.load(tmp_path / "program.tk")


def test_numbers_combined_with_bools_are_saved_as_bools():
    x = tk.tensor([[True, True], [True, False]])
    program = tk.trace(tk.triu)(x)
    again = deserialize(serialize(program).encode(), "text", FUSED, _make)
    assert again(x).tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tk.cond(x.sum() > 0.0, tk.sin, tk.cos, x),
        lambda x: tk.scan(lambda c, _: (c * 2.0, None), x, None, length=3)[0],
        lambda x: tk.while_loop(lambda c: c.sum() < 9.0, lambda c: c + 1.0, x),
        tk.jit(lambda x: tk.sin(x) * x),
    ],
    ids=["cond", "scan", "while_loop", "call"],
)
def test_another_process_loads_programs_whose_ops_it_has_not_used(function, tmp_path):
    x = tk.tensor([1.0, 2.0])
    program = tk.trace(function)(x)
    program.save(tmp_path / "program.tk")
    script = (
        "import sys, tensorken as tk; print(tk.Program.load(sys.argv[1])(tk.tensor([1.0, 2.0])).tolist())"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "program.tk")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(program(x).tolist())
