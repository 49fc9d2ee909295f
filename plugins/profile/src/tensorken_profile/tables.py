"""Tables: events added up by their op or their line, and how that is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tensorken_profile.events import Event


@dataclass(frozen=True, slots=True)
class Row:
    """What events of one op, or for one line, come to.

    Attributes:
        name: the op, program or line.
        calls: how many events there are.
        time: their own time in seconds, without what other events in them took.
        bytes: what they read and wrote, if each did so once.
        flop: how many operations on elements they did.
        share: their part of the time of all events, from 0 to 1.
    """

    name: str
    calls: int
    time: float
    bytes: int
    flop: int
    share: float


class Table(Sequence[Row]):
    """Rows, the one that took longest first; `str` is made for reading.

    >>> print(Table("op", [Row("exp", 2, 0.0015, 8000, 1000, 1.0)]))
    op   calls     time    bytes    FLOP    share
    exp      2  1.50 ms  8.00 kB  1.00 k  100.0 %
    """

    def __init__(self, title: str, rows: Iterable[Row]) -> None:
        self.title = title
        self.rows = sorted(rows, key=lambda row: (-row.time, row.name))

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __str__(self) -> str:
        lines: list[tuple[str, ...]] = [(self.title, "calls", "time", "bytes", "FLOP", "share")]
        for row in self.rows:
            shown = [quantity(row.time, "s"), quantity(row.bytes, "B"), quantity(row.flop, "")]
            lines.append((_in_ascii(row.name), str(row.calls), *shown, f"{100 * row.share:.1f} %"))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = []
        for name, *figures in lines:
            cells = [name.ljust(widths[0]), *map(str.rjust, figures, widths[1:])]
            texts.append("  ".join(cells).rstrip())
        return "\n".join(texts)

    __repr__ = __str__


def added_up(title: str, events: Iterable[Event], name: Callable[[Event], str]) -> Table:
    """A row for each name."""
    groups: dict[str, list[Event]] = {}
    for event in events:
        groups.setdefault(name(event), []).append(event)
    total = sum([event.own for group in groups.values() for event in group]) or 1
    rows = []
    for key, group in groups.items():
        own = sum([event.own for event in group])
        moved, flop = sum([event.bytes for event in group]), sum([event.flop for event in group])
        rows.append(Row(key, len(group), own / 1e9, moved, flop, own / total))
    return Table(title, rows)


def _in_ascii(name: str) -> str:
    """A name of the user's as any console can show it, on one line."""
    return " ".join(name.splitlines()).encode("ascii", "backslashreplace").decode("ascii")


def quantity(value: float, unit: str) -> str:
    """A number in three digits with a prefix.

    >>> quantity(0.0000123, "s"), quantity(1_234_567, "B"), quantity(999, ""), quantity(0, "B")
    ('12.3 us', '1.23 MB', '999', '0 B')
    """
    prefixes = {"G": 1e9, "M": 1e6, "k": 1e3, "": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
    if unit != "s" and value < 1000:
        return f"{value:.0f} {unit}".rstrip()
    for prefix, scale in prefixes.items():
        if value >= 0.9995 * scale and (unit != "s" or scale <= 1):
            digits = 2 if value < 9.995 * scale else 1 if value < 99.95 * scale else 0
            return f"{value / scale:.{digits}f} {prefix}{unit}".rstrip()
    return f"0 {unit}"
