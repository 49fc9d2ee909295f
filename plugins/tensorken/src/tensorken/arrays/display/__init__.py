"""Tensors as text: `str`, `format` and `repr`.

Tensors are printed by numpy's rules (`brackets.py`, `numbers.py`), or with the matrices of a tensor of three or more
axes in boxes (`boxes.py`). The options are those of `set_printoptions`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from tensorken.arrays.display.boxes import boxed
from tensorken.arrays.display.brackets import PYTHON_TYPES, Elements, bracketed
from tensorken.arrays.display.numbers import scalar_text
from tensorken.arrays.display.options import PrintOptions, current_options
from tensorken_core.errors import ConcretizationError, EscapedTensorError
from tensorken_core.language.dtypes import DType
from tensorken_core.tensor.level import lower

_DEFAULT_DTYPES = ("float32", "int32", "bool")
"""The dtypes that Python numbers have by default: repr does not name them."""


def text(x: Any, spec: str = "") -> str:
    """`str(x)` and `format(x, spec)` of a Tensor; the formula if the backend has no values."""
    try:
        elements = x.flat()
    except (ConcretizationError, EscapedTensorError):
        return _formula(x) or representation(x)
    return display_text(x.shape, elements, x.dtype, spec)


def representation(x: Any) -> str:
    """`repr(x)` of a Tensor; `<... inside grad>` if a transform is tracing it, so that it is not a constant."""
    level = x.interpreter
    try:
        shown = repr_text(x.shape, x.flat(), x.dtype)
    except (ConcretizationError, EscapedTensorError):
        shown = f"<tensor {_formula(x) or _unknown(level)}, shape={x.shape}, dtype={x.dtype}>"
    return f"<{shown} inside {level.transform}>" if level.below is not None and level.transform else shown


def display_text(
    shape: tuple[int, ...],
    elements: Elements,
    dtype: DType,
    spec: str = "",
    options: PrintOptions | None = None,
) -> str:
    """The text that `str` and `format` return.

    Raises:
        ValueError: if the format spec is not valid for such numbers.

    >>> from tensorken_core.language.dtypes import float32
    >>> print(display_text((2, 2), [1.0, 2.5, 10.0, math.inf], float32, ".2f"))
    [[ 1.00  2.50]
     [10.00   inf]]
    """
    options = options or current_options()
    if options.style == "boxes":
        return boxed(shape, elements, dtype, options, spec)
    if shape:
        return bracketed(shape, elements, dtype, options, spec=spec)
    value = PYTHON_TYPES.get(dtype.kind, int)((elements if callable(elements) else elements.__getitem__)(0))
    return format(value, spec) if spec else scalar_text(value, dtype)


def repr_text(
    shape: tuple[int, ...], elements: Elements, dtype: DType, options: PrintOptions | None = None
) -> str:
    """The text that `repr` returns: the elements, and the dtype unless it is the default of its kind.

    >>> from tensorken_core.language.dtypes import float64, int32
    >>> print(repr_text((2, 2), [1.0, 2.5, math.nan, -math.inf], float64))
    tensor([[ 1. ,  2.5],
            [ nan, -inf]], dtype=float64)
    >>> repr_text((2000,), range(2000), int32)
    'tensor([   0,    1,    2, ..., 1997, 1998, 1999], shape=(2000,))'
    """
    options = options or current_options()
    call, size, width = "tensor(", math.prod(shape), options.linewidth
    limited = replace(options, linewidth=max(width - 1, 0))  # the closing parenthesis takes a character
    shown = bracketed(shape, elements, dtype, limited, separator=", ", indent=len(call))
    keywords = []
    if (size == 0 and shape != (0,)) or size > options.threshold:
        keywords.append(f"shape={shape}")
    if size == 0 or dtype.name not in _DEFAULT_DTYPES:
        keywords.append(f"dtype={dtype}")
    if not keywords:
        return f"{call}{shown})"
    shown, end = f"{call}{shown},", f"{', '.join(keywords)})"
    last_line = len(shown) - (shown.rfind("\n") + 1)
    return f"{shown}{' ' if last_line + len(end) + 1 <= width else chr(10) + ' ' * len(call)}{end}"


def _formula(x: Any) -> str | None:
    """The formula of a tensor without values, as printed by the backend under all wrappers.

    None if there is no formula, or if it differs between the examples of a batch.
    """
    try:
        base, value = lower(x.representation, x.interpreter)
    except (ConcretizationError, EscapedTensorError):
        return None
    while hasattr(base, "raw"):  # Fuse, ShapeTracker
        base, value = base.raw, base.value(value)
    return str(value)


def _unknown(level: Any) -> str:
    """The text for a tensor without a formula: the placeholder of a level, or `of each example`."""
    levels = (level, *reversed(level.levels_below))
    return next((x.placeholder for x in levels if getattr(x, "placeholder", None)), "of each example")
