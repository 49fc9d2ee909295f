"""Shape classes: the shapes, and the ways of coming by an operand, on which laws try an op.

A backend may keep a permuted, flipped, cropped or expanded tensor as a view; so each class says, beside the shape of
an operand, by which movement it is made on the backend.  The values are those that are asked for, in any case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tensorken.spec.dtypes import DType
from tensorken.spec.op import OPS
from tensorken.spec.raw import RawTensor
from tensorken.spec.shapes import Shape
from tensorken.tensor import Tensor
from tensorken_conformance.case import Case
from tensorken_conformance.subject import Array, Subject


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

WORKGROUPS = 65_535 * 64 + 1
"""A size with one element more than 65 535 workgroups of 64 threads have: no GPU starts more at once."""


def need(shape: str) -> tuple[str, ...]:
    """The ids of the cases without which operands of a class cannot be made."""
    movement = SHAPES[shape].movement if shape in SHAPES else ""
    return (Case("values.movement", movement, "float32", "small").id,) if movement else ()


def repeats(shape: str) -> bool:
    """Whether the rows of an operand of this class are all the same."""
    return SHAPES[shape].movement == "expand"


def fitted(shape: str, values: Array) -> Array:
    """Values that an operand of the class can have: in an expanded one all rows, in a padded one the border, agree."""
    movement = SHAPES[shape].movement
    if movement == "expand":
        return np.array(np.broadcast_to(values[:1], values.shape))
    if movement == "pad":
        inner = np.zeros_like(values)
        inner[1:-1, 1:-1] = values[1:-1, 1:-1]
        return inner
    return values


def operand(
    subject: Subject, shape: str, values: Array, dtype: DType, interpreter: RawTensor[object] | None = None
) -> Tensor:
    """A tensor with these values (fitted), made as the class says.

    Args:
        subject: the backend under test.
        shape: the name of the class.
        values: of the class's shape, or of any other for a plain class.
        dtype: of the operand.
        interpreter: where to make it; on the witness if None.
    """
    movement = SHAPES[shape].movement if shape in SHAPES else ""
    if not movement:
        return subject.tensor(values, dtype, interpreter)
    source, params = _SOURCES[movement](values)
    return subject.run(OPS[movement], [subject.tensor(source, dtype, interpreter)], params)  # type: ignore[no-any-return]


def _cropped(values: Array) -> tuple[Array, tuple[object, ...]]:
    """Surrounded by the values in reverse, so that reading beside the window is seen."""
    source = np.pad(values[::-1, ::-1], [(1, 2), (2, 1)], mode="edge")
    source[1:-2, 2:-1] = values
    limits = ((1, 1 + values.shape[0]), (2, 2 + values.shape[1]))
    return source, (limits,)


_SOURCES: dict[str, Callable[[Array], tuple[Array, tuple[object, ...]]]] = {
    "expand": lambda values: (values[:1], (values.shape,)),
    "permute": lambda values: (values.transpose(1, 2, 0), ((2, 0, 1),)),
    "flip": lambda values: (values[::-1, ::-1], ((0, 1),)),
    "crop": _cropped,
    "pad": lambda values: (values[1:-1, 1:-1], (((1, 1), (1, 1)),)),
    "reshape": lambda values: (values.reshape(-1), (values.shape,)),
}
