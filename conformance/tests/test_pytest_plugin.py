"""The pytest plugin: it makes one test for each law and op, and does nothing without a backend."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

BACKENDS = """
from tensorken_core.host.plugin import Capabilities
from tensorken_numpy.backend import Numpy

class Correct(Numpy):
    capabilities = Capabilities(dtypes=("bool", "float32"), shares_memory=True)

class FillsWithZeros(Correct):
    def full(self, shape, value, dtype):
        return super().full(shape, 0, dtype)

class WithoutFull(Correct):
    capabilities = Capabilities(dtypes=("bool", "float32"), unsupported={"full": "no fill"}, shares_memory=True)

class FillsWithOtherValues(Correct):
    def full(self, shape, value, dtype):
        other = not value if dtype.name == "bool" else 1.5 if value == 2.5 else 2.5
        return super().full(shape, other, dtype)

class WithoutDtypes(Numpy):
    capabilities = Capabilities()
"""

THREE_LINES = """
def test_conformance(tensorken_law):
    tensorken_law.check()
"""

KIT = ("--pyargs", "tensorken_conformance")

QUICK = ("--tensorken-select", "values.read-back")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with backends, as a user of the plugin has it."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(pytester.path), *map(os.path.abspath, sys.path)]))
    for variable in (
        "PYTEST_ADDOPTS",
        "CI",
        "BUILD_NUMBER",
    ):  # with the last two, pytest prints failures twice
        monkeypatch.delenv(variable, raising=False)
    pytester.makepyfile(mine=BACKENDS)
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


def outcomes(result: pytest.RunResult) -> dict[str, int]:
    return dict(result.parseoutcomes())


def test_a_correct_backend_passes_one_test_for_each_law_and_op(project: pytest.Pytester) -> None:
    result = run(project, *KIT, *QUICK, "--tensorken-backend", "mine:Correct", "-v")
    assert outcomes(result) == {"passed": 3}
    result.stdout.fnmatch_lines(
        [
            "tensorken: backend mine:Correct, seed 0, default depth",
            "*::test_law?values.read-back/new? PASSED*",
            "*::test_law?values.read-back/full? PASSED*",
        ]
    )


def test_a_failed_test_shows_message_and_script_without_traceback(project: pytest.Pytester) -> None:
    result = run(
        project,
        *KIT,
        *QUICK,
        "--tensorken-backend",
        "mine:FillsWithZeros",
        "--tensorken-seed",
        "2",
        "-k",
        "full",
    )
    assert outcomes(result) == {"failed": 1, "deselected": 2}
    text = result.stdout.str()
    assert "values.read-back/full/bool/" in text
    assert "check('values.read-back/full/" in text
    assert "seed=2)" in text
    assert "\n... and " in text
    assert "pytest_laws.py" not in text
    assert "Traceback" not in text
    assert len(text.splitlines()) < 40


def test_several_workers_have_the_same_outcomes(project: pytest.Pytester) -> None:
    result = run(project, *KIT, *QUICK, "--tensorken-backend", "mine:FillsWithZeros", "-n", "2")
    assert outcomes(result) == {"passed": 2, "failed": 1}


def test_a_test_file_of_three_lines_examines_a_backend(project: pytest.Pytester) -> None:
    project.makepyfile(test_mine=THREE_LINES)
    project.makeini("[pytest]\nfilterwarnings = error\ntensorken_backend = mine:Correct\n")
    result = run(project, *QUICK, "test_mine.py")
    assert outcomes(result) == {"passed": 3}
    chosen = run(project, *QUICK, "test_mine.py", "--tensorken-backend", "mine:FillsWithZeros")
    assert outcomes(chosen) == {"passed": 2, "failed": 1}


def test_declared_unsupported_ops_are_skipped_with_the_reason(project: pytest.Pytester) -> None:
    result = run(project, *KIT, *QUICK, "--tensorken-backend", "mine:WithoutFull", "-rs")
    assert outcomes(result) == {"passed": 2, "skipped": 1}
    assert "declared unsupported: no fill" in result.stdout.str()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("test_mine.py",), "name the backend to examine, by --tensorken-backend NAME"),
        (("--tensorken-backend", "nunpy"), "did you mean: numpy"),
        (("--tensorken-backend", "mine:WithoutDtypes"), "declares no dtypes"),
        (
            ("--tensorken-backend", "numpy", "--tensorken-select", "values.readback"),
            "did you mean values.read-back",
        ),
    ],
)
def test_missing_or_invalid_arguments_fail(
    project: pytest.Pytester, arguments: tuple[str, ...], message: str
) -> None:
    project.makepyfile(test_mine=THREE_LINES)
    result = run(project, *(() if "test_mine.py" in arguments else KIT), *arguments)
    assert result.ret not in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert message in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize(
    ("name", "message", "workers"),
    [("nunpy", "did you mean: numpy", ()), ("mine:Corect", "did you mean Correct?", ("-n", "2"))],
)
def test_an_unknown_backend_is_a_usage_error_of_one_line(
    project: pytest.Pytester, name: str, message: str, workers: tuple[str, ...]
) -> None:
    result = run(project, *KIT, "--tensorken-backend", name, *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stdout.str().strip() == ""
    [line] = [line for line in result.stderr.str().splitlines() if line]
    assert line.startswith(f"ERROR: --tensorken-backend: unknown backend {name!r}")
    assert message in line


def make_package(project: pytest.Pytester, *lines: str) -> None:
    """Write the package `known` with faulty backends, and its file of expected failures."""
    package = project.path / "known"
    package.mkdir()
    (package / "__init__.py").write_text(BACKENDS)
    (package / "conformance.txt").write_text("\n".join(lines))


def test_expected_failures_do_not_fail_until_they_expire(project: pytest.Pytester) -> None:
    line = "values.read-back/{}/*/one | known | https://example.org/1 | {}-01-01"
    make_package(project, line.format("full", 2099), line.format("new", 2099))
    arguments = (*KIT, "--tensorken-backend", "known:FillsWithOtherValues", "-rx")
    select = [f"--tensorken-select=values.read-back/{op}/bool/one" for op in ("full", "new", "sequence")]
    result = run(project, *arguments, *select)
    assert outcomes(result) == {"passed": 1, "xfailed": 1, "failed": 1}
    text = result.stdout.str()
    assert "1 of 1 cases: known (https://example.org/1, until 2099-01-01)" in text
    assert "passes now: take it out of known/conformance.txt:2" in text
    (project.path / "known" / "conformance.txt").write_text(line.format("full", 2020))
    expired = run(project, *arguments, *select)
    assert outcomes(expired) == {"passed": 2, "failed": 1}
    assert "expired on 2020-01-01" in expired.stdout.str()
    other = run(
        project, *KIT, "--tensorken-backend", "known:Correct", "--tensorken-select=values.read-back/new"
    )
    assert outcomes(other) == {"passed": 1}
    assert "known/conformance.txt:1: values.read-back/full/*/one was not examined" in other.stdout.str()


def test_an_expected_failure_that_matches_no_case_is_an_error(project: pytest.Pytester) -> None:
    make_package(project, "values.read-back/gone/* | zeros | https://example.org/1 | 2099-01-01")
    result = run(project, *KIT, "--tensorken-backend", "known:Correct", "--collect-only", "-q")
    assert result.ret != 0
    assert "values.read-back/gone/* matches no case" in result.stdout.str()


def test_without_a_backend_the_plugin_does_nothing(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_own="""
        import sys

        def test_own():
            assert not {"numpy", "mpmath", "tensorken", "tensorken_conformance.pytest_laws"} & set(sys.modules)
        """
    )
    result = run(project, "test_own.py", "--strict-config", "--strict-markers", "-p", "no:hypothesispytest")
    assert outcomes(result) == {"passed": 1}
    assert "tensorken: backend" not in result.stdout.str()


def test_needed_cases_are_examined_even_if_not_selected() -> None:
    from tensorken_conformance.backends.loading import load
    from tensorken_conformance.case import Case
    from tensorken_conformance.expectations import Expectation
    from tensorken_conformance.law import LAWS
    from tensorken_conformance.pytest_laws import Examination
    from tensorken_conformance.running.plan import Plan

    subject = load("conformance.tests.fake_backends:Unreadable")
    movement = Plan(subject, ["values.movement"]).laws[0]
    expectations: list[Expectation] = []
    case = next(case for case in movement.cases(subject) if case.dtype == "float32")
    assert isinstance(case, Case)
    assert movement is LAWS["values.movement"]
    assert (
        Examination(subject, expectations)
        .examine(movement, case)
        .says.startswith("blocked by values.read-back/")
    )


def test_the_package_contains_the_collected_test_file() -> None:
    import tensorken_conformance

    assert (Path(tensorken_conformance.__file__).parent / "test_conformance.py").exists()


def test_each_law_is_collected_once(project: pytest.Pytester) -> None:
    result = run(project, *KIT, *QUICK, "--tensorken-backend", "mine:Correct", "--collect-only", "-q")
    tests = [line for line in result.outlines if "::" in line]
    assert len(tests) == 3, tests
