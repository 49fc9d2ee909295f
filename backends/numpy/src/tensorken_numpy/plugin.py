"""The backend's entry point for the plugin host.  Only `load` imports numpy."""

from __future__ import annotations

from typing import Any

from tensorken_core.host.plugin import BackendEntry, hookimpl


@hookimpl
def tensorken_report_header() -> list[str]:
    """Lines about numpy's BLAS for `tensorken doctor`."""
    from tensorken_numpy import blas

    return list(blas.report())


@hookimpl
def tensorken_backend() -> BackendEntry:
    """The numpy backend."""

    def load(device: str | None = None) -> Any:
        from tensorken_core.rewriting.fuse import Fuse
        from tensorken_numpy.backend import Numpy

        return Fuse(Numpy())

    return BackendEntry(
        "numpy", load, summary="numpy on the CPU, BLAS for every contraction", spec=">=1.0,<2"
    )
