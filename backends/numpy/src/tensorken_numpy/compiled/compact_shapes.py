"""Compact shapes: size 1 along axes that are only repeated, so that numpy's broadcasting repeats them for free."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tensorken_numpy.arrays import Sizes
from tensorken_numpy.compiled.layouts import compact_reshape
from tensorken_numpy.compiled.predicates import is_elementwise

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable


def compact_shapes(
    program: Program, inputs: list[Sizes], constants: dict[Variable, Sizes]
) -> dict[Variable, Sizes]:
    """The compact shape of each value of the program: along each axis the full size, or 1."""
    compact: dict[Variable, Sizes] = Shapes()
    compact.update(constants)
    compact.update(zip(program.inputs, inputs, strict=True))
    for equation in program.equations:
        for v, shape in zip(equation.results, _results(equation, compact), strict=True):
            compact[v] = shape
    return compact


class Shapes(dict["Variable", "Sizes"]):
    """Compact shapes of values; a missing value is a literal, which has one element."""

    def __missing__(self, v: Variable) -> Sizes:
        return (1,) * len(v.shape)


def _results(equation: Equation, compact: dict[Variable, Sizes]) -> Iterator[Sizes]:
    name = equation.op.name
    sizes = [compact[v] for v in equation.operands]
    if is_elementwise(equation):
        yield tuple([max(ns) if 0 not in ns else 0 for ns in zip(*sizes, strict=True)])
        return
    rule: Any = _RULES.get(name)
    if rule is None:
        yield from [v.shape for v in equation.results]
        return
    (v,) = equation.results
    yield rule(sizes[0], equation.operands[0].shape, v.shape, *equation.params)


def _permuted(sizes: Sizes, full: Sizes, shape: Sizes, order: Sizes) -> Sizes:
    return tuple([sizes[i] for i in order])


def _cropped(sizes: Sizes, full: Sizes, shape: Sizes, limits: Any) -> Sizes:
    if 0 in shape:
        return shape
    return tuple([1 if n == 1 and m != 1 else k for n, m, k in zip(sizes, full, shape, strict=True)])


def _extreme(sizes: Sizes, full: Sizes, shape: Sizes, axes: Sizes) -> Sizes:
    return shape if 0 in full else tuple([1 if i in axes else n for i, n in enumerate(sizes)])


_RULES = {
    "expand": lambda sizes, full, shape, _: sizes,
    "permute": _permuted,
    "reshape": lambda sizes, full, shape, _: (
        shape if 0 in full else compact_reshape(sizes, full, shape) or shape
    ),
    "flip": lambda sizes, full, shape, _: sizes,
    "crop": _cropped,
    "sum": lambda sizes, full, shape, axes: shape if axes else sizes,
    "prod": lambda sizes, full, shape, axes: shape if axes else sizes,
    "max": _extreme,
    "min": _extreme,
}
