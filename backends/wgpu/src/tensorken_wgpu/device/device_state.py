"""The state of a device: whether it can still be used, and the errors to raise if not."""

from __future__ import annotations

from tensorken.programs.lost_memory import forget_memory
from tensorken_core.errors import BackendError
from tensorken_wgpu.device.failures import ExhaustedError, LostDeviceError, is_exhausted, is_lost, reason
from tensorken_wgpu.device.forks import forked_error


class DeviceState:
    """The state of a device.

    Args:
        name: of the device, with its driver.
        lost_reason: why the previous device was lost, if this one replaces it.

    Attributes:
        name: of the device.
        lost: why it cannot be used any more, or None.
    """

    def __init__(self, name: str, lost_reason: str | None) -> None:
        self.name = name
        self.lost: str | None = None
        self._lost_reason = lost_reason
        self._detached = False

    def check(self) -> None:
        """Check that the device can be used.

        Raises:
            LostDeviceError: if it was lost.
        """
        if self.lost is not None:
            raise self.lost_error()

    def lost_error(self) -> LostDeviceError:
        """The error for a lost device."""
        if self._detached:
            return forked_error(self.name)
        return LostDeviceError(
            f"wgpu: {self.name} was lost ({self.lost}), and all tensors on it; make them again from your own data"
        )

    def mark_lost(self, reason_lost: str) -> LostDeviceError:
        """Record that the device is lost, and return the error to raise."""
        self.lost = reason_lost
        forget_memory()
        return self.lost_error()

    def detach(self) -> None:
        """Record that the device belongs to the process from which this one was forked."""
        self._detached = True
        self.lost = "this process was forked from one that used it"

    def foreign_error(self) -> BackendError:
        """The error for a memory of another device."""
        if self._lost_reason is not None:
            return LostDeviceError(
                f"wgpu: a tensor that was on {self.name} before it was lost ({self._lost_reason}); make it again "
                "from your own data"
            )
        return BackendError(f"wgpu: a tensor that is not on {self.name}; move it there with .to(...)")

    def driver_error(self, error: Exception, action: str) -> BackendError:
        """The error for an error of the driver."""
        if is_lost(error):
            return self.mark_lost(reason(error))
        error_type = ExhaustedError if is_exhausted(error) else BackendError
        return error_type(f"wgpu: {self.name}: {action}: {reason(error)}")
