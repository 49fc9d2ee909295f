"""Views: the ways of coming by an operand of any shape, for laws whose shapes are not those of shapes.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.tensor import Tensor

Made = tuple[Array, tuple[Any, ...]]


def _permuted(values: Array) -> Made:
    order = tuple(range(values.ndim))[::-1]
    return values.transpose(order), (order,)


def _flipped(values: Array) -> Made:
    axes = tuple(range(values.ndim))
    return np.flip(values, axes), (axes,)


def _cropped(values: Array) -> Made:
    """Surrounded by numbers that are not among the values, so that reading beside the window is seen."""
    source = np.pad(values, [(1, 2)] * values.ndim, constant_values=77)
    return source, (tuple([(1, 1 + n) for n in values.shape]),)


def _expanded(values: Array) -> Made:
    axis = _repeated(values)
    return values[(slice(None),) * axis + (slice(0, 1),)], (values.shape,)


def _repeated(values: Array) -> int:
    """The axis along which an expanded operand repeats itself."""
    return next((axis for axis, n in enumerate(values.shape) if n > 1), 0)


_SOURCES: dict[str, tuple[str, Callable[[Array], Made]]] = {
    "permuted": ("permute", _permuted),
    "flipped": ("flip", _flipped),
    "cropped": ("crop", _cropped),
    "expanded": ("expand", _expanded),
}

VIEWS = ("plain", *_SOURCES)
"""The ways by their names."""


def fitted(view: str, values: Array) -> Array:
    """Values that an operand made so can have: an expanded one repeats itself along its first axis of many."""
    if view != "expanded" or not values.ndim:
        return values
    return np.array(np.broadcast_to(_expanded(values)[0], values.shape))


def viewed(
    subject: Subject, view: str, values: Array, dtype: DType, interpreter: RawTensor[object] | None = None
) -> Tensor:
    """A tensor with these values, which `fitted` gave, made as the view says, on the call counter by default."""
    if view == "plain" or not values.ndim:
        return subject.tensor(values, dtype, interpreter)
    op, source = _SOURCES[view]
    start, params = source(values)
    return subject.run(OPS[op], [subject.tensor(start, dtype, interpreter)], params)  # type: ignore[no-any-return]


def need(view: str, dtype: str) -> tuple[str, ...]:
    """The ids of the cases without which an operand cannot be made so."""
    return (Case("values.movement", _SOURCES[view][0], dtype, "small").id,) if view in _SOURCES else ()


def makes(subject: Subject, view: str, dtype: str) -> bool:
    """Whether the backend declares nothing against the movement by which an operand is made."""
    return view not in _SOURCES or subject.capabilities.why_not(_SOURCES[view][0], dtype) is None
