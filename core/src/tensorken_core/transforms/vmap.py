"""vmap: turns a function of one example into a function of many examples."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, TypeVar

from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.shapes import short_repr
from tensorken_core.levels.batch import Axis, Batch, Batched, named_axis
from tensorken_core.tensor.level import current_level, lifted
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor, result_at
from tensorken_core.transforms.arguments import (
    check_function,
    flatten,
    inner_interpreter,
    with_complex_tensors,
)

__all__ = ["vmap"]

P = ParamSpec("P")
R = TypeVar("R")


def vmap(
    f: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
    axis_name: Hashable = None,
) -> Callable[P, R]:
    """The function that runs f on every example along an axis, in one pass: `f` is called once.

    Values that do not depend on the example are computed once.  vmap nests with itself and with all derivatives.

    Args:
        f: a function of pytrees of tensors, written for one example.
        in_axes: the axis of the examples: one int for all positional arguments, or a tuple with an entry for each: an
            int, None for an argument that all examples share, or a pytree of these that is a prefix of the argument.
            Keyword arguments have their examples along axis 0.
        out_axes: the axis of the examples in the results: an int or a pytree of ints that is a prefix of the result;
            None for a result that does not depend on the example.
        axis_size: the number of examples, needed only if no argument has them.
        axis_name: a name for the axis, by which collectives in f such as `tk.psum` refer to it.

    Raises:
        ArgumentError: if in_axes or out_axes do not fit, no argument has an axis to map over, or a result with
            out_axes None differs between the examples.
        AxisNameError: if an enclosing transform has an axis of this name.
        ShapeError: if arguments have different numbers of examples.
        ConcretizationError: if f needs the value of a tensor that differs between the examples, as in `if x > 0`.

    >>> import tensorken as tk
    >>> norms = tk.vmap(lambda row: tk.sqrt((row * row).sum()))
    >>> norms(tk.tensor([[3.0, 4.0], [0.0, 2.0]])).tolist()
    [5.0, 2.0]
    >>> per_example = tk.vmap(tk.grad(lambda w, x: (w * x).sum() ** 2), in_axes=(None, 0))
    >>> per_example(tk.tensor([1.0, 1.0]), tk.tensor([[1.0, 0.0], [1.0, 2.0]])).tolist()
    [[2.0, 0.0], [6.0, 12.0]]
    >>> shares = tk.vmap(lambda x: x / tk.psum(x, "parts"), axis_name="parts")
    >>> shares(tk.tensor([1.0, 3.0])).tolist()
    [0.25, 0.75]
    """

    @functools.wraps(check_function("vmap", f), updated=())
    def mapped(*arguments: Any, **keywords: Any) -> Any:
        axes_of_arguments = in_axes_tuple(in_axes, len(arguments))
        arguments = with_complex_tensors(arguments)
        leaves, axes = with_axes("in_axes", axes_of_arguments, arguments)
        structure = tree.structure(arguments)
        keyword_leaves, keyword_structure = flatten(keywords)
        leaves, axes = leaves + keyword_leaves, axes + [0] * len(keyword_leaves)
        values = [
            leaf if axis is None else _examples(leaf, axis, i, i < structure.size)
            for i, (leaf, axis) in enumerate(zip(leaves, axes, strict=True))
        ]
        size = _number_of_examples(values, axes, axis_size)
        inner = inner_interpreter("vmap", [x for x in values if isinstance(x, Tensor)])
        level = named_axis("vmap", Axis(size, axis_name), inner).level_on(inner)
        inputs = [
            x if axis is None else Tensor(level, Batched(lifted(x, inner), True), x.shape[1:], x.dtype)
            for x, axis in zip(values, axes, strict=True)
        ]
        with current_level(level):
            count = structure.size
            result = f(
                *tree.unflatten(structure, inputs[:count]),
                **tree.unflatten(keyword_structure, inputs[count:]),
            )
            outputs, result_axes = with_axes("out_axes", out_axes, result)
            tensors = [result_at(level, y) for y in outputs]
            results = [_with_out_axis(level, y, axis) for y, axis in zip(tensors, result_axes, strict=True)]
        return tree.unflatten(tree.structure(result), results)

    return mapped


def in_axes_tuple(in_axes: Any, count: int, transform: str = "vmap") -> Any:
    """in_axes as a tuple with an entry for each positional argument."""
    if in_axes is None or type(in_axes) is int:
        return (in_axes,) * count
    if not isinstance(in_axes, tuple | list):
        raise ArgumentError(
            f"{transform}: in_axes must be an int, None, or a tuple with an entry for each argument, got "
            f"{short_repr(in_axes)}"
        )
    if len(in_axes) != count:
        raise ArgumentError(
            f"{transform}: in_axes {short_repr(in_axes)} has {len(in_axes)} entries for a call with {count} positional "
            f"arguments; give one for each argument, None to share it"
        )
    return tuple(in_axes)


def with_axes(
    name: str, axes: Any, value: Any, transform: str = "vmap"
) -> tuple[list[Any], list[int | None]]:
    """The leaves of a value, and the axis of each leaf, from a prefix tree of axes."""
    axis_leaves, prefix = tree.flatten(axes, is_leaf=lambda x: x is None)
    leaves: list[Any] = []
    axes_of_leaves: list[int | None] = []
    for axis, part in zip(
        axis_leaves, tree.flatten_up_to(prefix, value, f"{transform}: {name}"), strict=True
    ):
        if axis is not None and type(axis) is not int:
            raise ArgumentError(f"{transform}: {name} must consist of ints and None, got {short_repr(axis)}")
        part_leaves = tree.leaves(part)
        leaves += part_leaves
        axes_of_leaves += [axis] * len(part_leaves)
    return leaves, axes_of_leaves


def _examples(leaf: Any, axis: int, index: int, positional: bool) -> Tensor:
    """A leaf of the arguments with the examples along its first axis."""
    hint = "give it None in in_axes to share it" if positional else "pass a shared argument by position"
    try:
        x = as_tensor(leaf)
    except ArgumentError as error:
        raise ArgumentError(f"vmap: argument leaf {index}: {error}; {hint}") from None
    if x.ndim == 0:
        raise ShapeError(f"vmap: argument leaf {index} has shape (), no axis to map over; {hint}")
    first = axis_of("vmap", x.shape, axis)
    return x.permute((first, *[i for i in range(x.ndim) if i != first]))


def _number_of_examples(values: list[Any], axes: list[int | None], axis_size: int | None) -> int:
    counts: list[tuple[int, int]] = [
        (i, x.shape[0]) for i, (x, axis) in enumerate(zip(values, axes, strict=True)) if axis is not None
    ]
    if axis_size is not None:
        if type(axis_size) is not int or axis_size < 0:
            raise ArgumentError(
                f"vmap: axis_size must be an int that is not negative, got {short_repr(axis_size)}"
            )
        counts.insert(0, (-1, axis_size))
    if not counts:
        raise ArgumentError(
            "vmap: no argument has an axis to map over; give an int in in_axes, or axis_size="
        )
    first, size = counts[0]
    for other, count in counts[1:]:
        if count != size:
            expected = "axis_size says" if first < 0 else f"argument leaf {first} has"
            raise ShapeError(
                f"vmap: {expected} {size} examples and argument leaf {other} has {count} along axis {axes[other]}; "
                f"need equal sizes, or None in in_axes to share an argument"
            )
    return size


def _with_out_axis(level: Batch[Any], y: Tensor, axis: int | None) -> Tensor:
    """A result at the level below, with the examples along the axis."""
    representation = y.representation
    if axis is None:
        if representation.batched:
            raise ArgumentError(
                f"vmap: a result of shape {y.shape} differs between the examples, so its out_axes cannot be None; "
                f"give it an axis"
            )
        return Tensor(level.inner, representation.value, y.shape, y.dtype)
    stacked = level.with_batch_axis(representation)
    position = axis_of("vmap", stacked.shape, axis)
    order = [*range(1, stacked.ndim)]
    order.insert(position, 0)
    return stacked.permute(tuple(order))
