"""Compiler plugins: the kit offers them programs for the backend itself, and detects faulty compilers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import run_law
from tensorken.programs.compiler_choice import VARIABLE
from tensorken.programs.execution import with_compiler
from tensorken_conformance.backends.loading import load, origin
from tensorken_conformance.cli import main
from tensorken_conformance.compilers import totals
from tensorken_conformance.faults.compilers import correct_compiler
from tensorken_conformance.programs.offers import installed, without_installed
from tensorken_conformance.pytest_plugin import TEMPLATES
from tensorken_conformance.report.model import Report, make
from tensorken_conformance.report.serial import from_json, to_json
from tensorken_conformance.report.terminal import to_text
from tensorken_conformance.running.examine import examine, laws_for
from tensorken_conformance.running.options import Options
from tensorken_conformance.running.run import run
from tensorken_conformance.subject import Subject
from tensorken_core.host.plugin import hookimpl
from tensorken_core.host.registry import REGISTRY
from tensorken_core.program.program import Program
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy

COMPILED = ("programs.compiled",)


def correct(program: Program, backend: Any) -> Any:
    """A correct compiler of all programs for numpy."""
    return correct_compiler(backend, program) if isinstance(backend, Numpy) else None


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the template of compilers, which compiles during the test."""
    monkeypatch.syspath_prepend(TEMPLATES / "compiler" / "src")
    from tensorken_mycompiler import compiler, plugin

    with with_compiler(plugin.tensorken_compile, "plugins:mycompiler@tensorken-mycompiler"):
        yield compiler


def report(*select: str) -> Report:
    return make(run(Options("numpy", select=select or COMPILED, in_process=True)))


def test_programs_are_offered_for_the_backend_itself() -> None:
    backend = Numpy()
    offered: list[Any] = []
    with with_compiler(lambda program, backend: offered.append(backend), "recorder"):
        results = run_law(backend, "programs.compiled", where=lambda case: case.detail == "0")
    assert len(results) > 2 and {r.status for r in results} == {"passed"}
    assert len(offered) > 50
    assert all(target is backend for target in offered)


def test_the_template_compiles_programs_and_the_report_names_it(example: Any) -> None:
    result = report()
    assert (result.status, result.header.name) == (0, "numpy+mycompiler")
    (programs,) = totals(result.results).values()
    assert 50 <= programs.compiled <= programs.offered and programs.offered > 600
    text = to_text(result)
    assert f"mycompiler: {programs.compiled} of {programs.offered} programs compiled" in text
    assert text.rstrip().rpartition("\n")[2].startswith("numpy+mycompiler: ")
    again = from_json(to_json(result))
    assert again.header == result.header and totals(again.results) == totals(result.results)


FAULTS: dict[str, Callable[[Any], Any]] = {
    "maximum": lambda ufunc: np.fmax,
    "sub": lambda ufunc: lambda a, b, out=None: np.subtract(b, a, out=out),
    "tanh": lambda ufunc: lambda x, out=None: np.multiply(ufunc(x), x.dtype.type(1.001), out=out),
    "eq": lambda ufunc: np.greater_equal,
}


