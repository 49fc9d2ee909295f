"""Arguments as numpy's functions take them: axes in an order, and the names of arguments in other libraries."""

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
"""Names of arguments in other libraries, and their names here; None for an argument that does not exist here."""


def with_numpys_names(f: F) -> F:
    """A decorator: an argument named as in another library raises an error with its name here."""

    @functools.wraps(f)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return f(*arguments, **keywords)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # f itself raised it
                raise
            known = inspect.signature(f).parameters
            for name in keywords:
                here = OTHER_NAMES.get(name)
                if name in OTHER_NAMES and name not in known and (here is None or here in known):
                    way_out = (
                        f"tensors are immutable: use the result, and tk.{f.__name__} instead of numpy.{f.__name__}"
                        if here is None
                        else f"it is {here} here"
                    )
                    raise ArgumentError(f"{f.__name__}: there is no argument {name}; {way_out}") from None
            raise

    return call  # type: ignore[return-value]


def ordered_axes_of(name: str, shape: Shape, axes: int | Sequence[int]) -> Axes:
    """Axes in the order given, each once."""
    several = axes if isinstance(axes, Sequence) else (axes,)
    places = tuple([axis_of(name, shape, axis) for axis in several])
    if len(set(places)) != len(places):
        raise AxisError(f"{name}: axes {tuple(several)} name an axis twice for shape {shape}; name each once")
    return places
