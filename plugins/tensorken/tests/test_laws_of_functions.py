"""Functions of numpy are equal to numpy's, also under jit and vmap, and their derivatives to difference quotients.

A table has a row for each function (namespace/), with calls that include no elements, NaN and several dtypes.
"""

from __future__ import annotations

import numpy as np
import pytest

import tensorken as tk
from plugins.tensorken.tests.namespace import nans, signals
from plugins.tensorken.tests.namespace.laws import Law, check

LAWS = {
    **nans.NANS,
    **nans.ROOTS,
    **signals.SIGNALS,
    **signals.COVARIANCES,
    **signals.CHOICES,
    **signals.MAPPING,
}
"""The functions whose only test of values is here."""

FURTHER = [*nans.METHODS_OF_QUANTILES.items(), *nans.PARTS.items(), *nans.CLIPPED.items()]
"""Further arguments of functions that test_namespace_coverage compares with numpy."""


@pytest.mark.parametrize(
    ("name", "law"), [*LAWS.items(), *FURTHER], ids=lambda x: x if isinstance(x, str) else ""
)
def test_the_laws_hold(name: str, law: Law, on_numpy: None) -> None:
    check(getattr(tk, name), law.numpy or getattr(np, name), law)
