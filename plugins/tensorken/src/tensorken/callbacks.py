"""Callbacks: calls of Python functions that a traced program makes each time it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

from tensorken.arrays.creation import tensor
from tensorken.complex_numbers.tensor import ComplexTensor, is_complex
from tensorken.ops.callbacks import (
    IO_CALLBACK,
    PURE_CALLBACK,
    VMAP_METHODS,
    Callback,
    ShapeDtypeStruct,
    call,
)
from tensorken_core import tree
from tensorken_core.errors import ArgumentError
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.op import Op
from tensorken_core.source_line import users_line
from tensorken_core.tensor.level import interpreter_below
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.arguments import check_function

__all__ = ["ShapeDtypeStruct", "io_callback", "pure_callback"]


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function without effects on numpy arrays, each time a program runs.

    The function is not traced: it may use numpy, SciPy or any other library.  A program may drop a call whose results
    are not used, or make a call again.  It has no derivative: define one by `tk.custom_jvp` or `tk.custom_vjp`.

    Args:
        callback: a function of pytrees of numpy arrays that returns a pytree of arrays and numbers.
        result_shape_dtypes: a pytree of objects with a shape and a dtype, such as `tk.ShapeDtypeStruct` or tensors.
        args: pytrees of tensors, arrays and numbers.
        vmap_method: how `tk.vmap` calls it: "sequential" calls it for each example; "expand_dims" and "broadcast_all"
            call it once, for arguments with a batch axis in front, which has size 1, or the size of the batch, for
            those that all examples share.
        kwargs: arguments by name, like args.

    Returns:
        A pytree of tensors.

    Raises:
        ShapeError, DTypeError, StructureError: if the result is not as in result_shape_dtypes.
        GradientError: if a floating-point result is differentiated.
        ArgumentError: under `vmap`, if there is no vmap_method.

    >>> import numpy as np, tensorken as tk
    >>> interpolated = tk.jit(lambda x: 2 * tk.pure_callback(lambda x: np.interp(x, [0, 1], [10, 20]), x, x))
    >>> interpolated(tk.tensor([0.0, 0.5], dtype="float64")).tolist()
    [20.0, 30.0]
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        methods = ", ".join(map(repr, VMAP_METHODS))
        raise ArgumentError(f"pure_callback: vmap_method must be one of {methods}, got {vmap_method!r}")
    return _called(PURE_CALLBACK, callback, result_shape_dtypes, args, kwargs, vmap_method)


def io_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, ordered: bool = False, **kwargs: Any
) -> Any:
    """Call a Python function with an effect on numpy arrays, exactly once each time a program runs.

    It runs also if its results are not used.  All calls of a program occur in the order of the program, ordered or
    not.  `vmap` calls the function for each example, in their order, before the next op; so with `ordered=True`, which
    asks for the order of a Python loop over the examples, it raises an error.

    Args:
        callback: a function of pytrees of numpy arrays that returns a pytree of arrays and numbers.
        result_shape_dtypes: a pytree of objects with a shape and a dtype; if None, results are ignored.
        args: pytrees of tensors, arrays and numbers.
        ordered: whether `vmap` is an error.
        kwargs: arguments by name, like args.

    Returns:
        A pytree of tensors.

    Raises:
        ShapeError, DTypeError, StructureError: if the result is not as in result_shape_dtypes.
        GradientError: if a floating-point result is differentiated, or it is within `tk.checkpoint`.
        ArgumentError: under `vmap`, if ordered, or if a `cond` or `while_loop` runs all branches or examples.

    >>> import tensorken as tk
    >>> log = []
    >>> step = tk.jit(lambda x: (tk.io_callback(lambda x: log.append(float(x)), None, x), x * 2)[1])
    >>> step(1.0).item(), step(3.0).item(), log
    (2.0, 6.0, [1.0, 3.0])
    """
    method = None if ordered else "sequential"
    return _called(IO_CALLBACK, callback, result_shape_dtypes, args, kwargs, method)


def _called(
    op: Op, function: Callable[..., Any], result_shape_dtypes: Any, args: Any, kwargs: Any, method: str | None
) -> Any:
    """Run a callback op on the leaves of the arguments; the result has the structure of result_shape_dtypes."""
    check_function(op.name, function)
    function_name = getattr(function, "__name__", type(function).__name__)
    leaves, structure = tree.flatten((args, kwargs), is_complex)
    types, result = tree.flatten(result_shape_dtypes, is_complex)
    operands = as_operands(op.name, leaves)
    what = f"{op.name} of {function_name}: the result"

    def flat(*arrays: Any) -> list[Any]:
        positional, named = tree.unflatten(structure, arrays_of(operands, arrays))
        value = function(*positional, **named)
        if result_shape_dtypes is None:
            return []
        ys, got = tree.flatten(value, is_complex)
        tree.check_same(result, got, what)
        return ys

    results = tuple([_type_of(op.name, x) for x in types])
    callback = Callback(op.name, function_name, flat, results, method, users_line())
    ys = call(op, callback, parts_of(operands))
    return tree.unflatten(result, _joined(results, ys, ComplexTensor))


def _type_of(name: str, x: Any) -> ShapeDtypeStruct:
    try:
        return ShapeDtypeStruct(x.shape, x.dtype)
    except AttributeError:
        raise ArgumentError(
            f"{name}: result_shape_dtypes must have leaves with a shape and a dtype, got {type(x).__name__}; pass "
            f"tk.ShapeDtypeStruct(shape, dtype)"
        ) from None


def parts_of(operands: Sequence[Tensor]) -> list[Tensor]:
    """The tensors, of complex ones the two parts."""
    return [part for x in operands for part in ((x.real, x.imag) if isinstance(x, ComplexTensor) else (x,))]


def _joined(whole: Sequence[Any], parts: Iterable[Any], join: Callable[[Any, Any], Any]) -> list[Any]:
    """The values of which these are the parts, where `whole` has their dtypes."""
    rest = iter(parts)
    return [join(next(rest), next(rest)) if x.dtype.kind == "complex" else next(rest) for x in whole]


def _complex_array(real: Any, imag: Any) -> Any:
    """A numpy array of complex numbers; only one of the parts may have the axis of a batch."""
    numpy = import_module("numpy")
    array = numpy.empty(numpy.broadcast_shapes(real.shape, imag.shape), f"c{2 * real.dtype.itemsize}")
    array.real, array.imag = real, imag
    return array


def arrays_of(operands: Sequence[Tensor], parts: Iterable[Any]) -> list[Any]:
    """The numpy arrays of the operands, from those of `parts_of`."""
    return _joined(operands, parts, _complex_array)


def as_operands(name: str, leaves: Sequence[Any]) -> list[Tensor]:
    """The leaves as tensors, on the backend of the tensors among them, else of the running transform.

    Raises:
        ArgumentError: if a leaf is not a tensor, number or array.
    """
    interpreters: list[Interpreter[Any]] = [x.interpreter for x in leaves if isinstance(x, Tensor)]
    base = interpreter_below(interpreters, name).base
    operands = []
    for i, leaf in enumerate(leaves):
        try:
            operands.append(leaf if isinstance(leaf, Tensor) else tensor(leaf, backend=base))
        except ArgumentError as error:
            raise ArgumentError(f"{name}: argument leaf {i}: {error}") from None
    return operands
