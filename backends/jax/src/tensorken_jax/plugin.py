"""The backend's entry point for the plugin host.  Only its functions import jax."""

from __future__ import annotations

from typing import Any

from tensorken_core.host.plugin import BackendEntry, hookimpl


@hookimpl
def tensorken_backend() -> BackendEntry:
    """The JAX backend."""

    def load(device: str | None = None) -> Any:
        from tensorken.lazy.interpreter import Lazy
        from tensorken_jax.backend import Jax

        return Lazy(Jax(device))

    def names() -> list[str]:
        from tensorken_jax.devices import devices

        return list(devices())

    return BackendEntry(
        "jax",
        load,
        summary="XLA through JAX: CPU, GPU, TPU, and meshes of them",
        spec=">=1.0,<2",
        devices=names,
    )
