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

OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "dim": ("axis", "axes"),
    "dims": ("axis", "axes"),
    "keepdim": ("keepdims",),
    "unbiased": ("correction",),
    "interpolation": ("method",),
    "ascending": ("descending",),
    "reverse": ("descending",),
    "largest": ("descending",),
    "out": (),
    "inplace": (),
}
"""A map from argument names of other libraries to the names used here; no name for an unsupported argument."""


def with_numpys_names(f: F, further: Callable[..., Any] | None = None) -> F:
    """Decorate a function so that an argument name of another library raises an error with the name used here.

    Args:
        f: the function.
        further: the function with more keywords, which is called if f does not have them.
    """

    @functools.wraps(further or f)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return f(*arguments, **keywords)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # f itself raised it
                raise
            parameters = inspect.signature(f).parameters
            if further is not None and not keywords.keys() <= parameters.keys():
                return further(*arguments, **keywords)
            for name in keywords:
                own = [other for other in OTHER_NAMES.get(name, ()) if other in parameters]
                if name in OTHER_NAMES and name not in parameters and (own or not OTHER_NAMES[name]):
                    hint = (
                        f"it is {own[0]} here"
                        if own
                        else f"tensors are immutable: use the result, and tk.{f.__name__} instead of numpy.{f.__name__}"
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
