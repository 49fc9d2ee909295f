"""The backend conforms to the laws of the language: one test for each law and op."""

from __future__ import annotations

from typing import Any


def test_conformance(tensorken_law: Any) -> None:
    tensorken_law.check()
