"""Predicates on the equations and variables of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Literal, Variable


def is_literal(v: Variable) -> TypeGuard[Literal]:
    """Whether a variable is a literal.  The test by attribute needs no import of programs."""
    return hasattr(v, "value")


def is_elementwise(equation: Equation) -> bool:
    """Whether each element of the only result depends on the same element of each operand; casts included."""
    return (equation.op.elementwise or equation.op.name == "cast") and equation.op.results == 1


def runs_body(equation: Equation, backend: Any) -> bool:
    """Whether the op runs its default body, as the backend has no method for it."""
    return not (equation.op.method and backend.has(equation.op))
