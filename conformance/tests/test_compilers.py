"""Compiler plugins: the kit offers them programs for the backend itself, counts them, and finds wrong ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import results
from tensorken.programs.compiler_choice import VARIABLE
from tensorken.programs.execution import with_compiler
from tensorken_conformance.compilers import totals
from tensorken_conformance.faults.compilers import right_compiler
from tensorken_conformance.programs.offers import installed, without_installed
from tensorken_conformance.report.model import Report, make
from tensorken_conformance.report.serial import from_json, to_json
from tensorken_conformance.report.terminal import to_text
from tensorken_conformance.running.examine import examine, laws_for
from tensorken_conformance.running.options import Options
from tensorken_conformance.running.run import run
from tensorken_conformance.subject import Subject
from tensorken_core.program.program import Program
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy
from tools.workspace import ROOT

COMPILED = ("programs.compiled",)


def right(program: Program, backend: Any) -> Any:
    """A right compiler of all programs for numpy."""
    return right_compiler(backend, program) if isinstance(backend, Numpy) else None


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the example compiler."""
    monkeypatch.syspath_prepend(ROOT / "examples" / "plugins" / "compiler" / "src")
    from tensorken_example_compiler import compiler, plugin

    with with_compiler(plugin.tensorken_compile, "plugins:example-compiler@tensorken-example-compiler"):
        yield compiler


def report(*select: str) -> Report:
    return make(run(Options("numpy", select=select or COMPILED, in_process=True)))


def test_programs_are_offered_for_the_backend_itself() -> None:
    backend = Numpy()
    offered: list[Any] = []
    with with_compiler(lambda program, backend: offered.append(backend), "witness"):
        outcomes = results(backend, "programs.compiled", where=lambda case: case.detail == "0")
    assert [r.status for r in outcomes] == ["passed"] * 3
    assert len(offered) > 50
    assert all(one is backend for one in offered)


def test_the_example_compiler_compiles_programs_and_the_report_names_it(example: Any) -> None:
    found = report()
    assert (found.status, found.header.name) == (0, "numpy+example-compiler")
    (programs,) = totals(found.results).values()
    assert 50 <= programs.compiled <= programs.offered and programs.offered > 600
    text = to_text(found)
    assert f"example-compiler: {programs.compiled} of {programs.offered} programs compiled" in text
    assert text.rstrip().rpartition("\n")[2].startswith("numpy+example-compiler: ")
    again = from_json(to_json(found))
    assert again.header == found.header and totals(again.results) == totals(found.results)


FAULTS: dict[str, Callable[[Any], Any]] = {
    "maximum": lambda ufunc: np.fmax,
    "sub": lambda ufunc: lambda a, b, out=None: np.subtract(b, a, out=out),
    "tanh": lambda ufunc: lambda x, out=None: np.multiply(ufunc(x), x.dtype.type(1.001), out=out),
    "eq": lambda ufunc: np.greater_equal,
}


@pytest.mark.parametrize("op", FAULTS)
def test_an_example_compiler_with_a_wrong_op_is_found(
    op: str, example: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = FAULTS[op](example.UFUNCS[op])
    if not hasattr(wrong, "__name__") or wrong.__name__ == "<lambda>":
        wrong.__name__ = f"wrong_{op}"
    monkeypatch.setitem(example.UFUNCS, op, wrong)
    assert report("programs.compiled/special", "programs.compiled/short").status == 1


def test_an_example_compiler_that_writes_into_operands_is_found(
    example: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(program: Program, right: Any = example.compiled) -> Any:
        made = right(program)

        def called(xs: Any) -> Any:
            ys = made(xs)
            for x in xs:
                if (x.shape, x.dtype) == (ys[0].shape, ys[0].dtype) and x.flags.writeable:
                    x[...] = ys[0]
            return ys

        return made and called

    monkeypatch.setattr(example, "compiled", compiled)
    assert report("programs.recompiled").status == 1


@pytest.mark.parametrize(
    "law",
    [
        "programs.recompiled",
        *[pytest.param(law, marks=pytest.mark.nightly) for law in ("programs.compiled", "lifetime.threads")],
    ],
)
def test_no_law_finds_fault_in_a_right_compiler(law: str) -> None:
    with with_compiler(right, "right"):
        outcomes = results(Numpy(), law, where=lambda case: case.op not in ("every-op",))
    assert {r.status for r in outcomes} == {"passed"}, [r.says for r in outcomes if r.status != "passed"]
    if law == "programs.compiled":
        (programs,) = totals(outcomes).values()
        assert programs.compiled == programs.offered > 600


def idle(program: Program, backend: Any) -> None:
    """Compiles nothing."""


def test_a_compiler_that_compiles_nothing_fails_a_case_in_one_line() -> None:
    with with_compiler(idle, "idle"):
        found = report("programs.compiled/compiler", "programs.compiled/special")
    (failure,) = found.failures
    assert failure.case.id == "programs.compiled/compiler/-/-/-/idle"
    assert failure.says.startswith("compiler idle: expected at least one compiled program, got none of the ")
    assert found.header.name == "numpy"
    assert "idle: 0 of" in to_text(found)


def test_a_compiler_for_another_backend_need_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "BACKENDS", ("other",), raising=False)
    with with_compiler(idle, "idle"):
        assert report("programs.compiled/special").status == 0


def test_so_does_one_that_is_only_asked_after_another_has_compiled_everything() -> None:
    with with_compiler(idle, "last"), with_compiler(right, "first"):
        subject = Subject(Fuse(Numpy()), "numpy", depth="smoke")
        (law,) = laws_for(subject, COMPILED)
        found = {
            case.detail: examine(subject, law, case) for case in law.cases(subject) if case.op == "compiler"
        }
    assert {name: result.status for name, result in found.items()} == {"last": "failed", "first": "passed"}
    assert "other compilers compiled all programs before it was called" in found["last"].says


def test_without_compilers_there_is_no_such_case() -> None:
    subject = Subject(Fuse(Numpy()), "numpy")
    (law,) = laws_for(subject, COMPILED)
    assert not [case for case in law.cases(subject) if case.op == "compiler"]


@pytest.mark.parametrize("variable", [None, "installed", "none"])
def test_a_selftest_calls_no_installed_compilers(
    variable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with with_compiler(idle, "plugins:installed@my-installed"):
        if variable:
            monkeypatch.setenv(VARIABLE, variable)
        with without_installed(), with_compiler(right, "fault"):
            assert installed() == ["fault"]
        assert os.environ.get(VARIABLE) == variable
        assert ("installed" in installed()) == (variable != "none")


def test_a_compiler_that_fails_is_named() -> None:
    def broken(program: Program, backend: Any) -> None:
        raise KeyError("float16")

    with with_compiler(broken, "plugins:broken@my-broken"):
        found = report("programs.compiled/short")
    assert found.status == 1
    assert "compiler plugins:broken@my-broken failed on program" in found.failures[0].says


def test_a_wrong_program_of_one_step_is_reduced_to_that_step() -> None:
    def wrong(program: Program, backend: Any) -> Any:
        called = right(program, backend)
        return called and (lambda xs: [np.zeros_like(y) for y in called(xs)])

    with with_compiler(wrong, "wrong"):
        found = report("programs.compiled/special/-/-/-/0")
    assert "expected" in found.failures[0].says and "IndexError" not in found.failures[0].says
