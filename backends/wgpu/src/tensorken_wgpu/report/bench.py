"""The device under test, and the clock that measures calls on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tensorken as tk
from tensorken_wgpu.execution.programs import HOT_RUNS
from tensorken_wgpu.report.torch_cuda import cuda

if TYPE_CHECKING:
    from tensorken_wgpu.backend import Wgpu
    from tensorken_wgpu.device.device import Device

MAX_CALLS = 400
"""The most calls of one measurement."""

SLOW = 1.0
"""A call that takes this many seconds is measured once."""


@dataclass(slots=True)
class Row:
    """A measurement, or a fact.

    Attributes:
        name: of it.
        seconds: per call.
        rate: work per second.
        unit: of the work.
        share: of the rate of a copy on the device, for work that is limited by its memory.
        torch: the seconds of the same call in torch with CUDA.
        facts: others, by name.
        error: why it could not be measured.
    """

    name: str
    seconds: float | None = None
    rate: float | None = None
    unit: str = ""
    share: float | None = None
    torch: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    error: str = ""


def attempt(name: str, measure: Callable[[], Row]) -> Row:
    """The row of a measurement; an error becomes its row, so that the report goes on."""
    try:
        return measure()
    except Exception as error:  # noqa: BLE001 - the report has the errors
        lines = str(error).splitlines() or [""]
        return Row(name, error=f"{type(error).__name__}: {lines[0][:400]}")


class Bench:
    """The device under test.

    Args:
        name: of the device, as users select it.
        quick: whether small sizes and short measurements are enough.
        tiny: whether the smallest sizes are enough, for tests.
    """

    def __init__(self, name: str, quick: bool, tiny: bool = False) -> None:
        start = time.perf_counter()
        found: Any = tk.tensor(0.0, backend=f"wgpu:{name}").interpreter
        while not hasattr(found, "device"):
            found = found.raw
        self.opening = time.perf_counter() - start
        self.name = name
        self.backend: Wgpu = found
        self.quick = quick or tiny
        self.tiny = tiny
        self.copy_rate: float | None = None  # bytes read and written per second
        self.torch = cuda()
        self._fence = self.device.allocate(4)

    @property
    def device(self) -> Device:
        """The device."""
        return self.backend.device

    @property
    def is_small(self) -> bool:
        """Whether sizes are small: in software, and where little time is wanted."""
        return self.tiny or self.device.is_software

    def wait(self) -> None:
        """Wait until all work is done."""
        self.device.read(self._fence, 4)

    def seconds(self, call: Callable[[], Any], wait: Callable[[], Any] | None = None) -> float:
        """The seconds of a call: the best of rounds of many calls, each of which waits once."""
        finish = wait or self.wait
        length, rounds = (0.01, 1) if self.tiny else (0.1, 2) if self.quick else (0.3, 4)
        start = time.perf_counter()
        for _ in range(HOT_RUNS + 1):  # then kernels are compiled for their shapes
            call()
            finish()
            if time.perf_counter() - start > SLOW:
                break
        start = time.perf_counter()
        call()
        finish()
        once = time.perf_counter() - start
        if once > SLOW:
            return once
        count = max(1, min(MAX_CALLS, int(length / max(once, 1e-6))))
        found = []
        for _ in range(rounds):
            start = time.perf_counter()
            for _ in range(count):
                call()
            finish()
            found.append((time.perf_counter() - start) / count)
        return min(found)

    def torch_seconds(self, make_call: Callable[[Any], Callable[[], Any]]) -> float | None:
        """The seconds of a call in torch with CUDA; None without torch, or if it fails there.

        Args:
            make_call: from the module torch to the call.
        """
        if self.torch is None:
            return None
        try:
            return self.seconds(make_call(self.torch), self.torch.cuda.synchronize)
        except Exception:  # noqa: BLE001 - the report is about this backend
            return None

    def counted(
        self, call: Callable[[], Any], names: tuple[str, ...], calls: int
    ) -> Iterator[tuple[str, float]]:
        """How far the device's counters advance per call."""
        self.wait()
        before = self.device.statistics
        for _ in range(calls):
            call()
        self.device.submit()
        after = self.device.statistics
        for name in names:
            yield name, (after[name] - before[name]) / calls

    def host_seconds(self, call: Callable[[], Any], calls: int) -> float:
        """The time of this thread for a call, its submission included; the device works meanwhile."""
        self.wait()
        start = time.thread_time()
        for _ in range(calls):
            call()
        self.device.submit()
        return (time.thread_time() - start) / calls
