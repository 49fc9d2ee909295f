"""Exact numbers, unit roundoffs and the bounds made of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tensorken_conformance.oracles.bounds import Arithmetic, Dyadic, gamma, gammas
from tensorken_conformance.oracles.rounding import FORMATS
from tensorken_core.language.capabilities import Capabilities

FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6)
TRIALS = settings(max_examples=60, deadline=None)


def exactly(values: list[float]) -> list[Fraction]:
    return [Fraction(v) for v in values]


@TRIALS
@given(a=FLOATS, data=st.data())
def test_dyadic_numbers_are_exact(a: list[float], data: Any) -> None:
    b = data.draw(st.lists(st.floats(-1e300, 1e300), min_size=len(a), max_size=len(a)))
    x, y = Dyadic.of(np.array(a)), Dyadic.of(np.array(b))
    pairs = list(zip(exactly(a), exactly(b), strict=True))
    assert list(x.fractions()) == exactly(a)
    assert list((x + y).fractions()) == [p + q for p, q in pairs]
    assert list((x - y).fractions()) == [p - q for p, q in pairs]
    assert list((x * y).fractions()) == [p * q for p, q in pairs]
    assert list(abs(x).fractions()) == [abs(p) for p, _ in pairs]
    assert x.sum().fraction() == sum(exactly(a))
    assert x.exceeds(y).tolist() == [p > q for p, q in pairs]
    assert x.equals(y).tolist() == [p == q for p, q in pairs]


@TRIALS
@given(a=FLOATS, factor=st.fractions(0, 10))
def test_products_with_fractions_are_rounded_up_by_next_to_nothing(a: list[float], factor: Fraction) -> None:
    for found, value in zip(Dyadic.of(np.array(a)).times(factor).fractions(), exactly(a), strict=True):
        least = abs(value) * factor
        unit = Fraction(2) ** Dyadic.of(np.array(a)).exponent
        assert least <= found < least + unit / 2**64


@pytest.mark.parametrize("dtype", FORMATS)
def test_formats_are_those_of_numpy(dtype: str) -> None:
    form, info = FORMATS[dtype], np.finfo(dtype)
    assert form.unit == Fraction(float(info.eps)) / 2
    assert form.subnormal == Fraction(float(info.smallest_subnormal))
    assert form.normal == Fraction(float(info.tiny))
    assert form.largest == Fraction(float(info.max))
    assert form.overflow - form.largest == (form.largest - Fraction(float(np.nextafter(info.max, 0)))) / 2


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1, 1)])
def test_shapes_without_axes_or_elements(shape: tuple[int, ...]) -> None:
    x = Dyadic.of(np.ones(shape))
    assert (x * x + x).shape == shape
    assert x.sum().fraction() == int(np.prod(shape, dtype=int))
    assert x.times(Fraction(1, 3)).exceeds(x).tolist() == np.zeros(shape, bool).tolist()


def test_what_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        Dyadic.of(np.array([1.0, np.inf]))


def test_gamma_bounds_what_roundings_do() -> None:
    unit = Fraction(1, 2**24)
    assert gamma(1, unit) == unit / (1 - unit)
    assert gammas([0, -1, 5], unit).tolist() == [0, 0, gamma(5, unit)]
    assert (1 + unit) ** 7 - 1 <= gamma(7, unit)
    assert 1 / (1 - unit) ** 7 - 1 <= gamma(7, unit)
    with pytest.raises(ValueError, match="gamma_2048"):
        gamma(2048, Fraction(1, 2**11))


def test_declared_errors_widen_the_unit() -> None:
    exact = Arithmetic(Capabilities(dtypes=("float32",), ulp={"*": 0}), "float32")
    wide = Arithmetic(
        Capabilities(dtypes=("float32",), ulp={"exp": 1}, flushes_subnormals=("float32",)), "float32"
    )
    unit = FORMATS["float32"].unit
    assert exact.error("exp") == unit == exact.unit == wide.unit
    assert wide.error("exp") == 3 * unit
    assert exact.loss < wide.loss
    assert exact.faithful
