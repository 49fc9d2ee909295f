"""host.*: a backend can be found, described without heavy imports, and loaded; none of this runs an op.

The laws on installed backends have no cases for a backend that is selected as `module:attribute`.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import Distribution, distribution, packages_distributions
from typing import Any

from tensorken_conformance.backends.loading import record_of
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.fresh_process import json_of
from tensorken_conformance.subject import Subject
from tensorken_core.errors import BackendError
from tensorken_core.host.discovery import CORE, PluginRecord, normalized
from tensorken_core.host.plugin import SPEC_VERSION, BackendEntry
from tensorken_core.host.registry import REGISTRY, SELECTION
from tensorken_core.host.versions import place_in_range
from tensorken_core.language.raw import RawTensor

SUMMARY = 80
"""The most characters of the summary of a backend, so that listings stay tables."""

NEXT_MAJOR = f"{int(SPEC_VERSION.partition('.')[0]) + 1}.0"


def _cases(law: str, *ops: str) -> Callable[[Subject], Iterable[Case]]:
    """The cases of a law on installed backends."""
    return lambda subject: [] if record_of(subject.name) is None else [Case(law, op) for op in ops]


def _record(subject: Subject) -> PluginRecord:
    record = record_of(subject.name)
    if record is None:
        raise Failure(f"{subject.name}: no plugin of this name is installed any longer")
    return record


def _entry(record: PluginRecord) -> BackendEntry:
    try:
        return REGISTRY.entry(record)
    except BackendError as error:
        raise Failure(f"the entry point does not lead to a backend: {error}") from None


@law("host.entry-point", _cases("host.entry-point", "found", "loads"), level=0, stage=0, reads=False)
def entry_point(subject: Subject, case: Case) -> None:
    """The entry point in the group tensorken.backends exists, and loads a BackendEntry of the same name."""
    record = _record(subject)
    if case.op == "found":
        if record.entry_point is None or record.status != "available":
            raise Failure(f"{record}: expected it to be available, it is {record.status}: {record.reason}")
        return
    entry = _entry(record)
    if normalized(entry.name) != record.name:
        raise Failure(f"expected the BackendEntry to be named {record.name!r}, got {entry.name!r}")


def _summary(record: PluginRecord, found: Distribution) -> None:
    text = _entry(record).summary
    if not text.strip() or "\n" in text or len(text) > SUMMARY:
        raise Failure(
            f"expected a summary of one line and at most {SUMMARY} characters in the BackendEntry, got {text!r}"
        )


def _version(record: PluginRecord, found: Distribution) -> None:
    try:
        place_in_range(record.version, ">=0")
    except ValueError:
        raise Failure(f"expected a version as of PEP 440, got {record.version!r}") from None


def _requirement(record: PluginRecord, found: Distribution) -> None:
    if not record.needs:
        raise Failure(f"expected a requirement on {CORE} with a range such as '>=0.1,<0.2', got none")
    if place_in_range("99999", record.needs) == "inside":
        raise Failure(
            f"expected the range of {CORE} to end somewhere, got {record.needs!r}; nobody knows later ones"
        )


def _license(record: PluginRecord, found: Distribution) -> None:
    facts: Any = found.metadata
    if not (facts.get("License-Expression") or facts.get("License")) and not any(
        classifier.startswith("License ::") for classifier in facts.get_all("Classifier") or ()
    ):
        raise Failure(f"{record.distribution}: expected a license in the metadata, got none")


def _description(record: PluginRecord, found: Distribution) -> None:
    facts: Any = found.metadata
    text = facts.get("Summary") or ""
    if not text.strip() or text.strip() == "UNKNOWN":
        raise Failure(f"{record.distribution}: expected a description in the metadata, got none")


FACTS: dict[str, Callable[[PluginRecord, Distribution], None]] = {
    "summary": _summary,
    "version": _version,
    "requirement": _requirement,
    "license": _license,
    "description": _description,
}
"""The metadata of a distribution, each with its check."""


@law("host.metadata", _cases("host.metadata", *FACTS), level=0, stage=0, reads=False)
def metadata(subject: Subject, case: Case) -> None:
    """The metadata are complete: summary, version, a bounded range of tensorken-core, license and description."""
    record = _record(subject)
    FACTS[case.op](record, distribution(record.distribution))


@law("host.language", _cases("host.language", "this", "next"), level=0, stage=0, reads=False)
def language(subject: Subject, case: Case) -> None:
    """The backend supports this version of the language, and does not claim to support the next major one."""
    spec = _entry(_record(subject)).spec
    position = place_in_range(SPEC_VERSION if case.op == "this" else NEXT_MAJOR, spec)
    if case.op == "this" and position != "inside":
        raise Failure(f"expected a range with language {SPEC_VERSION}, got {spec!r}")
    if case.op == "next" and position == "inside":
        raise Failure(
            f"expected a range without language {NEXT_MAJOR}, which is not written yet, got {spec!r}"
        )


PROGRAM = """
import json, sys
before = set(sys.modules)
from contextlib import redirect_stdout
from tensorken_cli.command import main
with redirect_stdout(sys.stderr):
    main(["backends", "--json"])
