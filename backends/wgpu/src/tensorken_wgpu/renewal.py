"""Renewal: what was made ready for a device is made ready again for the one that replaces it when it is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tensorken_wgpu.device import Device
from tensorken_wgpu.programs import Array

Run = Callable[[Sequence[Array]], Sequence[Array]]


class OnDevice(Protocol):
    """What has a device, which may come to be another one."""

    @property
    def device(self) -> Device:
        """The one that there is now."""
        ...


class Renewed:
    """What runs on the device that there is.

    Args:
        on: makes it ready for a device.
        backend: has the device.

    Raises:
        BackendError: if the device refuses a kernel.
    """

    def __init__(self, on: Callable[[Device], Run], backend: OnDevice) -> None:
        self._on = on
        self._backend = backend
        self._device = backend.device
        self._run = on(self._device)

    def __call__(self, inputs: Sequence[Array]) -> Sequence[Array]:
        device = self._backend.device
        if device is not self._device:
            self._run, self._device = self._on(device), device
        return self._run(inputs)
