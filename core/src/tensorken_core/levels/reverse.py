"""Reverse: a level that records a tape (Wengert list) while it computes, and pulls cotangents back along it."""

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
from tensorken_core.tensor.level import Level, deepest, lifted
from tensorken_core.tensor.tensor import Tensor


@dataclass(slots=True)  # not frozen: every op makes one, and a frozen one takes twice as long
class TapeValue(Generic[R]):
    """A value of the level below, and its index on the tape."""

    primal: R
    index: int | None  # None is a constant


@dataclass(slots=True)
class ShapeAndDtype:
    """The shape and dtype of a value on the tape whose elements no rule reads."""

    shape: Shape
    dtype: Any  # None if no rule reads it

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


TapeEntry = tuple[Op, list[int | None], list[Any], tuple[Any, ...]]
"""An op, the tape indices of its operands, its results and operands as far as the rules need them, its params."""

NOTHING, SHAPE, SHAPE_AND_DTYPE, VALUE = range(4)
"""How much of a value a rule needs."""

transposing: ContextVar[bool] = ContextVar("tensorken_transposing", default=False)
"""Whether the higher-order op that is being recorded belongs to a linear function, which is transposed."""


class Reverse(Level[TapeValue[R]]):
    """Computes each op at once, and records the values that its VJP rule needs."""

    transform = "vjp"
    linear = False
    """Whether this level transposes a linear function, such as the rule of a custom_jvp."""

    def __init__(self, inner: Interpreter[Any]) -> None:
        super().__init__(inner)
        self.tape: list[TapeEntry | None] = []
        """An entry is None for a variable, and for each result of an op after the first."""

    def lift(self, x: R) -> TapeValue[R]:
        return TapeValue(x, None)

    def lower(self, x: TapeValue[R]) -> R:
        return x.primal

    def variable(self, x: R) -> TapeValue[R]:
        """A value whose cotangent `pull_back` returns."""
        self.tape.append(None)
        return TapeValue(x, len(self.tape) - 1)

    def interpret(self, op: Op, operands: Sequence[TapeValue[R]], params: tuple[Any, ...]) -> Any:
        if self.closed:
            raise self.escaped_error(op.name)
        primals: list[Any]
        indices: list[int | None]
        if len(operands) == 1:  # Python 3.11 calls a comprehension as a function
            (a,) = operands
            primals, indices = [a.primal], [a.index]
            active: tuple[bool, ...] = (a.index is not None,)
        elif len(operands) == 2:
            a, b = operands
            primals, indices = [a.primal, b.primal], [a.index, b.index]
            active = (a.index is not None, b.index is not None)
        else:
            primals, indices = [x.primal for x in operands], [x.index for x in operands]
            active = tuple([index is not None for index in indices])
        needs = op.tape_needs.get(active)
        if needs is None:
            if op.higher_order is not None:
                return self._record_higher_order(op, op.higher_order, active, indices, primals, params)
            if op.primal_rule is not None and any(active):
                return self._record_primal_rule(op, operands, active, indices, primals, params)
            needs = op.tape_needs[active] = _tape_needs(op, active)
        y = run(self.inner, op, primals, params)
        if op.results != 1:
            return self._record(op, indices, needs, primals, y, params)
        if not needs:
            return TapeValue(y, None)
        kept = [y, *primals]
        for i, need in enumerate(needs):
            if need != VALUE:
                x = kept[i]
                dtype = self.inner.dtype(x) if need == SHAPE_AND_DTYPE else None
                kept[i] = None if need == NOTHING else ShapeAndDtype(self.inner.shape(x), dtype)
        entry = (op, indices, kept, params)
        tape = self.tape
        tape.append(entry)
        index = len(tape) - 1
        return TapeValue(y, index if tape[index] is entry else self._index_of(entry))

    def _index_of(self, entry: TapeEntry) -> int:
        """The index of a new entry; other threads may have appended entries after it."""
        return next(index for index in range(len(self.tape) - 1, -1, -1) if self.tape[index] is entry)

    def _record(
        self,
        op: Op,
        indices: list[int | None],
        needs: tuple[int, ...],
        primals: list[R],
        ys: Any,
        params: Any,
    ) -> tuple[TapeValue[R], ...]:
        """Record an op with several results: one index on the tape for each result, the entry at the first one."""
        if not needs:
            return tuple([TapeValue(y, None) for y in ys])
        entry = (op, indices, [*ys, *primals], params)
        self.tape.extend([entry, *[None] * (len(ys) - 1)])  # one step, since other threads may record too
        first = self._index_of(entry)
        return tuple([TapeValue(y, first + i) for i, y in enumerate(ys)])

    def _record_primal_rule(
        self,
        op: Op,
        operands: Sequence[TapeValue[R]],
        active: tuple[bool, ...],
        indices: list[int | None],
        primals: list[R],
        params: tuple[Any, ...],
    ) -> tuple[TapeValue[R], ...]:
        """Record an op whose primal rule computes its results and the residuals of its VJP."""
        if self.linear and op.transposes_through_body:
            assert op.body is not None
            results = op.body(*[Tensor(self, x) for x in operands], *params)
            return tuple([lifted(y, self) for y in results])
        assert op.primal_rule is not None
        ys, residuals = op.primal_rule(active, [Tensor(self.inner, p) for p in primals], params)
        results = [y.representation for y in (*ys, *residuals)]
        return self._record(op, indices, (VALUE,), primals, results, params)[: len(ys)]

    def _record_higher_order(
        self,
        op: Op,
        rules: HigherOrderRules[Op],
        active: tuple[bool, ...],
        indices: list[int | None],
        primals: list[R],
        params: tuple[Any, ...],
    ) -> tuple[TapeValue[R], ...]:
        """Record, in place of an op with programs, the op that returns its results and the residuals."""
        count: int | None = None
        if any(active):
            token = transposing.set(self.linear)
            try:
                op, params, count = rules.with_residuals(active, params)
            finally:
                transposing.reset(token)
        results = run(self.inner, op, primals, params)
        needs = (VALUE,) if any(active) else ()
        return self._record(op, indices, needs, primals, results, params)[:count]

    def pull_back(self, cotangents: dict[int, Tensor], *, consume: bool = False) -> dict[int, Tensor]:
        """The cotangents of the variables by tape index, from the cotangents of results.

        The tape is read backwards.  Contributions to a cotangent are added as they arrive.  All have arrived when the
        entry of its op is reached, so the op's rule runs once, and the cotangent is freed.

        Args:
            consume: whether to drop each entry after use, which frees its values; the tape can then be used once.
        """
        tape, inner, shape = self.tape, self.inner, self.inner.shape
        for index in range(max(cotangents, default=-1), -1, -1):
            entry = tape[index]
            if entry is None:
                continue
            op, parents, kept, params = entry
            if consume:
                tape[index] = None
            if op.vjp_all is not None:
                for parent, contribution in zip(
                    parents, self._pull_all(index, entry, cotangents), strict=True
                ):
                    _add(cotangents, parent, contribution)
                continue
            t = cotangents.pop(index, None)
            if t is None:
                continue
            values: list[Any] = []
            for x in kept:
                values.append(x if x is None or type(x) is ShapeAndDtype else Tensor(inner, x, shape(x)))
            for parent, rule in zip(parents, op.vjp, strict=True):
                if parent is not None and rule is not None:
                    _add(cotangents, parent, rule(t, *values, *params))
        return cotangents

    def _pull_all(
        self, index: int, entry: TapeEntry, cotangents: dict[int, Tensor]
    ) -> Sequence[Tensor | None]:
        """The cotangents of the operands of an op with one rule for all, or with several results."""
        op, parents, kept, params = entry
        results = len(kept) - len(parents)
        result_cotangents = [cotangents.pop(index + i, None) for i in range(results)]
        if not any([t is not None for t in result_cotangents]):
            return [None] * len(parents)
        assert op.vjp_all is not None
        values = [Tensor(self.inner, x) for x in kept]
        active = (tuple([parent is not None for parent in parents]),) if op.vjp_needs_active else ()
        pulled: Sequence[Tensor | None] = op.vjp_all(
            result_cotangents, values[:results], values[results:], params, *active
        )
        return pulled

    def at_inner(self, x: Tensor) -> Tensor:
        """A tensor lifted to the level below; a tensor above it is unchanged, for pullbacks that are differentiated."""
        inner = self.inner
        if x.interpreter is inner or deepest((x.interpreter, inner), self.transform) is not inner:
            return x
        return Tensor(inner, lifted(x, inner), x.shape, x.dtype)


