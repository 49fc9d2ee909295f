"""Sums of products in designs: products of matrices and convolutions of whole numbers, which need no rounding."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.laws.covering import axes
from tensorken_conformance.numbers.host_arrays import in_dtype, is_float
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.operands import reductions
from tensorken_conformance.operands.designs import Row, covering
from tensorken_conformance.oracles import exact
from tensorken_conformance.oracles.bounds import Arithmetic
from tensorken_conformance.oracles.windows import kernels_of, windows_of
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape

MATRICES = "fused_multiply_add"
IMAGES = "convolution"

OPS_OF = (MATRICES, IMAGES)

SAME = "same"
"""The size of the inner axis, so that confusing two axes changes no shape."""

LONG = ("256", "1024")
"""Inner sizes that are too large for rows and columns."""

OF_MATRICES: dict[str, tuple[str, ...]] = {
    "rows": ("0", "1", "few", "16", "64", SAME),
    "inner": ("0", "1", "few", "8", "16", "64", *LONG),
    "columns": ("1", "few", "16", "64", SAME),
    "batch": ("none", "first", "second", "both"),
    "order": ("rkc", "rck", "krc", "kcr", "ckr", "crk"),
    "layout-0": axes.ALL_LAYOUTS,
    "layout-1": axes.ALL_LAYOUTS,
    "situation": axes.SITUATIONS[:1] + axes.SITUATIONS[3:],
}
"""The axes of products of matrices: sizes, the operands that have the batch, the order of rows, inner axis, columns."""

ALONG = {
    "kernel": ("1", "2", "3", "5"),
    "stride": ("1", "2", "3"),
    "before": ("-1", "0", "1", "2"),
    "after": ("-1", "0", "2"),
    "dilation": ("1", "2", "3"),
    "step": ("1", "2", "3"),
    "outputs": ("1", "few", "16"),
}
"""The params of a convolution along one axis; `step` is the dilation of the kernel."""

OF_IMAGES: dict[str, tuple[str, ...]] = {
    "rank": ("1", "2", "3"),
    "batch": ("1", "2", "3"),
    "groups": ("1", "2", "3", "5"),
    "channels": ("1", "2", "5"),
    "kernels": ("1", "2", "9"),
    **{f"{name}-{axis}": values for axis in "ab" for name, values in ALONG.items()},
    "layout-0": axes.ALL_LAYOUTS,
    "layout-1": axes.ALL_LAYOUTS,
    "situation": axes.SITUATIONS[:1] + axes.SITUATIONS[3:],
}
"""The axes of convolutions: channels and kernels of a group; the params along the first and along the other axes."""

_DESIGNS = {MATRICES: OF_MATRICES, IMAGES: OF_IMAGES}


def cases(subject: Subject) -> Iterator[Case]:
    """Each op on the rows of its design; none in the smoke run.  The detail of a case is its row."""
    if subject.depth == "smoke":
        return
    dtypes = tuple(
        dtype.name
        for dtype in reductions.dtypes_of(subject, ("int", "float"))
        if dtype.kind == "int" or Arithmetic(subject.capabilities, dtype.name).faithful
    )
    for op in OPS_OF if dtypes else ():
        for row in design(op, dtypes, subject.seed):
            layouts = [row[f"layout-{i}"] for i in range(2)]
            if axes.makes(subject, layouts, row["dtype"]):
                rest = [value for axis, value in row.items() if axis not in ("dtype", "situation")]
                detail = f"{','.join(layouts)};{','.join(rest[:-2])};{row['situation']}"
                yield Case(axes.ID, op, row["dtype"], detail=detail)


def every(op: str, dtypes: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The axes of an op with these dtypes."""
    return {"dtype": dtypes, **_DESIGNS[op]}


@cache
def design(op: str, dtypes: tuple[str, ...], seed: int) -> list[Row]:
    """The rows of an op: in pairs, and in triples with a few layouts and any params along the other axes."""
    names = every(op, dtypes)
    few = {axis: values for axis, values in names.items() if not axis.endswith("-b")}
    few |= {"layout-0": axes.FEW_LAYOUTS, "layout-1": axes.FEW_LAYOUTS}
    rng = random.Random(seed)
    triples = [
        {axis: row.get(axis) or rng.choice(values) for axis, values in names.items()}
        for row in covering(few, seed, 3, fits)
    ]
    return covering(names, seed, 2, fits) + triples


def fits(pair: Row) -> bool:
    """Whether the values of two axes can stand in one row: an operand without elements is no number."""
    if pair.get("inner") in LONG and SAME in (pair.get("rows"), pair.get("columns")):
        return False
    return not ({"0"} & {pair.get("rows"), pair.get("inner")} and axes.NUMBER in pair.values())


# ---- checks ------------------------------------------------------------------------------------------------


