"""The door through which the host finds this backend."""

from __future__ import annotations

from typing import Any

from tensorken_core.host.plugin import BackendEntry, hookimpl


@hookimpl
def tensorken_backend() -> BackendEntry:
    """The arrays backend."""

    def load(device: str | None = None) -> Any:
        from tensorken_arrays.backend import Arrays
        from tensorken_core.rewriting.fuse import Fuse

        return Fuse(Arrays())

    return BackendEntry("arrays", load, summary="over array_api_strict")
