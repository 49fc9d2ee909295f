"""Badge: the level of a backend as a small SVG image, or as JSON for shields.io."""

from __future__ import annotations

import json
from html import escape

from tensorken_conformance.report.model import Report

LABEL = "tensorken"

COLOURS = {
    None: ("red", "#c13525"),
    0: ("red", "#c13525"),
    1: ("orange", "#b8590a"),
    2: ("yellow", "#8a6d00"),
    3: ("yellowgreen", "#5d7a10"),
    4: ("green", "#35792a"),
    5: ("brightgreen", "#1c7a3c"),
}
"""By level: the colour's name at shields.io, and a shade that contrasts with white text."""


def message(report: Report) -> str:
    """The text of the badge: the level, and `failing` if the run failed."""
    if not report.header.complete:
        return "partial"
    failing = " failing" if report.status and report.header.level is not None else ""
    return report.header.level_name + failing


def to_shields(report: Report) -> str:
    """The JSON of an endpoint badge of shields.io."""
    colour, _ = _colour(report)
    data = {"schemaVersion": 1, "label": LABEL, "message": message(report), "color": colour}
    return json.dumps(data | {"isError": bool(report.status)}) + "\n"


def to_svg(report: Report) -> str:
    """The badge as a self-contained SVG image."""
    text, (_, shade) = message(report), _colour(report)
    left, right = _width(LABEL), _width(text)
    title = escape(f"{report.header.title}: {report.claim}")
    return (
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img"'
            f' aria-label="{escape(LABEL)}: {escape(text)}"><title>{title}</title>'
            f'<clipPath id="r"><rect width="{left + right}" height="20" rx="3"/></clipPath><g clip-path="url(#r)">'
            f'<rect width="{left}" height="20" fill="#444"/>'
            f'<rect x="{left}" width="{right}" height="20" fill="{shade}"/>'
            f'</g><g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
            f'<text x="{left / 2:g}" y="14">{escape(LABEL)}</text>'
            f'<text x="{left + right / 2:g}" y="14">{escape(text)}</text></g></svg>\n'
        )
        .encode("ascii", "xmlcharrefreplace")
        .decode("ascii")
    )


def _colour(report: Report) -> tuple[str, str]:
    if report.status:
        return COLOURS[None]
    return COLOURS[report.header.level] if report.header.complete else ("lightgrey", "#666")


def _width(text: str) -> int:
    """The approximate width of the text in Verdana at 11 pixels, with a margin."""
    return 12 + 7 * len(text)
