"""Rows of reductions, scans, order, sets, and of functions that move elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oracles.sweep.operands import COMPLEX, INTEGERS, ends, kind, limits, numpy_dtype, regular
from oracles.sweep.row import (
    MOVES,
    POSITIONS,
    TRUTHS,
    VALUES,
    Case,
    Row,
    always,
    complex_of,
    counted,
    inexact,
    real_inexact,
    same,
    summed,
    with_int32,
)

ARRAYS: dict[str, Row] = {}


def vectors(name: str) -> dict[str, Any]:
    """Vectors of a dtype by kind: regular elements, equal ones, ends, one, none."""
    x = regular(name, (6,))
    found = {"regular": x, "equal": np.repeat(x[2:3], 4), "one": x[:1], "none": x[:0], "ends": ends(name)}
    if kind(name) in ("float", "complex"):
        limit = limits(name)
        make = lambda *numbers: np.array(numbers).astype(numpy_dtype(name))  # noqa: E731
        found |= {
            "infinite": make(1.0, np.inf, 2.0),
            "infinities": make(np.inf, -np.inf, 2.0),
            "nan": make(1.0, np.nan, 2.0, -np.inf),
            "nans": make(np.nan, -np.nan),
            "largest": make(float(limit.max), float(limit.max), 1.0),
            "smallest": make(float(limit.smallest_subnormal), -float(limit.smallest_subnormal), 0.0, -0.0),
        }
    if name in INTEGERS:
        info = np.iinfo(numpy_dtype(name))
        found |= {"limits": np.array([info.max, info.min, 0, info.max, 1], name)}
    return found


def on_vectors(*leave_out: str, **params: Any) -> Callable[[str], list[Case]]:
    """Vectors, and a matrix along its last axis."""

    def cases(name: str) -> list[Case]:
        found = [Case(label, (x,), params) for label, x in vectors(name).items() if label not in leave_out]
        return [*found, Case("rows", (regular(name, (2, 3)),), {"axis": -1, **params})]

    return cases


def on_regular(*arguments: Any, shape: Sequence[int] = (2, 3), **params: Any) -> Callable[[str], list[Case]]:
    """Regular elements, a matrix by default, and the arguments after them."""
    return lambda name: [Case("regular", (regular(name, shape), *arguments), params)]


def on_any(*arguments: Any, **params: Any) -> Callable[[str], list[Case]]:
    """Vectors of every kind, and the arguments after them."""
    return lambda name: [Case(label, (x, *arguments), params) for label, x in vectors(name).items()]


def on_small(*shapes: Sequence[int], **params: Any) -> Callable[[str], list[Case]]:
    """Small operands of these shapes, whose products do not overflow."""
    return lambda name: [
        Case("regular", tuple(small(name, shape, k) for k, shape in enumerate(shapes)), params)
    ]


def small(name: str, shape: Sequence[int], seed: int = 0) -> Any:
    """Regular numbers, integers among them from 0 to 4."""
    x = regular(name, shape, seed)
    return x % 5 if name in INTEGERS else x


def _rows(names: str, **facts: Any) -> None:
    for name in names.split():
        ours, _, theirs = name.partition("=")
        ARRAYS[f"tk.{ours}"] = Row(getattr(np, theirs or ours), **facts)


# ---- reductions ---------------------------------------------------------------------------------------------------


def _in_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """Sums of integers have at least 32 bits, where numpy's have 64."""

    def reduced(x: Any, *arguments: Any, **params: Any) -> Any:
        if x.dtype.kind in "biu":
            return function(x, *arguments, **params, dtype=summed(x.dtype.name))
        return (
            function(x.astype("float64"), *arguments, **params)
            if x.dtype == np.float32
            else function(x, *arguments, **params)
        )

    return reduced


for _name in ("sum", "prod", "cumsum", "cumprod", "nansum", "nanprod", "nancumsum", "nancumprod"):
    ARRAYS[f"tk.{_name}"] = Row(
        _in_dtype(getattr(np, _name)),
        cases=on_vectors("ends"),
        precision="same",
        result=summed,
        ulp=8,
        scale="terms",
    )
