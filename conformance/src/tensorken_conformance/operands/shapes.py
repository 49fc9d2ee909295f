"""Shape classes: the shapes, and the ways of coming by an operand, on which laws try an op.

A backend may keep a permuted, flipped, cropped or expanded tensor as a view; so each class says, beside the shape of
an operand, by which movement it is made on the backend.  The values are those that are asked for, in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorken_conformance.operands import chains
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DType
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class ShapeClass:
    """A shape, and the movement by which an operand of it is made.

    Attributes:
        shape: the operand's.
        movement: an op of the language, or empty for a plain operand.
        smoke: whether the quick run tries it.
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
"""The classes by their names; those named by a number are around the sizes of workgroups and vector registers."""

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
"""More classes, for the laws on exact results, of which a check is cheap: views at thresholds and of other ranks."""

LONG: dict[str, ShapeClass] = {
    str(n): ShapeClass((n,)) for k in (10, 12, 16) for n in (2**k - 1, 2**k, 2**k + 1)
}
"""Further thresholds, which only the deep run tries."""

WORKGROUPS = 65_535 * 64 + 1
"""A size with one element more than 65 535 workgroups of 64 threads have: no GPU starts more at once."""


def class_of(shape: str) -> ShapeClass:
    """The class of a name in any of the tables; plain and of no axes for a name that none has."""
    return SHAPES.get(shape) or VIEWS.get(shape) or LONG.get(shape) or ShapeClass(())


def chain_of(shape: str, values: Array) -> chains.Chain:
    """How an operand of a class is made."""
    return chains.single(class_of(shape).movement, values.shape)


def need(shape: str, dtype: str = "float32") -> tuple[str, ...]:
    """The ids of the cases without which operands of a class cannot be made in a dtype."""
    return chains.needs(dtype, filter(None, [class_of(shape).movement]))


def fitted(shape: str, values: Array) -> Array:
    """Values that an operand of the class can have: in an expanded one all rows, in a padded one the border, agree."""
    return chains.fitted(chain_of(shape, values), values)


def operand(
    subject: Subject, shape: str, values: Array, dtype: DType, interpreter: RawTensor[Any] | None = None
) -> Tensor:
    """A tensor with these values (fitted), made as the class says.

    Args:
        subject: the backend under test.
        shape: the name of the class.
        values: of the class's shape, or of any other.
        dtype: of the operand.
        interpreter: where to make it; on the call counter if None.
    """
    return chains.lying(interpreter or subject.call_counter, chain_of(shape, values), values, dtype)
