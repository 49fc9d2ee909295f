"""Movement: reshapes, permutations, expansions, flips, pads and crops merged with what they move, or dropped.

All rules give the same elements in the same places.
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
    """At most one equation where several moved the same elements one after the other, none where they stay.

    Bit for bit the same.
    """
    return rewritten(program, backend, RULES)


def _stays(sweep: Rewriting, e: Equation) -> Variable | None:
    """What gives its operand: to its own shape, in its own order, cut to all of it."""
    x = e.operands[0]
    if e.results[0].shape != x.shape:
        return None
    if e.op is PERMUTE:
        return x if e.params[0] == tuple(range(len(x.shape))) else None
    if e.op is FLIP:
        return x if all([x.shape[i] == 1 for i in e.params[0]]) else None
    return x


def reduces_nothing(sweep: Rewriting, e: Equation) -> Variable | None:
    """A reduction of axes of size 1; of a sum that is not exact, as it may turn -0.0 into 0.0."""
    x = e.operands[0]
    return x if all([x.shape[i] == 1 for i in e.params[0]]) else None


def _arranged(sweep: Rewriting, e: Equation) -> Variable | None:
    """Reshapes and permutations in a row.

    Of what only orders axes and moves those of size 1, at most one permutation and one reshape are left; a reshape that
    does more takes in the reshapes before it.
    """
    x, shape = e.operands[0], e.results[0].shape
    moves_ones = [n for n in x.shape if n != 1] == [n for n in shape if n != 1]
    if e.op is RESHAPE and not moves_ones:
        inner = sweep.operands_if(x, RESHAPE)
        return _reshaped(sweep, inner[0], shape) if inner else None
    source, order = arrangement(sweep, x)
    real = _real(x.shape)
    if e.op is PERMUTE:
        places = dict(zip(real, order, strict=True))
        order = tuple([places[i] for i in e.params[0] if i in places])
    if order == _real(source.shape):
        if source is x and e.op is RESHAPE:
            inner = sweep.operands_if(x, RESHAPE)
            return _reshaped(sweep, inner[0], shape) if inner else None
        return _reshaped(sweep, source, shape)
    whole = _whole_order(source.shape, order, shape)
    if whole is not None:
        return None if source is x else sweep.write(PERMUTE, (source,), (whole,))
    if e.op is RESHAPE and sweep.operands_if(x, PERMUTE) == (source,):
        return None
    ones = tuple([i for i, n in enumerate(source.shape) if n == 1])
    return _reshaped(sweep, sweep.write(PERMUTE, (source,), (ones + order,)), shape)


def arrangement(sweep: Rewriting, v: Variable) -> tuple[Variable, Axes]:
    """What a value is, but for the order of its axes and those of size 1; and which axis of that each other one is."""
    real = order = _real(v.shape)
    while (found := sweep.definition(v)) is not None and found.op in (PERMUTE, RESHAPE):
        inner = found.operands[0]
        before = _real(inner.shape)
        if found.op is PERMUTE:
            before = tuple([i for i in found.params[0] if inner.shape[i] != 1])
        elif [inner.shape[i] for i in before] != [v.shape[i] for i in real]:
            break
        places = dict(zip(real, before, strict=True))
        v, real, order = inner, _real(inner.shape), tuple([places[i] for i in order])
    return v, order


def _reshaped(sweep: Rewriting, x: Variable, shape: Shape) -> Variable:
    """x in another shape, without an equation if it has that."""
    return x if x.shape == shape else sweep.write(RESHAPE, (x,), (shape,))


def _real(shape: Shape) -> Axes:
    """The axes whose size is not 1."""
    return tuple([i for i, n in enumerate(shape) if n != 1])


def _whole_order(shape: Shape, order: Axes, wanted: Shape) -> Axes | None:
    """The order of all axes that gives the wanted shape, with those not of size 1 in `order`; None if none does."""
    if len(shape) != len(wanted):
        return None
    ones = iter([i for i, n in enumerate(shape) if n == 1])
    rest = iter(order)
    return tuple([next(ones) if n == 1 else next(rest) for n in wanted])


def _expanded_twice(sweep: Rewriting, e: Equation) -> Variable | None:
    inner = sweep.operands_if(e.operands[0], EXPAND)
    return sweep.write(EXPAND, inner, e.params) if inner else None


def _flipped_twice(sweep: Rewriting, e: Equation) -> Variable | None:
    """Axes that are flipped twice stay as they were."""
    found = sweep.definition(e.operands[0])
    if found is None or found.op is not FLIP:
        return None
    axes = tuple(sorted(set(e.params[0]) ^ set(found.params[0])))
    return sweep.write(FLIP, found.operands, (axes,)) if axes else found.operands[0]


def _padded_twice(sweep: Rewriting, e: Equation) -> Variable | None:
    found = sweep.definition(e.operands[0])
    if found is None or found.op is not PAD:
        return None
    pads = zip(found.params[0], e.params[0], strict=True)
    return sweep.write(PAD, found.operands, (tuple([(a + c, b + d) for (a, b), (c, d) in pads]),))


def _cropped_twice(sweep: Rewriting, e: Equation) -> Variable | None:
    found = sweep.definition(e.operands[0])
    if found is None or found.op is not CROP:
        return None
    limits = zip(found.params[0], e.params[0], strict=True)
    return sweep.write(CROP, found.operands, (tuple([(a + c, a + d) for (a, _), (c, d) in limits]),))


def _crop_of_padded(sweep: Rewriting, e: Equation) -> Variable | None:
    """What is cut from what was padded: a crop of the elements, and a pad, of what is left of each."""
    found = sweep.definition(e.operands[0])
    if found is None or found.op is not PAD:
        return None
    x = found.operands[0]
    limits, pads = [], []
    for n, (before, _), (start, end) in zip(x.shape, found.params[0], e.params[0], strict=True):
        first, last = max(start, before), min(end, before + n)
        if first >= last:
            return zeros(e.results[0].shape, e.results[0])
        limits.append((first - before, last - before))
        pads.append((first - start, end - last))
    cuts = any([limit != (0, n) for limit, n in zip(limits, x.shape, strict=True)])
    fills = any([pad != (0, 0) for pad in pads])
    if cuts and fills and sweep.uses.get(e.operands[0], 0) > 1:
        return None
    if cuts:
        x = sweep.write(CROP, (x,), (tuple(limits),))
    if fills:
        x = sweep.write(PAD, (x,), (tuple(pads),))
    return x


RULES = {
    RESHAPE: (_stays, _arranged),
    PERMUTE: (_stays, _arranged),
    EXPAND: (_stays, _expanded_twice),
    FLIP: (_stays, _flipped_twice),
    PAD: (_stays, _padded_twice),
    CROP: (_stays, _cropped_twice, _crop_of_padded),
    MAX: (reduces_nothing,),
    MIN: (reduces_nothing,),
}
