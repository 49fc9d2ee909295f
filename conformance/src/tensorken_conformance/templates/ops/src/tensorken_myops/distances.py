"""The op `squared_distances`: its shape rule, its body, its derivatives and its batching rule.

    z[i, j] = sum over k of (x[i, k] - y[j, k])**2

The derivatives of the body would keep its differences, of shape (m, n, d), on the tape. The derivative rules
compute them again, so the tape has only x and y.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ShapeError
from tensorken_core.language import dtype_rules
from tensorken_core.language.op import Op
from tensorken_core.language.shapes import Shape


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """The squared Euclidean distance between each point of x and each point of y.

    Args:
        x: m points, of shape (..., m, d) and a floating dtype.
        y: n points, of shape (..., n, d), with the same leading axes and the same dtype.

    Returns:
        A tensor of shape (..., m, n).

    Raises:
        ShapeError: if the shapes differ in another axis than m and n.
        DTypeError: if the dtypes differ or are not floating.

    >>> import tensorken as tk
    >>> squared_distances(tk.tensor([[0.0, 0.0], [1.0, 1.0]]), tk.tensor([[3.0, 4.0]])).tolist()
    [[25.0], [13.0]]
    """
    z: Tensor = x.apply(SQUARED_DISTANCES, y)
    return z


def _shape(x: Shape, y: Shape) -> Shape:
    """The shape of the result; the caller puts the op's name before the message of an error."""
    if len(x) < 2 or len(x) != len(y) or x[:-2] != y[:-2] or x[-1] != y[-1]:
        raise ShapeError(f"need shapes (..., m, d) and (..., n, d), got {x} and {y}; broadcast them first")
    return (*x[:-1], y[-2])


def _differences(x: Tensor, y: Tensor) -> Tensor:
    """x[i] - y[j], of shape (..., m, n, d)."""
    return tk.expand_dims(x, -2) - tk.expand_dims(y, -3)


def _body(x: Tensor, y: Tensor) -> Tensor:
    """The op in terms of others, which runs on every backend."""
    return tk.square(_differences(x, y)).sum(-1)


# ---- derivatives: t is the tangent or cotangent, z the result; each rule is linear in t --------------------


def _tangent_from_x(t: Tensor, z: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return (2.0 * _differences(x, y) * tk.expand_dims(t, -2)).sum(-1)


def _tangent_from_y(t: Tensor, z: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return (2.0 * _differences(x, y) * tk.expand_dims(-t, -3)).sum(-1)


def _cotangent_of_x(t: Tensor, z: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return (2.0 * _differences(x, y) * tk.expand_dims(t, -1)).sum(-2)


def _cotangent_of_y(t: Tensor, z: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return (2.0 * _differences(x, y) * tk.expand_dims(-t, -1)).sum(-3)


# ---- batches -----------------------------------------------------------------------------------------------


def _batch(batched: tuple[bool, ...], operands: Sequence[Tensor], params: tuple[Any, ...]) -> Tensor:
    """The results of all examples. They have a leading axis for the examples, like each batched operand.

    An operand that is not batched is not copied: the points of all examples become one set.
    """
    x, y = operands
    if all(batched):
        return squared_distances(x, y)
    if batched[1]:
        return _batch((True, False), (y, x), params).mT
    examples, *leading, m, d = x.shape
    points = tk.moveaxis(x, 0, -3).reshape((*leading, examples * m, d))
    return tk.moveaxis(squared_distances(points, y).reshape((*leading, examples, m, y.shape[-2])), -3, 0)


SQUARED_DISTANCES = Op(
    "squared_distances",
    2,
    _shape,
    dtype_rules.floating,
    jvp=(_tangent_from_x, _tangent_from_y),
    vjp=(_cotangent_of_x, _cotangent_of_y),
    body=_body,
    batch=_batch,
    samples=((((3, 2), (4, 2)), ()), (((2, 1, 3), (2, 2, 3)), ())),
)
"""The op; the laws of the conformance kit draw operands of the shapes in `samples`."""