def _add(cotangents: dict[int, Tensor], index: int | None, contribution: Tensor | None) -> None:
    """Add a contribution to the cotangent at a tape index; None is an exact zero, or an operand without cotangent."""
    if index is not None and contribution is not None:
        total = cotangents.get(index)
        cotangents[index] = contribution if total is None else total + contribution


# ---- how much the tape keeps -------------------------------------------------------------------------------

_SAMPLE_DTYPES = {"data": float32, "condition": bool_, "indices": int32}


class _Reads(Interpreter[Any]):
    """Runs rules on shapes and dtypes without values, and records which values they read."""

    eager = False

    def __init__(self) -> None:
        self.values: set[int] = set()
        self.shapes: set[int] = set()
        self.dtypes: set[int] = set()

    def shape(self, x: Any) -> Shape:
        self.shapes.add(id(x))
        return x.shape  # type: ignore[no-any-return]

    def dtype(self, x: Any) -> DType:
        self.dtypes.add(id(x))
        return x.dtype  # type: ignore[no-any-return]

    def full(self, shape: Shape, value: Any, dtype: DType) -> ShapeAndDtype:
        return ShapeAndDtype(shape, dtype)

    def new(self, shape: Shape, data: Any, dtype: DType) -> ShapeAndDtype:
        return ShapeAndDtype(shape, dtype)

    def interpret(self, op: Op, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
        self.values.update(map(id, operands))
        shape = op.shape(*[x.shape for x in operands], *params)
        dtype = op.result_dtype(tuple([x.dtype for x in operands]), params)
        if op.results == 1:
            return ShapeAndDtype(shape, dtype)
        return tuple([ShapeAndDtype(*parts) for parts in zip(shape, dtype, strict=True)])


def _tape_needs(op: Op, active: tuple[bool, ...]) -> tuple[int, ...]:
    """How much the VJP needs of the result and of each operand, if these operands are active.

    It is found by running the rules on the op's samples; () if the tape need not record the op.
    """
    rules = [rule for is_active, rule in zip(active, op.vjp, strict=False) if is_active and rule is not None]
    if not (rules if op.vjp_all is None else any(active)):
        return ()
    count = (op.results or 1) + len(active)
    if op.vjp_all is not None or not op.samples:
        return (VALUE,) * count
    needs = [NOTHING] * count
    dtypes = tuple([_SAMPLE_DTYPES[kind] for kind in op.operand_kinds or ("data",) * len(active)])
    for shapes, params in op.samples:
        reads = _Reads()
        y = ShapeAndDtype(op.shape(*shapes, *params), op.result_dtype(dtypes, params))
        values = [y, *[ShapeAndDtype(*parts) for parts in zip(shapes, dtypes, strict=True)]]
        t = Tensor(reads, ShapeAndDtype(y.shape, y.dtype), y.shape, y.dtype)
        for rule in rules:
            result = rule(t, *[Tensor(reads, v) for v in values], *params)
            if result is not None:
                reads.values.add(id(result.representation))
        for i, value in enumerate(values):
            if id(value) in reads.values:
                needs[i] = VALUE
            elif id(value) in reads.dtypes:
                needs[i] = max(needs[i], SHAPE_AND_DTYPE)
            elif id(value) in reads.shapes:
                needs[i] = max(needs[i], SHAPE)
    return tuple(needs)
