"""Collectives: ops over the examples of a named axis.

The first param of each is the axis.  The Batch level of this axis gives the op its meaning: it computes with the values
of all examples, which are stacked along the first axis at the level below, and knows which values all share.

Derivatives are those of the function of all examples at once.  Each cotangent of the results of a psum goes to all its
operands, so a psum is its own transpose; so are an all_to_all and, with the inverse permutation, a ppermute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken.interchange.interop import to_numpy
from tensorken_core.errors import AxisNameError
from tensorken_core.language.dtypes import bool_, int32
from tensorken_core.language.op import Op
from tensorken_core.language.shapes import Shape
from tensorken_core.levels.batch import Axis, Batch, Batched
from tensorken_core.tensor.level import lift
from tensorken_core.tensor.tensor import Tensor

Pairs = tuple[tuple[int, int], ...]
_SAMPLE = Axis(2, "sample")


def _repeated(x: Tensor, size: int) -> Tensor:
    """x, repeated along a new first axis."""
    return x.reshape((1, *x.shape)).expand((size, *x.shape))


def _second_first(x: Tensor) -> Tensor:
    """x with its first two axes exchanged."""
    return x.permute((1, 0, *range(2, x.ndim)))


def _collective(
    name: str,
    meaning: Callable[..., Batched[Any]],
    *,
    shape: Callable[..., Shape] = lambda x, axis: x,
    samples: Any = (((2, 3),), (_SAMPLE,)),
    params: tuple[str, ...] = ("named_axis",),
    **facts: Any,
) -> Op:
    """A collective on one operand.

    Args:
        name: its name.
        meaning: `Op.collective`.
        shape: `(shape of x, axis, *params) -> Shape`, for one example.
        samples: operand shapes and params, from which the tape learns what the rules need.
        params: the kinds of the params.
        facts: other facts about the op.
    """
    return Op(
        name,
        1,
        shape=shape,
        dtype=lambda dtype, *params: dtype,
        params=params,
        param_names=("axis", *["pairs"] * (len(params) - 1)),
        collective=meaning,
        opaque="pure",
        body=_body(name),
        samples=(samples,),
        **facts,
    )


def _of_values(rule: Callable[..., tuple[Tensor, bool]]) -> Callable[..., Batched[Any]]:
    """The meaning of a collective on one operand.

    Args:
        rule: `(axis, x, batched, *params) -> (y, batched)`, of tensors at the level below and flags whether they have
            the batch axis.
    """

    def meaning(level: Batch[Any], operands: Sequence[Batched[Any]], params: tuple[Any, ...]) -> Batched[Any]:
        (x,) = operands
        y, batched = rule(level.axis, Tensor(level.inner, x.value), x.batched, *params[1:])
        return Batched(y.representation, batched)

    return meaning


def _body(name: str) -> Callable[..., Tensor]:
    """The meaning on a backend: ask the group of the axis."""

    def body(backend: Any, x: Tensor, axis: Axis, *params: Any) -> Tensor:
        y = _group(name, axis).collective(name, to_numpy(x), axis.name, *params)
        # Only where arrays are numpy's: JAX would tie the array to one device.
        shared = type(backend.export(x.representation)) is type(y)
        representation = backend.adopt(y, False) if shared else None
        if representation is None:
            representation = backend.new(y.shape, y.ravel(), x.dtype)
        return Tensor(backend, representation, y.shape, x.dtype)

    return body


def _group(name: str, axis: Axis) -> Any:
    """The group whose members have the examples, on an axis of `tk.spread`."""
    if axis.group is None:
        raise AxisNameError(
            f"{name}: a program with a collective runs outside of the transform with the axis {axis!r}; run it inside"
        )
    return axis.group


# ---- sums, maxima and minima ---------------------------------------------------------------------------------


PSUM: Op = _collective(
    "psum",
    lambda level, operands, params: Batched(level.sum_of_examples(operands[0]).representation, False),
    jvp=(lambda t, y, x, axis: t.apply(PSUM, axis),),
    vjp=(lambda t, y, x, axis: t.apply(PSUM, axis),),
)
"""The sum over the examples."""


def _extremum(name: str, reduction: Callable[[Tensor], Tensor]) -> Op:
    def rule(axis: Axis, x: Tensor, batched: bool) -> tuple[Tensor, bool]:
        return (reduction(x) if batched else x), False

    def share(y: Tensor, x: Tensor, axis: Axis) -> Tensor:
        """1 for an example at which the extremum is, divided by the number of these examples; 0 for others."""
        there = x.eq(y).astype(x.dtype)
        count: Tensor = there.apply(PSUM, axis)
        return there / count

    return _collective(
        name,
        _of_values(rule),
        jvp=(lambda t, y, x, axis: (t * share(y, x, axis)).apply(PSUM, axis),),
        vjp=(lambda t, y, x, axis: t.apply(PSUM, axis) * share(y, x, axis),),
    )


PMAX = _extremum("pmax", lambda x: x.max(0))
"""The maximum over the examples."""

PMIN = _extremum("pmin", lambda x: x.min(0))
"""The minimum over the examples."""


# ---- values of all examples ----------------------------------------------------------------------------------


def _all_gather(axis: Axis, x: Tensor, batched: bool) -> tuple[Tensor, bool]:
    return (x if batched else _repeated(x, axis.size)), False


def _all_to_all(axis: Axis, x: Tensor, batched: bool) -> tuple[Tensor, bool]:
    rows = _second_first(x) if batched else _second_first(_repeated(x, axis.size))
    return rows, True


def _in_second_place(op: Callable[[], Op]) -> Callable[..., Tensor]:
    """The batching rule, over another axis, of an op with results that have an axis for the examples in front."""

    def batch(flags: Sequence[bool], xs: Sequence[Tensor], params: tuple[Any, ...]) -> Tensor:
        y: Tensor = xs[0].apply(op(), *params)
        return _second_first(y)

    return batch


ALL_GATHER: Op = _collective(
    "all_gather",
    _of_values(_all_gather),
    shape=lambda x, axis: (axis.size, *x),
    jvp=(lambda t, y, x, axis: t.apply(ALL_GATHER, axis),),
    vjp=(lambda t, y, x, axis: t.apply(ALL_TO_ALL, axis).sum(0),),
    batch=_in_second_place(lambda: ALL_GATHER),
)
"""The values of all examples, stacked along a new first axis."""


def _batch_all_to_all(flags: Sequence[bool], xs: Sequence[Tensor], params: tuple[Any, ...]) -> Tensor:
    return _second_first(_second_first(xs[0]).apply(ALL_TO_ALL, *params))


ALL_TO_ALL: Op = _collective(
    "all_to_all",
    _of_values(_all_to_all),
    jvp=(lambda t, y, x, axis: t.apply(ALL_TO_ALL, axis),),
    vjp=(lambda t, y, x, axis: t.apply(ALL_TO_ALL, axis),),
    batch=_batch_all_to_all,
)
"""Row i of example j becomes row j of example i; each example has as many rows as there are examples."""


# ---- permutations, and the index -----------------------------------------------------------------------------


def _ppermute(axis: Axis, x: Tensor, batched: bool, pairs: Pairs) -> tuple[Tensor, bool]:
    size = axis.size
    source_of = {target: source for source, target in pairs}
    if not batched and len(source_of) == size:
        return x, False
    rows = x if batched else _repeated(x, size)
    sources = rows.constant([source_of.get(i, 0) for i in range(size)], int32, (size,))
    permuted = rows.gather(sources, 0)
    if len(source_of) < size:
        received = rows.constant([i in source_of for i in range(size)], bool_, (size,))
        ones = [1] * (rows.ndim - 1)
        permuted = received.reshape((size, *ones)).expand(rows.shape).where(permuted, rows.zeros_like())
    return permuted, True


def inverse(pairs: Pairs) -> Pairs:
    """The pairs of the permutation that takes each value back."""
    return tuple([(target, source) for source, target in pairs])


PPERMUTE: Op = _collective(
    "ppermute",
    _of_values(_ppermute),
    shape=lambda x, axis, pairs: x,
    samples=(((2, 3),), (_SAMPLE, ((0, 1),))),
    params=("named_axis", "data"),
    jvp=(lambda t, y, x, axis, pairs: t.apply(PPERMUTE, axis, pairs),),
    vjp=(lambda t, y, x, axis, pairs: t.apply(PPERMUTE, axis, inverse(pairs)),),
)
"""The value of another example: for each pair, example `pair[0]` passes its value to example `pair[1]`.  An example to
which none is passed gets zeros."""


def _axis_index(level: Batch[Any], operands: Sequence[Any], params: tuple[Any, ...]) -> Batched[Any]:
    size, base = level.size, level.base
    return Batched(lift(base.new((size,), range(size), int32), base, level.inner), True)


def _rank(backend: Any, axis: Axis) -> Tensor:
    return Tensor(backend, backend.full((), _group("axis_index", axis).rank, int32), (), int32)


AXIS_INDEX = Op(
    "axis_index",
    0,
    shape=lambda axis: (),
    dtype=lambda axis: int32,
    params=("named_axis",),
    param_names=("axis",),
    collective=_axis_index,
    opaque="pure",
    body=_rank,
)
"""The number of the example."""

VARYING = (ALL_TO_ALL, PPERMUTE, AXIS_INDEX)
"""The collectives whose results differ between the examples; all others are the same for all."""
