"""Pools: the value classes, and rows of operands of each class for an op.

A pool is the same for an op, a dtype, a class, a seed and a size, in every process. Its numbers are those at which an
op may fail: near poles, thresholds and ends of the domain, at the limits of the format, and with results that are ties.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.operands import points
from tensorken_core.language.dtypes import DType, integer_bounds, wrap_integer
from tensorken_core.language.op import Op

Array = np.ndarray[Any, Any]

FLOATS = ("small", "normals", "zeros", "infinities", "nans", "subnormals", "extremes", "ties", "mixed")
INTS = ("small", "zeros", "extremes", "powers", "mixed")
BOOLS = ("mixed",)

ORDINARY = ("small", "normals")
"""The classes of common numbers."""

EXHAUSTIVE = "exhaustive"
"""All numbers of a format with 16 bits."""

inf, nan = math.inf, math.nan


def classes(dtype: DType) -> tuple[str, ...]:
    """The value classes of a dtype.

    >>> from tensorken_core.language.dtypes import int32
    >>> classes(int32)
    ('small', 'zeros', 'extremes', 'powers', 'mixed')
    """
    return {"float": FLOATS, "int": INTS, "bool": BOOLS}[dtype.kind]


@cache
def rows(op: Op, dtype: DType, value_class: str, seed: int, count: int) -> tuple[Array, ...]:
    """Rows of operands for an op.

    Args:
        op: an elementwise op, or one of a single operand.
        dtype: the dtype of the data operands.
        value_class: one of `classes(dtype)`, or EXHAUSTIVE.
        seed: the seed of random numbers.
        count: the largest number of rows; classes of few numbers have fewer.

    Returns:
        One read-only array of one axis for each operand; row i is the i-th element of each.

    >>> from tensorken_core.language.dtypes import float32
    >>> from tensorken_core.language.op import OPS
    >>> sorted(rows(OPS["exp"], float32, "infinities", 0, 96)[0].tolist())
    [-inf, inf]
    """
    if value_class == EXHAUSTIVE:
        return (np.arange(2**16, dtype=np.uint16).view(dtype.name),)
    arity = op.arity or 1
    rng = random.Random(f"{seed} {op.name} {dtype.name} {value_class}")
    places = [i for i in range(arity) if not op.operand_kinds or op.operand_kinds[i] != "condition"]
    if value_class == "mixed" and dtype.kind != "bool":
        drawn = _mixed(op, dtype, seed, count, len(places), rng)
    else:
        drawn = _drawn(op, dtype, value_class, count, len(places), rng)
    rng.shuffle(drawn)
    columns = iter(np.array([row[i] for row in drawn], dtype.name) for i in range(len(places)))
    found = [
        next(columns) if i in places else np.array([rng.random() < 0.5 for _ in drawn], bool)
        for i in range(arity)
    ]
    for column in found:
        column.flags.writeable = False
    return tuple(found)


Row = tuple[Any, ...]


def _mixed(op: Op, dtype: DType, seed: int, count: int, arity: int, rng: random.Random) -> list[Row]:
    """Rows of all classes, the same number of each."""
    names = [name for name in classes(dtype) if name != "mixed"]
    share = -(-count // len(names))
    found: list[Row] = []
    for name in names:
        some = _drawn(op, dtype, name, max(16, 2 * share), arity, rng)
        found += rng.sample(some, min(share, len(some)))
    return found[:count]


def _drawn(op: Op, dtype: DType, value_class: str, count: int, arity: int, rng: random.Random) -> list[Row]:
    if dtype.kind == "bool":
        return [tuple([rng.random() < 0.5 for _ in range(arity)]) for _ in range(count)]
    if dtype.kind == "int":
        return _of_ints(op, dtype, value_class, count, arity, rng)
    return _of_floats(op, dtype, value_class, count, arity, rng)


def _crossed(
    musts: Sequence[Any], others: Sequence[Any], arity: int, count: int, rng: random.Random
) -> list[Row]:
    """Rows that pair each of `musts` with all of them and with some of the others, in both orders."""
    if arity == 1:
        return [(x,) for x in musts]
    pairs = [(a, b) for a in musts for b in musts]
    if len(pairs) > count // 2:
        pairs = rng.sample(pairs, count // 2)
    while others and len(pairs) < count:
        a, b = rng.choice(musts), rng.choice(others)
        pairs += [(a, b), (b, a)]
    return pairs[:count]


# ---- ints ----------------------------------------------------------------------------------------------------


def _of_ints(op: Op, dtype: DType, value_class: str, count: int, arity: int, rng: random.Random) -> list[Row]:
    bits = 8 * dtype.itemsize
    low, high = integer_bounds(dtype)
    if value_class == "small":
        return [tuple([rng.randint(max(-12, low), 12) for _ in range(arity)]) for _ in range(count)]
    if value_class == "zeros":
        others = _in_dtype([1, -1, 2, low, high, rng.randint(3, high)], dtype)
        return _crossed([0], others, arity, min(count, 24), rng)
    if value_class == "extremes":
        musts = _in_dtype([low, low + 1, -1, 0, 1, high - 1, high, low // 2, high // 2 + 1], dtype)
        return _crossed(musts, [rng.randint(low, high) for _ in range(12)], arity, count, rng)
    powers = [1 << rng.randrange(bits - 1) for _ in range(4)]
    musts = [p + d for p in (*powers, 1 << (bits - 2)) for d in (-1, 0, 1)]
    musts += [-p for p in powers] + [0, 1, 2, 7, 8, bits // 2, bits - 2, bits - 1, bits, bits + 1, -1, -bits]
    if op.name == "cast":  # ties and thresholds of rounding to the significands of floats
        for p in (8, 11, 24, 53):
            musts += [(1 << p) + 1, (1 << p) + 3, -(1 << p) - 1, (3 << p) + 2]
        musts += [65504, 65519, 65520, 2**31, -(2**31), 2**32 + 1, 2**40 + 3]
        for shift in range(bits - 1):
            half, single, double = [(2**p + 1) << shift for p in (11, 24, 53)]
            musts += [single, double, half, half + 1, single + 1]
        musts = [v for v in musts if low <= v <= high]
    return _crossed(_in_dtype(musts, dtype), [rng.randint(low, high) for _ in range(12)], arity, count, rng)


def _in_dtype(values: Sequence[int], dtype: DType) -> list[int]:
    """The integers, wrapped to a dtype, without repetitions."""
    return list(dict.fromkeys([wrap_integer(v, dtype) for v in values]))


# ---- floats --------------------------------------------------------------------------------------------------


def _of_floats(
    op: Op, dtype: DType, value_class: str, count: int, arity: int, rng: random.Random
) -> list[Row]:
    form = FORMATS[dtype.name]
    fit = _fitter(dtype)
    ordinary = [fit(points.ordinary(op, form, rng)) for _ in range(16)]
    tiny, least, top = form.tiny, form.smallest, form.max
    if value_class in ORDINARY:
        draw = points.small if value_class == "small" else points.ordinary
        found = [tuple([fit(draw(op, form, rng)) for _ in range(arity)]) for _ in range(count)]
        return _related(found, dtype, 2 if value_class == "small" else 3, rng) if arity > 1 else found
    if value_class == "zeros":
        return _crossed([0.0, -0.0], [1.0, -1.0, 0.5, -3.0, *ordinary[:6]], arity, min(count, 48), rng)
    if value_class == "infinities":
        others = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -0.5, top, -least, *ordinary]
        return _crossed([inf, -inf], others, arity, count, rng)
    if value_class == "nans":
        others = [0.0, -0.0, 1.0, -1.0, inf, -inf, top, least, *ordinary]
        return _crossed([nan, -nan], others, arity, count, rng)
    if value_class == "subnormals":
        musts = [least, -least, 2 * least, 3 * least, tiny - least, least - tiny, tiny / 2]
        some = count if arity == 1 else 12
        musts += [
            rng.choice((-1, 1)) * least * rng.randrange(1, 1 << rng.randrange(1, form.precision))
            for _ in range(some)
        ]
        others = [1.0, -1.0, 2.0, 0.5, -0.75, tiny, -tiny, top, 0.0, -0.0, 1.0 / tiny, *ordinary]
        return _crossed(musts[:count], others, arity, count, rng)
    if value_class == "ties":
        musts = [fit(v) for v in points.ties(op, form, rng)]
        pairs = points.tied_rows(op, form, rng, arity) if arity > 1 else []
        others = ordinary[:4]
    else:
        musts = [fit(v) for v in points.extremes(op, form, rng)]
        pairs = points.thresholds(op, form, rng) if arity == 2 else []
        others = ordinary[:6]
    crossed = _crossed(musts, others, arity, max(8, count - len(pairs) // 2), rng)
    return _cut([*[tuple([fit(v) for v in row]) for row in pairs], *crossed], count, rng)


def _cut(found: list[Row], count: int, rng: random.Random) -> list[Row]:
    return found if len(found) <= count else rng.sample(found, count)


def _fitter(dtype: DType) -> Callable[[float], float]:
    kind = np.dtype(dtype.name).type

    def fit(value: float) -> float:
        with np.errstate(over="ignore", under="ignore"):
            return float(kind(value))

    return fit


def _related(found: list[Row], dtype: DType, ways: int, rng: random.Random) -> list[Row]:
    """The rows, some of them with equal, opposite or neighbouring operands."""
    kind = np.dtype(dtype.name).type
    for i in range(0, len(found), 4):
        first, *rest = found[i]
        way = rng.randrange(ways)
        other = (first, -first, float(np.nextafter(kind(first), kind(rng.choice((-inf, inf))))))[way]
        found[i] = (first, other, *rest[1:]) if len(rest) == 1 else (first, *rest[:-1], other)
    return found
