"""First and second derivatives are right at the ends of all domains, and as accurate as docs/numerics.md states."""

from __future__ import annotations

import numpy as np
import pytest

import tensorken as tk
from core.tests.conftest import on_numpy as on_numpy
from core.tests.each import each_of
from plugins.tensorken.tests.namespace.laws import quiet
from tools import derivatives
from tools.derivatives import DTYPES, ROWS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_numpy")]
STATED = derivatives.published()


def test_the_table_has_every_row_and_the_rows_every_function_of_one_operand() -> None:
    assert list(STATED) == list(ROWS)
    named = {name.partition("(")[0].partition(" ")[0] for name in ROWS}
    assert set(tk.special.__all__) - named == {"logsumexp", "softmax", "log_softmax", "psi"}


@each_of("name", ROWS)
def test_derivatives_at_the_ends(name: str) -> None:
    with quiet():
        assert not list(derivatives.faults(name, "float32"))


@pytest.mark.nightly
@each_of("name", ROWS)
def test_derivatives_at_the_ends_in_float64(name: str) -> None:
    with quiet():
        assert not list(derivatives.faults(name, "float64"))


@each_of(("name", "dtype"), [(name, dtype) for name in ROWS for dtype in ("float16", "bfloat16")])
def test_derivatives_of_narrow_floats_are_those_of_float32_rounded(name: str, dtype: str) -> None:
    x = tk.tensor(np.array([0.25, 0.5, 1.0, 1.5, 3.0], "float32")).astype(dtype)
    with quiet():
        for f in ROWS[name].functions()[: 3 if name in ROWS_IN_FLOAT32 else 1]:
            wide = np.asarray(f(x.astype("float32")).astype(dtype).astype("float32"))
            found = np.asarray(f(x).astype("float32"))
            np.testing.assert_allclose(found, wide, rtol=4 * float(tk.finfo(dtype).eps), atol=1e-6)


ROWS_IN_FLOAT32 = [
    name for name in ROWS if name.partition("(")[0] in (*tk.special.__all__, "gelu", "silu", "mish")
]
"""Functions whose derivatives are computed in float32, too."""


@each_of(("name", "order"), [(name, order) for name in ROWS for order in (1, 2)])
def test_derivatives_are_as_accurate_as_stated(name: str, order: int) -> None:
    for place, dtype in enumerate(DTYPES):
        with quiet():
            error = derivatives.measure(name, dtype, order, 15)
        stated = STATED[name][2 * order - 2 + place]
        # the functions of another processor's numpy may have other errors
        assert error <= 2 * stated + 1, f"{name} is off by {error} units in {dtype}"
