"""A third-party compiler, from its source folder to a running program: real wheels in their own environment."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Environment
from tools.workspace import ROOT, version

pytestmark = pytest.mark.slow

COMPILER = ROOT / "examples" / "plugins" / "compiler"

COMPILES = """
import numpy as np
import tensorken as tk
from tensorken_example_compiler import sources

def curve(x, y):
    hidden = tk.tanh(x * 2.0 + y)
    return tk.maximum(tk.sin(hidden) - abs(y), x * y) / (tk.sqrt(abs(y)) + 0.1), -x, hidden, hidden < x

def chosen(x, y):
    return tk.where(x < y, x, y)

def product(x, y):
    return (x * y).sum()

assert not sources
for n in (1000, 1, 0):
    x, y = tk.linspace(-3, 3, n), tk.linspace(2, -1e30, n)
    before = x.tolist(), y.tolist()
    results = tk.jit(curve)(x, y)
    for one, other in zip(results, curve(x, y), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert (x.tolist(), y.tolist()) == before  # nothing is overwritten
    tk.jit(chosen)(x, y), tk.jit(product)(x, y)
assert list(sources) == ["curve"], list(sources)

slope, scalar = tk.grad(tk.jit(lambda x: tk.exp(x * x))), tk.tensor(0.5)
assert abs(slope(scalar).item() - np.exp(0.25)) < 1e-6
assert set(sources) > {"curve"}
print(sources["curve"])
"""

FAILING = """
from tensorken_core.host.plugin import hookimpl

@hookimpl
def tensorken_compile(program, backend):
    raise KeyError("no such op")
"""

CALLS = """
import tensorken as tk

@tk.jit
def f(x):
    return x + 1

try:
    print(f(tk.ones(3)).tolist())
except tk.errors.BackendError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def environment(
    new_environment: Callable[..., Environment], wheelhouse: Path, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """An environment with the command, numpy and the wheel of a third-party compiler."""
    folder = tmp_path_factory.mktemp("compiler")
    wheel = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--wheel-dir", str(folder)]
    find = ["--find-links", str(wheelhouse)]
    subprocess.run([*wheel, *find, str(COMPILER)], check=True, capture_output=True)
    environment = new_environment("tensorken-numpy")
    Environment(environment.folder, folder).install("tensorken-example-compiler")
    return environment


@pytest.mark.feature(201)
def test_supported_programs_are_compiled_and_give_the_same_bits(environment: Environment) -> None:
    source = environment.run("python", "-c", COMPILES)
    assert source.startswith("def run(inputs):\n    [v1, v2] = inputs\n")
    assert ", out=" in source


def test_the_doctor_lists_it(environment: Environment) -> None:
    told = " ".join(environment.run("tensorken", "doctor").split())
    assert "example-compiler tensorken-example-compiler 0.1.0 loads" in told


def test_its_readme_is_correct(environment: Environment) -> None:
    text = (COMPILER / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert environment.run("python", "-c", code).strip() == shown.strip()


def test_a_compiler_that_fails_is_named_in_one_line(environment: Environment, tmp_path: Path) -> None:
    wheel = tmp_path / f"failing_compiler-{version()}-py3-none-any.whl"
    info = f"failing_compiler-{version()}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("failing_compiler.py", FAILING)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: failing-compiler\nVersion: {version()}\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/entry_points.txt", "[tensorken.plugins]\nfailing = failing_compiler\n")
        archive.writestr(f"{info}/RECORD", "")
    Environment(environment.folder, tmp_path).install("failing-compiler")
    try:
        assert environment.run("python", "-c", CALLS) == (
            "compiler plugins:failing@failing-compiler failed on program 'f': KeyError: 'no such op'; "
            "report it to its author, or uninstall failing-compiler\n"
        )
    finally:
        environment.run("python", "-m", "pip", "uninstall", "--yes", "failing-compiler")
    assert environment.run("python", "-c", CALLS) == "[2.0, 2.0, 2.0]\n"


def test_the_example_is_short() -> None:
    files = (COMPILER / "src").rglob("*.py")
    assert sum([len(file.read_text(encoding="utf-8").splitlines()) for file in files]) <= 100
