"""What `pytest --pyargs tensorken_conformance --tensorken-backend NAME` runs: a test for each law and op."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorken_conformance.pytest_laws import LawTest


def test_law(tensorken_law: LawTest) -> None:
    """A backend keeps a law on an op."""
    tensorken_law.check()
