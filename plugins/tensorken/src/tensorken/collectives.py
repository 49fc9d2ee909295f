"""Collectives: functions of one example that use the values of all examples of a named axis.

`tk.vmap(f, axis_name="workers")` names the axis, and `tk.psum(x, "workers")` in f is the sum over its examples, the
same for all.  The derivative of f inside of `vmap`, by `tk.grad`, is that of the sum of the results of all examples
with respect to the argument of one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from tensorken.complex_numbers.tensor import is_complex
from tensorken.ops.collectives import ALL_GATHER, ALL_TO_ALL, AXIS_INDEX, PMAX, PMIN, PPERMUTE, PSUM
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, AxisNameError, DTypeError, ShapeError
from tensorken_core.language.dtypes import bool_, int32
from tensorken_core.language.op import Op, run
from tensorken_core.language.shapes import short_repr
from tensorken_core.levels.batch import Axis, named_axes
from tensorken_core.tensor.level import interpreter_below, lifted
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "psum",
    "psum_scatter",
]

AxisName = Hashable
"""The name of an axis; a tuple of names for several axes, the first of which is the slowest to vary."""


def psum(x: Any, axis_name: AxisName) -> Any:
    """The sum over the examples of a named axis, or of several; the same for all.

    Args:
        x: a pytree of tensors; a Python number stays one.  Bools are summed as int32.
        axis_name: the name of an axis of an enclosing `tk.vmap`, or a tuple of names.

    Raises:
        AxisNameError: if there is no such axis, or it is given twice.

    >>> import tensorken as tk
    >>> tk.vmap(lambda x: tk.psum(x, "rows"), axis_name="rows")(tk.tensor([1.0, 2.0])).tolist()
    [3.0, 3.0]
    """
    names = _names("psum", axis_name)

    def total(value: Any) -> Any:
        if type(value) in (bool, int, float):
            return value * _size("psum", names)
        y = as_tensor(value)
        return _over("psum", PSUM, y.astype(int32) if y.dtype is bool_ else y, names)

    return tree.map(total, x)


def pmean(x: Any, axis_name: AxisName) -> Any:
    """The mean over the examples of a named axis, or of several; see `psum`.

    >>> import tensorken as tk
    >>> tk.vmap(lambda x: x - tk.pmean(x, "rows"), axis_name="rows")(tk.tensor([1.0, 2.0])).tolist()
    [-0.5, 0.5]
    """
    size = _size("pmean", _names("pmean", axis_name))

    def mean(y: Any) -> Any:
        if not isinstance(y, Tensor):
            return psum(y, axis_name) / size
        total = psum(y.astype(y.dtype.wide), axis_name) / size  # the sum may exceed the range of float16
        return total.astype(y.dtype) if y.dtype.inexact else total

    return tree.map(mean, x)


def pmax(x: Any, axis_name: AxisName) -> Any:
    """The maximum over the examples of a named axis, or of several; see `psum`.

    Examples at which the maximum is taken share its derivative equally.

    Raises:
        DTypeError: for complex numbers, which have no order.

    >>> import tensorken as tk
    >>> tk.vmap(lambda x: tk.pmax(x, "rows"), axis_name="rows")(tk.tensor([1.0, 2.0])).tolist()
    [2.0, 2.0]
    """
    names = _names("pmax", axis_name)
    return tree.map(lambda y: _over("pmax", PMAX, _ordered("pmax", y), names), x, is_leaf=is_complex)


def pmin(x: Any, axis_name: AxisName) -> Any:
    """The minimum over the examples of a named axis, or of several; see `pmax`.

    Raises:
        DTypeError: for complex numbers, which have no order.

    >>> import tensorken as tk
    >>> tk.vmap(lambda x: tk.pmin(x, "rows"), axis_name="rows")(tk.tensor([1.0, 2.0])).tolist()
    [1.0, 1.0]
    """
    names = _names("pmin", axis_name)
    return tree.map(lambda y: _over("pmin", PMIN, _ordered("pmin", y), names), x, is_leaf=is_complex)


def all_gather(x: Any, axis_name: AxisName, *, axis: int = 0, tiled: bool = False) -> Any:
    """The values of all examples of a named axis, stacked along a new axis; the same for all.

    Args:
        x: a pytree of tensors.
        axis_name: the name of an axis of an enclosing `tk.vmap`, or a tuple of names.
        axis: the new axis of the results.
        tiled: whether to concatenate the values along an axis that they have, in place of a new one.

    >>> import tensorken as tk
    >>> tk.vmap(lambda x: tk.all_gather(x, "rows"), axis_name="rows")(tk.tensor([1.0, 2.0])).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """
    names = _names("all_gather", axis_name)

    def gather(value: Any) -> Tensor:
        y = as_tensor(value)
        position = axis_of("all_gather", y.shape if tiled else (1, *y.shape), axis)
        shape = y.shape
        for name in reversed(names):
            y = _collective("all_gather", ALL_GATHER, y, name)
        y = y.reshape((_size("all_gather", names), *shape))
        return _moved_first_axis(y, position, tiled)

    return tree.map(gather, x)


def all_to_all(x: Any, axis_name: AxisName, split_axis: int, concat_axis: int, *, tiled: bool = False) -> Any:
    """Exchange parts between the examples of a named axis: part i of example j becomes part j of example i.

    Args:
        x: a pytree of tensors.
        axis_name: the name of an axis of an enclosing `tk.vmap`, or a tuple of names.
        split_axis: the axis of the parts, one for each example.
        concat_axis: the axis of the results along which the parts are put together.
        tiled: whether a part has several elements along the axis; else the size of the axis is the number of examples,
            and the axis is moved from split_axis to concat_axis.

    Raises:
        ShapeError: if the parts are not as many as the examples.

    >>> import tensorken as tk
    >>> x = tk.tensor([[1, 2], [3, 4]])
    >>> tk.vmap(lambda row: tk.all_to_all(row, "rows", 0, 0), axis_name="rows")(x).tolist()
    [[1, 3], [2, 4]]
    """
    names = _names("all_to_all", axis_name)

    def exchange(value: Any) -> Tensor:
        y = _parts("all_to_all", as_tensor(value), split_axis, names, tiled)
        position = axis_of("all_to_all", y.shape[1:] if tiled else y.shape, concat_axis)
        return _moved_first_axis(_exchanged("all_to_all", y, names), position, tiled)

    return tree.map(exchange, x)


def psum_scatter(x: Any, axis_name: AxisName, *, scatter_dimension: int = 0, tiled: bool = False) -> Any:
    """The sum over the examples of a named axis, of which example i gets part i.

    Args:
        x: a pytree of tensors.
        axis_name: the name of an axis of an enclosing `tk.vmap`, or a tuple of names.
        scatter_dimension: the axis of the parts, one for each example.
        tiled: whether a part has several elements along the axis; else the size of the axis is the number of examples,
            and the results lack the axis.

    Raises:
        ShapeError: if the parts are not as many as the examples.

    >>> import tensorken as tk
    >>> x = tk.tensor([[1, 2], [3, 4]])
    >>> tk.vmap(lambda row: tk.psum_scatter(row, "rows"), axis_name="rows")(x).tolist()
    [4, 6]
    """
    names = _names("psum_scatter", axis_name)

    def scatter(value: Any) -> Tensor:
        y = as_tensor(value)
        position = axis_of("psum_scatter", y.shape, scatter_dimension)
        parts = _parts("psum_scatter", y, position, names, tiled)
        total = _exchanged("psum_scatter", parts, names).sum_in_own_dtype(0)
        return total if tiled else total.reshape((*y.shape[:position], *y.shape[position + 1 :]))

    return tree.map(scatter, x)


def ppermute(x: Any, axis_name: AxisName, perm: Iterable[Sequence[int]]) -> Any:
    """Pass values between the examples of a named axis.

    Args:
        x: a pytree of tensors.
        axis_name: the name of an axis of an enclosing `tk.vmap`, or a tuple of names.
        perm: pairs (source, destination) of numbers of examples.  An example that is no destination gets zeros.

    Raises:
        ArgumentError: if a number is out of range, or a source or destination occurs twice.

    >>> import tensorken as tk
    >>> ring = [(0, 1), (1, 2), (2, 0)]
    >>> tk.vmap(lambda x: tk.ppermute(x, "rows", ring), axis_name="rows")(tk.tensor([1.0, 2.0, 3.0])).tolist()
    [3.0, 1.0, 2.0]
    """
    names = _names("ppermute", axis_name)
    size = _size("ppermute", names)
    try:
        pairs = tuple([(source, target) for source, target in perm])
    except (TypeError, ValueError):
        raise ArgumentError(
            f"ppermute: perm must be pairs (source, destination), got {short_repr(perm)}; write [(0, 1), (1, 0)]"
        ) from None
    for what, numbers in (("source", [p[0] for p in pairs]), ("destination", [p[1] for p in pairs])):
        if len(set(numbers)) < len(numbers) or any(
            [type(i) is not int or not 0 <= i < size for i in numbers]
        ):
            raise ArgumentError(
                f"ppermute: each {what} must be an int from 0 to {size - 1} and occur once, got {short_repr(numbers)}"
            )

    def permuted(value: Any) -> Tensor:
        y = as_tensor(value)
        if len(names) == 1:
            return _collective("ppermute", PPERMUTE, y, names[0], pairs)
        source_of = {target: source for source, target in pairs}
        rows = all_gather(y, names)
        index = axis_index(names)
        source = rows.constant([source_of.get(i, 0) for i in range(size)], int32, (size,))[index]
        received = rows.constant([i in source_of for i in range(size)], bool_, (size,))[index]
        taken = rows.gather(source.reshape((1,)), 0).reshape(y.shape)
        chosen: Tensor = received.broadcast_to(y.shape).where(taken, y.zeros_like())
        return chosen

    return tree.map(permuted, x)


def axis_index(axis_name: AxisName) -> Tensor:
    """The number of the example along a named axis: an int32 that differs between the examples.

    >>> import tensorken as tk
    >>> tk.vmap(lambda x: x * tk.axis_index("rows"), axis_name="rows")(tk.tensor([5, 6, 7])).tolist()
    [0, 6, 14]
    """
    index: Any = None
    for name in _names("axis_index", axis_name):
        interpreter = interpreter_below([], "axis_index")
        axis = _axis("axis_index", interpreter, name)
        i = Tensor(interpreter, run(interpreter, AXIS_INDEX, (), (axis,)), (), int32)
        index = i if index is None else index * axis.size + i
    return index  # type: ignore[no-any-return]


def axis_size(axis_name: AxisName) -> int:
    """The number of examples of a named axis, or the product of those of several.

    >>> import tensorken as tk
    >>> tk.vmap(lambda x: x / tk.axis_size("rows"), axis_name="rows")(tk.tensor([1.0, 2.0])).tolist()
    [0.5, 1.0]
    """
    return _size("axis_size", _names("axis_size", axis_name))


# ---- axes ----------------------------------------------------------------------------------------------------


def _names(op_name: str, axis_name: AxisName) -> tuple[AxisName, ...]:
    """The names of one or several axes."""
    names = axis_name if isinstance(axis_name, tuple) else (axis_name,)
    for name in names:
        if not isinstance(name, Hashable) or isinstance(name, Tensor | tuple):
            raise AxisNameError(
                f"{op_name}: axis_name must be a name, or a tuple of names, got {type(name).__name__}; "
                f"give the axis_name of an enclosing tk.vmap, such as 'rows'"
            )
    if len(set(names)) < len(names):
        raise AxisNameError(f"{op_name}: axis_name {short_repr(axis_name)} has a name twice; give each once")
    if not names:
        raise AxisNameError(f"{op_name}: axis_name is an empty tuple; give the name of an axis")
    return names


def _axis(op_name: str, interpreter: Any, name: AxisName) -> Axis:
    """The axis of this name among those of a level and the levels below it."""
    axes = named_axes(interpreter)
    if name not in axes:
        known = ", ".join([repr(n) for n in axes])
        has = f"; the enclosing transforms have {known}" if axes else ""
        raise AxisNameError(
            f"{op_name}: no axis is named {name!r}{has}; call it inside of tk.vmap(f, axis_name={name!r})"
        )
    return axes[name]


def _size(op_name: str, names: Sequence[AxisName]) -> int:
    interpreter = interpreter_below([], op_name)
    size = 1
    for name in names:
        size *= _axis(op_name, interpreter, name).size
    return size


def _collective(op_name: str, op: Op, x: Tensor, name: AxisName, *params: Any) -> Tensor:
    """Run a collective at the running level, so that a trace records it also on values from outside of it."""
    interpreter = interpreter_below([x.interpreter], op_name)
    axis = _axis(op_name, interpreter, name)
    y: Tensor = Tensor(interpreter, lifted(x, interpreter), x.shape, x.dtype).apply(op, axis, *params)
    return y


def _ordered(op_name: str, x: Any) -> Tensor:
    """The operand of a maximum or minimum.

    Raises:
        DTypeError: for complex numbers.
    """
    y = as_tensor(x)
    if y.dtype.kind == "complex":
        raise DTypeError(f"{op_name}: not defined for {y.dtype}; complex numbers have no order")
    return y


def _over(op_name: str, op: Op, x: Tensor, names: Sequence[AxisName]) -> Tensor:
    for name in names:
        x = _collective(op_name, op, x, name)
    return x


def _parts(op_name: str, x: Tensor, axis: int, names: Sequence[AxisName], tiled: bool) -> Tensor:
    """x with the parts along a new first axis; a part keeps the axis if tiled."""
    axis = axis_of(op_name, x.shape, axis)
    size, count = _size(op_name, names), x.shape[axis]
    if (count % size if tiled else count != size) or not size:
        needed = f"a multiple of {size}" if tiled else f"{size}, the number of examples"
        raise ShapeError(f"{op_name}: axis {axis} of shape {x.shape} has size {count}, need {needed}")
    if tiled:
        x = x.reshape((*x.shape[:axis], size, count // size, *x.shape[axis + 1 :]))
    return x.permute((axis, *[i for i in range(x.ndim) if i != axis]))


def _exchanged(op_name: str, x: Tensor, names: Sequence[AxisName]) -> Tensor:
    """all_to_all for parts along the first axis."""
    shape = x.shape
    interpreter = interpreter_below([x.interpreter], op_name)
    sizes = [_axis(op_name, interpreter, name).size for name in names]
    x = x.reshape((*sizes, *shape[1:]))
    for i, name in enumerate(names):
        order = (i, *range(i), *range(i + 1, x.ndim))
        x = _collective(op_name, ALL_TO_ALL, x.permute(order), name)
        x = x.permute((*range(1, i + 1), 0, *range(i + 1, x.ndim)))
    return x.reshape(shape)


def _moved_first_axis(x: Tensor, position: int, merge: bool) -> Tensor:
    """x with the first axis moved, or merged into the axis at that position of the rest."""
    x = x.permute((*range(1, position + 1), 0, *range(position + 1, x.ndim)))
    if not merge:
        return x
    shape = x.shape
    return x.reshape((*shape[:position], shape[position] * shape[position + 1], *shape[position + 2 :]))
