"""The cache of compiled programs: what is found, and what is compiled again."""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from llvmlite import ir

import tensorken as tk
from plugins.llvm.tests.test_programs import MIXED, NUMPY, machine, traced
from tensorken.programs import execution
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.errors import SettingError
from tensorken_core.host.registry import REGISTRY
from tensorken_core.language.op import OPS, Op
from tensorken_core.program.program import Program
from tensorken_core.tensor.tensor import apply
from tensorken_llvm import cache, plugin, program as programs
from tensorken_llvm.keys import MAX_CONSTANTS, environment, program_key
from tensorken_llvm.layouts import Layout
from tensorken_llvm.program import MachineProgram, compiled


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an empty cache."""
    cache.forget()
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """An element for each object file that is compiled: whether it is quick code."""
    found: list[bool] = []
    original = programs.object_code

    def recorded(text: str, is_quick: bool) -> bytes:
        found.append(is_quick)
        return original(text, is_quick)

    monkeypatch.setattr(programs, "object_code", recorded)
    return found


def test_programs_are_kept_on_disk(folder: Path, made: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> None:
        cache.forget()
        np.testing.assert_array_equal(machine(lambda x: x * 3.0, MIXED)([MIXED])[0], MIXED * 3)

    run()
    (file,) = folder.iterdir()
    content = file.read_bytes()
    run()
    assert len(made) == 1
    others = [hashlib.sha256(x).digest() + x for x in (b"x", b"2\n{}", b"", content[32:200])]
    for damaged in (content[:-1], content[:40] + b"x" + content[41:], b"", *others):
        file.write_bytes(damaged)
        run()
        assert file.read_bytes() == content
    assert len(made) == 8
    monkeypatch.setattr(cache, "MAX_BYTES", len(content) * 2)
    for factor in (5.0, 6.0, 7.0, 8.0):
        machine(lambda x, factor=factor: x * factor, MIXED)
    assert 1 <= len(list(folder.glob("*.o"))) <= 2


def test_the_file_of_another_program_is_not_used(folder: Path, made: list[bool]) -> None:
    machine(lambda x: x * 3.0, MIXED)
    (file,) = folder.iterdir()
    key = program_key(traced(lambda x: x * 4.0, MIXED), False)
    file.rename(folder / f"{key}.o")
    cache.forget()
    np.testing.assert_array_equal(machine(lambda x: x * 4.0, MIXED)([MIXED])[0], MIXED * 4)
    assert len(made) == 2


@pytest.mark.usefixtures("folder")
def test_equal_programs_share_their_code_in_memory(made: list[bool]) -> None:
    first, second = [machine(lambda x: (x + 1.0) * x, MIXED) for _ in range(2)]
    assert len(made) == 1
    for code in (first, second):
        np.testing.assert_array_equal(code([MIXED])[0], (MIXED + 1) * MIXED)


@pytest.mark.usefixtures("folder")
def test_constants_are_read_from_the_program_at_hand(made: list[bool]) -> None:
    for scale in (1.0, 2.0):
        constant = tk.tensor(MIXED * scale, backend=NUMPY)
        code = machine(lambda x, c=constant: tk.exp(x) * c + (x * c).sum(0), MIXED)
        np.testing.assert_allclose(
            code([MIXED])[0], (np.exp(MIXED) * MIXED + (MIXED**2).sum(0)) * scale, rtol=2e-5, atol=1e-5
        )
    assert len(made) == 1


@pytest.mark.usefixtures("folder")
def test_called_ops_are_run_from_the_cache(made: list[bool]) -> None:
    x = np.random.default_rng(1).normal(size=(5, 5)).astype("float32")
    expected = np.exp(np.sort(x * 2, axis=0)) + np.linalg.inv(x)
    for _ in range(2):
        cache.forget()
        code = machine(lambda x: tk.exp(tk.sort(x * 2.0, axis=0)) + tk.linalg.inv(x), x)
        np.testing.assert_allclose(code([x])[0], expected, rtol=1e-3, atol=1e-4)
    assert len(made) == 1


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + 1.5,
    "another number": lambda x: x + 1.25,
    "negative zero": lambda x: tk.where(x > 0.0, x, -0.0),
    "zero": lambda x: tk.where(x > 0.0, x, 0.0),
    "another op": lambda x: x - 1.5,
    "operands swapped": lambda x: 1.5 - x,
    "rows": lambda x: x.sum(0),
    "columns": lambda x: x.sum(1),
    "two results": lambda x: (x.sum(1), x + 1.5),
    "two results in another order": lambda x: (x + 1.5, x.sum(1)),
    "a called op": lambda x: tk.exp(tk.sort(x * 2.0, axis=0)),
    "a called op with other params": lambda x: tk.exp(tk.sort(x * 2.0, axis=1)),
    "a loop": lambda x: tk.scan(lambda c, y: (c + y, c * 2.0), x[0], x)[1],
    "another loop": lambda x: tk.scan(lambda c, y: (c + y, c * 3.0), x[0], x)[1],
}


def test_different_programs_have_different_keys() -> None:
    keys = [program_key(traced(f, MIXED), False) for f in PROGRAMS.values()]
    assert None not in keys and len({*keys}) == len(PROGRAMS)
    others = [traced(PROGRAMS["add"], x) for x in (MIXED[:5], MIXED.astype("float64"), MIXED.T)]
    assert len({program_key(p, False) for p in others} | {keys[0], program_key(others[0], True)}) == 5


@pytest.mark.usefixtures("folder")
def test_loops_read_their_own_constants() -> None:
    """Equal inner programs with constants of their own, and one inner program with one constant."""
    first, second = [tk.tensor(MIXED[i], backend=NUMPY) for i in (1, 2)]

    def loop(x: Any, constant: Any) -> Any:
        return tk.scan(lambda c, y: (c * 0.5 + constant, c * y), x[0], x)[1]

    def expected(x: Any, constant: Any) -> Any:
        carry, rows = x[0], []
        for row in x:
            rows.append(carry * row)
            carry = carry * 0.5 + constant
        return np.array(rows)

    for one, other in ((first, second), (second, first), (first, first)):
        code = machine(lambda x, one=one, other=other: (loop(x, one), loop(x + 1.0, other)), MIXED)
        for found, want in zip(
            code([MIXED]),
            (expected(MIXED, np.asarray(one)), expected(MIXED + 1, np.asarray(other))),
            strict=True,
        ):
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def test_other_environments_have_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorken_llvm import keys

    program = traced(PROGRAMS["add"], MIXED)
    known = program_key(program, False)
    monkeypatch.setattr(keys, "environment", lambda: "another CPU")
    assert program_key(program, False) != known


@pytest.mark.parametrize("name", ["plans", "lowering", "positions", "movement", "equation_writer", "carries"])
def test_keys_depend_on_the_files_that_write_plans(name: str) -> None:
    assert f"\n{name}.py " in environment()


def test_layouts_come_back_from_text() -> None:
    for f in PROGRAMS.values():
        code = compiled(traced(f, MIXED), NUMPY)
        if code is not None:
            assert isinstance(code, MachineProgram)
            assert Layout.from_json(code.layout.to_json()) == code.layout


SCRIPT = """
import hashlib, sys
sys.path[:0] = {path!r}
import test_cache as tests
for name, f in tests.PROGRAMS.items():
    program = tests.traced(f, tests.MIXED)
    code = tests.compiled(program, tests.NUMPY)
    if code is not None:
        source = code.source()
        text = source.text() + code.layout.to_json()
        print(name, tests.program_key(program, False), hashlib.sha256(text.encode()).hexdigest())
