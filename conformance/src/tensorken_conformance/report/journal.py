"""Journal: the results of a run, written one by one as they come, so that a run that is killed leaves them behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from tensorken_conformance.case import Result
from tensorken_conformance.report.model import Report, make
from tensorken_conformance.report.serial import ReportError, load, plain, result_from
from tensorken_conformance.running.options import Options, Run

FORM = 1
"""Counts the changes of the form after which older readers cannot read it."""

ENDED_EARLY = "killed"
"""Why cases are missing, as a report of a journal says."""


class Journal:
    """Writes a journal: a line of JSON on the run, and one for each result.

    Args:
        path: of the file; one that is there is written anew.

    Raises:
        OSError: if it cannot be written.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._file: TextIOWrapper = self.path.open("w", encoding="ascii")

    def begin(self, found: Run) -> None:
        """Write what is to be examined, which is known before the first case is."""
        facts = {name: getattr(found, name) for name in _FACTS}
        self._write({"journal": FORM, "options": asdict(found.options), **facts})

    def tell(self, result: Result) -> None:
        """Write a result, which is on the disk when this returns."""
        self._write(result.as_data())

    def _write(self, data: dict[str, Any]) -> None:
        self._file.write(json.dumps(plain(data), allow_nan=False) + "\n")
        self._file.flush()

    def close(self, keep: bool = True) -> None:
        """Close the file, and remove it unless it is to be kept."""
        self._file.close()
        if not keep:
            self.path.unlink()


_FACTS = ("laws", "capabilities", "about", "expectations", "problems")


def load_either(path: str | Path) -> Report:
    """The report in a file, or what a journal tells of a run that did not come to its end.

    Raises:
        ReportError: if it is neither, or cannot be read.
    """
    try:
        with Path(path).open(encoding="utf-8") as file:
            first = _parsed(file.readline())
            if not isinstance(first, dict) or "journal" not in first:
                return load(path)
            results = [*_results(file)]
    except (OSError, UnicodeDecodeError):
        return load(path)  # which says what is wrong
    if first["journal"] != FORM:
        raise ReportError(f"{path}: a journal of form {first['journal']!r}, this kit reads {FORM}")
    try:
        options = Options(**{**first["options"], "select": tuple(first["options"]["select"])})
        found = Run(options, results=results, partial=ENDED_EARLY)
        found.take(first)
        return make(found)
    except (KeyError, TypeError, ValueError) as error:
        raise ReportError(f"{path}: not a whole journal: {type(error).__name__}: {error}") from error


def _results(lines: Any) -> Iterator[Result]:
    """The results of all lines that are whole: the last may not be."""
    for line in lines:
        data = _parsed(line)
        if isinstance(data, dict):
            yield result_from(data)


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
