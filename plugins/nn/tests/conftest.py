"""Fixtures shared by the tests of this package."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tensorken as tk


@pytest.fixture(params=["numpy", "reference"])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Use each backend that computes values."""
    with tk.use_backend(request.param):
        yield request.param
