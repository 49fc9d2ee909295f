"""The backend's entry point for the plugin host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorken_core.host.plugin import BackendEntry, hookimpl


@hookimpl
def tensorken_backend() -> BackendEntry:
    """The wgpu backend, on each adapter that WebGPU finds."""

    def load(device: str | None = None) -> Any:
        from tensorken.lazy.interpreter import Lazy
        from tensorken_wgpu.backend import Wgpu
        from tensorken_wgpu.device.adapters import adapter_of
        from tensorken_wgpu.device.device import Device

        return Lazy(Wgpu(Device(adapter_of(device))))

    def devices() -> Sequence[str]:
        from tensorken_wgpu.device.adapters import names

        return names()

    def facts(device: str) -> Mapping[str, str]:
        from tensorken_wgpu.device.adapters import facts

        return facts(device)

    return BackendEntry("wgpu", load, summary="any GPU, through WebGPU", devices=devices, facts=facts)
