"""Public functions are documented; the examples in their docstrings are run by pytest itself."""

from __future__ import annotations

import inspect

import pytest

import tensorken as tk

FUNCTIONS = [name for name in dir(tk) if inspect.isfunction(getattr(tk, name))]


def test_there_are_public_functions() -> None:
    assert {"sin", "sum", "matmul", "grad", "use_backend"} <= {*FUNCTIONS, *dir(tk)}
    assert len(FUNCTIONS) > 100


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_are_documented(name: str) -> None:
    """A first line that ends as a sentence or a clause does."""
    text = inspect.getdoc(getattr(tk, name)) or ""
    assert text.partition("\n")[0].endswith((".", ":", ";", ",")), text
