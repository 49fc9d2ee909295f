"""Life: whether a device can still be used, and what is raised where it cannot, or refuses something."""

from __future__ import annotations

from tensorken_core.errors import BackendError
from tensorken_wgpu.failures import ExhaustedError, LostDeviceError, is_exhausted, is_lost, reason
from tensorken_wgpu.forks import refusal


class Life:
    """That of a device.

    Args:
        name: of the device, with its driver.
        before: why the device was lost that this one replaces, if it does.

    Attributes:
        name: of the device.
        lost: why it can be used no more, or None.
    """

    def __init__(self, name: str, before: str | None) -> None:
        self.name = name
        self.lost: str | None = None
        self._before = before
        self._parted = False

    def check(self) -> None:
        """Go on only if the device can be used.

        Raises:
            LostDeviceError: if it was lost.
        """
        if self.lost is not None:
            raise self.gone()

    def gone(self) -> LostDeviceError:
        """What to raise for a device that was lost."""
        if self._parted:
            return refusal(self.name)
        return LostDeviceError(
            f"wgpu: {self.name} was lost ({self.lost}), and all tensors on it; make them anew from data of your own"
        )

    def lose(self, why: str) -> LostDeviceError:
        """Note that nothing can be done with the device any more; what to raise for that."""
        self.lost = why
        return self.gone()

    def part(self) -> None:
        """Note that the device is that of the process from which this one was forked."""
        self._parted = True
        self.lost = "this process was forked from one that used it"

    def foreign(self) -> BackendError:
        """What to raise for a memory that is not the device's."""
        if self._before is not None:
            return LostDeviceError(
                f"wgpu: a tensor that was on {self.name} before that was lost ({self._before}); make it anew from data "
                "of your own"
            )
        return BackendError(f"wgpu: a tensor that is not on {self.name}; move it there with .to(...)")

    def failure(self, error: Exception, what: str) -> BackendError:
        """What to raise for an error of the driver's."""
        if is_lost(error):
            return self.lose(reason(error))
        kind = ExhaustedError if is_exhausted(error) else BackendError
        return kind(f"wgpu: {self.name}: {what}: {reason(error)}")
