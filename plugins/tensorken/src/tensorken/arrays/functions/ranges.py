"""Ranges of numbers with equal steps or equal ratios.

Ranges between Python numbers are computed on the host in double precision and rounded once; ranges between tensors are
differentiable with respect to them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, TypeGuard

from tensorken.array_like import ArrayLike
from tensorken.arrays.creation import tensor
from tensorken.arrays.functions.operands import first_tensor, floating_of
from tensorken.arrays.functions.shaping import moveaxis
from tensorken_core.errors import ArgumentError, ConcretizationError, ScalarRangeError, ShapeError
from tensorken_core.language.dtypes import as_dtype, check_scalar, float32, of_scalar, real_dtype
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.coercion import pair_of_operands
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Scalar, Tensor

__all__ = [
    "arange",
    "geomspace",
    "linspace",
    "logspace",
]


def arange(
    start: Scalar,
    stop: Scalar | None = None,
    step: Scalar = 1,
    dtype: Any = None,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """The numbers start, start + step, ... before stop; with one argument, 0, 1, ... before that number.

    Args:
        start, stop, step: numbers; the values of tensors are read, as the shape of the result depends on them.
        dtype: the dtype of the result; by default int32 if all numbers are ints, else float32.
        backend, device: as in `tk.tensor`.

    Returns:
        A vector of max(ceil((stop - start) / step), 0) numbers.  With floats, rounding may add or remove one number;
        `tk.linspace` takes the number of elements instead.

    Raises:
        ArgumentError: if a number is not finite, or the step is 0.
        ScalarRangeError: if a number does not fit the dtype.

    >>> import tensorken as tk
    >>> tk.arange(3).tolist(), tk.arange(1.0, 2.0, 0.25).tolist()
    ([0, 1, 2], [1.0, 1.25, 1.5, 1.75])
    """
    if stop is None:
        start, stop = 0, start
    start, stop, step = (_number("arange", "start, stop and step", n) for n in (start, stop, step))
    if step == 0:
        raise ArgumentError(f"arange: the step from {start} to {stop} must not be 0; use 1 or -1")
    result_dtype = of_scalar(start + stop + step) if dtype is None else as_dtype(dtype)
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        values: Sequence[Any] = range(start, stop, step)
        try:
            for n in (values[0], values[-1]) if values else ():  # the ends first
                check_scalar(n, result_dtype)
        except ScalarRangeError as error:
            raise ScalarRangeError(f"arange: {error}") from None
    else:
        count = max(0, math.ceil((stop - start) / step))
        _check_room("arange", count)
        values = [start + i * step for i in range(count)]
    return tensor(values, result_dtype, backend=backend, device=device)


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Any:
    """`num` evenly spaced numbers from start to stop, without accumulated rounding errors.

    Args:
        start, stop: numbers; or tensors or arrays, which broadcast; the result is differentiable with respect to
            tensors.
        num: the number of elements.
        endpoint: whether stop is the last number; if not, it would be the number after the last.
        retstep: whether to return a pair, the numbers and the step.
        dtype: the dtype of the result; by default float32, or the dtype of the tensors.  For an integer dtype the
            numbers are rounded down.
        axis: the position of the new axis, if start or stop has axes.
        backend, device: as in `tk.tensor`.

    Raises:
        ShapeError: if num is negative.

    >>> import tensorken as tk
    >>> tk.linspace(0, 1, 5).tolist(), tk.linspace(0, 1, 4, endpoint=False).tolist()
    ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.25, 0.5, 0.75])
    """
    num = _count("linspace", num, endpoint)
    spans = num - 1 if endpoint else num
    if _is_number(start) and _is_number(stop):
        result_dtype = float32 if dtype is None else as_dtype(dtype)
        values = _evenly_spaced("linspace", float(start), float(stop), num, endpoint)
        if result_dtype.kind == "int":
            values = [math.floor(value) if math.isfinite(value) else value for value in values]
        result = tensor(values, result_dtype, backend=backend, device=device)
        return (result, (stop - start) / spans if spans > 0 else math.nan) if retstep else result
    a, b = pair_of_operands("linspace", start, stop, first_tensor(start, stop))
    a, b = floating_of(a), floating_of(b)
    steps = [i / spans if spans > 0 else 0.0 for i in range(num)]
    fractions = a.constant(steps, real_dtype(a.dtype), (num,))
    fractions = fractions.reshape((num, *[1] * max(a.ndim, b.ndim)))
    result = _cast(a * (1.0 - fractions) + b * fractions, dtype)
    result = moveaxis(result, 0, axis_of("linspace", result.shape, axis))
    return (result, (b - a) / spans if spans > 0 else (b - a) * math.nan) if retstep else result


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
    axis: int = 0,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """`num` numbers from base ** start to base ** stop, with evenly spaced exponents.

    Raises:
        ShapeError: if num is negative.

    >>> import tensorken as tk
    >>> tk.logspace(0, 3, 4).tolist()
    [1.0, 10.0, 100.0, 1000.0]
    """
    num = _count("logspace", num, endpoint)
    if _is_number(start) and _is_number(stop) and _is_number(base):
        powers = _evenly_spaced("logspace", float(start), float(stop), num, endpoint)
        values = [_power(float(base), y) for y in powers]
        return _rounded(values, dtype, backend, device)
    return _cast(base ** linspace(start, stop, num, endpoint, axis=axis), dtype)


def geomspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """`num` numbers from start to stop in geometric progression.

    Raises:
        ArgumentError: if start or stop is 0, or they differ in sign.
        ShapeError: if num is negative.

    >>> import tensorken as tk
    >>> tk.geomspace(1, 1000, 4).tolist()
    [1.0, 10.0, 100.0, 1000.0]
    """
    num = _count("geomspace", num, endpoint)
    first, last = (float(_number("geomspace", "start and stop", n)) for n in (start, stop))
    if first * last <= 0 and not (first and last and (first > 0) == (last > 0)):
        raise ArgumentError(
            f"geomspace: start and stop must both be positive or both negative, got {start} and {stop}; use tk.linspace"
        )
    powers = _evenly_spaced("geomspace", math.log10(abs(first)), math.log10(abs(last)), num, endpoint)
    values = [math.copysign(_power(10.0, y), first) for y in powers]
    if values:
        values[0] = first
    if endpoint and num > 1:
        values[-1] = last
    return _rounded(values, dtype, backend, device)


# ---- shared code -------------------------------------------------------------------------------------------


def _is_number(value: Any) -> TypeGuard[float]:
    """Whether an object is a number of Python or another library; not a tensor, as tensors may be differentiated."""
    return isinstance(value, int | float) or (
        not isinstance(value, Tensor | Sequence)
        and getattr(value, "shape", ()) == ()
        and hasattr(value, "__float__")
    )


def _number(name: str, what: str, value: Any) -> Any:
    """Convert an argument to a finite int or float, or raise."""
    if getattr(value, "shape", ()) != ():
        raise ArgumentError(
            f"{name}: {what} must be single numbers, got shape {tuple(value.shape)}; take x[0]"
        )
    try:
        number = value if isinstance(value, float) else operator.index(value)
    except ConcretizationError as error:
        raise error.at(name) from None
    except TypeError:
        number = float(value) if hasattr(value, "__float__") else math.nan
    if not math.isfinite(number):
        raise ArgumentError(f"{name}: {what} must be finite numbers, got {short_repr(value)}")
    return number


def _count(name: str, num: Any, endpoint: Any) -> int:
    if not isinstance(endpoint, bool):
        raise ArgumentError(
            f"{name}: endpoint must be True or False, got {short_repr(endpoint)}; write dtype=..."
        )
    try:
        count = operator.index(num)
    except ConcretizationError as error:
        raise error.at(name) from None
    except TypeError:
        raise ArgumentError(f"{name}: num must be an int, got {short_repr(num)}") from None
    if count < 0:
        raise ShapeError(f"{name}: num must not be negative, got {count}; give the number of values")
    return count


def _check_room(name: str, count: int) -> None:
    """Raise ArgumentError if there is no memory for so many doubles."""
    try:
        bytes(8 * count)
    except (MemoryError, OverflowError):
        raise ArgumentError(f"{name}: there is no memory for {count:,} numbers; ask for fewer") from None


def _evenly_spaced(name: str, start: float, stop: float, num: int, endpoint: bool) -> list[float]:
    """Evenly spaced numbers; i * (stop - start) / spans is exact for integer results and for decimal fractions of 1."""
    _check_room(name, num)
    spans = num - 1 if endpoint else num
    if num < 2:
        return [start] * num
    width = stop - start
    if math.isfinite(width * spans):
        values = [start + i * width / spans for i in range(num)]
    else:
        values = [start * (1.0 - i / spans) + stop * (i / spans) for i in range(num)]
    if endpoint:
        values[-1] = stop
    return values


def _power(base: float, exponent: float) -> float:
    """base ** exponent; inf on overflow, NaN where the power is not real."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def _rounded(values: list[float], dtype: Any, backend: Any, device: str | None) -> Tensor:
    return tensor(values, float32 if dtype is None else dtype, backend=backend, device=device)


def _cast(x: Any, dtype: Any) -> Tensor:
    """Cast x to the dtype, if not None; round down for an integer dtype."""
    result: Tensor = x if dtype is None else (x.floor() if as_dtype(dtype).kind == "int" else x).astype(dtype)
    return result
