"""What the tests of the published numbers share: the numbers, the two backends that compute, and a comparison."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorken as tk

Close = Callable[..., None]


@pytest.fixture(scope="session")
def seeds() -> dict[str, Any]:
    """The published numbers, by group; see the head of the file for where each group comes from."""
    path = Path(__file__).parents[1] / "fixtures" / "seeds.json"
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@pytest.fixture(params=["numpy", "reference"])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the test once on each backend that computes numbers, as the default backend."""
    with tk.use_backend(request.param):
        yield request.param


@pytest.fixture
def close() -> Close:
    """A function that holds a tensor against nested lists: the shape exactly, the numbers within a tolerance."""

    def compare(
        actual: tk.Tensor,
        expected: Any,
        *,
        rtol: float,
        atol: float = 0.0,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        assert isinstance(actual, tk.Tensor)
        assert actual.shape == (_shape(expected) if shape is None else tuple(shape))
        for found, wanted in zip(_flat(actual.tolist()), _flat(expected), strict=True):
            same = math.isclose(found, wanted, rel_tol=rtol, abs_tol=atol) or (
                math.isnan(found) and math.isnan(wanted)
            )
            assert same, f"{found!r} is not {wanted!r} within {rtol} relative, {atol} absolute, in\n{actual}"

    return compare


def _shape(data: Any) -> tuple[int, ...]:
    return (len(data), *_shape(data[0])) if isinstance(data, list) else ()


def _flat(data: Any) -> list[float]:
    """All numbers of nested lists, in order; words such as "nan" and "-inf" stand for what JSON cannot write."""
    return [x for part in data for x in _flat(part)] if isinstance(data, list) else [float(data)]
