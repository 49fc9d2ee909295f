"""Limits: what a device takes, which we look at before its driver does; some drivers accept more and then go wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

WISHED = (
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
"""The limits that matter; a device is opened with all that its adapter has of each."""

FEATURES = ("shader-f16", "shader-f64", "shader-int64", "subgroup")
"""What a device is opened with where its adapter has it."""

MOST_BINDINGS = 32
"""How many memories a kernel has at most, though an adapter allow more."""

SHARE = 0.75
"""How much of the machine's memory a device in software may take: above that, systems end processes without a word."""

# They begin with what is plain text, so that a search skips to where it stands: a kernel is long.
_WORKGROUP_VARIABLE = re.compile(r"var\s*<\s*workgroup\s*>\s*(\w+)\s*:\s*([^;=]+);")
_WORKGROUP_SIZE = re.compile(
    r"@workgroup_size\s*\(\s*(\d+)u?\s*(?:,\s*(\d+)u?\s*)?(?:,\s*(\d+)u?\s*)?,?\s*\)"
)
_ARRAY = re.compile(r"array<(.*),(\d+)u?>")
_VECTOR = re.compile(r"vec([234])(?:<(.*)>|([fhiu]))")
_SCALARS = {"f32": 4, "i32": 4, "u32": 4, "bool": 4, "f16": 2, "f64": 8, "i64": 8, "u64": 8}
_SHORT = {"f": "f32", "i": "i32", "u": "u32", "h": "f16"}


def limits_of(adapter: Any) -> dict[str, int]:
    """The limits of an adapter that matter."""
    return {name: int(adapter.limits[name]) for name in WISHED}


def features_of(adapter: Any) -> frozenset[str]:
    """What an adapter has of what a device is opened with."""
    return frozenset(FEATURES) & frozenset(adapter.features)


def capacity_of(adapter: Any) -> int | None:
    """How many bytes may be in use at once, where that is known before the driver fails; None where it is not.

    A driver in software never says that it has none left: it takes what it is asked for, and the system ends the
    process.
    """
    if adapter.info["adapter_type"] != "CPU":
        return None
    known = [size for size in (_physical(), _allotted()) if size]
    return int(min(known) * SHARE) if known else None


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return None


def _allotted(path: Path = Path("/sys/fs/cgroup/memory.max")) -> int | None:
    """What a container has."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # there is none, or it is "max"
        return None


def excess(text: str, limits: Mapping[str, int]) -> str | None:
    """What a kernel asks for above a limit; None if nothing is found.  Numbers only: names are left to the driver.

    >>> limits = {"max-compute-workgroup-storage-size": 1024}
    >>> excess("var<workgroup> tile: array<vec4<f32>, 65>;", limits)
    '1040 bytes of workgroup memory, of at most 1024 (max-compute-workgroup-storage-size)'
    """
    asked = [(workgroup_bytes(text), "bytes of workgroup memory", "max-compute-workgroup-storage-size")]
    for found in _WORKGROUP_SIZE.finditer(text):
        sizes = [int(n or 1) for n in found.groups()]
        asked += [
            (n, f"invocations along {axis}", f"max-compute-workgroup-size-{axis}")
            for n, axis in zip(sizes, "xyz", strict=True)
        ]
        asked.append((prod(sizes), "invocations in a workgroup", "max-compute-invocations-per-workgroup"))
    for amount, what, limit in asked:
        if amount > limits.get(limit, amount):
            return f"{amount} {what}, of at most {limits[limit]} ({limit})"
    return None


def workgroup_bytes(text: str) -> int:
    """How much workgroup memory a kernel declares, as far as its types are written with numbers."""
    return sum([bytes_of("".join(kind.split())) for _, kind in _WORKGROUP_VARIABLE.findall(text)])


def bytes_of(kind: str) -> int:
    """The size of a type of WGSL, written without spaces; 0 of one that is not known.

    >>> [
    ...     bytes_of(kind)
    ...     for kind in ("u32", "vec4f", "array<vec3<f32>,2>", "array<array<f16,8>,4>", "atomic<u32>")
    ... ]
    [4, 16, 32, 64, 4]
    """
    if array := _ARRAY.fullmatch(kind):
        return _stride(array[1]) * int(array[2])
    if vector := _VECTOR.fullmatch(kind):
        return int(vector[1]) * _SCALARS.get(vector[2] or _SHORT[vector[3]], 0)
    return _SCALARS.get(kind.removeprefix("atomic<").removesuffix(">"), 0)


def _stride(kind: str) -> int:
    """From one element of an array to the next: vectors of three lie as those of four."""
    size = bytes_of(kind)
    return size * 4 // 3 if kind.startswith("vec3") else size
