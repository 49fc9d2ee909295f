"""Batch: an interpreter whose values stand for one value an example; the batch is the first axis at the level below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

from tensorken_core.errors import ConcretizationError
from tensorken_core.language.bodies.arrangement import multiples
from tensorken_core.language.dtypes import int32, int64
from tensorken_core.language.higher_order import HigherOrderRules
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.level import Level, current_level, interpreter_below, lifted, meet, new_levels_on
from tensorken_core.tensor.tensor import Tensor

SHIFT: dict[str, Callable[[Any, int], Any]] = {
    "axes": lambda axes, size: tuple([axis + 1 for axis in axes]),
    "axis": lambda axis, size: axis + 1,
    "shape": lambda shape, size: (size, *shape),
    "order": lambda order, size: (0, *[axis + 1 for axis in order]),
    "pads": lambda pads, size: ((0, 0), *pads),
    "limits": lambda limits, size: ((0, size), *limits),
}
"""What the params of each kind become when the operands have one axis more, of some size, in front."""


@dataclass(slots=True)
class Batched(Generic[R]):
    """A value of the level below, and whether its first axis runs over the examples; else all share it."""

    value: R
    batched: bool


class Batch(Level[Batched[R]]):
    """Runs each op once for all examples: on values with one axis more, with the params shifted by their kinds.

    An op on values that all examples share runs once, on them alone.
    """

    transform = "vmap"
    hint = "return it from the function"

    def __init__(self, inner: Interpreter[Any], size: int) -> None:
        super().__init__(inner)
        self.size = size

    def shape(self, x: Batched[R]) -> Shape:
        shape = self.inner.shape(x.value)
        return shape[1:] if x.batched else shape

    def dtype(self, x: Batched[R]) -> Any:
        return self.inner.dtype(x.value)

    def lift(self, x: R) -> Batched[R]:
        return Batched(x, False)

    def lower(self, x: Batched[R]) -> R:
        if x.batched:
            raise ConcretizationError(
                f"vmap: this value differs between the {self.size} examples, so it has no single value here; "
                f"use tk.where to choose by it, or read it after vmap has returned"
            )
        return x.value

    def lower_with_batch_axis(self, x: Batched[R]) -> R:
        return x.value

    def check_open(self, op_name: str) -> None:
        """Raise an EscapedTensorError if vmap has returned."""
        if self.closed:
            raise self.escaped_error(op_name)

    def whole(self, x: Batched[R]) -> Tensor:
        """All examples' values, at the level below; what they share is repeated."""
        value = Tensor(self.inner, x.value)
        if x.batched:
            return value
        shape = value.shape
        return value.reshape((1, *shape)).expand((self.size, *shape))

    def interpret(self, op: Op, operands: Sequence[Batched[R]], params: tuple[Any, ...]) -> Any:
        self.check_open(op.name)
        flags = tuple([x.batched for x in operands])
        if not any(flags):
            y, batched = run(self.inner, op, [x.value for x in operands], params), False
        elif op.higher_order is not None:
            return self._batch_higher_order(op.higher_order, operands, flags, params)
        elif op.per_example:
            over = _over_examples(op, self.size, flags)
            y, batched = run(self.inner, over, [x.value for x in operands], params), True
        else:
            params = tuple(
                [
                    SHIFT[kind](p, self.size) if kind in SHIFT else p
                    for kind, p in zip(op.params, params, strict=True)
                ]
            )
            values = [x.value if x.batched else self.whole(x).representation for x in operands]
            y, batched = run(self.inner, op, values, params), True
        if op.results == 1:
            return Batched(y, batched)
        return tuple([Batched(part, batched) for part in y])

    def _batch_higher_order(
        self,
        whole: HigherOrderRules[Op],
        operands: Sequence[Batched[R]],
        flags: tuple[bool, ...],
        params: tuple[Any, ...],
    ) -> tuple[Batched[R], ...]:
        """An op with programs: one for all examples runs in its place."""
        op, params, wanted, pattern = whole.batch(self.size, flags, params)
        values = [
            self.whole(x).representation if one else x.value for x, one in zip(operands, wanted, strict=True)
        ]
        ys = run(self.inner, op, values, params)
        return tuple([Batched(y, batched) for y, batched in zip(ys, pattern, strict=True)])

    # ---- the two ops that the params alone do not carry over ---------------------------------------------------

    def gather(self, x: Batched[R], indices: Batched[R], axis: int) -> Batched[R]:
        """Where each example has indices of its own, one gather takes the rows of all examples."""
        self.check_open("gather")
        if not indices.batched:
            return self._by_shared_indices(OPS["gather"], x, indices, (axis + 1,))
        wanted = Tensor(self.inner, indices.value)
        size, count = wanted.shape
        rows = Tensor(self.inner, x.value)
        if x.batched:
            rows, wanted = self._beside(rows, axis), self._own_rows(wanted, rows.shape[axis + 1])
        taken = rows.gather(wanted.reshape((size * count,)), axis)
        return Batched(self._in_front(taken, axis, count).representation, True)

    def scatter_add(self, x: Batched[R], indices: Batched[R], axis: int, size: int) -> Batched[R]:
        """Where each example has indices of its own, one scatter adds to the rows of all examples."""
        self.check_open("scatter_add")
        if not indices.batched:
            return self._by_shared_indices(OPS["scatter_add"], x, indices, (axis + 1, size))
        places = Tensor(self.inner, indices.value)
        rows = self._beside(self.whole(x), axis)
        flat = self._own_rows(places, size).reshape((places.size,))
        added = rows.apply(OPS["scatter_add"], flat, axis, self.size * size)
        return Batched(self._in_front(added, axis, size).representation, True)

    def _by_shared_indices(
        self, op: Op, x: Batched[R], indices: Batched[R], params: tuple[Any, ...]
    ) -> Batched[R]:
        if not x.batched:
            return self.interpret(op, (x, indices), (params[0] - 1, *params[1:]))  # type: ignore[no-any-return]
        return Batched(run(self.inner, op, (x.value, indices.value), params), True)

    def _own_rows(self, indices: Tensor, count: int) -> Tensor:
        """Indices into the rows of all examples; one out of range is held within those of its example."""
        top = max(count - 1, 0)
        indices = (indices < 0).where(0, (indices > top).where(top, indices))
        if indices.dtype is int32 and self.size * count > 2**31 - 1:
            indices = indices.astype(int64)
        starts = indices.constant(multiples(count, self.size), indices.dtype, (self.size,))
        return indices + starts.reshape((self.size, 1))

    def _beside(self, x: Tensor, axis: int) -> Tensor:
        """The batch axis merged into an axis of the examples: their rows one after the other."""
        x = x.permute((*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))
        shape = x.shape
        return x.reshape((*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))

    def _in_front(self, x: Tensor, axis: int, count: int) -> Tensor:
        """The inverse of `_beside`: `count` rows an example."""
        x = x.reshape((*x.shape[:axis], self.size, count, *x.shape[axis + 1 :]))
        return x.permute((axis, *range(axis), *range(axis + 1, x.ndim)))