"""


def test_keys_plans_and_code_do_not_depend_on_the_process() -> None:
    script = SCRIPT.format(path=[str(Path(__file__).parent)])
    texts = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout)
    assert texts[0] == texts[1]
    assert texts[0].count("\n") > 10


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv(cache.VARIABLE, str(file / "folder"))
    np.testing.assert_array_equal(machine(lambda x: x * 9.0, MIXED)([MIXED])[0], MIXED * 9)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows keeps users apart by other means")
def test_machine_code_that_others_could_have_written_is_not_run(
    folder: Path, made: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> Any:
        cache.forget()
        return machine(lambda x: x * 2.5, MIXED)([MIXED])[0]

    np.testing.assert_array_equal(run(), MIXED * 2.5)
    files = [*folder.glob("*.o")]
    assert files
    assert len(made) == 1
    for file in files:  # the digest has no secret
        content = file.read_bytes()[32:].replace(np.float32(2.5).tobytes(), np.float32(4.5).tobytes())
        file.write_bytes(hashlib.sha256(content).digest() + content)
    np.testing.assert_array_equal(run(), MIXED * 4.5)  # only the user can have changed it
    folder.chmod(0o1777)
    with pytest.warns(RuntimeWarning, match="the cache .* is not used: it can be written by other users"):
        np.testing.assert_array_equal(run(), MIXED * 2.5)
    assert "none: the cache" in cache.description()


@pytest.mark.parametrize("text", ["", "  ", "relative", "~/cache", "a/../b"])
def test_a_folder_without_an_absolute_path_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(cache.VARIABLE, text)
    with pytest.raises(SettingError, match=r"TENSORKEN_LLVM_CACHE='.*': expected an absolute path"):
        cache.folder()
    assert [*tmp_path.iterdir()] == []


def test_unfinished_files_are_counted_and_removed(folder: Path) -> None:
    unfinished = folder / "key.o1234.part"
    unfinished.touch()
    assert "1 unfinished" in cache.description()
    os.utime(unfinished, (0, 0))
    cache._written.pop(folder, None)
    machine(lambda x: x * 7.5, MIXED)([MIXED])
    assert not unfinished.exists()
    assert " unfinished" not in cache.description()


# ---- quick code --------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick code for small programs."""
    monkeypatch.delenv(programs.QUICK)


