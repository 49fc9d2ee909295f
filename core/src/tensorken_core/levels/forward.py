"""Forward: an interpreter that carries a tangent beside each value (dual numbers)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

from tensorken_core.language.higher_order import HigherOrderRules
from tensorken_core.language.interpreter import R
from tensorken_core.language.op import Op, run
from tensorken_core.tensor.dispatch import at_one_level
from tensorken_core.tensor.level import ClosureError, Level, lift, meet
from tensorken_core.tensor.tensor import Tensor


@dataclass(slots=True)  # not frozen: made once an op, and a frozen one takes twice as long to make
class Dual(Generic[R]):
    """A value and its tangent, both of the level below."""

    primal: R
    tangent: R | None  # None is an exact zero


class Forward(Level[Dual[R]]):
    """Pushes tangents forward, op by op; it keeps no trace, so memory does not grow with the number of ops."""

    transform = "jvp"

    def lift(self, x: R) -> Dual[R]:
        return Dual(x, None)

    def lower(self, x: Dual[R]) -> R:
        return x.primal

    def interpret(self, op: Op, operands: Sequence[Dual[R]], params: tuple[Any, ...]) -> Any:
        if self.closed:
            raise self.escaped_error(op.name)
        inner = self.inner
        primals = [x.primal for x in operands]
        if op.jvp_with_primals is not None and any([x.tangent is not None for x in operands]):
            given = [None if x.tangent is None else Tensor(inner, x.tangent) for x in operands]
            ys, tangents = op.jvp_with_primals(given, [Tensor(inner, p) for p in primals], params)
            return self._duals([y.representation for y in ys], tangents)
        if op.higher_order is not None and any([x.tangent is not None for x in operands]):
            return self._push_higher_order(op.higher_order, operands, primals, params)
        y = run(inner, op, primals, params)
        if op.jvp_all is not None or op.results != 1:
            return self._push_all(op, operands, primals, y, params)
        tangent = None
        for x in operands:
            if x.tangent is not None:
                given = [None if x.tangent is None else Tensor(inner, x.tangent) for x in operands]
                values = [Tensor(inner, y), *[Tensor(inner, primal) for primal in primals]]
                tangent = _through_rules(op, given, values, params)
                break
        return Dual(y, None if tangent is None else self._at_inner(tangent))

    def _push_higher_order(
        self,
        whole: HigherOrderRules[Op],
        operands: Sequence[Dual[R]],
        primals: list[R],
        params: tuple[Any, ...],
    ) -> tuple[Dual[R], ...]:
        """An op with programs: one that gives the tangents too runs in its place."""
        inner = self.inner
        active = tuple([x.tangent is not None for x in operands])
        op, params, wanted, pattern = whole.jvp(active, params)
        tangents = [
            Tensor(inner, x.primal).zeros_like().representation if x.tangent is None else x.tangent
            for x, one in zip(operands, wanted, strict=True)
            if one
        ]
        results = run(inner, op, [*primals, *tangents], params)
        pushed = iter(results[len(pattern) :])
        return tuple(
            [Dual(y, next(pushed) if one else None) for y, one in zip(results, pattern, strict=False)]
        )

    def _push_all(
        self, op: Op, operands: Sequence[Dual[R]], primals: list[R], y: Any, params: tuple[Any, ...]
    ) -> Any:
        """Ops with a rule for all operands at once, or with several results."""
        inner = self.inner
        results = (y,) if op.results == 1 else y
        tangents: Sequence[Tensor | None] = [None] * len(results)
        if any([x.tangent is not None for x in operands]):
            given = [None if x.tangent is None else Tensor(inner, x.tangent) for x in operands]
            ys, xs = [Tensor(inner, r) for r in results], [Tensor(inner, p) for p in primals]
            tangents = pushed_through(op, given, ys, xs, params)
        duals = self._duals(results, tangents)
        return duals[0] if op.results == 1 else duals

    def _duals(self, results: Sequence[R], tangents: Sequence[Tensor | None]) -> tuple[Dual[R], ...]:
        return tuple(
            [
                Dual(y, None if t is None else self._at_inner(t))
                for y, t in zip(results, tangents, strict=True)
            ]
        )

    def _at_inner(self, tangent: Tensor) -> R:
        """A rule's result as a representation of the level below; it may have been built from constants alone."""
        inner = self.inner
        if tangent.interpreter is inner:
            return tangent.representation  # type: ignore[no-any-return]
        if meet((tangent.interpreter, inner), self.transform) is not inner:
            raise ClosureError(self.transform, "a derivative rule")
        return lift(tangent.representation, tangent.interpreter, inner)  # type: ignore[no-any-return]


def pushed_through(
    op: Op,
    tangents: Sequence[Tensor | None],
    ys: Sequence[Tensor],
    xs: Sequence[Tensor],
    params: tuple[Any, ...],
) -> Sequence[Tensor | None]:
    """The tangents of an op's results, from those of its operands; None is an exact zero."""
    if op.higher_order is not None:
        op, params, wanted, pattern = op.higher_order.jvp(tuple([t is not None for t in tangents]), params)
        given = [
            x.zeros_like() if t is None else t for t, x, one in zip(tangents, xs, wanted, strict=True) if one
        ]
        interpreter, operands = at_one_level(op, [*xs, *given])
        found = iter(run(interpreter, op, operands, params)[len(pattern) :])
        return [Tensor(interpreter, next(found)) if one else None for one in pattern]
    if op.jvp_all is not None:
        pushed: Sequence[Tensor | None] = op.jvp_all(tangents, ys, xs, params)
        return pushed
    return [_through_rules(op, tangents, [*ys, *xs], params), *[None] * (len(ys) - 1)]


def _through_rules(
    op: Op, tangents: Sequence[Tensor | None], values: Sequence[Tensor], params: tuple[Any, ...]
) -> Tensor | None:
    """The sum of what an op's rules, one an operand, make of its tangents; `values` are its result and operands."""
    tangent: Tensor | None = None
    for t, push in zip(tangents, op.jvp, strict=False):
        if t is not None and push is not None:
            pushed = push(t, *values, *params)
            if pushed is not None:
                tangent = pushed if tangent is None else tangent + pushed
    return tangent
