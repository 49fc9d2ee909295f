"""The door through which the host finds this backend."""

from __future__ import annotations

from typing import Any

from tensorken.plugin import BackendEntry, hookimpl


@hookimpl
def tensorken_backend() -> BackendEntry:
    """The arrays backend."""

    def load(device: str | None = None) -> Any:
        from tensorken.fuse import Fuse
        from tensorken_arrays.backend import Arrays

        return Fuse(Arrays())

    return BackendEntry("arrays", load, summary="over array_api_strict")