def check(subject: Subject, case: Case) -> None:
    """Check an op in one cell."""
    layouts, rest, situation = case.detail.split(";")
    names = [axis for axis in _DESIGNS[case.op] if not axis.startswith(("layout", "situation"))]
    row = dict(zip(names, rest.split(","), strict=True))
    rng = np.random.default_rng(subject.random(case).getrandbits(32))
    made = _matrices if case.op == MATRICES else _images
    shapes, params, count = made(row, rng)
    lies = (layouts.partition(",")[0], layouts.partition(",")[2])
    arrays = []
    for _ in range(2):
        numbers = [whole(rng, case.dtype, shape, count) for shape in shapes]
        arrays.append([axes.laid(layout, x) for layout, x in zip(lies, numbers, strict=True)])
    dtype = DTYPES[case.dtype]
    call = axes.Call(
        lies, (arrays[0], arrays[1]), (dtype, dtype), lambda given: Subject.run(OPS[case.op], given, params)
    )
    of_case = f"{case.op} of {case.dtype} {shapes[0]}, {lies[0]}, and {shapes[1]}, {lies[1]}, {params}"
    for turn, got in call.results(subject, situation):
        expected = _expected(case.op, arrays[turn][0], arrays[turn][1], params)
        exact.same(got, expected, f"{of_case}, {situation}", either_zero=True)


def whole(rng: np.random.Generator, dtype: str, shape: Shape, count: int) -> Array:
    """Ints over the whole range, or whole floats so small that sums of `count` products are exact."""
    if DTYPES[dtype].kind == "int":
        ends = np.iinfo(dtype)
        return np.asarray(rng.integers(ends.min, ends.max, shape, dtype, endpoint=True))
    room = 2 ** FORMATS[dtype].precision / max(count, 1)
    largest = min(max(int(room**0.5), 1), 2**20)
    numbers = rng.integers(1, largest, shape, endpoint=True) * rng.choice([-1, 1], shape)
    kept = rng.random(shape) < room / largest**2  # a long sum of a narrow format is one of few products
    return np.asarray((numbers * kept).astype(dtype))


def _matrices(row: Row, rng: np.random.Generator) -> tuple[tuple[Shape, Shape], Any, int]:
    """The shapes of two matrices, the params, and the number of products in a sum."""
    sizes = {"k": axes.drawn_size(row["inner"], f"{rng.integers(1 << 32)}")}
    for name in ("rows", "columns"):
        key = f"{rng.integers(1 << 32)}"
        sizes[name[0]] = sizes["k"] if row[name] == SAME else axes.drawn_size(row[name], key)
    first = [1 if axis == "c" else sizes[axis] for axis in row["order"]]
    second = [1 if axis == "r" else sizes[axis] for axis in row["order"]]
    batch = row["batch"]
    if batch != "none":
        first, second = [3 if batch != "second" else 1, *first], [3 if batch != "first" else 1, *second]
    inner = row["order"].index("k") + (batch != "none")
    return (tuple(first), tuple(second)), ((inner,),), sizes["k"]


def _images(row: Row, rng: np.random.Generator) -> tuple[tuple[Shape, Shape], Any, int]:
    """The shapes of images and kernels, the params, and the number of products in a sum."""
    rank, groups, channels = int(row["rank"]), int(row["groups"]), int(row["channels"])
    along = [{name: row[f"{name}-{'ab'[axis > 0]}"] for name in ALONG} for axis in range(rank)]
    sizes, kernel, params = [], [], []
    for axis, one in enumerate(along):
        outputs = axes.drawn_size(one["outputs"], f"{rng.integers(1 << 32)}") if axis < 2 else 2
        k, stride, before, after, dilation, step = [int(one[name]) for name in list(ALONG)[:-1]]
        needed = (k - 1) * step + 1 + (outputs - 1) * stride - before - after
        sizes.append(max(-(-(needed - 1) // dilation) + 1, 1))
        kernel.append(k)
        params.append((stride, (before, after), dilation, step))
    images = (int(row["batch"]), groups * channels, *sizes)
    kernels = (groups * int(row["kernels"]), channels, *kernel)
    count = channels * int(np.prod(kernel, dtype=int))
    return (images, kernels), (*[tuple(values) for values in zip(*params, strict=True)], groups), count


def _expected(op: str, a: Array, b: Array, params: Any) -> Array:
    """The exact result; ints wrap, and floats are rounded once."""
    dtype = a.dtype
    if is_float(a):
        a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(over="ignore"):
        if op == MATRICES:
            found = np.add.reduce(a * b, params[0], a.dtype, keepdims=True)
        else:
            products = windows_of(a, b.shape, *params) * kernels_of(b, params[-1])
            found = np.add.reduce(products, -1, a.dtype).reshape(OPS[op].shape(a.shape, b.shape, *params))
    return in_dtype(found, dtype.name) if is_float(found) else found
