"""Third-party backends, from their source folders to a certificate: real wheels in their own environment."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorken_conformance.running.examine import examine, laws_for
from tensorken_conformance.subject import Subject
from tensorken_conformance.template import create
from tests.conftest import Environment
from tools.workspace import ROOT

pytestmark = pytest.mark.slow

ARRAYS = ROOT / "examples" / "backends" / "arrays"

DERIVATIVE = (
    "import tensorken as tk; x = tk.ones(3); print(x.backend, tk.grad(lambda x: (x * x).sum())(x).tolist())"
)


@pytest.fixture(scope="module")
def environment(
    new_environment: Callable[..., Environment], wheelhouse: Path, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """An environment with the kit and the wheels of two third-party backends."""
    folder = tmp_path_factory.mktemp("strangers")
    create("abacus", folder / "abacus")
    environment = new_environment("tensorken-conformance")
    wheel = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-build-isolation",
        "--wheel-dir",
        str(folder / "wheels"),
    ]
    for source in (folder / "abacus", ARRAYS):
        subprocess.run(
            [*wheel, "--find-links", str(wheelhouse), str(source)], check=True, capture_output=True
        )
    strangers = Environment(environment.folder, folder / "wheels")
    strangers.install("tensorken-abacus", "tensorken-arrays")
    return environment


@pytest.mark.feature(2, 203)
@pytest.mark.parametrize("name", ["abacus", "arrays"])
def test_a_third_party_backend_is_selected_by_the_variable(
    environment: Environment, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORKEN_BACKEND", name)
    assert environment.run("python", "-c", DERIVATIVE).split() == [name, "[2.0,", "2.0,", "2.0]"]


@pytest.mark.parametrize("name", ["abacus", "arrays"])
def test_the_kit_examines_a_third_party_backend(environment: Environment, name: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    laws = [f"--select={law}" for law in ("host", "values.movement", "derivatives")]
    environment.run("tensorken", "conformance", "run", name, "--smoke", *laws, f"--json={report}")
    counts = json.loads(report.read_text(encoding="utf-8"))["counts"]
    assert counts["passed"] > 90
    assert not counts["failed"]


@pytest.mark.nightly
@pytest.mark.feature(203)
@pytest.mark.parametrize("name", ["abacus", "arrays"])
def test_the_kit_certifies_a_third_party_backend(environment: Environment, name: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    environment.run("tensorken", "conformance", "run", name, "--smoke", f"--json={report}")
    content = json.loads(report.read_text(encoding="utf-8"))
    assert (content["header"]["level"] or 0) >= 1, content["header"]
    assert not content["counts"]["failed"]


def test_a_project_from_the_array_api_starts_with_the_example(tmp_path: Path) -> None:
    create("abaci", tmp_path, "array-api")
    written = (tmp_path / "src" / "tensorken_abaci" / "backend.py").read_text("utf-8")
    example = (ARRAYS / "src" / "tensorken_arrays" / "backend.py").read_text("utf-8")
    assert written == re.sub(r"\bArrays\b", "Abaci", example)


LAWS_OF_THE_PAGE = (
    "values.elementwise",
    "values.cast",
    "values.arrangement",
    "values.extrema",
    "values.sums",
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, when sums overflow
def test_array_api_strict_differs_in_the_ops_that_the_page_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ARRAYS / "src"))
    direct = importlib.import_module("tensorken_arrays.direct").Direct
    subject = Subject(direct(), "direct")
    failed: dict[str, set[str]] = {}
    for law in laws_for(subject, LAWS_OF_THE_PAGE):
        for case in law.cases(subject):
            if case.shape in ("small", "257") and examine(subject, law, case).status == "failed":
                failed.setdefault(case.op, set()).add(case.dtype)
    ordered = ("lt", "max", "min", "argmax", "argmin", "sort", "argsort")
    assert failed == {
        **{op: {"bool"} for op in ordered},
        **{op: {"int8", "int16", "int32", "int64"} for op in ("shift_left", "shift_right")},
        **{op: {"float32", "float64"} for op in ("cast", "sum")},
    }
    for function in ("less", *ordered[1:], "Shifts", "Casts", "no axes"):
        assert function in (ROOT / "docs" / "conformance" / "array-api-strict.md").read_text("utf-8")


def test_the_examples_are_short() -> None:
    template = ROOT / "conformance" / "src" / "tensorken_conformance" / "project" / "package" / "backend.py"
    delegating = ARRAYS / "src" / "tensorken_arrays" / "backend.py"
    lines = {
        path.parent.name: len(path.read_text(encoding="utf-8").splitlines())
        for path in (template, delegating)
    }
    assert lines["package"] <= 150
    assert lines["tensorken_arrays"] <= 60