# ---- functions of examples ---------------------------------------------------------------------------------


def vmap_flat(
    function: Callable[..., Sequence[Tensor | None]], size: int, flags: Sequence[bool]
) -> Callable[..., list[Tensor | None]]:
    """A function of tensors, each with the axis of the examples in front if its flag says so; so are all results."""

    def over(*xs: Tensor) -> list[Tensor | None]:
        level, ys = _of_examples(function, size, flags, xs)
        return [None if y is None else level.whole(y) for y in ys]

    return over


def vmap_flat_with_flags(
    function: Callable[..., Sequence[Tensor]], size: int, flags: Sequence[bool], least: Sequence[bool]
) -> Callable[..., tuple[list[Tensor], tuple[bool, ...]]]:
    """As `vmap_flat`, but what the examples share stays one; and which results have the axis of the examples.

    Args:
        least: which results have it in any case.
    """

    def over(*xs: Tensor) -> tuple[list[Tensor], tuple[bool, ...]]:
        level, ys = _of_examples(function, size, flags, xs)
        wanted = tuple([y.batched or one for y, one in zip(ys, least, strict=True)])  # type: ignore[union-attr]
        return [
            level.whole(y) if one else Tensor(level.inner, y.value)  # type: ignore[arg-type, union-attr]
            for y, one in zip(ys, wanted, strict=True)
        ], wanted

    return over