_rows("mean nanmean", cases=on_vectors("ends"), ulp=8, scale="terms")
_rows(
    "var std nanvar nanstd",
    cases=on_vectors("ends", "limits", "largest"),
    ulp=16,
    scale="terms",
    result=real_inexact,
)
_rows("max min nanmax nanmin", cases=on_vectors(), **MOVES)
_rows("all any", cases=on_vectors(), **TRUTHS)
_rows(
    "argmax argmin nanargmax nanargmin count_nonzero",
    cases=on_vectors(),
    **POSITIONS,
)
_rows("ptp", cases=on_vectors(), precision="same", result=same, ulp=1)
_rows("median nanmedian", cases=on_vectors("ends"), ulp=2)
_rows("average", cases=on_vectors("ends"), ulp=8, scale="terms")
for _name, _at in (("quantile", 0.3), ("nanquantile", 0.3), ("percentile", 30.0), ("nanpercentile", 30.0)):
    _rows(
        _name,
        cases=lambda d, _at=_at: [
            Case(label, (x, _at))
            for label, x in vectors(d).items()
            if label not in ("ends", "infinite", "infinities", "nan")
        ],
        ulp=4,
        scale="terms",
    )


def _logsumexp(x: Any, axis: Any = None) -> Any:
    with np.errstate(all="ignore"):
        top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
        if x.dtype.kind == "c":
            return np.log(np.sum(np.exp(x), axis=axis))
        safe = np.where(np.isfinite(top), top, 0)
        y = np.log(np.sum(np.exp(x - safe), axis=axis, keepdims=True)) + safe
        return y.reshape(np.sum(x, axis=axis).shape)


def softmax(x: Any, axis: int | None = -1) -> Any:
    """Infinite maxima share it, as docs/numerics.md says."""
    with np.errstate(all="ignore"):
        top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
        e = np.where(np.isinf(top), np.where(np.isnan(x), x, x == top), np.exp(x - top))
        return e / np.sum(e, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: int | None = -1) -> Any:
    """The logarithm of `softmax`."""
    with np.errstate(all="ignore"):
        top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
        y = x - top - np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True))
        return np.where(np.isinf(top), np.log(softmax(x, axis)), y)


ARRAYS |= {
    "tk.logsumexp": Row(_logsumexp, cases=on_vectors("ends"), scale="one"),
    "tk.softmax": Row(softmax, cases=on_vectors("ends"), ulp=6),
    "tk.log_softmax": Row(log_softmax, cases=on_vectors("ends", "largest"), ulp=6, scale="one"),
    "tk.cummax": Row(np.maximum.accumulate, cases=on_vectors(), **MOVES),
    "tk.cummin": Row(np.minimum.accumulate, cases=on_vectors(), **MOVES),
    "tk.cumulative_sum": Row(
        lambda x, axis=None: _in_dtype(np.cumsum)(x, axis=axis),
        cases=on_vectors("ends"),
        precision="same",
        result=summed,
        ulp=8,
        scale="terms",
    ),
    "tk.cumulative_prod": Row(
        lambda x, axis=None: _in_dtype(np.cumprod)(x, axis=axis),
        cases=on_vectors("ends"),
        precision="same",
        result=summed,
        ulp=8,
        scale="terms",
    ),
    "tk.diff": Row(np.diff, cases=on_vectors(), precision="same", result=same, ulp=1),
    "tk.ediff1d": Row(np.ediff1d, cases=on_any(), precision="same", result=same, ulp=1),
    "tk.gradient": Row(
        np.gradient,
        cases=lambda d: [
            Case(label, (x,))
            for label, x in vectors(d).items()
            if label in ("regular", "equal", "infinite", "nan", "limits")
        ],
        ulp=2,
        scale="terms",
    ),
    # numpy multiplies complex infinities by complex widths
    "tk.trapezoid": Row(
        np.trapezoid,
        cases=on_vectors("ends"),
        ulp=8,
        scale="terms",
        skip=lambda y, x: x.dtype.kind == "c" and not np.isfinite(x).all(),
    ),
    "tk.unwrap": Row(np.unwrap, cases=on_regular(), ulp=8, scale="terms"),
}


def in_order(x: Any) -> Any:
    """A sorted vector; numpy does not sort the NaN of bfloat16."""
    return np.sort(x.astype("float32")).astype(x.dtype) if x.dtype.name == "bfloat16" else np.sort(x)


# ---- order and sets -----------------------------------------------------------------------------------------------

