"""tk.trace: the program of a Python function; tk.eval_shape: the shapes and dtypes of its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken.complex_numbers.tensor import ComplexTensor, is_complex
from tensorken.ops.callbacks import ShapeDtypeStruct
from tensorken.programs.names import labels_of, parameters_of
from tensorken_core import tree
from tensorken_core.errors import ArgumentError
from tensorken_core.language.dtypes import complex_dtype
from tensorken_core.levels.trace import Source, traced
from tensorken_core.program.program import Program
from tensorken_core.tensor.level import interpreter_below
from tensorken_core.tensor.number import numbers_among, with_numbers
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.transforms.arguments import Function, check_function

__all__ = ["eval_shape", "trace"]


def eval_shape(fun: Function, *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of `fun(*args, **kwargs)`, without computing it.

    fun is called once, with tensors that have no values.

    Args:
        fun: a function of pytrees of tensors.
        args, kwargs: its arguments; `tk.ShapeDtypeStruct` may take the place of tensors.

    Returns:
        A tree like the result, of `tk.ShapeDtypeStruct`.

    Raises:
        ArgumentError: if a leaf of an argument is no tensor, number, array or ShapeDtypeStruct.
        ConcretizationError: if fun needs a value of a tensor, for example for `if x > 0`.

    >>> import tensorken as tk
    >>> huge = tk.ShapeDtypeStruct((1_000_000, 1_000_000), tk.float32)
    >>> tk.eval_shape(lambda x: (x @ x, x.sum()), huge)
    (ShapeDtypeStruct((1000000, 1000000), 'float32'), ShapeDtypeStruct((), 'float32'))
    """
    program, result = _traced("eval_shape", check_function("eval_shape", fun), args, kwargs)
    outputs = tree.unflatten(result, [ShapeDtypeStruct(v.shape, v.dtype) for v in program.outputs])
    return tree.map(_whole, outputs, is_leaf=is_complex)


def trace(f: Function) -> Callable[..., Program]:
    """Return a function that traces f for example arguments: it calls f once, computes nothing, and returns a program.

    Derivatives and vmap inside f are applied while tracing; the program has only the ops that result.

    Args:
        f: a function of pytrees of tensors.

    Raises:
        ConcretizationError: when called, if f needs a value of a tensor, for example for `if x > 0`.

    >>> import tensorken as tk
    >>> print(tk.trace(tk.grad(lambda x: x**3))(2.0))  # doctest: +ELLIPSIS
    <lambda>(x: float32[]):
        a: float32[] = pow(x, 3.0)...
        ...
    """

    def program_of(*arguments: Any, **keywords: Any) -> Program:
        return _traced("trace", f, arguments, keywords)[0]

    if isinstance(f, Tensor):
        raise ArgumentError(
            "trace: need a function, got a Tensor; for the sum of a diagonal use x.trace() or tk.linalg.trace(x)"
        )
    check_function("trace", f)
    return program_of


# ---- shared code -------------------------------------------------------------------------------------------


def _traced(
    transform: str, f: Function, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Program, tree.Structure]:
    """The program of a function for example arguments, and the structure of the result."""
    leaves, structure = tree.flatten(tree.map(_in_parts, (arguments, keywords)))
    xs = [_as_argument(transform, i, leaf) for i, leaf in enumerate(leaves)]
    inner = interpreter_below([x.interpreter for x in xs if isinstance(x, Tensor)], transform)
    results: list[tree.Structure] = []

    def flat(*tensors: Tensor) -> list[Any]:
        positional, named = tree.unflatten(structure, with_numbers(tensors, numbers_among(leaves)))
        outputs, result = tree.flatten(f(*positional, **named))
        results.append(result)
        return outputs

    name, parameters = getattr(f, "__name__", "program"), parameters_of(f, len(arguments))
    source = Source(transform, name, lambda: labels_of(structure, parameters))
    program = traced(flat, xs, inner, name, source)
    return program.changed(arguments=structure, result=results[0], parameters=parameters), results[0]


def _in_parts(leaf: Any) -> Any:
    """A complex ShapeDtypeStruct as a pair; anything else as it is."""
    parts = leaf.parts if isinstance(leaf, ShapeDtypeStruct) else ()
    return ComplexTensor(*parts) if len(parts) == 2 else leaf


def _whole(x: Any) -> Any:
    """The ShapeDtypeStruct of which `_in_parts` gives the parts."""
    return ShapeDtypeStruct(x.real.shape, complex_dtype(x.real.dtype)) if isinstance(x, ComplexTensor) else x


def _as_argument(transform: str, i: int, leaf: Any) -> Tensor | ShapeDtypeStruct:
    """An example argument: anything with a shape and a dtype."""
    if isinstance(leaf, ShapeDtypeStruct):
        return leaf
    try:
        return as_tensor(leaf)
    except ArgumentError:
        raise ArgumentError(
            f"{transform}: argument leaf {i} is a {type(leaf).__name__}, need a tensor, number or array; bind other "
            f"values to the function first, for example by functools.partial"
        ) from None
