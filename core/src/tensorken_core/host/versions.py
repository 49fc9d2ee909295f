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
_PRE_RANK = {"a": 0, "alpha": 0, "b": 1, "beta": 1}  # other names are release candidates: 2

_Key = tuple[int, tuple[int, ...], tuple[int, int], int, float]
"""Sorts versions: epoch, release without trailing zeros, pre-release, post-release, development release."""

_FINAL: tuple[tuple[int, int], int, float] = ((3, 0), -1, float("inf"))


def _parsed(version: str) -> re.Match[str]:
    match = _VERSION.fullmatch(version.strip().lower())
    if match is None:
        raise ValueError(f"{version!r} is not a version")
    return match


def _key(version: str) -> _Key:
    match = _parsed(version)
    number = {name: int(text or 0) for name, text in match.groupdict().items() if name.endswith("number")}
    release = [int(part) for part in match["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    post = int(match["post_short"]) if match["post_short"] else number["post_number"] if match["post"] else -1
    if match["pre"]:
        pre = (_PRE_RANK.get(match["pre"], 2), number["pre_number"])
    else:
        pre = (-1, 0) if match["dev"] and post < 0 else _FINAL[0]
    dev = number["dev_number"] if match["dev"] else float("inf")
    return int(match["epoch"] or 0), tuple(release), pre, post, dev


def _is_prerelease(key: _Key) -> bool:
    return key[2] != _FINAL[0] or key[4] != float("inf")


def _starts_with(version: _Key, prefix: _Key, length: int) -> bool:
    """Whether the first `length` numbers of the release equal those of the prefix."""
    padded = [key[1][:length] + (0,) * (length - len(key[1])) for key in (version, prefix)]
    return version[0] == prefix[0] and padded[0] == padded[1]


def _fits(version: str, operator: str, bound: str) -> bool:
    if operator == "===":
        return version.strip().lower() == bound.lower()
    key, bound_key = _key(version), _key(bound.removesuffix(".*"))
    length = _parsed(bound.removesuffix(".*"))["release"].count(".")
    if operator in ("==", "!=") and bound.endswith(".*"):
        return _starts_with(key, bound_key, length + 1) == (operator == "==")
    if operator == "~=":  # the last number of the release may grow
        return key >= bound_key and _starts_with(key, bound_key, length)
    if operator in _COMPARE:
        return _COMPARE[operator](key, bound_key)
    if operator == "<":  # without pre-releases of the bound, unless the bound is a pre-release
        same = key[:2] == bound_key[:2] if bound_key[3] < 0 else key[:4] == bound_key[:4]
        return key < bound_key and not (same and _is_prerelease(key) and not _is_prerelease(bound_key))
    # >: without post-releases of the bound, unless the bound is a post-release; a development release has none
    post_of_bound = key[:3] == bound_key[:3] and bound_key[3] < 0 <= key[3] and bound_key[4] == float("inf")
    return key > bound_key and not post_of_bound


def place_in_range(version: str, versions: str) -> Literal["below", "inside", "above"]:
    """Whether a version is below, inside or above a range such as ">=1.0,<2", by the rules of PEP 440.

    Pre-releases count; local parts (`+...`) do not.

    Raises:
        ValueError: if the version or the range is not valid.

    >>> place_in_range("1.3", ">=1.0,<2"), place_in_range("2.0", ">=1.0,<2"), place_in_range("0.9", "~=1.0")
    ('inside', 'above', 'below')
    """
    for clause in filter(None, (part.strip() for part in versions.split(","))):
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            raise ValueError(f"{versions!r} is not a range of versions such as '>=1.0,<2'")
        operator, bound = match.groups()
        if not _fits(version, operator, bound):
            below = operator.startswith(">") or (
                operator in ("==", "~=") and _key(version) < _key(bound.removesuffix(".*"))
            )
            return "below" if below else "above"
    return "inside"