_rows("sort", cases=on_vectors(), **MOVES)
_rows(
    "partition",
    cases=on_regular(2, shape=(6,)),
    **MOVES,
    skip=lambda y, *xs: np.arange(6) != 2,
)
_rows("unique", cases=on_any(), **MOVES)
ARRAYS["tk.unique_values"] = Row(
    lambda x: np.unique(x, equal_nan=False),
    cases=on_any(),
    **MOVES,
)
_rows("flatnonzero argwhere nonzero", cases=on_any(), **POSITIONS)
_rows(
    "union1d intersect1d setdiff1d setxor1d",
    cases=lambda d: [
        Case("regular", (small(d, (5,)), small(d, (4,), 1))),
        Case("none", (small(d, (5,)), small(d, (0,)))),
    ],
    **MOVES,
)
_rows(
    "isin",
    cases=lambda d: [Case("ends", (ends(d), ends(d)[:3])), Case("none", (ends(d), ends(d)[:0]))],
    **TRUTHS,
)
ARRAYS |= {
    "tk.argsort": Row(
        lambda x, axis=-1: np.argsort(x, axis=axis, stable=True),
        cases=on_vectors(),
        **POSITIONS,
    ),
    "tk.topk": Row(
        lambda x, k: (np.sort(x)[::-1][:k], np.argsort(x)[::-1][:k]),
        cases=lambda d: [Case("regular", (regular(d, (6,)), 2))] if d != "bool" else [],
        precision="same",
        result=(same, always("int32")),
    ),
    "tk.argpartition": Row(
        np.argpartition,
        cases=on_regular(0, shape=(6,)),
        **POSITIONS,
        skip=lambda e, *xs: np.arange(6) > 0,
    ),
    "tk.lexsort": Row(np.lexsort, cases=on_regular(), **POSITIONS),
    "tk.searchsorted": Row(
        np.searchsorted,
        cases=lambda d: [Case("ends", (in_order(ends(d)), ends(d))), Case("none", (ends(d)[:0], ends(d)))],
        **POSITIONS,
    ),
    "tk.digitize": Row(
        np.digitize,
        cases=lambda d: [Case("regular", (regular(d, (6,)), np.sort(regular(d, (3,)))))],
        **POSITIONS,
    ),
    "tk.unique_counts": Row(
        lambda x: tuple(np.unique_counts(x)),
        cases=on_any(),
        precision="same",
        result=(same, always("int32")),
        ulp=0,
    ),
    "tk.unique_inverse": Row(
        lambda x: tuple(np.unique_inverse(x)),
        cases=lambda d: [case for case in on_any()(d) if kind(d) != "complex" or case.label != "ends"],
        precision="same",
        result=(same, always("int32")),
        ulp=0,
    ),
    "tk.unique_all": Row(
        lambda x: tuple(np.unique_all(x)),
        cases=on_any(),
        precision="same",
        result=(same, *[always("int32")] * 3),
        ulp=0,
    ),
    "tk.bincount": Row(
        np.bincount,
        cases=lambda d: [
            Case("regular", (abs(small(d, (5,))) if d != "bool" else small(d, (5,)),)),
            Case("none", (small(d, (0,)),)),
        ],
        **POSITIONS,
    ),
    "tk.trim_zeros": Row(np.trim_zeros, cases=on_any(), **MOVES),
}

_rows("diag_indices_from tril_indices_from triu_indices_from", cases=on_regular(shape=(3, 3)), **POSITIONS)
_rows(
    "allclose array_equal array_equiv",
    cases=lambda d: [Case(label, (x, x)) for label, x in vectors(d).items()],
    **TRUTHS,
)

_SETS = (
    "unique",
    "unique_values",
    "unique_counts",
    "unique_inverse",
    "unique_all",
    "union1d",
    "intersect1d",
    "setdiff1d",
    "setxor1d",
    "partition",
)
for _name in _SETS:  # JAX has no derivatives of them, or another order
    ARRAYS[f"tk.{_name}"] = replace(ARRAYS[f"tk.{_name}"], modes=VALUES)

# ---- movement -----------------------------------------------------------------------------------------------------

