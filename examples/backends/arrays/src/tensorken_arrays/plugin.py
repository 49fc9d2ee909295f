"""The entry point of the backend."""

from __future__ import annotations

from typing import Any

from tensorken_core.host.plugin import BackendEntry, hookimpl


@hookimpl
def tensorken_backend() -> BackendEntry:
    """Describe the arrays backend."""

    def load(device: str | None = None) -> Any:
        from tensorken_arrays.backend import Arrays
        from tensorken_core.rewriting.fuse import Fuse

        return Fuse(Arrays())

    return BackendEntry("arrays", load, summary="on array_api_strict")
