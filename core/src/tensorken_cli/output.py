"""Output in ASCII, which every console can show; on a terminal, with colours and ruled tables by rich if installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from tensorken_core.host.load_monitor import to_ascii
from tensorken_core.text import printable

STYLES = {
    "available": "green",
    "loads": "green",
    "broken": "red",
    "incompatible": "red",
    "clash": "yellow",
    "unavailable": "yellow",
}
"""The colours of cells that begin with these words."""


def colours(stream: Any) -> bool:
    """Whether to print colours to a stream.

    NO_COLOR means no, FORCE_COLOR yes, in this order; without them, the stream must be a terminal, and TERM not `dumb`.

    >>> import io
    >>> colours(io.StringIO()) and not os.environ.get("FORCE_COLOR")
    False
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return bool(stream is not None and os.environ.get("TERM") != "dumb" and stream.isatty())


def write(text: str) -> None:
    """Print a text to stdout, and flush."""
    print(to_ascii(text), flush=True)


def print_table(rows: Iterable[tuple[str, ...]], *, header: bool = False) -> None:
    """Print rows in aligned columns; a header is a row as well, the first.

    >>> print_table([("name", "size"), ("numpy", "8")], header=True)
      name   size
      numpy  8
    """
    lines = [tuple([to_ascii(printable(cell)) for cell in row]) for row in rows]  # no cell has two lines
    if not lines:
        return
    if colours(sys.stdout) and _print_ruled(lines, header):
        return
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)][:-1]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, [*widths, 0], strict=True)]
        write(f"  {'  '.join(cells)}")


def _print_ruled(lines: list[tuple[str, ...]], header: bool) -> bool:
    """Print a table by rich, in which only the last column is wrapped.

    Returns:
        False if rich is not installed, or if the terminal has no room for the last column.
    """
    try:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    console = rich_console()
    *others, _ = (max(map(len, column)) + 2 for column in zip(*lines, strict=True))
    if console.width < sum(others) + 20:
        return False
    table = Table(
        box=SIMPLE_HEAD if header else None,
        show_header=header,
        show_edge=False,
        header_style="bold",
        padding=(0, 0, 0, 2),
    )
    first, *rest = lines
    for i, title in enumerate(first, 1):
        table.add_column(Text(title), overflow="fold", no_wrap=i < len(first))  # the last may be wrapped
    for line in rest if header else lines:
        table.add_row(*[Text(cell, STYLES.get(cell.partition(":")[0], "")) for cell in line])
    console.print(table)
    return True


def rich_console() -> Any:
    """A console of rich for stdout, which prints the 16 colours that every terminal has.

    Raises:
        ImportError: without rich.
    """
    from rich.console import Console

    return Console(force_terminal=True, color_system="standard")
