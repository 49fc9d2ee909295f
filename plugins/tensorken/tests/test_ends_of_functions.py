"""Functions of several tensors at infinite operands, compared with numpy."""

from __future__ import annotations

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from plugins.tensorken.tests.namespace.laws import quiet

pytestmark = pytest.mark.usefixtures("on_numpy")

inf = np.inf
SAMPLES = {
    "infinite at the end": ([0.0, 1.0, 2.0], [0.0, 1.0, inf]),
    "infinite at both ends": ([0.0, 1.0, 2.0], [inf, 1.0, inf]),
    "infinities of both signs": ([0.0, 1.0, 2.0], [-inf, inf, inf]),
    "infinite coordinates": ([-inf, 0.0, inf], [1.0, 2.0, 3.0]),
    "a rise that overflows": ([0.0, 1.0, 1.5], [-1e308, 1e308, 1.0]),
}


@each_of("name", SAMPLES)
def test_interpolation_beside_infinite_samples(name: str) -> None:
    xp, fp = (np.array(values) for values in SAMPLES[name])
    x = np.array([-1.0, 0.0, 0.25, 0.5, 1.0, 1.25, 1.5, 2.0, 3.0, np.nan])
    with quiet():
        expected = np.interp(x, xp, fp)
    if "overflows" in name:
        expected[[2, 3, 5]] = -5e307, 0.0, 5e307
    for f in (tk.interp, tk.jit(tk.interp)):
        np.testing.assert_array_equal(np.asarray(f(*map(tk.tensor, (x, xp, fp)))), expected)
    finite = tk.grad(lambda fp: tk.interp(tk.tensor([0.0, 1.0]), tk.tensor(xp), fp).sum())(tk.tensor(fp))
    assert np.isfinite(np.asarray(finite)).all()


def test_the_fractional_part_has_the_derivative_one_at_integers_and_the_integral_part_zero() -> None:
    x = tk.tensor([-2.5, -1.0, -0.0, 0.0, 1.0, 2.5])
    for part, slope in ((0, 1.0), (1, 0.0)):
        assert tk.grad(lambda x, part=part: tk.modf(x)[part].sum())(x).tolist() == [slope] * 6
