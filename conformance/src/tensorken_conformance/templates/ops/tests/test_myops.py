"""The op: its values, its errors, its derivatives and its batching rule, on two backends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import DTypeError, ShapeError

from tensorken_myops import squared_distances


@pytest.fixture(params=["numpy", "reference"])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Use each backend."""
    with tk.use_backend(request.param):
        yield request.param


def points(number: int, *shape: int) -> Tensor:
    """Random points in [-1, 1), on the backend in use."""
    return tk.random.uniform(tk.random.key(number), shape, dtype="float64", minval=-1.0)


def by_definition(x: Any, y: Any) -> list[list[float]]:
    """The squared distances of lists of points, in plain Python."""
    return [[sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) for q in y] for p in x]


def test_values(backend: str) -> None:
    x, y = points(0, 3, 2), points(1, 4, 2)
    z = squared_distances(x, y)
    assert (z.backend, z.shape, z.dtype.name) == (backend, (3, 4), "float64")
    for row, expected in zip(z.tolist(), by_definition(x.tolist(), y.tolist()), strict=True):
        assert row == pytest.approx(expected, rel=1e-14)
    for row, expected in zip(tk.jit(squared_distances)(x, y).tolist(), z.tolist(), strict=True):
        assert row == pytest.approx(expected, rel=1e-14)  # a compiler may add in another order


def test_errors() -> None:
    with pytest.raises(ShapeError, match=r"squared_distances: need shapes .* got \(3, 2\) and \(4, 3\)"):
        squared_distances(points(0, 3, 2), points(1, 4, 3))
    with pytest.raises(DTypeError, match=r"squared_distances: .* int32"):
        squared_distances(tk.ones((3, 2), "int32"), tk.ones((4, 2), "int32"))


def test_derivatives(backend: str) -> None:
    tk.testing.check_grads(squared_distances, (points(0, 3, 2), points(1, 4, 2)), order=3)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 2)])
def test_batches(backend: str, axes: tuple[int | None, int | None]) -> None:
    """A batch gives the results of its examples, also in a batch of batches."""
    x, y = points(0, 5, 5, 3, 2), points(1, 5, 5, 5, 2)
    x, y = (a if axis is not None else a[0] for a, axis in zip((x, y), axes, strict=True))
    batched = tk.vmap(tk.vmap(squared_distances, (0, 0)), axes)(x, y)
    for i in range(5):
        one, other = (
            a if axis is None else tk.moveaxis(a, axis, 0)[i] for a, axis in zip((x, y), axes, strict=True)
        )
        for j in range(one.shape[0]):
            assert batched[i, j].tolist() == squared_distances(one[j], other[j]).tolist()
