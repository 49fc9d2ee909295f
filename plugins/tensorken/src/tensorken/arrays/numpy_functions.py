"""Calls of numpy's functions with tensors, such as `np.concatenate([x, y])`: they run the functions of Tensorken."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tensorken_core.tensor.tensor import Tensor

NAMESPACES = {"numpy": "tensorken", "numpy.linalg": "tensorken.linalg"}
"""The modules with the equivalents of functions of numpy's modules."""


def call(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The result of the function of the same name here, a tensor on the backend of the arguments.

    A function without an equivalent gets numpy arrays of the values, and returns numpy arrays.

    >>> import numpy as np
    >>> import tensorken as tk
    >>> np.concatenate([tk.ones(2), tk.zeros(1)])
    tensor([1., 1., 0.])
    >>> np.array2string(tk.ones(2))
    '[1. 1.]'
    """
    module = NAMESPACES.get(function.__module__)
    equivalent = None if module is None else getattr(import_module(module), function.__name__, None)
    if callable(equivalent):
        return equivalent(*arguments, **keywords)
    return function(*_as_arrays(arguments), **_as_arrays(keywords))


def _as_arrays(value: Any) -> Any:
    """The value with numpy arrays in place of the tensors in tuples, lists and dicts."""
    if isinstance(value, Tensor):
        return value.__array__()
    if type(value) in (tuple, list):
        return type(value)(map(_as_arrays, value))
    if type(value) is dict:
        return {name: _as_arrays(part) for name, part in value.items()}
    return value
