"""Read the tables of docs/array-api.md, for our tests and for the public array API test suite.

`python -m tools.array_api FILE` writes the list of expected failures for array-api-tests, one a line.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tools.workspace import ROOT

PAGE = ROOT / "docs" / "array-api.md"


def table(heading: str) -> list[list[str]]:
    """The cells of the rows of the table under a heading."""
    (section,) = re.findall(
        rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    rows = re.findall(r"^\|.*\|$", section, re.M)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in rows[2:]]


def table_rows(heading: str) -> dict[str, str]:
    """The names in the first column of the table under a heading, with the reason in the last column.

    >>> table_rows("Expected failures of the public suite")["test_array_object.py::test_setitem"]
    'Tensors are immutable.'
    """
    rows = table(heading)
    return {name: row[-1] for row in rows for name in re.findall(r"`([^`]+)`", row[0]) or [row[0]]}


def functions_of_libraries() -> tuple[set[str], set[str]]:
    """The full names of functions of other libraries: those that take tensors, and those that cannot.

    >>> working, assigning = functions_of_libraries()
    >>> "scipy.signal.fftconvolve" in working, "scipy.stats.zscore" in assigning
    (True, True)
    """
    working, assigning = (
        {
            f"{row[0].strip('`')}.{name}"
            for row in table("Other libraries")
            for name in re.findall(r"`([^`]+)`", row[k])
        }
        for k in (1, 2)
    )
    return working, assigning


def departures() -> dict[str, str]:
    """The names that differ from the standard, with the reasons."""
    return table_rows("Differences")


def expected_failures() -> dict[str, str]:
    """The tests of the public suite that cannot pass, with the reasons."""
    return table_rows("Expected failures of the public suite")


def revision() -> str:
    """The revision of the public suite that the page describes."""
    (number,) = re.findall(r"at the revision `([0-9a-f]{40})`", PAGE.read_text("utf-8"))
    return str(number)


def main() -> None:
    """Write the file for `--xfails-file`."""
    (path,) = sys.argv[1:]
    lines = [f"array_api_tests/{test}" for test in expected_failures()]
    Path(path).write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
