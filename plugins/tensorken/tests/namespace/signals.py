"""Signals, covariances, choices, and functions applied along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugins.tensorken.tests.namespace.laws import bools, call, floats, ints, law

KNOTS = np.array([-3.0, -1.0, 0.5, 2.0, 3.5])
EDGES = np.array([-1.0, 0.5, 3.5, np.nan, np.inf], "float32")
MODES = ("full", "same", "valid")
SIZES = ((5, 3), (3, 5), (4, 4), (6, 2), (2, 5), (1, 1))

SIGNALS = {
    "interp": law(
        call(floats(2, 4), KNOTS, floats(5, seed=1)),
        call(floats(6), KNOTS, floats(5, seed=1), left=-7.0, right=9.0),
        call(floats(6), KNOTS[::-1].copy(), floats(5, seed=1), period=4.3),
        call(
            np.array([-1.0, 0.5, 3.5, np.nan, np.inf], "float32"),
            KNOTS.astype("float32"),
            floats(5, dtype="float32"),
        ),
        call(floats(0), KNOTS, floats(5)),
        call(floats(3), KNOTS[:1], floats(1)),
        smooth=True,
    ),
    **{
        name: law(
            *[call(floats(n), floats(m, seed=1), mode) for n, m in SIZES for mode in MODES],
            call(ints(4), ints(2), "same"),
            call(floats(4, dtype="float32"), floats(2, dtype="float32")),
            smooth=True,
        )
        for name in ("convolve", "correlate")
    },
    "gradient": law(
        call(floats(5)),
        call(floats(3, 4), 0.5, axis=1, edge_order=2),
        call(floats(3, 4, 2), 2.0, 0.5, 1.5),
        call(floats(3, 4), 2.0, np.array([0.0, 0.5, 2.0, 2.5]), edge_order=2),
        call(floats(2, dtype="float32")),
        call(ints(2, 3), axis=(1,)),
        smooth=True,
    ),
    "trapezoid": law(
        call(floats(3, 4)),
        call(floats(3, 4), dx=0.5, axis=0),
        call(floats(3, 4), floats(3, seed=1), axis=0),
        call(floats(3, 4), floats(3, 4, seed=1)),
        call(floats(3, 0, dtype="float32")),
        call(floats(1, dtype="float16")),
        call(ints(4)),
        smooth=True,
    ),
    "unwrap": law(
        call(floats(3, 6) * 3),
        call(floats(3, 6) * 3, axis=0, period=2.0),
        call(floats(8) * 3, discont=5.0),
        call(floats(0, dtype="float32")),
        call(np.array([0.0, np.pi, 0.0, 2 * np.pi, np.nan, 1.0])),
        call(ints(9), period=4),
        call(ints(9), period=5),
    ),
}

COVARIANCES = {
    "cov": law(
        call(floats(3, 5)),
        call(floats(5), floats(5, seed=1)),
        call(floats(5, 3), rowvar=False, bias=True),
        call(floats(2, 5, dtype="float32"), ddof=0),
        call(floats(2, 4), fweights=np.array([1, 2, 0, 3])),
        call(floats(2, 4), aweights=np.array([0.5, 2.0, 1.0, 3.0])),
        call(floats(2, 4), fweights=np.array([1, 2, 1, 3]), aweights=np.array([0.5, 2.0, 1.0, 3.0])),
        call(floats(2, 1, dtype="float32")),
        call(np.array([1.0, np.nan, 2.0], "float32")),
        call(ints(2, 4)),
        smooth=True,
    ),
    "corrcoef": law(
        call(floats(3, 5)),
        call(floats(5), floats(5, seed=1)),
        call(floats(5, 3), rowvar=False),
        call(floats(4, dtype="float32")),
        smooth=True,
    ),
}

MATRICES = {
    "matvec": law(
        call(floats(3, 4), floats(4, seed=1)),
        call(floats(2, 3, 4), floats(2, 4)),
        call(floats(2, 1, 3, 4, dtype="float32"), floats(5, 4, dtype="float32")),
        call(ints(2, 3), ints(3)),
        call(floats(0, 3), floats(3)),
        smooth=True,
    ),
    "vecmat": law(
        call(floats(3), floats(3, 4, seed=1)),
        call(floats(2, 3), floats(2, 3, 4)),
        call(ints(3), ints(3, 2)),
        call(floats(0), floats(0, 3)),
        smooth=True,
    ),
}


def flat_where(f: Any) -> Any:
    """The function with the conditions and choices in one list of operands."""
    return lambda a, b, c, d, **named: f([a, b], [c, d], **named)


def parts(f: Any) -> Any:
    """piecewise with three functions."""
    return lambda x, a, b, **named: f(x, [a, b], [lambda x: x * x, lambda x, k=1.0: k - x, 3.0])


def along(f: Any) -> Any:
    """apply_along_axis of functions to numbers, vectors and matrices."""
    functions = (
        lambda v: (v * v).sum(),
        lambda v: v[::-1] * v[0],
        lambda v: v.reshape(1, -1) * v.reshape(-1, 1),
    )
    return lambda x, axis: [f(g, axis, x) for g in functions]


def over(f: Any) -> Any:
    return lambda x, axes: f(lambda x, axis: x.sum(axis), x, axes)


def products(f: Any) -> Any:
    """vectorize with a signature, and of single elements."""

    def both(a: Any, b: Any) -> Any:
        row = f(lambda a, b: (a * b[0]).sum(), signature="(n),(m)->()")
        return row(a, b), f(lambda a, b: a - 2 * b)(a[..., :1], b)

    return both


CHOICES = {
    "select": law(
        call(bools(2, 3), bools(2, 3, seed=1), floats(2, 3), floats(3, seed=1), default=5.0),
        call(bools(2, 1), bools(3), ints(2, 3), ints(2, 3, seed=1)),
        call(bools(0), bools(0), floats(0, dtype="float32"), floats(0, dtype="float32")),
        smooth=True,
        wrap=flat_where,
    ),
    "piecewise": law(
        call(floats(2, 4), bools(2, 4), bools(2, 4, seed=1)),
        call(floats(0, dtype="float32"), bools(0), bools(0)),
        call(ints(5), bools(5), bools(5, seed=1)),
        smooth=True,
        wrap=parts,
    ),
    "choose": law(
        call(ints(2, 3, high=3), [[[1.0], [2.0]], 5.0, [7.0, 8.0, 9.0]]),
        call(ints(2, 3, low=-2, high=5), [10, 20, 30], mode="wrap"),
        call(ints(2, 3, low=-2, high=5), [10, 20, 30], mode="clip"),
    ),
    "compress": law(
        call(np.array([True, False, True]), floats(3, 4), axis=0),
        call(np.array([True, False, True]), floats(3, 4)),
        call(np.array([False]), floats(3, 4, dtype="float32"), axis=1),
        known=True,
    ),
    "extract": law(call(bools(3, 4), floats(3, 4)), call(bools(0), ints(0)), known=True),
}

MAPPING = {
    "apply_along_axis": law(
        call(floats(3, 4), 0), call(floats(2, 3, 4), -2), call(ints(5), 0), smooth=True, wrap=along
    ),
    "apply_over_axes": law(call(floats(2, 3, 4), (0, -1)), call(ints(2, 3), 1), smooth=True, wrap=over),
    "vectorize": law(
        call(floats(2, 1, 3), floats(4, 2)),
        call(floats(3), floats(2)),
        call(floats(2, 3, dtype="float32"), floats(2, dtype="float32")),
        smooth=True,
        wrap=products,
    ),
}
