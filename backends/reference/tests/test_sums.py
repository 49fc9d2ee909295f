"""Sums, sums of products and running sums are exact before they are rounded; the oracle is exact fractions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from core.tests.examples import examples
from tensorken_core.language.dtypes import FLOATS, DType, float16, float32, float64
from tensorken_reference.backend import Reference
from tensorken_reference.rounding import round_doubles
from tensorken_reference.sums import products, running_sums, sums

pytestmark = pytest.mark.slow

inf, nan = math.inf, math.nan
Nearest = Callable[[Fraction, DType], float]
DTYPES = pytest.mark.parametrize("dtype", FLOATS, ids=str)


def floats(dtype: DType) -> st.SearchStrategy[float]:
    """Finite floats of a dtype: any floats, or floats of a few bits and exponents, whose sums cancel and tie."""
    width = 8 * dtype.itemsize
    wide = st.floats(width=width, allow_nan=False, allow_infinity=False)  # type: ignore[call-overload]
    powers = st.integers(-12, 12).map(lambda e: 2.0**e)
    simple = st.builds(lambda n, p: float(n) * p, st.integers(-9, 9), powers)
    return st.one_of(wide, simple, simple.map(lambda v: round_doubles([v * 1.1], dtype)[0]))


def rounded(value: Fraction, terms: list[float], nearest: Nearest, dtype: DType) -> float:
    """The oracle: an exact zero is -0.0 only if each term is; underflow keeps the sign."""
    if value:
        return math.copysign(nearest(value, dtype), 1 if value > 0 else -1)
    negative = terms and all(math.copysign(1.0, v) < 0 for v in terms if v == 0) and not any(terms)
    return -0.0 if negative else 0.0


def same(a: float, b: float) -> bool:
    return (a != a and b != b) or (a == b and math.copysign(1.0, a) == math.copysign(1.0, b))


@DTYPES
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_a_sum_is_rounded_once(dtype: DType, data: st.DataObject, nearest: Nearest) -> None:
    row = data.draw(st.lists(floats(dtype), max_size=9))
    exact = sum(map(Fraction, row), Fraction(0))
    assert same(sums([row], dtype)[0], rounded(exact, row, nearest, dtype))


@DTYPES
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_a_sum_of_products_is_rounded_once(dtype: DType, data: st.DataObject, nearest: Nearest) -> None:
    pairs = data.draw(st.lists(st.tuples(floats(dtype), floats(dtype)), max_size=7))
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    exact = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
    signs = [math.copysign(0.0 if a == 0 or b == 0 else 1.0, a) * math.copysign(1.0, b) for a, b in pairs]
    assert same(products([left], [right], [0], [0], dtype)[0], rounded(exact, signs, nearest, dtype))


@DTYPES
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_running_sums_are_sums(dtype: DType, data: st.DataObject) -> None:
    special = st.sampled_from((inf, -inf, nan, -0.0))
    row = data.draw(st.lists(st.one_of(floats(dtype), special), max_size=8))
    prefixes = [row[: n + 1] for n in range(len(row))]
    assert all(map(same, running_sums(row, dtype), sums(prefixes, dtype)))


@pytest.mark.parametrize(
    ("row", "dtype", "expected"),
    [
        ([1e308, 1e308, -1e308], float64, 1e308),
        ([1e16, 1.0, -1e16], float64, 1.0),
        ([1e308, 1e308], float64, inf),
        ([-1e308, -1e308], float64, -inf),
        ([1.7976931348623157e308, 9.979201547673598e291], float64, 1.7976931348623157e308),
        ([1.7976931348623157e308, 9.979201547673599e291], float64, inf),
        ([5e-324, 5e-324, -5e-324], float64, 5e-324),
        ([0.1] * 10, float64, 1.0),
        ([2.0**24, 1.0], float32, 2.0**24),
        (
            [2.0**24, 1.0, 2.0**-149],
            float32,
            2.0**24 + 2,
        ),  # the last term decides: rounding twice would miss it
        ([2.0**24, 3.0, -(2.0**-149)], float32, 2.0**24 + 2),
        ([2.0**24, 3.0], float32, 2.0**24 + 4),
        ([2.0**127, 2.0**127, -(2.0**127)], float32, 2.0**127),
        ([3.4028234663852886e38, 2.0**103], float32, inf),
        ([3.4028234663852886e38, 2.0**103, -(2.0**-149)], float32, 3.4028234663852886e38),
        ([65504.0, 16.0], float16, inf),
        ([65504.0, 16.0, -(2.0**-24)], float16, 65504.0),
        ([2048.0, 1.0, 2.0**-24], float16, 2050.0),
        ([inf, 1e308, 1e308], float64, inf),
        ([1e308, 1e308, -inf], float64, -inf),
        ([inf, -inf], float64, nan),
        ([inf, -inf], float32, nan),
        ([nan, inf, -inf, 1.0], float64, nan),
        ([], float64, 0.0),
        ([-0.0, -0.0], float64, -0.0),
        ([-0.0], float32, -0.0),
        ([-0.0, 0.0], float64, 0.0),
        ([1.0, -1.0, -0.0], float32, 0.0),
    ],
)
def test_sums_do_not_depend_on_the_order(row: list[float], dtype: DType, expected: float) -> None:
    for order in itertools.permutations(row) if len(row) < 5 else [row]:
        assert same(sums([list(order)], dtype)[0], expected), order


@pytest.mark.parametrize(
    ("left", "right", "dtype", "expected"),
    [
        ([1e200, 1.0, 1e200], [1e200, 3.0, -1e200], float64, 3.0),  # intermediate overflow
        ([2.0**550, 1.0, 2.0**550], [2.0**550, 3.0, -(2.0**550)], float64, 3.0),
        ([2.0**-537 * (1 + 2.0**-40)], [2.0**-537 * 2.5], float64, 15e-324),  # just above a tie of subnormals
        ([1e-200, 1e-200], [1e-200, -1e-200], float64, 0.0),
        ([1e-200], [-1e-200], float64, -0.0),  # underflows
        ([5e-324] * 4, [0.25] * 4, float64, 5e-324),  # each underflows, the sum does not
        ([1e200], [1e200], float64, inf),
        ([1.0 + 2.0**-52, -1.0], [1.0 + 2.0**-52, 1.0 + 2.0**-51], float64, 2.0**-104),
        ([1.0 + 2.0**-23, -1.0], [1.0 + 2.0**-23, 1.0 + 2.0**-22], float32, 2.0**-46),
        ([inf, 1.0], [0.0, 1.0], float64, nan),
        ([inf, 1.0], [0.0, 1.0], float32, nan),
        ([inf, 1e200], [2.0, -1e200], float64, inf),
        ([inf, inf], [1.0, -1.0], float32, nan),
        ([0.0], [-1.0], float64, -0.0),
        ([0.0, 0.0], [-1.0, 1.0], float64, 0.0),
        ([0.0, -1e-300], [-1.0, 0.0], float64, -0.0),
        ([], [], float64, 0.0),
    ],
)
def test_sums_of_products(left: list[float], right: list[float], dtype: DType, expected: float) -> None:
    assert same(products([left], [right], [0], [0], dtype)[0], expected)
    assert same(products([right], [left], [0], [0], dtype)[0], expected)


@pytest.mark.feature(57)
@DTYPES
@pytest.mark.parametrize(
    ("a", "b", "axes"),
    [
        ((2, 3, 1), (1, 3, 4), (1,)),  # a matrix product
        ((5, 2, 3, 1), (5, 1, 3, 4), (2,)),  # of batches
        ((2, 3), (2, 3), (0, 1)),
        ((2, 3), (2, 3), ()),
        ((2, 1), (1, 3), ()),  # an outer product
        ((2, 1, 3), (2, 1, 1), (0, 2)),  # a summed axis that one operand has
        ((1, 1), (1, 1), (0, 1)),
        ((2, 0), (2, 1), (1,)),
        ((0, 3), (1, 3), (1,)),
        ((), (), ()),
    ],
)
def test_fused_multiply_add(
    a: tuple[int, ...],
    b: tuple[int, ...],
    axes: tuple[int, ...],
    dtype: DType,
    nearest: Nearest,
    reference: Reference,
) -> None:
    """Against sums over index tuples in fractions."""
    x = reference.new(a, [math.sin(7 * i) * 3 for i in range(math.prod(a))], dtype)
    y = reference.new(b, [math.cos(5 * i) / 3 for i in range(math.prod(b))], dtype)
    full = [n if m == 1 else m for m, n in zip(a, b, strict=True)]
    totals: dict[tuple[int, ...], Fraction] = {
        key: Fraction(0)
        for key in itertools.product(*[range(1 if i in axes else n) for i, n in enumerate(full)])
    }
    for index in itertools.product(*map(range, full)):
        p, q = (element(z.shape, z.data, index) for z in (x, y))
        totals[tuple(0 if i in axes else k for i, k in enumerate(index))] += Fraction(p) * Fraction(q)
    result = reference.fused_multiply_add(x, y, axes)
    assert result.shape == tuple(1 if i in axes else n for i, n in enumerate(full))
    assert result.dtype is dtype
    assert reference.ravel(result) == [nearest(v, dtype) for v in totals.values()]


def element(shape: tuple[int, ...], data: tuple[float, ...], index: tuple[int, ...]) -> float:
    place = 0
    for n, k in zip(shape, index, strict=True):
        place = place * n + (k if n > 1 else 0)
    return data[place]
