"""Matrices of derivatives, from the two modes: Jacobians and Hessians of any rank.

All basis vectors go through one pass, as the examples of a batch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from tensorken_core import tree
from tensorken_core.errors import GradientError
from tensorken_core.language.dtypes import int32
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.levels.batch import Axis, Batch, run_batched
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.transforms.arguments import (
    Argnums,
    Function,
    argnums_of,
    argnums_partial,
    as_variable,
    check_function,
    flatten,
    per_argnum,
)
from tensorken_core.transforms.conjugates import imaginary_leaves
from tensorken_core.transforms.grad import Aux, P, jvp, lower_aux, real_part, vjp

__all__ = ["hessian", "jacfwd", "jacrev"]


@overload
def jacfwd(
    f: Callable[P, tuple[Any, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacfwd(
    f: Callable[P, Any], argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
def jacfwd(
    f: Function, argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The Jacobian of f by forward mode, one pass over all input elements: for few inputs and many outputs.

    Args:
        f: a function of pytrees of tensors.
        argnums: which positional argument to differentiate, or several; each block is then a tuple.
        has_aux: whether f returns (result, auxiliary value); the function then returns (Jacobian, aux).

    Returns:
        A function that returns, for each output and each input of the pytrees, a tensor of shape
        `output.shape + input.shape`.

    Raises:
        GradientError: if an argument is not floating-point.

    >>> import tensorken as tk
    >>> tk.jacfwd(tk.square)(tk.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    >>> jacobian, aux = tk.jacfwd(lambda x: (x * x, x.sum()), has_aux=True)(tk.tensor([1.0, 2.0]))
    >>> jacobian.tolist(), aux.item()
    ([[2.0, 0.0], [0.0, 4.0]], 3.0)
    """
    if holomorphic:
        return _along_real_axis(f, argnums, has_aux)

    @functools.wraps(check_function("jacfwd", f), updated=())
    def jacobian(*arguments: Any, **keywords: Any) -> Any:
        partial, inputs, structure = _over_chosen("jacfwd", f, argnums, arguments, keywords)
        _check_real("jacfwd", "arguments", structure)
        primals = tree.unflatten(structure, inputs)
        out_structure: Any = None
        aux: Any = None

        def push(*directions: Tensor) -> list[Tensor]:
            nonlocal out_structure, aux
            _, pushed, *rest = jvp(partial, primals, tree.unflatten(structure, directions), has_aux=has_aux)
            if has_aux:
                aux = _of_all_directions(rest[0], directions, inputs)
            outputs, out_structure = tree.flatten(pushed)
            return outputs

        blocks = []
        for column in _over_basis(push, inputs):
            order = (*range(1, column.ndim), 0)
            parts = zip(_split(column, inputs), inputs, strict=True)
            row = [part.permute(order).reshape(column.shape[1:] + x.shape) for part, x in parts]
            blocks.append(per_argnum(tree.unflatten(structure, row), argnums))
        result = tree.unflatten(out_structure, blocks)
        return (result, aux) if has_aux else result

    return jacobian


