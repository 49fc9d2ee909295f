"""Loading: make a subject from the name of a backend and options of its factory; find the origin of a backend."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorken_conformance.subject import Depth, Subject
from tensorken_core.errors import BackendError, UnknownBackendError
from tensorken_core.host.loading import attribute_of, devices_of, interpreter_of, pick_device
from tensorken_core.host.plugin import BackendEntry
from tensorken_core.host.registry import REGISTRY, SELECTION
from tensorken_core.language.raw import RawTensor

if TYPE_CHECKING:
    from tensorken_core.host.discovery import PluginRecord


class OptionsError(BackendError):
    """The factory of the backend does not take these options, or there is no such compiler."""


def load(
    name: str, options: Mapping[str, Any] | None = None, seed: int = 0, depth: Depth = "default"
) -> Subject:
    """The subject for the name of a backend.

    Args:
        name: anything that the host accepts; modules are searched in the current folder, too.
        options: `device`, and keyword arguments of the factory: the `load` of the BackendEntry, or the class or
            function of `module:attribute`.
        seed: the seed of all random numbers.
        depth: `smoke`, `default` or `deep`.

    Raises:
        UnknownBackendError: if the backend is unknown.
        OptionsError: if its factory does not take the options, or TENSORKEN_COMPILERS names an unknown compiler.
        BackendError: if it cannot be loaded.

    >>> load("tensorken_numpy.backend:Numpy").name
    'tensorken_numpy.backend:Numpy'
    """
    from tensorken_conformance.programs.offers import installed

    sys.path[:] = search_path(name)
    try:
        installed()  # this loads the plugins, whose ops are in the table from now on
    except BackendError as error:
        raise OptionsError(str(error)) from None
    given = dict(options or {})
    device = given.pop("device", None)
    interpreter = _made(name, device, given) if given else SELECTION.resolve(name, device)
    return Subject(interpreter, name, seed, depth)


def search_path(backend: str) -> list[str]:
    """The module search path; for `module:attribute` with the current folder first, as with `python -m`."""
    here = str(Path.cwd())
    if ":" not in backend or sys.flags.safe_path or here in sys.path or "" in sys.path:
        return sys.path
    return [here, *sys.path]


def record_of(name: str) -> PluginRecord | None:
    """The plugin of a name; None if there is none or several, or the name is `module:attribute`."""
    name, _, distribution = name.partition(":")[0].strip().partition("@")
    found = REGISTRY.find("backends", name, distribution)
    return found[0] if len(found) == 1 else None


def origin(subject: Subject, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The origin of a backend, its device and its notes, for the report.

    >>> origin(load("numpy"))["interpreter"]
    'tensorken_numpy.backend.Numpy'
    """
    record, kind = record_of(subject.name), type(subject.backend)
    package = kind.__module__.partition(".")[0]
    version = str(getattr(sys.modules.get(package), "__version__", ""))
    device = (options or {}).get("device")
    if device is None and not options:
        device = REGISTRY.name_of(SELECTION.resolve(subject.name))[1]
    return {
        "interpreter": f"{kind.__module__}.{kind.__qualname__}",
        "stack": repr(subject.stack),
        "distribution": record.distribution if record else package,
        "version": record.version if record else version,
        "device": str(device or "default"),
        "notes": _notes(subject.name),
    }


def _notes(backend: str) -> list[str]:
    """The messages of the loaded backends, and of the compilers that compile programs for the one under test."""
    from tensorken_conformance.programs.offers import required

    beginnings = ["backends:", *[f"plugins:{name}@" for name in required(backend)]]
    return [line for beginning in beginnings for line in REGISTRY.report_header(beginning)]


def _attribute(name: str) -> Any:
    """The value of `module:attribute`."""
    module, _, attribute = (part.strip() for part in name.partition(":"))
    if not attribute:
        SELECTION.resolve(name)  # raises an error with the known backends
    try:
        return attribute_of(importlib.import_module(module), attribute, name)
    except ImportError as error:
        raise UnknownBackendError(f"unknown backend {name!r}: {error}") from error


def _check_options(name: str, make: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise OptionsError if a factory does not take these options, as far as its signature is known."""
    try:
        signature = inspect.signature(make)
    except (ValueError, TypeError):
        return
    try:
        signature.bind_partial(**options)
    except TypeError as error:
        taken = ", ".join(signature.parameters) or "none"
        raise OptionsError(
            f"backend {name!r} cannot be made with {', '.join(options)}: {error}; its options: {taken}"
        ) from None


def _made(name: str, device: str | None, options: dict[str, Any]) -> RawTensor[Any]:
    """A backend made with options, in the same wrapper as the host uses."""
    record = record_of(name)
    after = name.partition(":")[2].strip() if record is not None else ""

    def of(entry: BackendEntry) -> RawTensor[Any]:
        return interpreter_of(entry, pick_device(devices_of(entry), device or after or None, name))

    try:
        target = _attribute(name) if record is None else REGISTRY.entry(record)
        if isinstance(target, BackendEntry):
            _check_options(name, target.load, options)
            return of(replace(target, load=partial(target.load, **options)))
        given = options if device is None else {"device": device, **options}
        _check_options(name, target, given)
        made = target(**given)
    except TypeError as error:
        raise BackendError(f"backend {name!r} cannot be made with {', '.join(options)}: {error}") from error
    if isinstance(made, BackendEntry):
        return of(made)
    if not isinstance(made, RawTensor):
        raise BackendError(
            f"backend {name!r}: it makes {made!r}, which is neither an interpreter (a RawTensor) nor a BackendEntry"
        )
    return made
