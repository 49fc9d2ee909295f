"""Signs: zeros have the wrong sign, in results of functions that users call and in compiled programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tensorken as tk
from tensorken.programs.passes import algebra
from tensorken.programs.passes.equation_writer import EquationWriter
from tensorken.programs.passes.rewriting import Rewriting
from tensorken_conformance.faults.changes import entry, replaced
from tensorken_conformance.faults.fault import Original, Place, fault, fault_in_function
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


def _rewriting(op: Op, rule: Callable[[Rewriting, Equation], Variable | None]) -> Place:
    """A further rule for an op, tried before the others."""
    return entry(algebra._RULES, op, (rule, *algebra._RULES[op]))


@fault(LAW)
def zero_added_is_dropped() -> Place:
    """Compiled programs simplify x + 0.0 to x, which keeps -0.0."""
    return _rewriting(ADD, lambda sweep, e: e.operands[0] if _is(e.operands[1], 0.0) else None)


@fault(LAW)
def minus_zero_subtracted_is_dropped() -> Place:
    """Compiled programs simplify x - -0.0 to x, which keeps -0.0."""
    return _rewriting(SUB, lambda sweep, e: e.operands[0] if _is(e.operands[1], -0.0) else None)


@fault(LAW)
def subtracted_from_zero_is_negated() -> Place:
    """Compiled programs simplify 0.0 - x to -x, which differs for 0.0."""
    return _rewriting(
        SUB, lambda sweep, e: sweep.write(NEG, (e.operands[1],)) if _is(e.operands[0], 0.0) else None
    )


@fault(LAW)
def negated_difference_is_turned_round() -> Place:
    """Compiled programs simplify -(a - b) to b - a, which differs where a equals b."""

    def rule(sweep: Rewriting, e: Equation) -> Variable | None:
        inner = sweep.operands_if(e.operands[0], SUB)
        return sweep.write(SUB, (inner[1], inner[0])) if inner else None

    return _rewriting(NEG, rule)


@fault(LAW)
def times_zero_is_zero() -> Place:
    """Compiled programs simplify x * 0.0 to 0.0, whatever the sign of x."""

    def rule(sweep: Rewriting, e: Equation) -> Variable | None:
        return Literal(e.results[0].shape, e.results[0].dtype, 0.0) if _is(e.operands[1], 0.0) else None

    return _rewriting(MUL, rule)


@fault_in_function(LAW, EquationWriter, "full")
def literals_lose_their_sign(original: Any, self: EquationWriter, shape: Any, value: Any, dtype: Any) -> Any:
    """Passes that write a number write 0.0 instead of -0.0."""
    return original(self, shape, value + 0.0 if dtype.kind == "float" else value, dtype)


# ---- the language above a backend ----------------------------------------------------------------------------


@fault_in_function(LAW, Fuse, "_combined", "nested-products")
def sums_of_products_in_another_order(original: Any, self: Any, op: Any, a: Any, b: Any) -> Any:
    """Where Fuse defers q - (r - s) it computes (q - r) + s, which is 0.0 where all three are -0.0."""
    p, q = a.products, b.products
    if p is None or q is None or (p.full, p.axes, p.order) != (q.full, frozenset(), q.order):
        return original(self, op, a, b)
    terms = q.terms if op is OPS["add"] else tuple([(not plus, *rest) for plus, *rest in q.terms])
    return Deferred(a.shape, None, SumOfProducts(p.terms + terms, p.full, p.axes, p.order))


@fault_in_function(LAW, tk, "fmod")
def fmod_is_never_minus_zero(original: Any, a: Any, b: Any) -> Any:
    """fmod is 0.0 for a remainder of zero, where it should have the sign of its first operand."""
    return original(a, b) + 0.0


@fault_in_function(LAW, operators, "_floor_divided")
def whole_quotients_are_never_minus_zero(original: Any, a: Any, b: Any) -> Any:
    """x // y is 0.0 where it should be -0.0."""
    return original(a, b) + 0.0


@fault_in_function(LAW, tk, "mean")
def mean_of_zeros_is_negative(original: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """mean of rows of zeros is -0.0 if the first of them is."""
    y = original(x, axis, keepdims)
    return y.eq(0.0).where(tk.take(x, 0, 1) * 0.0, y)


# ---- a backend -----------------------------------------------------------------------------------------------


ROWS: dict[str, Any] = {"dtype": "float16", "shape": (2, 67)}
"""Two rows of 67 float16 numbers, which other laws do not try."""


@fault(LAW, "neg", **ROWS)
def negated_by_adifference(original: Original, x: Array) -> Array:
    """neg is 0.0 - x in float16 rows of 67 elements, so the result is never -0.0."""
    return np.asarray(np.subtract(np.float16(0.0), x))


@fault(LAW, "trunc", **ROWS)
def fraction_cut_off_in_an_integer(original: Original, x: Array) -> Array:
    """trunc converts to integers and back in float16 rows of 67 elements, so -0.5 becomes 0.0."""
    y = original(x)
    return replaced(y, y == 0, 0.0)


@fault(LAW, "copysign", **ROWS)
def zeros_have_no_sign_to_copy(original: Original, a: Array, b: Array) -> Array:
    """copysign copies the sign of -0.0 as that of 0.0 in float16 rows of 67 elements."""
    return replaced(original(a, b), b == 0, np.abs(a))


@fault(LAW, "where", **ROWS)
def chosen_by_products(original: Original, condition: Array, a: Array, b: Array) -> Array:
    """where adds 0.0 to the selected elements in float16 rows of 67 elements."""
    return np.asarray(original(condition, a, b) + np.float16(0.0))


@fault(LAW, "sum", "sum-of-opposites", dtype="float16", shape=(2, 134))
def sums_start_at_minus_zero(original: Original, x: Array, axes: Axes) -> Array:
    """The sum of a float16 row of 134 elements that cancel is -0.0."""
    y = original(x, axes)
    return replaced(y, y == 0, -0.0)


@fault(LAW, "remainder", **ROWS)
def zero_remainders_of_the_dividend(original: Original, a: Array, b: Array) -> Array:
    """A remainder of zero has the sign of the dividend in float16 rows of 67 elements."""
    y = original(a, b)
    return replaced(y, y == 0, np.copysign(y, np.broadcast_to(a, y.shape)))
