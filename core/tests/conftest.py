"""What the tests of core share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tensorken as tk
from core.tests.support import FUSED


@pytest.fixture(scope="module")
def on_numpy() -> Iterator[None]:
    """Tensors are created on `Fuse(Numpy())`, whatever is installed."""
    with tk.use_backend(FUSED):
        yield
