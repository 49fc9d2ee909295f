"""The nox session for array-api-tests, with a fake checkout, and the page with the expected failures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools import array_api
from tools.workspace import ROOT

CONFTEST = """
def pytest_addoption(parser):
    parser.addoption("--disable-deadline", action="store_true")
    parser.addoption("--xfails-file")
"""

TESTS = """
import os
from importlib import import_module

def test_the_module(request):
    import tensorken
    xp = import_module(os.environ["ARRAY_API_TESTS_MODULE"])
    assert xp is tensorken
    assert os.environ["ARRAY_API_TESTS_SKIP_DTYPES"] == ""
    assert xp.asarray(0j).dtype == xp.complex64
    assert xp.asarray([1, 2], dtype=xp.int64).tolist() == [1, 2]

def test_the_expected_failures(request):
    with open(request.config.getoption("--xfails-file")) as file:
        lines = file.read().splitlines()
    assert "array_api_tests/test_array_object.py::test_setitem" in lines
    assert all(line.startswith("array_api_tests/test_") for line in lines)
"""


def run_session(folder: Path) -> Any:
    command = [
        sys.executable,
        "-m",
        "nox",
        "--no-venv",
        "--no-install",
        "--envdir",  # keep the real environment of the session
        str(folder / "environments"),
        "--noxfile",
        str(ROOT / "noxfile.py"),
    ]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "ARRAY_API_TESTS_DIR": str(folder), "PATH": path, "NO_COLOR": "1"}
    command += ["--session", "array-api", "--", "-p", "no:cacheprovider"]
    return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)


@pytest.mark.slow
def test_the_session_hands_the_suite_our_module_and_what_must_fail(tmp_path):
    folder = tmp_path / "array_api_tests"
    folder.mkdir()
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("", encoding="utf-8")
    (folder / "test_stand_in.py").write_text(TESTS, encoding="utf-8")
    done = run_session(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.slow
def test_another_revision_than_that_of_the_page_is_refused(tmp_path):
    (tmp_path / "array_api_tests").mkdir()
    (tmp_path / "requirements.txt").write_text("", encoding="utf-8")
    author = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "later"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    done = run_session(tmp_path)
    assert done.returncode != 0
    said = "".join((done.stdout + done.stderr).split())
    assert f"gitcheckout--recurse-submodules{array_api.revision()}." in said


@pytest.mark.slow
def test_without_a_checkout_the_session_says_what_is_needed(tmp_path):
    done = run_session(tmp_path)
    assert done.returncode != 0
    said = " ".join((done.stdout + done.stderr).split())
    assert "set ARRAY_API_TESTS_DIR to a checkout, made by git clone --recurse-submodules https://" in said


def test_the_page_gives_every_entry_a_reason():
    for table in (array_api.departures(), array_api.expected_failures()):
        assert table
        assert all(reason.endswith(".") and len(reason) > 20 for reason in table.values())
    assert all("::" in name for name in array_api.expected_failures())
