"""The report as a page: HTML without scripts and without other files."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tensorken_wgpu.report.bench import Row
from tensorken_wgpu.report.sections import Section
from tensorken_wgpu.report.text import COLUMNS, cells, notes

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .7rem .2rem 0; border-bottom: 1px solid #8884; }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.notes { overflow-wrap: anywhere; color: color-mix(in srgb, currentColor 75%, transparent); }
meter { width: 6rem; margin-left: .5rem; }
.error { color: light-dark(#b00020, #ff8a80); }
"""


def to_page(title: str, sections: Sequence[Section]) -> str:
    """The page of a report."""
    body = "".join([_section(section) for section in sections])
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>"
        f"<meta name=viewport content='width=device-width'><style>{STYLE}</style>"
        f"<h1>{escape(title)}</h1>\n{body}</html>\n"
    )


def _section(section: Section) -> str:
    columns = [name for name in COLUMNS if any([name in cells(row) for row in section.rows])]
    head = "".join([f"<th>{escape(name)}</th>" for name in ("", *columns, "")])
    rows = "".join([_row(row, columns) for row in section.rows])
    return (
        f"<h2>{escape(section.title)}</h2><div class=wide><table><thead><tr>{head}</tr></thead>"
        f"<tbody>\n{rows}</tbody></table></div>\n"
    )


def _row(row: Row, columns: Sequence[str]) -> str:
    found = cells(row)
    parts = [f"<td>{escape(row.name)}</td>"]
    for name in columns:
        bar = ""
        if name == "of a copy" and row.share is not None:
            bar = f"<meter value={min(row.share, 1.0):.3f} aria-label='part of the rate of a copy'></meter>"
        parts.append(f"<td class=number>{escape(found.get(name, ''))}{bar}</td>")
    kind = "notes error" if row.error else "notes"
    return f"<tr>{''.join(parts)}<td class='{kind}'>{escape(notes(row))}</td></tr>\n"
