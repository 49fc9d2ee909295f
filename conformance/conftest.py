"""What pytest leaves out: the project of new backends, and laws that are for worker processes or a named backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorken_conformance.pytest_plugin import backend_of

collect_ignore = [
    "src/tensorken_conformance/templates",
    "tests/fake_laws.py",
]

LAWS = Path("src", "tensorken_conformance", "test_conformance.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tests that examine a backend, since without one they are an error; tests/ runs them by itself."""
    if collection_path == Path(__file__).parent / LAWS and not backend_of(config):
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the kit's tests as slow, as most of them examine whole backends."""
    folder = Path(__file__).parent / "tests"
    for item in items:
        if item.path.is_relative_to(folder):
            item.add_marker("slow")
