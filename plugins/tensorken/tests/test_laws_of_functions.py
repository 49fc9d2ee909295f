"""Functions of numpy are equal to numpy's, also under jit and vmap, and their derivatives to difference quotients.

A table has a row for each function (namespace/), with calls that include no elements, NaN and several dtypes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from plugins.tensorken.tests.namespace import activations, linear_algebra, nans, places, signals
from plugins.tensorken.tests.namespace.laws import Law, check

LAWS = {
    **nans.NANS,
    **nans.ROOTS,
    **signals.SIGNALS,
    **signals.COVARIANCES,
    **signals.CHOICES,
    **signals.MAPPING,
    **signals.MATRICES,
    **places.INDICES,
    **places.BINS,
    **places.INTEGERS,
    **places.SETS,
    **places.ORDERS,
    **places.POLYNOMIALS,
    **places.BLOCKS,
    **places.PARTS,
    **places.WINDOWS,
    **places.SHAPES,
    **activations.LAWS,
}
"""The functions whose only test of values is here."""

FURTHER = [*nans.METHODS_OF_QUANTILES.items(), *nans.PARTS.items(), *nans.CLIPPED.items()]
"""Further arguments of functions that test_namespace_coverage compares with numpy."""


@pytest.mark.parametrize(
    ("name", "law"), [*LAWS.items(), *FURTHER], ids=lambda x: x if isinstance(x, str) else ""
)
def test_the_laws_hold(name: str, law: Law, on_numpy: None) -> None:
    check(getattr(tk, name), law.numpy or getattr(np, name), law)


@pytest.mark.parametrize(
    ("name", "law"), linear_algebra.OF_LINALG.items(), ids=lambda x: x if isinstance(x, str) else ""
)
def test_the_laws_hold_in_linalg(name: str, law: Law, on_numpy: None) -> None:
    check(getattr(tk.linalg, name), law.numpy or getattr(np.linalg, name), law)


@each_of(("name", "arguments"), [(name, row) for name, rows in places.QUERIES.items() for row in rows])
def test_queries_of_python_values(name: str, arguments: tuple[Any, ...]) -> None:
    assert getattr(tk, name)(*arguments) == getattr(np, name)(*arguments)


def test_brackets_concatenate_like_numpys() -> None:
    def of(library: Any, array: Any) -> list[Any]:
        a, b = array([1.0, 2.0]), array([[3.0, 4.0], [5.0, 6.0]])
        return [
            library.r_[a, 0, 7.5, a],
            library.r_[1:4, 9, 0:10:4],
            library.r_[0.0:1.0:5j],
            library.r_["-1", b, b],
            library.r_["0,2", a, b],
            library.r_["0,2,0", a, [5.0, 6.0]],
            library.r_["1,3,0", a, a],
            library.c_[a, a],
            library.c_[a, b],
            library.c_[b, 2 * b],
        ]

    for found, expected in zip(of(tk, tk.tensor), of(np, np.array), strict=True):
        np.testing.assert_allclose(np.asarray(found), expected)
        assert found.shape == expected.shape


def test_derivatives_of_the_cube_root() -> None:
    x = tk.tensor([0.0, 8.0, -27.0, tk.inf, 5e-324], "float64")
    slopes = tk.derivative(tk.cbrt)(x)
    np.testing.assert_allclose(np.asarray(slopes), [np.inf, 1 / 12, 1 / 27, 0.0, 1.1490e215], rtol=1e-4)
    second = tk.derivative(tk.derivative(tk.cbrt))(x[1:3])
    np.testing.assert_allclose(np.asarray(second), [-1 / 144, 2 / 2187], rtol=1e-12)
    np.testing.assert_array_max_ulp(np.asarray(tk.cbrt(x[4])), np.cbrt(5e-324), maxulp=1)
