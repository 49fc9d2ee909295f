"""The examples of backends have the parts that tools/scoreboard.py needs, and its page shows the recorded results."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import venv
from dataclasses import asdict, replace
from pathlib import Path
from subprocess import CalledProcessError, CompletedProcess

import pytest

from tensorken_conformance.array_api import PREFIX
from tensorken_conformance.expectations import FILE
from tools import scoreboard
from tools.scoreboard import BACKENDS, FIXED, LIBRARIES, PAGE, SHOWN, Library, Score
from tools.workspace import ROOT

KNOWN = scoreboard.libraries()
EXAMPLES = [library for library in KNOWN.values() if library.folder.parent == BACKENDS]
BUGS = [script for library in KNOWN.values() for script in library.scripts]


def test_there_are_libraries_and_bugs() -> None:
    assert len(KNOWN) >= 10
    assert len(BUGS) >= 30
    assert {library.folder.parent for library in KNOWN.values()} == {BACKENDS, LIBRARIES}


@pytest.mark.parametrize("library", EXAMPLES, ids=lambda library: library.name)
def test_an_example_is_short_and_has_a_function_load(library: Library) -> None:
    tree = ast.parse((library.folder / "__init__.py").read_text("utf-8"))
    assert scoreboard.lines_in(library.folder) <= 250
    assert ast.get_docstring(tree)
    assert "load" in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("library", KNOWN.values(), ids=KNOWN)
def test_the_parts_of_a_library_exist(library: Library) -> None:
    assert library.requirements
    assert not library.distribution or (ROOT / library.distribution / "pyproject.toml").is_file()
    assert bool(library.package) != library.backend.startswith(PREFIX)
    for _, _, place in scoreboard.expected(library.folder / FILE):
        assert place.startswith("http") or (library.folder / place).is_file(), place


def test_the_package_of_a_backend_is_found_in_its_environment() -> None:
    places = {
        name: scoreboard.package(Path(sys.executable), KNOWN[name]) for name in ("mlx", "array_api_strict")
    }
    assert places["mlx"] == BACKENDS / "mlx_backend"
    assert (
        scoreboard.lines_in(places["mlx"]) > 50 < 200 > scoreboard.lines_in(places["array_api_strict"]) > 20
    )


@pytest.mark.parametrize("script", BUGS, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_a_script_of_a_bug_has_a_sentence_and_five_statements_without_tensorken(script: Path) -> None:
    source = script.read_text("utf-8")
    tree = ast.parse(source)
    assert re.fullmatch(r"[^\n]+\.", ast.get_docstring(tree) or "", flags=re.DOTALL)
    statements = [node for node in tree.body[1:] if not isinstance(node, ast.Import | ast.ImportFrom)]
    assert 1 <= len(statements) <= 5
    assert "tensorken" not in source
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tree))


@pytest.mark.parametrize(
    ("code", "outcome", "how"),
    [
        ("assert 1 + 1 == 2", FIXED, ""),
        ("assert 1 + 1 == 3", SHOWN, "AssertionError"),
        ("import os; os.kill(os.getpid(), 9)", SHOWN, "signal 9"),
    ],
)
def test_the_outcome_of_a_script_is_its_exit_status(
    tmp_path: Path, code: str, outcome: str, how: str
) -> None:
    script = tmp_path / "sums.py"
    script.write_text(f'"""Sums are wrong."""\n\n{code}\n', "utf-8")
    found = scoreboard.bug(Path(sys.executable), script)
    assert found == scoreboard.Bug("sums", "Sums are wrong.", code, outcome, how)


def test_recorded_results_are_those_of_the_libraries_and_survive_json() -> None:
    rows = scoreboard.recorded()
    assert rows
    assert set(rows) <= set(KNOWN)
    for row in rows.values():
        assert Score.from_data(asdict(row)) == row
        assert {bug.name for bug in row.bugs} == {script.stem for script in KNOWN[row.library].scripts}
        assert row.level is None or row.counts["passed"]


def test_the_page_shows_the_recorded_results() -> None:
    rows = scoreboard.recorded()
    assert PAGE.read_text("utf-8") == scoreboard.page(rows.values())


def test_a_library_without_a_level_comes_last() -> None:
    row = next(iter(scoreboard.recorded().values()))
    rows = [replace(row, library="a_b", level=None), replace(row, library="z", level=2)]
    text = scoreboard.page(rows)
    assert text.index("[z](#z)") < text.index("[a_b](#a_b)")
    assert "no level" in text


def test_the_page_lists_failed_laws_and_expected_failures_of_one_reason_once() -> None:
    row = next(iter(scoreboard.recorded().values()))
    expected = tuple([(f"values.sums/sum/{n}", "adds backwards", "bugs/sum.py") for n in range(5)])
    failed = (("values.cast", 2, ("cast",)),)
    text = scoreboard.page([replace(row, expected=expected, failed=failed)])
    assert "| values.cast | 2 | cast |" in text
    assert text.count("adds backwards") == 1
    assert "and 2 more" in text


def test_an_environment_has_the_requirements_and_the_distributions_of_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    commands: list[list[str]] = []

    def run(command: list[str], **options: object) -> CompletedProcess[str]:
        commands.append(command)
        return CompletedProcess(command, 0, "installed", "")

    monkeypatch.setattr(venv, "create", lambda place, **options: made.append(place))
    monkeypatch.setattr(subprocess, "run", run)
    for library in KNOWN.values():
        commands.clear()
        python = scoreboard.environment(library, tmp_path)
        assert made[-1] == tmp_path / library.name in python.parents
        install = commands[-1]
        assert install[0] == str(python)
        assert install[install.index("-r") + 1] == str(library.file)
        editable = {install[i + 1] for i, part in enumerate(install) if part == "-e"}
        folders = [*scoreboard.NEEDED, *filter(None, [library.distribution])]
        assert editable == {str(ROOT / folder) for folder in folders}


def test_packages_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **options: object) -> CompletedProcess[str]:
        return CompletedProcess(command, 0, "installed" if command[-1] == "clang" else "", "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert scoreboard.absent(["clang", "pocl-opencl-icd"]) == ["pocl-opencl-icd"]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert scoreboard.absent(["clang", "pocl-opencl-icd"]) == []


def test_a_library_that_fails_does_not_end_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = next(iter(scoreboard.recorded().values()))
    monkeypatch.setattr(scoreboard, "RECORDED", tmp_path / "scoreboard.json")
    monkeypatch.setattr(scoreboard, "PAGE", tmp_path / "scoreboard.md")

    def examine(library: Library, options: object) -> Score:
        if library.name == "mlx":
            raise CalledProcessError(1, "pip")
        return replace(row, library=library.name)

    monkeypatch.setattr(scoreboard, "examine", examine)
    assert scoreboard.main(["mlx", "numba"]) == 1
    assert "mlx" in capsys.readouterr().err
    assert list(scoreboard.recorded()) == ["numba"]
    assert scoreboard.main(["jax"]) == 0
    assert list(scoreboard.recorded()) == ["jax", "numba"]
