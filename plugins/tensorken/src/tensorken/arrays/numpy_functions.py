"""Calls of numpy's functions with tensors, such as `np.sin(x)` and `np.stack([x, y])`: they run those of Tensorken.

A function without an equivalent gets numpy arrays of the values, and returns numpy arrays.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from tensorken_core.errors import ArgumentError, ImmutableError
from tensorken_core.tensor.tensor import Tensor

NAMESPACES = {"numpy": "tensorken", "numpy.linalg": "tensorken.linalg", "numpy.fft": "tensorken.fft"}
"""The modules with the equivalents of functions of numpy's modules."""

UFUNC_NAMESPACES = {"numpy": "tensorken", "scipy.special": "tensorken.special"}
"""The modules with the equivalents of elementwise functions (ufuncs)."""

METHODS = {
    ("add", "reduce"): "tk.sum(x, axis)",
    ("multiply", "reduce"): "tk.prod(x, axis)",
    ("maximum", "reduce"): "tk.max(x, axis)",
    ("minimum", "reduce"): "tk.min(x, axis)",
    ("logical_and", "reduce"): "tk.all(x, axis)",
    ("logical_or", "reduce"): "tk.any(x, axis)",
    ("add", "accumulate"): "tk.cumsum(x, axis)",
    ("multiply", "accumulate"): "tk.cumprod(x, axis)",
    ("maximum", "accumulate"): "tk.cummax(x, axis)",
    ("minimum", "accumulate"): "tk.cummin(x, axis)",
    ("add", "at"): "y = x.at[indices].add(values)",
    ("subtract", "at"): "y = x.at[indices].subtract(values)",
    ("multiply", "at"): "y = x.at[indices].multiply(values)",
    ("divide", "at"): "y = x.at[indices].divide(values)",
    ("maximum", "at"): "y = x.at[indices].max(values)",
    ("minimum", "at"): "y = x.at[indices].min(values)",
}
"""The equivalents of methods of ufuncs."""


def call(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The result of the function of the same name here, a tensor on the backend of the arguments.

    >>> import numpy as np
    >>> import tensorken as tk
    >>> np.concatenate([tk.ones(2), tk.zeros(1)])
    tensor([1., 1., 0.])
    >>> np.array2string(tk.ones(2))
    '[1. 1.]'
    """
    module = NAMESPACES.get(function.__module__)
    equivalent = None if module is None else getattr(import_module(module), function.__name__, None)
    # numpy broadcasts None as an object, which matplotlib's `bar` relies on.
    broadcasts_none = function.__name__ == "broadcast_arrays" and any([x is None for x in arguments])
    if callable(equivalent) and not broadcasts_none:
        return equivalent(*arguments, **keywords)
    return function(*_as_arrays(arguments), **_as_arrays(keywords))


def call_ufunc(ufunc: Any, method: str, operands: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The result of the elementwise function of the same name here; numpy itself writes into its arrays, as for `out=`.

    Raises:
        ArgumentError: if a method of the function is called, such as `reduce`, or with another keyword.
        ImmutableError: if `out` is a tensor.

    >>> import numpy as np
    >>> import tensorken as tk
    >>> np.add(np.arange(2.0), tk.ones(2))
    tensor([1., 2.], dtype=float64)
    """
    if any([_is_foreign(x) for x in operands]):
        return NotImplemented  # as numpy asks of the operands of every library
    name = ufunc.__name__
    if any([isinstance(x, Tensor) for x in keywords.get("out", ())]):
        raise ImmutableError(f"numpy.{name}: out is a tensor, and tensors are immutable; use the result")
    equivalent = _equivalent(ufunc)
    into_array = method == "at" and not isinstance(operands[0], Tensor)
    if equivalent is None or into_array or (method == "__call__" and "out" in keywords):
        return getattr(ufunc, method)(*_as_arrays(operands), **_as_arrays(keywords))
    if method != "__call__":
        outer = f"tk.{name}(a[:, None], b)" if method == "outer" else "numpy.asarray(x)"
        instead = METHODS.get((name, method), outer)
        raise ArgumentError(f"numpy.{name}.{method}: not defined for tensors; use {instead}")
    if keywords:
        raise ArgumentError(
            f"numpy.{name}: unexpected argument {next(iter(keywords))}; use tk.{name}, and tk.where or astype"
        )
    return equivalent(*operands)


def _equivalent(ufunc: Any) -> Any:
    """The function here that equals a ufunc; None if there is none."""
    name = ufunc.__name__
    for theirs, ours in UFUNC_NAMESPACES.items():
        if getattr(sys.modules.get(theirs), name, None) is ufunc:
            return getattr(import_module(ours), name, None)
    return None


def _is_foreign(x: Any) -> bool:
    """Whether x is of another library that has ufuncs of its own; numpy's arrays and numbers have numpy's."""
    kind = type(x)
    ufuncs = getattr(kind, "__array_ufunc__", None)
    return ufuncs is not None and not issubclass(kind, Tensor) and ufuncs is not _numpys(kind)


def _numpys(kind: type) -> Any:
    """The `__array_ufunc__` of numpy's arrays, if the class derives from them."""
    base = next((k for k in kind.__mro__ if k.__module__ == "numpy" and k.__name__ == "ndarray"), None)
    return None if base is None else vars(base)["__array_ufunc__"]


def _as_arrays(value: Any) -> Any:
    """The value with numpy arrays in place of the tensors in tuples, lists and dicts."""
    if isinstance(value, Tensor):
        return value.__array__()
    if type(value) in (tuple, list):
        return type(value)(map(_as_arrays, value))
    if type(value) is dict:
        return {name: _as_arrays(part) for name, part in value.items()}
    return value
