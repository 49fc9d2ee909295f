"""The backend's entry point for the plugin host."""

from __future__ import annotations

from typing import Any

from tensorken_core.host.plugin import BackendEntry, hookimpl


@hookimpl
def tensorken_backend() -> BackendEntry:
    """The string backend."""

    def load(device: str | None = None) -> Any:
        from tensorken_string.backend import String

        return String()

    return BackendEntry(
        "string", load, summary="prints expressions, with shapes and no numbers", spec=">=1.0,<2"
    )
