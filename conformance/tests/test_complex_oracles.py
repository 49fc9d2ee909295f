"""The oracles of complex functions and of Fourier transforms agree with Python's cmath and with numpy.fft."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

from tensorken_conformance.laws.complex_edges import NAMES, POINTS, expected
from tensorken_conformance.laws.spectra import CALLS, CALLS_OF_SEVERAL, ONE, SEVERAL, TWO
from tensorken_conformance.oracles.bounds import Dyadic
from tensorken_conformance.oracles.complex_special_values import agrees
from tensorken_conformance.oracles.spectra import OF_REAL, spectrum


def differs_by_design(name: str, x: float, y: float) -> bool:
    """Where the array API standard and newer versions of C differ from cmath: tanh at infinity, and zero beside NaN."""
    if name == "tan":
        return not (math.isfinite(x) and math.isfinite(y))
    return name in ("tanh", "acosh") and not (math.isfinite(x) and math.isfinite(y))


@pytest.mark.parametrize("name", [name for name in NAMES if hasattr(cmath, name)])
def test_expected_parts_on_cuts_and_at_special_values_are_those_of_cmath(name: str) -> None:
    compared = 0
    for (x, y), parts in zip(POINTS, expected(name), strict=True):
        try:
            found = getattr(cmath, name)(complex(x, y))
        except (ValueError, OverflowError):
            continue
        if not differs_by_design(name, x, y):
            compared += 1
            assert agrees(found.real, parts[0], 1e-14), (name, x, y, found, parts)
            assert agrees(found.imag, parts[1], 1e-14), (name, x, y, found, parts)
    assert compared >= 60


@pytest.mark.parametrize("name", [*ONE, *SEVERAL, *TWO])
def test_exact_spectra_are_those_of_numpy(name: str) -> None:
    for key, call in (CALLS if name in ONE else CALLS_OF_SEVERAL).items():
        if name in TWO and key not in ("plain", "odd"):
            continue
        real, imag = np.random.default_rng(0).standard_normal((2, *call.shape))
        z = real if name in OF_REAL else real + 1j * imag
        parts = Dyadic.of(real), Dyadic.of(imag * 0 if name in OF_REAL else imag)
        sizes, axes = call.lengths(name)
        given = (sizes[0], axes[0]) if name in ONE else (sizes, axes)
        for norm in ("backward", "ortho", "forward"):
            found = spectrum(name, *parts, sizes, axes, norm)
            values = [part.fractions().astype(float) for part in found.parts]
            right = getattr(np.fft, name)(z, *given, norm=norm)
            models = [right] if len(values) == 1 else [right.real, right.imag]
            for value, model in zip(values, models, strict=True):
                np.testing.assert_allclose(value, model, rtol=0, atol=1e-13)
