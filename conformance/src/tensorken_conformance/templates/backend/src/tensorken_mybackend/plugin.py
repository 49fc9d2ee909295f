"""The plugin of the backend, which the host imports at discovery; `load` does the heavy imports."""

from __future__ import annotations

from typing import Any

from tensorken_core.host.plugin import BackendEntry, hookimpl


@hookimpl
def tensorken_backend() -> BackendEntry:
    """The mybackend backend."""

    def load(device: str | None = None) -> Any:
        from tensorken_core.rewriting.fuse import Fuse

        from tensorken_mybackend.backend import Mybackend

        return Fuse(Mybackend())

    return BackendEntry("mybackend", load, summary="a new backend", spec=">=1.0,<2")
