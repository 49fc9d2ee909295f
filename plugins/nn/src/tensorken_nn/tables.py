"""Read CSV files as inputs and targets."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_nn.files import ContentError
from tensorken_nn.text import read_text

FLOAT32_MAX = 3.4028234663852886e38  # the largest finite float32


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its last column is the targets, the others are the inputs."""

    inputs: Tensor  # float32 of shape (rows, columns - 1)
    targets: Tensor  # of shape (rows,): float32 numbers, or int32 indices into `classes`
    columns: tuple[str, ...]  # the names of all columns
    classes: tuple[str, ...]  # the distinct labels; empty if the targets are numbers


def read_csv(
    path: str | os.PathLike[str], *, labels: bool = False, header: bool | None = None, delimiter: str = ","
) -> Table:
    r"""Read a UTF-8 file of comma-separated values as tensors on the backend in use.

    All columns are numbers, but the last may be labels. Empty lines are skipped.

    Args:
        path: of the file.
        labels: whether the last column is a class label, a word or a number. Labels are sorted as numbers if all are
            numbers, else as words.
        header: whether the first line has the names of the columns; None: detect it, if none of its inputs is a number.
        delimiter: the character between two cells.

    Raises:
        FileError: if the file cannot be read.
        ContentError: if a cell is not a finite number, a line has another number of cells than the first, or there are
            no rows or no inputs; the message names the line.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "flowers.csv")
    ...     _ = path.write_text("length,width,kind\n5.5,2,lily\n1,0.5,rose\n6,2,lily\n")
    ...     table = read_csv(path, labels=True)
    >>> table.inputs.tolist(), table.targets.tolist()
    ([[5.5, 2.0], [1.0, 0.5], [6.0, 2.0]], [0, 1, 0])
    >>> table.classes, table.columns
    (('lily', 'rose'), ('length', 'width', 'kind'))
    """
    rows = list(_rows(path, delimiter))
    if not rows:
        raise ContentError(f"{path}: there are no rows; pass a file with rows")
    first = rows[0].cells
    if len(first) < 2:
        raise ContentError(
            f"{rows[0].location}: there is only one cell, need at least an input and a target; "
            f"the delimiter is {delimiter!r}"
        )
    if header is None:
        header = not any([_number(cell) is not None for cell in first[:-1]])
    columns = tuple(first) if header else tuple([f"column {i + 1}" for i in range(len(first))])
    rows = rows[header:]
    if not rows:
        raise ContentError(f"{path}: there are no rows after the names of the columns; add some")
    for row in rows:
        if len(row.cells) != len(first):
            raise ContentError(
                f"{row.location}: there are {len(row.cells)} cells, need {len(first)} as in the first; correct the line"
            )
    inputs = [row.numbers(columns[:-1]) for row in rows]
    if labels:
        classes, indices = _labels(rows)
        return Table(tk.tensor(inputs, tk.float32), tk.tensor(indices, tk.int32), columns, classes)
    targets = [row.number(len(first) - 1, columns[-1]) for row in rows]
    return Table(tk.tensor(inputs, tk.float32), tk.tensor(targets, tk.float32), columns, ())


@dataclass(frozen=True, slots=True)
class _Row:
    location: str  # in the file, for messages
    cells: list[str]

    def numbers(self, columns: Sequence[str]) -> list[float]:
        """The numbers in the first columns, which have these names."""
        return [self.number(i, name) for i, name in enumerate(columns)]

    def number(self, i: int, column: str) -> float:
        value = _number(self.cells[i])
        if value is None or not abs(value) <= FLOAT32_MAX:  # also false for NaN
            need = "a number" if value is None else "a finite float32"
            name = column if column.isprintable() else repr(column)  # a quoted name may have line ends
            raise ContentError(
                f"{self.location}, {name:.60}: {self.cells[i]!r:.60} is not {need}; correct the cell or remove the line"
            )
        return value


def _rows(path: str | os.PathLike[str], delimiter: str) -> Iterator[_Row]:
    """The lines of a file that are not empty."""
    reader = csv.reader(io.StringIO(read_text(path)), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        for cells in reader:
            if any(cells):
                yield _Row(f"{path}, line {reader.line_num}", [cell.strip() for cell in cells])
    except csv.Error as error:
        raise ContentError(f"{path}, line {reader.line_num}: {error}; correct the line") from None


def _number(text: str) -> float | None:
    """The number in a cell, or None; underscores between digits are not accepted."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _labels(rows: Sequence[_Row]) -> tuple[tuple[str, ...], list[int]]:
    """The distinct labels of the last column, and for each row the index of its label."""
    texts = [row.cells[-1] for row in rows]
    for row, text in zip(rows, texts, strict=True):
        if not text:
            raise ContentError(f"{row.location}: the label is empty; add one, or remove the line")
    numbers = [_number(text) for text in texts]
    as_numbers = all([number is not None and math.isfinite(number) for number in numbers])
    keys: list[Any] = list(numbers) if as_numbers else texts  # 1 and 1.0 are one class
    names = dict(
        zip(reversed(keys), reversed(texts), strict=True)
    )  # the spelling of the first row of the class
    order = {key: index for index, key in enumerate(sorted(names))}
    return tuple([names[key] for key in order]), [order[key] for key in keys]
