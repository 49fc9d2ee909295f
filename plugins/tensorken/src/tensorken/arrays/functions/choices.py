"""Choices among several tensors or functions by conditions or indices.

Raises:
    ShapeError: if shapes do not fit or do not broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken.arrays.functions.operands import promoted_tensors
from tensorken.arrays.functions.searching import nonzero_indices
from tensorken.arrays.functions.shaping import take
from tensorken.arrays.indexing import indices_like
from tensorken.arrays.indexing.checks import bounds, with_size
from tensorken_core.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from tensorken_core.language.dtypes import bool_
from tensorken_core.language.shapes import broadcast, short_repr
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["choose", "compress", "extract", "piecewise", "select"]


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Tensor:
    """The elements of the first choice whose condition is true, else the default; all shapes broadcast.

    Raises:
        ArgumentError: if there are no conditions, or not as many as choices.

    >>> import tensorken as tk
    >>> x = tk.arange(6)
    >>> tk.select([x < 2, x > 3], [x, x * 10], -1).tolist()
    [0, 1, -1, -1, 40, 50]
    """
    if not len(condlist) or len(condlist) != len(choicelist):
        raise ArgumentError(
            f"select: need as many conditions as choices, at least one; got {len(condlist)} and {len(choicelist)}"
        )
    *choices, result = promoted_tensors("select", [*choicelist, default])
    conditions = [as_operand("select", condition, choices[0]) for condition in condlist]
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = condition.astype(bool_).where(choice, result)
    return result


def piecewise(
    x: ArrayLike, condlist: ArrayLike, funclist: Sequence[Any], *args: Any, **keywords: Any
) -> Tensor:
    """A function defined by parts: each function where its condition is true, the last of several true ones.

    Unlike numpy, every function gets all elements of x, and `where` chooses among the results; so a function must
    be finite with finite derivatives at the elements that are not its own if it is differentiated.

    Args:
        condlist: the conditions, bool tensors in the shape of x.
        funclist: a function or a number for each condition; one more is for the elements without a condition, which
            are 0 by default.
        args, keywords: further arguments of the functions.

    Raises:
        ArgumentError: if the number of functions does not fit the number of conditions.

    >>> import tensorken as tk
    >>> x = tk.tensor([-2.0, -1.0, 3.0])
    >>> tk.piecewise(x, [x < 0, x >= 0], [lambda x: -x, lambda x: x * x]).tolist()
    [2.0, 1.0, 9.0]
    """
    y = as_tensor(x)
    listed = list(condlist) if isinstance(condlist, Sequence) else [condlist]
    if listed and isinstance(listed[0], bool):
        listed = [condlist]
    conditions = [as_operand("piecewise", condition, y).astype(bool_) for condition in listed]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ArgumentError(
            f"piecewise: need {len(conditions)} or {len(conditions) + 1} functions for {len(conditions)} conditions, "
            f"got {len(funclist)}"
        )
    values = [f(y, *args, **keywords) if callable(f) else f for f in funclist]
    otherwise = values.pop() if len(values) > len(conditions) else 0
    result: Tensor = as_operand("piecewise", otherwise, y).astype(y.dtype).broadcast_to(y.shape)
    for condition, value in zip(conditions, values, strict=True):
        result = condition.where(as_operand("piecewise", value, y).astype(y.dtype), result)
    return result


def choose(a: ArrayLike, choices: ArrayLike, mode: str = "raise") -> Tensor:
    """For each element of a, an index, the element of the choice with that index; all shapes broadcast.

    Args:
        mode: for an index out of range "raise" an error (where the values are not known it is clipped), "wrap" it
            by a remainder, or "clip" it.

    Raises:
        ArgumentError: if the mode is another one.
        DTypeError: if a is not a tensor of ints.
        IndexingError: if an index is out of range.

    >>> import tensorken as tk
    >>> tk.choose([1, 0, 1], [[10, 11, 12], [20, 21, 22]]).tolist()
    [20, 11, 22]
    """
    options = promoted_tensors("choose", choices)
    index = indices_like("choose", a, options[0])
    index = within("choose", index, len(options), mode)
    result = options[-1]
    for i in range(len(options) - 2, -1, -1):
        result = index.eq(i).where(options[i], result)
    return result.broadcast_to(broadcast(result.shape, index.shape)) if len(options) == 1 else result


def within(name: str, index: Tensor, size: int, mode: str) -> Tensor:
    """Indices brought into [0, size) in a mode of numpy; negative ones are out of range."""
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"{name}: mode must be 'raise', 'wrap' or 'clip', got {short_repr(mode)}")
    if index.dtype.kind != "int":
        raise DTypeError(f"{name}: indices must be ints, got {index.dtype}; cast them (x.astype)")
    index = with_size(index, size)
    if mode == "wrap":
        return index % size
    limits = bounds(index) if mode == "raise" else None
    if limits is not None and not 0 <= limits[0] <= limits[1] < size:
        wrong = limits[0] if limits[0] < 0 else limits[1]
        raise IndexingError(
            f"{name}: index {wrong} is out of range for size {size}; mode='clip' or 'wrap' changes it"
        )
    return index.maximum(0).minimum(size - 1)


@with_numpys_names
def compress(condition: ArrayLike, x: ArrayLike, axis: int | None = None) -> Tensor:
    """The slices of x along an axis, or the elements of the flattened tensor, for which a bool vector is true.

    Raises:
        ShapeError: if the condition is not a vector, or is longer than the axis.
        AxisError: if the axis is out of range.
        ConcretizationError: if the condition is not known, as under vmap: the shape of the result depends on it.

    >>> import tensorken as tk
    >>> tk.compress([False, True], [[1, 2], [3, 4]], axis=0).tolist()
    [[3, 4]]
    """
    y = as_tensor(x)
    y, along = (y.ravel(), 0) if axis is None else (y, axis_of("compress", y.shape, axis))
    chosen = as_operand("compress", condition, y).astype(bool_)
    if chosen.ndim != 1 or chosen.size > y.shape[along]:
        raise ShapeError(
            f"compress: the condition must be a vector of at most {y.shape[along]} elements, got shape {chosen.shape}"
        )
    return take(y, nonzero_indices("compress", chosen), along)


def extract(condition: ArrayLike, x: ArrayLike) -> Tensor:
    """The elements of the flattened x at which the flattened condition is true.

    Raises:
        ShapeError: if the condition has more elements than x.
        ConcretizationError: if the condition is not known, as under vmap: the shape of the result depends on it.

    >>> import tensorken as tk
    >>> tk.extract([[True, False], [False, True]], [[1, 2], [3, 4]]).tolist()
    [1, 4]
    """
    y = as_tensor(x).ravel()
    chosen = as_operand("extract", condition, y).astype(bool_).ravel()
    if chosen.size > y.size:
        raise ShapeError(f"extract: the condition has {chosen.size} elements and x has {y.size}")
    return take(y, nonzero_indices("extract", chosen), 0)
