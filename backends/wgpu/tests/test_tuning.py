"""Tuning: the fastest of several kernels is measured once for similar shapes, and kept in a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorken_core.errors import BackendError
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_wgpu.device import measurements
from tensorken_wgpu.device.adapters import adapter_of
from tensorken_wgpu.device.device import Device
from tensorken_wgpu.device.measurements import FORMAT, Measurements, generator_version
from tensorken_wgpu.device.pipelines import Source
from tensorken_wgpu.execution import tuning
from tensorken_wgpu.execution.planning import plan
from tensorken_wgpu.execution.programs import LoadedProgram
from tensorken_wgpu.execution.tuning import Times, Tuning, best
from tensorken_wgpu.kernels.kernel import Kernel
from tensorken_wgpu.wgsl.single_op import Value, single
from tensorken_wgpu.wgsl.target import Target

HARDWARE = Target(32, 2**27, False)


class Named:
    """A device of which only the names are used."""

    name = "some GPU (driver 1, Vulkan)"
    hardware = "some GPU (Vulkan)"

    def __init__(self, driver: str = "driver 1") -> None:
        self.driver = driver
        self.compiled: list[list[Source]] = []

    def compile(self, sources: list[Source]) -> None:
        self.compiled.append(sources)


DEVICE: Any = Named()


def kernel(rows: int = 32, inner: int = 64, columns: int = 32) -> Kernel:
    """The kernel of a product planned for a GPU, with a choice."""
    shapes = (rows, inner, 1), (1, inner, columns)
    program: Any = single(OPS["fused_multiply_add"], [Value(s, DTYPES["float32"]) for s in shapes], ((1,),))
    (step,) = plan(program, HARDWARE).steps
    return step.kernel


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the kernels measured so far, for each choice; the last one is the fastest."""
    calls: list[list[str]] = []

    def measure(kernels: Any, device: Any, is_idle: bool) -> Times:
        calls.append([*kernels])
        return {name: 1.0 / (i + 1) for i, name in enumerate(kernels)}

    monkeypatch.setattr(tuning, "measure", measure)
    return calls


def kept(path: Path) -> dict[str, Any]:
    """The numbers in the file."""
    entry: dict[str, Any] = json.loads(path.read_text())["devices"][DEVICE.hardware]
    return entry


@pytest.fixture
def fresh(raw: Any) -> Device:
    """A device for this test only; `raw` skips tests without an adapter."""
    return Device(adapter_of(None))


def fastest_of(found: Tuning, kernel: Kernel, device: Any) -> Kernel:
    (fastest,) = found.best([kernel], device)
    return fastest


def last(kernel: Kernel) -> Kernel:
    assert kernel.choice is not None
    return [*kernel.choice.kernels.values()][-1]


def test_the_fastest_is_measured_once_and_the_times_are_kept(
    tmp_path: Path, measured: list[list[str]]
) -> None:
    path, found = tmp_path / "deep" / "tuning.json", kernel()
    first = Tuning(Measurements(path))
    assert found.choice is not None
    assert 2 <= len(found.choice.kernels) <= 8
    assert fastest_of(first, found, DEVICE) is last(found)
    similar = kernel(36, 68, 60)
    assert fastest_of(first, similar, DEVICE) is last(similar)
    assert fastest_of(Tuning(Measurements(path)), found, DEVICE) is last(found)
    assert measured == [[*found.choice.kernels]]
    fastest_of(Tuning(Measurements(path)), kernel(32, 128, 32), DEVICE)
    assert len(measured) == 2
    entry = kept(path)
    assert (entry["driver"], entry["kernels"]) == (DEVICE.driver, generator_version())
    assert len(entry["measured"]) == 2
    assert entry["measured"][found.choice.key] == {
        name: 1.0 / (i + 1) for i, name in enumerate(found.choice.kernels)
    }
    assert [x.name for x in path.parent.iterdir()] == ["tuning.json"]


def test_the_kernels_of_all_choices_of_a_program_are_compiled_at_once(
    tmp_path: Path, measured: list[list[str]]
) -> None:
    device: Any = Named()
    known, new = kernel(), [kernel(256, 64, 256), kernel(256, 65, 256)]
    plain = replace(known, choice=None)
    found = Tuning(Measurements(tmp_path / "tuning.json"))
    fastest_of(found, known, device)
    device.compiled.clear()
    assert found.best([plain, *new, known], device) == [plain, *map(last, new), last(known)]
    (sources,) = device.compiled
    assert {source.text for source in sources} == {
        tuning.source_of(x).text for y in new if y.choice is not None for x in y.choice.kernels.values()
    }
    assert len(measured) == 1 + len({x.choice.key for x in new if x.choice is not None})


