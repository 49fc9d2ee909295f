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


def names(cell: str) -> list[str]:
    """The names in a cell.

    >>> names("`numpy`, `jax`")
    ['numpy', 'jax']
    """
    return re.findall(r"`([^`]+)`", cell)


def functions_of_libraries() -> tuple[set[str], set[str]]:
    """The full names of functions of other libraries: those that take tensors, and those that cannot.

    >>> working, assigning = functions_of_libraries()
    >>> "scipy.signal.fftconvolve" in working, "scipy.stats.zscore" in assigning
    (True, True)
    """
    working, assigning = (
        {f"{row[0].strip('`')}.{name}" for row in table("Other libraries") for name in names(row[k])}
        for k in (1, 2)
    )
    return working, assigning


def departures() -> dict[str, str]:
    """The names that differ from the standard, with the reasons.

    >>> departures()["promotion"]
    "Users mix them; the rule is JAX's."
    """
    return {name: reason for cell, *_, reason in table("Differences") for name in names(cell) or [cell]}


def expected_failures(backend: str | None = None) -> dict[str, str]:
    """The tests of the public suite that cannot pass on a backend, or on any of them, with the reasons.

    >>> reason = expected_failures("wgpu")["test_set_functions.py::test_unique_values"]
    >>> reason, len(expected_failures("numpy"))
    ('The tests themselves count in `uint8`, which this backend lacks.', 4)
    """
    found = {}
    for tests, backends, reason in table("Expected failures of the public suite"):
        if backend is None or backends == "all" or backend in names(backends):
            found.update(dict.fromkeys(names(tests), reason))
    return found


def revision() -> str:
    """The revision of the public suite that the page describes."""
    (number,) = re.findall(r"at the revision `([0-9a-f]{40})`", PAGE.read_text("utf-8"))
    return str(number)


def missing_dtypes() -> list[str]:
    """The dtypes of the standard that the backend in use lacks, which the public suite must not try."""
    import tensorken  # here, and in `main`, as noxfile.py imports this module where tensorken is not installed

    kinds = ("bool", "numeric")
    return sorted({*STANDARD_DTYPES} - {*tensorken.__array_namespace_info__().dtypes(kind=kinds)})


def main() -> int:
    """Run the public suite; returns the exit code of pytest."""
    import tensorken

    suite, *arguments = sys.argv[1:]
    environment = {
        "ARRAY_API_TESTS_MODULE": "tensorken",
        "ARRAY_API_TESTS_SKIP_DTYPES": ",".join(missing_dtypes()),
    }
    with tempfile.TemporaryDirectory() as folder:
        expected = Path(folder, "xfails.txt")
        lines = [f"array_api_tests/{test}" for test in expected_failures(tensorken.zeros(1).backend)]
        expected.write_text("\n".join([*lines, ""]), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "array_api_tests", "--xfails-file", str(expected)]
        command += ["--disable-deadline", *arguments]
        return subprocess.run(command, cwd=suite, env={**os.environ, **environment}, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
