"""Measurements: JSON files in the user's cache folder with numbers that were measured on devices.

An entry holds for one device with one driver, and for one version of the code that writes kernels: with another
driver or after an update of this package the numbers are measured again, and replace the entry.  A file may be
deleted at any time; a damaged file counts as empty.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tensorken.cache_folder import cache_folder, read_file, write_file

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

FORMAT = 2
"""The version of the layout of the files."""

GENERATOR = ("tensorken_wgpu", "tensorken.kernels")
"""The packages that write kernels."""


class Measured(Protocol):
    """A device whose numbers are kept."""

    @property
    def hardware(self) -> str:
        """The name of the device, without its driver."""
        ...

    @property
    def driver(self) -> str:
        """The driver and its version."""
        ...


class Measurements:
    """A file of measurements.

    Args:
        path: of the file; None for no file.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def of(self, device: Measured) -> dict[str, Any]:
        """The numbers of a device, by key; empty if there are none for its driver and the current kernels."""
        return _numbers(self._read(), device)

    def keep(self, device: Measured, key: str, value: Any) -> None:
        """Add a number, or numbers, to the file, which others may have changed meanwhile; failures are ignored."""
        if self.path is None:
            return
        devices = self._read()
        devices[device.hardware] = {
            "driver": device.driver,
            "kernels": generator_version(),
            "measured": _numbers(devices, device) | {key: value},
        }
        with contextlib.suppress(OSError):
            text = json.dumps({"format": FORMAT, "devices": devices}, indent=1, sort_keys=True)
            write_file(self.path, text.encode())

    def _read(self) -> dict[str, Any]:
        """The entries of the file, by device; empty if it is missing, damaged or of another layout."""
        content = None if self.path is None else read_file(self.path)
        if content is None:
            return {}
        try:
            contents: Any = json.loads(content)
        except (ValueError, RecursionError):
            return {}
        if not isinstance(contents, dict) or contents.get("format") != FORMAT:
            return {}
        devices = contents.get("devices")
        return devices if isinstance(devices, dict) else {}


def _numbers(devices: dict[str, Any], device: Measured) -> dict[str, Any]:
    entry = devices.get(device.hardware)
    if not isinstance(entry, dict) or not isinstance(entry.get("measured"), dict):
        return {}
    is_current = (entry.get("driver"), entry.get("kernels")) == (device.driver, generator_version())
    return dict(entry["measured"]) if is_current else {}


def cache_file(name: str) -> Path | None:
    """The path of a file in the cache folder; None if the user has no cache folder."""
    folder = cache_folder()
    return None if folder is None else folder / name


@functools.cache
def generator_version() -> str:
    """The version of the code that writes kernels: a hash of its files, so that no number outlives a change of it."""
    digest = hashlib.sha256()
    for package in GENERATOR:
        for name, content in sorted(_sources(files(package))):
            digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def _sources(folder: Traversable) -> list[tuple[str, bytes]]:
    """The names and contents of the Python files of a folder and its subfolders."""
    found: list[tuple[str, bytes]] = []
    for item in folder.iterdir():
        if item.is_dir():
            found += [(f"{item.name}/{name}", content) for name, content in _sources(item)]
        elif item.name.endswith(".py"):
            found.append((item.name, item.read_bytes()))
    return found
