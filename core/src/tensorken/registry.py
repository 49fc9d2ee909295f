"""The plugin host: which plugins are installed, read from metadata alone, and how one of them is loaded.

Nothing is imported before it is wanted.  A plugin that fails is a record with its reason, which matters only
to whoever selects it.  Which backend is meant when none is named is decided in selection.py.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import pluggy

from tensorken import plugin as hooks
from tensorken.errors import BackendError, TensorkenError
from tensorken.plugin import SPEC_VERSION, BackendEntry, place_in_range
from tensorken.selection import Selection, did_you_mean, normalized
from tensorken.spec.op import OPS, Op, register
from tensorken.spec.raw import RawTensor

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

T = TypeVar("T")
Group = Literal["backends", "plugins", "commands"]
Status = Literal["available", "broken", "incompatible", "clash"]

CORE = "tensorken-core"
_VALUE = re.compile(r"[\w.]+\s*(:\s*[\w.]+\s*)?(\[.*\]\s*)?")
_REQUIREMENT = re.compile(
    r"\s*(?P<name>[\w.-]+)\s*(\[[^\]]*\])?\s*(@[^;]*|\(?(?P<range>[^;)]*)\)?)\s*(;(?P<marker>.*))?"
)


@dataclass(frozen=True, slots=True)
class PluginRecord:
    """One entry point of one distribution, as its metadata describes it.

    `status` is "available" until something is known to be wrong: "broken", "incompatible" (it needs another
    version of the core) or "clash" (two distributions bring one name: `name@distribution` selects).  `reason`
    says what is wrong, and the way out.
    """

    name: str
    distribution: str
    version: str
    needs: str  # its range of versions of tensorken-core; empty if it states none
    status: Status = "available"
    reason: str = ""
    group: Group = field(default="backends", repr=False)
    shared: bool = field(default=False, repr=False)  # whether another distribution brings the name, too
    entry_point: EntryPoint | None = field(default=None, repr=False, compare=False)  # None: not loadable
    origin: str = field(default="", repr=False, compare=False)  # where its metadata lies, if in a folder

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from the others of its group."""
        return self.name, normalized(self.distribution)

    @property
    def selector(self) -> str:
        """What selects it: its name, or `name@distribution` where two distributions bring the name."""
        return f"{self.name}@{self.distribution}" if self.shared else self.name

    @property
    def installed(self) -> bool:
        """Whether its metadata still lies where it was found."""
        return not self.origin or os.path.exists(self.origin)  # noqa: PTH110, faster: every choice by name asks

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution} {self.version})"


