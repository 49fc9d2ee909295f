"""All that the author of a plugin imports: the hooks, the marker for implementing them, and BackendEntry.

A plugin is a module (or object) behind an entry point, with functions marked `@hookimpl`.  There are three
groups: `tensorken.backends` (the entry point's name is the backend's), `tensorken.plugins` (what is not a
place where numbers live: ops, compilers, reports) and `tensorken.commands` (the name is the subcommand, the
object a function from `list[str]` to an exit status).  The host reads metadata alone until a plugin is
wanted; its module is then imported to describe it, so heavy dependencies belong inside `load`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pluggy

if TYPE_CHECKING:
    from tensorken.spec.op import Op
    from tensorken.spec.raw import RawTensor

__all__ = ["SPEC_VERSION", "BackendEntry", "hookimpl"]

SPEC_VERSION = "1.0"
"""The version of the language: a minor one adds ops with bodies, a major one changes a backend's duties."""

hookimpl = pluggy.HookimplMarker("tensorken")
"""Marks a function of a plugin as the implementation of the hook of its name."""

hookspec = pluggy.HookspecMarker("tensorken")


@dataclass(frozen=True, slots=True)
class BackendEntry:
    """What a backend tells the host before it is loaded.

    Args:
        name: the backend's name, the same as its entry point's.
        load: makes the interpreter; called once for each device that is used, with its name.  The only place
            that imports heavy dependencies.
        summary: a few words for listings.
        spec: the versions of the language that the backend speaks.
        fuse: whether the host wraps the interpreter in `Fuse`, so that contractions are found and products
            never built.  False for a backend that shows or rewrites the ops themselves.
        devices: the names of the devices, the default first, or a function that finds them (called once, when
            the backend is used).  None: one device, the CPU, for which `load` gets None.

    Raises:
        ValueError: if `spec` is no range of versions.

    >>> entry = BackendEntry("mine", lambda device: ..., devices=("left", "right"))
    >>> entry.spec
    '>=1.0,<2'
    """

    name: str
    load: Callable[[str | None], RawTensor[Any]]
    summary: str = ""
    spec: str = ">=1.0,<2"
    fuse: bool = True
    devices: Sequence[str] | Callable[[], Sequence[str]] | None = None

    def __post_init__(self) -> None:
        place_in_range(SPEC_VERSION, self.spec)


# ---- the hooks ---------------------------------------------------------------------------------------------


@hookspec
def tensorken_backend() -> BackendEntry:
    """Describe the backend behind an entry point of the group `tensorken.backends`; import nothing heavy."""
    raise NotImplementedError


@hookspec(firstresult=True)
def tensorken_compile(program: Any, backend: Any) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """Compile a program for a backend: a function from representations to representations.

    None leaves the program to the next plugin, in the end to the backend itself.
    """
    raise NotImplementedError


@hookspec
def tensorken_ops() -> Iterable[Op]:
    """The ops that the plugin adds to the op table, so that derivatives, vmap and the laws know them."""
    raise NotImplementedError


@hookspec
def tensorken_report_header() -> str | Iterable[str]:
    """Lines about the plugin for `tensorken doctor`."""
    raise NotImplementedError


# ---- ranges of versions ------------------------------------------------------------------------------------

_VERSION = re.compile(
    r"""v? (?:(?P<epoch>\d+)!)? (?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre_number>\d*))?
    (?:-(?P<post_short>\d+) | [-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_number>\d*))?
    (?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_number>\d*))?
    (?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?""",
    re.VERBOSE,
)
_CLAUSE = re.compile(r"(===|~=|==|!=|<=|>=|<|>)\s*([^\s,]+)")
_PRE_RANK = {"a": 0, "alpha": 0, "b": 1, "beta": 1}  # the others are release candidates: 2

_Key = tuple[int, tuple[int, ...], tuple[int, int], int, float]
"""Sorts versions: epoch, release without trailing zeros, pre-release, post-release, development release."""

_FINAL: tuple[tuple[int, int], int, float] = ((3, 0), -1, float("inf"))


def _parsed(version: str) -> re.Match[str]:
    found = _VERSION.fullmatch(version.strip().lower())
    if found is None:
        raise ValueError(f"{version!r} is no version")
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
    match operator:
        case "==":
            return here == there
        case "!=":
            return here != there
        case "<=":
            return here <= there
        case ">=":
            return here >= there
        case "<":  # without the pre-releases of a final bound
            return here < there and not (here[:2] == there[:2] and there[2:] == _FINAL)
        case _:  # without the post-releases of the bound, unless it is one
            return here > there and not (here[:3] == there[:3] and there[3] < 0 <= here[3])


def place_in_range(version: str, versions: str) -> Literal["below", "inside", "above"]:
    """Where a version lies with regard to a range such as ">=1.0,<2", by the rules of PEP 440.

    Pre-releases count; local parts (`+...`) do not.

    Raises:
        ValueError: if the version or the range cannot be read.

    >>> place_in_range("1.3", ">=1.0,<2"), place_in_range("2.0", ">=1.0,<2"), place_in_range("0.9", "~=1.0")
    ('inside', 'above', 'below')
    """
    for clause in filter(None, (part.strip() for part in versions.split(","))):
        found = _CLAUSE.fullmatch(clause)
        if found is None:
            raise ValueError(f"{versions!r} is no range of versions such as '>=1.0,<2'")
        operator, bound = found.groups()
        if not _fits(version, operator, bound):
            below = operator.startswith(">") or (
                operator in ("==", "~=") and _key(version) < _key(bound.removesuffix(".*"))
            )
            return "below" if below else "above"
    return "inside"
