"""The examples in the docstrings of all modules run, on the default backend, and public functions are documented."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import tensorken as tk

ROOT = Path(__file__).parents[2]
MODULES = [
    "tensorken",
    *[m.name for m in pkgutil.walk_packages(tk.__path__, "tensorken.") if not m.name.endswith("__main__")],
]

RUN_ALL = """
import doctest, importlib, sys
failed = sum(doctest.testmod(importlib.import_module(name)).failed for name in sys.argv[1:])
sys.exit(f"{failed} examples failed" if failed else 0)
"""


def install_backends(folder: Path) -> None:
    """Leave there what an installation leaves of the backends that are not installed: their metadata."""
    version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    for name in ("numpy", "reference", "string"):
        facts = tomllib.loads((ROOT / "backends" / name / "pyproject.toml").read_text(encoding="utf-8"))
        project = facts["project"]
        try:
            metadata.distribution(project["name"])
        except metadata.PackageNotFoundError:
            info = folder / f"{project['name'].replace('-', '_')}-{version}.dist-info"
            info.mkdir()
            text = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n"
            (info / "METADATA").write_text(text, encoding="utf-8")
            lines = [
                f"{key} = {value}\n" for key, value in project["entry-points"]["tensorken.backends"].items()
            ]
            (info / "entry_points.txt").write_text(
                f"[tensorken.backends]\n{''.join(lines)}", encoding="utf-8"
            )


def test_the_examples_run(tmp_path: Path) -> None:
    """In a process of their own: some register what cannot be registered twice."""
    install_backends(tmp_path)
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(tmp_path)]))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN_ALL, *MODULES],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_examples() -> None:
    """Else the test above would pass for nothing."""
    finder = doctest.DocTestFinder()
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) > 80


@pytest.mark.parametrize("name", [n for n in dir(tk) if inspect.isfunction(getattr(tk, n))])
def test_public_functions_are_documented(name: str) -> None:
    """A first line that ends as a sentence or a clause does."""
    text = inspect.getdoc(getattr(tk, name)) or ""
    assert text.partition("\n")[0].endswith((".", ":", ";", ",")), text