listed = sorted(set(sys.modules) - before)
from tensorken_core.host.registry import REGISTRY
record = next(r for r in REGISTRY.records("backends") if r.key == (sys.argv[1], sys.argv[2]))
try:
    REGISTRY.entry(record)
except Exception as error:
    print(error, file=sys.stderr)
print(json.dumps({"listed": listed, "described": sorted(set(sys.modules) - before)}))
"""
"""Lists the backends as the command does, then describes one; prints the modules that each step imported."""


@functools.lru_cache(maxsize=8)
def _imported(name: str, owner: str, path: tuple[str, ...]) -> dict[str, list[str]]:
    """The modules that a new process imports to list the backends, and to describe one; cached by the import path."""
    found: dict[str, list[str]] = json_of(PROGRAM, name, owner)
    return found


@functools.lru_cache(maxsize=8)
def _heavy(owner: str, path: tuple[str, ...]) -> frozenset[str]:
    """The packages that a distribution requires, without core and the requirements of core."""

    def requirements(name: str) -> set[str]:
        lines = [line for line in distribution(name).requires or () if "extra" not in line.partition(";")[2]]
        return {normalized(re.split(r"[\s\[;(<>=!~@]", line.strip(), maxsplit=1)[0]) for line in lines}

    required = requirements(owner) - requirements(CORE) - {CORE}
    return frozenset(
        package
        for package, owners in packages_distributions().items()
        if required & set(map(normalized, owners))
    )


@law("host.lazy", _cases("host.lazy", "listing", "describing"), level=0, stage=0, reads=False)
def lazy(subject: Subject, case: Case) -> None:
    """Listing the backends imports nothing of a plugin, and describing one nothing of what it requires."""
    record = _record(subject)
    found = _imported(*record.key, tuple(sys.path))
    heavy = _heavy(record.distribution, tuple(sys.path))
    if case.op == "listing" and record.entry_point is not None:
        heavy = heavy | {record.entry_point.module.partition(".")[0]}
    imported = found["listed" if case.op == "listing" else "described"]
    if wrong := [name for name in imported if name.partition(".")[0] in heavy]:
        raise Failure(
            f"{case.op} imports {', '.join(wrong[:3])}; import inside load(), not at the top of the plugin"
        )


def _selected(subject: Subject) -> Any:
    """The backend that the host resolves from the name; None if it does not know the name."""
    try:
        return SELECTION.resolve(subject.name)
    except BackendError:
        return None


def _loads_once(subject: Subject) -> None:
    first, second = _selected(subject), _selected(subject)
    if first is not second:
        raise Failure(f"loading twice: expected one interpreter, got {first!r} and {second!r}, which are two")
    if first is not None and not isinstance(first, RawTensor):
        raise Failure(f"expected a RawTensor, got {type(first).__name__}")


def _says_its_name(subject: Subject) -> None:
    text = repr(subject.backend)
    if not text.strip() or len(text.splitlines()) != 1 or " object at 0x" in text:
        raise Failure(f"repr: expected one line that names the backend, got {text!r}; write a __repr__")


def _bears_its_name(subject: Subject) -> None:
    loaded = _selected(subject)
    if loaded is None:
        return
    found, asked = REGISTRY.name_of(loaded)[0], subject.name
    if record_of(asked) is not None:  # without its device, and with a normalized name
        found, asked = (normalized(name.partition(":")[0].partition("@")[0]) for name in (found, asked))
    if "".join(found.split()) != "".join(asked.split()):
        raise Failure(f"expected tensors to name their backend {asked!r}, got {found!r}")


def _is_available(subject: Subject) -> None:
    record = record_of(subject.name)
    if record is not None and (probed := REGISTRY.probe(record)).status not in ("available", "clash"):
        raise Failure(f"expected the backend to load here, it is {probed.status}: {probed.reason}")


PROBES: dict[str, Callable[[Subject], None]] = {
    "probe": _is_available,
    "once": _loads_once,
    "name": _bears_its_name,
    "repr": _says_its_name,
}
"""The checks of every backend, installed or not."""


@law("host.probe", lambda subject: [Case("host.probe", op) for op in PROBES], level=0, stage=0, reads=False)
def probe(subject: Subject, case: Case) -> None:
    """The backend loads, is one object for all selections, has its name, and a repr of one line."""
    PROBES[case.op](subject)