_rows(
    "ravel flip flipud atleast_1d atleast_2d atleast_3d copy squeeze",
    cases=on_any(),
    **MOVES,
)
_rows("shape size ndim", cases=on_any(), precision="same", result=None)
_rows(
    "fliplr transpose matrix_transpose rot90 tril triu diag diagonal",
    cases=on_regular(),
    **MOVES,
)
_rows("diagflat", cases=on_regular(), **MOVES)
_rows("zeros_like ones_like", cases=on_any(), **MOVES)
_rows("roll repeat tile", cases=on_any(2), **MOVES)
_rows("expand_dims", cases=on_any(0), **MOVES)
_rows("moveaxis swapaxes", cases=on_regular(0, 1), **MOVES)
_rows("rollaxis", cases=on_regular(1), **MOVES)
_rows("permute_dims", cases=on_regular((1, 0)), **MOVES)
_rows("reshape resize", cases=on_regular((3, 2)), **MOVES)
_rows("broadcast_to", cases=on_regular((4, 2, 3)), **MOVES)
_rows("split array_split vsplit", cases=on_regular(2), **MOVES)
_rows("hsplit", cases=on_regular(3), **MOVES)
_rows("dsplit", cases=on_regular(2, shape=(1, 2, 4)), **MOVES)
_rows("unstack", cases=on_regular(), **MOVES)
_rows("append", cases=on_small((3,), (2,)), **MOVES)
_rows("delete", cases=on_any(0), **MOVES)
_rows("pad", cases=on_any(2), **MOVES)
_rows("vander", cases=on_small((3,)), precision="same", result=with_int32, ulp=4)
for _name in (
    "concatenate",
    "stack",
    "hstack",
    "vstack",
    "dstack",
    "column_stack",
    "concat",
    "broadcast_arrays",
    "meshgrid",
    "block",
    "ix_",
):
    _listed = _name not in ("broadcast_arrays", "meshgrid", "ix_")
    ARRAYS[f"tk.{_name}"] = Row(
        lambda *xs, _name=_name, _l=_listed: getattr(np, _name)(*[list(xs)] if _l else xs),
        cases=lambda d: [Case(label, (x, x[::-1])) for label, x in vectors(d).items()],
        call=lambda f, *xs, _l=_listed: f(list(xs)) if _l else f(*xs),
        precision="same",
        result=None if _name == "ix_" else same,  # numpy's ix_ turns bools and empty vectors into positions
        ulp=0,
    )
_INDICES = np.array([1, 0, -1], "int32")
_rows(
    "take",
    cases=lambda d: [
        Case(label, (x, _INDICES[: len(x)] if len(x) < 2 else _INDICES))
        for label, x in vectors(d).items()
        if len(x) > 1
    ],
    **MOVES,
)
ARRAYS |= {
    "tk.flatten": Row(np.ravel, cases=on_regular(), **MOVES),
    "tk.take_along_axis": Row(
        lambda x, i: np.take_along_axis(x, i, -1),
        cases=on_regular(np.array([[1], [2]], "int32")),
        **MOVES,
    ),
    "tk.insert": Row(
        np.insert,
        cases=lambda d: [Case("regular", (regular(d, (4,)), 1, regular(d, (1,), 1)))],
        **MOVES,
    ),
    "tk.compress": Row(
        lambda x, c: np.compress(c, x),
        call=lambda f, x, c: f(c, x),
        cases=on_regular(np.array([True, False, True]), shape=(3,)),
        **MOVES,
    ),
    "tk.extract": Row(
        lambda x, c: np.extract(c, x),
        call=lambda f, x, c: f(c, x),
        cases=on_regular(np.array([True, False, True]), shape=(3,)),
        **MOVES,
    ),
    "tk.choose": Row(
        lambda x, y, c: np.choose(c, [x, y]),
        call=lambda f, x, y, c: f(c, [x, y]),
        cases=lambda d: [
            Case("regular", (regular(d, (3,)), regular(d, (3,), 1), np.array([0, 1, 1], "int32")))
        ],
        **MOVES,
    ),
    "tk.select": Row(
        lambda x, y, c: np.select([c, ~c], [x, y]),
        call=lambda f, x, y, c: f([c, ~c], [x, y]),
        cases=lambda d: [
            Case("regular", (regular(d, (3,)), regular(d, (3,), 1), np.array([False, True, True])))
        ],
        precision="same",
        result=counted,
        ulp=0,
    ),
    "tk.fill_diagonal": Row(
        lambda x, v: _changed(np.fill_diagonal, x, v),
        cases=lambda d: [Case("regular", (regular(d, (2, 2)), regular(d, (), 1)))],
        **MOVES,
    ),
    "tk.place": Row(
        lambda x, m, v: _changed(np.place, x, m, v),
        cases=lambda d: [
            Case("regular", (regular(d, (3,)), np.array([True, False, True]), regular(d, (2,), 1)))
        ],
        **MOVES,
    ),
    "tk.put": Row(
        lambda x, i, v: _changed(np.put, x, i, v),
        cases=lambda d: [Case("regular", (regular(d, (3,)), _INDICES[:2], regular(d, (2,), 1)))],
        **MOVES,
    ),
    "tk.full_like": Row(
        np.full_like,
        cases=lambda d: [Case("regular", (regular(d, (3,)), regular(d, (), 1)))],
        **MOVES,
    ),
    "tk.as_strided": Row(
        lambda x: np.stack([x[:-1], x[1:]]),
        call=lambda f, x: f(x, (2, len(x) - 1), (1, 1)),
        cases=on_regular(shape=(4,)),
        **MOVES,
    ),
    "tk.piecewise": Row(
        lambda x, c: np.where(c, x, 0 * x),
        call=lambda f, x, c: f(x, [c], [lambda v: v, lambda v: 0 * v]),
        cases=lambda d: (
            [Case("regular", (regular(d, (3,)), np.array([False, True, True])))] if d != "bool" else []
        ),
        **MOVES,
    ),
    "tk.one_hot": Row(
        lambda x: np.eye(6, dtype="float32")[x.astype(int)],
        call=lambda f, x: f(x, 6),
        cases=on_small((3,)),
        precision="same",
        result=always("float32"),
        ulp=0,
    ),
    "tk.packbits": Row(np.packbits, cases=on_any(), precision="same", result=always("uint8")),
    "tk.unpackbits": Row(np.unpackbits, cases=on_any(), precision="same", result=always("uint8")),
    "tk.empty_like": Row(
        lambda x: np.zeros_like(x),
        call=lambda f, x: 0 * f(x) if x.dtype != "bool" else f(x) & False,
        cases=on_regular(shape=(3,)),
        precision="same",
        result=same,
        skip=lambda e, *xs: np.ones(3, bool),
    ),
    "tk.unravel_index": Row(
        lambda x: np.unravel_index(x, (2, 50)),
        call=lambda f, x: f(x, (2, 50)),
        cases=on_small((3,)),
        precision="same",
        result=None,
    ),
    "tk.ravel_multi_index": Row(
        lambda x, y: np.ravel_multi_index((x, y), (5, 5)),
        call=lambda f, x, y: f((x, y), (5, 5)),
        cases=on_small((3,), (3,)),
        precision="same",
        result=None,
    ),
}


