"""Reductions: the cases of laws on ops along axes: their shapes, axes and value classes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.layouts.shapes import SHAPES, VIEWS, ShapeClass
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DType

LONG: dict[str, ShapeClass] = {
    "long": ShapeClass((1031,)),
    "long-rows": ShapeClass((3, 1031)),
    "long-columns": ShapeClass((1031, 3)),
    "blocks": ShapeClass((65, 63)),
}
"""Plain shapes with more terms than the blocks of implementations."""

DEEP: dict[str, ShapeClass] = {"longer": ShapeClass((65_537,)), "longer-columns": ShapeClass((16_385, 3))}
"""Shapes of the deep run."""

FEW = ("small", "prime", "permuted", "flipped", "257", "tall-permute")
"""The shapes of all value classes; other shapes have only ordinary values."""

Variants = dict[str, tuple[Any, ...]]


def shapes_of(subject: Subject) -> dict[str, ShapeClass]:
    """The shapes of a depth."""
    if subject.depth == "smoke":
        return {name: form for name, form in SHAPES.items() if form.smoke}
    return {**SHAPES, **VIEWS, **LONG, **(DEEP if subject.depth == "deep" else {})}


def class_of(shape: str) -> ShapeClass:
    """The class of a name."""
    return {**SHAPES, **VIEWS, **LONG, **DEEP}[shape]


def several(shape: tuple[int, ...]) -> Variants:
    """Axes for a reduction, by their names in ids: all, each alone, the outer two, some inner ones, none."""
    rank = len(shape)
    each = [(axis,) for axis in range(rank)]
    some = [(0, rank - 1), (1, rank - 2), (2, rank - 2, rank - 1)]
    chosen = dict.fromkeys([tuple(range(rank)), *(each if rank < 4 else each[1:3]), *some, ()])
    good = [
        axes for axes in chosen if list(axes) == sorted(set(axes)) and all(0 <= axis < rank for axis in axes)
    ]
    return {"-".join(map(str, axes)) or "none": (axes,) for axes in good}


def one(shape: tuple[int, ...]) -> Variants:
    """The axes of a scan, by their names in ids."""
    return {str(axis): (axis,) for axis in range(len(shape))}


def length(params: tuple[Any, ...], shape: tuple[int, ...]) -> int:
    """The number of elements that are reduced to one."""
    axes = params[0] if isinstance(params[0], tuple) else params[:1]
    return int(np.prod([shape[axis] for axis in axes], dtype=int))


def dtypes_of(subject: Subject, kinds: Collection[str]) -> list[DType]:
    """The dtypes of these kinds that the backend has; in a smoke run only one."""
    return subject.sampled([dtype for dtype in subject.dtypes() if dtype.kind in kinds])


def grid(
    subject: Subject,
    law: str,
    op: str,
    variants: Callable[[tuple[int, ...]], Variants],
    values: Callable[[DType], Sequence[str]],
    ordinary: Sequence[str],
    longest: Callable[[DType, str], int] = lambda dtype, values: 10**9,
    kinds: Collection[str] = ("int", "float"),
    views: bool = True,
) -> Iterator[Case]:
    """The cases of an op.

    Args:
        subject: the backend under test.
        law: the id of the law.
        op: the name of the op.
        variants: the params for a shape, by the details of their cases.
        values: the value classes of a dtype. ordinary: the value classes that are tried on all of SHAPES; the last of
        them also on VIEWS.
        longest: the largest number of elements that are reduced to one.
        kinds: the kinds of dtypes that the op takes.
        views: whether VIEWS are tried, which takes long for a slow op.
    """
    smoke = subject.depth == "smoke"
    for dtype in dtypes_of(subject, kinds):
        for shape, form in shapes_of(subject).items():
            if not exact.makes(subject, shape, dtype) or (shape in VIEWS and not (views or shape in FEW)):
                continue
            for name in values(dtype)[:1] if smoke else values(dtype):
                found = list(variants(form.shape).items())
                if shape in VIEWS and shape not in FEW and name != ordinary[-1]:
                    continue
                if name not in ordinary:
                    found = found[:2] if shape in FEW else []
                for detail, params in found[:1] if smoke else found:
                    if length(params, form.shape) <= longest(dtype, name):
                        yield Case(law, op, dtype.name, shape, name, detail)
