"""values.movement: reshape, permute, expand, flip, pad and crop bring every element to its place, bit by bit."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import combinations, permutations
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.operands import shapes
from tensorken_conformance.operands.chains import moved
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape

MOVEMENTS = ("reshape", "permute", "expand", "flip", "pad", "crop")

Variants = dict[str, tuple[Any, ...]]


# ---- params ------------------------------------------------------------------------------------------------


def subsets(rank: int) -> list[tuple[int, ...]]:
    """All sets of axes of a tensor of at most three, else each axis alone and all together."""
    axes = range(rank)
    if rank <= 3:
        return [chosen for count in range(rank + 1) for chosen in combinations(axes, count)]
    return [(), *[(axis,) for axis in axes], tuple(axes)]


def named(axes: tuple[int, ...]) -> str:
    """Axes as a part of an id."""
    return "-".join(map(str, axes)) or "none"


def _orders(shape: Shape) -> Variants:
    rank = len(shape)
    axes = tuple(range(rank))
    if rank <= 3:
        return {named(order): (order,) for order in permutations(axes)}
    return {
        "reversed": (axes[::-1],),
        "first-to-last": ((*axes[1:], 0),),
        "last-to-first": ((rank - 1, *axes[:-1]),),
        "last-two": ((*axes[:-2], rank - 1, rank - 2),),
        "ends": ((rank - 1, *axes[1:-1], 0),),
    }


def _flips(shape: Shape) -> Variants:
    return {named(axes): (axes,) for axes in subsets(len(shape))}


def _expansions(shape: Shape) -> Variants:
    """The operand has size 1 along the axes that the variant names."""
    return {named(axes): (shape,) for axes in subsets(len(shape))}


def _crops(shape: Shape) -> Variants:
    def limits(start: Any, end: Any) -> tuple[Any, ...]:
        return (tuple([(start(n), end(n)) for n in shape]),)

    found = {
        "whole": limits(lambda n: 0, lambda n: n),
        "first": limits(lambda n: 0, lambda n: min(n, 1)),
        "last": limits(lambda n: max(n - 1, 0), lambda n: n),
        "inside": limits(lambda n: min(n, 1), lambda n: max(n - 1, min(n, 1))),
        "front": limits(lambda n: 0, lambda n: (n + 1) // 2),
        "back": limits(lambda n: n // 2, lambda n: n),
        "nothing": limits(lambda n: n // 2, lambda n: n // 2),
    }
    for axis in range(len(shape)) if len(shape) > 1 else ():
        found[f"axis-{axis}"] = (tuple([(min(n, 1) if i == axis else 0, n) for i, n in enumerate(shape)]),)
    return found


def _pads(shape: Shape) -> Variants:
    rank = len(shape)
    found: Variants = {
        name: (((before, after),) * rank,)
        for name, before, after in (("none", 0, 0), ("before", 1, 0), ("after", 0, 2), ("around", 2, 1))
    }
    for axis in range(rank) if rank > 1 else ():
        found[f"axis-{axis}"] = (tuple([(1, 2) if i == axis else (0, 0) for i in range(rank)]),)
    if rank:
        found["far"] = (((0, 0),) * (rank - 1) + ((1, 64),),)
    return found


def _reshapes(shape: Shape) -> Variants:
    size = int(np.prod(shape, dtype=int))
    found: dict[str, Any] = {
        "same": shape,
        "flat": (size,),
        "row": (1, size),
        "column": (size, 1),
        "ones": (1, *shape, 1),
        "reversed": shape[::-1],
    }
    if len(shape) > 1:
        found["merged"] = (shape[0] * shape[1], *shape[2:])
    factor = next((k for k in range(2, size) if size % k == 0), 0)
    if factor:
        found |= {"split": (factor, size // factor), "split-last": (size // factor, factor)}
    if size == 0:
        found |= {"zeros": (2, 0, 3), "other-zeros": (0, 5)}
    if size == 1:
        found["scalar"] = ()
    return {name: (new,) for name, new in found.items()}


_VARIANTS = {
    "reshape": _reshapes,
    "permute": _orders,
    "expand": _expansions,
    "flip": _flips,
    "pad": _pads,
    "crop": _crops,
}


@functools.cache
def variants(op: str, shape: Shape) -> Variants:
    """Params for an op on a tensor of a shape, by their names in ids."""
    return _VARIANTS[op](shape)


# ---- the law -----------------------------------------------------------------------------------------------


def cases(subject: Subject) -> Iterator[Case]:
    """Each op and dtype, on the operand that other laws stand on; then on each class of shapes and values."""
    for op in MOVEMENTS:
        for dtype in exact.dtypes_for(subject, OPS[op], ((),)):
            yield Case("values.movement", op, dtype.name, "small")
            for shape in exact.classes(subject):
                if exact.makes(subject, shape, dtype):
                    for values in exact.VALUES:
                        yield Case("values.movement", op, dtype.name, shape, values)


@law("values.movement", cases, level=exact.level_of, needs=exact.needs_of, stage=1)
def movement(subject: Subject, case: Case) -> None:
    """A movement of a tensor, which may be a view itself, brings each element to its place with the same bits.

    What it brings in, where it pads, are zeros (False).  A case tries all params that its op has for its shape.
    """
    for number in range(exact.draws(case, shapes.class_of(case.shape).shape)):
        _check(subject, case, number)


def _check(subject: Subject, case: Case, number: int) -> None:
    dtype, kind = DTYPES[case.dtype], shapes.class_of(case.shape)
    full = shapes.fitted(case.shape, exact.drawn(subject, case, kind.shape, number=number))
    for detail, params in variants(case.op, kind.shape).items():
        values, steps = full, [(case.op, params)]
        if case.op == "expand" and kind.movement:
            steps.insert(0, ("crop", (tuple([(0, n) for n in _one_along(kind.shape, detail)]),)))
        elif case.op == "expand":
            values = exact.drawn(subject, case, _one_along(kind.shape, detail), number=number)
        x, expected = shapes.operand(subject, case.shape, values, dtype), values
        for op, what in steps:
            x, expected = subject.run(OPS[op], [x], what), moved(op, expected, what)
        script = functools.partial(exact.script_of, subject, steps, [values], expected, case.shape)
        exact.agree(subject, x, expected, f"{case.op} of {case.dtype} {values.shape}, {params[0]}", script)


def _one_along(shape: Shape, detail: str) -> Shape:
    """The shape of what is expanded: size 1 along the axes that are named."""
    axes = [] if detail == "none" else [int(axis) for axis in detail.split("-")]
    return tuple([1 if i in axes else n for i, n in enumerate(shape)])
