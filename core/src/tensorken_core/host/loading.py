"""Loading of plugins: a plugin is imported at its first use, and a failure is noted in its record."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

import pluggy

from tensorken_core.errors import BackendError, UnknownBackendError
from tensorken_core.host import plugin as hooks
from tensorken_core.host.discovery import (
    CORE,
    OURS,
    Group,
    IncompatibleError,
    Installation,
    PluginError,
    PluginRecord,
    describe,
    did_you_mean,
    hint,
    normalized,
    timed,
    trace_enabled,
)
from tensorken_core.host.load_monitor import monitored, write_message
from tensorken_core.host.plugin import SPEC_VERSION, BackendEntry
from tensorken_core.host.versions import place_in_range
from tensorken_core.language.op import OPS, Op, register
from tensorken_core.language.raw import RawTensor
from tensorken_core.text import printable, quoted

T = TypeVar("T")


class Registry(Installation):
    """The installed plugins, and those of them that are loaded.

    Args:
        path: the folders to look in; None for `sys.path`.
    """

    def __init__(self, path: list[str] | None = None) -> None:
        super().__init__(path)
        self._entries: dict[tuple[str, str], BackendEntry] = {}
        self._devices: dict[tuple[str, str], tuple[str, ...]] = {}
        self._interpreters: dict[tuple[str, str, str], RawTensor[Any]] = {}
        self._attributes: dict[tuple[str, str | None], RawTensor[Any]] = {}
        self._names: dict[int, tuple[Any, str, str]] = {}
        self.plugins = pluggy.PluginManager("tensorken")
        """The plugins that are loaded."""
        self.plugins.add_hookspecs(hooks)
        self.hook = self.plugins.hook
        """The hooks of the loaded plugins."""
        if trace_enabled():
            self.plugins.trace.root.setwriter(lambda line: write_message(line.removesuffix("\n")))
            self.plugins.enable_tracing()

    # ---- loading of one plugin ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def _guarded(self, record: PluginRecord) -> Iterator[None]:
        """Turn any exception of a plugin into a BackendError that names the plugin and the remedy."""
        what = "name" if record.group == "namespace" else record.group[:-1]
        plugin = f"{what} {record.name!r} of {record.distribution} {record.version}"
        if record.entry_point is None or record.status == "incompatible":
            raise BackendError(f"{plugin} cannot be loaded: {record.reason}")
        if record.status == "broken":
            importlib.invalidate_caches()  # the user may have repaired the plugin
        ours = OURS[record.group].get(record.name) == normalized(record.distribution)
        try:
            with timed(f"loaded {plugin}", f"loading {plugin}"), nullcontext() if ours else monitored(plugin):
                yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001, a plugin may raise anything
            reason = "; ".join(filter(None, (describe(error), hint(error, record))))
            self.mark(record, "incompatible" if isinstance(error, IncompatibleError) else "broken", reason)
            # contextlib would mistake a RuntimeError with a StopIteration as its cause for that StopIteration.
            cause = PluginError("StopIteration") if isinstance(error, StopIteration) else error
            raise BackendError(f"{plugin} cannot be loaded: {reason}") from cause
        self.unmark(record)

    def _attempt(self, record: PluginRecord, load: Callable[[PluginRecord], object]) -> None:
        """Load a plugin that was not selected: a failure is only noted."""
        try:
            load(record)
        except BackendError as error:
            if self.current(record).status in ("available", "clash"):  # it loads, but finds no device
                self.mark(record, "unavailable", str(error))

    def _register(self, record: PluginRecord, examine: Callable[[Any], T]) -> T:
        """Import a plugin, register it with pluggy, examine it, and add its ops; if a step fails, undo all steps."""
        plugin = _imported(record)
        registered = self.plugins.is_registered(plugin)  # as a plugin of another group
        try:
            if not registered:
                self.plugins.register(plugin, f"{record.group}:{record.name}@{record.distribution}")
                self._check_hooks(plugin)
            result = examine(plugin)
            if not registered:
                self._add_ops(plugin)
        except BaseException:
            if not registered and self.plugins.is_registered(plugin):
                self.plugins.unregister(plugin)
            raise
        return result

    def _check_hooks(self, plugin: Any) -> None:
        callers = self.plugins.get_hookcallers(plugin) or []
        known = [name for name in vars(hooks) if name.startswith("tensorken_")]
        for caller in callers:
            if not caller.has_spec():
                raise PluginError(f"there is no hook {caller.name!r}{did_you_mean(caller.name, known)}")
        if not callers:
            raise PluginError(f"it has no function that is marked @hookimpl and named {' or '.join(known)}")

    def _call_hook(self, plugin: Any, hook: str) -> list[Any]:
        """The results of a hook from only this plugin, so that faults of other plugins have no effect."""
        return [h.function() for h in getattr(self.hook, hook).get_hookimpls() if h.plugin is plugin]

    def _add_ops(self, plugin: Any) -> None:
        added: list[str] = []
        try:
            for op in [op for ops in self._call_hook(plugin, "tensorken_ops") for op in ops]:
                if not isinstance(op, Op):
                    raise PluginError(f"its tensorken_ops() returns {op!r}, which is not an Op")
                if not str(op.name).isprintable():
                    raise PluginError(f"the name of its op must be a printable text, got {quoted(op.name)}")
                if OPS.get(op.name) is not op:
                    register(op)
                    added.append(op.name)
        except BaseException:
            for name in added:
                del OPS[name]
            raise

    def entry(self, record: PluginRecord) -> BackendEntry:
        """The BackendEntry of a backend; this imports the plugin's small module, not the modules that `load` imports.

        Raises:
            BackendError: if the plugin is incompatible or broken.
        """
        with self.lock:
            if record.key not in self._entries:
                with self._guarded(record):
                    self._entries[record.key] = self._register(record, lambda p: self._described(p, record))
            return self._entries[record.key]

    def _described(self, plugin: Any, record: PluginRecord) -> BackendEntry:
        entries = self._call_hook(plugin, "tensorken_backend")
        if len(entries) != 1 or not isinstance(entries[0], BackendEntry):
            raise PluginError(f"its tensorken_backend() must return one BackendEntry, got {entries!r}")
        entry: BackendEntry = entries[0]
        if normalized(entry.name) != record.name:
            raise PluginError(
                f"its entry point is named {record.name!r}, but its BackendEntry is named {entry.name!r}"
            )
        check_language(entry, record.distribution)
        return entry

    def devices(self, record: PluginRecord) -> tuple[str, ...]:
        """The names of a backend's devices, the default first.

        Raises:
            BackendError: if the plugin is incompatible or broken.
        """
        entry = self.entry(record)
        with self.lock:
            if not self._devices.get(record.key):
                with self._guarded(record):
                    self._devices[record.key] = devices_of(entry)
            return self._devices[record.key]

    def facts(self, record: PluginRecord, device: str) -> dict[str, str]:
        """Properties of a device, such as its driver, as the backend reports them; empty if it reports none.

        Raises:
            BackendError: if the plugin is incompatible or broken.
        """
        facts = self.entry(record).facts
        with self.lock, self._guarded(record):
            return {str(k): str(v) for k, v in facts(device).items()} if facts is not None else {}

    def load(self, record: PluginRecord, device: str | None = None) -> RawTensor[Any]:
        """The interpreter of a backend on a device (None: its default), the same one at each call.

        Raises:
            BackendError: if the backend is incompatible or broken, or has no such device.
        """
        with self.lock:
            entry = self.entry(record)
            name = pick_device(self.devices(record), device, record.selector)
            key = *record.key, name
            if key not in self._interpreters:
                with self._guarded(record):
                    interpreter = interpreter_of(entry, name)
                self._interpreters[key] = interpreter
                self.remember(interpreter, record.selector, name)
            return self._interpreters[key]

    def probe(self, record: PluginRecord) -> PluginRecord:
        """Try to load a plugin (a backend on its default device); return its new record."""
        if record.group != "namespace" or record.status != "clash":  # a clashing name selects nothing
            loaders: dict[Group, Callable[[PluginRecord], object]]
            loaders = {"backends": self.load, "plugins": self._load_plugin}
            self._attempt(record, loaders.get(record.group, self.load_object))
        return self.current(record)

    def load_attribute(self, text: str, device: str | None) -> RawTensor[Any] | None:
        """The interpreter of `module:attribute`, the same one at each call; None if there is no such module.

        The attribute is an interpreter; a class or factory without arguments that makes an interpreter;
        or a BackendEntry, which is loaded as for an installed backend.

        Raises:
            UnknownBackendError: if the module has no such attribute.
            BackendError: if the module or the attribute fails, or has another type.
        """
        module, _, attribute = (part.strip() for part in text.partition(":"))
        if not all(part.isidentifier() for part in f"{module}.{attribute}".split(".")):
            return None
        key = f"{module}:{attribute}", device
        with self.lock:
            if key not in self._attributes:
                try:
                    with monitored(f"backend {quoted(text)}"):
                        target = attribute_of(importlib.import_module(module), attribute, text)
                        self._attributes[key], device_name = _interpreter_from(target, device, text)
                except (KeyboardInterrupt, UnknownBackendError):
                    raise
                except BaseException as error:
                    missing = error.name if isinstance(error, ModuleNotFoundError) else None
                    if missing and f"{module}.".startswith(f"{missing}."):
                        return None
                    raise BackendError(
                        f"backend {quoted(text)} cannot be loaded: {describe(error)}"
                    ) from error
                self.remember(self._attributes[key], key[0], device_name)
            return self._attributes[key]

    def was_loaded(self, name: str) -> bool:
        """Whether a backend of this name was loaded; it may have been uninstalled since."""
        return any(normalized(name) == key[0] for key in self._interpreters)

    def remember(self, interpreter: Any, selector: str, device: str) -> None:
        """Note the name and device by which an interpreter was selected."""
        self._names.setdefault(id(interpreter), (interpreter, selector, device))

    def name_of(self, interpreter: Any) -> tuple[str, str]:
        """The backend and device of an interpreter; without a name, its class in lower case."""
        named = self._names.get(id(interpreter))
        return named[1:] if named else (type(interpreter).__name__.lower(), "default")

    # ---- other plugins -------------------------------------------------------------------------------------

    def load_plugins(self) -> list[PluginRecord]:
        """Load the plugins of the group `tensorken.plugins`, and with them their ops; broken ones are skipped.

        Returns:
            Their records; `status` shows the broken ones.
        """
        with self.lock:
            for record in self.records("plugins"):
                self._attempt(record, self._load_plugin)
            return self.records("plugins")

    def _load_plugin(self, record: PluginRecord) -> None:
        with self._guarded(record):
            self._register(record, lambda plugin: None)

    def report_header(self, beginning: str = "") -> list[str]:
        """The lines of `tensorken_report_header` of loaded plugins: those whose `group:name@distribution` begins so."""
        lines: list[str] = []
        named = [pair for pair in self.plugins.list_name_plugin() if pair[0].startswith(beginning)]
        for name, plugin in sorted(named, key=lambda pair: pair[0]):
            try:
                for text in self._call_hook(plugin, "tensorken_report_header"):
                    texts = [text] if isinstance(text, str) else map(str, text)
                    lines += [printable(line, 500) for text in texts for line in text.splitlines()]
            except Exception as error:  # noqa: BLE001, the lines of other plugins must be kept
                lines.append(f"{name}: tensorken_report_header: {describe(error)}")
        return lines

    def load_object(self, record: PluginRecord) -> Any:
        """The object of a subcommand or of a name of the package `tensorken`.

        Raises:
            BackendError: if the plugin is incompatible or broken, or two plugins add the name.
        """
        if record.group == "namespace" and record.status == "clash":
            raise BackendError(record.reason)
        with self.lock, self._guarded(record):
            target = _imported(record)
            if record.group == "commands" and not callable(target):
                raise PluginError(f"its entry point names {target!r}, which is not a function")
        return target

    def loaded(self) -> list[RawTensor[Any]]:
        """The interpreters of the backends that are loaded."""
        return [*self._interpreters.values(), *self._attributes.values()]


# ---- from a BackendEntry to an interpreter -----------------------------------------------------------------


def _imported(record: PluginRecord) -> Any:
    assert record.entry_point is not None
    return record.entry_point.load()


def check_language(entry: BackendEntry, distribution: str) -> None:
    """Raise an IncompatibleError if a backend needs another version of the language."""
    position = place_in_range(SPEC_VERSION, entry.spec)
    if position != "inside":
        older = CORE if position == "below" else distribution
        raise IncompatibleError(
            f"it needs the language version {entry.spec}, but this core has {SPEC_VERSION}; pip install -U {older}"
        )


def devices_of(entry: BackendEntry) -> tuple[str, ...]:
    """The names of the devices, the default first."""
    if entry.devices is None:
        return ("cpu",)
    names = tuple(entry.devices() if callable(entry.devices) else entry.devices)
    texts: tuple[Any, ...] = names  # a plugin may give anything
    if not all([isinstance(name, str) and name.isprintable() for name in texts]):
        raise PluginError(
            f"the names of its devices must be printable texts, got {printable(repr(names), 80)}"
        )
    if len({name.strip().lower() for name in names}) < len(names):
        raise PluginError(f"the names of its devices are not unique: {', '.join(names)}")
    return names


def pick_device(names: Sequence[str], device: str | None, backend: str) -> str:
    """The name of the device with this name or number; None: the first device; `cuda` and `cuda:0` are the same.

    Raises:
        BackendError: if there is no such device.
    """
    if not names:
        raise BackendError(f"backend {backend!r} finds no device on this machine")
    if device is None:
        return names[0]
    key = device.strip().lower()
    for name in names:
        if name.strip().lower().removesuffix(":0") == key.removesuffix(":0"):
            return name
    if key.isdecimal() and int(key) < len(names):
        return names[int(key)]
    raise BackendError(
        f"backend {quoted(backend)} has no device {quoted(device)}; its devices are {', '.join(names)}"
    )


def interpreter_of(entry: BackendEntry, device: str) -> RawTensor[Any]:
    """The interpreter from a backend's `load` for a device."""
    interpreter = entry.load(None if entry.devices is None else device)
    if not isinstance(interpreter, RawTensor):
        raise PluginError(f"its load() returns {interpreter!r}, not an instance of RawTensor")
    return interpreter


