"""Which backend is meant: by an argument, `use_backend`, the variable TENSORKEN_BACKEND, or by nobody at all.

An explicit argument goes first, then `with use_backend` (this context only), then a plain `use_backend` (the
process), then TENSORKEN_BACKEND, then the default: numpy if it is installed, else the next in a fixed order.
The names in that order mean our own distributions, so that installing a plugin never changes what programs use.

A choice is the name of an installed backend (`wgpu`; `wgpu:1` names a device, `wgpu@acme-wgpu` a
distribution), several in the order of preference (`wgpu,numpy`), `module:attribute` for what is not
installed, or an interpreter.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from tensorken_core.errors import ArgumentError, BackendError, UnknownBackendError
from tensorken_core.host.discovery import OURS, Group, PluginRecord, close_matches, normalized, suggested
from tensorken_core.host.loading import Registry
from tensorken_core.language.raw import RawTensor

DISTRIBUTIONS = OURS["backends"]
"""The distributions of our own backends; no other distribution's backend is selected by these names alone."""

DEFAULT_ORDER = tuple(DISTRIBUTIONS)
"""The backend that is used when nobody chooses is the first of these that our own distribution has installed."""

OWN_PACKAGES = frozenset({"tensorken", "tensorken_core"})
"""Packages whose frames a warning skips."""

PREFIX = "TENSORKEN_"
VARIABLES = {
    "TENSORKEN_BACKEND": "the backend to use where the program does not choose one",
    "TENSORKEN_DEBUG_NANS": "1: raise an error at the op that makes a NaN",
    "TENSORKEN_TRACE_PLUGINS": "1: tell on stderr what the plugin host does, and show tracebacks",
}
"""The environment variables that Tensorken reads."""

