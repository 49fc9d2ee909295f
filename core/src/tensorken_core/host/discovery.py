"""The installed plugins, found only by the metadata of distributions, and the reasons why some cannot be used.

No plugin is imported here.  A plugin that cannot be used has a record with the reason, and raises an error only
if it is selected.  This module also compares names, and suggests names for misspelt ones.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from tensorken_core.errors import TensorkenError
from tensorken_core.host.load_monitor import write_message
from tensorken_core.host.variables import switch
from tensorken_core.host.versions import place_in_range
from tensorken_core.text import printable, quoted

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

Group = Literal["backends", "plugins", "commands", "namespace"]
Status = Literal["available", "unavailable", "broken", "incompatible", "clash"]

CORE = "tensorken-core"

OURS: dict[Group, dict[str, str]] = {
    "backends": {
        name: f"tensorken-{name}" for name in ("numpy", "reference", "wgpu", "jax", "torch", "string")
    },
    "commands": {"train": "tensorken-nn", "sample": "tensorken-nn", "gpu-report": "tensorken-wgpu"}
    | dict.fromkeys(("conformance", "new"), "tensorken-conformance"),
    "namespace": {"profile": "tensorken-profile"},
    "plugins": {},
}
"""The names that are reserved for our own distributions.

A plugin of one of these names from another distribution is selected by `name@distribution` only, so that installing
a package changes neither the default nor the meaning of these names.
"""

_VALUE = re.compile(r"[\w.]+\s*(:\s*[\w.]+\s*)?(\[.*\]\s*)?")
_REQUIREMENT = re.compile(
    r"\s*(?P<name>[\w.-]+)\s*(\[[^\]]*\])?\s*(@[^;]*|\(?(?P<range>[^;)]*)\)?)\s*(;(?P<marker>.*))?"
)


@dataclass(frozen=True, slots=True)
class PluginRecord:
    """One entry point of one distribution, as its metadata describes it.

    `status` is "available" unless more is known: "unavailable" (it finds no device), "broken", "incompatible" (it
    needs another version of the core) or "clash" (another distribution has the name, or the name is in `OURS`:
    `name@distribution` selects).  `reason` describes the fault and the remedy.
    """

    name: str
    distribution: str
    version: str
    needs: str  # its range of versions of tensorken-core; empty if it has none
    status: Status = "available"
    reason: str = ""
    group: Group = field(default="backends", repr=False)
    shared: bool = field(default=False, repr=False)  # whether only name@distribution selects it
    entry_point: EntryPoint | None = field(default=None, repr=False, compare=False)  # None: not loadable
    origin: str = field(default="", repr=False, compare=False)  # the folder of its metadata, if it has one

    @property
    def key(self) -> tuple[str, str]:
        """Its identity within its group."""
        return self.name, normalized(self.distribution)

    @property
    def selector(self) -> str:
        """The text that selects the plugin: its name, or `name@distribution` if the name alone does not."""
        return f"{self.name}@{self.distribution}" if self.shared else self.name

    @property
    def installed(self) -> bool:
        """Whether the folder of its metadata still exists."""
        return not self.origin or os.path.exists(self.origin)  # noqa: PTH110, faster: every choice by name calls it

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution} {self.version})"


class Installation:
    """The installed plugins, and the results of attempts to load them.

    Args:
        path: the folders to look in; None for `sys.path`.
    """

    def __init__(self, path: list[str] | None = None) -> None:
        self.problems: list[str] = []
        """Distributions whose metadata could not be read."""
        self.lock = threading.RLock()
        """Held during discovery, loading and choosing: one lock, since each of these may start another."""
        self.path = path
        self._search: dict[str, Any] = {} if path is None else {"path": path}
        self._records: dict[Group, list[PluginRecord]] | None = None
        self._verdicts: dict[tuple[Group, str, str, str], tuple[Status, str]] = {}

    def records(self, group: Group) -> list[PluginRecord]:
        """The installed plugins of a group, sorted by name and distribution; nothing is imported."""
        records = self._records
        return list((self.refresh() if records is None else records)[group])

    def refresh(self) -> dict[Group, list[PluginRecord]]:
        """Read the installed distributions again; loaded plugins stay loaded."""
        with self.lock, timed("looked for plugins"):
            importlib.invalidate_caches()
            self.problems = []
            by_group: dict[Group, list[PluginRecord]] = {group: [] for group in get_args(Group)}
            core = core_version()
            for distribution in self._distributions():
                try:
                    for record in _read(distribution, core):
                        by_group[record.group].append(record)
                except Exception as error:  # noqa: BLE001, the other distributions must still be read
                    self._note(distribution, error)
            self._records = {group: _in_order(records) for group, records in by_group.items()}
            for (group, *key), verdict in self._verdicts.items():
                for record in self._records[group]:
                    if [*record.key, record.version] == key and record.status in ("available", "clash"):
                        self.mark(record, *verdict)
            return self._records

    def _distributions(self) -> Iterator[Distribution]:
        """The distributions with entry points for the host; of two copies the first on the path, as with imports."""
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
        self.problems.append(f"the metadata in {printable(str(where))} cannot be read: {describe(error)}")

    def find(self, group: Group, name: str, distribution: str = "") -> list[PluginRecord]:
        """The plugins of a name; if there are none, the installed distributions are read again.

        A name in `OURS` without a distribution selects only the plugin of our own distribution.
        """
        key = printable(normalized(name), 80)
        owner = normalized(distribution) or OURS[group].get(key, "")

        def matches(records: Iterable[PluginRecord]) -> list[PluginRecord]:
            return [r for r in records if r.name == key and owner in ("", normalized(r.distribution))]

        matching = matches(self.records(group))
        return matching if matching and all(r.installed for r in matching) else matches(self.refresh()[group])

    def current(self, record: PluginRecord) -> PluginRecord:
        """The present record of the plugin; the old record if the plugin is no longer listed."""
        return next((r for r in self.records(record.group) if r.key == record.key), record)

    def mark(self, record: PluginRecord, status: Status, reason: str) -> None:
        """Record the result of an attempt to load a plugin; it is valid until the plugin is loaded."""
        self._verdicts[record.group, *record.key, record.version] = status, reason
        if self._records is not None:
            self._records[record.group] = [
                replace(r, status=status, reason=reason) if r.key == record.key else r
                for r in self._records[record.group]
            ]

    def unmark(self, record: PluginRecord) -> None:
        """Forget earlier failures of a plugin, since it is loaded now."""
        if self._verdicts.pop((record.group, *record.key, record.version), None):
            self.refresh()


# ---- reading metadata --------------------------------------------------------------------------------------


def core_version() -> str | None:
    """The version of the installed core; None when it runs from a folder that was not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(CORE)
    except PackageNotFoundError:
        return None


