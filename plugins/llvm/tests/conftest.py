"""What the tests of the compiler share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tensorken_llvm import cache


@pytest.fixture(autouse=True, scope="module")
def _without_cache() -> Iterator[None]:
    """Compile everything: what a former version stored proves nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(cache.VARIABLE, "0")
        yield