# Every creation of a tensor looks whether the variable has changed.  `os.environ.get` takes 0.7 microseconds
# for that, the dictionary behind it 0.02.
_ENVIRONMENT: Any = getattr(os.environ, "_data", os.environ)
_KEY: Any = "TENSORKEN_BACKEND" if _ENVIRONMENT is os.environ else os.environ.encodekey("TENSORKEN_BACKEND")


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The backend that is used, and why."""

    name: str  # as one would write it: "numpy", "wgpu@acme-wgpu", "module:attribute"
    device: str | None
    why: str
    interpreter: Any = field(default=None, repr=False)  # None: not loaded yet
    record: PluginRecord | None = field(default=None, repr=False)  # None: not an installed backend

    @property
    def installed(self) -> bool:
        """Whether its plugin, if it came from one, still lies where it was found."""
        return self.record is None or self.record.installed

    def __str__(self) -> str:
        device = "" if self.device in (None, "cpu", "default") else f":{self.device}"
        return f"{self.name}{device} ({self.why})"


class Use:
    """What `use_backend` gives: enter it to confine the choice to a block."""

    def __init__(
        self, selection: Selection, choice: Choice, former: Choice | None, now: Choice | None
    ) -> None:
        self.choice = choice
        self._selection = selection
        self._former, self._now = former, now  # the choice of the process before and after the call

    def __enter__(self) -> Choice:
        self._selection.confine(self.choice, self._former, self._now)
        return self.choice

    def __exit__(self, *error: object) -> None:
        self._selection.leave(self.choice)

    def __repr__(self) -> str:
        return f"<using {self.choice}>"


class Selection:
    """The choices that are in force, among the backends of a registry."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.name_of = registry.name_of
        self._inside: ContextVar[tuple[Choice, ...]] = ContextVar("tensorken_backends", default=())
        self._process: Choice | None = None
        self._ambient: Choice | None = None  # what the variable or the default gave ...
        self._ambient_text: Any = None  # ... and the variable as it was then
        self._warned: set[str] = set()
        self._found: dict[tuple[Any, Any], Choice] = {}  # by the text of the choice, and the device
        self._lock = registry.lock

    def backends(self) -> list[PluginRecord]:
        """The installed backends, as their metadata describes them; none is imported.

        >>> import tensorken as tk
        >>> [record.status for record in tk.backends() if record.name == "numpy"]
        ['available']
        """
        return self.registry.records("backends")

    def use_backend(self, choice: Any, device: str | int | None = None) -> Use:
        """Choose the backend on which tensors are created where no `backend=` says otherwise.

        A plain call chooses for the process; `with use_backend(...)` for the block, in this thread or task
        alone.  Tensors that exist stay where they are.

        Args:
            choice: a name (`"wgpu"`, `"wgpu:1"`, `"wgpu@acme-wgpu"`, `"wgpu,numpy"`, `"module:attribute"`),
                an interpreter (`ShapeTracker(Fuse(Numpy()))`), or None for what TENSORKEN_BACKEND says now.
            device: a device of the backend, by name or number.

        Raises:
            UnknownBackendError: if no backend of that name is installed.
            BackendError: if the backend cannot be loaded, or has no such device.
            ArgumentError: if `choice` is of another kind.

        >>> import tensorken as tk
        >>> with tk.use_backend("numpy") as choice:
        ...     print(choice, tk.tensor([1.0]).backend)
        numpy (use_backend('numpy')) numpy
        """
        with self._lock:
            former = self._process
            if _is_unset(choice):
                text = _ENVIRONMENT.get(_KEY)
                chosen = self._choose(*self._asked(), device)
                self._ambient, self._ambient_text, self._process = chosen, text, None
            else:
                chosen = self._process = self._choose(choice, f"use_backend({_shown(choice)})", device)
            return Use(self, chosen, former, self._process)

    def confine(self, choice: Choice, former: Choice | None, now: Choice | None) -> None:
        """Let a choice that was made for the process hold in this context alone.

        Between the call of `use_backend` and this one, other threads see the choice for an instant.
        """
        with self._lock:
            if self._process is now:
                self._process = former
        self._inside.set((*self._inside.get(), choice))

    def leave(self, choice: Choice) -> None:
        """Take back a choice from this context, even below later ones (generators do that)."""
        stack = self._inside.get()
        for i in reversed(range(len(stack))):
            if stack[i] is choice:
                self._inside.set(stack[:i] + stack[i + 1 :])
                break

    def default_backend(self) -> Choice:
        """The backend that is used where no `backend=` says otherwise, and why; it is not loaded for that.

        Raises:
            BackendError: if there is none, or what was chosen cannot be used.

        >>> import tensorken as tk
        >>> tk.default_backend().name
        'numpy'
        """
        stack = self._inside.get()
        chosen = stack[-1] if stack else self._process or self._ambient
        return chosen or self._foreseen(*self._asked())

    def devices(self, backend: str | None = None) -> list[str]:
        """The names of the devices of a backend (None: the one in use), the default first.

        Raises:
            BackendError: if the backend cannot be loaded.

        >>> import tensorken as tk
        >>> tk.devices("numpy")
        ['cpu']
        """
        chosen = self.current() if backend is None else self._choose(backend, f"devices({backend!r})", None)
        return list(self.registry.devices(chosen.record)) if chosen.record else [chosen.device or "default"]

    # ---- the way of every creation -------------------------------------------------------------------------

    def resolve(self, backend: Any = None, device: str | int | None = None) -> Any:
        """The interpreter that `backend=` and `device=` mean, or the choice in force without them."""
        if backend is None and device is None:
            stack = self._inside.get()
            if stack:
                return stack[-1].interpreter
            chosen = self._process
            if chosen is None:
                chosen = self._ambient
                if chosen is None or _ENVIRONMENT.get(_KEY) != self._ambient_text:
                    chosen = self.current()
            return chosen.interpreter
        if isinstance(backend, str):
            chosen = self._found.get((backend, device))
            if chosen is not None and chosen.installed:
                return chosen.interpreter
        elif isinstance(backend, RawTensor) and device is None:
            return backend
        if not _is_unset(backend):
            return self._choose(backend, f"backend={_shown(backend)}", device).interpreter
        chosen = self.current()
        if device is None:
            return chosen.interpreter
        if chosen.record is None:
            raise ArgumentError(f"device={device!r} needs a backend chosen by name; in use is {chosen}")
        return self.registry.load(chosen.record, str(device))

    def current(self) -> Choice:
        """The choice in force; it is loaded if need be, and the environment is read at the first time."""
        stack = self._inside.get()
        if stack:
            return stack[-1]
        with self._lock:
            if self._process is not None:
                return self._process
            text = _ENVIRONMENT.get(_KEY)
            if self._ambient is None:
                self._warn_of_variables()
                self._ambient = self._choose(*self._asked(), None)
            elif text != self._ambient_text:
                self._warn_once(
                    "TENSORKEN_BACKEND",
                    f"TENSORKEN_BACKEND is now {os.environ.get('TENSORKEN_BACKEND', '')!r}; in use is still "
                    f"{self._ambient}, and tensorken.use_backend(None) reads the variable again",
                )
            self._ambient_text = text
            return self._ambient

    def _asked(self) -> tuple[str, str]:
        """What the environment chooses, or else the fixed order; and why."""
        text = os.environ.get("TENSORKEN_BACKEND", "")
        if not _is_unset(text):
            return text, f"TENSORKEN_BACKEND={text!r}"
        for look in (self.registry.records, lambda group: self.registry.refresh()[group]):
            installed = {record.name for record in look("backends") if not record.shared}
            for name in DEFAULT_ORDER:
                if name in installed:
                    return name, f"the default: the first installed of {', '.join(DEFAULT_ORDER)}"
        others = ", ".join(sorted([f"{r.selector} ({r.distribution} {r.version})" for r in self.backends()]))
        raise UnknownBackendError(
            f"no backend was chosen, and none of {', '.join(DEFAULT_ORDER)} is installed; "
            + (f"choose by TENSORKEN_BACKEND or use_backend from {others}, or " if others else "")
            + "pip install tensorken-numpy"
        )

    # ---- from a choice to an interpreter -------------------------------------------------------------------

    def _choose(self, choice: Any, why: str, device: str | int | None) -> Choice:
        """Load what a choice of any form means; each result is a new object, known by its identity."""
        choice = getattr(choice, "selector", choice)  # of a PluginRecord
        if isinstance(choice, Choice):
            named = choice.record is not None or choice.interpreter is None
            device = choice.device if named and device is None else device
            choice = choice.name if named else choice.interpreter
        if not isinstance(choice, str):
            return self._given(choice, why, device)
        key = choice, device
        known = self._found.get(key)
        if known is not None and known.installed:
            return replace(known, why=why)
        device = None if device is None else str(device)
        names = [name.strip() for name in choice.split(",") if name.strip()]
        if len(names) > 1 and device is not None:
            raise ArgumentError(f"device={device!r} is for one backend; write {names[0]}:{device},{names[1]}")
        failures: list[BackendError] = []
        for name in names:
            try:
                chosen = replace(self._named(name, device), why=why)
            except BackendError as error:
                failures.append(error)
            else:
                self._found[key] = chosen
                if failures:
                    _warn(f"{why}: using {chosen.name}, since {'; '.join(map(_first_line, failures))}")
                return chosen
        if len(failures) == 1:
            raise type(failures[0])(f"{failures[0]}\n  chosen by {why}") from failures[0].__cause__
        lines = [f"none of the backends {', '.join(names)} can be used", *map(_first_line, failures[:5])]
        raise BackendError("\n  ".join([*lines, f"chosen by {why}"]))

    def _located(self, text: str, device: str | None) -> tuple[PluginRecord | None, str | None]:
        """The one record, and the device, that a name means; no record if it is to be a module."""
        before, _, after = (part.strip() for part in text.partition(":"))
        name, _, distribution = before.partition("@")
        found = self.registry.find("backends", name, distribution)
        known = distribution or normalized(name) in DISTRIBUTIONS
        if not found and after and not known and not after.isdecimal():
            return None, device
        if after and device is not None:
            raise BackendError(f"two devices for backend {name!r}: {after!r} and {device!r}")
        if not found:
            raise self._unknown(before)
        if len(found) > 1:
            ways = " or ".join(f"{record.selector} ({record.version})" for record in found)
            raise BackendError(f"backend {name!r} comes from {len(found)} distributions; choose {ways}")
        return found[0], after or device

    def _foreseen(self, text: str, why: str) -> Choice:
        """What `_choose` would find, as far as metadata tell."""
        failures: list[BackendError] = []
        for name in (name.strip() for name in text.split(",") if name.strip()):
            try:
                record, device = self._located(name, None)
            except BackendError as error:
                failures.append(error)
                continue
            if record is None or record.status in ("available", "clash"):
                return Choice(record.selector if record else name, device, why, record=record)
            failures.append(BackendError(f"backend {record} is {record.status}: {record.reason}"))
        raise type(failures[0])(f"{failures[0]}\n  chosen by {why}")

    def _named(self, text: str, device: str | None) -> Choice:
        record, device = self._located(text, device)
        if record is not None:
            interpreter: Any = self.registry.load(record, device)
        else:
            interpreter = self.registry.load_attribute(text, device)
            if interpreter is None:
                raise self._unknown(text)
        return Choice(*self.name_of(interpreter), "", interpreter, record)

    def _given(self, interpreter: Any, why: str, device: str | int | None) -> Choice:
        if not isinstance(interpreter, RawTensor):
            raise ArgumentError(
                f"{why}: a backend is chosen by name or by an interpreter, not a {type(interpreter).__name__}"
                + (f"; make one: {interpreter.__name__}()" if isinstance(interpreter, type) else "")
            )
        if device is not None:
            raise ArgumentError(f"{why}: device={device!r} is for backends chosen by name")
        return Choice(*self.name_of(interpreter), why, interpreter)

    # ---- messages ------------------------------------------------------------------------------------------

    def _unknown(self, text: str) -> UnknownBackendError:
        """What to tell about a name that nothing bears: seven lines at most; a last one says who chose it."""
        records = self.backends()
        name = normalized(text.partition("@")[0].partition(":")[0])
        usable = [record for record in records if record.status in ("available", "clash")]
        likely = close_matches(name, {*(record.name for record in records), *DISTRIBUTIONS})
        missing = DISTRIBUTIONS.keys() - {record.name for record in records if not record.shared}
        install = " ".join(DISTRIBUTIONS[candidate] for candidate in likely if candidate in missing)
        if self.registry.was_loaded(name):
            first = f"backend {text!r} is no longer installed; tensors made with it keep working"
        else:
            first = f"unknown backend {text!r}"
        lines = {
            "did you mean": " or ".join(n for n in likely if n != name),
            "installed": _few([f"{r.selector} ({r.distribution} {r.version})" for r in usable]) or "none",
            "broken": _few([f"{r}: {r.reason}" for r in records if r not in usable]),
            "to install": f"pip install {install}" if install else "",
            "to see more": "tensorken backends",
        }
        return UnknownBackendError("\n  ".join([first, *(f"{k}: {v}" for k, v in lines.items() if v)]))

    def unknown_variables(self) -> dict[str, list[str]]:
        """The variables TENSORKEN_... that nobody reads, each with the names it may be a misspelling of.

        A variable that begins with the name of a plugin (TENSORKEN_WGPU_...) is that plugin's.
        """
        groups: tuple[Group, ...] = ("backends", "plugins", "commands")
        names = [record.name for group in groups for record in self.registry.records(group)]
        known = [variable.removeprefix(PREFIX) for variable in VARIABLES]
        owned = tuple(f"{PREFIX}{name.upper().replace('-', '_')}_" for name in {*names, *DISTRIBUTIONS})
        return {
            variable: [PREFIX + name for name in close_matches(variable.removeprefix(PREFIX), known)]
            for variable in sorted(os.environ)
            if variable.startswith(PREFIX) and variable not in VARIABLES and not variable.startswith(owned)
        }

    def _warn_of_variables(self) -> None:
        for variable, likely in self.unknown_variables().items():
            meant = suggested(likely) or f"; known are {', '.join(VARIABLES)}"
            self._warn_once(variable, f"Tensorken reads no variable {variable}{meant}")

    def _warn_once(self, subject: str, message: str) -> None:
        if subject not in self._warned:
            self._warned.add(subject)
            _warn(message)


def _is_unset(choice: Any) -> bool:
    return choice is None or (isinstance(choice, str) and not choice.strip(" ,\t"))


def _shown(choice: Any) -> str:
    return repr(choice) if isinstance(choice, str) else type(choice).__name__


def _first_line(error: BackendError) -> str:
    return str(error).splitlines()[0]


def _few(items: list[str]) -> str:
    more = f"; {len(items) - 6} more" if len(items) > 6 else ""
    return "; ".join(item if len(item) < 160 else f"{item[:160]} ..." for item in items[:6]) + more


def _warn(message: str) -> None:
    """Warn at the line of the user's that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in OWN_PACKAGES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RuntimeWarning, stacklevel=level)
