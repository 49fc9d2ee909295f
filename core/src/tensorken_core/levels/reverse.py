"""Reverse: an interpreter that records a tape (Wengert list) while it computes, and pulls cotangents back along it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic

from tensorken_core.language.dtypes import DType, bool_, float32, int32
from tensorken_core.language.higher_order import HigherOrderRules
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import Op, run
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.level import Level, lifted, meet
from tensorken_core.tensor.tensor import Tensor


@dataclass(slots=True)  # not frozen: made once an op, and a frozen one takes twice as long to make
class TapeValue(Generic[R]):
    """A value of the level below, and its place on the tape."""

    primal: R
    index: int | None  # None is a constant


@dataclass(frozen=True, slots=True)
class ShapeAndDtype:
    """What the tape keeps of a value whose elements no rule needs."""

    shape: Shape
    dtype: DType

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


TapeEntry = tuple[Op, list[int | None], list[Any], tuple[Any, ...]]
"""An op on the tape: the places of its operands, what its rules need of result and operands, its params."""

NOTHING, OUTLINE, VALUE = 0, 1, 2
"""How much of a value a rule needs."""

_ROLES = {"data": float32, "condition": bool_, "indices": int32}


transposing: ContextVar[bool] = ContextVar("tensorken_transposing", default=False)
"""Whether the op with programs that is being recorded belongs to a linear function, which is transposed."""


class Reverse(Level[TapeValue[R]]):
    """Computes at once, and records what the VJP rules will need."""

    transform = "vjp"
    linear = False
    """Whether it transposes a linear function, as the rule of a custom_jvp."""

    def __init__(self, inner: Interpreter[Any]) -> None:
        super().__init__(inner)
        self.tape: list[
            TapeEntry | None
        ] = []  # None is a variable, or a further result of the record before it

    def lift(self, x: R) -> TapeValue[R]:
        return TapeValue(x, None)

    def lower(self, x: TapeValue[R]) -> R:
        return x.primal

    def variable(self, x: R) -> TapeValue[R]:
        """A value whose cotangent will be asked for."""
        self.tape.append(None)
        return TapeValue(x, len(self.tape) - 1)

    def interpret(self, op: Op, operands: Sequence[TapeValue[R]], params: tuple[Any, ...]) -> Any:
        if self.closed:
            raise self.escaped_error(op.name)
        if op.higher_order is not None:
            return self._record_higher_order(op, op.higher_order, operands, params)
        inner = self.inner
        primals = [x.primal for x in operands]
        if op.primal_rule is not None and any([x.index is not None for x in operands]):
            return self._record_primals(op, operands, primals, params)
        y = run(inner, op, primals, params)
        places = [x.index for x in operands]
        active = (places[0] is not None,) if len(places) == 1 else tuple([p is not None for p in places])
        needs = op.tape_needs.get(active)
        if needs is None:
            needs = op.tape_needs[active] = _needs(op, active)
        if op.results != 1:
            return self._record_results(op, places, needs, primals, y, params)
        if not needs:
            return TapeValue(y, None)
        kept: list[Any] = [y, *primals]
        for i, need in enumerate(needs):
            if need != VALUE:
                x = kept[i]
                kept[i] = None if need == NOTHING else ShapeAndDtype(inner.shape(x), inner.dtype(x))
        record = (op, places, kept, params)
        tape = self.tape
        tape.append(record)
        place = len(tape) - 1
        return TapeValue(y, place if tape[place] is record else self._place_of(record))

    def _place_of(self, record: TapeEntry) -> int:
        """Where a new record stands, others of other threads perhaps behind it."""
        return next(place for place in range(len(self.tape) - 1, -1, -1) if self.tape[place] is record)

    def _record_results(
        self, op: Op, places: list[int | None], needs: tuple[int, ...], primals: list[R], ys: Any, params: Any
    ) -> tuple[TapeValue[R], ...]:
        """An op with several results takes as many places; the record stands at the first."""
        if not needs:
            return tuple([TapeValue(y, None) for y in ys])
        record = (op, places, [*ys, *primals], params)
        self.tape.extend([record, *[None] * (len(ys) - 1)])  # in one step, as other threads may record too
        first = self._place_of(record)
        return tuple([TapeValue(y, first + i) for i, y in enumerate(ys)])

    def _record_primals(
        self, op: Op, operands: Sequence[TapeValue[R]], primals: list[R], params: tuple[Any, ...]
    ) -> tuple[TapeValue[R], ...]:
        """An op whose results are others where it is differentiated, with more that its rules get."""
        if self.linear and op.transposes_through_body:
            assert op.body is not None
            results = op.body(*[Tensor(self, x) for x in operands], *params)
            return tuple([lifted(y, self) for y in results])
        places = [x.index for x in operands]
        assert op.primal_rule is not None
        active = tuple([place is not None for place in places])
        ys, kept = op.primal_rule(active, [Tensor(self.inner, p) for p in primals], params)
        results = [y.representation for y in (*ys, *kept)]
        return self._record_results(op, places, (VALUE,), primals, results, params)[: len(ys)]

    def _record_higher_order(
        self, op: Op, whole: HigherOrderRules[Op], operands: Sequence[TapeValue[R]], params: tuple[Any, ...]
    ) -> tuple[TapeValue[R], ...]:
        """An op with programs: one that gives what the derivative needs as further results runs in its place."""
        places = [x.index for x in operands]
        count: int | None = None
        needs: tuple[int, ...] = ()
        if any([place is not None for place in places]):
            token = transposing.set(self.linear)
            try:
                op, params, count = whole.with_residuals(
                    tuple([place is not None for place in places]), params
                )
            finally:
                transposing.reset(token)
            needs = (VALUE,)
        primals = [x.primal for x in operands]
        return self._record_results(op, places, needs, primals, run(self.inner, op, primals, params), params)[
            :count
        ]

    def pull_back(self, cotangents: dict[int, Tensor], *, consume: bool = False) -> dict[int, Tensor]:
        """The cotangents of the variables, by their place, from those of results.

        Each cotangent is initialised by its first contribution, accumulates the others, is propagated once, after
        all of them, and then freed.

        Args:
            consume: forget each record after use, so that its values can be freed; the tape serves once.
        """
        tape, inner = self.tape, self.inner
        for place in range(max(cotangents, default=-1), -1, -1):
            record = tape[place]
            if record is None:
                continue
            op, parents, kept, params = record
            if consume:
                tape[place] = None
            if op.vjp_all is not None:
                pulled = self._pull_all(place, record, cotangents)
            else:
                t = cotangents.pop(place, None)
                if t is None:
                    continue
                values = [x if x is None or type(x) is ShapeAndDtype else Tensor(inner, x) for x in kept]
                pulled = [
                    pull(t, *values, *params) if parent is not None and pull is not None else None
                    for parent, pull in zip(parents, op.vjp, strict=True)
                ]
            for parent, contribution in zip(parents, pulled, strict=True):
                if parent is not None and contribution is not None:
                    known = cotangents.get(parent)
                    cotangents[parent] = contribution if known is None else known + contribution
        return cotangents

    def _pull_all(
        self, place: int, record: TapeEntry, cotangents: dict[int, Tensor]
    ) -> Sequence[Tensor | None]:
        """An op with one rule for all operands, or with several results."""
        op, parents, kept, params = record
        results = len(kept) - len(parents)
        given = [cotangents.pop(place + i, None) for i in range(results)]
        if not any([t is not None for t in given]):
            return [None] * len(parents)
        assert op.vjp_all is not None
        values = [Tensor(self.inner, x) for x in kept]
        active = (tuple([parent is not None for parent in parents]),) if op.vjp_needs_active else ()
        pulled: Sequence[Tensor | None] = op.vjp_all(
            given, values[:results], values[results:], params, *active
        )
        return pulled

    def at_inner(self, x: Tensor) -> Tensor:
        """A tensor at the level below; one above it stays, as a pullback may be differentiated itself."""
        if x.interpreter is self.inner or meet((x.interpreter, self.inner), self.transform) is not self.inner:
            return x
        return Tensor(self.inner, lifted(x, self.inner), x.shape, x.dtype)


# ---- what the tape must keep -------------------------------------------------------------------------------


class _Probe(Interpreter[Any]):
    """Runs rules on shapes and dtypes alone, and notes which values they read."""

    def __init__(self) -> None:
        self.used: set[int] = set()
        self.outlined: set[int] = set()

    def shape(self, x: Any) -> Shape:
        self.outlined.add(id(x))
        return x.shape  # type: ignore[no-any-return]

    def dtype(self, x: Any) -> DType:
        self.outlined.add(id(x))
        return x.dtype  # type: ignore[no-any-return]

    def full(self, shape: Shape, value: Any, dtype: DType) -> ShapeAndDtype:
        return ShapeAndDtype(shape, dtype)

    def new(self, shape: Shape, data: Any, dtype: DType) -> ShapeAndDtype:
        return ShapeAndDtype(shape, dtype)

    def interpret(self, op: Op, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
        self.used.update(map(id, operands))
        shape = op.shape(*[x.shape for x in operands], *params)
        dtype = op.result_dtype(tuple([x.dtype for x in operands]), params)
        if op.results == 1:
            return ShapeAndDtype(shape, dtype)
        return tuple([ShapeAndDtype(*facts) for facts in zip(shape, dtype, strict=True)])


def _needs(op: Op, active: tuple[bool, ...]) -> tuple[int, ...]:
    """How much of the result and of each operand the VJP needs when these operands are active.

    Found by running the rules on the op's samples; () if nothing is to be recorded.
    """
    if op.vjp_all is None and not any(
        is_active and rule is not None for is_active, rule in zip(active, op.vjp, strict=False)
    ):
        return ()
    if op.vjp_all is not None and not any(active):
        return ()
    count = (op.results or 1) + len(active)
    if op.vjp_all is not None or not op.samples:
        return (VALUE,) * count
    needs = [NOTHING] * count
    dtypes = [_ROLES[role] for role in op.operand_kinds] or [float32] * len(active)
    for shapes, params in op.samples:
        probe = _Probe()
        xs = [ShapeAndDtype(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
        y = ShapeAndDtype(op.shape(*shapes, *params), op.result_dtype(tuple(dtypes), params))
        values = [y, *xs]
        t = ShapeAndDtype(y.shape, y.dtype)
        for is_active, rule in zip(active, op.vjp, strict=True):
            if is_active and rule is not None:
                result = rule(
                    Tensor(probe, t, t.shape, t.dtype), *[Tensor(probe, v) for v in values], *params
                )
                if result is not None:
                    probe.used.add(id(result.representation))
        for i, value in enumerate(values):
            if id(value) in probe.used:
                needs[i] = VALUE
            elif id(value) in probe.outlined:
                needs[i] = max(needs[i], OUTLINE)
    return tuple(needs)
