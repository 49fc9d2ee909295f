"""Operators with operands of other libraries: if an operand is not data, its reflected operator is tried first."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from tensorken_core.tensor.value import Value

F = TypeVar("F", bound=Callable[[Any, Any], Any])

OWN = frozenset({bool, int, float, complex, str, bytes, list, tuple, dict, set, type(None)})
"""Common types of operands without a reflected operator for tensors."""


def or_reflected(name: str) -> Callable[[F], F]:
    """A decorator for operators: if the other operand is not data, its reflected operator is tried first.

    As in numpy, an operand whose class has `__array_ufunc__ = None` is not data.  If the reflected operator returns
    NotImplemented, the operator itself raises the error about the operands.
    """

    def decorated(method: F) -> F:
        @functools.wraps(method)
        def operator(self: Any, other: Any) -> Any:
            if type(other) not in OWN and not isinstance(other, Value) and not _is_data(other):
                reflected = _own_method(type(other), name)
                result = NotImplemented if reflected is None else reflected(other, self)
                if result is not NotImplemented:
                    return result
            return method(self, other)

        return operator  # type: ignore[return-value]

    return decorated


def _own_method(kind: type, name: str) -> Any:
    """A method of a class, not of its metaclass, as `type` has `__ror__` for unions of types; None if it has none."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _is_data(x: Any) -> bool:
    """Whether x converts to a tensor: a number, a sequence, a buffer or an array of another library."""
    kind = type(x)
    if getattr(kind, "__array_ufunc__", x) is None:
        return False
    if isinstance(x, str | bytes | list | tuple | int | float):
        return True
    if any([hasattr(kind, name) for name in ("__array__", "__array_interface__", "__dlpack__")]):
        return True
    try:
        memoryview(x)
    except (TypeError, ValueError, BufferError):
        return False
    return True
