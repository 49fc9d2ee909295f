"""What the tests of the compiler share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tensorken_llvm import cache, machine, program


@pytest.fixture(autouse=True, scope="module")
def _optimised_and_verified() -> Iterator[None]:
    """Compile and optimise everything: what a former version stored proves nothing, nor do loops without vectors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(cache.VARIABLE, "0")
        patch.setenv(program.QUICK, "0")
        patch.setattr(machine, "IS_VERIFIED", True)
        yield
