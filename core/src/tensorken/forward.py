"""Forward: an interpreter that carries a tangent beside each value (dual numbers)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

from tensorken.levels import Level, lift
from tensorken.spec.interpreter import R
from tensorken.spec.op import Op, run
from tensorken.tensor import Tensor


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
            raise self.refuse(op.name)
        inner = self.inner
        primals = [x.primal for x in operands]
        y = run(inner, op, primals, params)
        if op.jvp_all is not None or op.results != 1:
            return self._push_all(op, operands, primals, y, params)
        tangent = None
        xs: list[Tensor] | None = None
        for x, push in zip(operands, op.jvp, strict=False):
            if x.tangent is None or push is None:
                continue
            if xs is None:
                xs = [Tensor(inner, y), *[Tensor(inner, primal) for primal in primals]]
            pushed = push(Tensor(inner, x.tangent), *xs, *params)
            if pushed is not None:
                tangent = pushed if tangent is None else tangent + pushed
        return Dual(y, None if tangent is None else self._at_inner(tangent))

    def _push_all(
        self, op: Op, operands: Sequence[Dual[R]], primals: list[R], y: Any, params: tuple[Any, ...]
    ) -> Any:
        """Ops with a rule for all operands at once, or with several results."""
        inner = self.inner
        results = (y,) if op.results == 1 else y
        tangents: Sequence[Tensor | None] = [None] * len(results)
        if op.jvp_all is not None and any(x.tangent is not None for x in operands):
            given = [None if x.tangent is None else Tensor(inner, x.tangent) for x in operands]
            ys, xs = [Tensor(inner, r) for r in results], [Tensor(inner, p) for p in primals]
            tangents = op.jvp_all(given, ys, xs, params)
        duals = [
            Dual(r, None if t is None else self._at_inner(t)) for r, t in zip(results, tangents, strict=True)
        ]
        return duals[0] if op.results == 1 else tuple(duals)

    def _at_inner(self, tangent: Tensor) -> R:
        """A rule's result as a representation of the level below; it may have been built from constants alone."""
        return lift(tangent.representation, tangent.interpreter, self.inner)  # type: ignore[no-any-return]
