"""Batch: a level whose values have one value for each example, stacked along the first axis at the level below."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

from tensorken_core.errors import ArgumentError, AxisNameError, ConcretizationError
from tensorken_core.language.bodies.arrangement import multiples
from tensorken_core.language.dtypes import bool_, int32, int64
from tensorken_core.language.higher_order import HigherOrderRules
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.language.shapes import Shape, short_repr
from tensorken_core.program.program import axes_of
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


_ADD = OPS["add"]


@dataclass(frozen=True, slots=True)
class Axis:
    """The axis of the examples of a Batch level.

    Attributes:
        size: the number of examples.
        name: the name by which collectives refer to the axis; None: no collective does.
        group: the processes that have the examples; None: all examples are here.
    """

    size: int
    name: Hashable = None
    group: Any = None

    def __repr__(self) -> str:
        return repr(self.name)

    def level_on(self, inner: Interpreter[Any]) -> Batch[Any]:
        """A new level for the examples."""
        return Batch(inner, self)

    def stacked(self, shape: Shape) -> Shape:
        """The shape, at the level below, of values that differ between the examples."""
        return (self.size, *shape)

    @property
    def new_axes(self) -> int:
        """The number of axes that `stacked` adds in front."""
        return 1

    def any(self, condition: Tensor) -> Tensor:
        """Whether the condition is True for any example, from its values for all, at the level below."""
        if not self.size:
            return condition.constant([False], bool_, ())
        return condition.astype(int32).max(0) > 0

    def sum(self, x: Tensor) -> Tensor:
        """The sum over the examples, from the values for all, at the level below."""
        return x.sum_in_own_dtype(0)


@dataclass(slots=True)
class Batched(Generic[R]):
    """A value of the level below, and whether its first axis is the batch axis; if not, all examples share it."""

    value: R
    batched: bool


class Scattered(Batched[R]):
    """The result of a scatter_add whose indices differ between the examples, and values added to it; computed if read.

    The sum over the examples, as of the gradient of a table that all share, is one scatter_add for all of them.
    """

    __slots__ = ("_added", "_arguments", "_level")

    def __init__(
        self, level: Batch[R], arguments: tuple[Tensor, Tensor, int, int], added: tuple[Batched[R], ...] = ()
    ) -> None:
        self._level = level
        self._arguments = arguments  # rows of all examples, indices, axis, size
        self._added = added
        self.batched = True

    def __getattr__(self, name: str) -> Any:
        if name != "value":
            raise AttributeError(name)
        rows, indices, axis, size = self._arguments
        level = self._level
        flat = level.offset_indices(indices, size).reshape((indices.size,))
        result = rows.apply(OPS["scatter_add"], flat, axis, level.size * size)
        total = level.split_batch_axis(result, axis, size)
        for x in self._added:
            total = total + level.with_batch_axis(x)
        self.value: R = total.representation
        return self.value

    def plus(self, x: Batched[R]) -> Scattered[R]:
        """The sum with another value."""
        return Scattered(self._level, self._arguments, (*self._added, x))

    def sum(self) -> Tensor:
        """The sum over the examples."""
        rows, indices, axis, size = self._arguments
        total: Tensor = rows.apply(OPS["scatter_add"], indices.reshape((indices.size,)), axis, size)
        for x in self._added:
            total = total + self._level.sum_of_examples(x)
        return total


def repeated(x: Tensor, axis: Axis) -> Tensor:
    """A value that all examples share, with the batch axis."""
    ones = (1,) * axis.new_axes
    return x.reshape((*ones, *x.shape)).expand(axis.stacked(x.shape))


class Batch(Level[Batched[R]]):
    """Runs each op once for all examples: on values with a batch axis, with params shifted to match.

    An op on values that all examples share runs without the batch axis.  A collective over the axis of the level, such
    as `psum`, has its meaning here: it computes with the values of all examples.
    """

    transform = "vmap"
    hint = "return it from the function"

    def __init__(self, inner: Interpreter[Any], axis: Axis) -> None:
        super().__init__(inner)
        self.axis = axis
        self.size = axis.size

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
                f"{self.transform}: this value differs between the {self.size} examples, so it has no single value; "
                f"use tk.where to select by it, or read it outside {self.transform}"
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
        return repeated(value, self.axis)

    def interpret(self, op: Op, operands: Sequence[Batched[R]], params: tuple[Any, ...]) -> Any:
        self.check_open(op.name)
        flags = tuple([x.batched for x in operands])
        if op.collective is not None and params[0] == self.axis:
            return self.collective(op, operands, params)
        if op is _ADD:
            for x, other in (operands, operands[::-1]):
                if type(x) is Scattered:
                    return x.plus(other)
        if not (any(flags) or self.may_use_axis(op, params)):
            y, batched = run(self.inner, op, [x.value for x in operands], params), False
        elif op.higher_order is not None:
            return self.batch_higher_order(op.higher_order, operands, flags, params)
        elif op.per_example:
            return self.vmapped(op, operands, flags, params)
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

    def collective(self, op: Op, operands: Sequence[Batched[R]], params: tuple[Any, ...]) -> Batched[R]:
        """Run a collective over the axis of this level."""
        assert op.collective is not None
        y: Batched[R] = op.collective(self, operands, params)
        return y

    def sum_of_examples(self, x: Batched[R]) -> Tensor:
        """The sum over the examples, at the level below."""
        if isinstance(x, Scattered):
            return x.sum()
        y = Tensor(self.inner, x.value)
        return y.sum_in_own_dtype(0) if x.batched else y * self.size

    def may_use_axis(self, op: Op, params: tuple[Any, ...]) -> bool:
        """Whether an op may run collectives over the axis of this level, on any values."""
        if self.axis.name is None:
            return False
        if op.higher_order is not None:
            return self.axis in axes_of(params)
        return op.per_example and op.results is None  # its body is a user's function

    def vmapped(
        self, op: Op, operands: Sequence[Batched[R]], flags: tuple[bool, ...], params: tuple[Any, ...]
    ) -> Any:
        """The results of an op whose body and rules are for one example."""
        vmapped, pattern = _vmapped_op(op, self.axis, flags, self.may_use_axis(op, params))
        ys = run(self.inner, vmapped, [x.value for x in operands], params)
        if op.results == 1:
            return Batched(ys, True)
        return tuple([Batched(y, batched) for y, batched in zip(ys, pattern, strict=False)])

    def batch_higher_order(
        self,
        rules: HigherOrderRules[Op],
        operands: Sequence[Batched[R]],
        flags: tuple[bool, ...],
        params: tuple[Any, ...],
    ) -> tuple[Batched[R], ...]:
        """Run, in place of an op with programs, the op for all examples."""
        op, params, with_axis, results_with_axis = rules.batch(self.axis, flags, params)
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
                self.offset_indices(index, rows.shape[axis + 1]),
            )
        gathered = rows.gather(index.reshape((size * count,)), axis)
        return Batched(self.split_batch_axis(gathered, axis, count).representation, True)

    def scatter_add(self, x: Batched[R], indices: Batched[R], axis: int, size: int) -> Batched[R]:
        """If each example has its own indices, one scatter_add adds to the rows of all examples."""
        self.check_open("scatter_add")
        if not indices.batched:
            return self._with_shared_indices(OPS["scatter_add"], x, indices, (axis + 1, size))
        rows = self._merge_batch_axis(self.with_batch_axis(x), axis)
        return Scattered(self, (rows, Tensor(self.inner, indices.value), axis, size))

    def _with_shared_indices(
        self, op: Op, x: Batched[R], indices: Batched[R], params: tuple[Any, ...]
    ) -> Batched[R]:
        if not x.batched:
            return self.interpret(op, (x, indices), (params[0] - 1, *params[1:]))  # type: ignore[no-any-return]
        return Batched(run(self.inner, op, (x.value, indices.value), params), True)

    def offset_indices(self, indices: Tensor, count: int) -> Tensor:
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

    def split_batch_axis(self, x: Tensor, axis: int, count: int) -> Tensor:
        """The inverse of `_merge_batch_axis`, for `count` rows an example."""
        x = x.reshape((*x.shape[:axis], self.size, count, *x.shape[axis + 1 :]))
        return x.permute((axis, *range(axis), *range(axis + 1, x.ndim)))


# ---- functions of one example, and ops with such functions -------------------------------------------------


def run_batched(
    function: Callable[..., Sequence[Tensor | None]],
    axis: Axis,
    flags: Sequence[bool],
    xs: Sequence[Tensor],
    instantiate: Sequence[bool] | bool = True,
) -> tuple[list[Any], list[bool]]:
    """Run a function of one example for all examples, at a new Batch level.

    Args:
        function: from tensors to a sequence of tensors; None among its results stays None.
        axis: the axis of the examples.
        flags: for each argument whether it has the batch axis.
        xs: the arguments, at the level below.
        instantiate: which results must have the batch axis; True: all, False: none.

    Returns:
        The results at the level below, and for each whether it has the batch axis.
    """
    inner = interpreter_below([x.interpreter for x in xs], "vmap")
    level = axis.level_on(inner)
    values = [Tensor(level, Batched(lifted(x, inner), flag)) for x, flag in zip(xs, flags, strict=True)]
    with current_level(level):
        ys = [None if y is None else lifted(y, level) for y in function(*values)]
    needed = [instantiate] * len(ys) if isinstance(instantiate, bool) else instantiate
    batched = [flag or (y is not None and y.batched) for y, flag in zip(ys, needed, strict=True)]
    return [
        None if y is None else level.with_batch_axis(y) if flag else Tensor(level.inner, y.value)
        for y, flag in zip(ys, batched, strict=True)
    ], batched


def named_axes(interpreter: Interpreter[Any]) -> dict[Hashable, Axis]:
    """The named axes of a level and of the levels below it, the innermost last."""
    levels = (*interpreter.levels_below, interpreter)
    axes = [level.axis for level in levels if isinstance(level, Batch)]
    return {axis.name: axis for axis in axes if axis.name is not None}


def named_axis(transform: str, axis: Axis, inner: Interpreter[Any]) -> Axis:
    """The axis of a new level.

    Raises:
        AxisNameError: if a level below has an axis of its name.
        ArgumentError: if the name cannot be hashed.
    """
    name = axis.name
    if name is None:
        return axis
    try:
        hash(name)
    except TypeError:
        raise ArgumentError(
            f"{transform}: axis_name must be hashable, such as a string, got {short_repr(name)}"
        ) from None
    if isinstance(name, tuple):  # a collective takes a tuple for several axes
        raise ArgumentError(
            f"{transform}: axis_name must not be a tuple, got {short_repr(name)}; use a string"
        )
    if name in named_axes(inner):
        raise AxisNameError(
            f"{transform}: an enclosing transform has an axis named {name!r}; give this one another axis_name"
        )
    return axis


Group = tuple[Sequence["Tensor | None"], Sequence[bool]]
"""Tensors, some of them None, and for each whether it has the batch axis."""


def _vmapped_op(
    op: Op, axis: Axis, flags: Sequence[bool], may_be_shared: bool = False
) -> tuple[Op, list[bool]]:
    """The op for a batch, from an op whose body and rules are for one example.

    Args:
        flags: for each operand whether it has the batch axis.
        may_be_shared: whether results may lack the batch axis; else all have it.

    Returns:
        The op, and a list of flags of the results, which is filled when the op runs.
    """
    pattern: list[bool] = []

    def mapped(function: Callable[..., Any], *groups: Group) -> tuple[list[Tensor | None], list[bool]]:
        """The results of a function of groups of tensors of one example, and which of them have the batch axis."""
        tensors = [x for xs, _ in groups for x in xs if x is not None]
        batched = [flag for xs, marks in groups for x, flag in zip(xs, marks, strict=True) if x is not None]

        def flat(*values: Tensor) -> Any:
            rest = iter(values)
            return function(*[[None if x is None else next(rest) for x in xs] for xs, _ in groups])

        with levels_on(deepest([x.interpreter for x in tensors], op.name)):
            return run_batched(flat, axis, batched, tensors, not may_be_shared)

    def instantiated(xs: Sequence[Tensor | None], have: Sequence[bool], need: Sequence[bool]) -> list[Any]:
        """The tensors, with the batch axis where it is needed."""
        return [
            repeated(x, axis) if x is not None and needed and not flag else x
            for x, flag, needed in zip(xs, have, need, strict=True)
        ]

    def mapped_pair(function: Callable[..., Any], *groups: Group) -> tuple[Any, Any, Any, Any]:
        """As `mapped`, for a function that returns two sequences: these, and their flags."""
        counts: list[int] = []

        def joined(*values: Any) -> Any:
            first, second = function(*values)
            counts.append(len(first))
            return [*first, *second]

        results, have_axis = mapped(joined, *groups)
        count = counts[0]
        return results[:count], results[count:], have_axis[:count], have_axis[count:]

    def body(*args: Any) -> Any:
        xs, params = args[: len(flags)], args[len(flags) :]

        def one(values: Any) -> Any:
            y = op.body(*values, *params)  # type: ignore[misc]
            return (y,) if op.results == 1 else y

        ys, pattern[:] = mapped(one, (xs, flags))
        return ys[0] if op.results == 1 else tuple(ys)

    def primal_rule(active: Any, xs: Any, params: Any) -> Any:
        rule: Any = op.primal_rule
        ys, residuals, *have_axis = mapped_pair(lambda x: rule(active, x, params), (xs, flags))
        pattern[:] = have_axis[0] + have_axis[1]
        return ys, residuals

    def jvp_with_primals(tangents: Any, xs: Any, params: Any) -> Any:
        rule: Any = op.jvp_with_primals
        ys, pushed, of_ys, of_pushed = mapped_pair(
            lambda t, x: rule(t, x, params), (tangents, flags), (xs, flags)
        )
        pattern[:] = [any(pair) for pair in zip(of_ys, of_pushed, strict=True)]
        return instantiated(ys, of_ys, pattern), instantiated(pushed, of_pushed, pattern)

    def jvp_all(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
        rule: Any = op.jvp_all
        pushed, have_axis = mapped(
            lambda t, y, x: rule(t, y, x, params), (tangents, flags), (ys, pattern), (xs, flags)
        )
        need = pattern[: len(pushed)]
        for t, has, needed in zip(pushed, have_axis, need, strict=True):
            if t is not None and has and not needed:
                raise ConcretizationError(
                    f"{op.name}: the tangent of a result differs between the examples and the result does not; "
                    f"return a result that does"
                )
        return instantiated(pushed, have_axis, need)

    def vjp_all(cotangents: Any, ys: Any, xs: Any, params: Any, *active: Any) -> Any:
        rule: Any = op.vjp_all
        of_results = pattern[: len(cotangents)]
        if some_batched := any(of_results):
            # The cotangent of a result that all examples share is the sum of those of the examples.
            cotangents = [
                t if t is None or flag else t / axis.size
                for t, flag in zip(cotangents, of_results, strict=True)
            ]
        pulled, have_axis = mapped(
            lambda t, y, x: rule(t, y, x, params, *active),
            (cotangents, of_results),
            (ys, pattern),  # the residuals are among them
            (xs, flags),
        )
        # Each example contributes to the cotangent of an operand that all examples share.
        totals = []
        for t, has, flag in zip(pulled, have_axis, flags, strict=False):
            if t is None or flag:
                totals += instantiated([t], [has], [flag])
            elif some_batched:
                totals.append(axis.sum(t) if has else t * axis.size)
            else:
                totals.append(axis.sum(t) / axis.size if has else t)
        return totals

    def shape(*args: Any) -> Any:
        one = [s[axis.new_axes :] if flag else s for s, flag in zip(args, flags, strict=False)]
        inner = op.shape(*one, *args[len(flags) :])
        return axis.stacked(inner) if op.results == 1 else tuple([axis.stacked(s) for s in inner])

    rules: dict[str, Any] = {"primal_rule": primal_rule, "jvp_with_primals": jvp_with_primals}
    rules |= {"jvp_all": jvp_all, "vjp_all": vjp_all}
    defined = {name: rule for name, rule in rules.items() if getattr(op, name) is not None}
    shape_rule = op.shape if op.results is None else shape
    return replace(op, shape=shape_rule, body=body, **defined, tape_needs={}, result_dtypes={}), pattern
