"""Shape classes: the shapes of operands, and the movements that make them.

A backend may keep a permuted, flipped, cropped or expanded tensor as a view; so each class has the shape of an operand,
and the movement op that makes it on the backend.  The values do not depend on the movement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorken_conformance.layouts import chains
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DType
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class ShapeClass:
    """A shape, and the movement by which an operand of it is made.

    Attributes:
        shape: the shape of the operand.
        movement: an op of the language, or empty for a plain operand.
        smoke: whether the smoke run has it.
    """

    shape: Shape
    movement: str = ""
    smoke: bool = False


SHAPES: dict[str, ShapeClass] = {
    "scalar": ShapeClass(()),
    "empty": ShapeClass((0,)),
    "one": ShapeClass((1,)),
    "small": ShapeClass((2, 3), smoke=True),
    "prime": ShapeClass((7,)),
    "row": ShapeClass((1, 5)),
    "column": ShapeClass((5, 1)),
    "high-rank": ShapeClass((2, 1, 3, 1, 2, 2)),
    "inner-zero": ShapeClass((3, 0, 2)),
    "expanded": ShapeClass((4, 3), "expand"),
    "permuted": ShapeClass((3, 4, 2), "permute"),
    "flipped": ShapeClass((3, 4), "flip"),
    "cropped": ShapeClass((3, 4), "crop"),
    "padded": ShapeClass((4, 4), "pad"),
    "reshaped": ShapeClass((2, 6), "reshape"),
    **{str(n): ShapeClass((n,)) for n in (63, 64, 65, 255, 256, 257)},
}
"""The classes by name; the numbers are near the sizes of workgroups and vector registers."""

VIEWS: dict[str, ShapeClass] = {
    **{f"cube-{way}": ShapeClass((3, 4, 2), way) for way in ("expand", "flip", "crop", "reshape")},
    **{f"tall-{way}": ShapeClass((65, 3), way) for way in ("expand", "permute", "flip", "crop")},
    **{f"65-{way}": ShapeClass((65,), way) for way in ("flip", "crop")},
    **{f"257-{way}": ShapeClass((257,), way) for way in ("flip", "crop")},
    "cube": ShapeClass((3, 4, 2)),
    "rank-8": ShapeClass((2, 1, 2, 1, 2, 1, 1, 3)),
    "tall": ShapeClass((65, 3)),
    "wide": ShapeClass((3, 257)),
    "last-zero": ShapeClass((2, 3, 0)),
    "1025": ShapeClass((1025,)),
}
"""More classes for laws on exact results, which are cheap to check: views at thresholds and of other ranks."""

LONG: dict[str, ShapeClass] = {
    str(n): ShapeClass((n,)) for k in (10, 12, 16) for n in (2**k - 1, 2**k, 2**k + 1)
}
"""Further thresholds, for the deep run."""

WORKGROUPS = 65_535 * 64 + 1
"""One element more than 65 535 workgroups of 64 threads, the most that GPUs start at once."""


def class_of(shape: str) -> ShapeClass:
    """The class of a name; a plain one without axes for an unknown name."""
    return SHAPES.get(shape) or VIEWS.get(shape) or LONG.get(shape) or ShapeClass(())


def chain_of(shape: str, values: Array) -> chains.Chain:
    """The movements that make an operand of a class."""
    return chains.single(class_of(shape).movement, values.shape)


def need(shape: str, dtype: str = "float32") -> tuple[str, ...]:
    """The ids of the cases that operands of a class need in a dtype."""
    return chains.needs(dtype, filter(None, [class_of(shape).movement]))


def fitted(shape: str, values: Array) -> Array:
    """Values for an operand of the class: equal rows for an expanded one, a border of zeros for a padded one."""
    return chains.fitted(chain_of(shape, values), values)


def operand(
    subject: Subject, shape: str, values: Array, dtype: DType, interpreter: RawTensor[Any] | None = None
) -> Tensor:
    """A tensor with these values (fitted), made by the movement of its class, by default on the call counter."""
    return chains.lying(interpreter or subject.call_counter, chain_of(shape, values), values, dtype)
