"""List the rows of docs/features.toml that no test covers: `nox -s features`.

The tests are parsed, not run: the marker `pytest.mark.feature(66, 67)` in a test file covers rows 66 and 67.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.workspace import ROOT, distributions


@dataclass(frozen=True, slots=True)
class Report:
    """The rows and the markers of the tests, by row number."""

    titles: dict[int, str]
    planned: frozenset[int]
    locations: dict[int, list[str]]  # row -> the locations ("file:line") of its markers

    @property
    def missing(self) -> list[int]:
        """The rows that lack a test."""
        return [row for row in self.titles if row not in self.locations and row not in self.planned]

    @property
    def unknown(self) -> list[int]:
        """The rows named by a marker or the list of planned rows that do not exist."""
        return sorted((self.locations.keys() | self.planned) - self.titles.keys())

    @property
    def early(self) -> list[int]:
        """The planned rows that already have a test."""
        return sorted(self.planned & self.locations.keys())


def rows_in(source: str, name: str) -> Iterator[tuple[int, str]]:
    """The rows named by the markers of a test file, with their locations.

    Raises:
        ValueError: if a marker's rows are not number literals.
    """
    for node in ast.walk(ast.parse(source, name)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr="mark"), attr="feature"), args=arguments
            ):
                for argument in arguments:
                    location = f"{name}:{argument.lineno}"
                    match argument:
                        case ast.Constant(value=int(row)):
                            yield row, location
                        case _:
                            raise ValueError(f"{location}: write the rows of a feature marker as numbers")


def test_files(root: Path) -> list[Path]:
    """The test files of a folder, as collected by pytest."""
    return sorted(path for path in root.rglob("test_*.py") if ".nox" not in path.parts)


def report(table: Path, files: list[Path]) -> Report:
    """Compare the markers in the files with the rows of the table."""
    rows = tomllib.loads(table.read_text(encoding="utf-8"))
    locations: dict[int, list[str]] = {}
    for file in files:
        for row, location in rows_in(file.read_text(encoding="utf-8"), file.as_posix()):
            locations.setdefault(row, []).append(location)
    return Report(
        {int(row): title for row, title in rows["features"].items()}, frozenset(rows["planned"]), locations
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the report; returns 1 if a row lacks a test or does not exist."""
    parser = argparse.ArgumentParser(prog="nox -s features --", description="rows of features without a test")
    parser.add_argument("--planned", action="store_true", help="also list the planned rows")
    parser.add_argument("--tests", action="store_true", help="list every row with the locations of its tests")
    options = parser.parse_args(arguments)
    folders = [ROOT / "tests", *(folder / "tests" for folder in distributions(optional=True))]
    result = report(
        ROOT / "docs" / "features.toml", [file for folder in folders for file in test_files(folder)]
    )

    def show(heading: str, rows: list[int]) -> None:
        if rows:
            print(f"{heading}:")
        for row in rows:
            print(f"  {row:3}  {result.titles.get(row, '(there is no such row)')}")
            if options.tests or row not in result.titles:
                print(*(f"         {location}" for location in result.locations.get(row, ())), sep="\n")

    if options.tests:
        show("rows with a test", sorted(result.locations.keys() & result.titles.keys()))
    if options.planned:
        show("planned rows", sorted(result.planned))
    show("planned rows that already have a test (remove them from `planned`)", result.early)
    show("markers and planned rows without a row", result.unknown)
    show("rows without a test", result.missing)
    late = sorted(result.planned - result.locations.keys())
    locations = len(result.locations.keys() & result.titles.keys())
    total, missing = len(result.titles), len(result.missing)
    print(f"{total} rows: {locations} with a test, {len(late)} planned, {missing} without a test")
    return 1 if result.missing or result.unknown else 0


if __name__ == "__main__":
    sys.exit(main())