class Registry:
    """The installed plugins, and those of them that are loaded.

    Args:
        path: the folders to look in; None for `sys.path`.
    """

    def __init__(self, path: list[str] | None = None) -> None:
        self.problems: list[str] = []
        """Distributions whose metadata could not be read."""
        self._search: dict[str, Any] = {} if path is None else {"path": path}
        self._records: dict[Group, list[PluginRecord]] | None = None
        self._entries: dict[tuple[str, str], BackendEntry] = {}
        self._devices: dict[tuple[str, str], tuple[str, ...]] = {}
        self._interpreters: dict[tuple[str, str, str], RawTensor[Any]] = {}
        self._attributes: dict[tuple[str, str | None], RawTensor[Any]] = {}
        self._verdicts: dict[tuple[Group, str, str, str], tuple[Status, str]] = {}
        self._names: dict[int, tuple[Any, str, str]] = {}
        self.lock = threading.RLock()
        """Held while something is loaded or chosen: one for both, as each may lead to the other."""
        self._plugins = pluggy.PluginManager("tensorken")
        self._plugins.add_hookspecs(hooks)
        self.hook = self._plugins.hook
        """The hooks of the plugins that are loaded."""
        if traced():
            self._plugins.trace.root.setwriter(lambda line: print(line, end="", file=sys.stderr))
            self._plugins.enable_tracing()

    # ---- discovery: metadata alone -------------------------------------------------------------------------

    def records(self, group: Group) -> list[PluginRecord]:
        """The installed plugins of a group, sorted by name and distribution; nothing is imported."""
        records = self._records
        return list((self.refresh() if records is None else records)[group])

    def refresh(self) -> dict[Group, list[PluginRecord]]:
        """Look again at what is installed; what is loaded stays loaded."""
        with self.lock, _timed("looked for plugins"):
            importlib.invalidate_caches()
            self.problems = []
            found: dict[Group, list[PluginRecord]] = {group: [] for group in get_args(Group)}
            core = core_version()
            for distribution in self._distributions():
                try:
                    for record in _read(distribution, core):
                        found[record.group].append(record)
                except Exception as error:  # noqa: BLE001, it must not hide the others
                    self._note(distribution, error)
            self._records = {group: _in_order(records) for group, records in found.items()}
            for (group, *wanted), verdict in self._verdicts.items():
                for record in self._records[group]:
                    if [*record.key, record.version] == wanted and record.status in ("available", "clash"):
                        self._mark(record, *verdict)
            return self._records

    def _distributions(self) -> Iterator[Distribution]:
        """The distributions with entry points for us; of two copies the first on the path, as for imports."""
        from importlib.metadata import distributions

        seen: set[str] = set()
        for candidate in distributions(**self._search):
            try:
                if "tensorken." not in (candidate.read_text("entry_points.txt") or ""):
                    continue
                name = candidate.metadata["Name"]
                if normalized(name) in seen:
                    continue
                seen.add(normalized(name))
                first = next(iter(distributions(name=name, **self._search)))
            except Exception as error:  # noqa: BLE001, as above
                self._note(candidate, error)
            else:
                yield first

    def _note(self, distribution: Distribution, error: BaseException) -> None:
        where = getattr(distribution, "_path", distribution)
        self.problems.append(f"the metadata in {where} cannot be read: {told(error)}")

    def find(self, group: Group, name: str, distribution: str = "") -> list[PluginRecord]:
        """The plugins that a name means; on a miss, the installation is read once more."""
        wanted, owner = normalized(name), normalized(distribution)

        def matches(records: Iterable[PluginRecord]) -> list[PluginRecord]:
            return [r for r in records if r.name == wanted and owner in ("", normalized(r.distribution))]

        found = matches(self.records(group))
        return found if found and all(r.installed for r in found) else matches(self.refresh()[group])

    def current(self, record: PluginRecord) -> PluginRecord:
        """The record as it is now; the same if it is no longer listed."""
        return next((r for r in self.records(record.group) if r.key == record.key), record)

    def _mark(self, record: PluginRecord, status: Status, reason: str) -> None:
        """Note what loading has shown; this holds until it is loaded again."""
        self._verdicts[record.group, *record.key, record.version] = status, reason
        if self._records is not None:
            self._records[record.group] = [
                replace(r, status=status, reason=reason) if r.key == record.key else r
                for r in self._records[record.group]
            ]

    # ---- loading: exactly the one that is wanted -----------------------------------------------------------

    @contextlib.contextmanager
    def _guarded(self, record: PluginRecord) -> Iterator[None]:
        """Turn whatever a plugin raises into a BackendError that names the plugin and the way out."""
        whose = f"{record.group[:-1]} {record.name!r} of {record.distribution} {record.version}"
        if record.entry_point is None or record.status == "incompatible":
            raise BackendError(f"{whose} cannot be loaded: {record.reason}")
        if record.status == "broken":
            importlib.invalidate_caches()  # the user may have mended it
        try:
            with _timed(f"loaded {whose}"):
                yield
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            reason = "; ".join(filter(None, (told(error), _way_out(error, record))))
            self._mark(record, "incompatible" if isinstance(error, _IncompatibleError) else "broken", reason)
            raise BackendError(f"{whose} cannot be loaded: {reason}") from error
        if self._verdicts.pop((record.group, *record.key, record.version), None):
            self.refresh()

    def _attempt(self, record: PluginRecord, load: Callable[[PluginRecord], object]) -> None:
        """Load what nobody has selected: a failure is noted and otherwise does not matter."""
        try:
            load(record)
        except BackendError as error:
            if self.current(record).status in ("available", "clash"):  # no device, say
                self._mark(record, "broken", str(error))
        except SystemExit as error:
            self._mark(record, "broken", f"it called sys.exit({error.code!r}); {_way_out(error, record)}")

    def _register(self, record: PluginRecord, examine: Callable[[Any], T]) -> T:
        """Import a plugin, hand it to pluggy, examine it, and add its ops to the table, or leave no trace."""
        plugin = _imported(record)
        former = self._plugins.is_registered(plugin)  # as a plugin of another group
        try:
            if not former:
                self._plugins.register(plugin, f"{record.group}:{record.name}@{record.distribution}")
                self._check_hooks(plugin)
            found = examine(plugin)
            if not former:
                self._add_ops(plugin)
        except BaseException:
            if not former and self._plugins.is_registered(plugin):
                self._plugins.unregister(plugin)
            raise
        return found

    def _check_hooks(self, plugin: Any) -> None:
        callers = self._plugins.get_hookcallers(plugin) or []
        known = [name for name in vars(hooks) if name.startswith("tensorken_")]
        for caller in callers:
            if not caller.has_spec():
                raise _PluginError(f"there is no hook {caller.name!r}{did_you_mean(caller.name, known)}")
        if not callers:
            raise _PluginError(
                f"it has no function with a name of {', '.join(known)} that is marked @hookimpl"
            )

    def _own(self, plugin: Any, hook: str) -> list[Any]:
        """What a hook gives as this plugin alone implements it, so that no other can spoil it."""
        return [h.function() for h in getattr(self.hook, hook).get_hookimpls() if h.plugin is plugin]

    def _add_ops(self, plugin: Any) -> None:
        added: list[str] = []
        try:
            for op in [op for ops in self._own(plugin, "tensorken_ops") for op in ops]:
                if not isinstance(op, Op):
                    raise _PluginError(f"its tensorken_ops() gives {op!r}, which is no Op")
                if OPS.get(op.name) is not op:
                    register(op)
                    added.append(op.name)
        except BaseException:
            for name in added:
                del OPS[name]
            raise

    def entry(self, record: PluginRecord) -> BackendEntry:
        """What a backend says of itself; this imports its small module, not what `load` imports.

        Raises:
            BackendError: if the plugin is incompatible or broken.
        """
        with self.lock:
            if record.key not in self._entries:
                with self._guarded(record):
                    self._entries[record.key] = self._register(record, lambda p: self._described(p, record))
            return self._entries[record.key]

    def _described(self, plugin: Any, record: PluginRecord) -> BackendEntry:
        entries = self._own(plugin, "tensorken_backend")
        if len(entries) != 1 or not isinstance(entries[0], BackendEntry):
            raise _PluginError(f"its tensorken_backend() must give one BackendEntry, not {entries!r}")
        entry: BackendEntry = entries[0]
        if normalized(entry.name) != record.name:
            raise _PluginError(f"its entry point is named {record.name!r}, its BackendEntry {entry.name!r}")
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
        """Try to load a backend on its default device; its record afterwards."""
        self._attempt(record, self.load)
        return self.current(record)

    def load_attribute(self, text: str, device: str | None) -> RawTensor[Any] | None:
        """The interpreter that `module:attribute` leads to, always the same; None without such a module.

        The attribute is an interpreter, used as it is; a class or factory without arguments that makes one;
        or a BackendEntry, treated as if it were installed.

        Raises:
            BackendError: if the module or the attribute fails, or is of another kind.
        """
        module, _, attribute = (part.strip() for part in text.partition(":"))
        if not all(part.isidentifier() for part in f"{module}.{attribute}".split(".")):
            return None
        key = f"{module}:{attribute}", device
        with self.lock:
            if key not in self._attributes:
                try:
                    target: Any = importlib.import_module(module)
                    for part in attribute.split("."):
                        target = getattr(target, part)
                    self._attributes[key], used = _made(target, device, text)
                except (KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as error:
                    missing = error.name if isinstance(error, ModuleNotFoundError) else None
                    if missing and f"{module}.".startswith(f"{missing}."):
                        return None
                    raise BackendError(f"backend {text!r} cannot be loaded: {told(error)}") from error
                self.remember(self._attributes[key], key[0], used)
            return self._attributes[key]

    def was_loaded(self, name: str) -> bool:
        """Whether a backend of this name was loaded, be it still installed or not."""
        return any(normalized(name) == key[0] for key in self._interpreters)

    def remember(self, interpreter: Any, selector: str, device: str) -> None:
        """Note under which name and on which device an interpreter was selected."""
        self._names.setdefault(id(interpreter), (interpreter, selector, device))

    def name_of(self, interpreter: Any) -> tuple[str, str]:
        """The backend and device of an interpreter; of one that nobody named, its class in lower case."""
        known = self._names.get(id(interpreter))
        return known[1:] if known else (type(interpreter).__name__.lower(), "default")

    # ---- plugins that are no backends ----------------------------------------------------------------------

    def load_plugins(self) -> list[PluginRecord]:
        """Load the plugins of the group `tensorken.plugins`, which brings their ops; broken ones stay behind.

        Returns:
            Their records, whose `status` tells the broken ones.
        """

        def load(record: PluginRecord) -> None:
            with self._guarded(record):
                self._register(record, lambda plugin: None)

        with self.lock:
            for record in self.records("plugins"):
                self._attempt(record, load)
            return self.records("plugins")

    def report_header(self) -> list[str]:
        """What the loaded plugins say of themselves in `tensorken_report_header`, line by line."""
        lines: list[str] = []
        for name, plugin in sorted(self._plugins.list_name_plugin(), key=lambda pair: pair[0]):
            try:
                for said in self._own(plugin, "tensorken_report_header"):
                    lines += [said] if isinstance(said, str) else map(str, said)
            except Exception as error:  # noqa: BLE001, a report must not spoil the reports of others
                lines.append(f"{name}: tensorken_report_header: {told(error)}")
        return lines

    def load_command(self, record: PluginRecord) -> Callable[[list[str]], int | None]:
        """The function of a subcommand.

        Raises:
            BackendError: if the plugin is incompatible or broken.
        """
        with self._guarded(record):
            command: Callable[[list[str]], int | None] = _imported(record)
            if not callable(command):
                raise _PluginError(f"its entry point names {command!r}, which is no function")
        return command


# ---- reading metadata --------------------------------------------------------------------------------------


def core_version() -> str | None:
    """The version of the installed core; None when it runs from a folder that was not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(CORE)
    except PackageNotFoundError:
        return None


def required_range(requirements: Sequence[str], distribution: str) -> str:
    """The range of versions that the lines of Requires-Dist ask of a distribution; empty if they ask none.

    Extras do not count, and conditions (markers) only if the line is the only one: pip has judged those.

    >>> required_range(["pluggy>=1.5", "Tensorken_Core (>=1.0,<2)"], "tensorken-core")
    '>=1.0,<2'
    """
    plain: list[str] = []
    conditional: list[str] = []
    for found in filter(None, map(_REQUIREMENT.fullmatch, requirements)):
        if normalized(found["name"]) == normalized(distribution) and "extra" not in (found["marker"] or ""):
            (conditional if found["marker"] else plain).append((found["range"] or "").replace(" ", ""))
    return ",".join(filter(None, plain or (conditional if len(conditional) == 1 else [])))


def _read(distribution: Distribution, core: str | None) -> Iterator[PluginRecord]:
    """A record for each entry point of a distribution that is for us."""
    name, version = distribution.metadata["Name"], distribution.metadata["Version"]
    needs = required_range(distribution.requires or [], CORE)
    status, reason = _compatibility(needs, core, name)
    origin = getattr(distribution, "_path", None)
    found: dict[tuple[Group, str], PluginRecord] = {}
    for point in distribution.entry_points:
        group: Any = point.group.removeprefix("tensorken.")
        if point.group == group or group not in get_args(Group):
            continue
        record = PluginRecord(
            normalized(point.name),
            name,
            version,
            needs,
            status,
            reason,
            group,
            entry_point=point,
            origin=str(origin) if isinstance(origin, os.PathLike) else "",
        )
        former = found.get((group, record.name))
        if not _VALUE.fullmatch(point.value):
            fault = f"its entry point {point.value!r} is no module or module:attribute"
        elif former and former.entry_point and former.entry_point.value != point.value:
            fault = f"it has two entry points of that name: {former.entry_point.value}, {point.value}"
        else:
            found[group, record.name] = record
            continue
        found[group, record.name] = replace(
            record, status="broken", reason=f"{fault}; update it, pip install -U {name}", entry_point=None
        )
    yield from found.values()


def _compatibility(needs: str, core: str | None, distribution: str) -> tuple[Status, str]:
    try:
        place = place_in_range(core, needs) if core else "inside"
    except ValueError as error:
        return "broken", f"its requirement on {CORE} cannot be read: {error}"
    if place == "inside":
        return "available", ""
    older = CORE if place == "below" else distribution
    return "incompatible", f"it needs {CORE} {needs}, this is {core}; pip install -U {older}"


def _in_order(records: list[PluginRecord]) -> list[PluginRecord]:
    """Sorted, and with the clashes marked.  Plugins are not selected by name, so theirs may be alike."""
    ordered = sorted(records, key=lambda record: record.key)
    for i, record in enumerate(ordered):
        others = [r.distribution for r in ordered if r.name == record.name and r.key != record.key]
        if others and record.group != "plugins":
            record = replace(record, shared=True)
            if record.status == "available":
                reason = f"{' and '.join(others)} brings it, too; write {record.selector} for this one"
                record = replace(record, status="clash", reason=reason)
            ordered[i] = record
    return ordered


# ---- what a BackendEntry leads to --------------------------------------------------------------------------


def _imported(record: PluginRecord) -> Any:
    assert record.entry_point is not None
    return record.entry_point.load()


def check_language(entry: BackendEntry, distribution: str) -> None:
    """Refuse a backend that speaks another version of the language."""
    place = place_in_range(SPEC_VERSION, entry.spec)
    if place != "inside":
        older = CORE if place == "below" else distribution
        raise _IncompatibleError(
            f"it speaks language {entry.spec}, this core {SPEC_VERSION}; pip install -U {older}"
        )


def devices_of(entry: BackendEntry) -> tuple[str, ...]:
    """The names of the devices, the default first."""
    if entry.devices is None:
        return ("cpu",)
    names = tuple(entry.devices() if callable(entry.devices) else entry.devices)
    if len({name.strip().lower() for name in names}) < len(names):
        raise _PluginError(f"the names of its devices are not unique: {', '.join(names)}")
    return names


def pick_device(names: Sequence[str], device: str | None, backend: str) -> str:
    """The device that a name or a number means; None is the first.

    Raises:
        BackendError: if there is no such device.
    """
    if not names:
        raise BackendError(f"backend {backend!r} finds no device on this machine")
    if device is None:
        return names[0]
    wanted = device.strip().lower()
    for name in names:
        if name.strip().lower() == wanted:
            return name
    if wanted.isdecimal() and int(wanted) < len(names):
        return names[int(wanted)]
    raise BackendError(f"backend {backend!r} has no device {device!r}; its devices are {', '.join(names)}")


def interpreter_of(entry: BackendEntry, device: str) -> RawTensor[Any]:
    """Load a backend on a device, and wrap it in Fuse if it asks for that."""
    interpreter = entry.load(None if entry.devices is None else device)
    if not isinstance(interpreter, RawTensor):
        raise _PluginError(f"its load() gives {interpreter!r}, which is no RawTensor")
    if entry.fuse:
        from tensorken.fuse import Fuse

        return interpreter if isinstance(interpreter, Fuse) else Fuse(interpreter)
    return interpreter


def _made(target: Any, device: str | None, text: str) -> tuple[RawTensor[Any], str]:
    """The interpreter, and its device, that an attribute is, makes or describes."""
    if callable(target) and not isinstance(target, RawTensor):
        target = target()
    if isinstance(target, BackendEntry):
        check_language(target, "its distribution")
        name = pick_device(devices_of(target), device, text)
        return interpreter_of(target, name), name
    if not isinstance(target, RawTensor):
        raise _PluginError(f"it leads to {target!r}, which is neither an interpreter nor a BackendEntry")
    if device is not None:
        raise _PluginError("it is an interpreter, which has no devices to choose from")
    return target, "default"


# ---- telling what happened ---------------------------------------------------------------------------------


class _PluginError(Exception):
    """What the host itself finds wrong with a plugin."""


class _IncompatibleError(_PluginError):
    """The plugin is for another version of the core."""


def told(error: BaseException) -> str:
    """An exception in one short line."""
    lines = str(error).strip().splitlines() or [""]
    line = lines[0] if len(lines[0]) <= 200 else f"{lines[0][:200]} ..."
    return (
        line
        if isinstance(error, (_PluginError, TensorkenError)) and line
        else f"{type(error).__name__}: {line}"
    )


def _way_out(error: BaseException, record: PluginRecord) -> str:
    """What the user of a broken plugin can do."""
    if isinstance(error, (_IncompatibleError, TensorkenError)):
        return ""  # the message says it
    if isinstance(error, ModuleNotFoundError) and error.name:
        own = record.entry_point.value.split(":")[0].split(".")[0] if record.entry_point else ""
        if error.name.split(".")[0] == own:
            return f"its files are missing, pip install --force-reinstall {record.distribution}"
        return f"install {error.name}, or remove the plugin, pip uninstall {record.distribution}"
    return (
        f"update it, pip install -U {record.distribution}, or remove it, pip uninstall {record.distribution}"
    )


def traced() -> bool:
    """Whether TENSORKEN_TRACE_PLUGINS asks the host to tell what it does, and to show tracebacks."""
    return os.environ.get("TENSORKEN_TRACE_PLUGINS", "").strip() not in ("", "0")


@contextlib.contextmanager
def _timed(what: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    if traced():
        print(f"tensorken: {what} in {1000 * (time.perf_counter() - start):.1f} ms", file=sys.stderr)


REGISTRY = Registry()
"""The plugins of this process."""

SELECTION = Selection(REGISTRY)
"""The choices of this process."""

backends = SELECTION.backends
use_backend = SELECTION.use_backend
default_backend = SELECTION.default_backend
devices = SELECTION.devices
resolve = SELECTION.resolve
name_of = SELECTION.name_of
load_plugins = REGISTRY.load_plugins
