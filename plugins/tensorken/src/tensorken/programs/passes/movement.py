"""Movement: merge reshapes, permutations, expansions, flips, pads and crops, and drop ops that change nothing.

All rules give the same elements at the same indices.
"""

from __future__ import annotations

from typing import Any

from tensorken.programs.passes.constants import zeros
from tensorken.programs.passes.rewriting import Rewriting, rewritten
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Axes, Shape
from tensorken_core.program.program import Equation, Program, Variable

CROP, EXPAND, FLIP, PAD, PERMUTE, RESHAPE = (
    OPS[name] for name in ("crop", "expand", "flip", "pad", "permute", "reshape")
)
MAX, MIN = (OPS[name] for name in ("max", "min"))


def with_movement_merged(program: Program, backend: RawTensor[Any]) -> Program:
    """Merge consecutive equations that move the same elements, and drop equations that move nothing.

    Bit for bit the same.
    """
    return rewritten(program, backend, RULES)


def _identity(rewriting: Rewriting, e: Equation) -> Variable | None:
    """A movement op that returns its operand unchanged: the same shape, the same order, a crop of everything."""
    x = e.operands[0]
    if e.results[0].shape != x.shape:
        return None
    if e.op is PERMUTE:
        return x if e.params[0] == tuple(range(len(x.shape))) else None
    if e.op is FLIP:
        return x if all([x.shape[i] == 1 for i in e.params[0]]) else None
    return x


def reduces_nothing(rewriting: Rewriting, e: Equation) -> Variable | None:
    """Drop a reduction over axes of size 1; not exact for a sum, which may turn -0.0 into 0.0."""
    x = e.operands[0]
    return x if all([x.shape[i] == 1 for i in e.params[0]]) else None


def _arranged(rewriting: Rewriting, e: Equation) -> Variable | None:
    """Merge reshapes and permutations in a row.

    Where they only permute axes and move axes of size 1, at most one permutation and one reshape remain; any other
    reshape absorbs the reshapes before it.
    """
    x, shape = e.operands[0], e.results[0].shape
    moves_ones = [n for n in x.shape if n != 1] == [n for n in shape if n != 1]
    if e.op is RESHAPE and not moves_ones:
        inner = rewriting.operands_if(x, RESHAPE)
        return _reshaped(rewriting, inner[0], shape) if inner else None
    source, order = arrangement(rewriting, x)
    nontrivial = _nontrivial_axes(x.shape)
    if e.op is PERMUTE:
        axis_of = dict(zip(nontrivial, order, strict=True))
        order = tuple([axis_of[i] for i in e.params[0] if i in axis_of])
    if order == _nontrivial_axes(source.shape):
        if source is x and e.op is RESHAPE:
            inner = rewriting.operands_if(x, RESHAPE)
            return _reshaped(rewriting, inner[0], shape) if inner else None
        return _reshaped(rewriting, source, shape)
    full_order = _full_order(source.shape, order, shape)
    if full_order is not None:
        return None if source is x else rewriting.write(PERMUTE, (source,), (full_order,))
    if e.op is RESHAPE and rewriting.operands_if(x, PERMUTE) == (source,):
        return None
    ones = tuple([i for i, n in enumerate(source.shape) if n == 1])
    return _reshaped(rewriting, rewriting.write(PERMUTE, (source,), (ones + order,)), shape)


def arrangement(rewriting: Rewriting, v: Variable) -> tuple[Variable, Axes]:
    """The value that v permutes, up to axes of size 1, and for each other axis of v its axis in that value."""
    nontrivial = order = _nontrivial_axes(v.shape)
    while (definition := rewriting.definition(v)) is not None and definition.op in (PERMUTE, RESHAPE):
        inner = definition.operands[0]
        before = _nontrivial_axes(inner.shape)
        if definition.op is PERMUTE:
            before = tuple([i for i in definition.params[0] if inner.shape[i] != 1])
        elif [inner.shape[i] for i in before] != [v.shape[i] for i in nontrivial]:
            break
        axis_of = dict(zip(nontrivial, before, strict=True))
        v, nontrivial, order = inner, _nontrivial_axes(inner.shape), tuple([axis_of[i] for i in order])
    return v, order


