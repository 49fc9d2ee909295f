"""After a device was lost, all that is made anew works: no cache gives values in the memory of the lost device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.device.device import Device
from tensorken_wgpu.device.failures import LostDeviceError

NUMBERS = np.arange(5, dtype=np.float32)

EAGER: dict[str, Callable[[], Any]] = {
    "zeros": lambda: tk.zeros((3, 3)),
    "an op of ones": lambda: tk.exp(tk.ones((3, 3))),
    "arange": lambda: tk.arange(5),
    "eye": lambda: tk.eye(3) @ tk.eye(3),
    "a sum": lambda: tk.ones(5).sum(),
    "a gradient": lambda: tk.grad(lambda x: (x * x).sum())(tk.ones(4)),
    "a cumulative sum": lambda: tk.cumsum(tk.ones(700)),
    "an inverse": lambda: tk.linalg.inv(tk.eye(3) * 2.0),
    "a loop": lambda: tk.scan(lambda c, x: (c + x, c), tk.zeros(()), tk.arange(5.0))[0],
    "random numbers": lambda: tk.random.normal(tk.random.key(0), (5,)),
}
"""Functions without operands."""

JITTED: dict[str, Callable[[Any], Any]] = {
    "no constant": lambda x: (x * 2).sum(),
    "a range": lambda x: x + tk.exp(tk.arange(5.0)),
    "numpy's array": lambda x: x + NUMBERS,
    "a list": lambda x: x + tk.tensor([1.0, 2.0, 3.0, 4.0, 5.0]),
    "a gradient": lambda x: tk.grad(lambda y: (y * tk.tensor(NUMBERS)).sum())(x),
    "a loop": lambda x: tk.scan(lambda c, y: (c + y, c), tk.zeros(()), x * tk.tensor(NUMBERS))[0],
    "a transform": lambda x: tk.real(tk.fft.fft(x)),
}
"""Functions of five numbers, with constants of several origins."""


def test_all_that_is_made_after_a_loss_works(device: Device) -> None:
    lazy = tk.Lazy(Wgpu(Device(device._adapter)))
    jitted = {name: tk.jit(f) for name, f in JITTED.items()}

    def results() -> dict[str, Any]:
        found = {name: f() for name, f in EAGER.items()}
        for _ in range(2):  # the second call takes the fast path
            found |= {f"jit: {name}": f(tk.tensor(NUMBERS)) for name, f in jitted.items()}
        for x in found.values():
            np.asarray(x)
        return found

    with tk.use_backend(lazy):
        before = results()  # which live on, so that caches keep them
        expected = {name: np.asarray(x) for name, x in before.items()}
        lazy.raw.device._state.mark_lost("unplugged")
        after = results()
        for name, x in after.items():
            np.testing.assert_array_equal(np.asarray(x), expected[name], err_msg=name)
        with pytest.raises(LostDeviceError, match="make it again from your own data"):
            np.asarray(before["a sum"] + 1.0)


@each_of("count", [1, 3])
def test_a_device_may_be_lost_again(count: int, device: Device) -> None:
    lazy = tk.Lazy(Wgpu(Device(device._adapter)))
    plus = tk.jit(lambda x: x + tk.arange(3.0))
    with tk.use_backend(lazy):
        for _ in range(count):
            assert plus(tk.ones(3)).tolist() == [1.0, 2.0, 3.0]
            lazy.raw.device._state.mark_lost("unplugged")
        assert plus(tk.ones(3)).tolist() == [1.0, 2.0, 3.0]
