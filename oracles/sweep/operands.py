"""Operands at the ends of each dtype: zeros, infinities, NaN, the largest, smallest and subnormal numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

Array = Any

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
DTYPES = ("bool", *INTEGERS, *FLOATS, *COMPLEX)

COMPUTED = {"float16": "float32", "bfloat16": "float32"}
"""The dtypes whose values are computed in another one, and rounded once."""

WIDE = {"complex64": "complex128", "complex128": "clongdouble", "float64": "longdouble"}
"""The dtype of an exact result, where it is not float64."""


def numpy_dtype(name: str) -> np.dtype[Any]:
    """numpy's dtype of a name; bfloat16 is that of ml_dtypes.

    >>> numpy_dtype("bfloat16").itemsize
    2
    """
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def kind(name: str) -> str:
    """`bool`, `integer`, `float` or `complex`.

    >>> kind("uint8"), kind("bfloat16")
    ('integer', 'float')
    """
    groups = {"integer": INTEGERS, "float": FLOATS, "complex": COMPLEX}
    return next((group for group, names in groups.items() if name in names), "bool")


def part(name: str) -> str:
    """The dtype of the parts of a complex dtype; any other dtype itself.

    >>> part("complex64"), part("int8")
    ('float32', 'int8')
    """
    return {"complex64": "float32", "complex128": "float64"}.get(name, name)


def limits(name: str) -> Any:
    """The limits of a floating-point dtype."""
    return ml_dtypes.finfo(numpy_dtype(part(name)))


def ends(name: str, few: bool = False) -> Array:
    """The numbers of a dtype that functions get wrong most often, as a vector; `few` of them for tables of pairs.

    >>> ends("bool").tolist()
    [False, True]
    """
    dtype = numpy_dtype(name)
    if name == "bool":
        return np.array([False, True])
    if name in INTEGERS:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        numbers = [0, 1, 2, 3, 7, 100, high, high - 1, high // 2, high // 2 + 1]
        if low < 0:
            numbers += [-1, -2, -3, -7, -100, low, low + 1, low // 2]
        return np.array(numbers[:7] + [n for n in numbers[7:] if n < 0] if few else numbers, dtype)
    if name in FLOATS:
        limit = limits(name)
        smallest, tiny, largest = (
            float(n) for n in (limit.smallest_subnormal, limit.smallest_normal, limit.max)
        )
        numbers = [0.0, 1.0, 2.0, 0.5, np.inf, np.nan, largest, tiny, smallest]
        if not few:
            numbers += [1.5, 3.0, 0.1, 7.25, 40.0, 300.0, largest / 4, tiny * 3, 0.75, 1.0 + float(limit.eps)]
            numbers += [1.0 - float(limit.eps) / 2, float(limit.eps), float(largest**0.5), float(tiny**0.5)]
        return np.array([s * n for n in numbers for s in (1.0, -1.0)], dtype)
    parts = [0.0, -0.0, 1.0, -0.5, np.inf, -np.inf, np.nan]
    if not few:
        parts += [3.0, -40.0, float(limits(name).max), float(limits(name).smallest_normal)]
    pairs = list(itertools.product(parts, parts))
    result = np.empty(len(pairs), dtype)
    result.real, result.imag = np.array(pairs).T
    return result


def pairs(name: str) -> tuple[Array, Array]:
    """Every pair of some ends of a dtype, as two vectors."""
    x = ends(name, few=True)
    if name in COMPLEX:
        x = x[::3]
    return np.repeat(x, len(x)), np.tile(x, len(x))


def regular(name: str, shape: Sequence[int], seed: int = 0) -> Array:
    """Irregular numbers of a dtype without ends, none of them equal, of moderate size and away from 0.

    >>> regular("int8", (3,)).tolist()
    [3, -1, 4]
    """
    count = int(np.prod(shape))
    dtype = numpy_dtype(name)
    steps = np.array([3, 1, 4, 15, 9, 2, 6, 5, 35, 8, 97, 93, 23, 84, 62, 64, 33, 83, 27, 50, 28, 88, 41, 71])
    values = np.resize(np.roll(steps, -seed), count).astype(float)
    if name == "bool":
        return (values % 2 == 1).reshape(shape)
    if name in INTEGERS:
        signs = np.where(np.arange(count) % 2, -1, 1) if name.startswith("int") else 1
        return (values * signs).astype(dtype).reshape(shape)
    signs = np.where(np.arange(count) % 3 == 1, -1, 1)
    x = signs * (values / 16 + 0.1)
    if name in COMPLEX:
        return (x + 1j * np.roll(x, 1) / 2).astype(dtype).reshape(shape)
    return x.astype(dtype).reshape(shape)
