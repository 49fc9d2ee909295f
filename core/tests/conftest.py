"""Fixtures of the tests of core."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tensorken as tk
from core.tests.support import FUSED


@pytest.fixture(scope="module")
def on_numpy() -> Iterator[None]:
    """Create tensors on `Fuse(Numpy())`, regardless of the installed backends."""
    with tk.use_backend(FUSED):
        yield
