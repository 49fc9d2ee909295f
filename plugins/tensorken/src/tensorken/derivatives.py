"""Elementwise derivatives, Hessian-vector products and simple derivative rules, from the transforms of core."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken_core import tree
from tensorken_core.errors import ShapeError
from tensorken_core.language.dtype_rules import floating
from tensorken_core.language.op import Op
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.transforms.arguments import (
    Argnums,
    Function,
    argnums_of,
    argnums_partial,
    as_variable,
    check_function,
    check_sequences,
    name_of,
    tangent_like,
)
from tensorken_core.transforms.grad import grad, jvp
from tensorken_core.transforms.user_op import at_level

__all__ = ["derivative", "elementwise", "hvp"]


def derivative(f: Function, argnum: int = 0) -> Callable[..., Any]:
    """The directional derivative of f along ones: for an elementwise f, its derivative at each element (forward mode).

    Raises:
        GradientError: when called, if the argument is not floating-point.

    >>> import tensorken as tk
    >>> tk.derivative(tk.derivative(tk.sin))(0.0).item()
    -0.0
    """

    @functools.wraps(check_function("derivative", f), updated=())
    def differentiated(*arguments: Any, **keywords: Any) -> Any:
        (position,) = argnums_of("derivative", argnum, len(arguments))
        point = tree.map(as_tensor, arguments[position])
        ones = tree.map(lambda x: as_variable("derivative", x, 0).ones_like(), point)
        return jvp(argnums_partial(f, arguments, (position,), keywords), (point,), (ones,))[1]

    return differentiated


def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The product of the Hessian of scalar-valued f at the primals and the tangents, without building the Hessian.

    Returns:
        A tensor for one primal, a tuple of tensors for several.

    Raises:
        GradientError: if f's value is not a floating-point scalar, or a primal is not floating-point.
        StructureError, ShapeError: if the tangents do not match the primals.

    >>> import tensorken as tk
    >>> tk.hvp(lambda x: (x * x * x).sum(), (tk.tensor([1.0, 2.0]),), (tk.tensor([1.0, 0.0]),)).tolist()
    [6.0, 0.0]
    """
    check_sequences("hvp", primals, tangents)
    argnums: Argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(f, argnums), primals, tangents)[1]


def elementwise(
    f: Callable[[Tensor], Tensor], derivative: Callable[[Tensor], Tensor]
) -> Callable[[ArrayLike], Tensor]:
    """The elementwise function f with a user-defined derivative, for forward and reverse mode and any order.

    Args:
        f: a function from a floating-point tensor to a tensor of the same shape; it is not differentiated.
        derivative: the derivative of f, as a function of f's argument; higher orders differentiate it.

    Raises:
        ShapeError: when called, if f changes the shape; when differentiated, if the derivative has another shape.
        GradientError: when differentiated, if the derivative has a wider dtype.
        ArgumentError: when called inside a transform, if f uses another tensor of that transform.

    >>> import tensorken as tk
    >>> softplus = tk.elementwise(lambda x: tk.log1p(tk.exp(x)), tk.sigmoid)
    >>> tk.grad(softplus)(0.0).item(), tk.grad(tk.grad(softplus))(0.0).item()
    (0.5, 0.25)
    """
    name = name_of(f)

    def body(x: Tensor) -> Tensor:
        y = at_level(name, x.interpreter, f(x))
        if y.shape != x.shape:
            raise ShapeError(f"{name}: an elementwise function must keep the shape {x.shape}, got {y.shape}")
        return y

    def rule(t: Tensor, y: Tensor, x: Tensor) -> Tensor:
        return tangent_like(name, "derivative", x, t * derivative(x))

    op = Op(name, 1, lambda x: x, floating, jvp=(rule,), vjp=(rule,), body=body)

    def call(x: ArrayLike) -> Tensor:
        result: Tensor = apply(op, (as_tensor(x),))
        return result

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f.__doc__
    return call
