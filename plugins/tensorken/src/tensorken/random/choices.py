"""Random orders, and choices with and without replacement."""

from __future__ import annotations

import math
import operator
from typing import Any, SupportsIndex

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import floating_of
from tensorken.arrays.functions.searching import searchsorted
from tensorken.arrays.indexing.checks import require
from tensorken.random.bits import checked, pairs, shape_of
from tensorken.random.distributions import gumbel, uniform
from tensorken.random.domains import check_domain
from tensorken.random.integers import randint
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.bodies.arrangement import slice_along, take_along
from tensorken_core.language.dtypes import position_dtype
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor


def permutation(
    key: Tensor, x: SupportsIndex | ArrayLike, axis: int = 0, independent: bool = False
) -> Tensor:
    """The numbers from 0 to x - 1, or the slices of a tensor along an axis, in random order.

    Slices are sorted by 64 random bits each.  Slices with equal bits keep their order; among n slices, a pair has equal
    bits with probability n**2 / 2**65.  Differentiable with respect to x.

    Args:
        key: shape (2,), int32.
        x: an int, or a tensor with at least one axis.
        axis: the axis that is permuted.
        independent: whether each line along the axis is permuted independently.

    Returns:
        int32 of shape (x,), or a tensor like x.

    Raises:
        ArgumentError: if x has no axis and is not an int.
        ShapeError: if x is negative.

    >>> import tensorken as tk
    >>> tk.random.permutation(tk.random.key(1), 5).tolist()
    [2, 3, 0, 4, 1]
    >>> x = tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> tk.random.permutation(tk.random.key(1), x, axis=1).tolist()
    [[3.0, 1.0, 2.0], [6.0, 4.0, 5.0]]
    """
    name = "permutation"
    key = checked(name, key)
    if not isinstance(x, Tensor) and isinstance(x, SupportsIndex):
        (count,) = shape_of(name, operator.index(x))
        axis_of(name, (count,), axis)
        return _random_orders(key, (count,), 0)
    x = as_operand(name, x, key)
    if not x.shape:
        raise ArgumentError(
            f"{name}: need an int or a tensor with an axis, got shape (); write permutation(key, n) with a Python int n"
        )
    along = axis_of(name, x.shape, axis)
    if independent:
        result: Tensor = take_along(x, _random_orders(key, x.shape, along), along)
        return result
    permuted: Tensor = x.gather(_random_orders(key, (x.shape[along],), 0), along)
    return permuted


def _random_orders(key: Tensor, shape: Shape, axis: int) -> Tensor:
    """Random orders along an axis: sorted by the second word, then stably by the first."""
    first, second = pairs(key, shape)
    order = second.argsort(axis)
    result: Tensor = take_along(order, take_along(first, order, axis).argsort(axis), axis)
    return result


def choice(
    key: Tensor,
    a: SupportsIndex | ArrayLike,
    shape: Any = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
) -> Tensor:
    """Random slices of a tensor along an axis, or random numbers below an int.

    Args:
        key: shape (2,), int32.
        a: an int n, for the numbers from 0 to n - 1, or a tensor with at least one axis.
        shape: the shape of the choices, which replaces the axis.
        replace: whether a slice may be chosen more than once.
        p: the probability of each slice, shape (n,), up to a common factor; equal by default.
        axis: the axis of `a` to choose along.

    Returns:
        int32 of the shape, int64 for 2**31 numbers or more; or a tensor
        like `a` with the axis replaced by the shape, differentiable with respect to it.

    Raises:
        ArgumentError: if `a` has no axis and is not an int.
        ArgumentError: if a probability is known to be negative, infinite or NaN, or fewer are positive than slices are
            chosen without replacement, or none is.
        ShapeError: if p does not have shape (n,), or there are too few slices to choose from.

    >>> import tensorken as tk
    >>> tk.random.choice(tk.random.key(0), 10, (4,), replace=False).tolist()
    [4, 8, 3, 7]
    >>> x = tk.tensor([1.0, 2.0, 3.0])
    >>> tk.random.choice(tk.random.key(0), x, (4,), p=[0.0, 0.5, 0.5]).tolist()
    [3.0, 2.0, 3.0, 2.0]
    """
    name = "choice"
    key, sizes = checked(name, key), shape_of(name, shape)
    source: Tensor | None = None
    if isinstance(a, SupportsIndex) and not isinstance(a, Tensor):
        along, (n,) = 0, shape_of(name, operator.index(a))
    else:
        source = as_operand(name, a, key)
        if not source.shape:
            raise ArgumentError(
                f"{name}: need an int or a tensor with an axis, got shape (); write choice(key, n) with a Python int n"
            )
        along = axis_of(name, source.shape, axis)
        n = source.shape[along]
    count = math.prod(sizes)
    if count > (n if not replace else count if n else 0):
        raise ShapeError(
            f"{name}: cannot choose {count} of {n}{'' if replace else ' without replacement'}; "
            f"draw fewer, or give more slices"
        )
    probabilities = None if p is None else _probabilities(key, p, n, 0 if replace else count)
    if replace:
        indices = (
            randint(key, (count,), 0, n, position_dtype(n))
            if probabilities is None
            else _draw_by_p(key, probabilities, count)
        )
    elif probabilities is None:
        indices = permutation(key, n).crop(((0, count),))
    else:
        indices = categorical(key, probabilities.log(), shape=(count,), replace=False)
    if source is None:
        return indices.reshape(sizes)
    chosen = source.gather(indices, along)
    return chosen.reshape((*source.shape[:along], *sizes, *source.shape[along + 1 :]))


