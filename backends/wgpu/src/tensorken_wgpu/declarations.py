"""Declarations: the capabilities of a device, some of which are measured when it is first opened.

The measured numbers are kept in `tensorken/wgpu-numbers.json` in the user's cache folder, see `measurements`.
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES
from tensorken_wgpu import accuracy
from tensorken_wgpu.device.failures import KernelError
from tensorken_wgpu.device.measurements import Measurements, cache_file
from tensorken_wgpu.kernels import subgroups
from tensorken_wgpu.subnormals import flushed
from tensorken_wgpu.wgsl.dtypes import supported_dtypes

if TYPE_CHECKING:
    from tensorken_wgpu.device.device import Device

FILE = "wgpu-numbers.json"

KEY = "numbers"
"""Of the measured numbers in the file."""


@functools.cache
def file() -> Measurements:
    """The file of the measured numbers."""
    return Measurements(cache_file(FILE))


def declare(backend: Any, kept: Measurements) -> None:
    """Set the capabilities of a backend, and whether its kernels use subgroups.

    Args:
        backend: on a device; it can run ops.
        kept: the measurements of earlier openings.

    Raises:
        BackendError: if the device is lost.
    """
    device: Device = backend.device
    dtypes = supported_dtypes(device.features)
    backend.capabilities = Capabilities(dtypes=dtypes)
    numbers: Any = kept.of(device).get(KEY)
    if not is_valid(numbers, dtypes):
        numbers = {
            "errors": {},
            "flushes": [*flushed(backend)],
            "subgroups": subgroups.are_right(device, backend.target),
        }
        with contextlib.suppress(KernelError):  # then nothing is declared of `/` and `sqrt`
            numbers["errors"] = accuracy.measure(device, dtypes)
            kept.keep(device, KEY, numbers)
    backend.capabilities = replace(
        backend.capabilities,
        ulp=accuracy.declared(numbers["errors"]),
        flushes_subnormals=tuple(numbers["flushes"]),
    )
    has_subgroups = numbers["subgroups"] and not subgroups.are_off()
    backend.target = replace(backend.target, has_subgroups=has_subgroups)


def is_valid(numbers: Any, dtypes: tuple[str, ...]) -> bool:
    """Whether numbers from a file are those of a device with these dtypes."""
    if not isinstance(numbers, dict):
        return False
    errors, flushes = numbers.get("errors"), numbers.get("flushes")
    floats = [name for name in dtypes if DTYPES[name].kind == "float"]
    expected = {f"{op}.{dtype}" for dtype in dtypes for op in accuracy.measured_ops(dtype)}
    return (
        isinstance(errors, dict)
        and errors.keys() == expected
        and all([type(error) is int and error >= 0 for error in errors.values()])
        and isinstance(flushes, list)
        and all([name in floats for name in flushes])
        and isinstance(numbers.get("subgroups"), bool)
    )
