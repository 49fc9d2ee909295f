"""Operands: earlier nodes, or new leaves, with a given dtype and shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.programs.draft import LARGEST, SHAPES, Draft
from tensorken_conformance.programs.program import Step
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor

ROOM = 20
"""Up to this number of nodes, a movement may follow a new leaf."""


def operand(
    draft: Draft, dtype: DType, shape: Shape | None = None, domain: Any = (-2.0, 2.0), wild: bool = False
) -> int:
    """An earlier node of this dtype (and shape), or a leaf."""
    found = None
    if not draft.chance(4):
        found = draft.pick(lambda x: x.dtype is dtype and (shape is None or x.shape == shape), wild)
    if found is not None:
        return found
    return lying(draft, draft.choice(SHAPES) if shape is None else shape, dtype, domain, wild)


def lying(draft: Draft, shape: Shape, dtype: DType, domain: Any = (-2.0, 2.0), wild: bool = False) -> int:
    """A new leaf of this shape, or one of another and a movement that gives it this shape.

    So the operand of the next step may be transposed, flipped, expanded, cropped or strided.
    """
    if not shape or len(draft.nodes) > ROOM or not draft.chance(3):
        return draft.leaf(shape, dtype, domain, wild)
    *lead, last = shape
    axis = draft.draw(len(shape))
    repeated = tuple([1 if i == axis else n for i, n in enumerate(shape)])
    given, text, ops = draft.choice(
        [
            (shape, "{0}[::-1]", ("flip",)),
            (shape[::-1], f"{{0}}.permute({tuple(range(len(shape)))[::-1]})", ("permute",)),
            (repeated, f"{{0}}.broadcast_to({shape})", ("expand",)),
            ((*lead, last + 1), "{0}[..., 1:]", ("crop",)),
            ((*lead, 2 * last), "{0}[..., ::-2]", ("flip", "crop", "reshape")),
        ]
    )
    number = draft.leaf(given, dtype, domain, wild)
    if draft.add(Step(text, (number,), ops), keep=True):
        return len(draft.nodes) - 1
    return draft.leaf(shape, dtype, domain, wild)


def beside(draft: Draft, x: Tensor, dtype: DType, domain: Any, same: bool) -> int:
    """An operand that broadcasts with x, or with `same` has its shape."""
    if same:
        return operand(draft, dtype, x.shape, domain)
    found = None
    if not draft.chance(3):
        found = draft.pick(lambda y: y.dtype is dtype and _broadcasts(x.shape, y.shape))
    if found is not None:
        return found
    cut = draft.draw(4) if x.ndim else 0
    shape = x.shape[cut:] if cut < 2 else (*x.shape[:-1], 1)
    if cut == 3 and 1 in x.shape:  # large where x has size 1
        shape = tuple([3 if n == 1 else 1 for n in x.shape])
    return lying(draft, shape, dtype, domain)


def _broadcasts(a: Shape, b: Shape) -> bool:
    try:
        return bool(np.prod(np.broadcast_shapes(a, b), dtype=int) <= LARGEST)
    except ValueError:
        return False
