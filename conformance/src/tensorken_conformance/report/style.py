"""Style: what all pages have in common: how they look, in page.css, and the few lines of script in page.js."""

from __future__ import annotations

from html import escape
from importlib import resources

FILTER = (
    "<p hidden><label for=filter>Show only what is named</label> "
    "<input id=filter type=search placeholder='exp, float32, values.cast ...'></p>"
)


def document(title: str, body: str) -> str:
    """A page, in ASCII, which needs nothing from elsewhere.

    >>> document("A page", "<p>text</p>").startswith("<!doctype html>")
    True
    """
    look, script = (_file(name) for name in ("page.css", "page.js"))
    page = (
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
        "<meta name=viewport content='width=device-width,initial-scale=1'>\n"
        f"<title>{escape(title)}</title>\n<style>\n{look}</style>\n</head>\n<body>\n{body}\n"
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
