"""Correct backends: three independent implementations, which must pass all laws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Axes, Pairs, Shape
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.arrays import Array
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference


class Different(Numpy):
    """A correct backend unlike numpy: it copies instead of viewing, adds from the end, and runs ops as their bodies.

    It returns no views, its operands do not broadcast, its sums run backwards in halves, and every op with a body runs
    as the body. So its rounding errors, strides and memory differ from numpy's.
    """

    broadcasts = False
    capabilities = Capabilities(dtypes=tuple(DTYPES))

    def __repr__(self) -> str:
        return "Different()"

    def sum(self, x: Array, axes: Axes) -> Array:
        kept = [i for i in range(x.ndim) if i not in axes]
        shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
        length = math.prod([x.shape[i] for i in axes])
        rows = np.array(x.transpose(*kept, *axes)).reshape(*[x.shape[i] for i in kept], length)[..., ::-1]
        while rows.shape[-1] > 1:
            half = rows.shape[-1] // 2
            pairs = super().add(rows[..., :half], rows[..., half : 2 * half])
            rows = np.concatenate([pairs, rows[..., 2 * half :]], -1)
        return np.array(rows.reshape(shape)) if length else np.zeros(shape, x.dtype)

    def reshape(self, x: Array, shape: Shape) -> Array:
        return np.array(x).reshape(shape)

    def permute(self, x: Array, order: Axes) -> Array:
        return np.array(x.transpose(order), order="C")

    def expand(self, x: Array, shape: Shape) -> Array:
        return np.array(np.broadcast_to(x, shape), order="C")

    def flip(self, x: Array, axes: Axes) -> Array:
        return np.array(np.flip(x, axes), order="C")

    def crop(self, x: Array, limits: Pairs) -> Array:
        return np.array(super().crop(x, limits), order="C")

    def to_bits(self, x: Array) -> Array:
        return np.array(super().to_bits(x))

    def from_bits(self, x: Array) -> Array:
        return np.array(super().from_bits(x))


for _op in OPS.values():
    if _op.body is not None and _op.method:
        setattr(Different, _op.name, getattr(RawTensor, _op.name))


CORRECT: dict[str, Callable[[], RawTensor[Any]]] = {
    "numpy": lambda: Fuse(Numpy()),
    "reference": Reference,
    "different": lambda: Fuse(Different()),
}
"""The correct backends by name."""