@pytest.mark.parametrize("op", FAULTS)
def test_a_faulty_op_of_a_compiler_is_detected(
    op: str, example: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = FAULTS[op](example.UFUNCS[op])
    if not hasattr(faulty, "__name__") or faulty.__name__ == "<lambda>":
        faulty.__name__ = f"wrong_{op}"
    monkeypatch.setitem(example.UFUNCS, op, faulty)
    assert report("programs.compiled/special", "programs.compiled/short").status == 1


def test_a_compiled_program_that_overwrites_operands_is_detected(
    example: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(program: Program, original: Any = example.compiled) -> Any:
        function = original(program)

        def call(xs: Any) -> Any:
            ys = function(xs)
            for x in xs:
                if (x.shape, x.dtype) == (ys[0].shape, ys[0].dtype) and x.flags.writeable:
                    x[...] = ys[0]
            return ys

        return function and call

    monkeypatch.setattr(example, "compiled", compiled)
    assert report("programs.recompiled").status == 1


@pytest.mark.parametrize(
    "law",
    [
        "programs.recompiled",
        *[pytest.param(law, marks=pytest.mark.nightly) for law in ("programs.compiled", "lifetime.threads")],
    ],
)
def test_correct_compilers_pass(law: str) -> None:
    with with_compiler(correct, "correct"):
        results = run_law(Numpy(), law, where=lambda case: case.op not in ("every-op",))
    assert {r.status for r in results} == {"passed"}, [r.says for r in results if r.status != "passed"]
    if law == "programs.compiled":
        (programs,) = totals(results).values()
        assert programs.compiled == programs.offered > 600


def idle(program: Program, backend: Any) -> None:
    """A compiler that compiles no program."""


def test_a_compiler_that_compiles_nothing_fails_one_case() -> None:
    with with_compiler(idle, "idle"):
        result = report("programs.compiled/compiler", "programs.compiled/special")
    (failure,) = result.failures
    assert failure.case.id == "programs.compiled/compiler/-/-/-/idle"
    assert failure.says.startswith("compiler idle: expected at least one compiled program, got none of the ")
    assert result.header.name == "numpy"
    assert "idle: 0 of" in to_text(result)


def test_a_compiler_for_another_backend_need_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "BACKENDS", ("other",), raising=False)
    with with_compiler(idle, "idle"):
        assert report("programs.compiled/special").status == 0


def test_a_compiler_that_never_gets_a_program_fails_one_case() -> None:
    with with_compiler(idle, "last"), with_compiler(correct, "first"):
        subject = Subject(Fuse(Numpy()), "numpy", depth="smoke")
        (law,) = laws_for(subject, COMPILED)
        results = {
            case.detail: examine(subject, law, case) for case in law.cases(subject) if case.op == "compiler"
        }
    assert {name: result.status for name, result in results.items()} == {"last": "failed", "first": "passed"}
    assert "other compilers compiled all programs before it was called" in results["last"].says


def test_without_compilers_the_law_has_no_compiler_cases() -> None:
    subject = Subject(Fuse(Numpy()), "numpy")
    (law,) = laws_for(subject, COMPILED)
    assert not [case for case in law.cases(subject) if case.op == "compiler"]


@pytest.mark.parametrize("variable", [None, "installed", "none"])
def test_without_installed_disables_installed_compilers(
    variable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with with_compiler(idle, "plugins:installed@my-installed"):
        if variable:
            monkeypatch.setenv(VARIABLE, variable)
        with without_installed(), with_compiler(correct, "fault"):
            assert installed() == ["fault"]
        assert os.environ.get(VARIABLE) == variable
        assert ("installed" in installed()) == (variable != "none")


def test_a_failure_names_a_compiler_that_raises() -> None:
    def broken(program: Program, backend: Any) -> None:
        raise KeyError("float16")

    with with_compiler(broken, "plugins:broken@my-broken"):
        result = report("programs.compiled/short")
    assert result.status == 1
    assert "compiler plugins:broken@my-broken failed on program" in result.failures[0].says


def test_a_failing_program_of_one_step_is_reduced_without_an_error() -> None:
    def zeros(program: Program, backend: Any) -> Any:
        compiled = correct(program, backend)
        return compiled and (lambda xs: [np.zeros_like(y) for y in compiled(xs)])

    with with_compiler(zeros, "zeros"):
        result = report("programs.compiled/special/-/-/-/0")
    assert "expected" in result.failures[0].says and "IndexError" not in result.failures[0].says


def test_the_report_has_the_notes_of_the_compilers_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = SimpleNamespace(
        tensorken_compile=hookimpl(lambda program, backend: None),
        tensorken_report_header=hookimpl(lambda: "noted: for tests"),
    )
    REGISTRY.plugins.register(plugin, "plugins:noted@my-noted")
    try:
        for chosen, expected in (("noted", True), ("-noted", False), ("none", False)):
            monkeypatch.setenv(VARIABLE, chosen)
            subject = load("numpy")
            assert ("noted: for tests" in origin(subject)["notes"]) == expected, chosen
    finally:
        REGISTRY.plugins.unregister(plugin)


def test_an_unknown_compiler_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, "lvm")
    assert main(["run", "numpy", "--select", "values.read-back"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("tensorken conformance: ") and error.count("\n") == 1
    assert "TENSORKEN_COMPILERS='lvm': there is no compiler 'lvm'" in error
