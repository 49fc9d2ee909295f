"""The names that the author of a plugin imports: the hooks, their marker, BackendEntry and Capabilities.

A plugin is a module (or object) behind an entry point, with functions marked `@hookimpl`.  There are four
groups: `tensorken.backends` (the entry point's name is the backend's), `tensorken.plugins` (what is not a
place where numbers live: ops, compilers, reports), `tensorken.commands` (the name is the subcommand, the
object a function from `list[str]` to an exit status) and `tensorken.namespace` (the name becomes one of
`tensorken`, as `tk.profile`, unless that has it already; the object is what it stands for).  The host reads
metadata alone until a plugin is wanted; its module is then imported to describe it, so heavy dependencies
belong inside `load`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pluggy

from tensorken_core.host.versions import place_in_range
from tensorken_core.language.capabilities import Capabilities

if TYPE_CHECKING:
    from tensorken_core.language.op import Op
    from tensorken_core.language.raw import RawTensor

__all__ = ["SPEC_VERSION", "BackendEntry", "Capabilities", "hookimpl"]

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
            that imports heavy dependencies.  `Fuse(...)` around the interpreter finds contractions, so that products
            are never built; `Lazy(...)` gives its `compile` whole programs, for a device that takes long to be
            given an op and computes it fast.  Neither is for a backend that shows or rewrites the ops themselves.
        summary: a few words for listings.
        spec: the versions of the language that the backend speaks.
        devices: the names of the devices, the default first, or a function that finds them (called once, when
            the backend is used).  None: one device, the CPU, for which `load` gets None.
        facts: what people may want to know of a device, from its name: its driver, its limits, in words; for
            `tensorken backends --probe`.

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
    devices: Sequence[str] | Callable[[], Sequence[str]] | None = None
    facts: Callable[[str], Mapping[str, str]] | None = None

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
