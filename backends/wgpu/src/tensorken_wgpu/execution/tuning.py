"""Tuning: measure once which of several equivalent kernels is the fastest on a device, and keep the times in a file.

A GPU that idles has a low clock, so it works for a while before it is measured.  The kernels are then measured in
turn, several times each, so that a change of the clock meets all of them, and the least time of each counts.

The file is `tensorken/wgpu-tuning.json` in the user's cache folder, see `measurements`.  With
TENSORKEN_WGPU_TUNING=off nothing is measured, read or written: the kernel that is likely the fastest is used.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tensorken_core.errors import BackendError
from tensorken_core.host.variables import switch
from tensorken_wgpu.device.encoding import Dispatch
from tensorken_wgpu.device.measurements import Measurements, cache_file
from tensorken_wgpu.device.pipelines import Source
from tensorken_wgpu.wgsl.dtypes import size_of
from tensorken_wgpu.wgsl.templates import specialised_text

if TYPE_CHECKING:
    from tensorken_core.program.program import Variable
    from tensorken_wgpu.device.device import Device, Memory
    from tensorken_wgpu.kernels.kernel import Choice, Kernel

VARIABLE = "TENSORKEN_WGPU_TUNING"

FILE = "wgpu-tuning.json"

WARM_UP = 0.05
"""The seconds that a device works before it is measured."""

ROUNDS = 5
"""The number of measurements of each kernel."""

MEASURED = 0.002
"""The seconds of one measurement, in which a fast kernel runs repeatedly; systems reset GPUs whose submissions take
too long."""

MAX_RUNS = 64
"""The most runs of a kernel in one measurement."""

MAX_SECONDS = 0.5
"""After this time no further round begins."""

MAX_RATIO = 3.0
"""A kernel that takes this many times the time of the fastest is not measured again."""

Times = dict[str, float | None]
"""For each kernel of a choice the least seconds of a run; None if it cannot run."""


class Tuning:
    """The measurements.

    Args:
        file: in which they are kept.
    """

    def __init__(self, file: Measurements) -> None:
        self.file = file
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, Any]] = {}  # name of a device -> key of a choice -> times

    def best(self, kernels: Sequence[Kernel], device: Device) -> list[Kernel]:
        """The fastest of each kernel's choice; the kernel itself if it has none, or if none can be measured.

        The driver compiles the kernels of all choices that are not known yet at once, as it uses several processors.
        """
        choices = [kernel.choice for kernel in kernels if kernel.choice is not None]
        if not choices:
            return [*kernels]
        with self._lock:
            if device.name not in self._known:
                self._known[device.name] = self.file.of(device)
            known = self._known[device.name]
            new = {c.key: c for c in choices if fastest(known.get(c.key), c) is None}.values()
            device.compile([source_of(kernel) for choice in new for kernel in choice.kernels.values()])
            for number, choice in enumerate(new):
                times = measure(choice.kernels, device, is_idle=number == 0)
                if fastest(times, choice) is None:  # no memory is left to measure with: try next time
                    continue
                known[choice.key] = times
                self.file.keep(device, choice.key, times)
            return [_chosen(kernel, known) for kernel in kernels]


def _chosen(kernel: Kernel, known: Mapping[str, Any]) -> Kernel:
    """The fastest of a kernel's choice by the known times; the kernel itself without a choice or times."""
    if kernel.choice is None:
        return kernel
    name = fastest(known.get(kernel.choice.key), kernel.choice)
    return kernel if name is None else kernel.choice.kernels[name]


def best(kernels: Sequence[Kernel], device: Device) -> list[Kernel]:
    """The fastest of each kernel's choice."""
    return [*kernels] if is_off() else _default().best(kernels, device)


def is_off() -> bool:
    """Whether the user has turned the measurement off."""
    return not switch(VARIABLE, default=True)


@functools.cache
def _default() -> Tuning:
    return Tuning(Measurements(cache_file(FILE)))


def fastest(times: Any, choice: Choice) -> str | None:
    """The name of the fastest kernel of a choice; None if the times, which may come from a file, are not those of
    all its kernels.
    """
    if not isinstance(times, dict) or not choice.kernels.keys() <= times.keys():
        return None
    if not all([seconds is None or _is_time(seconds) for seconds in times.values()]):
        return None
    found = {name: times[name] for name in choice.kernels if times[name] is not None}
    return min(found, key=found.__getitem__, default=None)


def _is_time(seconds: Any) -> bool:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return is_number and math.isfinite(seconds) and seconds > 0


def measure(kernels: Mapping[str, Kernel], device: Device, is_idle: bool = True) -> Times:
    """The least seconds of each kernel, on memory with arbitrary contents; None for those that the device refuses.

    Args:
        kernels: by their names.
        device: runs them.
        is_idle: whether the device has to work first, until it reaches its full clock.
    """
    memories: dict[Variable, Memory] = {}
    times: Times = dict.fromkeys(kernels)
    ready: dict[str, Dispatch] = {}
    device.compile([source_of(kernel) for kernel in kernels.values()])
    for name, kernel in kernels.items():
        with contextlib.suppress(BackendError):  # it may exceed a limit of this device
            dispatch = dispatch_of(kernel, device, memories)
            device.seconds([dispatch])  # the driver may compile it now
            ready[name] = dispatch
    if ready and is_idle:
        work(next(iter(ready.values())), device)
    runs = {}
    for name in [*ready]:
        times[name] = once = device.seconds([ready[name]])
        runs[name] = max(1, min(MAX_RUNS, int(MEASURED / once)))
    start = time.perf_counter()
    for number in range(ROUNDS):
        if number and time.perf_counter() - start > MAX_SECONDS:
            break
        least = min([t for t in times.values() if t is not None], default=0.0)
        for name, dispatch in ready.items():
            known = times[name]
            if known is not None and known <= MAX_RATIO * least:
                times[name] = min(known, device.seconds([dispatch] * runs[name]) / runs[name])
    return times


def dispatch_of(kernel: Kernel, device: Device, memories: dict[Variable, Memory]) -> Dispatch:
    """The dispatch of a kernel, specialised for its shape.

    Args:
        kernel: to run.
        device: runs it.
        memories: of the values that it reads and writes; missing ones are added.

    Raises:
        BackendError: if the device refuses it, or has no memory left.
    """
    pipeline = device.pipeline(*source_of(kernel))
    uniform = device.uniform(specialised_text(kernel.template).uniform)
    for v in (*kernel.reads, *kernel.writes):
        if v not in memories:
            memories[v] = device.allocate(size_of(v))
    bound = [memories[v] for v in (*kernel.reads, *kernel.writes)]
    return device.make_dispatch(pipeline, uniform, bound, kernel.workgroups)


def source_of(kernel: Kernel) -> Source:
    """The text of a kernel, specialised for its shape."""
    text = specialised_text(kernel.template)
    return Source(text.code, len(kernel.reads), len(kernel.writes), kernel.is_proved)


def work(dispatch: Dispatch, device: Device, seconds: float = WARM_UP) -> None:
    """Run a kernel for some seconds, so that the device reaches its full clock."""
    runs, start = 1, time.perf_counter()
    while (left := seconds - (time.perf_counter() - start)) > 0:
        once = device.seconds([dispatch] * runs) / runs
        runs = max(1, min(MAX_RUNS, int(min(MEASURED, left) / once)))