@overload
def jacrev(
    f: Callable[P, tuple[Any, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacrev(
    f: Callable[P, Any], argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
def jacrev(
    f: Function, argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The Jacobian of f by reverse mode, one pass over all output elements: for many inputs and few outputs.

    Args:
        f: a function of pytrees of tensors, whose results are floating-point.
        argnums: which positional argument to differentiate, or several; each block is then a tuple.
        has_aux: whether f returns (result, auxiliary value); the function then returns (Jacobian, aux).

    Returns:
        A function that returns, for each output and each input of the pytrees, a tensor of shape
        `output.shape + input.shape`.

    Raises:
        GradientError: if an argument or a result is not floating-point.

    >>> import tensorken as tk
    >>> tk.jacrev(tk.square)(tk.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if holomorphic:
        both = real_part("jacrev", f, has_aux)
        jacobian_and_rest = jacrev(both, argnums, has_aux=True)
        return lambda *arguments, **keywords: _with_aux(*jacobian_and_rest(*arguments, **keywords), has_aux)

    @functools.wraps(check_function("jacrev", f), updated=())
    def jacobian(*arguments: Any, **keywords: Any) -> Any:
        partial, inputs, structure = _over_chosen("jacrev", f, argnums, arguments, keywords)
        result, pull_back, *aux = vjp(partial, *tree.unflatten(structure, inputs), has_aux=has_aux)
        leaves, out_structure = tree.flatten(result)
        _check_real("jacrev", "values", out_structure)
        outputs = [as_variable("jacrev", y, k) for k, y in enumerate(leaves)]

        def pull(*cotangents: Tensor) -> list[Tensor]:
            return tree.leaves(pull_back(tree.unflatten(out_structure, cotangents)))

        rows = _over_basis(pull, outputs)
        parts = [_split(row, outputs) for row in rows]  # [input][output]
        blocks = []
        for k, y in enumerate(outputs):
            block = [part[k].reshape(y.shape + x.shape) for part, x in zip(parts, inputs, strict=True)]
            blocks.append(per_argnum(tree.unflatten(structure, block), argnums))
        jacobians = tree.unflatten(out_structure, blocks)
        return (jacobians, *aux) if has_aux else jacobians

    return jacobian


@overload
def hessian(
    f: Callable[P, tuple[Any, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def hessian(
    f: Callable[P, Any], argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
def hessian(
    f: Function, argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The second derivatives of f, forward over reverse: tensors of shape `output.shape + input.shape * 2`.

    Args:
        f: a function of pytrees of tensors, whose results are floating-point.
        argnums: which positional argument to differentiate, or several.
        has_aux: whether f returns (result, auxiliary value); the function then returns (Hessian, aux).

    Raises:
        GradientError: when called, if an argument is not floating-point.

    >>> import tensorken as tk
    >>> tk.hessian(lambda x: (x * x * x).sum())(tk.tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    once = jacrev(f, argnums, has_aux=has_aux, holomorphic=holomorphic)
    return jacfwd(once, argnums, has_aux=has_aux, holomorphic=holomorphic)


# ---- pieces ------------------------------------------------------------------------------------------------


def _check_real(name: str, what: str, structure: tree.Structure) -> None:
    if imaginary_leaves(structure):
        raise GradientError(
            f"{name}: complex {what} need holomorphic=True; or differentiate by the parts, x.real and x.imag"
        )


def _with_aux(jacobian: Any, value_and_aux: Any, has_aux: bool) -> Any:
    return (jacobian, value_and_aux[1]) if has_aux else jacobian


def _along_real_axis(f: Function, argnums: Argnums, has_aux: bool) -> Function:
    """The Jacobian of a holomorphic function: by the real parts of its complex arguments."""

    def is_complex(x: Any) -> bool:
        return isinstance(x, complex | Interpreter.complex_type)

    @functools.wraps(check_function("jacfwd", f), updated=())
    def jacobian(*arguments: Any, **keywords: Any) -> Any:
        positions = argnums_of("jacfwd", argnums, len(arguments))
        reals = list(arguments)
        for i in positions:
            reals[i] = tree.map(lambda z: z.real, arguments[i], is_leaf=is_complex)

        def of_reals(*values: Any, **keywords: Any) -> Any:
            full = list(values)
            for i in positions:
                full[i] = tree.map(
                    lambda z, x: Interpreter.complex_type(x, as_tensor(z.imag).astype(x.dtype)),
                    arguments[i],
                    values[i],
                    is_leaf=is_complex,
                )
            return f(*full, **keywords)

        return jacfwd(of_reals, argnums, has_aux=has_aux)(*reals, **keywords)

    return jacobian


def _over_chosen(
    name: str, f: Function, argnums: Argnums, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Function, list[Tensor], Any]:
    """f as a function of the chosen arguments, their leaves, and the structure of the leaves."""
    positions = argnums_of(name, argnums, len(arguments))
    leaves, structure = flatten(tuple([arguments[i] for i in positions]))
    inputs = [as_variable(name, x, i, structure) for i, x in enumerate(leaves)]
    return argnums_partial(f, arguments, positions, keywords), inputs, structure


def _of_all_directions(aux: Any, directions: Sequence[Tensor], inputs: Sequence[Tensor]) -> Any:
    """The auxiliary value, which depends on no direction, lowered from the batch of directions, if there is a batch."""
    levels = {x.interpreter for x in directions} - {x.interpreter for x in inputs}
    for level in levels:
        if isinstance(level, Batch):
            aux = lower_aux(aux, level)
    return aux


def _over_basis(linear: Callable[..., list[Tensor]], like: list[Tensor]) -> list[Tensor]:
    """The results of a linear function for every basis vector of its operands, along a first axis.

    Basis vector i is 1 at element i of the concatenated operands, and 0 elsewhere.
    """
    if not like:
        return linear()  # there are no basis vectors, so the rows are never read
    total = sum([x.size for x in like])
    if total == 1 and len(like) == 1:
        return [y.reshape((1, *y.shape)) for y in linear(like[0].ones_like())]
    basis, start = [], 0
    for x in like:
        rows = x.constant(range(-start, total - start), int32, (total,)).reshape((total, 1))
        columns = x.constant(range(x.size), int32, (x.size,)).reshape((1, x.size))
        shape = (total, x.size)
        basis.append(rows.expand(shape).eq(columns.expand(shape)).astype(x.dtype).reshape((total, *x.shape)))
        start += x.size
    return run_batched(linear, Axis(total), [True] * len(like), basis)[0]


def _split(rows: Tensor, like: list[Tensor]) -> list[Tensor]:
    """The rows of each operand."""
    if len(like) == 1:
        return [rows]
    blocks, start = [], 0
    for x in like:
        limits = ((start, start + x.size), *[(0, n) for n in rows.shape[1:]])
        blocks.append(rows.crop(limits))
        start += x.size
    return blocks
