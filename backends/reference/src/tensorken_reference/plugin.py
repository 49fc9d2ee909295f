"""The backend's entry point for the plugin host."""

from __future__ import annotations

from typing import Any

from tensorken_core.host.plugin import BackendEntry, hookimpl


@hookimpl
def tensorken_backend() -> BackendEntry:
    """The reference backend."""
    return BackendEntry("reference", _load, summary="the meaning of every op, in plain Python")


def _load(device: str | None = None) -> Any:
    from tensorken_core.rewriting.fuse import Fuse
    from tensorken_reference.backend import Reference

    return Fuse(Reference())
