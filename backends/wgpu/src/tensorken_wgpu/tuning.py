"""Tuning: measure once which of several equivalent kernels is the fastest on a device, and keep its name in a file.

The file is `tensorken/wgpu-tuning.json` in the user's cache folder.  It may be deleted at any time.  With
TENSORKEN_WGPU_TUNING=off nothing is measured, read or written: the kernel that is likely the fastest is used.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorken.cache_folder import cache_folder, write_file
from tensorken_core.errors import BackendError
from tensorken_wgpu.dtypes import size_of
from tensorken_wgpu.templates import specialised_text

if TYPE_CHECKING:
    from tensorken_wgpu.device import Device
    from tensorken_wgpu.kernels import Kernel

VARIABLE = "TENSORKEN_WGPU_TUNING"

RUNS, ROUNDS = 4, 3
"""The runs of a kernel in one measurement, and the number of measurements; the least time counts."""

LONG = 0.02
"""If a kernel takes this many seconds, one run is enough; systems reset GPUs whose submissions take too long."""

_OFF = frozenset({"0", "false", "no", "off"})

Results = dict[str, dict[str, str]]
"""For each device and choice the name of the fastest kernel."""


class Tuning:
    """The measurements.

    Args:
        path: of the file; None for no file.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._results: Results | None = None

    def best(self, kernel: Kernel, device: Device) -> Kernel:
        """The fastest of the kernel's choice; the kernel itself if it has none."""
        choice = kernel.choice
        if choice is None:
            return kernel
        with self._lock:
            if self._results is None:
                self._results = _read(self.path)
            names = self._results.setdefault(device.name, {})
            if names.get(choice.key) not in choice.kernels:
                fastest = _fastest(choice.kernels, device)
                if fastest is None:  # no memory left to measure with; try again next time
                    return kernel
                names[choice.key] = fastest
                self._keep(device.name, choice.key, fastest)
            return choice.kernels[names[choice.key]]

    def _keep(self, device: str, key: str, name: str) -> None:
        """Add a result to the file, which others may have changed meanwhile; failures are ignored."""
        if self.path is None:
            return
        results = _read(self.path)
        results.setdefault(device, {})[key] = name
        with contextlib.suppress(OSError):
            write_file(self.path, json.dumps(results, indent=1, sort_keys=True).encode())


def best(kernel: Kernel, device: Device) -> Kernel:
    """The fastest of the kernel's choice."""
    if kernel.choice is None or os.environ.get(VARIABLE, "").strip().lower() in _OFF:
        return kernel
    return _default().best(kernel, device)


@functools.cache
def _default() -> Tuning:
    return Tuning(cache_file())


def cache_file() -> Path | None:
    """The path of the file; None if the user has no cache folder."""
    folder = cache_folder()
    return None if folder is None else folder / "wgpu-tuning.json"


def _read(path: Path | None) -> Results:
    """The contents of the file; empty if it is missing or damaged."""
    try:
        results: Any = {} if path is None else json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(results, dict):
        return {}
    return {device: dict(names) for device, names in results.items() if isinstance(names, dict)}


def _fastest(kernels: Mapping[str, Kernel], device: Device) -> str | None:
    """The name of the fastest kernel; None if none could be run."""
    times: dict[str, float] = {}
    for name, kernel in kernels.items():
        with contextlib.suppress(BackendError):  # it may exceed a limit of this device
            times[name] = measure(kernel, device)
    return min(times, key=times.__getitem__, default=None)


def measure(kernel: Kernel, device: Device) -> float:
    """The seconds that a kernel takes, on memory with arbitrary contents."""
    text = specialised_text(kernel.template)
    pipeline = device.pipeline(text.code, len(kernel.reads), len(kernel.writes))
    uniform = device.uniform(text.uniform)
    memories = [device.allocate(size_of(v)) for v in (*kernel.reads, *kernel.writes)]

    def run(times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            device.run(pipeline, uniform, memories, kernel.workgroups)
        device.read(memories[-1], 4)
        return time.perf_counter() - start

    run(1)  # compiles it
    once = run(1)
    if once > LONG:
        return once
    return min([run(RUNS) for _ in range(ROUNDS)]) / RUNS
