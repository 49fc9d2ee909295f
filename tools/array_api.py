"""Read the tables of docs/array-api.md, for our tests and for the public array API test suite.

`python -m tools.array_api FOLDER` runs the checkout of array-api-tests in a folder, with the expected failures of the
page, and without the dtypes that the backend in use lacks; further arguments go to pytest.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.workspace import ROOT

PAGE = ROOT / "docs" / "array-api.md"
STANDARD_DTYPES = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64
    complex128""".split()


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


def missing_dtypes() -> list[str]:
    """The dtypes of the standard that the backend in use lacks, which the public suite must not try."""
    import tensorken  # here, since noxfile.py imports this module, where tensorken is not installed

    kinds = ("bool", "numeric")
    return sorted({*STANDARD_DTYPES} - {*tensorken.__array_namespace_info__().dtypes(kind=kinds)})


def main() -> int:
    """Run the public suite; returns the exit code of pytest."""
    suite, *arguments = sys.argv[1:]
    environment = {
        "ARRAY_API_TESTS_MODULE": "tensorken",
        "ARRAY_API_TESTS_SKIP_DTYPES": ",".join(missing_dtypes()),
    }
    with tempfile.TemporaryDirectory() as folder:
        expected = Path(folder, "xfails.txt")
        lines = [f"array_api_tests/{test}" for test in expected_failures()]
        expected.write_text("\n".join([*lines, ""]), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "array_api_tests", "--xfails-file", str(expected)]
        command += ["--disable-deadline", *arguments]
        return subprocess.run(command, cwd=suite, env={**os.environ, **environment}, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
