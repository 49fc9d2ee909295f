"""Signs: zeros have the wrong sign, of functions that users call and in programs that are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tensorken as tk
from tensorken.programs.passes import algebra
from tensorken.programs.passes.equation_writer import EquationWriter
from tensorken.programs.passes.rewriting import Rewriting
from tensorken_conformance.faults.changes import attribute, entry, replaced
from tensorken_conformance.faults.fault import Course, Right, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.shapes import Axes
from tensorken_core.program.program import Equation, Literal, Variable
from tensorken_core.rewriting.fuse import Deferred, Fuse, SumOfProducts
from tensorken_core.tensor import operators

LAW = "values.signs"
ADD, SUB, MUL, NEG = (OPS[name] for name in ("add", "sub", "mul", "neg"))


def _is(v: Variable, number: float) -> bool:
    return isinstance(v, Literal) and v.dtype.kind == "float" and v.value == number


# ---- passes ------------------------------------------------------------------------------------------------


def _rewriting(op: Op, rule: Callable[[Rewriting, Equation], Variable | None]) -> Course:
    """A further rule for an op, which goes before the others."""
    with entry(algebra._RULES, op, (rule, *algebra._RULES[op])):
        yield None


@fault(LAW)
def zero_added_is_dropped() -> Course:
    """Compiled programs take x + 0.0 for x, which keeps -0.0."""
    yield from _rewriting(ADD, lambda sweep, e: e.operands[0] if _is(e.operands[1], 0.0) else None)


@fault(LAW)
def minus_zero_subtracted_is_dropped() -> Course:
    """Compiled programs take x - -0.0 for x, which keeps -0.0."""
    yield from _rewriting(SUB, lambda sweep, e: e.operands[0] if _is(e.operands[1], -0.0) else None)


@fault(LAW)
def subtracted_from_zero_is_negated() -> Course:
    """Compiled programs take 0.0 - x for -x, which differs for 0.0."""
    yield from _rewriting(
        SUB, lambda sweep, e: sweep.write(NEG, (e.operands[1],)) if _is(e.operands[0], 0.0) else None
    )


@fault(LAW)
def negated_difference_is_turned_round() -> Course:
    """Compiled programs take -(a - b) for b - a, which differs where a equals b."""

    def rule(sweep: Rewriting, e: Equation) -> Variable | None:
        inner = sweep.operands_if(e.operands[0], SUB)
        return sweep.write(SUB, (inner[1], inner[0])) if inner else None

    yield from _rewriting(NEG, rule)


@fault(LAW)
def times_zero_is_zero() -> Course:
    """Compiled programs take x * 0.0 for 0.0, whatever the sign of x."""

    def rule(sweep: Rewriting, e: Equation) -> Variable | None:
        return Literal(e.results[0].shape, e.results[0].dtype, 0.0) if _is(e.operands[1], 0.0) else None

    yield from _rewriting(MUL, rule)


@fault(LAW)
def literals_lose_their_sign() -> Course:
    """Passes that write a number write 0.0 in place of -0.0."""
    right = EquationWriter.full

    def full(self: EquationWriter, shape: Any, value: Any, dtype: Any) -> Variable:
        return right(self, shape, value + 0.0 if dtype.kind == "float" else value, dtype)

    with attribute(EquationWriter, "full", full):
        yield None


# ---- the language above a backend ----------------------------------------------------------------------------


@fault(LAW, "nested-products", fuse=True)
def sums_of_products_in_another_order() -> Course:
    """Where Fuse holds back q - (r - s) it computes (q - r) + s, which is 0.0 where all three are -0.0."""
    right = Fuse._combined

    def combined(self: Any, op: Any, a: Any, b: Any) -> Any:
        p, q = a.products, b.products
        if p is None or q is None or (p.full, p.axes, p.order) != (q.full, frozenset(), q.order):
            return right(self, op, a, b)
        terms = q.terms if op is OPS["add"] else tuple([(not plus, *rest) for plus, *rest in q.terms])
        return Deferred(a.shape, None, SumOfProducts(p.terms + terms, p.full, p.axes, p.order))

    with attribute(Fuse, "_combined", combined):
        yield None


@fault(LAW)
def fmod_is_never_minus_zero() -> Course:
    """fmod gives 0.0 for a remainder of zero, where it should have the sign of its first operand."""
    right: Any = tk.fmod
    with attribute(tk, "fmod", lambda a, b: right(a, b) + 0.0):
        yield None


@fault(LAW)
def whole_quotients_are_never_minus_zero() -> Course:
    """x // y gives 0.0 where it should be -0.0."""
    right: Any = operators._floor_divided
    with attribute(operators, "_floor_divided", lambda a, b: right(a, b) + 0.0):
        yield None


@fault(LAW)
def mean_of_zeros_is_negative() -> Course:
    """mean of rows of zeros is -0.0 if the first of them is."""
    right = tk.mean

    def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        y = right(x, axis, keepdims)
        return y.eq(0.0).where(tk.take(x, 0, 1) * 0.0, y)

    with attribute(tk, "mean", mean):
        yield None


# ---- a backend -----------------------------------------------------------------------------------------------


def _rows(x: Array) -> bool:
    """Two rows of 67 float16 numbers, which other laws do not try."""
    return bool(x.shape == (2, 67) and x.dtype == np.float16)


@fault(LAW, "neg")
def negated_by_adifference(right: Right, x: Array) -> Array:
    """neg is 0.0 - x in float16 rows of 67 elements, so -0.0 never comes."""
    return np.subtract(x.dtype.type(0.0), x) if _rows(x) else right(x)


@fault(LAW, "trunc")
def fraction_cut_off_in_an_integer(right: Right, x: Array) -> Array:
    """trunc goes by way of integers in float16 rows of 67 elements, so -0.5 becomes 0.0."""
    y = right(x)
    return replaced(y, y == 0, 0.0) if _rows(x) else y


@fault(LAW, "copysign")
def zeros_have_no_sign_to_copy(right: Right, a: Array, b: Array) -> Array:
    """copysign takes the sign of its second operand for that of its order to 0.0 in float16 rows of 67 elements."""
    y = right(a, b)
    return replaced(y, b == 0, np.abs(a)) if _rows(y) else y


@fault(LAW, "where")
def chosen_by_products(right: Right, condition: Array, a: Array, b: Array) -> Array:
    """where adds 0.0 to what it chooses in float16 rows of 67 elements."""
    y = right(condition, a, b)
    return y + y.dtype.type(0.0) if _rows(y) else y


@fault(LAW, "sum", "sum-of-opposites")
def sums_start_at_minus_zero(right: Right, x: Array, axes: Axes) -> Array:
    """The sum of a float16 row of 134 elements that cancel is -0.0."""
    y = right(x, axes)
    return replaced(y, y == 0, -0.0) if x.dtype == np.float16 and x.shape == (2, 134) else y


@fault(LAW, "remainder")
def zero_remainders_of_the_dividend(right: Right, a: Array, b: Array) -> Array:
    """A remainder of zero has the sign of the dividend in float16 rows of 67 elements."""
    y = right(a, b)
    return replaced(y, y == 0, np.copysign(y, np.broadcast_to(a, y.shape))) if _rows(y) else y