def _changed(function: Callable[..., None], x: Any, *arguments: Any) -> Any:
    """The array that a function of numpy has changed in place."""
    y = x.copy()
    function(y, *arguments)
    return y


for _name in ("put_along_axis", "scatter"):
    ARRAYS[f"tk.{_name}"] = Row(
        lambda x, i, v: _changed(np.put_along_axis, x, i, v, 0),
        call=lambda f, x, i, v: f(x, i, v, 0),
        cases=lambda d: [Case("regular", (regular(d, (3,)), _INDICES[:2], regular(d, (2,), 1)))],
        **MOVES,
    )

# ---- products, statistics, polynomials -------------------------------------------------------------------------------

_PRODUCTS: dict[str, Any] = {
    "matmul": ((2, 3), (3, 2)),
    "dot": ((2, 3), (3,)),
    "inner": ((2, 3), (4, 3)),
    "outer": ((3,), (2,)),
    "kron": ((2, 2), (2,)),
    "vdot": ((4,), (4,)),
    "vecdot": ((2, 3), (2, 3)),
    "matvec": ((2, 3), (3,)),
    "vecmat": ((2,), (2, 3)),
    "cross": ((3,), (3,)),
    "convolve": ((5,), (3,)),
    "correlate": ((5,), (3,)),
    "polyadd": ((3,), (4,)),
    "polysub": ((3,), (4,)),
    "polymul": ((3,), (4,)),
    "polyval": ((3,), (4,)),
}


def _products(name: str, shapes: Any) -> Callable[[str], list[Case]]:
    def cases(d: str) -> list[Case]:
        found = on_small(*shapes)(d)
        if kind(d) == "float":
            a, b = (small(d, shape, k) for k, shape in enumerate(shapes))
            for label, v in (("infinite", np.inf), ("nan", np.nan)):
                c = a.copy()
                c.flat[0] = v
                found.append(Case(label, (c, b)))
        if name in ("matmul", "dot", "matvec"):
            found.append(Case("none", (small(d, (0, shapes[0][1])), small(d, shapes[1]))))
        return found

    return cases


for _name, _shapes in _PRODUCTS.items():
    ARRAYS[f"tk.{_name}"] = Row(
        getattr(np, _name),
        cases=_products(_name, _shapes),
        precision="same",
        result=same,
        ulp=16,
        scale="terms",
    )
