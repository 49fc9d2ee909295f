"""tk.trace: the program of a Python function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken.programs.names import labels_of, parameters_of
from tensorken_core import tree
from tensorken_core.errors import ArgumentError
from tensorken_core.levels.trace import Source, traced
from tensorken_core.program.program import Program
from tensorken_core.tensor.level import interpreter_below
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.transforms.arguments import Function, check_function

__all__ = ["trace"]


def _as_argument(i: int, leaf: Any) -> Tensor:
    try:
        return as_tensor(leaf)
    except ArgumentError:
        raise ArgumentError(
            f"trace: argument leaf {i} is a {type(leaf).__name__}, need a tensor, number or array; bind other "
            f"values to the function first, for example by functools.partial"
        ) from None


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
        leaves, structure = tree.flatten((arguments, keywords))
        xs = [_as_argument(i, leaf) for i, leaf in enumerate(leaves)]
        inner = interpreter_below([x.interpreter for x in xs], "trace")
        result_structures: list[Any] = []

        def flat(*tensors: Tensor) -> list[Any]:
            positional, named = tree.unflatten(structure, tensors)
            outputs, result = tree.flatten(f(*positional, **named))
            result_structures.append(result)
            return outputs

        name, parameters = getattr(f, "__name__", "program"), parameters_of(f, len(arguments))
        source = Source("trace", name, lambda: labels_of(structure, parameters))
        program = traced(flat, xs, inner, name, source)
        return program.changed(arguments=structure, result=result_structures[0], parameters=parameters)

    if isinstance(f, Tensor):
        raise ArgumentError(
            "trace: need a function, got a Tensor; for the sum of a diagonal use x.trace() or tk.linalg.trace(x)"
        )
    check_function("trace", f)
    return program_of
