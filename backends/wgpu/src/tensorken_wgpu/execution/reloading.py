"""Programs that are loaded again when their device was lost and reopened."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program
from tensorken_wgpu.device.device import Device
from tensorken_wgpu.execution.programs import Array, LoadedProgram


class HasDevice(RawTensor[Array]):
    """Has a device, which may be replaced."""

    @property
    @abstractmethod
    def device(self) -> Device:
        """The current device."""


class ReloadingProgram:
    """Runs a program on the current device.

    Args:
        load: loads the program on a device.
        backend: has the device.

    Attributes:
        typed: the program whose inputs are checked in each call; None if the caller has checked them.

    Raises:
        BackendError: if the device refuses a kernel.
    """

    def __init__(self, load: Callable[[Device], LoadedProgram], backend: HasDevice) -> None:
        self._load = load
        self._backend = backend
        self._device = backend.device
        self._run = load(self._device)
        self.typed: Program | None = None

    def __call__(self, inputs: Sequence[Array], *context: Any) -> Sequence[Array]:
        if self.typed is not None:
            self.typed.check_inputs(self._backend, inputs, repeats=True)
        return self.loaded()(inputs, *context)

    def loaded(self) -> LoadedProgram:
        """The program on the current device."""
        device = self._backend.device
        if device is not self._device:
            self._run, self._device = self._load(device), device
        return self._run
