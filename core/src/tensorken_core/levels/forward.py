"""Forward: a level that computes a tangent with each value (dual numbers)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

from tensorken_core.language.higher_order import HigherOrderRules
from tensorken_core.language.interpreter import R
from tensorken_core.language.op import Op, run
from tensorken_core.tensor.dispatch import at_one_level
from tensorken_core.tensor.level import ClosureError, Level, deepest, lifted
from tensorken_core.tensor.tensor import Tensor


@dataclass(slots=True)  # not frozen: every op makes one, and a frozen one takes twice as long
class Dual(Generic[R]):
    """A primal and its tangent, both values of the level below."""

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
        if all([x.tangent is None for x in operands]):
            y = run(inner, op, primals, params)
            return Dual(y, None) if op.results == 1 else tuple([Dual(part, None) for part in y])
        if op.higher_order is not None:
            return self._jvp_higher_order(op.higher_order, operands, primals, params)
        tangents = [None if x.tangent is None else Tensor(inner, x.tangent) for x in operands]
        xs = [Tensor(inner, primal) for primal in primals]
        if op.jvp_with_primals is not None:
            ys, pushed = op.jvp_with_primals(tangents, xs, params)
            return self._duals([y.representation for y in ys], pushed)
        result = run(inner, op, primals, params)
        results = (result,) if op.results == 1 else result
        duals = self._duals(results, jvp_of_op(op, tangents, [Tensor(inner, y) for y in results], xs, params))
        return duals[0] if op.results == 1 else duals

    def _jvp_higher_order(
        self,
        rules: HigherOrderRules[Op],
        operands: Sequence[Dual[R]],
        primals: list[R],
        params: tuple[Any, ...],
    ) -> tuple[Dual[R], ...]:
        """Run, in place of an op with programs, the op that computes its results and their tangents."""
        inner = self.inner
        active = tuple([x.tangent is not None for x in operands])
        op, params, with_tangent, results_with_tangent = rules.jvp(active, params)
        tangents = [
            Tensor(inner, x.primal).zeros_like().representation if x.tangent is None else x.tangent
            for x, needed in zip(operands, with_tangent, strict=True)
            if needed
        ]
        results = run(inner, op, [*primals, *tangents], params)
        pushed = iter(results[len(results_with_tangent) :])
        return tuple(
            [
                Dual(y, next(pushed) if has_tangent else None)
                for y, has_tangent in zip(results, results_with_tangent, strict=False)
            ]
        )

    def _duals(self, results: Sequence[R], tangents: Sequence[Tensor | None]) -> tuple[Dual[R], ...]:
        pairs = zip(results, tangents, strict=True)
        return tuple([Dual(y, None if t is None else self._at_inner(t)) for y, t in pairs])

    def _at_inner(self, tangent: Tensor) -> R:
        """A rule's result as a representation of the level below; a constant is lifted to that level."""
        inner = self.inner
        if tangent.interpreter is inner:
            return tangent.representation  # type: ignore[no-any-return]
        if deepest((tangent.interpreter, inner), self.transform) is not inner:
            raise ClosureError(self.transform, "a derivative rule")
        return lifted(tangent, inner)  # type: ignore[no-any-return]


def jvp_of_op(
    op: Op,
    tangents: Sequence[Tensor | None],
    ys: Sequence[Tensor],
    xs: Sequence[Tensor],
    params: tuple[Any, ...],
) -> Sequence[Tensor | None]:
    """The tangents of an op's results, from the tangents of its operands; None is an exact zero."""
    if op.higher_order is not None:
        active = tuple([t is not None for t in tangents])
        op, params, with_tangent, results_with_tangent = op.higher_order.jvp(active, params)
        instantiated = [
            x.zeros_like() if t is None else t
            for t, x, needed in zip(tangents, xs, with_tangent, strict=True)
            if needed
        ]
        interpreter, operands = at_one_level(op, [*xs, *instantiated])
        results = run(interpreter, op, operands, params)
        result_tangents = iter(results[len(results_with_tangent) :])
        return [Tensor(interpreter, next(result_tangents)) if one else None for one in results_with_tangent]
    if op.jvp_all is not None:
        pushed: Sequence[Tensor | None] = op.jvp_all(tangents, ys, xs, params)
        return pushed
    total: Tensor | None = None
    for t, rule in zip(tangents, op.jvp, strict=False):
        if t is not None and rule is not None:
            term = rule(t, *ys, *xs, *params)
            if term is not None:
                total = term if total is None else total + term
    return [total, *[None] * (len(ys) - 1)]
