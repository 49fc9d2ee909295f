"""All files that the project reads, with all kinds of damage: each is refused in one line, or read; none is executed.

A file may be cut, overwritten, empty, deeply nested, text of another kind, a folder, missing, or unreadable.  After
each of these the undamaged file is read as before.
"""

from __future__ import annotations

import errno
import json
import os
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
import tensorken_nn as nn
from conformance.tests.sample_reports import FAILED, report
from core.tests.each import each_of
from tensorken import cache_folder
from tensorken_conformance.report import serial
from tensorken_conformance.report.journal import load_either
from tensorken_conformance.running.options import RunError
from tensorken_core.errors import TensorkenError
from tensorken_nn import checkpoints, run_directory, tables, text
from tensorken_nn.train_run import RunMetadata

TREE = {"weight": tk.ones((3, 2)), "step": 7}

Make, Read = Callable[[Path], object], Callable[[Path], Any]


def _checkpoint(path: Path) -> None:
    metadata = RunMetadata("digits", {"a": 1}, {}, 3, {"loss": 1.5}, None)
    checkpoints.save(path, TREE, metadata.to_texts())


def _journal(path: Path) -> None:
    path.write_text(serial.to_json(report(FAILED)), "utf-8")


def _measurements(path: Path) -> Any:
    from tensorken_wgpu.device.measurements import Measurements

    return Measurements(path)


DEVICE = SimpleNamespace(hardware="a card", driver="1.0")

READERS: dict[str, tuple[Make, Read]] = {
    "an array": (lambda path: _save_array(path), lambda path: tk.load(path).tolist()),
    "arrays": (lambda path: _save_arrays(path, tk.savez), lambda path: _lists(tk.load(path))),
    "compressed arrays": (
        lambda path: _save_arrays(path, tk.savez_compressed),
        lambda path: _lists(tk.load(path)),
    ),
    "a program": (
        lambda path: tk.trace(lambda x: tk.sin(x) * tk.tensor([1.0, 2.0]))(tk.ones(2)).save(path),
        lambda path: str(tk.Program.load(path)),
    ),
    "a checkpoint": (_checkpoint, lambda path: checkpoints.load(path, TREE)["weight"].tolist()),
    "the metadata of a checkpoint": (_checkpoint, checkpoints.metadata),
    "the state of a training run": (_checkpoint, RunMetadata.read),
    "a tensor in JSON": (
        lambda path: nn.save_json(path, tk.ones((2, 2))),
        lambda path: nn.load_json(path).tolist(),
    ),
    "a text": (lambda path: path.write_text("some\nlines", "utf-8"), text.read_text),
    "a table": (
        lambda path: path.write_text("a,b\n1,2\n3,4\n", "utf-8"),
        lambda path: tables.read_csv(path).inputs.tolist(),
    ),
    "metrics": (
        lambda path: path.write_text('{"step": 1, "loss": 2.5}\n{"step": 2, "loss": 1.5}\n', "ascii"),
        lambda path: list(run_directory.read_records(path)),
    ),
    "a report": (_journal, lambda path: load_either(path).header),
}
"""For each kind of file a function that writes one, and a function that reads it."""

CACHES: dict[str, tuple[Make, Read]] = {
    "a cached file": (lambda path: cache_folder.write_file(path, b"content"), cache_folder.read_file),
    "measurements": (
        lambda path: _measurements(path).keep(DEVICE, "key", 1.5),
        lambda path: _measurements(path).of(DEVICE),
    ),
}
"""The same for files that are written again if they are damaged."""


def _save_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.arange(6.0, dtype=np.float32))


def _save_arrays(path: Path, save: Callable[..., None]) -> None:
    with path.open("wb") as file:
        save(file, a=tk.ones((2, 3)), b=tk.arange(4))


def _lists(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: x.tolist() for name, x in arrays.items()}


def _damaged(good: bytes, rng: random.Random) -> Iterator[bytes]:
    """Contents of a damaged file."""
    yield b""
    yield bytes(100)
    yield b"\xff" * 100
    yield b"[" * 100_000
    yield b'{"a":' * 50_000
    yield json.dumps({"\x1b[2J": ["\x1b]0;title\x07"] * 3}).encode()
    yield b"\x1b[2J\x07 text of another kind\n" * 3
    yield good + b"\0more"
    yield good * 2
    for _ in range(40):
        yield good[: rng.randrange(len(good))]
    for _ in range(120):
        bad = bytearray(good)
        for _ in range(rng.choice((1, 1, 3, 20))):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        yield bytes(bad)


def _read(read: Read, path: Path) -> tuple[str | None, Any]:
    """The error, which must be one line of ours or of the system, or the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return None, read(path)
        except (TensorkenError, RunError) as error:
            return str(error).replace(str(path), "PATH"), None
        except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
            return str(error).replace(str(path), "PATH"), None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            return str(error).replace(str(path), "PATH"), None


@pytest.mark.slow
@each_of("name", [*READERS, *CACHES])
def test_damaged_files_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    make, read = (READERS | CACHES)[name]
    path = tmp_path / name / "file"
    path.parent.mkdir(mode=0o700)
    make(path)
    good, (none, expected) = path.read_bytes(), _read(read, path)
    assert none is None
    assert expected is not None
    refused = 0
    for content in _damaged(good, random.Random(0)):
        path.write_bytes(content)
        error, _ = _read(read, path)
        refused += error is not None
        assert error is None or (error.isprintable() and len(error) < 500), content[:80]
    assert refused > 20 or name in {*CACHES, "metrics", "a text"}
    path.write_bytes(good)
    assert _read(read, path) == (None, expected)


@pytest.mark.skipif(os.name != "posix", reason="Windows has other permissions and links")
@each_of("name", [*READERS, *CACHES])
def test_other_things_in_the_place_of_files_are_refused(name: str, tmp_path: Path) -> None:
    make, read = (READERS | CACHES)[name]
    path = tmp_path / name / "file"
    path.parent.mkdir(mode=0o700)
    is_lenient = name in {*CACHES, "metrics"}  # they may be missing

    def refuses(what: str) -> None:
        error, found = _read(read, path)
        assert error is not None or (is_lenient and not found), what
        assert error is None or (error.isprintable() and len(error) < 500), what

    refuses("missing")
    path.symlink_to("nowhere")
    refuses("a link to nothing")
    path.unlink()
    path.symlink_to("file")
    refuses("a link to itself")
    path.unlink()
    path.mkdir()
    refuses("a folder")
    path.rmdir()
    make(path)
    if os.geteuid() != 0:  # whom no permission stops
        path.chmod(0)
        refuses("without permission")
        path.chmod(0o600)
    assert _read(read, path)[0] is None
