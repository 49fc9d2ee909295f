"""The parameters of distributions: tensors of one shape and dtype, from the arguments of a function."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from tensorken.arrays.functions.stop_gradient import stop_gradient
from tensorken.random.bits import broadcast_argument, checked, dtype_of, shape_of
from tensorken.random.domains import check_domain
from tensorken_core.errors import DTypeError, ShapeError
from tensorken_core.language.dtypes import DType, as_dtype, float32, float64
from tensorken_core.language.shapes import Shape, broadcast
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.level import deepest
from tensorken_core.tensor.tensor import Tensor


def floating_parameters(
    name: str, key: Any, shape: Any, dtype: Any, **parameters: Any
) -> tuple[Tensor, DType, list[Tensor]]:
    """The key, the dtype of the result, and the parameters in the shape of the result.

    Args:
        name: of the function.
        key: of the user.
        shape: of the result; None is the broadcast shape of the parameters.
        dtype: a floating-point dtype.
        parameters: numbers or tensors; they become float64 if the result is, else float32.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or the parameters do not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.
    """
    key, result_dtype = checked(name, key), dtype_of(name, dtype, "float", key)
    return key, result_dtype, in_one_shape(name, key, shape, result_dtype.wide, **parameters)


def counting_parameters(
    name: str, key: Any, shape: Any, dtype: Any, **parameters: Any
) -> tuple[Tensor, DType, list[Tensor]]:
    """As `floating_parameters`, for a distribution on the integers; derivatives end at the parameters.

    The parameters become float64 if one of them or the dtype is, else float32.
    """
    key, result_dtype, inner = counting_dtypes(name, key, dtype, *parameters.values())
    xs = in_one_shape(name, key, shape, inner, **parameters)
    return key, result_dtype, [stop_gradient(x) for x in xs]


def counting_dtypes(name: str, key: Any, dtype: Any, *parameters: Any) -> tuple[Tensor, DType, DType]:
    """The key, the dtype of the result, an integer or floating-point one, and the dtype of the computation."""
    key, kind = checked(name, key), as_dtype(dtype).kind
    if kind not in ("int", "float"):
        raise DTypeError(
            f"{name}: the dtype must be an integer or floating-point dtype, got {as_dtype(dtype)}; "
            f"cast the result (x.astype)"
        )
    result_dtype = dtype_of(name, dtype, kind, key)
    found = [x.dtype for x in parameters if isinstance(x, Tensor)]
    return key, result_dtype, float64 if float64 in (result_dtype, *found) else float32


def in_one_shape(name: str, key: Tensor, shape: Any, dtype: DType, **parameters: Any) -> list[Tensor]:
    """The parameters in one dtype, in a shape or in their broadcast shape."""
    like = key.constant([0], key.dtype, ()).astype(dtype)
    xs = {what: as_operand(name, x, like).astype(dtype) for what, x in parameters.items()}
    deepest([like.interpreter, *[x.interpreter for x in xs.values()]], name)
    for what, x in xs.items():
        check_domain(name, what, x)
    sizes = (
        broadcast_shape(name, {what: x.shape for what, x in xs.items()})
        if shape is None
        else shape_of(name, shape)
    )
    return [broadcast_argument(name, what, x, sizes) for what, x in xs.items()]


def broadcast_shape(name: str, shapes: Mapping[str, Shape]) -> Shape:
    """The broadcast shape of parameters, from their shapes by name."""
    try:
        return functools.reduce(broadcast, shapes.values())
    except ShapeError:
        text = " and ".join([f"{what} of shape {shape}" for what, shape in shapes.items()])
        raise ShapeError(f"{name}: {text} do not broadcast; change one") from None
