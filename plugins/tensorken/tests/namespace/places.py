"""Indices, bins, orders, sets, polynomials, blocks, parts of numbers, windows."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorken as tk
from plugins.tensorken.tests.namespace.laws import bools, call, floats, gappy, ints, law, with_nan

SQUARE = floats(3, 3)


def of_kinds(f: Any) -> Any:
    """mask_indices with triu of the same library."""
    return lambda n, k: f(n, tk.triu if f is tk.mask_indices else np.triu, k)


def of_pair(f: Any) -> Any:
    """A function whose first argument is a sequence of two operands."""
    return lambda a, b, *rest, **named: f([a, b], *rest, **named)


INDICES = {
    **{
        name: law(call(3), call(3, 1), call(3, -2, 4), call(0), call(2, 9, 5))
        for name in ("tril_indices", "triu_indices")
    },
    **{
        name: law(call(SQUARE), call(floats(2, 4), -1), call(floats(0, 2)))
        for name in ("tril_indices_from", "triu_indices_from")
    },
    "diag_indices": law(call(3), call(2, 3), call(0)),
    "diag_indices_from": law(call(SQUARE), call(floats(2, 2, 2))),
    "mask_indices": law(call(3, 0), call(3, 1), wrap=of_kinds),
    "ix_": law(call(ints(3), ints(2)), call(ints(2), ints(0), ints(1)), batched=False),
    "unravel_index": law(
        call(ints(2, 3, high=24), (2, 3, 4)), call(ints(4, high=6), (3, 2), order="F"), call(ints(0), 5)
    ),
    "ravel_multi_index": law(
        call(ints(2, 3, high=2), ints(3, high=4), (2, 4)),
        call(ints(4, high=2), ints(4, high=4), (2, 4), order="F"),
        call(ints(4, low=-3, high=9), ints(4, high=9), (2, 4), mode=("wrap", "clip")),
        wrap=of_pair,
    ),
}

EDGES = np.array([-2.0, -0.5, 1.0, 2.5])
BINS = {
    "digitize": law(
        call(floats(2, 4), EDGES),
        call(floats(5), EDGES[::-1].copy(), right=True),
        call(
            np.concatenate([EDGES, [np.nan, np.inf]]).astype("float32"), EDGES.astype("float32"), right=True
        ),
        call(np.array([-2.0, 1.0, 2.5]), EDGES[::-1].copy()),
        call(ints(0), ints(1)),
        batched=False,
    ),
    "histogram_bin_edges": law(
        call(floats(7), 4),
        call(floats(5), 3, (-1.0, 2.0)),
        call(ints(5), 2),
        call(floats(4), [0.0, 1.0, 5.0]),
    ),
    "histogram2d": law(
        call(floats(20), floats(20, seed=1), bins=3),
        call(
            floats(20),
            floats(20, seed=1),
            bins=[3, [-1.0, 0.5, 2.0]],
            range=[(-2.0, 2.0), None],
            density=True,
        ),
        call(floats(5), floats(5, seed=1), bins=2, weights=np.arange(5.0)),
        batched=False,
        counts=True,
    ),
    "histogramdd": law(
        call(floats(20, 3), bins=2),
        call(floats(20, 2), bins=[3, [-1.0, 0.5, 2.0]], range=[(-2.0, 2.0), None], density=True),
        batched=False,
        counts=True,
    ),
}

FAR = 2**31 - 1
INTEGERS = {
    name: law(
        call(ints(3, 4, low=-50, high=50), ints(4, low=-50, high=50, seed=1)),
        call(np.array([FAR, 1836311903, 0, 7]), np.array([1, 1134903170, 0, 0])),
        call(ints(5, high=10**9, dtype="int64"), ints(5, high=10**9, dtype="int64", seed=1)),
        call(ints(0), ints(0)),
    )
    for name in ("gcd", "lcm")
} | {
    "bitwise_count": law(
        call(np.array([0, 1, -1, 255, FAR, -FAR - 1], "int32")),
        call(np.array([2**63 - 1, -(2**62), 5])),
        call(ints(0)),
    ),
    "packbits": law(
        call(bools(3, 11), axis=1),
        call(bools(11)),
        call(bools(2, 3)),
        call(ints(17, 2, low=-1, high=2), axis=0, bitorder="little"),
        call(ints(9, high=2, dtype="uint8"), axis=-1),
        call(bools(0)),
        call(bools(2, 0), axis=1),
    ),
    "unpackbits": law(
        call(ints(3, 2, high=256, dtype="uint8"), axis=1),
        call(ints(2, 2, high=256, dtype="uint8")),
        call(ints(3, 2, high=256, dtype="uint8"), axis=0, bitorder="little"),
        *(call(ints(2, 2, high=256, dtype="uint8"), axis=1, count=n) for n in (0, 3, 16, 20, -1, -16)),
        call(ints(0, dtype="uint8")),
    ),
}

PAIRS = (
    call(ints(9), ints(5, seed=1)),
    call(np.array([1.5, 0.5, 2.5, 0.5]), np.array([2.5, 3.5], "float64")),
    call(ints(2, 3), ints(0)),
    call(ints(0), ints(0)),
)
UNIQUE = call(np.array([4, 1, 3]), np.array([3, 9, 4, 0]), assume_unique=True)
SETS = {
    "union1d": law(*PAIRS, known=True),
    "intersect1d": law(*PAIRS, UNIQUE, call(ints(9), ints(5, seed=1), return_indices=True), known=True),
    "setdiff1d": law(*PAIRS, UNIQUE, known=True),
    "setxor1d": law(*PAIRS, UNIQUE, known=True),
}


def completely(order: Any) -> Any:
    """A sort for a partition, whose order numpy leaves open."""
    return lambda x, kth, axis=-1: order(x, axis=axis)


def placed(x: Any, indices: Any, values: Any, axis: Any) -> Any:
    y = np.array(x)
    np.put_along_axis(y, indices, values, axis)
    return y


def scattered(x: Any, indices: Any, values: Any, axis: Any, reduction: str = "set") -> Any:
    if reduction == "set":
        return placed(x, indices, values, axis)
    y, along = (np.array(x).ravel(), 0) if axis is None else (np.array(x), axis)
    shape = [m if i == along else n for i, (n, m) in enumerate(zip(y.shape, indices.shape, strict=True))]
    key = [*np.indices(shape)]
    key[along] = np.broadcast_to(indices, shape)
    name = {"min": "minimum", "max": "maximum"}.get(reduction, reduction)
    getattr(np, name).at(y, tuple(key), values)
    return y.reshape(x.shape)


def put(x: Any, *arguments: Any, **named: Any) -> Any:
    y = np.array(x)
    np.put(y, *arguments, **named)
    return y


def put_where(x: Any, *arguments: Any) -> Any:
    y = np.array(x)
    np.place(y, *arguments)
    return y


def accumulated(f: Any) -> Any:
    return lambda x, axis=0: f.accumulate(x, axis)


def filled(x: Any, *arguments: Any, **named: Any) -> Any:
    y = np.array(x)
    np.fill_diagonal(y, *arguments, **named)
    return y


ORDERS = {
    "put": law(
        call(floats(3, 4), np.array([1, -1, 5]), floats(2)),
        call(floats(5), [0, 9, -7], 1.0, mode="wrap"),
        call(floats(5), [0, 9, -7], [1.0, 2.0, 3.0], mode="clip"),
        call(ints(4), [], 1),
        numpy=put,
        smooth=True,
    ),
    "place": law(
        call(floats(3, 4), bools(3, 4), floats(2)),
        call(ints(5), bools(5), [7, 8, 9]),
        call(floats(0, dtype="float32"), bools(0), [1.0]),
        numpy=put_where,
        smooth=True,
    ),
    **{
        name: law(
            call(floats(7)),
            call(floats(3, 5), axis=-1),
            call(with_nan(floats(3, 4, dtype="float32")), axis=1),
            call(ints(9)),
            call(bools(4)),
            call(floats(0, 3)),
            numpy=accumulated(f),
            smooth=True,
        )
        for name, f in (("cummax", np.maximum), ("cummin", np.minimum))
    },
    "partition": law(
        call(floats(3, 4), 1),
        call(floats(3, 4), (0, -1), axis=0),
        call(ints(2, 3), 2, axis=None),
        numpy=completely(np.sort),
        smooth=True,
    ),
    "argpartition": law(call(floats(3, 4), 1), call(floats(3, 4), 2, axis=0), numpy=completely(np.argsort)),
    "lexsort": law(
        call(ints(9, high=3), ints(9, high=3, seed=1)),
        call(ints(3, 4, high=2), floats(3, 4), axis=0),
        call(ints(0), ints(0)),
        wrap=of_pair,
    ),
    "put_along_axis": law(
        call(floats(3, 4), np.array([[1], [3], [0]]), 9.0, 1),
        call(floats(3, 4), np.array([[1, 0, 2, 2]]), floats(1, 4), 0),
        call(floats(5), np.array([1, -1]), floats(2), None),
        numpy=placed,
        smooth=True,
    ),
    "scatter": law(
        call(floats(3, 4), np.array([[1], [3], [0]]), 9.0, 1),
        call(floats(5), np.array([1, -1]), floats(2), None, "add"),
        *[
            call(floats(3, 4), np.array([[1, 0, 1], [3, 3, 3], [0, 2, 0]]), floats(3, 3, seed=1), 1, name)
            for name in ("add", "multiply", "min", "max")
        ],
        call(ints(3, 4), np.array([[0, 2, 2, 0], [0, 1, 2, 0]]), ints(2, 4, seed=1), 0, "max"),
        numpy=scattered,
        smooth=True,
    ),
}

PAIR = call(floats(3), floats(2, seed=1))
POLYNOMIALS = {
    **{
        name: law(PAIR, call(floats(2), floats(4)), call(ints(2, low=1), ints(3, low=1)), smooth=True)
        for name in ("polyadd", "polysub", "polymul")
    },
    "polydiv": law(
        call(floats(5), np.array([2.0, -1.0])),
        call(floats(4), np.array([2.0, -1.0, 0.5])),
        call(floats(3), np.array([2.0])),
        call(floats(2, dtype="float32"), floats(3, dtype="float32")),
    ),
    "polyval": law(
        call(floats(4), floats(2, 3)),
        call(np.array([2.0, np.nan]), np.array([1.0])),
        call(floats(0), floats(2)),
        call(ints(3), ints(2)),
    ),
    "polyder": law(
        call(floats(4)), call(floats(4), 2), call(floats(2, dtype="float32"), 4), call(ints(3)), smooth=True
    ),
    "polyint": law(
        call(floats(3)), call(floats(3), 2, [1.0, 2.0]), call(floats(3), 2, 5.0), call(ints(3)), smooth=True
    ),
    "poly": law(call(floats(4)), call(ints(3, low=1)), smooth=True),
    "polyfit": law(
        call(floats(8), floats(8, seed=1), 2),
        call(floats(8), floats(8, 2, seed=1), 3, w=np.linspace(1, 2, 8), cov=True),
        call(floats(4), floats(4, seed=1), 1, cov="unscaled"),
        call(floats(8, dtype="float32"), floats(8, dtype="float32", seed=1), 1),
        smooth=True,
        tolerance=50.0,
    ),
}


def nested(f: Any) -> Any:
    """block of nested lists, of one list, and of no list."""
    return lambda a, b, c: (f([[a, b], [c]]), f([a, b, 5.0 * b]), f(c))


BLOCKS = {
    "block": law(
        call(floats(2, 2), floats(2, 1), floats(3)),
        call(floats(3, 2, 2), floats(3, 2, 1), floats(3, 1, 3)),
        call(floats(2, 0, dtype="float32"), ints(2, 3), ints(3)),
        smooth=True,
        wrap=nested,
    ),
    "resize": law(
        call(floats(2, 3), (4, 2)), call(floats(3), 2), call(floats(0), (2, 2)), call(ints(3), 0), smooth=True
    ),
    "ediff1d": law(
        call(floats(2, 3)), call(floats(3), to_begin=[1.0, 2.0], to_end=5.0), call(ints(0)), smooth=True
    ),
    "trim_zeros": law(
        call(np.array([0.0, 1.0, 0.0, 2.0, 0.0])),
        call(np.array([0, 1, 0]), "f"),
        call(np.array([0, 1, 0]), "b"),
        call(np.array([0.0, 0.0])),
        call(ints(0)),
        known=True,
    ),
    "fill_diagonal": law(
        call(floats(3, 4), 9.0),
        call(floats(7, 3), 9.0, wrap=True),
        call(floats(2, 2, 2), 5.0),
        call(floats(5, 2), 1.0),
        call(floats(3, 3), floats(2)),
        numpy=filled,
        smooth=True,
    ),
}

HARD = np.array([0.0, -0.0, 5e-324, -3e-310, 1.0, -0.75, 8.0, 1.7e308, np.inf, -np.inf, np.nan])
HARD_SINGLE = np.array([0.0, 1e-45, -1e-40, 1.0, 3e38, -np.inf, np.nan], "float32")
PARTS = {
    **{
        name: law(
            call(HARD),
            call(HARD_SINGLE),
            call(floats(2, 3)),
            call(floats(4, dtype="float16")),
            call(floats(0)),
        )
        for name in ("frexp", "modf", "spacing", "fabs")
    },
    "ldexp": law(
        call(
            np.array([1.0, -1.5, 5e-324, 1.7e308, 1.1, np.inf, np.nan, 0.0]),
            np.array([3, -1074, 2000, -2090, -1030, -9, 1, 9]),
        ),
        call(floats(3, 1), ints(4, low=-4, high=5)),
        call(HARD_SINGLE, ints(7, low=-160, high=160)),
        call(ints(3), ints(3)),
    ),
    "float_power": law(call(np.abs(floats(3, 4)), floats(4)), call(ints(3, low=1), ints(3)), smooth=True),
    "logaddexp2": law(
        call(floats(3, 4), floats(4)),
        call(np.array([np.inf, -np.inf, 1e4, np.nan]), np.array([np.inf, -np.inf, -1e4, 1])),
        call(ints(3), ints(3)),
        call(floats(3, dtype="float32"), floats(3, dtype="float32")),
    ),
}

WINDOWS = {
    "i0": law(call(floats(3, 4) * 3), call(ints(3)), call(floats(0)), smooth=True),
    **{
        name: law(call(0), call(1), call(2), call(7), call(8), tolerance=1e-1)
        for name in ("bartlett", "blackman", "hamming", "hanning")
    },
    "kaiser": law(call(1, 5.0), call(7, 14.0), call(8, 0.0)),
}


def truth(f: Any) -> Any:
    """A function whose result is a bool of Python in numpy."""
    return lambda *arguments: np.asarray(f(*arguments)) if f is np.array_equiv else f(*arguments)


SHAPES = {
    "array_equiv": law(
        call(ints(2), ints(3, 2)),
        call(np.array([1, 2]), np.array([[1, 2], [1, 2]])),
        call(ints(2), ints(3)),
        wrap=truth,
    ),
    "copy": law(call(floats(2, 3)), call(bools(0)), call(gappy(floats(2, 2)))),
}
QUERIES = {
    "shape": [([[1, 2, 3]],), (2.0,)],
    "ndim": [([[1, 2, 3]],), (2.0,)],
    "size": [([[1, 2, 3]],), ([[1, 2, 3]], 0), ([[1, 2, 3]], -1)],
    "isscalar": [(1,), (2.5,), ("a",), ([1],), (None,)],
    "iterable": [([1],), (1,), ("a",)],
}
"""Functions of Python values, and arguments for each."""
