"""Dyadic numbers, the formats of dtypes, and rounding error bounds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.oracles.bounds import Arithmetic, Dyadic, gamma, gammas
from tensorken_core.language.capabilities import Capabilities

FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6)
TRIALS = settings(max_examples=60, deadline=None)


def fractions_of(values: list[float]) -> list[Fraction]:
    return [Fraction(v) for v in values]


@TRIALS
@given(a=FLOATS, data=st.data())
def test_dyadic_numbers_are_exact(a: list[float], data: Any) -> None:
    b = data.draw(st.lists(st.floats(-1e300, 1e300), min_size=len(a), max_size=len(a)))
    x, y = Dyadic.of(np.array(a)), Dyadic.of(np.array(b))
    pairs = list(zip(fractions_of(a), fractions_of(b), strict=True))
    assert list(x.fractions()) == fractions_of(a)
    assert list((x + y).fractions()) == [p + q for p, q in pairs]
    assert list((x - y).fractions()) == [p - q for p, q in pairs]
    assert list((x * y).fractions()) == [p * q for p, q in pairs]
    assert list(abs(x).fractions()) == [abs(p) for p, _ in pairs]
    assert x.sum().fraction() == sum(fractions_of(a))
    assert x.exceeds(y).tolist() == [p > q for p, q in pairs]
    assert x.equals(y).tolist() == [p == q for p, q in pairs]


@TRIALS
@given(a=FLOATS, factor=st.fractions(0, 10))
def test_products_with_fractions_are_rounded_up_tightly(a: list[float], factor: Fraction) -> None:
    for product, value in zip(Dyadic.of(np.array(a)).times(factor).fractions(), fractions_of(a), strict=True):
        least = abs(value) * factor
        unit = Fraction(2) ** Dyadic.of(np.array(a)).exponent
        assert least <= product < least + unit / 2**64


@pytest.mark.parametrize("dtype", FORMATS)
def test_formats_equal_those_of_numpy(dtype: str) -> None:
    format_, info = FORMATS[dtype], ml_dtypes.finfo(dtype)
    assert format_.unit == Fraction(float(info.eps)) / 2
    assert format_.subnormal == Fraction(float(info.smallest_subnormal))
    assert format_.normal == Fraction(float(info.tiny))
    assert format_.largest == Fraction(float(info.max))
    assert (
        format_.overflow - format_.largest
        == (format_.largest - Fraction(float(np.nextafter(info.max, 0)))) / 2
    )


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1, 1)])
def test_scalars_and_empty_shapes(shape: tuple[int, ...]) -> None:
    x = Dyadic.of(np.ones(shape))
    assert (x * x + x).shape == shape
    assert x.sum().fraction() == int(np.prod(shape, dtype=int))
    assert x.times(Fraction(1, 3)).exceeds(x).tolist() == np.zeros(shape, bool).tolist()


def test_infinity_is_rejected() -> None:
    with pytest.raises(ValueError, match="finite"):
        Dyadic.of(np.array([1.0, np.inf]))


def test_gamma_bounds_products_of_roundings() -> None:
    unit = Fraction(1, 2**24)
    assert gamma(1, unit) == unit / (1 - unit)
    assert gammas([0, -1, 5], unit).tolist() == [0, 0, gamma(5, unit)]
    assert (1 + unit) ** 7 - 1 <= gamma(7, unit)
    assert 1 / (1 - unit) ** 7 - 1 <= gamma(7, unit)
    with pytest.raises(ValueError, match="gamma_2048"):
        gamma(2048, Fraction(1, 2**11))


def test_declared_errors_widen_the_error_bound() -> None:
    exact = Arithmetic(Capabilities(dtypes=("float32",), ulp={"*": 0}), "float32")
    wide = Arithmetic(
        Capabilities(dtypes=("float32",), ulp={"exp": 1}, flushes_subnormals=("float32",)), "float32"
    )
    unit = FORMATS["float32"].unit
    assert exact.error("exp") == unit == exact.unit == wide.unit
    assert wide.error("exp") == 3 * unit
    assert exact.loss < wide.loss
    assert exact.faithful
