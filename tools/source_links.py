"""Links from the reference to the source: in the repository, or in pages of the site while its address is unknown."""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.workspace import ROOT

_LOCAL = re.compile(r'href="\.\./source/([\w./-]+\.py)\.html#L-\d+"')

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex"><title>{path}</title>
<link rel="icon" href="{root}_static/mark.svg"><link rel="stylesheet" href="{root}source/source.css"></head>
<body><main><h1>{path}</h1>
{code}</main></body></html>
"""


def source_of(module: str, name: str) -> tuple[str, int, int] | None:
    """The path of an object's source in the repository, its first and last line; None if it has none there."""
    try:
        value: Any = operator.attrgetter(name)(importlib.import_module(module))
        function: Any = value.fget if isinstance(value, property) else value
        found: Any = inspect.unwrap(function)
        lines, first = inspect.getsourcelines(found)
        file = Path(inspect.getsourcefile(found) or "").resolve()
    except (AttributeError, TypeError, OSError):  # a constant, a field, a function in C
        return None
    if not file.is_relative_to(ROOT):
        return None
    return file.relative_to(ROOT).as_posix(), first, first + len(lines) - 1


def resolver(repository: str, revision: str) -> Callable[[str, dict[str, str]], str | None]:
    """The function that Sphinx's linkcode calls: the address of an object's source at a revision of the repository.

    If the repository is empty, it is a page of the site, which `write_pages` makes.
    """

    @functools.cache
    def link(module: str, name: str) -> str | None:
        source = source_of(module, name)
        if source is None:
            return None
        path, first, last = source
        if repository:
            return f"{repository}/blob/{revision}/{path}#L{first}-L{last}"
        return f"../source/{path}.html#L-{first}"

    def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
        return link(info["module"], info["fullname"]) if domain == "py" and info["module"] else None

    return linkcode_resolve


def write_pages(site: Path) -> None:
    """Write a page for each file of source that the reference links."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    texts = [page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html")]
    paths = sorted({path for text in texts for path in _LOCAL.findall(text)})
    if not paths:
        return
    lexer, formatter = PythonLexer(), HtmlFormatter(linespans="L", wrapcode=True)
    for path in paths:
        page = site / "source" / f"{path}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        code = highlight((ROOT / path).read_text(encoding="utf-8"), lexer, formatter)
        code = code.replace("<pre>", '<pre tabindex="0">', 1)  # scrolls by the keyboard
        text = PAGE.format(path=path, code=code, root="../" * (path.count("/") + 1))
        page.write_text(text, encoding="utf-8", newline="\n")
    light, dark = (
        HtmlFormatter(style=f"a11y-high-contrast-{name}").get_style_defs(".highlight")
        for name in ("light", "dark")
    )
    rules = "body { margin: 1rem; } h1 { font: 600 1.1rem system-ui; } pre { overflow-x: auto; }"
    css = f"{rules}\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
    (site / "source" / "source.css").write_text(css, encoding="utf-8", newline="\n")
