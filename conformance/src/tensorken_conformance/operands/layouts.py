"""Layouts: the ways in which a matrix may lie: one number for all elements, a repeated row, every third of others.

A backend may keep what a movement gives as a view, an interpreter around it may hold repetitions back, and a compiled
program has numbers of its own.  The values are those that are asked for, in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor

Steps = Sequence[tuple[str, tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Layout:
    """A way to lie.

    Attributes:
        repeats: the axes along which all elements are the same.
        source: gives of the values (fitted) what the operand is made of, and by which movements.
    """

    repeats: tuple[int, ...]
    source: Callable[[Array], tuple[Array, Steps]]


def _repeated(*axes: int) -> Layout:
    def source(values: Array) -> tuple[Array, Steps]:
        few = values[tuple([slice(0, 1) if i in axes else slice(None) for i in range(2)])]
        return few, (("expand", (values.shape,)),)

    return Layout(axes, source)


def _window(values: Array) -> tuple[Array, Steps]:
    """Surrounded by the values in reverse."""
    around = np.pad(np.flip(values), [(2, 1), (1, 3)], mode="edge")
    limits = tuple([(before, before + n) for before, n in zip((2, 1), values.shape, strict=True)])
    around[tuple([slice(*pair) for pair in limits])] = values
    return around, (("crop", (limits,)),)


def _stepped(values: Array) -> tuple[Array, Steps]:
    """Between others, which have them in reverse."""
    among = np.stack([np.flip(values), values, np.flip(values, 0)], axis=-1)
    limits = (*[(0, n) for n in values.shape], (1, 2))
    return among, (("crop", (limits,)), ("reshape", (values.shape,)))


LAYOUTS: dict[str, Layout] = {
    "number": Layout((0, 1), lambda values: (values[:1, :1], ())),
    "one": _repeated(0, 1),
    "row": _repeated(0),
    "column": _repeated(1),
    "transposed": Layout((), lambda values: (values.T, (("permute", ((1, 0),)),))),
    "reversed": Layout((), lambda values: (np.flip(values), (("flip", ((0, 1),)),))),
    "window": Layout((), _window),
    "stepped": Layout((), _stepped),
    "reversed-row": Layout(
        (0,), lambda values: (values[:1, ::-1], (("expand", (values.shape,)), ("flip", ((1,),))))
    ),
    "reversed-column": Layout(
        (1,), lambda values: (values[::-1, :1], (("expand", (values.shape,)), ("flip", ((0,),))))
    ),
    "whole": Layout((), lambda values: (values, ())),
}
"""The ways by their names; a `number` is made by `full`."""


def fitted(layout: str, values: Array) -> Array:
    """Values that a matrix that lies so can have."""
    repeats = LAYOUTS[layout].repeats
    few = values[tuple([slice(0, 1) if i in repeats else slice(None) for i in range(2)])]
    return np.array(np.broadcast_to(few, values.shape))


def moved(x: Tensor, steps: Steps) -> Tensor:
    """What the movements make of a tensor."""
    for op, params in steps:
        x = apply(OPS[op], [x], params)
    return x


def laid(subject: Subject, layout: str, values: Array, dtype: DType, interpreter: RawTensor[Any]) -> Tensor:
    """A tensor with these values (fitted) that lies so.

    Args:
        subject: the backend under test.
        layout: the name of the way.
        values: a matrix.
        dtype: of the tensor.
        interpreter: where to make it.
    """
    if layout == "number":
        return Tensor(interpreter, interpreter.full(values.shape, values.item(0), dtype), values.shape, dtype)
    source, steps = LAYOUTS[layout].source(values)
    return moved(subject.tensor(source, dtype, interpreter), steps)


def needs(layout: str, dtype: str) -> tuple[str, ...]:
    """The ids of the cases without which an operand cannot lie so."""
    return tuple([Case("values.movement", op, dtype, "small").id for op in movements(layout)])


def movements(layout: str) -> tuple[str, ...]:
    """The ops by which an operand comes to lie so."""
    _, steps = LAYOUTS[layout].source(np.zeros((2, 2)))
    return tuple([op for op, _ in steps])
