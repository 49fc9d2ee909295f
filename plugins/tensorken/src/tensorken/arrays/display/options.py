"""Options of printed tensors: precision, line width and style, with numpy's names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from tensorken_core.errors import ArgumentError

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """The options of `set_printoptions`, with numpy's defaults."""

    precision: int = 8
    threshold: int = 1000
    edgeitems: int = 3
    linewidth: int = 75
    suppress: bool = False
    nanstr: str = "nan"
    infstr: str = "inf"
    sign: Literal["-", "+", " "] = "-"
    floatmode: Literal["fixed", "unique", "maxprec", "maxprec_equal"] = "maxprec"
    style: Literal["brackets", "boxes"] = "brackets"

    def __post_init__(self) -> None:
        for name, (is_valid, requirement) in _REQUIREMENTS.items():
            value = getattr(self, name)
            if not is_valid(value):
                raise ArgumentError(f"printoptions: {name} must be {requirement}, got {value!r}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _one_of(*values: str) -> tuple[Callable[[object], bool], str]:
    return values.__contains__, f"{', '.join(map(repr, values[:-1]))} or {values[-1]!r}"


_COUNT = (_is_count, "an integer from 0")
_TEXT = (lambda value: isinstance(value, str), "a string")
_REQUIREMENTS: dict[str, tuple[Callable[[object], bool], str]] = {
    "precision": _COUNT,
    "threshold": (
        lambda value: isinstance(value, int | float) and value >= 0,
        f"a number from 0; {sys.maxsize} prints all elements",
    ),
    "edgeitems": _COUNT,
    "linewidth": _COUNT,
    "nanstr": _TEXT,
    "infstr": _TEXT,
    "sign": _one_of("-", "+", " "),
    "floatmode": _one_of("fixed", "unique", "maxprec", "maxprec_equal"),
    "style": _one_of("brackets", "boxes"),
}

DEFAULTS = PrintOptions()
_current: ContextVar[PrintOptions] = ContextVar("tensorken_printoptions", default=DEFAULTS)


def current_options() -> PrintOptions:
    """The options in this context."""
    return _current.get()


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    suppress: bool | None = None,
    nanstr: str | None = None,
    infstr: str | None = None,
    *,
    sign: Literal["-", "+", " "] | None = None,
    floatmode: Literal["fixed", "unique", "maxprec", "maxprec_equal"] | None = None,
    style: Literal["brackets", "boxes"] | None = None,
) -> None:
    """Change how tensors are printed, in this thread; None leaves an option as it is.

    The options and their defaults are numpy's, except `style`.

    Args:
        precision: the largest number of digits after the point, 8 at first.
        threshold: with more elements than this, 1000 at first, only the edges are printed.
        edgeitems: the number of positions at each end of an axis of which only the edges are printed, 3 at first.
        linewidth: the number of characters in a line, 75 at first.
        suppress: whether small numbers are printed without an exponent, and as 0 if they are too small for that.
        nanstr: the text of NaN, `nan` at first.
        infstr: the text of infinity, `inf` at first.
        sign: `"-"` prints the signs of negative numbers only, `"+"` all signs, `" "` a space for positive signs.
        floatmode: `"maxprec"` prints as many digits as needed, at most `precision`; `"maxprec_equal"` prints
            equally many for all elements, `"unique"` as many as needed, `"fixed"` exactly `precision`.
        style: `"brackets"` prints as numpy does. `"boxes"` prints the matrices of a tensor with three or more axes
            in ASCII boxes, and floats with as few digits as identify them.

    Raises:
        ArgumentError: if the value of an option is not valid.

    >>> import tensorken as tk
    >>> with tk.printoptions():  # ends at the end of the block
    ...     tk.set_printoptions(precision=3)
    ...     print(tk.sqrt(tk.tensor([1.0, 2.0])))
    [1.    1.414]
    """
    given = {name: value for name, value in locals().items() if value is not None}
    _current.set(replace(_current.get(), **given))


def get_printoptions() -> dict[str, Any]:
    """The options of printed tensors in this thread, as a dict that `set_printoptions` accepts.

    >>> import tensorken as tk
    >>> tk.get_printoptions()["precision"]
    8
    """
    return asdict(_current.get())


@contextmanager
def printoptions(**options: Any) -> Iterator[dict[str, Any]]:
    """Change how tensors are printed within a `with` block; the options are those of `set_printoptions`.

    Raises:
        ArgumentError: if there is no such option, or its value is not valid.

    >>> import tensorken as tk
    >>> with tk.printoptions(style="boxes"):
    ...     print(tk.arange(8).reshape(2, 2, 2))
    +------------------+
    |                  |
    |  [0 1]    [4 5]  |
    |  [2 3]    [6 7]  |
    |                  |
    +------------------+
    """
    names = [field.name for field in fields(PrintOptions)]
    unknown = next((name for name in options if name not in names), None)
    if unknown is not None:
        raise ArgumentError(
            f"printoptions: there is no option {unknown!r}; the options are {', '.join(names)}"
        )
    given = {name: value for name, value in options.items() if value is not None}
    token = _current.set(replace(_current.get(), **given))
    try:
        yield get_printoptions()
    finally:
        _current.reset(token)