ARRAYS |= {
    "tk.tensordot": Row(
        lambda a, b: np.tensordot(a, b, 1),
        call=lambda f, a, b: f(a, b, 1),
        cases=on_small((2, 3), (3, 2)),
        precision="same",
        result=same,
        ulp=16,
        scale="terms",
    ),
    "tk.einsum": Row(
        lambda a, b: np.einsum("ij,jk->ik", a, b),
        call=lambda f, a, b: f("ij,jk->ik", a, b),
        cases=on_small((2, 3), (3, 2)),
        precision="same",
        result=same,
        ulp=16,
        scale="terms",
    ),
    "tk.cov": Row(np.cov, cases=on_regular(), ulp=16, scale="terms"),
    "tk.corrcoef": Row(np.corrcoef, cases=on_regular(shape=(2, 4)), ulp=32, scale="one"),
    "tk.interp": Row(
        lambda x, xp, fp: np.interp(
            x.astype("float64"),
            xp.astype("float64"),
            fp.astype("complex128" if fp.dtype.kind == "c" else "float64"),
        ),
        cases=lambda d: (
            [
                Case(
                    "regular",
                    (
                        small(d, (5,)),
                        np.sort(small(d, (3,))) + np.array([0, 5, 10]).astype(numpy_dtype(d)),
                        small(d, (3,), 2),
                    ),
                )
            ]
            if d not in ("bool", *COMPLEX)
            else [Case("regular", (small(d, (5,)), small(d, (3,)), small(d, (3,), 2)))]
        ),
        ulp=16,
        scale="terms",
    ),
    "tk.histogram": Row(
        lambda x: np.histogram(x, 4, (0.0, 4.0)),
        call=lambda f, x: f(x, 4, (0.0, 4.0)),
        cases=on_any(),
        result=(None, inexact),
        ulp=2,
    ),
    "tk.histogram_bin_edges": Row(
        lambda x: np.histogram_bin_edges(x, 4),
        call=lambda f, x: f(x, 4),
        cases=lambda d: [
            Case("regular", (regular(d, (6,)),)),
            Case("equal", (np.repeat(regular(d, (1,)), 3),)),
            Case("none", (regular(d, (0,)),)),
        ],
        ulp=4,
        scale="terms",
    ),
    "tk.histogram2d": Row(
        lambda x, y: np.histogram2d(x, y, 2, [(0.0, 4.0)] * 2),
        call=lambda f, x, y: f(x, y, 2, [(0.0, 4.0)] * 2),
        cases=on_small((5,), (5,)),
        result=(None, inexact, inexact),
        ulp=2,
    ),
    "tk.histogramdd": Row(
        lambda x: (lambda h, e: (h, *e))(*np.histogramdd(x, 2, [(0.0, 4.0)] * 2)),
        call=lambda f, x: (lambda h, e: (h, *e))(*f(x, 2, [(0.0, 4.0)] * 2)),
        cases=on_regular(shape=(5, 2)),
        result=(None, inexact, inexact),
        ulp=2,
    ),
    "tk.poly": Row(np.poly, cases=on_small((3,)), ulp=16, scale="terms"),
    "tk.polyder": Row(
        np.polyder,
        cases=on_small((4,)),
        precision="same",
        result=with_int32,
        ulp=2,
    ),
    "tk.polyint": Row(np.polyint, cases=on_small((4,)), ulp=2),
    "tk.polydiv": Row(
        np.polydiv,
        cases=lambda d: [Case("regular", (small(d, (4,)), regular(d, (2,), 2)))] if d != "bool" else [],
        ulp=64,
        scale="terms",
    ),
    "tk.polyfit": Row(
        lambda x, y: np.polyfit(
            *(v.astype("complex128" if v.dtype.kind == "c" else "float64") for v in (x, y)), 1
        ),
        call=lambda f, x, y: f(x, y, 1),
        cases=on_small((5,), (5,)),
        ulp=64,
        scale="terms",
    ),
    "tk.roots": Row(
        lambda p: np.sort_complex(np.roots(p.astype("complex128" if p.dtype.kind == "c" else "float64"))),
        cases=lambda d: (
            [Case("regular", (np.array([1, 5, 6]).astype(numpy_dtype(d)),))] if d != "bool" else []
        ),
        result=complex_of,
        ulp=64,
        scale="terms",
    ),
}