def attribute_of(module: Any, attribute: str, text: str) -> Any:
    """The attribute of a module; the name may have dots.

    Raises:
        UnknownBackendError: if there is no such attribute; the message suggests similar names.
    """
    target = module
    for part in attribute.split("."):
        try:
            target = getattr(target, part)
        except AttributeError:
            owner = getattr(target, "__name__", repr(target))
            raise UnknownBackendError(
                f"unknown backend {quoted(text)}: {owner} has no attribute {quoted(part)}"
                f"{did_you_mean(part, dir(target))}"
            ) from None
    return target


def _interpreter_from(target: Any, device: str | None, text: str) -> tuple[RawTensor[Any], str]:
    """The interpreter from an attribute (an interpreter, a factory or a BackendEntry), and its device."""
    if callable(target) and not isinstance(target, RawTensor):
        target = target()
    if isinstance(target, BackendEntry):
        check_language(target, "its distribution")
        name = pick_device(devices_of(target), device, text)
        return interpreter_of(target, name), name
    if not isinstance(target, RawTensor):
        raise PluginError(
            f"it refers to {target!r}, which is neither an interpreter (a RawTensor) nor a BackendEntry"
        )
    if device is not None:
        raise PluginError("it is an interpreter, which has no devices to choose from")
    return target, "default"
