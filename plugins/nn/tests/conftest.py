"""What several tests of this package need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tensorken as tk


@pytest.fixture(params=["numpy", "reference"])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each backend that computes, as the one in use."""
    with tk.use_backend(request.param):
        yield request.param
