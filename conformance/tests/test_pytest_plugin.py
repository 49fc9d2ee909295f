"""The pytest plugin: inert unless asked, a test for each law and op, the same with several workers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

BACKENDS = """
from tensorken_core.host.plugin import Capabilities
from tensorken_numpy.backend import Numpy

class Right(Numpy):
    capabilities = Capabilities(dtypes=("bool", "float32"), shares_memory=True)

class Wrong(Right):
    def full(self, shape, value, dtype):
        return super().full(shape, 0, dtype)

class Uncrossed(Right):
    capabilities = Capabilities(dtypes=("bool", "float32"), unsupported={"full": "no power"}, shares_memory=True)

class Opposite(Right):
    def full(self, shape, value, dtype):
        other = not value if dtype.name == "bool" else 1.5 if value == 2.5 else 2.5
        return super().full(shape, other, dtype)

class Nothing(Numpy):
    capabilities = Capabilities()
"""

THREE_LINES = """
def test_conformance(tensorken_law):
    tensorken_law.check()
"""

KIT = ("--pyargs", "tensorken_conformance")

QUICK = ("--tensorken-select", "values.read-back")


@pytest.fixture
def place(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A stranger's folder with some backends."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(pytester.path), *map(os.path.abspath, sys.path)]))
    for variable in (
        "PYTEST_ADDOPTS",
        "CI",
        "BUILD_NUMBER",
    ):  # with the last two, pytest tells failures twice
        monkeypatch.delenv(variable, raising=False)
    pytester.makepyfile(mine=BACKENDS)
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    return pytester


def run(place: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return place.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


def outcomes(result: pytest.RunResult) -> dict[str, int]:
    return dict(result.parseoutcomes())


def test_a_right_backend_passes_a_test_for_each_law_and_op(place: pytest.Pytester) -> None:
    result = run(place, *KIT, *QUICK, "--tensorken-backend", "mine:Right", "-v")
    assert outcomes(result) == {"passed": 3}
    result.stdout.fnmatch_lines(
        [
            "tensorken: backend mine:Right, seed 0, default depth",
            "*::test_law?values.read-back/new? PASSED*",
            "*::test_law?values.read-back/full? PASSED*",
        ]
    )


def test_a_wrong_backend_fails_with_message_and_script_and_no_traceback(place: pytest.Pytester) -> None:
    result = run(
        place, *KIT, *QUICK, "--tensorken-backend", "mine:Wrong", "--tensorken-seed", "2", "-k", "full"
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


def test_several_workers_find_the_same(place: pytest.Pytester) -> None:
    result = run(place, *KIT, *QUICK, "--tensorken-backend", "mine:Wrong", "-n", "2")
    assert outcomes(result) == {"passed": 2, "failed": 1}


def test_three_lines_in_a_strangers_file(place: pytest.Pytester) -> None:
    place.makepyfile(test_mine=THREE_LINES)
    place.makeini("[pytest]\nfilterwarnings = error\ntensorken_backend = mine:Right\n")
    result = run(place, *QUICK, "test_mine.py")
    assert outcomes(result) == {"passed": 3}
    chosen = run(place, *QUICK, "test_mine.py", "--tensorken-backend", "mine:Wrong")
    assert outcomes(chosen) == {"passed": 2, "failed": 1}


def test_what_is_declared_unsupported_is_skipped_with_its_reason(place: pytest.Pytester) -> None:
    result = run(place, *KIT, *QUICK, "--tensorken-backend", "mine:Uncrossed", "-rs")
    assert outcomes(result) == {"passed": 2, "skipped": 1}
    assert "declared unsupported: no power" in result.stdout.str()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("test_mine.py",), "name the backend to examine, by --tensorken-backend NAME"),
        (("--tensorken-backend", "nunpy"), "did you mean: numpy"),
        (("--tensorken-backend", "mine:Nothing"), "declares no dtypes"),
        (
            ("--tensorken-backend", "numpy", "--tensorken-select", "values.readback"),
            "did you mean values.read-back",
        ),
    ],
)
def test_there_is_no_silent_success(place: pytest.Pytester, arguments: tuple[str, ...], says: str) -> None:
    place.makepyfile(test_mine=THREE_LINES)
    result = run(place, *(() if "test_mine.py" in arguments else KIT), *arguments)
    assert result.ret not in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert says in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize(
    ("name", "says", "workers"),
    [("nunpy", "did you mean: numpy", ()), ("mine:Rihgt", "did you mean Right?", ("-n", "2"))],
)
def test_an_unknown_backend_is_an_error_of_usage_in_one_line(
    place: pytest.Pytester, name: str, says: str, workers: tuple[str, ...]
) -> None:
    result = run(place, *KIT, "--tensorken-backend", name, *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stdout.str().strip() == ""
    [line] = [line for line in result.stderr.str().splitlines() if line]
    assert line.startswith(f"ERROR: --tensorken-backend: unknown backend {name!r}")
    assert says in line


def expecting(place: pytest.Pytester, *lines: str) -> None:
    """A package with a wrong backend, whose file of expected failures has these lines."""
    package = place.path / "known"
    package.mkdir()
    (package / "__init__.py").write_text(BACKENDS)
    (package / "conformance.txt").write_text("\n".join(lines))


def test_expected_failures_are_no_failures_until_they_expire(place: pytest.Pytester) -> None:
    line = "values.read-back/{}/*/one | known | https://example.org/1 | {}-01-01"
    expecting(place, line.format("full", 2099), line.format("new", 2099))
    arguments = (*KIT, "--tensorken-backend", "known:Opposite", "-rx")
    select = [f"--tensorken-select=values.read-back/{op}/bool/one" for op in ("full", "new", "sequence")]
    found = run(place, *arguments, *select)
    assert outcomes(found) == {"passed": 1, "xfailed": 1, "failed": 1}
    text = found.stdout.str()
    assert "1 of 1 cases: known (https://example.org/1, until 2099-01-01)" in text
    assert "passes now: take it out of known/conformance.txt:2" in text
    (place.path / "known" / "conformance.txt").write_text(line.format("full", 2020))
    expired = run(place, *arguments, *select)
    assert outcomes(expired) == {"passed": 2, "failed": 1}
    assert "expired on 2020-01-01" in expired.stdout.str()
    other = run(place, *KIT, "--tensorken-backend", "known:Right", "--tensorken-select=values.read-back/new")
    assert outcomes(other) == {"passed": 1}
    assert "known/conformance.txt:1: values.read-back/full/*/one was not examined" in other.stdout.str()


def test_an_expected_failure_of_no_case_is_an_error(place: pytest.Pytester) -> None:
    expecting(place, "values.read-back/gone/* | zeros | https://example.org/1 | 2099-01-01")
    result = run(place, *KIT, "--tensorken-backend", "known:Right", "--collect-only", "-q")
    assert result.ret != 0
    assert "values.read-back/gone/* matches no case" in result.stdout.str()


def test_without_being_asked_it_does_nothing(place: pytest.Pytester) -> None:
    place.makepyfile(
        test_own="""
        import sys

        def test_own():
            assert not {"numpy", "mpmath", "tensorken", "tensorken_conformance.pytest_laws"} & set(sys.modules)
        """
    )
    result = run(place, "test_own.py", "--strict-config", "--strict-markers", "-p", "no:hypothesispytest")
    assert outcomes(result) == {"passed": 1}
    assert "tensorken: backend" not in result.stdout.str()


def test_needs_are_met_whichever_tests_are_chosen() -> None:
    from tensorken_conformance.case import Case
    from tensorken_conformance.expectations import Expectation
    from tensorken_conformance.law import LAWS
    from tensorken_conformance.pytest_laws import Examination
    from tensorken_conformance.running.loading import load
    from tensorken_conformance.running.plan import Plan

    wrong = load("conformance.tests.fake_backends:Unreadable")
    movement = Plan(wrong, ["values.movement"]).laws[0]
    none: list[Expectation] = []
    case = next(case for case in movement.cases(wrong) if case.dtype == "float32")
    assert isinstance(case, Case)
    assert movement is LAWS["values.movement"]
    assert Examination(wrong, none).examine(movement, case).says.startswith("blocked by values.read-back/")


def test_the_file_that_is_collected_is_in_the_package() -> None:
    import tensorken_conformance

    assert (Path(tensorken_conformance.__file__).parent / "test_conformance.py").exists()


def test_each_law_is_examined_once(place: pytest.Pytester) -> None:
    result = run(place, *KIT, *QUICK, "--tensorken-backend", "mine:Right", "--collect-only", "-q")
    tests = [line for line in result.outlines if "::" in line]
    assert len(tests) == 3, tests
