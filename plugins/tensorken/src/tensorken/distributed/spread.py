"""spread: runs a function of one example in each member of a group, as vmap runs it for all examples in one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorken.distributed.group import Group
from tensorken.ops.collectives import AXIS_INDEX, PMAX, VARYING
from tensorken_core import tree
from tensorken_core.errors import ArgumentError
from tensorken_core.language.dtypes import int32
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.language.shapes import Shape
from tensorken_core.levels.batch import Axis, Batch, Batched, named_axis
from tensorken_core.tensor.level import current_level, lifted
from tensorken_core.tensor.tensor import Tensor, as_tensor, result_at
from tensorken_core.transforms.arguments import Function, check_function, inner_interpreter
from tensorken_core.transforms.vmap import in_axes_tuple, with_axes

__all__ = ["spread"]


@dataclass(frozen=True, slots=True, repr=False)
class SpreadAxis(Axis):
    """An axis with one example here, and the others in the other members of a group.

    A collective over it at the level below asks the group.
    """

    def level_on(self, inner: Interpreter[Any]) -> Spread[Any]:
        return Spread(inner, self)

    def stacked(self, shape: Shape) -> Shape:
        return shape

    @property
    def new_axes(self) -> int:
        return 0

    def any(self, condition: Tensor) -> Tensor:
        y: Tensor = condition.astype(int32).apply(PMAX, self)
        return y > 0

    def sum(self, x: Tensor) -> Tensor:
        return x


class Spread(Batch[R]):
    """Runs each op on the value of this member; collectives ask the group for those of the others.

    A value is "batched" if it may differ between the members.
    """

    transform = "spread"

    axis: SpreadAxis

    def shape(self, x: Batched[R]) -> Shape:
        return self.inner.shape(x.value)

    def with_batch_axis(self, x: Batched[R]) -> Tensor:
        return Tensor(self.inner, x.value)

    def interpret(self, op: Op, operands: Sequence[Batched[R]], params: tuple[Any, ...]) -> Any:
        self.check_open(op.name)
        if op.collective is not None and params[0] == self.axis:
            return self.collective(op, operands, params)
        flags = tuple([x.batched for x in operands])
        if self.may_use_axis(op, params):
            if op.higher_order is not None:
                return self.batch_higher_order(op.higher_order, operands, flags, params)
            return self.vmapped(op, operands, flags, params)
        y, batched = run(self.inner, op, [x.value for x in operands], params), any(flags)
        if op.results == 1:
            return Batched(y, batched)
        return tuple([Batched(part, batched) for part in y])

    def gather(self, x: Batched[R], indices: Batched[R], axis: int) -> Batched[R]:
        return self.interpret(OPS["gather"], (x, indices), (axis,))  # type: ignore[no-any-return]

    def scatter_add(self, x: Batched[R], indices: Batched[R], axis: int, size: int) -> Batched[R]:
        return self.interpret(OPS["scatter_add"], (x, indices), (axis, size))  # type: ignore[no-any-return]

    def collective(self, op: Op, operands: Sequence[Batched[R]], params: tuple[Any, ...]) -> Batched[R]:
        """Ask the group; without it if all operands are shared: the result is then known here."""
        if op is AXIS_INDEX or any([x.batched for x in operands]):
            y = run(self.inner, op, [x.value for x in operands], params)
            return Batched(y, op in VARYING)
        stacked = super().collective(op, operands, params)
        if not stacked.batched:
            return stacked
        # The rank is no constant: a pass could drop a collective in the programs of some members, and not of others.
        rows, rank = Tensor(self.inner, stacked.value), run(self.inner, AXIS_INDEX, (), (self.axis,))
        row = rows.gather(Tensor(self.inner, rank).reshape((1,)), 0)
        return Batched(row.reshape(rows.shape[1:]).representation, True)


def spread(
    f: Function,
    group: Group,
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_name: Hashable = "workers",
    axis_size: int | None = None,
) -> Callable[..., Any]:
    """The function that runs f here, on this member's example, as one of the members of a group.

    Every member calls it with its own example, where `tk.vmap` takes those of all.  Collectives in f over the axis
    compute with the values of all members, so each must reach the same ones in the same order.  Derivatives inside of
    f are those of `tk.vmap`; the derivative of the whole is that of the sum of the results of all members.

    Args:
        f: a function of pytrees of tensors, written for one example.
        group: the group, as this member sees it; see `tk.distributed`.
        in_axes: None for an argument that is the same for all members, else an int: one for all positional arguments,
            or a tuple with an entry for each, or a pytree of these that is a prefix of the argument.
        out_axes: None for a result that is the same for all members, else an int, or a pytree of these that is a
            prefix of the result.
        axis_name: the name of the axis.
        axis_size: the number of members that is needed; None: any.

    Raises:
        ArgumentError: if the group has another size, or a result with out_axes None differs between the members.
        GroupError: if a member calls another collective, has ended, or does not answer in time.

    >>> import tensorken as tk
    >>> def step(w, x):
    ...     return w - 0.1 * tk.psum(tk.grad(lambda w: (w * x) ** 2)(w), "workers")
    >>> xs = [1.0, 2.0]
    >>> [
    ...     w.item()
    ...     for w in tk.distributed.run_threads(
    ...         lambda group: tk.spread(step, group, (None, 0), None)(1.0, xs[group.rank]), 2
    ...     )
    ... ]
    [0.0, 0.0]
    """
    check_function("spread", f)
    if not isinstance(group, Group):
        raise ArgumentError(
            f"spread: need a group, got {type(group).__name__}; make one by tk.distributed.join or run_threads"
        )
    if axis_size is not None and axis_size != group.size:
        raise ArgumentError(
            f"spread: need {axis_size} members, and the group has {group.size}; start as many"
        )
    if axis_name is None:
        raise ArgumentError("spread: the axis needs a name, got None; give a string")
    axis = SpreadAxis(group.size, axis_name, group)

    @functools.wraps(f, updated=())
    def member(*arguments: Any, **keywords: Any) -> Any:
        leaves, axes = with_axes(
            "in_axes", in_axes_tuple(in_axes, len(arguments), "spread"), arguments, "spread"
        )
        keyword_leaves, keyword_structure = tree.flatten(keywords)
        values = [as_tensor(x) for x in (*leaves, *keyword_leaves)]
        axes += [0] * len(keyword_leaves)
        inner = inner_interpreter("spread", values)
        level = named_axis("spread", axis, inner).level_on(inner)
        inputs = [
            Tensor(level, Batched(lifted(x, inner), position is not None), x.shape, x.dtype)
            for x, position in zip(values, axes, strict=True)
        ]
        count = len(leaves)
        with current_level(level):
            result = f(
                *tree.unflatten(tree.structure(arguments), inputs[:count]),
                **tree.unflatten(keyword_structure, inputs[count:]),
            )
            outputs, result_axes = with_axes("out_axes", out_axes, result, "spread")
            tensors = [result_at(level, y) for y in outputs]
        results = []
        for y, position in zip(tensors, result_axes, strict=True):
            if position is None and y.representation.batched:
                raise ArgumentError(
                    f"spread: a result of shape {y.shape} may differ between the members, so its out_axes cannot be "
                    f"None; give it an int, or reduce it, for example by tk.psum"
                )
            results.append(Tensor(inner, y.representation.value, y.shape, y.dtype))
        return tree.unflatten(tree.structure(result), results)

    return member
