"""Fixtures of the tests of the kit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tensorken_conformance.programs.offers import without_installed


@pytest.fixture(scope="session", autouse=True)
def no_installed_compilers() -> Iterator[None]:
    """Run without installed compilers, which would compile the programs of faulty backends."""
    with without_installed():
        yield
