"""Matrices of derivatives, from the two modes: Jacobians and Hessians of any rank, and products with them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tensorken import tree
from tensorken.arguments import (
    Argnums,
    Function,
    check_function,
    check_sequences,
    over_inputs,
    partial_of,
    places_of,
    variable,
)
from tensorken.creation import as_tensor
from tensorken.functions.shaping import stack
from tensorken.tensor import Tensor
from tensorken.transforms import grad, jvp, vjp

__all__ = [
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
]


def jacfwd(f: Function, argnums: Argnums = 0) -> Callable[..., Any]:
    """The Jacobian of f by forward mode, one push for each input element: for few inputs and many outputs.

    Returns:
        A function that gives, for each output and each input of the pytrees, a tensor of shape
        `output.shape + input.shape`.

    >>> import tensorken as tk
    >>> tk.jacfwd(tk.square)(tk.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    @functools.wraps(check_function("jacfwd", f))
    def jacobian(*arguments: Any, **keywords: Any) -> Any:
        places = places_of("jacfwd", argnums, len(arguments))
        at = tuple([tree.map(as_tensor, arguments[i]) for i in places])
        inputs, structure = tree.flatten(at)
        inputs = [variable("jacfwd", x, i) for i, x in enumerate(inputs)]
        partial = partial_of(f, arguments, places, keywords)
        columns: list[list[list[Tensor]]] = []  # [input][element of the input][output]
        out_structure: Any = None
        for k, x in enumerate(inputs):
            columns.append([])
            for direction in _basis(x):
                directions = [direction if i == k else z.zeros_like() for i, z in enumerate(inputs)]
                pushed = jvp(
                    partial, tree.unflatten(structure, inputs), tree.unflatten(structure, directions)
                )[1]
                outputs, out_structure = tree.flatten(pushed)
                columns[k].append(outputs)
        if out_structure is None:
            outputs, out_structure = tree.flatten(partial(*tree.unflatten(structure, inputs)))
        else:
            outputs = next(column for column in columns if column)[0]
        blocks = []
        for o, y in enumerate(outputs):
            row = []
            for x, column in zip(inputs, columns, strict=True):
                shape = y.shape + x.shape
                row.append(
                    stack([out[o] for out in column], y.ndim).reshape(shape) if column else _zeros(y, shape)
                )
            blocks.append(over_inputs(tree.unflatten(structure, row), argnums))
        return tree.unflatten(out_structure, blocks)

    return jacobian


def jacrev(f: Function, argnums: Argnums = 0) -> Callable[..., Any]:
    """The Jacobian of f by reverse mode, one pull for each output element: for many inputs and few outputs.

    Returns:
        A function that gives, for each output and each input of the pytrees, a tensor of shape
        `output.shape + input.shape`.

    >>> import tensorken as tk
    >>> tk.jacrev(tk.square)(tk.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    @functools.wraps(check_function("jacrev", f))
    def jacobian(*arguments: Any, **keywords: Any) -> Any:
        places = places_of("jacrev", argnums, len(arguments))
        at = tuple([tree.map(as_tensor, arguments[i]) for i in places])
        inputs, structure = tree.flatten(at)
        result, pull_back = vjp(partial_of(f, arguments, places, keywords), *at)
        outputs, out_structure = tree.flatten(result)
        blocks = []
        for k, y in enumerate(outputs):
            rows: list[list[Tensor]] = []  # [element of the output][input]
            for cotangent in _basis(variable("jacrev", y, k)):
                seeds = [cotangent if i == k else z.zeros_like() for i, z in enumerate(outputs)]
                rows.append(tree.flatten(pull_back(tree.unflatten(out_structure, seeds)))[0])
            block = [
                stack([row[i] for row in rows], 0).reshape(y.shape + x.shape)
                if rows
                else _zeros(x, y.shape + x.shape)
                for i, x in enumerate(inputs)
            ]
            blocks.append(over_inputs(tree.unflatten(structure, block), argnums))
        return tree.unflatten(out_structure, blocks)

    return jacobian


def hessian(f: Function, argnums: Argnums = 0) -> Callable[..., Any]:
    """The second derivatives of f, forward over reverse: tensors of shape `output.shape + input.shape * 2`.

    >>> import tensorken as tk
    >>> tk.hessian(lambda x: (x * x * x).sum())(tk.tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacfwd(jacrev(f, argnums), argnums)


def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian of scalar-valued f at the primals times the tangents, without ever building the Hessian.

    Returns:
        For one primal its product; for several a tuple.

    >>> import tensorken as tk
    >>> tk.hvp(lambda x: (x * x * x).sum(), (tk.tensor([1.0, 2.0]),), (tk.tensor([1.0, 0.0]),)).tolist()
    [6.0, 0.0]
    """
    check_sequences("hvp", primals, tangents)
    argnums: Argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(f, argnums), primals, tangents)[1]


def _basis(x: Tensor) -> list[Tensor]:
    """All tensors of x's shape and dtype with a single 1."""
    n = x.size
    numbers = [[1.0 if i == k else 0.0 for i in range(n)] for k in range(n)]
    return [x.constant(row, x.dtype, x.shape) for row in numbers]


def _zeros(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return x.constant([], x.dtype, (0,)).reshape(shape)
