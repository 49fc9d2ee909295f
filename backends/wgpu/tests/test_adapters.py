"""Adapters: which are found, how users select them, and the errors where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import wgpu

import tensorken as tk
from tensorken_core.errors import BackendError, MixedBackendError
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.device import adapters as adapters_module
from tensorken_wgpu.device.adapters import adapter_of, adapters, choice, facts, find_again, name_of, names
from tensorken_wgpu.device.device import Device


class Adapter:
    """The part of wgpu's adapters that is used here."""

    def __init__(self, device: str, kind: str = "DiscreteGPU", api: str = "Vulkan") -> None:
        self.info = {"device": device, "description": "driver 1", "adapter_type": kind, "backend_type": api}


def found(monkeypatch: pytest.MonkeyPatch, *there: Adapter) -> None:
    gpu = SimpleNamespace(enumerate_adapters_sync=lambda: list(there))
    monkeypatch.setattr(adapters_module, "wgpu", SimpleNamespace(gpu=gpu))
    adapters.cache_clear()


@pytest.fixture(autouse=True)
def clear_cache() -> Any:
    yield
    adapters.cache_clear()


def test_adapters_are_sorted_and_have_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    found(
        monkeypatch,
        Adapter("soft (LLVM)", "CPU"),
        Adapter("NVIDIA H100"),
        Adapter("NVIDIA H100", api="OpenGL"),
        Adapter("Intel(R) Arc", "IntegratedGPU"),
        Adapter("NVIDIA H100"),
    )
    assert names() == ("nvidia-h100", "nvidia-h100-2", "intel-arc", "soft")
    assert adapter_of(None) is adapter_of("0") is adapter_of("nvidia-h100") is adapters()[0]
    assert adapter_of("1") is adapter_of(" NVIDIA-H100-2 ") is adapters()[1]
    assert tuple(map(choice, adapters())) == names()
    assert choice(Adapter("NVIDIA H100")) == "nvidia-h100"
    assert name_of(adapter_of("soft")) == "soft (LLVM) (driver 1, Vulkan)"
    with pytest.raises(
        BackendError,
        match=r"no device '4'; there is 0: nvidia-h100, 1: nvidia-h100-2, 2: intel-arc, 3: soft$",
    ):
        adapter_of("4")
    with pytest.raises(BackendError, match="no device 'amd'"):
        adapter_of("amd")


def test_without_an_adapter_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, Adapter("NVIDIA H100", api="OpenGL"))
    for request in (names, lambda: adapter_of(None), lambda: adapter_of("1")):
        with pytest.raises(
            BackendError, match=r"no adapter for Vulkan, .*apt-get install mesa-vulkan-drivers"
        ):
            request()  # type: ignore[operator]


def test_an_adapter_is_found_again_after_its_driver_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    twins = Adapter("twin"), Adapter("twin")
    found(monkeypatch, *twins)
    former = adapter_of("twin-2")
    renewed = Adapter("twin"), Adapter("twin")
    gpu = SimpleNamespace(enumerate_adapters_sync=lambda: list(renewed))
    monkeypatch.setattr(adapters_module, "wgpu", SimpleNamespace(gpu=gpu))
    assert find_again(former) is renewed[1]
    found(monkeypatch, Adapter("other"), Adapter("twin"))
    assert find_again(former) is adapters()[1]
    found(monkeypatch, Adapter("other"))
    with pytest.raises(BackendError, match=r"twin \(driver 1, Vulkan\) is not there any more"):
        find_again(former)


def test_errors_distinguish_identical_devices(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each call wgpu returns a new adapter for the same GPU."""
    first = adapters()[0]
    twins = [a for _ in range(2) for a in wgpu.gpu.enumerate_adapters_sync() if a.info == first.info][:2]
    found(monkeypatch, *twins)
    a, b = [tk.ones(2, backend=tk.Lazy(Wgpu(Device(adapter_of(number))))) for number in ("0", "1")]
    with pytest.raises(MixedBackendError) as error:
        a + b
    name = names()[0]
    assert {f"Lazy(Wgpu('{name}'))", f"Lazy(Wgpu('{name}-2'))"} == {repr(x.interpreter.base) for x in (a, b)}
    assert all([repr(x.interpreter.base) in str(error.value) for x in (a, b)])


def test_the_facts_of_a_device(device: Any) -> None:
    description = facts(names()[0])
    assert description["device"] == adapters()[0].info["device"]
    assert description["driver"].endswith("through " + adapters()[0].info["backend_type"])
    assert description["bindings of a kernel"] == str(device.limits["max-storage-buffers-per-shader-stage"])
    assert all(description.values())


# ---- as users see it ---------------------------------------------------------------------------------------


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("TENSORKEN_")}
    return subprocess.run(
        [sys.executable, *command],
        env={**inherited, **variables},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


NOWHERE = {"VK_ICD_FILENAMES": "/nonexistent/none.json", "VK_DRIVER_FILES": "/nonexistent/none.json"}
"""Where Vulkan finds no driver."""


def test_probing_lists_each_adapter(device: Any) -> None:
    done = run("-m", "tensorken", "backends", "--probe", "--json")
    (backend,) = [b for b in json.loads(done.stdout)["backends"] if b["name"] == "wgpu"]
    assert backend["devices"] == list(names())
    assert backend["facts"] == {name: dict(facts(name)) for name in names()}


def test_the_environment_variable_selects_a_device(device: Any) -> None:
    show = "import tensorken as tk; x = tk.ones(2) + 1.0; print(x.backend, x.device, x.tolist(), tk.devices('wgpu'))"
    done = run("-c", show, TENSORKEN_BACKEND="wgpu:0")
    assert done.stdout == f"wgpu {names()[0]} [2.0, 2.0] {list(names())}\n"
    done = run("-c", show, TENSORKEN_BACKEND="wgpu:99")
    assert f"backend 'wgpu' has no device '99'; its devices are {', '.join(names())}\n" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux can a variable hide the drivers")
def test_doctor_says_what_to_install_without_an_adapter() -> None:
    done = run("-m", "tensorken", "doctor", **NOWHERE)
    assert "\n  wgpu (tensorken-wgpu " in done.stdout
    assert "apt-get install mesa-vulkan-drivers)" in done.stdout
    done = run("-c", "import tensorken as tk; tk.ones(2, backend='wgpu')", **NOWHERE)
    assert "install the GPU's driver, or a software driver" in done.stderr