def _reshaped(rewriting: Rewriting, x: Variable, shape: Shape) -> Variable:
    """x in another shape; without an equation if x has that shape."""
    return x if x.shape == shape else rewriting.write(RESHAPE, (x,), (shape,))


def _nontrivial_axes(shape: Shape) -> Axes:
    """The axes whose size is not 1."""
    return tuple([i for i, n in enumerate(shape) if n != 1])


def _full_order(shape: Shape, order: Axes, new: Shape) -> Axes | None:
    """The permutation to shape `new` that has the axes of size other than 1 in `order`; None if there is none."""
    if len(shape) != len(new):
        return None
    ones = iter([i for i, n in enumerate(shape) if n == 1])
    rest = iter(order)
    return tuple([next(ones) if n == 1 else next(rest) for n in new])


def _expanded_twice(rewriting: Rewriting, e: Equation) -> Variable | None:
    inner = rewriting.operands_if(e.operands[0], EXPAND)
    return rewriting.write(EXPAND, inner, e.params) if inner else None


def _flipped_twice(rewriting: Rewriting, e: Equation) -> Variable | None:
    """Axes that are flipped twice are unchanged."""
    definition = rewriting.definition(e.operands[0])
    if definition is None or definition.op is not FLIP:
        return None
    axes = tuple(sorted(set(e.params[0]) ^ set(definition.params[0])))
    return rewriting.write(FLIP, definition.operands, (axes,)) if axes else definition.operands[0]


def _padded_twice(rewriting: Rewriting, e: Equation) -> Variable | None:
    definition = rewriting.definition(e.operands[0])
    if definition is None or definition.op is not PAD:
        return None
    pads = zip(definition.params[0], e.params[0], strict=True)
    return rewriting.write(PAD, definition.operands, (tuple([(a + c, b + d) for (a, b), (c, d) in pads]),))


def _cropped_twice(rewriting: Rewriting, e: Equation) -> Variable | None:
    definition = rewriting.definition(e.operands[0])
    if definition is None or definition.op is not CROP:
        return None
    limits = zip(definition.params[0], e.params[0], strict=True)
    return rewriting.write(CROP, definition.operands, (tuple([(a + c, a + d) for (a, _), (c, d) in limits]),))


def _crop_of_padded(rewriting: Rewriting, e: Equation) -> Variable | None:
    """A crop of a padded value: a crop of the value, then a pad by the rest of the padding."""
    definition = rewriting.definition(e.operands[0])
    if definition is None or definition.op is not PAD:
        return None
    x = definition.operands[0]
    limits, pads = [], []
    for n, (before, _), (start, end) in zip(x.shape, definition.params[0], e.params[0], strict=True):
        first, last = max(start, before), min(end, before + n)
        if first >= last:
            return zeros(e.results[0].shape, e.results[0])
        limits.append((first - before, last - before))
        pads.append((first - start, end - last))
    cuts = any([limit != (0, n) for limit, n in zip(limits, x.shape, strict=True)])
    fills = any([pad != (0, 0) for pad in pads])
    if cuts and fills and rewriting.uses.get(e.operands[0], 0) > 1:
        return None
    if cuts:
        x = rewriting.write(CROP, (x,), (tuple(limits),))
    if fills:
        x = rewriting.write(PAD, (x,), (tuple(pads),))
    return x


RULES = {
    RESHAPE: (_identity, _arranged),
    PERMUTE: (_identity, _arranged),
    EXPAND: (_identity, _expanded_twice),
    FLIP: (_identity, _flipped_twice),
    PAD: (_identity, _padded_twice),
    CROP: (_identity, _cropped_twice, _crop_of_padded),
    MAX: (reduces_nothing,),
    MIN: (reduces_nothing,),
}
