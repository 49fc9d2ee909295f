"""The examples in the docstrings of all modules run, on the default backend, and public functions are documented."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import tensorken as tk

ROOT = Path(__file__).parents[2]
MODULES = [
    m.name for m in pkgutil.walk_packages(tk.__path__, "tensorken.") if not m.name.endswith("__main__")
]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backends of the workspace, found as an installation leaves them, whether or not they are installed."""
    version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    for folder in ("numpy", "reference", "string"):
        project = tomllib.loads((ROOT / "backends" / folder / "pyproject.toml").read_text(encoding="utf-8"))[
            "project"
        ]
        try:
            metadata.distribution(project["name"])
        except metadata.PackageNotFoundError:
            info = tmp_path / f"{project['name'].replace('-', '_')}-{version}.dist-info"
            info.mkdir()
            facts = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n"
            (info / "METADATA").write_text(facts, encoding="utf-8")
            names = project["entry-points"]["tensorken.backends"]
            lines = "".join(f"{name} = {module}\n" for name, module in names.items())
            (info / "entry_points.txt").write_text(f"[tensorken.backends]\n{lines}", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["tensorken", *MODULES])
def test_the_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    with tk.use_backend("numpy"):
        for test in doctest.DocTestFinder().find(module, name):
            runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def test_there_are_examples() -> None:
    """Else the test above would pass for nothing."""
    found = [
        t
        for name in MODULES
        for t in doctest.DocTestFinder().find(importlib.import_module(name))
        if t.examples
    ]
    assert len(found) > 80


@pytest.mark.parametrize("name", [n for n in dir(tk) if inspect.isfunction(getattr(tk, n))])
def test_public_functions_are_documented(name: str) -> None:
    function = getattr(tk, name)
    assert function.__module__.startswith("tensorken.")
    text = inspect.getdoc(function) or ""
    assert len(text.split()) >= 1 and text.rstrip().splitlines()[0].endswith((".", ":", ";", ",")), text
