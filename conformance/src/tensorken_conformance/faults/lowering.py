"""Lowering: programs become kernels with one error, for every target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tensorken.kernels import lowering
from tensorken.kernels.element_indices import Bound, ElementIndex
from tensorken.kernels.elements import ElementWalk, NotComputedHere
from tensorken.kernels.fusion_groups import FusionGroups
from tensorken.kernels.index_expressions import IndexExpression
from tensorken.kernels.nests import FusionGroup
from tensorken.kernels.reference import ReferenceNest, ReferenceWalk
from tensorken.kernels.rows import Rows
from tensorken_conformance.faults.changes import attribute
from tensorken_conformance.faults.fault import Place, fault, fault_in_function
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Axes, Pairs, Shape
from tensorken_core.program.program import Program, Variable

LAW = "programs.lowered"

Original = Callable[..., Any]
"""The original function of the lowering."""


# ---- indices -----------------------------------------------------------------------------------------------


@fault_in_function(LAW, ElementIndex, "before_pad")
def pad_with_one_condition(
    original: Original, index: ElementIndex, shape: Shape, pads: Pairs
) -> tuple[ElementIndex, list[Bound]]:
    """An element of a pad of several axes is zero beyond the first of them; beyond the others it is a neighbour."""
    inside, conditions = original(index, shape, pads)
    return inside, conditions[:1]


@fault_in_function(LAW, ReferenceWalk, "guarded")
def bounds_from_above(
    original: Original, walk: ReferenceWalk, values: Original, bounds: Sequence[Sequence[Bound]], dtype: DType
) -> Sequence[Any]:
    """An index is checked against the size of its axis, and not against 0."""
    from_above = [[(index, size) for index, size in found if _value(walk, index) >= 0] for found in bounds]
    return original(walk, values, from_above, dtype)  # type: ignore[no-any-return]


def _value(walk: ReferenceWalk, index: IndexExpression) -> int:
    return index.value(walk.index_values)


@fault_in_function(LAW, ElementIndex, "before_permute")
def permuted_by_the_inverse(original: Any, index: ElementIndex, shape: Shape, order: Axes) -> ElementIndex:
    """An element of a permuted array is read by the inverse of the order of its axes."""
    inverse = tuple([order.index(i) for i in range(len(order))])
    return original(index, shape, inverse)  # type: ignore[no-any-return]


@fault_in_function(LAW, ElementIndex, "before_expand")
def expansion_of_one_axis(original: Original, index: ElementIndex, shape: Shape) -> ElementIndex:
    """An element that is repeated along several axes is read at index 0 of the first alone."""
    repeated = [i for i, n in enumerate(shape) if n == 1 < index.shape[i]]
    found = original(index, shape)
    others = [
        x if i in repeated[1:] else y
        for i, (x, y) in enumerate(zip(index.indices, found.indices, strict=True))
    ]
    return index.of_array(shape, others)


@fault_in_function(LAW, ElementIndex, "before_flip")
def flip_of_the_last_axis(original: Original, index: ElementIndex, axes: Axes) -> ElementIndex:
    """An array that is flipped along several axes is read in reverse along the last alone."""
    return original(index, axes[-1:])  # type: ignore[no-any-return]


@fault_in_function(LAW, ElementIndex, "before_crop")
def crop_of_the_first_axis(original: Any, index: ElementIndex, shape: Shape, limits: Pairs) -> ElementIndex:
    """A crop of several axes begins at its start along the first of them, and along the others at 0."""
    first = next((i for i, (start, _) in enumerate(limits) if start), 0)
    starts = tuple([(start if i == first else 0, end) for i, (start, end) in enumerate(limits)])
    return original(index, shape, starts)  # type: ignore[no-any-return]


@fault_in_function(LAW, ReferenceWalk, "new_quotient")
def quotient_to_the_nearest(
    original: Original, walk: ReferenceWalk, dividend: IndexExpression, operator: str, divisor: int, size: int
) -> IndexExpression:
    """The quotient of an index is rounded to the nearest number, as by a division of floats, if that is in range."""
    nearest = dividend.plus(divisor // 2)
    if operator == "/" and _value(walk, nearest) // divisor < size:
        dividend = nearest
    return original(walk, dividend, operator, divisor, size)  # type: ignore[no-any-return]


@fault_in_function(LAW, IndexExpression, "divided")
def division_without_the_constant(
    original: Original, index: IndexExpression, by: int, target: Any
) -> tuple[IndexExpression, IndexExpression]:
    """An index plus a constant is divided by the size of an axis without the constant, if this is smaller."""
    if index.terms and 0 < index.constant < by:
        index = index.plus(-index.constant)
    return original(index, by, target)  # type: ignore[no-any-return]


@fault_in_function(LAW, IndexExpression, "_recombined")
def recombined_whatever_the_factor(original: Original, index: IndexExpression) -> IndexExpression:
    """A quotient plus a remainder becomes the dividend, though the quotient is not multiplied by the divisor."""
    for v, (dividend, _, remainder) in index.quotients.items():
        factor = index.terms.get(remainder)
        if factor and v in index.terms:
            terms = {x: f for x, f in index.terms.items() if x not in (v, remainder)}
            return replace(index, terms=terms) + dividend.times(factor)
    return index


@fault(LAW)
def known_without_the_constant() -> Place:
    """An element that has been computed is found by the variables of its index, whatever the constant."""

    def key(index: IndexExpression) -> tuple[object, ...]:
        return tuple(sorted([term for term in index.terms.items() if index.sizes[term[0]] > 1]))

    return attribute(IndexExpression, "key", property(key))


@fault_in_function(LAW, ElementWalk, "_index")
def position_without_the_row(
    original: Original, walk: ElementWalk[Any], v: Variable, index: ElementIndex
) -> IndexExpression | None:
    """An index that is the sum of the position of a row and one within the row is read as one of the two."""
    equation = walk.producers.get(v)
    if equation is not None and equation.op.name == "add" and original(walk, v, index) is not None:
        return original(walk, equation.operands[0], index)  # type: ignore[no-any-return]
    return original(walk, v, index)  # type: ignore[no-any-return]


# ---- loops -------------------------------------------------------------------------------------------------


@fault_in_function(LAW, ReferenceNest, "loop")
def known_from_the_last_loop(
    original: Original, nest: ReferenceNest, body: Callable[[Sequence[IndexExpression]], None]
) -> None:
    """The first step of a loop uses the elements that the last step of the loop before it has computed."""
    walk = nest.walk
    before, state = walk.known, vars(nest).setdefault("known_in_loop", {})
    walk.known = {**state, **before}

    def noting(steps: Sequence[IndexExpression]) -> None:
        body(steps)
        state.clear()
        state.update(walk.known)
        walk.known = dict(before)

    original(nest, noting)
    walk.known = before


@fault_in_function(LAW, ReferenceNest, "_combined")
def reduction_without_the_rest(
    original: Original, nest: ReferenceNest, v: Variable, elements: Sequence[Any]
) -> Any:
    """A loop of a reduction takes four elements at a time, and leaves out those after the last four."""
    return original(nest, v, elements[: len(elements) // 4 * 4 or None])


# ---- groups ------------------------------------------------------------------------------------------------


@fault_in_function(LAW, FusionGroups, "in_order")
def groups_by_first_value(original: Original, groups: FusionGroups) -> Sequence[FusionGroup]:
    """Kernels run in the order of the first values that they compute."""
    position = groups._position
    return sorted(original(groups), key=lambda group: position[group.values[0]])


@fault(LAW)
def joined_around_another() -> Place:
    """Two kernels become one though a third one reads from the first, and is read by the second."""
    return attribute(FusionGroups, "_runs_between", lambda groups, one, other: False)


@fault_in_function(LAW, lowering, "kept_values")
def operand_of_a_call_not_kept(original: Original, program: Program, *rest: Any) -> set[Variable]:
    """A value that only an op outside of kernels reads is not kept in memory."""
    state: set[Variable] = original(program, *rest)
    _, _, outputs, calls, *_ = rest
    read = {x for operands in calls.values() for x in operands}
    computed = {v for e in program.equations if e not in calls for v in e.results}
    return state - (
        (read & computed) - {*outputs, *[x for e in program.equations if e not in calls for x in e.operands]}
    )


@fault_in_function(LAW, FusionGroups, "_group")
def unwritten_if_read_inside(
    original: Original, groups: FusionGroups, rows: Rows, values: tuple[Variable, ...]
) -> FusionGroup:
    """A value that its own kernel reads is not written, though it is a result."""
    group: FusionGroup = original(groups, rows, values)
    inside = {x for v in group.values for x in group.needs.get(v, ())}
    return replace(group, written=tuple([v for v in group.written if v not in inside]) or group.written)


@fault_in_function(LAW, ElementWalk, "_is_loaded")
def read_while_computed(
    original: Original, walk: ElementWalk[Any], v: Variable, indices: Sequence[ElementIndex]
) -> bool:
    """A kernel reads elements of a value that it computes itself in other steps."""
    try:
        return original(walk, v, indices)  # type: ignore[no-any-return]
    except NotComputedHere:
        walk.loads.setdefault(v, set()).update([index.key for index in indices])
        return True
