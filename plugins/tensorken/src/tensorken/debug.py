"""Look at values while a program runs: `tk.debug.print`, `tk.debug.callback` and `tk.debug.breakpoint`.

They work under `jit`, loops, `vmap` and derivatives, in the order of the program.  Under `vmap` they run for each
example, in order; under derivatives they get the primals.  Where `tk.checkpoint` computes values again, they run again.
"""

from __future__ import annotations

import builtins
import string
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from tensorken.callbacks import arrays_of, as_operands, parts_of
from tensorken.complex_numbers.tensor import is_complex
from tensorken.ops.callbacks import DEBUG_CALLBACK, Callback, call
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, TensorkenError
from tensorken_core.source_line import is_ours, origin_of, users_line
from tensorken_core.tensor.level import interpreter_below
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.arguments import check_function

__all__ = ["breakpoint", "callback", "print"]


def callback(function: Callable[..., Any], *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Call a Python function on values, as numpy arrays, each time a program runs; its result is ignored.

    Args:
        function: a function of the arguments.
        args: pytrees of tensors, arrays and other objects, which arrive unchanged.
        ordered: whether `vmap` is an error, since it runs one op for all examples before the next op.
        kwargs: arguments by name, like args.

    >>> import tensorken as tk
    >>> norms = []
    >>> loss = tk.jit(lambda x: (tk.debug.callback(norms.append, (x * x).sum()), x.sum())[1])
    >>> tk.grad(loss)(tk.ones(3)).tolist(), [float(norm) for norm in norms]
    ([1.0, 1.0, 1.0], [3.0])
    """
    check_function("debug.callback", function)
    name = getattr(function, "__name__", type(function).__name__)
    _show("debug.callback", name, function, args, kwargs, ordered)


def print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Print values, as numpy arrays, each time a program runs.

    Args:
        fmt: a format string, as of `str.format`.
        args: pytrees of tensors, arrays and other objects, for the fields `{}` and `{0}`.
        ordered: whether `vmap` is an error, since it runs one op for all examples before the next op.
        kwargs: for the fields with names.

    Raises:
        ArgumentError: if the fields and the arguments do not match.

    >>> import tensorken as tk
    >>> @tk.jit
    ... def f(x):
    ...     tk.debug.print("x = {x:.2f}", x=x)
    ...     return x * x
    >>> tk.grad(f)(3.0).item()
    x = 3.00
    6.0
    >>> tk.vmap(f)(tk.tensor([1.0, 2.0])).tolist()
    x = 1.00
    x = 2.00
    [1.0, 4.0]
    """
    if not isinstance(fmt, str):
        raise ArgumentError(
            f"debug.print: the first argument must be a format string, got {type(fmt).__name__}; "
            f"write tk.debug.print('x = {{}}', x)"
        )
    _check_fields(fmt, args, kwargs)

    def show(*values: Any, **named: Any) -> None:
        builtins.print(fmt.format(*values, **named))

    _show("debug.print", repr(fmt), show, args, kwargs, ordered)


def breakpoint() -> None:
    """Stop in the debugger each time a program runs, with the values of the local variables.

    The debugger is the one of Python's `breakpoint`: `sys.breakpointhook` chooses it.  In its frame the local variables
    of the function that calls `tk.debug.breakpoint` are numpy arrays.

    >>> import sys, tensorken as tk
    >>> stops = []
    >>> sys.breakpointhook = lambda: stops.append(sys._getframe(1).f_locals["x"].item())
    >>> @tk.jit
    ... def f(x):
    ...     tk.debug.breakpoint()
    ...     return x * x
    >>> f(3.0).item(), stops
    (9.0, [3.0])
    >>> sys.breakpointhook = sys.__breakpointhook__
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    variables, namespace = ({}, {}) if frame is None else (_readable(frame.f_locals), frame.f_globals)
    where = "" if frame is None else origin_of(frame)
    code = compile("__breakpointhook__()", f"<tk.debug.breakpoint at {where}>", "eval")

    def stop(values: dict[str, Any]) -> None:
        eval(code, {**namespace, "__breakpointhook__": sys.breakpointhook}, values)

    _show("debug.breakpoint", f"line {getattr(where, 'line', 0)}", stop, (variables,), {}, False)


def _readable(variables: dict[str, Any]) -> dict[str, Any]:
    """The variables that hold tensors which can be read here, and plain values."""
    result = {}
    for name, value in variables.items():
        leaves = tree.leaves(value)
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        if tensors:
            try:
                interpreter_below([x.interpreter for x in tensors], "debug.breakpoint")
            except TensorkenError:  # of another backend, or of a transform that has returned
                continue
            result[name] = value
        elif all([isinstance(x, bool | int | float | str) for x in leaves]):
            result[name] = value
    return result


def _show(
    op_name: str, name: str, function: Callable[..., Any], args: Any, kwargs: Any, ordered: bool
) -> None:
    """Run the debug op on the tensors and arrays among the arguments; other leaves are kept in the function."""
    leaves, structure = tree.flatten((args, kwargs), is_complex)
    indices = [i for i, x in enumerate(leaves) if hasattr(x, "shape") and hasattr(x, "dtype")]
    rest = [None if i in indices else x for i, x in enumerate(leaves)]
    operands = as_operands(op_name, [leaves[i] for i in indices])

    def flat(*arrays: Any) -> Sequence[Any]:
        values = [*rest]
        for i, x in zip(indices, arrays_of(operands, arrays), strict=True):
            values[i] = x
        positional, named = tree.unflatten(structure, values)
        function(*positional, **named)
        return ()

    method = None if ordered else "sequential"
    call(DEBUG_CALLBACK, Callback(op_name, name, flat, (), method, users_line()), parts_of(operands))


class _AnyField:
    """Stands for a value when a format string is checked."""

    def __getattr__(self, name: str) -> _AnyField:
        return self

    def __getitem__(self, key: Any) -> _AnyField:
        return self

    def __format__(self, spec: str) -> str:
        return ""

    __str__ = __repr__ = lambda self: ""


class _Fields(string.Formatter):
    """Finds missing and unused arguments of a format string."""

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [
            *[i for i in range(len(args)) if i not in used_args],
            *[n for n in kwargs if n not in used_args],
        ]
        if unused:
            raise ArgumentError(f"has no field for argument {unused[0]!r}")


def _check_fields(fmt: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    try:
        _Fields().vformat(fmt, [_AnyField() for _ in args], {name: _AnyField() for name in kwargs})
    except (ArgumentError, IndexError, KeyError, ValueError) as error:
        problem = str(error)
        if isinstance(error, IndexError):
            problem = "has more fields than arguments"
        elif isinstance(error, KeyError):
            problem = f"has no argument for field {error}"
        elif isinstance(error, ValueError):
            problem = f"is no format: {error}"
        raise ArgumentError(f"debug.print: {fmt!r} {problem}; write tk.debug.print('x = {{}}', x)") from None
