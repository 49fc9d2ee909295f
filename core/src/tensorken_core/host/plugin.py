"""The names that the author of a plugin imports: the hooks, their marker, BackendEntry and Capabilities.

A plugin is a module (or object) behind an entry point, with functions marked `@hookimpl`.  There are four groups of
entry points:

* `tensorken.backends`: the name of the entry point is the name of the backend;
* `tensorken.plugins`: ops, compilers and reports;
* `tensorken.commands`: the name is the subcommand; the object is a function from `list[str]` to an exit status, and
  the first line of its module's docstring is the description;
* `tensorken.namespace`: the object becomes an attribute of `tensorken` by this name, as `tk.profile`, unless
  `tensorken` has one.

The host reads metadata alone until a plugin is used.  It then imports the plugin's module to describe it, so heavy
dependencies belong inside `load`.
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
"""The version of the language: minor versions add ops with bodies, major versions change the required methods."""

hookimpl = pluggy.HookimplMarker("tensorken")
"""Marks a function of a plugin as the implementation of the hook of its name."""

hookspec = pluggy.HookspecMarker("tensorken")


@dataclass(frozen=True, slots=True)
class BackendEntry:
    """The description of a backend, which the host reads before it loads the backend.

    Args:
        name: the backend's name, the same as its entry point's.
        load: makes the interpreter; called once for each device that is used, with its name.  The only place
            that imports heavy dependencies.  `Fuse(...)` around the interpreter fuses sums of products, which are
            never stored; `Lazy(...)` passes whole programs to its `compile`, for a device with a high cost for
            each call.  Use neither for a backend that prints or rewrites the ops themselves.
        summary: a few words for listings.
        spec: the versions of the language that the backend implements.
        devices: the names of the devices, the default first, or a function that finds them (called once, when
            the backend is used).  None: one device, the CPU, for which `load` gets None.
        facts: from the name of a device to its properties, such as its driver and limits, for
            `tensorken backends --probe`.

    Raises:
        ValueError: if `spec` is not a range of versions.

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

    None leaves the program to the next plugin, and finally to the backend.
    """
    raise NotImplementedError


@hookspec(firstresult=True)
def tensorken_compile_traced(
    program: Any, optimised: Callable[[], Any], backend: Any
) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """Compile a program before the passes, for a compiler that keeps compiled programs: it need not wait for them.

    It is called in place of `tensorken_compile` of the same plugin, except for programs with opaque ops.

    Args:
        program: as it was traced.
        optimised: returns the program after the passes; they run once.
        backend: as in `tensorken_compile`.
    """
    raise NotImplementedError


@hookspec
def tensorken_group() -> tuple[str, Callable[..., Any]]:
    """A group of processes for `tk.spread`: its name, and a function that joins it.

    The function takes options, among them `timeout` in seconds, and returns a `tensorken.distributed.Group`.
    """
    raise NotImplementedError


@hookspec
def tensorken_ops() -> Iterable[Op]:
    """The ops that the plugin adds to the op table, for derivatives, vmap and the conformance kit."""
    raise NotImplementedError


@hookspec
def tensorken_report_header() -> str | Iterable[str]:
    """Lines about the plugin for `tensorken doctor`."""
    raise NotImplementedError
