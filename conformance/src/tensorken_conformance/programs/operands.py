"""Operands: earlier nodes that fit, or new leaves that do."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken.spec.dtypes import DType
from tensorken.spec.shapes import Shape
from tensorken.tensor import Tensor
from tensorken_conformance.programs.draft import LARGEST, SHAPES, Draft


def operand(
    draft: Draft, dtype: DType, shape: Shape | None = None, domain: Any = (-2.0, 2.0), wild: bool = False
) -> int:
    """An earlier node of this dtype (and shape), or a leaf."""
    found = None
    if not draft.chance(4):
        found = draft.pick(lambda x: x.dtype is dtype and (shape is None or x.shape == shape), wild)
    if found is not None:
        return found
    return draft.leaf(draft.choice(SHAPES) if shape is None else shape, dtype, domain, wild)


def beside(draft: Draft, x: Tensor, dtype: DType, domain: Any, same: bool) -> int:
    """An operand that broadcasts with x, or has its shape."""
    if same:
        return operand(draft, dtype, x.shape, domain)
    found = None
    if not draft.chance(3):
        found = draft.pick(lambda y: y.dtype is dtype and _broadcasts(x.shape, y.shape))
    if found is not None:
        return found
    cut = draft.draw(4) if x.ndim else 0
    shape = x.shape[cut:] if cut < 2 else (*x.shape[:-1], 1)
    if cut == 3 and 1 in x.shape:  # long where x is not
        shape = tuple([3 if n == 1 else 1 for n in x.shape])
    return draft.leaf(shape, dtype, domain)


def _broadcasts(a: Shape, b: Shape) -> bool:
    try:
        return bool(np.prod(np.broadcast_shapes(a, b), dtype=int) <= LARGEST)
    except ValueError:
        return False
