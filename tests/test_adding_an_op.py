"""The page docs/adding-an-op.md is so: its pieces, put where it says, give what it shows, and touch nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "adding-an-op.md").read_text(encoding="utf-8")
PIECES = re.findall(r"```python elsewhere\n(.*?)```", PAGE, re.DOTALL)
SOURCES = (
    "core/src",
    "plugins/tensorken/src",
    "backends/numpy/src",
    "backends/reference/src",
    "backends/string/src",
)


@pytest.mark.feature(106)
def test_three_pieces_make_an_op(tmp_path: Path) -> None:
    _with_op(tmp_path)
    (expected,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    done = _run(tmp_path, ["-c", PIECES[-1]])
    assert done.returncode == 0, done.stderr
    assert _numbers(done.stdout) == pytest.approx(_numbers(expected), rel=1e-12)
    assert done.stdout.splitlines()[-1] == expected.splitlines()[-1]
    # The copy was what ran, not the installed sources: only the copy has the op.
    assert "log_sigmoid" not in (
        ROOT / "plugins/tensorken/src/tensorken/arrays/functions/elementary.py"
    ).read_text(encoding="utf-8")


BODY_ALONE = """
from tensorken_core.language.raw import RawTensor
from tensorken_numpy.backend import Numpy

class BodyAlone(Numpy):
    log_sigmoid = RawTensor.log_sigmoid
"""
"""numpy without the page's line, as a stranger's backend is."""


@pytest.mark.slow
def test_the_op_keeps_the_laws_of_the_kit(tmp_path: Path) -> None:
    """At the default depth, for this op alone: its values at all special ones, its derivatives, and what it leaves."""
    _with_op(tmp_path)
    (tmp_path / "strange.py").write_text(BODY_ALONE, encoding="utf-8")
    for backend in ("numpy", "reference", "strange:BodyAlone"):
        done = _kit(tmp_path, backend, *LAWS)
        assert done.returncode == 0, done.stdout
        found = re.search(r"^(\d+) cases = (\d+) passed", done.stdout, re.MULTILINE)
        assert found is not None, done.stdout
        assert found[1] == found[2] and int(found[1]) > 500, done.stdout


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("-(max(-x, 0.0) + math", "(min(x, 0.0) - math", "expected 0.0, got -0.0"),
        pytest.param(
            *("-((-x).maximum(0.0) + (-", "(x.minimum(0.0) - (-", "expected -0.0, got 0.0"),
            marks=pytest.mark.nightly,
        ),
        ("t * (-x).sigmoid()", "t * x.sigmoid()", "derivatives.differences"),
    ],
)
def test_the_kit_finds_a_mistake_in_it(tmp_path: Path, old: str, new: str, says: str) -> None:
    _with_op(tmp_path, lambda piece: piece.replace(old, new))
    (tmp_path / "strange.py").write_text(BODY_ALONE, encoding="utf-8")
    done = _kit(tmp_path, "strange:BodyAlone", *LAWS)
    assert done.returncode == 1, done.stdout + done.stderr
    assert says in done.stdout


LAWS = tuple(f"{group}/log_sigmoid" for group in ("values", "derivatives", "errors", "lifetime"))


def _with_op(folder: Path, changed: Callable[[str], str] = str) -> None:
    """A copy of the sources with the page's pieces where it says."""
    spec, function, line, _ = PIECES
    assert changed is str or changed(spec) != spec
    for source in SOURCES:
        shutil.copytree(ROOT / source, folder / source, ignore=shutil.ignore_patterns("__pycache__"))
    _append(folder / "core/src/tensorken_core/language/derived/elementary.py", "\n" + changed(spec))
    _append(folder / "plugins/tensorken/src/tensorken/arrays/functions/elementary.py", "\n\n" + function)
    backend = folder / "backends/numpy/src/tensorken_numpy/backend.py"
    text = backend.read_text(encoding="utf-8")
    end = text.index("\n\n", text.index("    expm1 = "))
    backend.write_text(text[:end] + "\n\n" + line.rstrip() + text[end:], encoding="utf-8")


def _run(folder: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run Python on the copy."""
    path = os.pathsep.join([str(folder), *[str(folder / source) for source in SOURCES]])
    environment = {**os.environ, "PYTHONPATH": path, "TENSORKEN_BACKEND": "", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def _kit(folder: Path, backend: str, *laws: str) -> subprocess.CompletedProcess[str]:
    """Run laws of the conformance kit on a backend of the copy."""
    selected = [word for law in laws for word in ("--select", law)]
    return _run(
        folder, ["-m", "tensorken_cli", "conformance", "run", backend, "--brief", "--in-process", *selected]
    )


def _append(file: Path, piece: str) -> None:
    file.write_text(file.read_text(encoding="utf-8") + piece, encoding="utf-8")


def _numbers(text: str) -> list[float]:
    return [float(word) for word in re.findall(r"-?\d[\d.]*(?:e[+-]?\d+)?", text)]