def _probabilities(key: Tensor, p: Any, n: int, count: int) -> Tensor:
    """The probabilities, of which at least `count`, and at least one, must be positive."""
    probabilities = floating_of(as_operand("choice", p, key))
    if probabilities.shape != (n,):
        raise ShapeError(
            f"choice: p must have shape ({n},), got {probabilities.shape}; give one probability for each slice"
        )
    check_domain("choice", "p", probabilities)
    needed = max(count, 1 if n else 0)
    possible = (probabilities > 0).sum()
    require("choice", "p", possible >= needed, f"positive for at least {needed} of {n} slices", possible)
    require("choice", "p", ~(probabilities == math.inf), "finite", probabilities)
    return probabilities


def _draw_by_p(key: Tensor, probabilities: Tensor, count: int) -> Tensor:
    """The first positions where the cumulative sum reaches a uniform number from (0, total]."""
    n = probabilities.shape[0]
    sums = probabilities.cumsum(0)
    targets = sums.crop(((max(n - 1, 0), n),)) * (1.0 - uniform(key, (count,), probabilities.dtype))
    return searchsorted(sums, targets)


def categorical(
    key: Tensor, logits: ArrayLike, axis: int = -1, shape: Any = None, replace: bool = True
) -> Tensor:
    """Random positions along an axis, with probabilities proportional to the exponentials of the logits.

    The result is the position of the largest sum of a logit and a Gumbel number (E. J. Gumbel, "Statistical theory of
    extreme values and some practical applications", 1954); without replacement, the positions of the largest sums.  A
    logit of -inf is never chosen, unless all logits are -inf.

    Args:
        key: shape (2,), int32.
        logits: logarithms of probabilities, up to a common summand.
        axis: the axis of the categories.
        shape: of the result; it ends in the shape of logits without the axis, which is the default.
        replace: whether a category may be chosen more than once for the same logits.

    Returns:
        int32.

    Raises:
        ArgumentError, ShapeError: if the key is invalid, the shape does not fit the logits, or the shape needs more
            categories than there are without replacement.

    >>> import tensorken as tk
    >>> logits = tk.log(tk.tensor([[0.1, 0.9], [1.0, 0.0]]))
    >>> tk.random.categorical(tk.random.key(0), logits, shape=(3, 2)).tolist()
    [[1, 0], [1, 0], [1, 0]]
    """
    name = "categorical"
    key = checked(name, key)
    x = floating_of(as_operand(name, logits, key))
    require(name, "logits", x == x, "numbers", x)
    along = axis_of(name, x.shape, axis)
    batch = x.shape[:along] + x.shape[along + 1 :]
    sizes = batch if shape is None else shape_of(name, shape)
    prefix = sizes[: len(sizes) - len(batch)]
    if sizes[len(prefix) :] != batch:
        raise ShapeError(
            f"{name}: the shape must end in {batch}, as the logits without axis {along}, got {sizes}; append it"
        )
    if replace:
        noise = gumbel(key, (*prefix, *x.shape), x.dtype)
        return (x + noise).argmax(len(prefix) + along)
    count, n = math.prod(prefix), x.shape[along]
    if count > n:
        raise ShapeError(
            f"{name}: cannot choose {count} of {n} categories without replacement; draw at most {n}"
        )
    possible = (x > -math.inf).sum(along)
    require(name, "logits", possible >= count, f"above -inf for at least {count} categories", possible)
    order = (x + gumbel(key, x.shape, x.dtype)).argsort(along, descending=True)
    first: Tensor = slice_along(order, along, 0, count)
    return first.permute((along, *[i for i in range(x.ndim) if i != along])).reshape(sizes)
