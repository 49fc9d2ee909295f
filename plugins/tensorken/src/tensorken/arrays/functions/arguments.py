"""Argument handling: normalized axes, and errors for argument names of other libraries."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tensorken_core.errors import ArgumentError, AxisError
from tensorken_core.language.shapes import Axes, Shape
from tensorken_core.tensor.normalization import axis_of

F = TypeVar("F", bound=Callable[..., Any])

OTHER_NAMES = {"dim": "axis", "dims": "axis", "keepdim": "keepdims", "out": None}
"""A map from argument names of other libraries to the names used here; None for an unsupported argument."""


def with_numpys_names(f: F) -> F:
    """Decorate a function so that an argument name of another library raises an error with the name used here."""

    @functools.wraps(f)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return f(*arguments, **keywords)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # f itself raised it
                raise
            parameters = inspect.signature(f).parameters
            for name in keywords:
                own_name = OTHER_NAMES.get(name)
                if (
                    name in OTHER_NAMES
                    and name not in parameters
                    and (own_name is None or own_name in parameters)
                ):
                    hint = (
                        f"tensors are immutable: use the result, and tk.{f.__name__} instead of numpy.{f.__name__}"
                        if own_name is None
                        else f"it is {own_name} here"
                    )
                    raise ArgumentError(f"{f.__name__}: unexpected argument {name}; {hint}") from None
            raise

    return call  # type: ignore[return-value]


def ordered_axes_of(name: str, shape: Shape, axes: int | Sequence[int]) -> Axes:
    """Normalized axes in the given order; an error for duplicates."""
    several = axes if isinstance(axes, Sequence) else (axes,)
    normalized = tuple([axis_of(name, shape, axis) for axis in several])
    if len(set(normalized)) != len(normalized):
        raise AxisError(f"{name}: axes {tuple(several)} name an axis twice for shape {shape}; name each once")
    return normalized
