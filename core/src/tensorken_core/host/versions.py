"""Versions and ranges of versions, compared by the rules of PEP 440."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import eq, ge, le, ne
from typing import Any, Literal

_VERSION = re.compile(
    r"""v? (?:(?P<epoch>\d+)!)? (?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre_number>\d*))?
    (?:-(?P<post_short>\d+) | [-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_number>\d*))?
    (?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_number>\d*))?
    (?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?""",
    re.VERBOSE,
)
_CLAUSE = re.compile(r"(===|~=|==|!=|<=|>=|<|>)\s*([^\s,]+)")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {"==": eq, "!=": ne, "<=": le, ">=": ge}
_PRE_RANK = {"a": 0, "alpha": 0, "b": 1, "beta": 1}  # the others are release candidates: 2

_Key = tuple[int, tuple[int, ...], tuple[int, int], int, float]
"""Sorts versions: epoch, release without trailing zeros, pre-release, post-release, development release."""

_FINAL: tuple[tuple[int, int], int, float] = ((3, 0), -1, float("inf"))


def _parsed(version: str) -> re.Match[str]:
    found = _VERSION.fullmatch(version.strip().lower())
    if found is None:
        raise ValueError(f"{version!r} is not a version")
    return found


def _key(version: str) -> _Key:
    found = _parsed(version)
    number = {name: int(text or 0) for name, text in found.groupdict().items() if name.endswith("number")}
    release = [int(part) for part in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    post = int(found["post_short"]) if found["post_short"] else number["post_number"] if found["post"] else -1
    if found["pre"]:
        pre = (_PRE_RANK.get(found["pre"], 2), number["pre_number"])
    else:
        pre = (-1, 0) if found["dev"] and post < 0 else _FINAL[0]
    dev = number["dev_number"] if found["dev"] else float("inf")
    return int(found["epoch"] or 0), tuple(release), pre, post, dev


def _is_prerelease(key: _Key) -> bool:
    return key[2] != _FINAL[0] or key[4] != float("inf")


def _starts_with(version: _Key, prefix: _Key, length: int) -> bool:
    """Whether the first `length` numbers of the release are those of the prefix."""
    padded = [key[1][:length] + (0,) * (length - len(key[1])) for key in (version, prefix)]
    return version[0] == prefix[0] and padded[0] == padded[1]


def _fits(version: str, operator: str, bound: str) -> bool:
    if operator == "===":
        return version.strip().lower() == bound.lower()
    here, there = _key(version), _key(bound.removesuffix(".*"))
    length = _parsed(bound.removesuffix(".*"))["release"].count(".")
    if operator in ("==", "!=") and bound.endswith(".*"):
        return _starts_with(here, there, length + 1) == (operator == "==")
    if operator == "~=":  # the last number of the release may grow
        return here >= there and _starts_with(here, there, length)
    if operator in _COMPARE:
        return _COMPARE[operator](here, there)
    if operator == "<":  # without the pre-releases of the bound, unless it is one
        same = here[:2] == there[:2] if there[3] < 0 else here[:4] == there[:4]
        return here < there and not (same and _is_prerelease(here) and not _is_prerelease(there))
    # >: without the post-releases of the bound, unless it is one; a development release has none
    post_of_bound = here[:3] == there[:3] and there[3] < 0 <= here[3] and there[4] == float("inf")
    return here > there and not post_of_bound


def place_in_range(version: str, versions: str) -> Literal["below", "inside", "above"]:
    """Whether a version is below, inside or above a range such as ">=1.0,<2", by the rules of PEP 440.

    Pre-releases count; local parts (`+...`) do not.

    Raises:
        ValueError: if the version or the range is not valid.

    >>> place_in_range("1.3", ">=1.0,<2"), place_in_range("2.0", ">=1.0,<2"), place_in_range("0.9", "~=1.0")
    ('inside', 'above', 'below')
    """
    for clause in filter(None, (part.strip() for part in versions.split(","))):
        found = _CLAUSE.fullmatch(clause)
        if found is None:
            raise ValueError(f"{versions!r} is not a range of versions such as '>=1.0,<2'")
        operator, bound = found.groups()
        if not _fits(version, operator, bound):
            below = operator.startswith(">") or (
                operator in ("==", "~=") and _key(version) < _key(bound.removesuffix(".*"))
            )
            return "below" if below else "above"
    return "inside"
