"""Adapters: the GPUs that WebGPU finds, the best first, and the names by which users select them."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import wgpu

from tensorken_core.errors import BackendError
from tensorken_wgpu.device import forks
from tensorken_wgpu.device.cffi_types import parse_together
from tensorken_wgpu.device.limits import FEATURES, features_of, limits_of

_ADAPTER_TYPES = {
    "DiscreteGPU": "discrete GPU",
    "IntegratedGPU": "integrated GPU",
    "VirtualGPU": "virtual GPU",
    "Unknown": "unknown kind",
    "CPU": "software, on the processor",
}
_WITHOUT_COMPUTE = ("OpenGL", "OpenGLES")

NO_ADAPTER = (
    "wgpu: there is no adapter for Vulkan, Metal or Direct3D 12; install the GPU's driver, or a software driver "
    "(on Debian and Ubuntu: apt-get install mesa-vulkan-drivers)"
)


@functools.cache
def adapters() -> tuple[Any, ...]:
    """All adapters on Vulkan, Metal or Direct3D 12: discrete GPUs first, software last."""
    parse_together()
    usable = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] not in _WITHOUT_COMPUTE]
    for adapter in usable:
        forks.register_adapter(adapter)
    order = [*_ADAPTER_TYPES]
    return tuple(sorted(usable, key=lambda a: order.index(a.info["adapter_type"])))


def names() -> tuple[str, ...]:
    """The name by which users select each adapter: the device in lower case, numbered among identical ones.

    Raises:
        BackendError: if there is none.
    """
    available = adapters()
    if not available:
        raise BackendError(NO_ADAPTER)
    return numbered([short(a.info["device"]) for a in available])


def short(device: str) -> str:
    """A name without spaces.

    >>> short("NVIDIA GeForce RTX 4090"), short("llvmpipe (LLVM 15.0.6, 256 bits)"), short("")
    ('nvidia-geforce-rtx-4090', 'llvmpipe', 'gpu')
    """
    return re.sub(r"[^a-z0-9.]+", "-", re.sub(r"\(.*?\)", "", device.lower())).strip("-") or "gpu"


def numbered(repeated: list[str]) -> tuple[str, ...]:
    """Unique names: repeated ones are numbered.

    >>> numbered(["left", "right", "left"])
    ('left', 'right', 'left-2')
    """
    seen: Counter[str] = Counter()
    unique = []
    for name in repeated:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return tuple(unique)


def adapter_of(device: str | None) -> Any:
    """The adapter of this name or number; the first one for None.

    Raises:
        BackendError: if there is none, or none of that name.
    """
    known = names()
    if device is None:
        return adapters()[0]
    name = device.strip().lower()
    if name in known:
        return adapters()[known.index(name)]
    if name.isdecimal() and int(name) < len(known):
        return adapters()[int(name)]
    available = ", ".join([f"{i}: {choice}" for i, choice in enumerate(known)])
    raise BackendError(f"wgpu: there is no device {device!r}; there is {available}")


def find_again(adapter: Any) -> Any:
    """The same adapter, found again after its driver has failed.

    Raises:
        BackendError: if it is not there any more.
    """
    forks.check_not_forked(name_of(adapter))
    before = adapters()
    adapters.cache_clear()
    current = adapters()
    matches = [a for a in current if a.info == adapter.info]
    if not matches:
        raise BackendError(f"wgpu: {name_of(adapter)} is not there any more")
    index = before.index(adapter) if adapter in before else len(current)
    return current[index] if index < len(current) and current[index] in matches else matches[0]


def choice(adapter: Any) -> str:
    """The name by which users select an adapter; its device name if it is not available any more."""
    available = adapters()
    return names()[available.index(adapter)] if adapter in available else short(adapter.info["device"])


def name_of(adapter: Any) -> str:
    """The name for messages: the device, its driver, and the graphics API."""
    info = adapter.info
    return f"{info['device']} ({info['description']}, {info['backend_type']})"


def facts(device: str) -> Mapping[str, str]:
    """A device's driver, type, and relevant limits and features.

    Raises:
        BackendError: if there is no such device.
    """
    adapter = adapter_of(device)
    info, limits = adapter.info, limits_of(adapter)
    features = features_of(adapter)
    return {
        "device": info["device"],
        "driver": f"{info['description'] or 'unknown'}, through {info['backend_type']}",
        "kind": _ADAPTER_TYPES[info["adapter_type"]],
        "largest tensor": in_bytes(limits["max-buffer-size"]),
        "largest binding": in_bytes(limits["max-storage-buffer-binding-size"]),
        "bindings of a kernel": str(limits["max-storage-buffers-per-shader-stage"]),
        "workgroup": f"{limits['max-compute-invocations-per-workgroup']} invocations, "
        f"{in_bytes(limits['max-compute-workgroup-storage-size'])}",
        "features": ", ".join([name for name in FEATURES if name in features]) or "none",
    }


def in_bytes(size: int) -> str:
    """A number of bytes, in the largest unit that fits.

    >>> in_bytes(512), in_bytes(2**15), in_bytes(2**31 - 1), in_bytes(2**27 + 2**26)
    ('512 B', '32 KiB', '2 GiB', '192 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1023.5 or unit == "GiB":
            break
        size /= 1024  # type: ignore[assignment]
    return f"{size:.4g} {unit}"
