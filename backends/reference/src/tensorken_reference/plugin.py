"""The plugin: how the host learns of the reference backend without loading it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorken.plugin import BackendEntry, hookimpl

if TYPE_CHECKING:
    from tensorken_reference.backend import Reference


@hookimpl
def tensorken_backend() -> BackendEntry:
    """The backend `reference`."""
    return BackendEntry("reference", _load, summary="the meaning of every op, in plain Python")


def _load(device: str | None = None) -> Reference:
    from tensorken_reference.backend import Reference

    return Reference()
