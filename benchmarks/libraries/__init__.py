"""The libraries that are compared: a file each, with what the library says otherwise than library.py does."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from libraries.library import Library, NotOffered

__all__ = ["COMPILED", "EAGER", "OURS", "Library", "NotOffered", "installed"]

OURS = "tensorken"
COMPILED = ("jax", "torch", "tinygrad", "autograd")
"""The peers of compiled functions; PyTorch and autograd run theirs call by call, as their users do."""
EAGER = ("autograd", "torch", "numpy")
"""The peers of eager calls."""


def installed(names: Sequence[str]) -> dict[str, Library]:
    """The adapters of those libraries that are installed; it says which are not."""
    found = {}
    for name in names:
        try:
            found[name] = importlib.import_module(f"libraries.for_{name}").adapter()
        except ImportError as error:
            print(f"{name} {error if str(error).startswith('needs') else 'is not installed'}")
    return found