def _of_examples(
    function: Callable[..., Sequence[Tensor | None]], size: int, flags: Sequence[bool], xs: Sequence[Tensor]
) -> tuple[Batch[Any], list[Batched[Any] | None]]:
    """A level for the examples, and what a function gives there."""
    inner = interpreter_below([x.interpreter for x in xs], "vmap")
    level: Batch[Any] = Batch(inner, size)
    values = [Tensor(level, Batched(lifted(x, inner), flag)) for x, flag in zip(xs, flags, strict=True)]
    with current_level(level):
        return level, [None if y is None else lifted(y, level) for y in function(*values)]


def _over_examples(op: Op, size: int, flags: tuple[bool, ...]) -> Op:
    """An op whose body and rules are for one example, for a batch of them."""
    count = len(flags)

    def mapped(function: Callable[..., Any], *groups: tuple[Sequence[Tensor | None], Sequence[bool]]) -> Any:
        """The function of groups of tensors, where None stays None, over the examples."""
        tensors = [x for xs, _ in groups for x in xs if x is not None]
        batched = [flag for xs, own in groups for x, flag in zip(xs, own, strict=True) if x is not None]

        def regrouped(*values: Tensor) -> Any:
            rest = iter(values)
            return function(*[[None if x is None else next(rest) for x in xs] for xs, _ in groups])

        with new_levels_on(meet([x.interpreter for x in tensors], op.name)):
            return vmap_flat(regrouped, size, batched)(*tensors)

    def body(*args: Any) -> Any:
        xs, params = args[:count], args[count:]

        def one(values: Any) -> Any:
            y = op.body(*values, *params)  # type: ignore[misc]
            return (y,) if op.results == 1 else y

        ys = mapped(one, (xs, flags))
        return ys[0] if op.results == 1 else tuple(ys)

    def primal(active: Any, xs: Any, params: Any) -> Any:
        counts: list[int] = []

        def one(values: Any) -> Any:
            ys, kept = op.primal_rule(active, values, params)  # type: ignore[misc]
            counts.append(len(ys))
            return [*ys, *kept]

        results = mapped(one, (xs, flags))
        return results[: counts[0]], results[counts[0] :]

    def both(tangents: Any, xs: Any, params: Any) -> Any:
        counts: list[int] = []

        def one(ts: Any, values: Any) -> Any:
            ys, pushed = op.jvp_with_primals(ts, values, params)  # type: ignore[misc]
            counts.append(len(ys))
            return [*ys, *pushed]

        results = mapped(one, (tangents, flags), (xs, flags))
        return results[: counts[0]], results[counts[0] :]

    def push(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
        everywhere = [True] * len(ys)
        return mapped(
            lambda ts, y, x: op.jvp_all(ts, y, x, params),  # type: ignore[misc]
            (tangents, flags),
            (ys, everywhere),
            (xs, flags),
        )

    def pull(cotangents: Any, ys: Any, xs: Any, params: Any, *active: Any) -> Any:
        pulled = mapped(
            lambda ts, y, x: op.vjp_all(ts, y, x, params, *active),  # type: ignore[misc]
            (cotangents, [True] * len(cotangents)),
            (ys, [True] * len(ys)),  # what the rule keeps is among them
            (xs, flags),
        )
        return [
            t if t is None or flag else t.sum(0)  # what the examples share gets a share from each
            for t, flag in zip(pulled, flags, strict=True)
        ]

    def shape(*args: Any) -> Any:
        one = [s[1:] if flag else s for s, flag in zip(args[:count], flags, strict=True)]
        found = op.shape(*one, *args[count:])
        return (size, *found) if op.results == 1 else tuple([(size, *s) for s in found])

    return replace(
        op,
        shape=op.shape if op.results is None else shape,
        body=body,
        primal_rule=primal if op.primal_rule is not None else None,
        jvp_with_primals=both if op.jvp_with_primals is not None else None,
        jvp_all=push if op.jvp_all is not None else None,
        vjp_all=pull if op.vjp_all is not None else None,
        tape_needs={},
        result_dtypes={},
    )