def required_range(requirements: Sequence[str], distribution: str) -> str:
    """The range of versions of a distribution that the lines of Requires-Dist require; empty if they require none.

    Extras do not count.  A line with a marker counts only if it is the only line: pip has evaluated the markers.

    >>> required_range(["pluggy>=1.5", "Tensorken_Core (>=1.0,<2)"], "tensorken-core")
    '>=1.0,<2'
    """
    plain: list[str] = []
    conditional: list[str] = []
    for match in filter(None, map(_REQUIREMENT.fullmatch, requirements)):
        if normalized(match["name"]) == normalized(distribution) and "extra" not in (match["marker"] or ""):
            (conditional if match["marker"] else plain).append((match["range"] or "").replace(" ", ""))
    return ",".join(filter(None, plain or (conditional if len(conditional) == 1 else [])))


def _read(distribution: Distribution, core: str | None) -> Iterator[PluginRecord]:
    """A record for each entry point of a distribution that belongs to a group of the host."""
    name, version = [printable(str(distribution.metadata[key]), 80) for key in ("Name", "Version")]
    needs = printable(required_range(distribution.requires or [], CORE), 80)
    status, reason = _compatibility(needs, core, name)
    origin = getattr(distribution, "_path", None)
    records: dict[tuple[Group, str], PluginRecord] = {}
    for point in distribution.entry_points:
        group: Any = point.group.removeprefix("tensorken.")
        if point.group == group or group not in get_args(Group):
            continue
        record = PluginRecord(
            printable(normalized(point.name), 80),
            name,
            version,
            needs,
            status,
            reason,
            group,
            entry_point=point,
            origin=str(origin) if isinstance(origin, os.PathLike) else "",
        )
        former = records.get((group, record.name))
        if not _VALUE.fullmatch(point.value):
            fault = f"its entry point {quoted(point.value)} is no module or module:attribute"
        elif former and former.entry_point and former.entry_point.value != point.value:
            fault = f"it has two entry points of that name: {former.entry_point.value}, {point.value}"
        else:
            records[group, record.name] = record
            continue
        records[group, record.name] = replace(
            record, status="broken", reason=f"{fault}; update it, pip install -U {name}", entry_point=None
        )
    yield from records.values()


