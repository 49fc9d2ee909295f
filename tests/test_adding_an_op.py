"""The page docs/adding-an-op.md is so: its pieces, put where it says, give what it shows, and touch nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("core/src", "backends/numpy/src", "backends/reference/src", "backends/string/src")


@pytest.mark.feature(106)
def test_three_pieces_make_an_op(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "adding-an-op.md").read_text(encoding="utf-8")
    spec, function, line, example = re.findall(r"```python elsewhere\n(.*?)```", page, re.DOTALL)
    (expected,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    for folder in SOURCES:
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    _append(tmp_path / "core/src/tensorken/spec/derived/elementary.py", "\n" + spec)
    _append(tmp_path / "core/src/tensorken/functions/elementary.py", "\n\n" + function)
    backend = tmp_path / "backends/numpy/src/tensorken_numpy/backend.py"
    text = backend.read_text(encoding="utf-8")
    end = text.index("\n\n", text.index("    def expm1(self"))
    backend.write_text(text[:end] + "\n\n" + line.rstrip() + text[end:], encoding="utf-8")
    path = os.pathsep.join(str(tmp_path / folder) for folder in SOURCES)
    environment = {**os.environ, "PYTHONPATH": path, "TENSORKEN_BACKEND": ""}
    done = subprocess.run(
        [sys.executable, "-c", example],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert _numbers(done.stdout) == pytest.approx(_numbers(expected), rel=1e-12)
    assert done.stdout.splitlines()[-1] == expected.splitlines()[-1]
    # The copy was what ran, not the installed sources: only the copy has the op.
    assert "log_sigmoid" not in (ROOT / "core/src/tensorken/functions/elementary.py").read_text(
        encoding="utf-8"
    )


def _append(file: Path, piece: str) -> None:
    file.write_text(file.read_text(encoding="utf-8") + piece, encoding="utf-8")


def _numbers(text: str) -> list[float]:
    return [float(word) for word in re.findall(r"-?\d[\d.]*(?:e-?\d+)?", text)]
