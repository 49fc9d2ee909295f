"""Special and complex functions have the accuracy stated in docs/numerics.md, on numpy and in the default bodies."""

from __future__ import annotations

import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import Required
from tensorken_conformance.laws.complex_values import TERMS
from tensorken_numpy.backend import Numpy
from tools import special_numerics
from tools.special_numerics import DTYPES, ELSEWHERE, ROWS

BACKENDS = {"numpy": Numpy(), "bodies": Required()}
STATED, STATED_COMPLEX = special_numerics.published(), special_numerics.published_complex()


def test_the_tables_have_every_function() -> None:
    assert list(STATED) == list(ROWS)
    functions = {row.name or name.partition(" ")[0] for name, row in ROWS.items()}
    assert functions == set(tk.special.__all__) - ELSEWHERE
    assert list(STATED_COMPLEX) == list(TERMS)


@each_of("backend", BACKENDS)
@each_of(("name", "dtype"), [(name, dtype) for name in ROWS for dtype in DTYPES])
def test_special_functions_are_as_accurate_as_stated(name: str, dtype: str, backend: str) -> None:
    error, at = special_numerics.measure(name, dtype, 20, BACKENDS[backend])
    stated = STATED[name][DTYPES.index(dtype)]
    assert error <= stated, f"{name} at {at} is off by {error} units, not {stated}"


@pytest.mark.nightly
@each_of("backend", BACKENDS)
@each_of(("name", "dtype"), [(name, dtype) for name in TERMS for dtype in DTYPES])
def test_complex_functions_are_as_accurate_as_stated(name: str, dtype: str, backend: str) -> None:
    """The law `values.complex` examines them in each run, with bounds that follow from the backend's errors."""
    place = DTYPES.index(dtype)
    for stated, error in zip(
        STATED_COMPLEX[name][place::2],
        special_numerics.measure_complex(name, dtype, 2, BACKENDS[backend]),
        strict=True,
    ):
        assert stated is None or error <= stated, f"{name} is off by {error} units, not {stated}"
