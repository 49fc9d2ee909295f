"""Sums and counts of float16 and bfloat16 are kept in float32, in JAX's programs too."""

from __future__ import annotations

import pytest

import tensorken as tk
from plugins.tensorken.tests.half_precision import rows, wrong

OWN = {"sum", "sum of rows", "cumsum", "matmul", "scatter_add", "at.add", "take'", "max'"}
"""The rows of ops that the backend computes by methods of its own; XLA takes minutes to compile all rows."""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_and_counts_are_kept_in_float32(dtype: str) -> None:
    with tk.use_backend("jax"):
        chosen = [row for row in rows(dtype) if row[0] in OWN]
        assert {row[0] for row in chosen} == OWN
        assert {row[0]: found for row in chosen if (found := wrong(row, dtype))} == {}