@pytest.mark.usefixtures("quick", "folder")
def test_quick_code_is_optimised_when_it_has_run_often(
    made: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "QUICK_ELEMENTS", 5 * MIXED.size)
    code = machine(lambda x: tk.tanh(x) + 1.0, MIXED)
    first = code([MIXED])[0]
    np.testing.assert_allclose(first, np.tanh(MIXED) + 1, rtol=1e-6)
    for calls in range(2, 8):
        np.testing.assert_array_equal(code([MIXED])[0], first)
        assert made == ([True] if calls <= 5 else [True, False])
    for _ in range(2):  # the optimised code is kept
        machine(lambda x: tk.tanh(x) + 1.0, MIXED)([MIXED])
        cache.forget()
    assert made == [True, False]


@pytest.mark.parametrize("calls", range(4, 12))
@pytest.mark.usefixtures("quick", "folder")
def test_quick_code_that_is_used_up_runs_again_for_arguments_that_it_does_not_take(
    calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each such call asks the machine code up to three times, and any of these may be the last one."""
    monkeypatch.setattr(programs, "QUICK_ELEMENTS", calls * MIXED.size)
    code = machine(lambda x: tk.tanh(x) + 1.0, MIXED)
    for step in range(8):
        expected = MIXED + np.float32(step)
        strided = np.repeat(expected, 2, axis=-1)[..., ::2]
        np.testing.assert_allclose(code([strided])[0], np.tanh(expected) + 1, rtol=1e-6)


@pytest.mark.usefixtures("quick")
def test_large_programs_are_optimised_at_once(made: list[bool]) -> None:
    machine(lambda x: x + 1.0, np.zeros(2**15, "float32"))
    machine(lambda x: x.sum(), np.zeros(1000, "float32"))  # quick code would add in another order
    machine(lambda x: x.sum(), np.zeros(100, "float32"))
    machine(lambda x: x.max(), np.zeros(1000, "float32"))
    assert made == [False, False, True, True]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", PROGRAMS)
def test_quick_code_computes_the_same(name: str, made: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    program = traced(PROGRAMS[name], MIXED)
    found, expected = compiled(program, NUMPY), program.replay(NUMPY, [MIXED])
    if found is not None:
        assert made == [True]
        for x, y in zip(found([MIXED]), expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=2e-6, atol=1e-6)


def test_what_writes_a_program_dies_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    modules: list[weakref.ref[Any]] = []

    class Module(ir.Module):  # type: ignore[misc]
        def __init__(self, name: str) -> None:
            super().__init__(name)
            modules.append(weakref.ref(self))

    monkeypatch.setattr(ir, "Module", Module)
    machine(lambda x: tk.sin(x) + x.sum(0), MIXED)([MIXED])
    gc.collect()
    assert len(modules) == 1 and modules[0]() is None


def test_definitions_of_methods_die_with_their_code() -> None:
    code = machine(lambda x: x + 1.0, MIXED)
    library = weakref.ref(code._library)
    code([MIXED])
    del code
    gc.collect()
    assert library() is None


# ---- sharing -----------------------------------------------------------------------------------------------


def functions(f: Callable[..., Any], *arrays: Any) -> int:
    """How many kernels and products the machine code of a function has."""
    text = machine(f, *arrays).source().text()
    return text.count('define internal void @"kernel') + text.count('define internal void @"product')


def test_equal_kernels_are_one_function() -> None:
    def layer(x: Any, w: Any, b: Any) -> Any:
        return tk.exp(x @ w) / tk.exp(x @ w).sum(1, keepdims=True) + b

    def network(x: Any, *parameters: Any) -> Any:
        for w, b in zip(parameters[::2], parameters[1::2], strict=True):
            x = layer(x, w, b)
        return x

    rng = np.random.default_rng(3)
    parameters = [rng.normal(size=shape).astype("float32") / 8 for shape in [(32, 32), (32,)] * 4]
    x = rng.normal(size=(20, 32)).astype("float32")
    assert functions(network, x, *parameters) == functions(network, x, *parameters[:2]) == 2
    expected = x
    for w, b in zip(parameters[::2], parameters[1::2], strict=True):
        powers = np.exp(expected @ w)
        expected = powers / powers.sum(1, keepdims=True) + b
    np.testing.assert_allclose(machine(network, x, *parameters)([x, *parameters])[0], expected, rtol=1e-5)


DIFFERENT: dict[str, Callable[[Any, Any], Any]] = {
    "numbers": lambda x, y: (x.sum(0) * 2.0, y.sum(0) * 3.0),
    "zeros of other signs": lambda x, y: (tk.copysign(x.sum(0), 0.0), tk.copysign(y.sum(0), -0.0)),
    "ops": lambda x, y: (x.sum(0), y.max(0)),
    "axes": lambda x, y: (x.sum(0), y.sum(1)),
    "shapes": lambda x, y: (x.sum(0), y[:5].sum(0)),
    "dtypes": lambda x, y: (x.sum(0), y.astype("float64").sum(0)),
    "the order of operands": lambda x, y: (x.sum(0) - x[0], y[0] - y.sum(0)),
    "movements": lambda x, y: (tk.flip(x, 0).cumsum(0) * 0 + x.sum(0), (y.T.reshape(6, 8)).sum(0)),
    "results": lambda x, y: (x.sum(0), (s := y.sum(0)), s + 1.0),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_kernels_are_different_functions(name: str) -> None:
    f = DIFFERENT[name]
    program = traced(f, MIXED, MIXED * 2)
    expected = program.replay(NUMPY, [MIXED, MIXED * 2])
    code = compiled(program, NUMPY)
    assert isinstance(code, MachineProgram)
    for found, want in zip(code([MIXED, MIXED * 2]), expected, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(want))
    kernels = [step for step in code.source().plan.steps if hasattr(step, "computes")]
    assert functions(f, MIXED, MIXED * 2) == len(kernels) > 1


def test_programs_whose_constants_count_differently_are_not_the_same(folder: Path, made: list[bool]) -> None:
    labels = np.array([1, 0, 5, 2, 2, 7], "int32")
    ys: list[Any] = []
    for rows in (np.arange(6), np.arange(6)[::-1], np.array([0, 0, 1, 2, 3, 3])):
        constant = tk.tensor(rows.astype("int32"), backend=NUMPY)

        def f(x: Any, i: Any, rows: Any = constant) -> Any:
            return (x * 2.0).at[rows, i].add(1.0), x[rows, i]

        found = machine(f, MIXED, labels)([MIXED, labels])
        expected = MIXED * 2
        np.add.at(expected, (rows, labels), 1)
        np.testing.assert_array_equal(found[0], expected)
        np.testing.assert_array_equal(found[1], MIXED[rows, labels])
        ys.append(found)
    assert len(made) == 2  # the last two constants are read in memory
    assert program_key(traced(lambda x: x + tk.tensor(np.arange(3.0), backend=NUMPY), np.ones(3)), True)


# ---- programs before the passes ----------------------------------------------------------------------------


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An element for each program that goes through the passes: its name."""
    found: list[str] = []
    for module in (execution, programs):

        def recorded(program: Program, backend: Any) -> Program:
            found.append(program.name)
            return optimised(program, backend)

        monkeypatch.setattr(module, "optimised", recorded)
    return found


def run_jitted(f: Callable[..., Any], *arrays: Any) -> Any:
    """The result of a new jitted function, in a process that has no compiled program in memory."""
    cache.forget()
    with with_compiler_plugin():
        return np.asarray(tk.jit(f)(*[tk.tensor(x, backend=NUMPY) for x in arrays]))


@contextmanager
def with_compiler_plugin() -> Iterator[None]:
    """Register the hooks of the compiler, under a name of their own."""
    REGISTRY.load_plugins()
    REGISTRY.plugins.register(plugin_copy := SimpleNamespace(**vars(plugin)), "machine code")
    try:
        yield
    finally:
        REGISTRY.plugins.unregister(plugin_copy)


@pytest.mark.usefixtures("folder")
def test_the_passes_do_not_run_for_a_kept_program(made: list[bool], passes: list[str]) -> None:
    table = tk.tensor(MIXED * 2, backend=NUMPY)

    def f(x: Any) -> Any:
        return tk.softmax(x * table, axis=1) @ table.T + tk.tensor(np.eye(6, dtype="float32"), backend=NUMPY)

    first = run_jitted(f, MIXED)
    assert len(passes) == 2  # the second time for softmax, which is computed by its body
    np.testing.assert_array_equal(run_jitted(f, MIXED), first)
    assert (len(passes), len(made)) == (2, 1)
    cache.forget()
    with with_compiler_plugin():
        assert tk.jit(f).lower(tk.tensor(MIXED, backend=NUMPY)).kernels()
    assert len(made) == 1


@pytest.mark.usefixtures("folder")
def test_values_of_constants_are_part_of_the_name(passes: list[str]) -> None:
    for factor in (0.0, 1.0, 2.0, 3.0, 1.0):  # passes remove factors of 0 and 1
        scale = tk.tensor(np.full((6, 8), factor, "float32"), backend=NUMPY)
        np.testing.assert_array_equal(run_jitted(lambda x, s=scale: x * s + 1.0, MIXED), MIXED * factor + 1)
    assert len(passes) == 4
    table = tk.tensor(np.zeros(MAX_CONSTANTS // 4 + 1, "float32"), backend=NUMPY)
    for count in (5, 6):  # too large to be compared
        run_jitted(lambda x: (x[:, None] + table).sum(1), MIXED[0])
        assert len(passes) == count


@pytest.mark.usefixtures("folder")
def test_ops_of_others_are_not_named(passes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for factor in (2.0, 3.0):
        op = Op("scaled", 1, lambda x: x, lambda x: x, body=lambda x, factor=factor: x * factor)
        monkeypatch.setitem(OPS, "scaled", op)
        result = run_jitted(lambda x, op=op: apply(op, (x,)) + 1.0, MIXED)
        np.testing.assert_array_equal(result, MIXED * np.float32(factor) + 1)
    assert len(passes) == 2


def test_a_name_of_a_missing_program_is_not_used(folder: Path, made: list[bool], passes: list[str]) -> None:
    def run() -> None:
        np.testing.assert_array_equal(run_jitted(lambda x: x * 3.0, MIXED), MIXED * 3)

    run()
    name, code = sorted(folder.iterdir(), key=lambda file: file.stat().st_size)
    code.unlink()
    run()
    assert (len(made), len(passes)) == (2, 2)
    run()
    assert (len(made), len(passes)) == (2, 2)
    content = name.read_bytes()
    others = [hashlib.sha256(x).digest() + x for x in (b"2\n{}", b"%d\n%b" % (13 + 64, _head(name)))]
    for damaged in (content[:-1], b"", *others):
        name.write_bytes(damaged)
        run()
        assert name.read_bytes() == content
    assert len(passes) == 6


def _head(name: Path) -> bytes:
    return b'{"key": "%b"}' % name.stem.encode()


@pytest.mark.usefixtures("folder")
def test_quick_code_that_was_found_by_name_is_optimised(
    made: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(programs.QUICK)

    def f(x: Any) -> Any:
        return tk.exp(x) * 2.0

    run_jitted(f, MIXED)
    cache.forget()
    with with_compiler_plugin():
        jitted = tk.jit(f)
        for _ in range(programs.QUICK_ELEMENTS // MIXED.size + 2):
            result = np.asarray(jitted(tk.tensor(MIXED, backend=NUMPY)))
    np.testing.assert_allclose(result, np.exp(MIXED) * 2, rtol=1e-6)
    assert made == [True, False]
