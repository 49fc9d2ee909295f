"""The plugin of the backend, which the host imports at discovery; `load` does the heavy imports."""

from __future__ import annotations

from typing import Any

from tensorken_core.host.plugin import BackendEntry, hookimpl


@hookimpl
def tensorken_backend() -> BackendEntry:
    """The mine backend."""

    def load(device: str | None = None) -> Any:
        from tensorken_mine.backend import Mine

        from tensorken_core.rewriting.fuse import Fuse

        return Fuse(Mine())

    return BackendEntry(
        "mine", load, summary="on array_api_strict, until you name your library", spec=">=1.0,<2"
    )
