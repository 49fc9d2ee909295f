"""The examples of backends have the parts that tools/scoreboard.py needs, and its page shows the recorded results."""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tensorken_conformance.expectations import parse
from tools import scoreboard
from tools.architecture import code_lines
from tools.scoreboard import BACKENDS, FIXED, PAGE, SHOWN, Score

NAMES = scoreboard.backends()
BUGS = sorted(BACKENDS.glob("*_backend/bugs/*.py"))


def test_there_are_examples_and_bugs() -> None:
    assert len(NAMES) >= 3
    assert len(BUGS) >= 10


@pytest.mark.parametrize("name", NAMES)
def test_a_backend_is_short_and_has_a_function_load(name: str) -> None:
    source = (BACKENDS / name / "__init__.py").read_text("utf-8")
    assert code_lines(BACKENDS / name / "__init__.py") <= 250
    tree = ast.parse(source)
    assert ast.get_docstring(tree)
    assert "load" in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("name", NAMES)
def test_expected_failures_name_scripts_that_exist(name: str) -> None:
    file = BACKENDS / name / "conformance.txt"
    for each in parse(file.read_text("utf-8")) if file.is_file() else []:
        assert each.url.startswith("http") or (BACKENDS / name / each.url).is_file(), each.place


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


def test_recorded_results_are_those_of_examples_and_survive_json() -> None:
    rows = scoreboard.recorded()
    assert rows
    assert set(rows) <= set(NAMES)
    for row in rows.values():
        assert Score.from_data(asdict(row)) == row
        assert {bug.name for bug in row.bugs} == {
            path.stem for path in BUGS if path.parent.parent.name == row.backend
        }


def test_the_page_shows_the_recorded_results() -> None:
    rows = scoreboard.recorded()
    assert PAGE.read_text("utf-8") == scoreboard.page(rows.values())


def test_a_library_without_a_level_comes_last() -> None:
    row = next(iter(scoreboard.recorded().values()))
    rows = [replace(row, backend="a_backend", level=None), replace(row, backend="z_backend", level=2)]
    text = scoreboard.page(rows)
    assert text.index("[z](#z)") < text.index("[a](#a)")
    assert "no level" in text
