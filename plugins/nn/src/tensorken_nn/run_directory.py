"""The directory of a training run. Existing results are replaced only on request."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tensorken_core.errors import TensorkenError
from tensorken_nn.files import atomic_write, read

RUNS = Path("runs")
METRICS, SUMMARY, CURVES = "metrics.jsonl", "run.json", "curves.png"
CHECKPOINT, BEST = "checkpoint.safetensors", "best.safetensors"


class RunDirectoryError(TensorkenError, OSError):
    """Results cannot be written to a directory."""


def create(job: str, folder: Path | None = None, *, force: bool = False) -> Path:
    """Create the directory of a run: `folder`, or runs/JOB-1, runs/JOB-2, ... in the working directory.

    Args:
        job: the name of the job.
        folder: for the results; None for a new one in runs/.
        force: whether to replace the results of an earlier run there; other files are always kept.

    Raises:
        RunDirectoryError: if the folder is not empty and `force` is false, or it cannot be created.
    """
    with _describe_errors(folder or RUNS):
        if folder is None:
            RUNS.mkdir(exist_ok=True)
            return _next(RUNS, job)
        if folder.exists() and not folder.is_dir():
            raise RunDirectoryError(f"{folder} is a file; choose another --out")
        if not force and folder.exists() and any(folder.iterdir()):
            raise RunDirectoryError(
                f"{folder} is not empty; choose another --out, or --force to replace results there"
            )
        folder.mkdir(parents=True, exist_ok=True)
        for name in (METRICS, SUMMARY, CURVES, CHECKPOINT, BEST):
            (folder / name).unlink(missing_ok=True)
        return folder


def append_record(file: Path, record: Mapping[str, Any]) -> None:
    """Append a record to a JSON Lines file."""
    with _describe_errors(file), file.open("a", encoding="ascii", newline="\n") as lines:
        lines.write(_line(record))


def write_json(file: Path, record: Mapping[str, Any]) -> None:
    """Write a record as a JSON file, with one entry a line."""
    entries = [f"  {json.dumps(name)}: {_json(value)}" for name, value in record.items()]
    with _describe_errors(file), atomic_write(file) as text:
        text.write(("{\n" + ",\n".join(entries) + "\n}\n").encode("ascii"))


def write_records(file: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write a JSON Lines file of these records, atomically: if the process is killed, the old file remains."""
    with _describe_errors(file), atomic_write(file) as lines:
        lines.write("".join(map(_line, records)).encode("ascii"))


def read_records(file: Path) -> Iterator[dict[str, Any]]:
    """Read the records (a step and metrics) of a JSON Lines file, up to the first malformed line, if any.

    Raises:
        FileError: if there is a file, and it cannot be read.
    """
    for line in read(file).splitlines() if file.exists() else ():
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
    """Create the next numbered folder."""
    suffixes = [path.name.removeprefix(f"{job}-") for path in parent.glob(f"{job}-*")]
    for number in count(1 + max((int(text) for text in suffixes if text.isdecimal()), default=0)):
        folder = parent / f"{job}-{number}"
        try:
            folder.mkdir()
        except FileExistsError:  # another run created it first
            continue
        return folder
    raise AssertionError  # unreachable: count() is infinite


@contextmanager
def _describe_errors(path: Path) -> Iterator[None]:
    """Turn an OSError into a one-line RunDirectoryError about this path."""
    try:
        yield
    except TensorkenError:  # its message is complete
        raise
    except OSError as error:
        reason = error.strerror or error
        raise RunDirectoryError(f"cannot write to {path}: {reason}; choose another --out") from error


def _line(record: Mapping[str, Any]) -> str:
    return "{" + ", ".join([f"{json.dumps(name)}: {_json(value)}" for name, value in record.items()]) + "}\n"


def _json(value: Any) -> str:
    """Strict JSON: NaN and infinity become null."""
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
