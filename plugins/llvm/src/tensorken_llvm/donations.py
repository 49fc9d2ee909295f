"""Donated inputs, to whose memory a program writes results."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorken_numpy.compiled.results import has_reference_counts


def with_own_arrays(inputs: Sequence[Any], donated: Sequence[int]) -> list[Any]:
    """The inputs, with a copy in place of each donated one that anything but the sequence refers to.

    Args:
        inputs: arrays, to which the sequence alone refers if the caller has given them up.
        donated: the indices of those that are overwritten.
    """
    found = list(inputs) if not isinstance(inputs, list) else inputs
    own = [_references(found, i) <= _UNSHARED and _is_writable(found[i]) for i in donated]
    copies = {i: np.array(found[i], order="C") for i, is_own in zip(donated, own, strict=True) if not is_own}
    return [copies.get(i, x) for i, x in enumerate(found)] if copies else found


def _is_writable(x: Any) -> bool:
    flags = getattr(x, "flags", None)
    return flags is not None and flags.owndata and flags.writeable and flags.c_contiguous and flags.aligned


def _references(arrays: list[Any], i: int) -> int:
    return sys.getrefcount(arrays[i])


_UNSHARED = _references([object()], 0) if has_reference_counts() else -1
"""The reference count, in this Python, of an object that only a list refers to."""
