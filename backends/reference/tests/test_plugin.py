"""How the backend enters the host: described without being loaded, and without numpy."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tensorken_core.host.plugin import SPEC_VERSION, place_in_range
from tensorken_core.rewriting.fuse import Fuse
from tensorken_reference import plugin


def run_python(program: str) -> str:
    """The output of a fresh interpreter in which numpy cannot be imported."""
    blocked = "import sys; sys.modules['numpy'] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", blocked + program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.feature(202)
def test_the_entry() -> None:
    entry = plugin.tensorken_backend()
    assert entry.name == "reference"
    assert entry.summary
    assert place_in_range(SPEC_VERSION, entry.spec) == "inside"
    backend = entry.load(None)
    assert isinstance(backend, Fuse)
    assert type(backend.raw).__name__ == "Reference"


def test_the_entry_point_names_this_module() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    assert project["entry-points"]["tensorken.backends"] == {"reference": plugin.__name__}


def test_describing_does_not_load() -> None:
    program = (
        "from tensorken_reference import plugin\n"
        "entry = plugin.tensorken_backend()\n"
        "print('tensorken_reference.backend' in sys.modules)\n"
        "entry.load(None)\n"
        "print('tensorken_reference.backend' in sys.modules)\n"
    )
    assert run_python(program).split() == ["False", "True"]


@pytest.mark.feature(66)
def test_it_computes_and_differentiates_without_numpy() -> None:
    program = (
        "import tensorken as tk\n"
        "from tensorken_reference.backend import Reference\n"
        "with tk.use_backend(Reference()):\n"
        "    w = tk.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])\n"
        "    x = tk.tensor([[0.5, -1.0, 2.0]])\n"
        "    print((x @ w).tolist())\n"
        "    print(tk.grad(lambda w: ((x @ w) ** 2.0).sum())(w).tolist())\n"
        "    print(tk.grad(tk.grad(lambda t: t.tanh()))(tk.tensor(2.0)).item())\n"
    )
    product, gradient, second = run_python(program).splitlines()
    assert product == "[[7.5, 9.0]]"
    assert gradient == "[[7.5, 9.0], [-15.0, -18.0], [30.0, 36.0]]"
    assert float(second) == pytest.approx(-0.13621868, rel=1e-6)
