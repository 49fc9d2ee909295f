"""Text of others in messages: cut, and without the control characters that command a terminal."""

from __future__ import annotations

import sys


def printable(text: str, limit: int = sys.maxsize) -> str:
    r"""A text on one line, with its control characters escaped, cut after `limit` characters.

    >>> printable("a\x1b[2J\nb"), printable("abcdef", 3)
    ('a\\x1b[2J\\nb', 'abc ...')
    """
    cut = text if len(text) <= limit else f"{text[:limit]} ..."
    if cut.isprintable():
        return cut
    return "".join([c if c.isprintable() else ascii(c)[1:-1] for c in cut])


def quoted(text: str, limit: int = 60) -> str:
    r"""A text in quotes, as `repr` writes it, cut after `limit` characters.

    >>> print(quoted("a\x1b"), quoted("abcdef", 3))
    'a\x1b' 'abc'...
    """
    return repr(text) if len(text) <= limit else f"{text[:limit]!r}..."
