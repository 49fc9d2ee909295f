"""Rows of a table of functions: how to draw operands, numpy's function, and the dtype of the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from core.tests.drawing import DTYPES, FLOATS, INTEGERS, Array, arrays, axes_of, values

Draw = Any
Call = tuple[tuple[Any, ...], dict[str, Any]]
KIND = st.sampled_from(DTYPES)
NUMBERS = (*INTEGERS, *FLOATS)
WHOLE = ("bool", *INTEGERS)


@dataclass(frozen=True)
class Fixed:
    """An operand that both libraries get unchanged: it is not cast, and the dtype of the result ignores it."""

    array: Array


def own(dtype: str) -> str:
    return dtype


def floating(dtype: str) -> str:
    """Of integers and bools, the default float."""
    return dtype if dtype in FLOATS else "float32"


def lasting(dtype: str) -> str:
    """Of bools, the default integer, in which they are counted."""
    return "int32" if dtype == "bool" else dtype


def no_bool(dtype: str) -> str:
    """Of bools, the default float; integers stay."""
    return "float32" if dtype == "bool" else dtype


def apart(dtype: str) -> str:
    """Each operand keeps its own."""
    raise AssertionError("operands that stand apart have no common dtype")


BOOL = ("bool",)
"""Of bools, `-` and functions that subtract are errors, as in numpy."""


def common(*kinds: str) -> str:
    """The promoted dtype of several operands, by JAX's rule."""
    found = (
        [kind for kind in kinds if kind in FLOATS] or [kind for kind in kinds if kind in INTEGERS] or ["bool"]
    )
    return max(found, key=DTYPES.index)


@dataclass(frozen=True)
class Row:
    """The operands of one function, and the numpy function that it is compared with."""

    operands: Callable[[Draw], Call]
    numpy: Callable[..., Any] | None = None
    """numpy's function, where its name is another."""
    cast: Callable[[str], str] = own
    """The dtype of the computation, from the promoted dtype of the operands."""
    result: str | tuple[str | None, ...] | None = None
    """The dtype of the result, or of each of several, where it is not numpy's on the cast operands."""
    signs: bool = True
    """Whether the signs of zeros are numpy's too."""
    near: bool = False
    """Whether rounding may differ; the expected result is then computed in float64."""
    tolerance: dict[str, float] = field(default_factory=dict)
    read: Callable[[Any], Any] | None = None
    """A function of the results to compare, if the results are not unique."""
    refused: tuple[str, ...] = ()
    """Dtypes that numpy takes and the language does not: docs/dtypes.md and docs/array-api.md say why."""


# ---- operands ----------------------------------------------------------------------------------------------


def one(**limits: Any) -> Callable[[Draw], Call]:
    return lambda draw: ((draw(arrays(**limits)),), {})


def several(count: int, finite: bool = False, dtypes: tuple[str, ...] = DTYPES) -> Callable[[Draw], Call]:
    """Operands of any dtypes whose shapes broadcast."""

    def operands(draw: Draw) -> Call:
        first = draw(arrays(dtypes=dtypes, finite=finite))
        found = [first]
        for _ in range(count - 1):
            sizes = [n if draw(st.booleans()) else 1 for n in first.shape]
            shape = tuple(sizes[draw(st.integers(0, len(sizes))) :])
            dtype = str(first.dtype) if draw(st.booleans()) else draw(st.sampled_from(dtypes))
            x = values(dtype, shape, draw(st.integers(0, 2**20)), finite)
            found.append(x[(..., *[slice(None, None, -1)] * x.ndim)] if draw(st.booleans()) else x)
        return tuple(found), {}

    return operands


def along(several_axes: bool = True, keepdims: bool = True, **limits: Any) -> Callable[[Draw], Call]:
    """An array, an axis or several, and perhaps keepdims."""

    def operands(draw: Draw) -> Call:
        x = draw(arrays(**limits))
        if several_axes:
            axis = draw(axes_of(x.ndim))
        else:
            axis = draw(st.none() | st.integers(-x.ndim, x.ndim - 1)) if x.ndim else None
        return (x,), {"axis": axis, **({"keepdims": draw(st.booleans())} if keepdims else {})}

    return operands


def one_axis(least_rank: int = 1, **limits: Any) -> Callable[[Draw], Call]:
    """An array and one of its axes."""

    def operands(draw: Draw) -> Call:
        x = draw(arrays(least_rank=least_rank, **limits))
        return (x,), {"axis": draw(st.integers(-x.ndim, x.ndim - 1))}

    return operands


def plus(operands: Callable[[Draw], Call], **strategies: Any) -> Callable[[Draw], Call]:
    """The operands, and further arguments by name."""

    def more(draw: Draw) -> Call:
        positional, keywords = operands(draw)
        return positional, keywords | {name: draw(strategy) for name, strategy in strategies.items()}

    return more


def drawn(*strategies: Any, **named: Any) -> Callable[[Draw], Call]:
    """Arguments without arrays."""
    return lambda draw: (
        tuple(draw(s) for s in strategies),
        {name: draw(s) for name, s in named.items()},
    )


def in_its_dtype(total: Callable[..., Any]) -> Callable[..., Any]:
    """numpy's sum or product, without its widening of small integers."""
    return lambda x, **named: total(x, dtype=x.dtype, **named)
