"""Journal: a file to which each result of a run is written at once, so that a killed run keeps its results."""

from __future__ import annotations

import json
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from tensorken_conformance.case import Result
from tensorken_conformance.report.model import Report, make
from tensorken_conformance.report.serial import (
    ReportError,
    check_types,
    from_json,
    plain,
    result_from,
    schema,
    text_of,
)
from tensorken_conformance.running.options import Options, Run

FORM = 1
"""The version of the format; it increases when older readers cannot read the new one."""

ENDED_EARLY = "killed"
"""Why cases are missing in the report of a journal."""


class Journal:
    """Writes a journal: a line of JSON for the run, and one for each result.

    Args:
        path: the file; an existing one is overwritten.

    Raises:
        OSError: if it cannot be written.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._file: TextIOWrapper = self.path.open("w", encoding="ascii")

    def begin(self, outcome: Run) -> None:
        """Write the plan of the run, before its first case."""
        facts = {name: getattr(outcome, name) for name in _FACTS}
        self._write({"journal": FORM, "options": asdict(outcome.options), **facts})

    def tell(self, result: Result) -> None:
        """Write a result to the file at once."""
        self._write(result.as_data())

    def _write(self, data: dict[str, Any]) -> None:
        self._file.write(json.dumps(plain(data), allow_nan=False) + "\n")
        self._file.flush()

    def close(self, keep: bool = True) -> None:
        """Close the file, and remove it if it need not be kept."""
        self._file.close()
        if not keep:
            self.path.unlink()


_FACTS = ("laws", "capabilities", "about", "expectations", "problems")


def load_either(path: str | Path) -> Report:
    """The report in a file, or the report of a journal whose run did not end.

    Raises:
        ReportError: if it is neither, or cannot be read.
    """
    text = text_of(path)
    first, *lines = map(_parsed, text.split("\n"))
    if not isinstance(first, dict) or "journal" not in first:
        return from_json(text, str(path))
    if first["journal"] != FORM:
        raise ReportError(f"{path}: a journal of form {first['journal']!r:.40}, this kit reads {FORM}")
    try:
        options = Options(**{**first["options"], "select": tuple(first["options"]["select"])})
        rows = [data for data in lines if isinstance(data, dict)]
        check_types(str(path), rows, {"items": schema()["$defs"]["result"]})
        results = [result_from(data) for data in rows]
        found = Run(options, results=results, partial=ENDED_EARLY)
        found.take(first)
        return make(found)
    except ReportError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReportError(f"{path}: not a whole journal: {type(error).__name__}: {error}") from error


def _parsed(line: str) -> Any:
    """The data of a line; None if it is incomplete, as the last line of a killed run may be."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
