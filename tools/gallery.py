"""The gallery as cards with figures: `docs/gallery.md` has tables, which are readable as source.

A row has a link to a program and a sentence about it. On the site it is a card: the figure that the program draws, the
title and the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_TABLE = re.compile(r"^\| program \| contents \|\n\|---\|---\|\n(?P<rows>(?:\|.*\|\n)+)", re.MULTILINE)
_ROW = re.compile(r"^\| \[(?P<title>[^\]]+)\]\((?P<page>[^)]+)\.md\) \| (?P<text>.*) \|$", re.MULTILINE)
_REFERENCE = re.compile(r"\{py:obj\}`([^`<]+) <[^>]*>`")


def with_cards(page: str, descriptions: Mapping[str, str]) -> str:
    r"""The page of the gallery with a grid of cards for each table.

    Args:
        page: the page, with links to pages of the site.
        descriptions: the alternative text of the figure of each program, by the path of its page without suffix; an
            empty text if it has none.

    >>> page = "| program | contents |\n|---|---|\n| [Orbits](examples/a.md) | A planet. |\n"
    >>> print(with_cards(page, {"examples/a": "An ellipse."}))
    ````{grid} 1 2 2 2
    :gutter: 3
    <BLANKLINE>
    ```{grid-item-card} Orbits
    :link: examples/a
    :link-type: doc
    :img-top: examples/a.svg
    :img-alt: An ellipse.
    <BLANKLINE>
    A planet.
    ```
    ````
    <BLANKLINE>
    """

    def card(row: re.Match[str]) -> str:
        description = descriptions[row["page"]]
        image = f":img-top: {row['page']}.svg\n:img-alt: {description}\n" if description else ""
        text = _REFERENCE.sub(r"`\1`", row["text"])  # the whole card is a link
        link = f":link: {row['page']}\n:link-type: doc\n"
        return f"```{{grid-item-card}} {row['title']}\n{link}{image}\n{text}\n```"

    def grid(table: re.Match[str]) -> str:
        return f"````{{grid}} 1 2 2 2\n:gutter: 3\n\n{_ROW.sub(card, table['rows'])}````\n"

    return _TABLE.sub(grid, page)
