"""Probing: plugins loaded in child processes, so that those that end the process or never return are found, too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensorken_core.errors import BackendError
from tensorken_core.host.discovery import PluginRecord, describe, trace_enabled
from tensorken_core.host.load_watch import PATIENCE, say
from tensorken_core.host.registry import REGISTRY, SELECTION, Registry

LIMIT = 60.0
"""Seconds that a child process has."""

_PROGRAM = (
    "import json, sys; request = json.load(sys.stdin); sys.path[:] = request['sys.path']; "
    "from tensorken_core.host.probing import answer; answer(request)"
)


@dataclass(frozen=True, slots=True)
class Probe:
    """What loading a plugin in a child process has shown.

    Attributes:
        record: its record afterwards.
        devices: of a backend that loads, the names of its devices.
        facts: what it says of each of them.
        header: the lines that it has for `tensorken doctor`.
    """

    record: PluginRecord
    devices: list[str] = field(default_factory=list)
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    header: list[str] = field(default_factory=list)

    @property
    def loads(self) -> bool:
        """Whether it could be loaded."""
        return self.record.status in ("available", "clash")


@dataclass(frozen=True, slots=True)
class InUse:
    """Which backend is used where nothing chooses one, as a child process has found it.

    Attributes:
        choice: the backend and why, or "" if none can be used.
        error: why none can be used.
        notes: what was told meanwhile, as that a backend was passed over.
    """

    choice: str = ""
    error: str = ""
    notes: list[str] = field(default_factory=list)


def probed(
    records: Sequence[PluginRecord], limit: float = LIMIT, registry: Registry = REGISTRY
) -> list[Probe]:
    """Load plugins, each in a child process, and note in the registry what is wrong with those that fail.

    Args:
        records: of plugins of any group.
        limit: the seconds that each has.
        registry: where they were found.

    Raises:
        BackendError: if there is no Python to run, as in a program that embeds one.
    """
    tasks = [
        {
            "task": "load",
            "path": registry.path,
            "group": r.group,
            "name": r.name,
            "distribution": r.distribution,
        }
        for r in records
    ]
    found: list[Probe] = []
    names = [f"{record.group[:-1]} {record.selector} ({record.distribution})" for record in records]
    for record, (facts, fault) in zip(records, _answers(tasks, names, limit), strict=True):
        if fault:
            way_out = f"update it, pip install -U {record.distribution}, or remove it, pip uninstall"
            facts = {"status": "broken", "reason": f"{fault}; {way_out} {record.distribution}"}
        if facts["status"] != record.status:
            registry.mark(record, facts["status"], facts["reason"])
        rest = {key: facts[key] for key in ("devices", "facts", "header") if key in facts}
        found.append(Probe(registry.current(record), **rest))
    return found


def in_use(limit: float = LIMIT) -> InUse:
    """Load the backend that is used where nothing chooses one, in a child process."""
    ((facts, fault),) = _answers([{"task": "choose"}], ["the backend in use"], limit)
    return InUse(error=f"the backend in use cannot be loaded: {fault}") if fault else InUse(**facts)


# ---- in the parent -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Child:
    process: subprocess.Popen[bytes]
    answer: Path


def _answers(
    tasks: Sequence[dict[str, Any]], names: Sequence[str], limit: float
) -> Iterator[tuple[dict[str, Any], str]]:
    """For each task its answer, or what went wrong; as many at a time as there are processors."""
    if not sys.executable or getattr(sys, "frozen", False):
        raise BackendError(
            f"probing starts processes of Python, and {sys.executable!r} is none; use python -m tensorken"
        )
    width = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="tensorken-") as folder:
        for i in range(0, len(tasks), width):
            yield from _answers_at_once(tasks[i : i + width], names[i : i + width], Path(folder), limit)


def _answers_at_once(
    tasks: Sequence[dict[str, Any]], names: Sequence[str], folder: Path, limit: float
) -> Iterator[tuple[dict[str, Any], str]]:
    start = time.monotonic()
    with _children(tasks, folder) as children:
        for child, name in zip(children, names, strict=True):
            yield _answer(child, name, start, limit)


@contextmanager
def _children(tasks: Sequence[dict[str, Any]], folder: Path) -> Iterator[list[_Child]]:
    """A child process for each task; those that still run are killed in the end."""
    children: list[_Child] = []
    flags = ["-S"] if sys.flags.no_site else []
    try:
        for i, task in enumerate(tasks):
            answer = folder / f"{i}.json"
            answer.unlink(missing_ok=True)
            process = subprocess.Popen(
                [sys.executable, "-P", *flags, "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=None if trace_enabled() else subprocess.DEVNULL,
                start_new_session=True,  # so that what it starts can be killed with it
            )
            children.append(_Child(process, answer))
            assert process.stdin
            with suppress(OSError), process.stdin:
                request = {**task, "sys.path": [*map(str, sys.path)], "answer": str(answer)}
                process.stdin.write(json.dumps(request).encode())
        yield children
    finally:
        for child in children:
            if child.process.poll() is None:
                _kill(child.process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _answer(child: _Child, name: str, start: float, limit: float) -> tuple[dict[str, Any], str]:
    """What a child has answered, or why it has not."""
    for wait in sorted({min(PATIENCE, limit), limit}):
        try:
            status = child.process.wait(max(0.0, start + wait - time.monotonic()))
        except subprocess.TimeoutExpired:
            if wait < limit:
                say(f"tensorken: {name} takes more than {wait:g} s to load; it is given {limit:g} s")
            continue
        try:
            answer = json.loads(child.answer.read_bytes())
        except (OSError, ValueError):
            return {}, f"it ended its process ({_ending(status)}) while it was loaded"
        return answer, ""
    return {}, f"it was not loaded within {limit:g} s"


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    with suppress(ValueError):
        return signal.Signals(-status).name
    return f"signal {-status}"


# ---- in the child ------------------------------------------------------------------------------------------


def answer(request: dict[str, Any]) -> None:
    """Do what a child process is asked for, and end it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = _loaded(request) if request["task"] == "load" else _chosen(caught)
    Path(request["answer"]).write_bytes(json.dumps(found).encode())
    os._exit(0)  # whatever a plugin has left running


def _loaded(request: dict[str, Any]) -> dict[str, Any]:
    registry = Registry(request["path"])
    known = registry.find(request["group"], request["name"], request["distribution"])
    if not known:
        return {"status": "broken", "reason": "it is no longer installed"}
    record = registry.probe(known[0])
    found: dict[str, Any] = {"status": record.status, "reason": record.reason}
    if record.group == "backends" and record.status in ("available", "clash"):
        found["devices"] = list(registry.devices(record))
        found["facts"] = {device: _facts(registry, record, device) for device in found["devices"]}
    return {**found, "header": registry.report_header()}


def _facts(registry: Registry, record: PluginRecord, device: str) -> dict[str, str]:
    """What a backend says of a device, or why it says nothing."""
    try:
        return registry.facts(record, device)
    except BackendError as error:
        return {"error": describe(error)}


def _chosen(caught: list[warnings.WarningMessage]) -> dict[str, Any]:
    try:
        choice, error = str(SELECTION.current()), ""
    except BackendError as refusal:
        choice, error = "", str(refusal)
    notes = [str(w.message) for w in caught if ": using " in str(w.message)]
    return {"choice": choice, "error": error, "notes": notes}
