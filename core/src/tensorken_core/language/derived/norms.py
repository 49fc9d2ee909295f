# mypy: disable-error-code="empty-body"
"""The derived op `norm`."""

from __future__ import annotations

from typing import Any

from tensorken_core.language.bodies import norms
from tensorken_core.language.declare import primitive
from tensorken_core.language.dtype_rules import of_kinds
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.shapes import Axes, reduced


def _unit_vector(y: Any, x: Any) -> Any:
    """x / y, and 0 where y is 0."""
    origin = y.eq(0.0)
    return origin.where(0.0, x) / origin.where(1.0, y)


class Norms(Interpreter[R]):
    """Norms of vectors."""

    @primitive(
        shape=reduced,
        dtype=of_kinds("float", params=1),
        jvp=(lambda t, y, x, axes: (t * _unit_vector(y, x)).sum(axes, keepdims=True),),
        vjp=(lambda t, y, x, axes: t * _unit_vector(y, x),),
        body=norms.norm,
        samples=((((2, 3),), ((1,),)), (((2, 3),), ((0, 1),))),
    )
    def norm(self, x: R, axes: Axes) -> R:
        """The 2-norm over axes, which are kept with size 1; squares do not overflow; the derivative at 0 is 0."""