def _compatibility(needs: str, core: str | None, distribution: str) -> tuple[Status, str]:
    try:
        position = place_in_range(core, needs) if core else "inside"
    except ValueError as error:
        return "broken", f"its requirement on {CORE} cannot be read: {error}"
    if position == "inside":
        return "available", ""
    older = CORE if position == "below" else distribution
    return "incompatible", f"it needs {CORE} {needs}, this is {core}; pip install -U {older}"


def _in_order(records: list[PluginRecord]) -> list[PluginRecord]:
    """The records sorted, with clashes marked.  Plugins are not selected by name, so their names may be equal."""
    ordered = sorted(records, key=lambda record: record.key)
    return [record if record.group == "plugins" else _mark_clash(record, ordered) for record in ordered]


def _mark_clash(record: PluginRecord, among: list[PluginRecord]) -> PluginRecord:
    """The record, marked as a clash if its name is reserved, or if another distribution also has the name."""
    name, distribution = record.key
    owner = OURS[record.group].get(name)
    others = [r.distribution for r in among if r.name == name and r.key != record.key]
    if distribution == owner or not (owner or others):
        return record
    record = replace(record, shared=True)
    if record.status != "available":
        return record
    remedy = f"write {record.selector} for this one"
    if record.group == "namespace":
        remedy = "uninstall this one" if owner else "uninstall one"
    cause = f"the name belongs to {owner}" if owner else f"{' and '.join(others)} brings it, too"
    return replace(record, status="clash", reason=f"{cause}; {remedy}")


# ---- names -------------------------------------------------------------------------------------------------


def normalized(name: str) -> str:
    """A name in the form that is compared: lower case, with dashes for spaces, underscores and dots.

    >>> normalized(" My_GPU "), normalized("my gpu")
    ('my-gpu', 'my-gpu')
    """
    return re.sub(r"[-_.\s]+", "-", name.strip().lower())


def close_matches(name: str, candidates: Iterable[str]) -> list[str]:
    """At most three candidates that are similar to the name, the most similar first.

    >>> close_matches("nunpy", ["numpy", "string"])
    ['numpy']
    """
    from difflib import get_close_matches

    return get_close_matches(name, sorted(candidates), n=3, cutoff=0.6)


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """The end of a message about an unknown name; empty if no candidate is similar.

    >>> did_you_mean("nunpy", ["numpy", "string"])
    '; did you mean numpy?'
    """
    return suggested(close_matches(name, candidates))


def suggested(names: Sequence[str]) -> str:
    """The end of a message that suggests these names; empty without names."""
    return f"; did you mean {' or '.join(names)}?" if names else ""


# ---- messages ----------------------------------------------------------------------------------------------


class PluginError(Exception):
    """A fault of a plugin that the host detects."""


class IncompatibleError(PluginError):
    """The plugin is for another version of the core."""


def describe(error: BaseException) -> str:
    """An exception in one short line."""
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r:.40})"
    try:
        lines = str(error).strip().splitlines() or [""]
    except Exception:  # noqa: BLE001, an exception of a plugin may itself be broken
        lines = ["its message cannot be read"]
    line = printable(lines[0], 200)
    plain = isinstance(error, (PluginError, TensorkenError)) and line
    return line if plain else f"{type(error).__name__}: {line}"


def hint(error: BaseException, record: PluginRecord) -> str:
    """A remedy for the user of a broken plugin."""
    if isinstance(error, (IncompatibleError, TensorkenError)):
        return ""  # the message contains the remedy
    name, remedy = record.distribution, f"update it, pip install -U {record.distribution}, or remove it"
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = record.entry_point.module.split(".")[0] if record.entry_point else ""
        if error.name.split(".")[0] == package:
            return f"its files are missing, pip install --force-reinstall {name}"
        remedy = f"install {error.name}, or remove the plugin"
    return f"{remedy}, pip uninstall {name}"


def trace_enabled() -> bool:
    """Whether TENSORKEN_TRACE_PLUGINS switches the log of the host and tracebacks on."""
    return switch("TENSORKEN_TRACE_PLUGINS")


@contextlib.contextmanager
def timed(what: str, before: str = "") -> Iterator[None]:
    """If tracing is enabled, log how long a block took, and a message before it."""
    start = time.perf_counter()
    if before and trace_enabled():
        write_message(before)
    yield
    if trace_enabled():
        write_message(f"{what} in {1000 * (time.perf_counter() - start):.1f} ms")
