"""The sections of the report, in order."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import tensorken as tk
from tensorken_wgpu.device import adapters
from tensorken_wgpu.execution.tuning import is_off
from tensorken_wgpu.report import torch_cuda
from tensorken_wgpu.report.attention import attention
from tensorken_wgpu.report.bench import Bench, Row, attempt
from tensorken_wgpu.report.laws import laws
from tensorken_wgpu.report.memory_bound import memory_bound
from tensorken_wgpu.report.products import products
from tensorken_wgpu.report.trainings import trainings
from tensorken_wgpu.report.transfers import copies, host

WARM_UP, QUICK_WARM_UP = 0.5, 0.05
"""The seconds that the device works before a section."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report.

    Attributes:
        title: of it.
        rows: the measurements.
        seconds: that they took.
    """

    title: str
    rows: list[Row]
    seconds: float


def adapter(bench: Bench) -> Iterator[Row]:
    """The device, its driver, and the numbers that it declares."""
    device, found = bench.device, adapters.adapter_of(bench.name)
    names = ("tensorken-wgpu", "tensorken", "wgpu")
    yield Row("versions", facts={name: version(name) for name in names} | torch_cuda.facts(bench.torch))
    yield Row("machine", facts={"python": platform.python_version(), "system": platform.platform()})
    yield Row("device", facts=dict(adapters.facts(bench.name)))
    yield Row("adapters", facts={name: adapters.facts(name)["driver"] for name in adapters.names()})
    yield Row("opening", bench.opening)
    yield attempt("first result", first_result)
    yield Row(
        "measuring",
        facts={
            "clock": "of the device" if device.has_timestamps else "of the host",
            "tuning": "off" if is_off() else "on",
            "subgroups": "used" if bench.backend.target.has_subgroups else "not used",
        },
    )
    capabilities = bench.backend.capabilities
    yield Row("dtypes", facts={"dtypes": ", ".join(capabilities.dtypes)})
    yield Row(
        "subnormal numbers become zero", facts={"in": ", ".join(capabilities.flushes_subnormals) or "none"}
    )
    yield Row("largest errors in representable numbers", facts=dict(capabilities.ulp))
    yield Row("limits", facts=dict(device.limits))
    yield Row("features of the adapter", facts={"features": " ".join(sorted(found.features))})


def first_result() -> Row:
    """The time of the first result, whose kernel the driver compiles."""
    start = time.perf_counter()
    found = (tk.tensor([1.0, 2.0]) * 3.0 + 1.0).tolist()
    return Row("first result", time.perf_counter() - start, facts={"3x + 1 of 1 and 2": str(found)})


def special_values(bench: Bench) -> Iterator[Row]:
    """Results that drivers are known to get wrong."""
    inf, nan = float("inf"), float("nan")
    x = tk.tensor([inf, nan, -0.0, 1e-40, 3e38, -1.0])
    functions: dict[str, Callable[[tk.Tensor], tk.Tensor]] = {
        "x - x": lambda x: x - x,
        "x * 0": lambda x: x * 0,
        "x != x": lambda x: x != x,
        "maximum(x, 0)": lambda x: tk.maximum(x, 0.0),
        "log(x)": tk.log,
        "exp(x)": tk.exp,
        "1 / x": lambda x: 1.0 / x,
        "sqrt(x)": tk.sqrt,
        "x ** 0": lambda x: x**0.0,
    }
    for name, function in functions.items():

        def row(name: str = name, function: Any = function) -> Row:
            return Row(name, facts={"of inf, nan, -0.0, 1e-40, 3e38, -1.0": str(function(x).tolist())})

        yield attempt(name, row)


SECTIONS: dict[str, tuple[str, Callable[[Bench], Iterator[Row]]]] = {
    "adapter": ("The device", adapter),
    "special-values": ("Special values", special_values),
    "copies": ("Copies", copies),
    "host": ("Time of the host", host),
    "products": ("Products of matrices", products),
    "attention": ("Attention, float32", attention),
    "memory": ("Work limited by memory", memory_bound),
    "trainings": ("Steps of trainings", trainings),
    "laws": ("Laws of the conformance kit", laws),
}
"""For each section its title and its measurements."""


def measured(bench: Bench, name: str, show: Callable[[Row], None]) -> Section:
    """A section of the report; its rows are shown as they come."""
    title, rows = SECTIONS[name]
    start = time.perf_counter()
    found: list[Row] = []

    def run() -> Row:
        _warm_up(bench)
        for row in rows(bench):
            found.append(row)
            show(row)
        return Row("")

    failed = attempt("section", run)
    if failed.error:
        found.append(failed)
        show(failed)
    return Section(title, found, time.perf_counter() - start)


def _warm_up(bench: Bench) -> None:
    """Let the device work, so that its clock is up."""
    x = tk.ones((64, 64) if bench.is_small else (1024, 1024))
    product = tk.jit(lambda x: x @ x)
    end = time.perf_counter() + (0.0 if bench.tiny else QUICK_WARM_UP if bench.quick else WARM_UP)
    while time.perf_counter() < end:
        product(x).realize()
        bench.wait()
