"""Rich text: the blocks of a report in a terminal, in colours and with tables that fit its width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

import rich.box
import rich.console
import rich.table
from rich.text import Text

from tensorken_conformance.report.tables import Table
from tensorken_conformance.report.terminal import CODE, TITLE, Block
from tensorken_core.host.load_monitor import to_ascii

STYLES = {
    "passed": "green",
    "failed": "bold red",
    "crashed": "bold magenta",
    "expected failure": "yellow",
    "unsupported": "dim",
    TITLE: "bold",
    CODE: "cyan",
}
"""The styles of the statuses."""

GAP = 2
"""The columns of a terminal between two columns of a table."""


def show(content: Sequence[Block], out: IO[str]) -> None:
    """Print blocks on a terminal; NO_COLOR and TERM have their usual meaning."""
    console = rich.console.Console(file=out, highlight=False, markup=False, emoji=False)
    for number, block in enumerate(content):
        if number:
            console.print()
        if isinstance(block, Table):
            for table in _fitting(block, console.width):
                console.print(_laid_out(table))
            if block.legend:
                console.print(f"({block.legend})", style="dim")
        else:
            for line in block:  # the terminal wraps it, so that a copy has no other line ends
                console.print(Text(to_ascii(line.text), STYLES.get(line.status, "")), soft_wrap=True)


def _fitting(table: Table, width: int) -> Iterator[Table]:
    """The table, or several tables with some of its columns each, that are not wider than the terminal."""
    if len(table.head) <= 2:  # of words, which can be wrapped
        yield table
        return
    rows = [table.head, *[[field.text for field in row] for row in table.rows]]
    widths = [max(map(len, column)) + GAP for column in zip(*rows, strict=True)]
    first = 1
    while first < len(widths):
        last = first + 1
        while last < len(widths) and widths[0] + sum(widths[first : last + 1]) <= width:
            last += 1
        kept = [0, *range(first, last)]
        some = [tuple(row[i] for i in kept) for row in table.rows if any(row[i].text for i in kept[1:])]
        yield Table(tuple(table.head[i] for i in kept), tuple(some))
        first = last


def _laid_out(table: Table) -> rich.table.Table:
    is_wide = len(table.head) > 2
    laid_out = rich.table.Table(
        box=rich.box.SIMPLE_HEAD if table.head else None,
        show_header=bool(table.head),
        show_edge=False,
        pad_edge=False,
        padding=(0, GAP - bool(table.head), 0, 0),  # the box adds a blank
    )
    for place, is_right in enumerate(table.right):
        laid_out.add_column(
            to_ascii(table.head[place]) if table.head else "",
            justify="right" if is_right else "left",
            style="dim" if not (table.head or place) else "",
            no_wrap=is_wide or not place,
        )
    for row in table.rows:
        laid_out.add_row(*[Text(to_ascii(field.text), STYLES.get(field.status, "")) for field in row])
    return laid_out
