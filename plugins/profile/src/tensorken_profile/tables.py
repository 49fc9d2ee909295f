"""Tables of events, aggregated by op or line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tensorken_profile.events import Event


@dataclass(frozen=True, slots=True)
class Row:
    """The aggregate of the events of an op or line.

    Attributes:
        name: the op, program or line.
        calls: the number of events.
        time: the sum of their self times in seconds.
        bytes: the bytes read and written.
        flop: the number of operations on elements.
        share: the fraction of the time of all events, from 0 to 1.
    """

    name: str
    calls: int
    time: float
    bytes: int
    flop: int
    share: float


class Table(Sequence[Row]):
    """Rows sorted by time, the longest first; `str` formats them.

    >>> print(Table("op", [Row("exp", 2, 0.0015, 8000, 1000, 1.0)]))
    op   calls     time    bytes    FLOP    share
    exp      2  1.50 ms  8.00 kB  1.00 k  100.0 %
    """

    def __init__(self, title: str, rows: Iterable[Row]) -> None:
        self.title = title
        self.rows = sorted(rows, key=lambda row: (-row.time, row.name))

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __str__(self) -> str:
        lines: list[tuple[str, ...]] = [(self.title, "calls", "time", "bytes", "FLOP", "share")]
        for row in self.rows:
            quantities = [
                format_quantity(row.time, "s"),
                format_quantity(row.bytes, "B"),
                format_quantity(row.flop, ""),
            ]
            lines.append((_in_ascii(row.name), str(row.calls), *quantities, f"{100 * row.share:.1f} %"))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = []
        for name, *numbers in lines:
            cells = [name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])]
            texts.append("  ".join(cells).rstrip())
        return "\n".join(texts)

    __repr__ = __str__


def aggregate(title: str, events: Iterable[Event], name: Callable[[Event], str]) -> Table:
    """Aggregate events by name."""
    groups: dict[str, list[Event]] = {}
    for event in events:
        groups.setdefault(name(event), []).append(event)
    total = sum([event.self_time for group in groups.values() for event in group]) or 1
    rows = []
    for key, group in groups.items():
        self_time = sum([event.self_time for event in group])
        moved, flop = sum([event.bytes for event in group]), sum([event.flop for event in group])
        rows.append(Row(key, len(group), self_time / 1e9, moved, flop, self_time / total))
    return Table(title, rows)


def _in_ascii(name: str) -> str:
    """A user's name in ASCII, on one line."""
    return " ".join(name.splitlines()).encode("ascii", "backslashreplace").decode("ascii")


def format_quantity(value: float, unit: str) -> str:
    """Format a number with three digits and an SI prefix.

    >>> (
    ...     format_quantity(0.0000123, "s"),
    ...     format_quantity(1_234_567, "B"),
    ...     format_quantity(999, ""),
    ...     format_quantity(0, "B"),
    ... )
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
