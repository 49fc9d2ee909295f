"""Batch: a level whose values have one value for each example, stacked along the first axis at the level below."""

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
from tensorken_core.tensor.level import Level, current_level, deepest, interpreter_below, levels_on, lifted
from tensorken_core.tensor.tensor import Tensor

SHIFT_PARAM: dict[str, Callable[[Any, int], Any]] = {
    "axes": lambda axes, size: tuple([axis + 1 for axis in axes]),
    "axis": lambda axis, size: axis + 1,
    "shape": lambda shape, size: (size, *shape),
    "order": lambda order, size: (0, *[axis + 1 for axis in order]),
    "pads": lambda pads, size: ((0, 0), *pads),
    "limits": lambda limits, size: ((0, size), *limits),
}
"""For each kind of param a function that adapts the param to a new first axis of a given size."""


@dataclass(slots=True)
class Batched(Generic[R]):
    """A value of the level below, and whether its first axis is the batch axis; if not, all examples share it."""

    value: R
    batched: bool


class Batch(Level[Batched[R]]):
    """Runs each op once for all examples: on values with a batch axis, with params shifted to match.

    An op on values that all examples share runs without the batch axis.
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
                f"vmap: this value differs between the {self.size} examples, so it has no single value; "
                f"use tk.where to select by it, or read it outside vmap"
            )
        return x.value

    def lower_with_batch_axis(self, x: Batched[R]) -> R:
        return x.value

    def check_open(self, op_name: str) -> None:
        """Raise an EscapedTensorError if vmap has returned."""
        if self.closed:
            raise self.escaped_error(op_name)

    def with_batch_axis(self, x: Batched[R]) -> Tensor:
        """The value at the level below, with the batch axis; a shared value is repeated."""
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
            vmapped = _vmapped_op(op, self.size, flags)
            y, batched = run(self.inner, vmapped, [x.value for x in operands], params), True
        elif op.batch is not None:
            xs = [Tensor(self.inner, x.value) for x in operands]
            result = op.batch(flags, xs, params)
            y = result.representation if op.results == 1 else tuple([part.representation for part in result])
            batched = True
        else:
            params = tuple(
                [
                    SHIFT_PARAM[kind](p, self.size) if kind in SHIFT_PARAM else p
                    for kind, p in zip(op.params, params, strict=True)
                ]
            )
            values = [x.value if x.batched else self.with_batch_axis(x).representation for x in operands]
            y, batched = run(self.inner, op, values, params), True
        if op.results == 1:
            return Batched(y, batched)
        return tuple([Batched(part, batched) for part in y])

    def _batch_higher_order(
        self,
        rules: HigherOrderRules[Op],
        operands: Sequence[Batched[R]],
        flags: tuple[bool, ...],
        params: tuple[Any, ...],
    ) -> tuple[Batched[R], ...]:
        """Run, in place of an op with programs, the op for all examples."""
        op, params, with_axis, results_with_axis = rules.batch(self.size, flags, params)
        values = [
            self.with_batch_axis(x).representation if needed else x.value
            for x, needed in zip(operands, with_axis, strict=True)
        ]
        ys = run(self.inner, op, values, params)
        return tuple([Batched(y, batched) for y, batched in zip(ys, results_with_axis, strict=True)])

    # ---- the two ops for which shifting the params is not enough ------------------------------------------------

    def gather(self, x: Batched[R], indices: Batched[R], axis: int) -> Batched[R]:
        """If each example has its own indices, one gather takes the rows of all examples."""
        self.check_open("gather")
        if not indices.batched:
            return self._with_shared_indices(OPS["gather"], x, indices, (axis + 1,))
        index = Tensor(self.inner, indices.value)
        size, count = index.shape
        rows = Tensor(self.inner, x.value)
        if x.batched:
            rows, index = (
                self._merge_batch_axis(rows, axis),
                self._offset_indices(index, rows.shape[axis + 1]),
            )
        gathered = rows.gather(index.reshape((size * count,)), axis)
        return Batched(self._split_batch_axis(gathered, axis, count).representation, True)

    def scatter_add(self, x: Batched[R], indices: Batched[R], axis: int, size: int) -> Batched[R]:
        """If each example has its own indices, one scatter_add adds to the rows of all examples."""
        self.check_open("scatter_add")
        if not indices.batched:
            return self._with_shared_indices(OPS["scatter_add"], x, indices, (axis + 1, size))
        index = Tensor(self.inner, indices.value)
        rows = self._merge_batch_axis(self.with_batch_axis(x), axis)
        flat = self._offset_indices(index, size).reshape((index.size,))
        result = rows.apply(OPS["scatter_add"], flat, axis, self.size * size)
        return Batched(self._split_batch_axis(result, axis, size).representation, True)

    def _with_shared_indices(
        self, op: Op, x: Batched[R], indices: Batched[R], params: tuple[Any, ...]
    ) -> Batched[R]:
        if not x.batched:
            return self.interpret(op, (x, indices), (params[0] - 1, *params[1:]))  # type: ignore[no-any-return]
        return Batched(run(self.inner, op, (x.value, indices.value), params), True)

    def _offset_indices(self, indices: Tensor, count: int) -> Tensor:
        """Indices into the merged rows of all examples; an index out of range is clipped to the rows of its example."""
        top = max(count - 1, 0)
        indices = (indices < 0).where(0, (indices > top).where(top, indices))
        if indices.dtype is int32 and self.size * count > 2**31 - 1:
            indices = indices.astype(int64)
        starts = indices.constant(multiples(count, self.size), indices.dtype, (self.size,))
        return indices + starts.reshape((self.size, 1))

    def _merge_batch_axis(self, x: Tensor, axis: int) -> Tensor:
        """Merge the batch axis into another axis, so that the rows of the examples follow one another."""
        x = x.permute((*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))
        shape = x.shape
        return x.reshape((*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))

    def _split_batch_axis(self, x: Tensor, axis: int, count: int) -> Tensor:
        """The inverse of `_merge_batch_axis`, for `count` rows an example."""
        x = x.reshape((*x.shape[:axis], self.size, count, *x.shape[axis + 1 :]))
        return x.permute((axis, *range(axis), *range(axis + 1, x.ndim)))


# ---- functions of one example, and ops with such functions -------------------------------------------------


def vmap_flat(
    function: Callable[..., Sequence[Tensor | None]], size: int, flags: Sequence[bool]
) -> Callable[..., list[Tensor | None]]:
    """A function of one example, mapped over a batch.

    Args:
        function: from tensors to a sequence of tensors; None among its results stays None.
        size: the number of examples.
        flags: for each argument whether it has the batch axis, which all results have.
    """

    def mapped(*xs: Tensor) -> list[Tensor | None]:
        level, ys = at_batch_level(function, size, flags, xs)
        return [None if y is None else level.with_batch_axis(y) for y in ys]

    return mapped


def at_batch_level(
    function: Callable[..., Sequence[Tensor | None]], size: int, flags: Sequence[bool], xs: Sequence[Tensor]
) -> tuple[Batch[Any], list[Batched[Any] | None]]:
    """Run a function at a new Batch level; return the level, and the results at the level."""
    inner = interpreter_below([x.interpreter for x in xs], "vmap")
    level: Batch[Any] = Batch(inner, size)
    values = [Tensor(level, Batched(lifted(x, inner), flag)) for x, flag in zip(xs, flags, strict=True)]
    with current_level(level):
        return level, [None if y is None else lifted(y, level) for y in function(*values)]


Group = tuple[Sequence["Tensor | None"], Sequence[bool]]
"""Tensors, some of them None, and for each whether it has the batch axis."""


def _vmapped_op(op: Op, size: int, flags: tuple[bool, ...]) -> Op:
    """The op for a batch, from an op whose body and rules are for one example.

    Args:
        flags: for each operand whether it has the batch axis, which all results have.
    """

    def mapped(function: Callable[..., Any], *groups: Group) -> Any:
        """A function of groups of tensors of one example, mapped over the batch."""
        tensors = [x for xs, _ in groups for x in xs if x is not None]
        batched = [flag for xs, marks in groups for x, flag in zip(xs, marks, strict=True) if x is not None]

        def flat(*values: Tensor) -> Any:
            rest = iter(values)
            return function(*[[None if x is None else next(rest) for x in xs] for xs, _ in groups])

        with levels_on(deepest([x.interpreter for x in tensors], op.name)):
            return vmap_flat(flat, size, batched)(*tensors)

    def mapped_pair(function: Callable[..., Any], *groups: Group) -> tuple[Any, Any]:
        """As `mapped`, for a function that returns two sequences."""
        counts: list[int] = []

        def joined(*values: Any) -> Any:
            first, second = function(*values)
            counts.append(len(first))
            return [*first, *second]

        results = mapped(joined, *groups)
        return results[: counts[0]], results[counts[0] :]

    def body(*args: Any) -> Any:
        xs, params = args[: len(flags)], args[len(flags) :]

        def one(values: Any) -> Any:
            y = op.body(*values, *params)  # type: ignore[misc]
            return (y,) if op.results == 1 else y

        ys = mapped(one, (xs, flags))
        return ys[0] if op.results == 1 else tuple(ys)

    def primal_rule(active: Any, xs: Any, params: Any) -> Any:
        return mapped_pair(lambda x: op.primal_rule(active, x, params), (xs, flags))  # type: ignore[misc]

    def jvp_with_primals(tangents: Any, xs: Any, params: Any) -> Any:
        rule: Any = op.jvp_with_primals
        return mapped_pair(lambda t, x: rule(t, x, params), (tangents, flags), (xs, flags))

    def jvp_all(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
        rule: Any = op.jvp_all
        return mapped(
            lambda t, y, x: rule(t, y, x, params), (tangents, flags), (ys, [True] * len(ys)), (xs, flags)
        )

    def vjp_all(cotangents: Any, ys: Any, xs: Any, params: Any, *active: Any) -> Any:
        rule: Any = op.vjp_all
        pulled = mapped(
            lambda t, y, x: rule(t, y, x, params, *active),
            (cotangents, [True] * len(cotangents)),
            (ys, [True] * len(ys)),  # the residuals are among them
            (xs, flags),
        )
        # Each example contributes to the cotangent of an operand that all examples share.
        return [t if t is None or flag else t.sum(0) for t, flag in zip(pulled, flags, strict=True)]

    def shape(*args: Any) -> Any:
        one = [s[1:] if flag else s for s, flag in zip(args, flags, strict=False)]
        inner = op.shape(*one, *args[len(flags) :])
        return (size, *inner) if op.results == 1 else tuple([(size, *s) for s in inner])

    rules: dict[str, Any] = {"primal_rule": primal_rule, "jvp_with_primals": jvp_with_primals}
    rules |= {"jvp_all": jvp_all, "vjp_all": vjp_all}
    defined = {name: rule for name, rule in rules.items() if getattr(op, name) is not None}
    shape_rule = op.shape if op.results is None else shape
    return replace(op, shape=shape_rule, body=body, **defined, tape_needs={}, result_dtypes={})
