"""The limits of a device, checked before the driver is called, as some drivers accept more and then fail."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

LIMITS = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-uniform-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
    "max-compute-workgroup-storage-size",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-compute-workgroup-size-y",
    "max-compute-workgroup-size-z",
    "max-compute-workgroups-per-dimension",
    "min-storage-buffer-offset-alignment",
)
"""The relevant limits; a device is opened with the adapter's values."""

IMMEDIATES = "immediates"
"""The feature of numbers that kernels get when they run, without memory."""

SUBGROUPS = "subgroup"
"""The feature of invocations that exchange numbers directly, by wgpu's name."""

FEATURES = ("shader-f16", "shader-f64", "shader-int64", IMMEDIATES, SUBGROUPS, "timestamp-query")
"""The features that a device is opened with if its adapter has them."""

MAX_BINDINGS = 32
"""The most memories of a kernel, even if an adapter allows more."""

MEMORY_SHARE = 0.75
"""The share of the machine's memory that a software device may use: beyond it, systems kill processes without a
message."""

# The patterns begin with literal text, so that the search in a long kernel is fast.
_WORKGROUP_VARIABLE = re.compile(r"var\s*<\s*workgroup\s*>\s*(\w+)\s*:\s*([^;=]+);")
_WORKGROUP_SIZE = re.compile(
    r"@workgroup_size\s*\(\s*(\d+)u?\s*(?:,\s*(\d+)u?\s*)?(?:,\s*(\d+)u?\s*)?,?\s*\)"
)
_ARRAY = re.compile(r"array<(.*),(\d+)u?>")
_VECTOR = re.compile(r"vec([234])(?:<(.*)>|([fhiu]))")
_SCALARS = {"f32": 4, "i32": 4, "u32": 4, "bool": 4, "f16": 2, "f64": 8, "i64": 8, "u64": 8}
_SHORT = {"f": "f32", "i": "i32", "u": "u32", "h": "f16"}


def limits_of(adapter: Any) -> dict[str, int]:
    """The relevant limits of an adapter."""
    names = (*LIMITS, "max-immediate-size") if IMMEDIATES in adapter.features else LIMITS
    return {name: int(adapter.limits[name]) for name in names}


def features_of(adapter: Any) -> frozenset[str]:
    """The features that a device of this adapter is opened with."""
    return frozenset(FEATURES) & frozenset(adapter.features)


def capacity_of(adapter: Any) -> int | None:
    """The most bytes in use at once, where known before the driver fails, else None.

    A software driver never reports that memory is exhausted: it allocates, and the system kills the process.
    """
    if adapter.info["adapter_type"] != "CPU":
        return None
    known = [size for size in (_physical(), _container_limit()) if size]
    return int(min(known) * MEMORY_SHARE) if known else None


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return None


def _container_limit(path: Path | None = None) -> int | None:
    """The memory limit of a container."""
    try:
        return int((path or Path("/sys/fs/cgroup/memory.max")).read_text(encoding="ascii"))
    except (OSError, ValueError):  # no container, or the limit is "max"
        return None


def exceeded_limit(text: str, limits: Mapping[str, int]) -> str | None:
    """The first limit that a kernel exceeds; None if none is found.  Only literal numbers are checked.

    >>> limits = {"max-compute-workgroup-storage-size": 1024}
    >>> exceeded_limit("var<workgroup> tile: array<vec4<f32>, 65>;", limits)
    '1040 bytes of workgroup memory, of at most 1024 (max-compute-workgroup-storage-size)'
    """
    needs = [(workgroup_bytes(text), "bytes of workgroup memory", "max-compute-workgroup-storage-size")]
    for match in _WORKGROUP_SIZE.finditer(text):
        sizes = [int(n or 1) for n in match.groups()]
        needs += [
            (n, f"invocations along {axis}", f"max-compute-workgroup-size-{axis}")
            for n, axis in zip(sizes, "xyz", strict=True)
        ]
        needs.append((prod(sizes), "invocations in a workgroup", "max-compute-invocations-per-workgroup"))
    for amount, unit, limit in needs:
        if amount > limits.get(limit, amount):
            return f"{amount} {unit}, of at most {limits[limit]} ({limit})"
    return None


def workgroup_bytes(text: str) -> int:
    """The workgroup memory that a kernel declares, as far as its types have literal sizes."""
    return sum([bytes_of("".join(type_name.split())) for _, type_name in _WORKGROUP_VARIABLE.findall(text)])


def bytes_of(type_name: str) -> int:
    """The size of a WGSL type, written without spaces; 0 if it is unknown.

    >>> [
    ...     bytes_of(kind)
    ...     for kind in ("u32", "vec4f", "array<vec3<f32>,2>", "array<array<f16,8>,4>", "atomic<u32>")
    ... ]
    [4, 16, 32, 64, 4]
    """
    if array := _ARRAY.fullmatch(type_name):
        return _stride(array[1]) * int(array[2])
    if vector := _VECTOR.fullmatch(type_name):
        return int(vector[1]) * _SCALARS.get(vector[2] or _SHORT[vector[3]], 0)
    return _SCALARS.get(type_name.removeprefix("atomic<").removesuffix(">"), 0)


def _stride(type_name: str) -> int:
    """The stride of array elements: vectors of three take the space of four."""
    size = bytes_of(type_name)
    return size * 4 // 3 if type_name.startswith("vec3") else size