def test_another_driver_or_other_kernels_are_measured_anew(
    tmp_path: Path, measured: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, found = tmp_path / "tuning.json", kernel()
    fastest_of(Tuning(Measurements(path)), found, DEVICE)
    fastest_of(Tuning(Measurements(path)), found, DEVICE)
    assert len(measured) == 1
    updated: Any = Named("driver 2")
    fastest_of(Tuning(Measurements(path)), found, updated)
    assert len(measured) == 2
    assert kept(path)["driver"] == "driver 2"
    monkeypatch.setattr(measurements, "generator_version", lambda: "other")
    fastest_of(Tuning(Measurements(path)), found, updated)
    assert len(measured) == 3
    assert kept(path)["kernels"] == "other"


def test_damaged_times_are_measured_anew(tmp_path: Path, measured: list[list[str]]) -> None:
    path, found = tmp_path / "tuning.json", kernel()
    assert found.choice is not None
    names, key = [*found.choice.kernels], found.choice.key
    damaged: list[Any] = [
        3,
        "tile",
        [],
        {},
        {"another kernel": 1.0},
        dict.fromkeys(names[1:], 1.0),
        dict.fromkeys(names, -1.0),
        dict.fromkeys(names, 0),
        dict.fromkeys(names, "fast"),
        dict.fromkeys(names, True),
        dict.fromkeys(names, float("nan")),
        dict.fromkeys(names),
        {name: [1.0] for name in names},
    ]
    for value in damaged:
        Measurements(path).keep(DEVICE, key, value)
        assert fastest_of(Tuning(Measurements(path)), found, DEVICE) is last(found), value
    assert len(measured) == len(damaged)
    # a kernel that this version does not have is ignored
    Measurements(path).keep(DEVICE, key, {**dict.fromkeys(names, 1.0), names[0]: 0.5, "gone": 0.1})
    assert fastest_of(Tuning(Measurements(path)), found, DEVICE).template == found.template
    assert len(measured) == len(damaged)


def test_a_damaged_file_is_replaced(tmp_path: Path, measured: list[list[str]]) -> None:
    path, found = tmp_path / "tuning.json", kernel()
    assert found.choice is not None
    good = f'"format": {FORMAT}, "devices"'
    texts = [
        "",
        "{",
        "[" * 100_000,
        "[1]",
        '{"some GPU": {"x": "tile"}}',  # the layout of earlier versions
        f"{{{good}: 3}}",
        f'{{{good}: {{"{DEVICE.hardware}": 3}}}}',
        f'{{{good}: {{"{DEVICE.hardware}": {{"measured": []}}}}}}',
    ]
    for text in texts:
        for encoding in ("utf-16", "utf-8"):
            path.write_text(text, encoding=encoding)
            assert fastest_of(Tuning(Measurements(path)), found, DEVICE) is last(found)
        assert found.choice.key in kept(path)["measured"]
    assert len(measured) == 2 * len(texts)


def test_an_unwritable_folder_is_ignored(tmp_path: Path, measured: list[list[str]]) -> None:
    (tmp_path / "file").write_text("")
    found = kernel()
    for path in (tmp_path / "file" / "tuning.json", tmp_path):
        with pytest.warns(
            RuntimeWarning, match="tensorken: the (cache|file) .*(is no folder|is no file|cannot be read)"
        ):
            assert fastest_of(Tuning(Measurements(path)), found, DEVICE) is last(found)
    assert fastest_of(Tuning(Measurements(None)), found, DEVICE) is last(found)


class Clock:
    """A device whose kernels take known times, which fall to a fifth once it has worked for `WARM_UP`."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.known = seconds
        self.worked = 0.0
        self.order: list[str] = []
        self.compiled: list[str] = []

    def compile(self, sources: list[str]) -> None:
        self.compiled += sources

    def seconds(self, dispatches: list[str]) -> float:
        slow = 5.0 if self.worked < tuning.WARM_UP else 1.0
        time = slow * sum([self.known[name] for name in dispatches])
        self.worked += time
        self.order.append(dispatches[0])
        return time


def test_kernels_are_measured_in_turn_at_the_full_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    clock: Any = Clock({"a": 1.0e-3, "b": 0.9e-3, "c": 1.2e-3, "slow": 8e-3})

    def dispatch_of(kernel: Any, device: Any, memories: Any) -> Any:
        if kernel == "refused":
            raise BackendError("too much workgroup memory")
        return kernel

    monkeypatch.setattr(tuning, "dispatch_of", dispatch_of)
    monkeypatch.setattr(tuning, "source_of", lambda kernel: kernel)
    monkeypatch.setattr(tuning.time, "perf_counter", lambda: clock.worked)
    kernels: Any = {name: name for name in ("a", "refused", "b", "c", "slow")}
    times = tuning.measure(kernels, clock)
    assert clock.compiled == [*kernels]  # at once
    assert times.pop("refused") is None
    assert times == pytest.approx(clock.known)  # none was measured while the clock was low
    assert clock.order[-3 * tuning.ROUNDS :] == ["a", "b", "c"] * tuning.ROUNDS


def test_times_are_those_of_the_device_or_of_the_host(fresh: Device) -> None:
    memories: dict[Any, Any] = {}
    dispatch = tuning.dispatch_of(kernel(256, 256, 256), fresh, memories)
    assert fresh.has_timestamps == ("timestamp-query" in fresh.features)
    fresh.seconds([dispatch])
    by_device = min([fresh.seconds([dispatch] * 4) for _ in range(3)])
    fresh._timer._tick = None
    by_host = min([fresh.seconds([dispatch] * 4) for _ in range(3)])
    assert 0 < by_device < 10 * by_host
    assert 0 < by_host < 10 * by_device
    fresh._timer._tick = 1e6  # a clock that the host's contradicts
    assert 0 < fresh.seconds([dispatch]) < 1e3
    assert not fresh.has_timestamps


STEP_KERNEL = """
var<immediate> loop_step: u32;
@group(0) @binding(0) var<uniform> u: vec4<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { y[0] = loop_step + 7u; }
"""


def test_kernels_of_a_step_are_measured_at_step_0(fresh: Device) -> None:
    if not fresh.has_steps:
        pytest.skip("the device cannot number steps")
    memory = fresh.allocate(4)
    pipeline = fresh.pipeline(STEP_KERNEL, 0, 1)
    dispatch = fresh.make_dispatch(pipeline, fresh.uniform(bytes(16)), [memory], (1, 1, 1))
    for tick in {fresh._timer._tick, None}:
        fresh._timer._tick = tick
        fresh.repeat("five", lambda: [dispatch], 5)
        assert fresh.read(memory, 4)[0] == 12
        assert fresh.seconds([dispatch]) > 0
        assert fresh.read(memory, 4)[0] == 7


def test_tuning_can_be_turned_off(monkeypatch: pytest.MonkeyPatch, measured: list[list[str]]) -> None:
    found = kernel()
    for value in ("off", "0", " Off "):
        monkeypatch.setenv(tuning.VARIABLE, value)
        assert best([found], DEVICE) == [found]
    assert not measured


def test_the_file_is_in_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path))
    assert tuning._default.__wrapped__().file.path == tmp_path / "tensorken" / "wgpu-tuning.json"


def test_a_program_runs_the_fastest_kernel(raw: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tuning.json"
    monkeypatch.setattr(tuning, "_default", lambda: Tuning(Measurements(path)))
    monkeypatch.delenv(tuning.VARIABLE, raising=False)
    shapes = (32, 64, 1), (1, 64, 32)
    program: Any = single(OPS["fused_multiply_add"], [Value(s, DTYPES["float32"]) for s in shapes], ((1,),))
    planned = plan(program, HARDWARE)
    (choice,) = [step.kernel.choice for step in planned.steps]
    a, b = [np.random.default_rng(i).normal(size=s).astype(np.float32) for i, s in enumerate(shapes)]
    ready = LoadedProgram(program.inputs, {}, program.outputs, planned, raw.device, raw.target)
    (y,) = ready([raw.new(x.shape, x.ravel(), DTYPES["float32"]) for x in (a, b)])
    np.testing.assert_allclose(raw.ravel(y), (a[:, :, 0] @ b[0]).ravel(), atol=1e-4)
    (times,) = Measurements(path).of(raw.device).values()
    assert choice is not None
    assert times.keys() == choice.kernels.keys()
    (run,) = ready._steps
    assert run.kernel is choice.kernels[min(times, key=times.__getitem__)]
