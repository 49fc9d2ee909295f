"""Donated inputs: results reuse their memory if nothing else refers to it."""

from __future__ import annotations

import sys
from typing import Any

from tensorken_numpy.arrays import Array
from tensorken_numpy.compiled.results import has_reference_counts


def if_unshared(x: Array) -> Array | None:
    """The array itself if only the running call refers to it and its views, else None.

    Call it before the function makes views of the input.
    """
    if sys.getrefcount(x) <= _UNSHARED and x.flags.owndata and x.flags.writeable:
        return x
    return None


def _references_to_an_input() -> int:
    """The reference count, in this Python, of an input that only the generated function refers to."""
    counts: list[int] = []

    def count(x: Any) -> None:
        counts.append(sys.getrefcount(x))

    scope: dict[str, Any] = {}
    exec("def run(inputs, b0):\n    (v1,) = inputs\n    v2 = b0(v1)\n    return [v2]\n", scope)
    scope["run"]([object()], count)
    return counts[0]


_UNSHARED = _references_to_an_input() if has_reference_counts() else -1
