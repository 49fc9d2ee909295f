"""Probing: loading plugins in child processes, so that a plugin may end its process or never return."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensorken_core.errors import BackendError
from tensorken_core.host.discovery import PluginRecord, describe, hint, trace_enabled
from tensorken_core.host.load_monitor import SLOW_LOAD, write_message
from tensorken_core.host.loading import Registry
from tensorken_core.host.registry import REGISTRY, SELECTION

LIMIT = 60.0
"""The time limit of a child process, in seconds."""

_PROGRAM = (
    "import json, sys; request = json.load(sys.stdin); sys.path[:] = request['sys.path']; "
    "from tensorken_cli.probing import answer; answer(request)"
)


@dataclass(frozen=True, slots=True)
class Probe:
    """The result of loading a plugin in a child process.

    Attributes:
        record: the record of the plugin afterwards.
        devices: the names of the devices of a backend that loads.
        facts: the properties of each device, as the backend reports them.
        header: its lines for `tensorken doctor`.
    """

    record: PluginRecord
    devices: list[str] = field(default_factory=list)
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    header: list[str] = field(default_factory=list)

    @property
    def loads(self) -> bool:
        """Whether the plugin could be loaded."""
        return self.record.status in ("available", "clash")


@dataclass(frozen=True, slots=True)
class DefaultBackend:
    """The default backend, loaded by a child process.

    Attributes:
        choice: the backend and why, or "" if none can be used.
        error: why none can be used.
        notes: the warnings of the child process, for example that a backend was skipped.
    """

    choice: str = ""
    error: str = ""
    notes: list[str] = field(default_factory=list)


def probe_all(
    records: Sequence[PluginRecord], limit: float = LIMIT, registry: Registry = REGISTRY
) -> list[Probe]:
    """Load plugins, each in a child process, and note the faults of those that fail in the registry.

    Args:
        records: of plugins of any group.
        limit: the time limit of each, in seconds.
        registry: the registry of the records.

    Raises:
        BackendError: if there is no Python to run, as in a program that embeds one.
    """
    tasks: list[dict[str, Any]] = [
        {"path": registry.path, "group": r.group, "name": r.name, "distribution": r.distribution}
        for r in records
    ]
    probes: list[Probe] = []
    names = [f"{record.group[:-1]} {record.selector} ({record.distribution})" for record in records]
    for record, (facts, fault) in zip(records, _answers(tasks, names, limit), strict=True):
        if fault:
            facts = {"status": "broken", "reason": f"{fault}; {hint(ChildProcessError(), record)}"}
        if facts["status"] != record.status:
            registry.mark(record, facts["status"], facts["reason"])
        rest = {key: facts[key] for key in ("devices", "facts", "header") if key in facts}
        probes.append(Probe(registry.current(record), **rest))
    return probes


def probe_default(limit: float = LIMIT) -> DefaultBackend:
    """Load the default backend in a child process."""
    ((facts, fault),) = _answers([{}], ["the backend in use"], limit)
    return (
        DefaultBackend(error=f"the backend in use cannot be loaded: {fault}")
        if fault
        else DefaultBackend(**facts)
    )


def add_limit(parser: argparse.ArgumentParser) -> None:
    """Add the option --limit, the time limit of each plugin."""
    help = "time for each to load (default: %(default)g)"
    parser.add_argument("--limit", type=_seconds, default=LIMIT, metavar="SECONDS", help=help)


def _seconds(text: str) -> float:
    """The value of an option in seconds.

    >>> _seconds("2.5")
    2.5
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, got {text!r}")
    return seconds


# ---- in the parent -----------------------------------------------------------------------------------------


def _answers(
    tasks: Sequence[dict[str, Any]], names: Sequence[str], limit: float
) -> Iterator[tuple[dict[str, Any], str]]:
    """For each task its answer, or a description of its failure; one child process per processor at a time."""
    if not sys.executable or getattr(sys, "frozen", False):
        raise BackendError(
            f"probing starts Python processes, but sys.executable is {sys.executable!r}; use python -m tensorken"
        )
    batch_size = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="tensorken-") as folder:
        files = [Path(folder, f"{i}.json") for i in range(len(tasks))]
        for i in range(0, len(tasks), batch_size):
            start = time.monotonic()
            with ExitStack() as stack:
                children = [
                    stack.enter_context(_child(task, file))
                    for task, file in zip(tasks[i : i + batch_size], files[i:], strict=False)
                ]
                for child, file, name in zip(children, files[i:], names[i:], strict=False):
                    yield _answer(child, file, name, start, limit)


@contextmanager
def _child(task: dict[str, Any], file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A child process for a task, which writes its answer to a file; it is killed if it still runs at the end."""
    process = subprocess.Popen(
        [sys.executable, "-P", *(["-S"] if sys.flags.no_site else []), "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=None if trace_enabled() else subprocess.DEVNULL,
        start_new_session=True,  # so that the processes that it starts can be killed with it
    )
    try:
        assert process.stdin
        with suppress(OSError), process.stdin:
            request = {**task, "sys.path": [*map(str, sys.path)], "answer": str(file)}
            process.stdin.write(json.dumps(request).encode())
        yield process
    finally:
        if process.poll() is None:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _answer(
    child: subprocess.Popen[bytes], file: Path, name: str, start: float, limit: float
) -> tuple[dict[str, Any], str]:
    """The answer of a child process, or the reason why there is none."""
    for wait in sorted({min(SLOW_LOAD, limit), limit}):
        try:
            status = child.wait(max(0.0, start + wait - time.monotonic()))
        except subprocess.TimeoutExpired:
            if wait < limit:
                write_message(f"{name} takes more than {wait:g} s to load; it is given {limit:g} s")
            continue
        try:
            answer = json.loads(file.read_bytes())
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
    """Answer the request of a child process, and end the process."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = _loaded(request) if "group" in request else _loaded_default(caught)
    Path(request["answer"]).write_bytes(json.dumps(result).encode())
    os._exit(0)  # even if a plugin has left threads running


def _loaded(request: dict[str, Any]) -> dict[str, Any]:
    registry = Registry(request["path"])
    records = registry.find(request["group"], request["name"], request["distribution"])
    if not records:
        return {"status": "broken", "reason": "it is no longer installed"}
    record = registry.probe(records[0])
    result: dict[str, Any] = {"status": record.status, "reason": record.reason}
    if record.group == "backends" and record.status in ("available", "clash"):
        result["devices"] = list(registry.devices(record))
        result["facts"] = {device: _facts(registry, record, device) for device in result["devices"]}
    return {**result, "header": registry.report_header()}


def _facts(registry: Registry, record: PluginRecord, device: str) -> dict[str, str]:
    """The properties of a device, as the backend reports them, or the error."""
    try:
        return registry.facts(record, device)
    except BackendError as error:
        return {"error": describe(error)}


def _loaded_default(caught: list[warnings.WarningMessage]) -> dict[str, Any]:
    try:
        choice, error = str(SELECTION.current()), ""
    except BackendError as failure:
        choice, error = "", str(failure)
    notes = [str(w.message) for w in caught if ": using " in str(w.message)]
    return {"choice": choice, "error": error, "notes": notes}
