"""Output: text and reports on a console, and reports in files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tensorken_conformance.running.options import RunError
from tensorken_core.host.load_monitor import to_ascii

if TYPE_CHECKING:
    from tensorken_conformance.report.terminal import Block


def say(text: str, out: IO[str] | None = None) -> None:
    """Print text, by default on stdout."""
    print(to_ascii(text.rstrip("\n")), file=out or sys.stdout, flush=True)


def complain(text: str) -> None:
    """Print an error on stderr."""
    say(f"tensorken conformance: {text}", sys.stderr)


def show(content: Sequence[Block], out: IO[str]) -> None:
    """Print the blocks of a report: by rich in a terminal, as plain text otherwise."""
    if is_terminal(out):
        from tensorken_conformance.report import rich_text

        rich_text.show(content, out)
        return
    from tensorken_conformance.report.terminal import plain

    say(plain(content), out)


def is_terminal(out: Any) -> bool:
    """Whether a stream is a terminal that can move its cursor; a dumb one cannot."""
    return bool(out is not None and out.isatty() and os.environ.get("TERM") != "dumb")


def write(file: str, text: str) -> None:
    """Write text into a file, or to stdout if it is named `-`.

    Raises:
        RunError: if it cannot be written.
    """
    if file == "-":
        print(to_ascii(text), end="", flush=True)
        return
    try:
        Path(file).write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        raise RunError(f"cannot write {file}: {error.strerror or error}") from error


def check_files(files: Sequence[str]) -> None:
    """Raise RunError if a file cannot be written, or is named twice, before the run starts."""
    for file in files:
        place = Path(file).resolve()
        is_possible = place.parent.is_dir() and not place.is_dir()
        if file != "-" and not (
            is_possible and os.access(place if place.exists() else place.parent, os.W_OK)
        ):
            raise RunError(f"cannot write {file}: no such folder, or not writable")
        if files.count(file) > 1:
            raise RunError(f"two reports cannot be in one file, {'stdout' if file == '-' else file}")
