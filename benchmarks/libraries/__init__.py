"""The compared libraries: an adapter each, which overrides methods of library.py."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from libraries.library import Library, NotSupported

__all__ = ["COMPILED", "EAGER", "OURS", "Library", "NotSupported", "installed"]

OURS = "tensorken"
COMPILED = ("jax", "torch", "tinygrad", "autograd")
"""The peers of compiled functions; PyTorch and autograd run eagerly, as is usual."""
EAGER = ("autograd", "torch", "numpy")
"""The peers of eager functions."""


def installed(names: Sequence[str]) -> dict[str, Library]:
    """The adapters of the installed libraries; prints which are missing."""
    found = {}
    for name in names:
        try:
            found[name] = importlib.import_module(f"libraries.for_{name}").adapter()
        except ImportError as error:
            print(f"{name} {error if str(error).startswith('needs') else 'is not installed'}")
    return found
