"""The choice of a backend: by an argument, `use_backend`, the variable TENSORKEN_BACKEND, or the default.

The first of these that is present decides: an argument, `with use_backend` (for the block), a plain `use_backend`
(for the process), TENSORKEN_BACKEND, the default: numpy if it is installed, else the next in a fixed order.
The names in that order mean our own distributions, so installing a plugin never changes the backend of a program.

A choice is the name of an installed backend (`wgpu`; `wgpu:1` names a device, `wgpu@acme-wgpu` a
distribution), several in the order of preference (`wgpu,numpy`), `module:attribute` for a backend that is not
installed, or an interpreter.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from tensorken_core.errors import ArgumentError, BackendError, UnknownBackendError
from tensorken_core.host.discovery import OURS, Group, PluginRecord, close_matches, normalized, suggested
from tensorken_core.host.loading import Registry
from tensorken_core.language.raw import RawTensor
from tensorken_core.text import printable, quoted

DISTRIBUTIONS = OURS["backends"]
"""The distributions of our own backends; these names alone select no other distribution's backend."""

DEFAULT_ORDER = tuple(DISTRIBUTIONS)
"""The default backend is the first of these that is installed from our own distribution."""

OWN_PACKAGES = frozenset({"tensorken", "tensorken_core"})
"""A warning skips the frames of these packages."""

PREFIX = "TENSORKEN_"
VARIABLES = {
    "TENSORKEN_BACKEND": "the backend to use where the program does not choose one",
    "TENSORKEN_COMPILERS": "the compiler plugins to use, in order; none: no plugin",
    "TENSORKEN_DEBUG_NANS": "1: raise an error at the op that makes a NaN",
    "TENSORKEN_TRACE_PLUGINS": "1: log the plugin host to stderr, and show tracebacks",
}
"""The environment variables that Tensorken reads."""


def _reader_of(variable: str) -> Callable[[], Any]:
    """A function that reads an environment variable, as str or bytes; None if it is not set.

    Each creation of a tensor checks whether the variable has changed.  `os.environ.get` takes 0.7 microseconds; a read
    of its dictionary takes 0.02.
    """
    values: Any = getattr(os.environ, "_data", os.environ)
    key: Any = variable if values is os.environ else os.environ.encodekey(variable)
    return functools.partial(values.get, key)


_read_variable = _reader_of("TENSORKEN_BACKEND")


@dataclass(frozen=True, slots=True, eq=False)
class BackendChoice:
    """The backend that is used, and why."""

    name: str  # as the user writes it: "numpy", "wgpu@acme-wgpu", "module:attribute"
    device: str | None
    why: str
    interpreter: Any = field(default=None, repr=False)  # None: not loaded yet
    record: PluginRecord | None = field(default=None, repr=False)  # None: not an installed backend

    @property
    def installed(self) -> bool:
        """Whether its plugin, if it has one, is still installed."""
        return self.record is None or self.record.installed

    def __str__(self) -> str:
        device = "" if self.device in (None, "cpu", "default") else f":{self.device}"
        return f"{self.name}{device} ({self.why})"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class BackendContext:
    """The result of `use_backend`: a context manager that confines the choice to a block."""

    choice: BackendChoice
    selection: Selection
    before: BackendChoice | None  # the choice of the process before and after the call
    after: BackendChoice | None

    def __enter__(self) -> BackendChoice:
        self.selection.enter(self)
        return self.choice

    def __exit__(self, *error: object) -> None:
        self.selection.exit(self.choice)

    def __repr__(self) -> str:
        return f"<using {self.choice}>"


