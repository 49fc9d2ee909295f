"""Rows for functions of shapes and dtypes, and for creation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from core.tests.drawing import DTYPES, FLOATS, INTEGERS, Array, arrays, values
from plugins.tensorken.tests.namespace.rows import (
    KIND,
    NUMBERS,
    Call,
    Draw,
    Fixed,
    Row,
    apart,
    common,
    drawn,
    lasting,
    one,
    one_axis,
    plus,
    several,
)
from plugins.tensorken.tests.test_shaping import DEPARTURES, ONE


def encoded(x: Array, num_classes: int) -> Array:
    return (x[..., None] == np.arange(num_classes)).astype("float32")


def strided(x: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """numpy counts in bytes, the library in elements of a contiguous tensor."""
    flat = np.ascontiguousarray(x)
    return np.lib.stride_tricks.as_strided(flat, shape, [flat.itemsize * s for s in strides]).copy()


# ---- shapes ------------------------------------------------------------------------------------------------


def shaped(name: str) -> Callable[[Draw], Call]:
    """The arguments of test_shaping, without its listed differences from numpy."""

    def operands(draw: Draw) -> Call:
        x = draw(arrays().filter(lambda x: not (name in DEPARTURES and DEPARTURES[name](x))))
        positional, keywords = ONE[name](draw, x)
        return (x, *positional), keywords

    return operands


def family(least_rank: int = 0, alike: bool = False) -> Callable[[Draw], Call]:
    """Up to three arrays, of any dtypes, of different sizes along the first axis."""

    def operands(draw: Draw) -> Call:
        first = draw(arrays(least_rank=least_rank))
        found = [first]
        for _ in range(draw(st.integers(0, 2))):
            size = first.shape if alike or not first.ndim else (draw(st.integers(0, 3)), *first.shape[1:])
            dtype = draw(st.sampled_from([str(first.dtype), *DTYPES]))
            found.append(values(dtype, size, draw(st.integers(0, 99))))
        return (found,), {}

    return operands


def between_axes(draw: Draw) -> Call:
    x = draw(arrays(least_rank=2))
    first, second = draw(st.permutations(range(x.ndim)))[:2]
    return (x,), {"offset": draw(st.integers(-3, 3)), "axis1": first, "axis2": second - x.ndim}


def edited(draw: Draw) -> Call:
    (x,), keywords = one_axis(least_size=1)(draw)
    size = x.shape[keywords["axis"]]
    return (x,), {"obj": draw(st.integers(-size, size - 1))} | keywords


def margins(draw: Draw) -> Call:
    x = draw(arrays(least_rank=1, least_size=1))
    mode = draw(st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]))
    return (x, draw(st.sampled_from([0, 2, (1, 0), [(3, 1)] * x.ndim]))), {"mode": mode}


def strided_places(draw: Draw) -> Call:
    x = draw(arrays(least_rank=1, least_size=1))
    n = x.size
    step = draw(st.integers(0, 2))
    rows = draw(st.integers(0, 3))
    width = draw(st.integers(0, max(0, n - step * max(rows - 1, 0))))
    return (x,), {"shape": (rows, width), "strides": (step, 1)}


def two_alike(draw: Draw) -> Call:
    x = draw(arrays(least_rank=1))
    dtype = draw(st.sampled_from(DTYPES))
    return (x, values(dtype, x.shape, draw(st.integers(0, 99)))), {"axis": draw(st.none() | st.just(0))}


SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)

SHAPING = {
    **{name: Row(shaped(name)) for name in ONE},
    "dsplit": Row(
        plus(one(least_rank=3), indices_or_sections=st.just(1) | st.lists(st.integers(-5, 5), max_size=3))
    ),
    "diagonal": Row(lambda draw: between_axes(draw)),
    "flatten": Row(shaped("ravel"), np.ravel),
    "broadcast_arrays": Row(several(3), lambda *xs: list(np.broadcast_arrays(*xs)), cast=apart),
    "broadcast_shapes": Row(lambda draw: (tuple(draw(st.lists(SHAPES, max_size=3))), {})),
    "concatenate": Row(plus(family(1), axis=st.sampled_from([0, None]))),
    "concat": Row(plus(family(1), axis=st.sampled_from([0, None]))),
    "stack": Row(plus(family(alike=True), axis=st.integers(-4, 3))),
    **{name: Row(family()) for name in ("hstack", "vstack", "dstack", "column_stack")},
    "append": Row(two_alike),
    "delete": Row(edited),
    "insert": Row(plus(edited, values=st.sampled_from([0, 1]))),
    "pad": Row(margins),
    "as_strided": Row(strided_places, strided),
}

# ---- creation ----------------------------------------------------------------------------------------------


def like(draw: Draw) -> Call:
    if draw(st.booleans()):
        return (draw(arrays()),), {}
    return (draw(arrays(finite=True)),), {"dtype": draw(KIND)}


def ranges(draw: Draw) -> Call:
    kind = draw(st.sampled_from(["int32", "int64", "float32", "float64"]))
    start, stop, step = (
        draw(st.integers(-9, 9)),
        draw(st.integers(-9, 9)),
        draw(st.sampled_from([-2, -1, 1, 3])),
    )
    return (start, stop, step), {"dtype": kind}


def spaced(low: int, high: int) -> Callable[[Draw], Call]:
    ends = st.sampled_from([low, 1, 2.5, high])
    return drawn(
        ends,
        ends,
        num=st.integers(0, 5),
        endpoint=st.booleans(),
        dtype=st.sampled_from(["float32", "float64"]),
    )


def vectors(draw: Draw) -> Call:
    found = draw(st.lists(arrays(least_rank=1, greatest_rank=1), max_size=3))
    return tuple(found), {
        "indexing": draw(st.sampled_from(["xy", "ij"])),
        "sparse": draw(st.booleans()),
    }


CREATION = {
    **{name: Row(drawn(SHAPES, KIND)) for name in ("zeros", "ones")},
    **{name: Row(like) for name in ("zeros_like", "ones_like")},
    "full": Row(drawn(SHAPES, st.sampled_from([0, 1, True]), KIND)),
    "full_like": Row(plus(one(), fill_value=st.sampled_from([0, 1, True]))),
    **{name: Row(like, lambda x, dtype=None: np.array(x, dtype)) for name in ("array", "asarray", "tensor")},
    "astype": Row(plus(one(finite=True), dtype=KIND), lambda x, dtype: x.astype(dtype)),
    "scalar": Row(drawn(st.sampled_from([0, 1, True]), KIND), np.array),
    "new": Row(
        drawn(st.sampled_from([(2, 3), (6,), (1, 6)]), st.just([0, 1, 2, 0, 1, 3]), KIND),
        lambda shape, data, dtype: np.array(data, dtype).reshape(shape),
    ),
    "from_dlpack": Row(lambda draw: ((Fixed(draw(arrays()).copy()),), {}), np.array),
    "arange": Row(ranges),
    "linspace": Row(spaced(-3, 7), near=True),
    "logspace": Row(spaced(-3, 3), near=True),
    "geomspace": Row(spaced(1, 1000), near=True),
    "eye": Row(drawn(st.integers(0, 3), st.none() | st.integers(0, 3), st.integers(-3, 3), KIND)),
    "identity": Row(drawn(st.integers(0, 3), KIND)),
    "tri": Row(drawn(st.integers(0, 3), st.none() | st.integers(0, 3), st.integers(-3, 3), KIND)),
    "vander": Row(
        lambda draw: (
            (draw(arrays(greatest_rank=1, least_rank=1, finite=True)), draw(st.none() | st.integers(0, 4))),
            {"increasing": draw(st.booleans())},
        ),
        lambda x, *given, **named: np.vander(x, *given, **named).astype(x.dtype),
        cast=lasting,
        near=True,
    ),
    "indices": Row(drawn(SHAPES, st.sampled_from(NUMBERS), st.booleans())),
    "fromfunction": Row(
        drawn(
            st.just(lambda i, j: i * 2 + j),
            st.tuples(st.integers(0, 3), st.integers(0, 3)),
            dtype=st.sampled_from(NUMBERS),
        )
    ),
    "meshgrid": Row(vectors, lambda *xs, **named: list(np.meshgrid(*xs, **named)), cast=apart),
    "one_hot": Row(
        plus(lambda draw: ((Fixed(draw(arrays(INTEGERS))),), {}), num_classes=st.integers(0, 4)),
        encoded,
    ),
}

# ---- dtypes ------------------------------------------------------------------------------------------------

KINDS = ["bool", "signed integer", "integral", "real floating", "numeric"]


def limits(info: Any, names: str) -> dict[str, Any]:
    return {name: getattr(info, name) for name in names.split()}


PROMOTION = {
    "result_type": Row(lambda draw: (tuple(draw(st.lists(KIND, min_size=1, max_size=3))), {}), common),
    "promote_types": Row(drawn(KIND, KIND), common),
    "can_cast": Row(drawn(KIND, KIND), lambda a, b: common(a, b) == b),
    "isdtype": Row(
        drawn(KIND, st.sampled_from(KINDS)), lambda dtype, kind: np.isdtype(np.dtype(dtype), kind)
    ),
    "finfo": Row(
        drawn(st.sampled_from(FLOATS)),
        lambda dtype: limits(np.finfo(dtype), "bits eps max min smallest_normal"),
    ),
    "iinfo": Row(drawn(st.sampled_from(INTEGERS)), lambda dtype: limits(np.iinfo(dtype), "bits max min")),
}
