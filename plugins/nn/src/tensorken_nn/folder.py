"""The folder of a run: where results go, without ever writing over others unasked."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tensorken_core.errors import TensorkenError
from tensorken_nn.files import replacing

RUNS = Path("runs")
METRICS, SUMMARY, CURVES = "metrics.jsonl", "run.json", "curves.png"
CHECKPOINT, BEST = "checkpoint.safetensors", "best.safetensors"


class FolderError(TensorkenError, OSError):
    """Results cannot be written to this folder."""


def claim(job: str, folder: Path | None = None, *, force: bool = False) -> Path:
    """Make the folder of a run: the given one, or runs/JOB-1, runs/JOB-2, ... in the working directory.

    Args:
        job: the name of the job.
        folder: where results should go.
        force: whether the results of an earlier run there may be replaced; other files stay in any case.

    Raises:
        FolderError: if the folder is not empty and `force` is false, or it cannot be made.
    """
    with _told(folder or RUNS):
        if folder is None:
            RUNS.mkdir(exist_ok=True)
            return _next(RUNS, job)
        if folder.exists() and not folder.is_dir():
            raise FolderError(f"{folder} is a file; choose another --out")
        if not force and folder.exists() and any(folder.iterdir()):
            raise FolderError(
                f"{folder} is not empty; choose another --out, or --force to replace results there"
            )
        folder.mkdir(parents=True, exist_ok=True)
        for name in (METRICS, SUMMARY, CURVES, CHECKPOINT, BEST):
            (folder / name).unlink(missing_ok=True)
        return folder


def append(file: Path, record: Mapping[str, Any]) -> None:
    """Add a record to a file of JSON lines."""
    with _told(file), file.open("a", encoding="ascii", newline="\n") as lines:
        lines.write(_line(record))


def write(file: Path, record: Mapping[str, Any]) -> None:
    """Write a record as a JSON file, one entry a line."""
    entries = [f"  {json.dumps(name)}: {_json(value)}" for name, value in record.items()]
    with _told(file), replacing(file) as text:
        text.write(("{\n" + ",\n".join(entries) + "\n}\n").encode("ascii"))


def replace(file: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Make a file of JSON lines hold these records alone; who is killed meanwhile leaves those that were there."""
    with _told(file), replacing(file) as lines:
        lines.write("".join(map(_line, records)).encode("ascii"))


def read(file: Path) -> Iterator[dict[str, Any]]:
    """The records of a file of JSON lines: a step and figures, up to a line that is none, as one half written."""
    for line in file.read_bytes().splitlines() if file.exists() else ():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(record, dict) or type(record.get("step")) is not int:
            return
        if not all([value is None or type(value) in (int, float) for value in record.values()]):
            return
        yield record


def _next(parent: Path, job: str) -> Path:
    """A new folder, numbered after those that are there."""
    taken = [path.name.removeprefix(f"{job}-") for path in parent.glob(f"{job}-*")]
    for number in count(1 + max((int(text) for text in taken if text.isdecimal()), default=0)):
        folder = parent / f"{job}-{number}"
        try:
            folder.mkdir()
        except FileExistsError:  # another run was faster
            continue
        return folder
    raise AssertionError  # numbers do not end


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say of an error of the file system what it was about, in a line."""
    try:
        yield
    except TensorkenError:  # which has said it
        raise
    except OSError as error:
        why = error.strerror or error
        raise FolderError(f"cannot write to {path}: {why}; choose another --out") from error


def _line(record: Mapping[str, Any]) -> str:
    return "{" + ", ".join([f"{json.dumps(name)}: {_json(value)}" for name, value in record.items()]) + "}\n"


def _json(value: Any) -> str:
    """Strict JSON, which has no NaN and no infinity: null stands for them."""
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
