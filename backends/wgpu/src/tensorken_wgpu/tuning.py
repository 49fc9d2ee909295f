"""Tuning: which of several kernels that do the same is the fastest on a device; found out once, and kept in a file.

The file is `tensorken/wgpu-tuning.json` in the user's folder for caches.  It may be deleted at any time.  With
TENSORKEN_WGPU_TUNING=off nothing is measured, read or written: the kernel that is likeliest the best is taken.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorken_core.errors import BackendError
from tensorken_wgpu.dtypes import size_of
from tensorken_wgpu.templates import special

if TYPE_CHECKING:
    from tensorken_wgpu.device import Device
    from tensorken_wgpu.kernels import Kernel

VARIABLE = "TENSORKEN_WGPU_TUNING"

RUNS, ROUNDS = 4, 3
"""How often a kernel is run between two looks at the clock, and how often that is done; the best counts."""

LONG = 0.02
"""Seconds from which on one run says enough; systems end GPUs that are busy with one submission for too long."""

_OFF = frozenset({"0", "false", "no", "off"})

Found = dict[str, dict[str, str]]
"""For each device and choice the name of the fastest kernel."""


class Tuning:
    """What has been found out.

    Args:
        path: of the file; None if there is none.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._found: Found | None = None

    def best(self, kernel: Kernel, device: Device) -> Kernel:
        """The fastest of those among which there is a choice; the kernel itself where there is none."""
        choice = kernel.choice
        if choice is None:
            return kernel
        with self._lock:
            if self._found is None:
                self._found = _read(self.path)
            known = self._found.setdefault(device.name, {})
            if known.get(choice.of) not in choice.kernels:
                fastest = _fastest(choice.kernels, device)
                if fastest is None:  # there is no memory to measure with: we may know more next time
                    return kernel
                known[choice.of] = fastest
                self._keep(device.name, choice.of, fastest)
            return choice.kernels[known[choice.of]]

    def _keep(self, device: str, of: str, name: str) -> None:
        """Write it to the file, with what others have written there meanwhile; if that is impossible, no matter."""
        if self.path is None:
            return
        found = _read(self.path)
        found.setdefault(device, {})[of] = name
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            number, made = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.name)
            try:
                with os.fdopen(number, "w", encoding="utf-8") as file:
                    json.dump(found, file, indent=1, sort_keys=True)
                Path(made).replace(self.path)
            except OSError:
                Path(made).unlink()
                raise


def best(kernel: Kernel, device: Device) -> Kernel:
    """The fastest of the kernels among which there is a choice."""
    if kernel.choice is None or os.environ.get(VARIABLE, "").strip().lower() in _OFF:
        return kernel
    return _ours().best(kernel, device)


@functools.cache
def _ours() -> Tuning:
    return Tuning(place())


def place() -> Path | None:
    """Where the file is; None if the user has no folder for caches."""
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    caches = Path(os.environ.get(variable, ""))
    try:
        if not caches.is_absolute():
            caches = Path.home() / ".cache"
    except RuntimeError:
        return None
    return caches / "tensorken" / "wgpu-tuning.json"


def _read(path: Path | None) -> Found:
    """What is in the file; nothing, if it is not there or damaged."""
    try:
        found: Any = {} if path is None else json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {device: dict(names) for device, names in found.items() if isinstance(names, dict)}


def _fastest(kernels: Mapping[str, Kernel], device: Device) -> str | None:
    """The name of the fastest; None if none could be run."""
    times: dict[str, float] = {}
    for name, kernel in kernels.items():
        with contextlib.suppress(BackendError):  # it may ask for more than this device has
            times[name] = measured(kernel, device)
    return min(times, key=times.__getitem__, default=None)


def measured(kernel: Kernel, device: Device) -> float:
    """How many seconds a kernel takes, on memory with anything in it."""
    text = special(kernel.template)
    pipeline = device.pipeline(text.code, len(kernel.reads), len(kernel.writes))
    uniform = device.uniform(text.uniform)
    memories = [device.allocate(size_of(v)) for v in (*kernel.reads, *kernel.writes)]

    def run(times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            device.run(pipeline, uniform, memories, kernel.groups)
        device.read(memories[-1], 4)
        return time.perf_counter() - start

    run(1)  # which compiles it
    once = run(1)
    if once > LONG:
        return once
    return min([run(RUNS) for _ in range(ROUNDS)]) / RUNS