class Selection:
    """The choices of backends from a registry: of the contexts, of the process, and the default."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.name_of = registry.name_of
        self._contexts: ContextVar[tuple[BackendChoice, ...]] = ContextVar("tensorken_backends", default=())
        self._process: BackendChoice | None = None
        self._default: BackendChoice | None = None  # from the variable, or the default ...
        self._default_text: Any = None  # ... and the variable as it was then
        self._warned: set[str] = set()
        self._cache: dict[tuple[Any, Any], BackendChoice] = {}  # by the text of the choice, and the device
        self._lock = registry.lock

    def backends(self) -> list[PluginRecord]:
        """The installed backends, as their metadata describes them; none is imported.

        >>> import tensorken as tk
        >>> [record.status for record in tk.backends() if record.name == "numpy"]
        ['available']
        """
        return self.registry.records("backends")

    def named(self, text: str) -> list[PluginRecord]:
        """The installed backends that a name, or `name@distribution`, stands for: several if it is ambiguous.

        Raises:
            UnknownBackendError: if there is none.
        """
        name, _, distribution = text.partition("@")
        found = self.registry.find("backends", name, distribution)
        if not found:
            raise self._unknown(text)
        return found

    def use_backend(self, choice: Any, device: str | int | None = None) -> BackendContext:
        """Choose the backend on which tensors are created where no `backend=` is given.

        A plain call chooses for the process; `with use_backend(...)` for the block, in this thread or task
        alone.  Existing tensors do not move.

        Args:
            choice: a name (`"wgpu"`, `"wgpu:1"`, `"wgpu@acme-wgpu"`, `"wgpu,numpy"`, `"module:attribute"`),
                an interpreter (`ShapeTracker(Fuse(Numpy()))`), or None for the present value of TENSORKEN_BACKEND.
            device: a device of the backend, by name or number.

        Raises:
            UnknownBackendError: if no backend of that name is installed.
            BackendError: if the backend cannot be loaded, or has no such device.
            ArgumentError: if `choice` has another type.

        >>> import tensorken as tk
        >>> with tk.use_backend("numpy") as choice:
        ...     print(choice, tk.tensor([1.0]).backend)
        numpy (use_backend('numpy')) numpy
        """
        with self._lock:
            before = self._process
            if _is_unset(choice):
                text = _read_variable()
                chosen = self._choose(*self._from_environment(), device)
                self._default, self._default_text, self._process = chosen, text, None
            else:
                chosen = self._process = self._choose(choice, f"use_backend({_text_of(choice)})", device)
            return BackendContext(chosen, self, before, self._process)

    def enter(self, context: BackendContext) -> None:
        """Confine a choice that was made for the process to this context.

        Between the calls of `use_backend` and of this method, other threads briefly see the choice.
        """
        with self._lock:
            if self._process is context.after:
                self._process = context.before
        self._contexts.set((*self._contexts.get(), context.choice))

    def exit(self, choice: BackendChoice) -> None:
        """Remove a choice from this context; a generator may remove one that is not the last."""
        stack = self._contexts.get()
        for i in reversed(range(len(stack))):
            if stack[i] is choice:
                self._contexts.set(stack[:i] + stack[i + 1 :])
                break

    def default_backend(self) -> BackendChoice:
        """The backend that is used where no `backend=` is given, and why; this does not load it.

        Raises:
            BackendError: if there is no backend, or the chosen backend cannot be used.

        >>> import tensorken as tk
        >>> tk.default_backend().name
        'numpy'
        """
        stack = self._contexts.get()
        chosen = stack[-1] if stack else self._process or self._default
        return chosen or self._predict(*self._from_environment())

    def devices(self, backend: str | None = None) -> list[str]:
        """The names of the devices of a backend (None: the backend in use), the default first.

        Raises:
            BackendError: if the backend cannot be loaded.

        >>> import tensorken as tk
        >>> tk.devices("numpy")
        ['cpu']
        """
        chosen = (
            self.current()
            if backend is None
            else self._choose(backend, f"devices({_text_of(backend)})", None)
        )
        return list(self.registry.devices(chosen.record)) if chosen.record else [chosen.device or "default"]

    # ---- from arguments to an interpreter; called by each creation of a tensor -------------------------------

    def resolve(self, backend: Any = None, device: str | int | None = None) -> Any:
        """The interpreter for `backend=` and `device=`; without them, the interpreter of the present choice."""
        if backend is None and device is None:
            stack = self._contexts.get()
            if stack:
                return stack[-1].interpreter
            chosen = self._process
            if chosen is None:
                chosen = self._default
                if chosen is None or _read_variable() != self._default_text:
                    chosen = self.current()
            return chosen.interpreter
        if isinstance(backend, str):
            chosen = self._cache.get((backend, device))
            if chosen is not None and chosen.installed:
                return chosen.interpreter
        elif isinstance(backend, RawTensor) and device is None:
            return backend
        if not _is_unset(backend):
            return self._choose(backend, f"backend={_text_of(backend)}", device).interpreter
        chosen = self.current()
        if device is None:
            return chosen.interpreter
        if chosen.record is None:
            raise ArgumentError(f"device={device!r} needs a backend chosen by name, got {chosen}")
        return self.registry.load(chosen.record, str(device))

    def current(self) -> BackendChoice:
        """The present choice, loaded; the first call reads the environment."""
        stack = self._contexts.get()
        if stack:
            return stack[-1]
        with self._lock:
            if self._process is not None:
                return self._process
            text = _read_variable()
            if self._default is None:
                self._warn_of_variables()
                self._default = self._choose(*self._from_environment(), None)
            elif text != self._default_text:
                self._warn_once(
                    "TENSORKEN_BACKEND",
                    f"TENSORKEN_BACKEND is now {quoted(os.environ.get('TENSORKEN_BACKEND', ''))}; in use is still "
                    f"{self._default}, and tensorken.use_backend(None) reads the variable again",
                )
            self._default_text = text
            return self._default

    def _from_environment(self) -> tuple[str, str]:
        """The choice of the environment, else the default; and the reason."""
        text = os.environ.get("TENSORKEN_BACKEND", "")
        if not _is_unset(text):
            return text, f"TENSORKEN_BACKEND={quoted(text)}"
        for records_of in (self.registry.records, lambda group: self.registry.refresh()[group]):
            installed = {record.name for record in records_of("backends") if not record.shared}
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

    def _choose(self, choice: Any, why: str, device: str | int | None) -> BackendChoice:
        """Load the backend of a choice in any form; each result is a new object, compared by identity."""
        choice = getattr(choice, "selector", choice)  # of a PluginRecord
        if isinstance(choice, BackendChoice):
            named = choice.record is not None or choice.interpreter is None
            device = choice.device if named and device is None else device
            choice = choice.name if named else choice.interpreter
        if not isinstance(choice, str):
            return self._from_interpreter(choice, why, device)
        key = choice, device
        cached = self._cache.get(key)
        if cached is not None and cached.installed:
            return replace(cached, why=why)
        device = None if device is None else str(device)
        names = _names_in(choice)
        if len(names) > 1 and device is not None:
            raise ArgumentError(f"device={device!r} is for one backend; write {names[0]}:{device},{names[1]}")
        chosen = self._cache[key] = self._first_usable(names, why, lambda name: self._load(name, device, why))
        return chosen

    def _predict(self, text: str, why: str) -> BackendChoice:
        """The result of `_choose`, as far as metadata tell."""

        def predicted(name: str) -> BackendChoice:
            record, device = self._find(name, None)
            if record is None or record.status in ("available", "clash"):
                return BackendChoice(record.selector if record else name, device, why, record=record)
            raise BackendError(f"backend {record} is {record.status}: {record.reason}")

        return self._first_usable(_names_in(text), why, predicted, warn=False)

    def _first_usable(
        self, names: list[str], why: str, choose: Callable[[str], BackendChoice], warn: bool = True
    ) -> BackendChoice:
        """The first of these backends that can be used; a warning names the backends that cannot."""
        failures: list[BackendError] = []
        for name in names:
            try:
                chosen = choose(name)
            except BackendError as error:
                failures.append(error)
            else:
                if failures and warn:
                    warn_user(f"{why}: using {chosen.name}, since {'; '.join(map(_first_line, failures))}")
                return chosen
        if len(failures) == 1:
            raise type(failures[0])(f"{failures[0]}\n  chosen by {why}") from failures[0].__cause__
        lines = [f"none of the backends {', '.join(names)} can be used", *map(_first_line, failures[:5])]
        raise BackendError("\n  ".join([*lines, f"chosen by {why}"]))

    def _find(self, text: str, device: str | None) -> tuple[PluginRecord | None, str | None]:
        """The record and the device of a name; no record if the name can only be a module's."""
        before, _, after = (part.strip() for part in text.partition(":"))
        name, _, distribution = before.partition("@")
        matches = self.registry.find("backends", name, distribution)
        is_backend_name = distribution or normalized(name) in DISTRIBUTIONS
        if not matches and after and not is_backend_name and not after.isdecimal():
            return None, device
        if after and device is not None:
            raise BackendError(
                f"two devices for backend {quoted(name)}: {quoted(after)} and {quoted(device)}"
            )
        if not matches:
            raise self._unknown(before)
        if len(matches) > 1:
            selectors = " or ".join(f"{record.selector} ({record.version})" for record in matches)
            raise BackendError(
                f"backend {name!r} comes from {len(matches)} distributions; choose {selectors}"
            )
        return matches[0], after or device

    def _load(self, text: str, device: str | None, why: str) -> BackendChoice:
        record, device = self._find(text, device)
        interpreter: Any = (
            self.registry.load(record, device) if record else self.registry.load_attribute(text, device)
        )
        if interpreter is None:
            raise self._unknown(text)
        return BackendChoice(*self.name_of(interpreter), why, interpreter, record)

    def _from_interpreter(self, interpreter: Any, why: str, device: str | int | None) -> BackendChoice:
        if not isinstance(interpreter, RawTensor):
            raise ArgumentError(
                f"{why}: a backend is chosen by name or by an interpreter, not a {type(interpreter).__name__}"
                + (f"; make one: {interpreter.__name__}()" if isinstance(interpreter, type) else "")
            )
        if device is not None:
            raise ArgumentError(f"{why}: device={device!r} is for backends chosen by name")
        return BackendChoice(*self.name_of(interpreter), why, interpreter)

    # ---- messages ------------------------------------------------------------------------------------------

    def _unknown(self, text: str) -> UnknownBackendError:
        """The error for an unknown name, in at most seven lines; the caller adds the reason of the choice."""
        records = self.backends()
        name = normalized(text.partition("@")[0].partition(":")[0])
        usable = [record for record in records if record.status in ("available", "clash")]
        matches = close_matches(name, {*(record.name for record in records), *DISTRIBUTIONS})
        not_installed = DISTRIBUTIONS.keys() - {record.name for record in records if not record.shared}
        install = " ".join(DISTRIBUTIONS[candidate] for candidate in matches if candidate in not_installed)
        if self.registry.was_loaded(name):
            first = f"backend {quoted(text)} is no longer installed; tensors made with it keep working"
        else:
            first = f"unknown backend {quoted(text)}"
        lines = {
            "did you mean": " or ".join(n for n in matches if n != name),
            "installed": _few([f"{r.selector} ({r.distribution} {r.version})" for r in usable]) or "none",
            "broken": _few([f"{r}: {r.reason}" for r in records if r not in usable]),
            "to install": f"pip install {install}" if install else "",
            "to see more": "tensorken backends",
        }
        return UnknownBackendError("\n  ".join([first, *(f"{k}: {v}" for k, v in lines.items() if v)]))

    def unknown_variables(self) -> dict[str, list[str]]:
        """The variables TENSORKEN_... that nothing reads, each with known names of similar spelling.

        A variable that begins with the name of a plugin (TENSORKEN_WGPU_...) belongs to that plugin.
        """
        groups: tuple[Group, ...] = ("backends", "plugins", "commands")
        names = [record.name for group in groups for record in self.registry.records(group)]
        names_read = [variable.removeprefix(PREFIX) for variable in VARIABLES]
        owned = tuple(f"{PREFIX}{name.upper().replace('-', '_')}_" for name in {*names, *DISTRIBUTIONS})
        return {
            variable: [PREFIX + name for name in close_matches(variable.removeprefix(PREFIX), names_read)]
            for variable in sorted(os.environ)
            if variable.startswith(PREFIX) and variable not in VARIABLES and not variable.startswith(owned)
        }

    def _warn_of_variables(self) -> None:
        for variable, matches in self.unknown_variables().items():
            hint = suggested(matches) or f"; known are {', '.join(VARIABLES)}"
            self._warn_once(variable, f"Tensorken reads no variable {printable(variable, 60)}{hint}")

    def _warn_once(self, subject: str, message: str) -> None:
        if subject not in self._warned:
            self._warned.add(subject)
            warn_user(message)


def _names_in(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _is_unset(choice: Any) -> bool:
    return choice is None or (isinstance(choice, str) and not choice.strip(" ,\t"))


def _text_of(choice: Any) -> str:
    return quoted(choice) if isinstance(choice, str) else type(choice).__name__


def _first_line(error: BackendError) -> str:
    return str(error).splitlines()[0]


def _few(items: list[str]) -> str:
    more = f"; {len(items) - 6} more" if len(items) > 6 else ""
    return "; ".join(item if len(item) < 160 else f"{item[:160]} ..." for item in items[:6]) + more


def warn_user(message: str) -> None:
    """Warn at the line of the user's code."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in OWN_PACKAGES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RuntimeWarning, stacklevel=level)
