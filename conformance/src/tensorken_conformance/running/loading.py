"""Loading: from the name of a backend, and options for its factory, to a subject; and where the backend comes from."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorken_conformance.running.process import search_path
from tensorken_conformance.subject import Depth, Subject
from tensorken_core.errors import BackendError, UnknownBackendError
from tensorken_core.host.loading import attribute_of, devices_of, interpreter_of, pick_device
from tensorken_core.host.plugin import BackendEntry
from tensorken_core.host.registry import REGISTRY, SELECTION
from tensorken_core.language.raw import RawTensor

if TYPE_CHECKING:
    from tensorken_core.host.discovery import PluginRecord


class OptionsError(BackendError):
    """What makes the backend does not take these options."""


def load(
    name: str, options: Mapping[str, Any] | None = None, seed: int = 0, depth: Depth = "default"
) -> Subject:
    """The backend of a name, to be examined.

    Args:
        name: anything that the host accepts; modules are looked for in the current folder, too.
        options: `device`, and keyword arguments for what makes the backend: the `load` of its BackendEntry, or the
            class or function that `module:attribute` leads to.
        seed: of all numbers that are drawn.
        depth: how many cases there are.

    Raises:
        UnknownBackendError: if there is no such backend.
        OptionsError: if what makes it takes no such options.
        BackendError: if it cannot be loaded.

    >>> load("tensorken_numpy.backend:Numpy").name
    'tensorken_numpy.backend:Numpy'
    """
    sys.path[:] = search_path(name)
    given = dict(options or {})
    device = given.pop("device", None)
    interpreter = _made(name, device, given) if given else SELECTION.resolve(name, device)
    return Subject(interpreter, name, seed, depth)


def record_of(name: str) -> PluginRecord | None:
    """The plugin that a name means; None if it means none, or several, or is `module:attribute`."""
    name, _, distribution = name.partition(":")[0].strip().partition("@")
    found = REGISTRY.find("backends", name, distribution)
    return found[0] if len(found) == 1 else None


def origin(subject: Subject, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Where a backend comes from and what it says of itself, for the report.

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
        "notes": REGISTRY.report_header(),
    }


def _attribute(name: str) -> Any:
    """What `module:attribute` leads to."""
    module, _, attribute = (part.strip() for part in name.partition(":"))
    if not attribute:
        SELECTION.resolve(name)  # which tells what there is instead
    try:
        return attribute_of(importlib.import_module(module), attribute, name)
    except ImportError as error:
        raise UnknownBackendError(f"unknown backend {name!r}: {error}") from error


def _check_options(name: str, make: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise OptionsError if what makes a backend does not take these options, as far as its signature tells."""
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
    """A backend that is made with options, and is wrapped as the host would."""
    record = record_of(name)
    after = name.partition(":")[2].strip()
    try:
        if record is not None:
            entry = REGISTRY.entry(record)
            _check_options(name, entry.load, options)
            entry = replace(entry, load=partial(entry.load, **options))
            return interpreter_of(entry, pick_device(devices_of(entry), device or after or None, name))
        target = _attribute(name)
        if isinstance(target, BackendEntry):
            _check_options(name, target.load, options)
            entry = replace(target, load=partial(target.load, **options))
            return interpreter_of(entry, pick_device(devices_of(entry), device, name))
        _check_options(name, target, options if device is None else {"device": device, **options})
        made = target(**options) if device is None else target(device=device, **options)
    except TypeError as error:
        raise BackendError(f"backend {name!r} cannot be made with {', '.join(options)}: {error}") from error
    if isinstance(made, BackendEntry):
        return interpreter_of(made, pick_device(devices_of(made), device, name))
    if not isinstance(made, RawTensor):
        raise BackendError(
            f"backend {name!r}: it makes {made!r}, which is neither an interpreter (a RawTensor) nor a BackendEntry"
        )
    return made
