"""values.contracted-views: contractions of views of views equal those of plain operands."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.layouts import chains
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.operands import reductions
from tensorken_conformance.oracles import exact
from tensorken_conformance.oracles.bounds import Arithmetic
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS

ID = "values.contracted-views"

RAW = "fused_multiply_add"

Shape = tuple[int, ...]

PATTERNS: dict[str, dict[str, tuple[Shape, Shape, tuple[int, ...]]]] = {
    RAW: {
        "square": ((4, 4, 1), (1, 4, 4), (1,)),
        "square-last": ((4, 1, 4), (1, 4, 4), (2,)),
        "square-first": ((4, 4, 1), (4, 1, 4), (0,)),
        "square-swapped": ((1, 4, 4), (4, 4, 1), (1,)),
        "matrix-vector": ((4, 5), (1, 5), (1,)),
        "vector-matrix": ((5, 1), (5, 4), (0,)),
        "batched": ((3, 3, 3, 1), (3, 1, 3, 3), (2,)),
        "two-batches": ((2, 2, 3, 4, 1), (2, 2, 1, 4, 3), (3,)),
        "two-inner": ((3, 2, 2, 1), (1, 2, 2, 3), (1, 2)),
        "all": ((3, 3), (3, 3), (0, 1)),
        "long-inner": ((2, 67, 1), (1, 67, 3), (1,)),
        "zero-inner": ((2, 3, 0, 1), (2, 1, 0, 3), (2,)),
        "outer": ((4, 1), (1, 4), ()),
    },
    "matmul": {
        "square": ((4, 4), (4, 4), (1,)),
        "batched": ((3, 3, 3), (3, 3, 3), (2,)),
        "matrix-vector": ((4, 5), (5,), (1,)),
        "shared": ((3, 4, 4), (4, 4), (2,)),
    },
}
"""The shapes of two operands and the contracted axes; axes have equal sizes where possible."""

FEW = ("square",)
"""The patterns of the smoke run."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each op, dtype and pattern; a case tries all chains of either operand, and of both."""
    for op, patterns in PATTERNS.items():
        for dtype in reductions.dtypes_of(subject, ("int", "float")):
            if dtype.kind == "float" and not Arithmetic(subject.capabilities, dtype.name).faithful:
                continue
            for name in patterns if subject.depth != "smoke" else FEW:
                yield Case(ID, op, dtype.name, name)


def numbers(subject: Subject, case: Case, which: str, shape: Shape, count: int) -> Array:
    """Ints over the whole range, or whole floats so small that sums of `count` products are exact."""
    rng = np.random.default_rng([subject.seed, zlib.crc32(f"{case.id} {which}".encode())])
    if DTYPES[case.dtype].kind == "int":
        ends = np.iinfo(case.dtype)
        return np.asarray(rng.integers(ends.min, ends.max, shape, case.dtype))
    largest = int((2 ** FORMATS[case.dtype].precision / max(count, 1)) ** 0.5)
    whole = rng.integers(1, largest, shape, endpoint=True) * rng.choice([-1, 1], shape)
    return np.asarray(whole.astype(case.dtype))


def need(case: Case) -> tuple[str, ...]:
    """The movements that make operands, and products of plain ones."""
    plain = Case("values.contractions", RAW, case.dtype, "matrices", "small-integers").id
    return (*chains.needs(case.dtype), plain)


@law(ID, cases, level=2, needs=need)
def contracted_views(subject: Subject, case: Case) -> None:
    """A contraction of views, made by one or two movements, equals that of plain operands.

    The first operand, the second, or both are views as in values.views.  Nothing is rounded: floats are whole numbers
    so small that no sum of products needs more digits than the format, and ints wrap.
    """
    shape_a, shape_b, axes = PATTERNS[case.op][case.shape]
    dtype = DTYPES[case.dtype]
    interpreter = subject.call_counter if case.op == RAW else subject.stack
    count = int(np.prod([shape_a[i] for i in axes], dtype=int))
    a, b = numbers(subject, case, "a", shape_a, count), numbers(subject, case, "b", shape_b, count)
    firsts, seconds = [chains.possible(subject, case.dtype, len(s)) for s in (shape_a, shape_b)]
    pairs = [(first, "plain") for first in firsts] + [("plain", second) for second in seconds]
    pairs += [(name, name) for name in firsts if name in seconds]
    pairs += [*zip(list(firsts)[1:], list(seconds), strict=False)]
    for first, second in dict.fromkeys(pairs):
        x, y = chains.fitted(firsts[first], a), chains.fitted(seconds[second], b)
        made = ((firsts[first], x), (seconds[second], y))
        tensors = [subject.apart(chains.lying(interpreter, chain, values, dtype)) for chain, values in made]
        with np.errstate(over="ignore"):
            if case.op == RAW:
                expected = np.add.reduce(x * y, axes, dtype.name, keepdims=True) if axes else x * y
                result = subject.run(OPS[RAW], tensors, (axes,))
            else:
                left, right = x[..., :, :, None], (y if y.ndim > 1 else y[:, None])[..., None, :, :]
                expected = np.add.reduce(left * right, -2, dtype.name)
                expected = expected if y.ndim > 1 else expected[..., 0]
                result = tk.matmul(*tensors)
        says = f"{case.op} of {case.dtype} {shape_a}, {first}, and {shape_b}, {second}"
        # the sign of a zero depends on the order of sum and product
        exact.same(subject.read(result), np.asarray(expected), f"{says}, over {axes}", either_zero=True)
