"""Gradient clipping: the norm of a tree is over all its numbers, and directions are kept."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken_core import tree
from tensorken_core.errors import ArgumentError


def gradients(size: float = 1.0) -> Any:
    """A tree of norm 13 * size."""
    return {
        "w": tk.tensor([[3.0 * size, -4.0 * size]]),
        "b": (tk.tensor(12.0 * size, tk.float64), tk.zeros(0)),
    }


def numbers(gradients: Any) -> list[float]:
    return [x for leaf in tree.leaves(gradients) for x in leaf.ravel().tolist()]


def test_the_norm_is_over_all_leaves(backend: str) -> None:
    assert nn.global_norm(gradients()).item() == 13.0
    assert nn.global_norm({"nothing": ()}).item() == 0.0
    half = tk.full((4,), 300.0, dtype=tk.float16)  # its square overflows float16
    assert nn.global_norm(half).item() == 600.0


def test_a_large_tree_is_scaled_down_and_keeps_its_direction(backend: str) -> None:
    clipped = nn.clip_by_global_norm(gradients(), 6.5)
    assert numbers(clipped) == pytest.approx([6.0, 1.5, -2.0])  # b, then w
    assert [x.dtype for x in tree.leaves(clipped)] == [x.dtype for x in tree.leaves(gradients())]


@pytest.mark.parametrize("size", [0.0, 1e-30, 0.1, 1.0])
def test_a_small_tree_is_unchanged(backend: str, size: float) -> None:
    assert numbers(nn.clip_by_global_norm(gradients(size), 13.0)) == numbers(gradients(size))


def test_nan_and_infinity_are_not_hidden() -> None:
    clipped = nn.clip_by_global_norm([tk.tensor([1.0, math.nan]), tk.ones(2)], 1.0)
    assert all(math.isnan(x) for x in numbers(clipped))
    clipped = nn.clip_by_global_norm([tk.tensor([math.inf, 1.0])], 1.0)
    assert math.isnan(numbers(clipped)[0]) and numbers(clipped)[1] == 0.0


@pytest.mark.parametrize("size", [1e-40, 3e-30, 1e25, 2.5e37])
def test_neither_the_norm_nor_the_direction_overflows_or_underflows(size: float, backend: str) -> None:
    """Of 3e38, four times, not even the norm is a finite float32."""
    tree_of_float32 = [tk.tensor([3.0 * size, -4.0 * size]), tk.tensor(12.0 * size)]
    assert nn.global_norm(tree_of_float32).item() == pytest.approx(13.0 * size, rel=1e-4)
    clipped = numbers(nn.clip_by_global_norm(tree_of_float32, size))
    assert clipped == pytest.approx([3.0 / 13.0 * size, -4.0 / 13.0 * size, 12.0 / 13.0 * size], rel=1e-4)
    largest = [tk.full((4,), 3e38)]
    assert numbers(nn.clip_by_global_norm(largest, 1.0)) == pytest.approx([0.5] * 4)
    assert tk.grad(lambda x: nn.global_norm([x]))(tk.zeros(2)).tolist() == [0.0, 0.0]


def test_numbers_can_be_clipped_by_value(backend: str) -> None:
    clipped = nn.clip_by_value(gradients(), 3.5)
    assert numbers(clipped) == [3.5, 3.0, -3.5]
    assert [x.dtype for x in tree.leaves(clipped)] == [x.dtype for x in tree.leaves(gradients())]


def test_clipping_is_compiled_with_the_step() -> None:
    optimizer, parameters = nn.SGD(1.0), tree.map(tk.zeros_like, gradients())

    def step(parameters: Any, slopes: Any, state: Any) -> Any:
        updated, state = optimizer.update(parameters, nn.clip_by_global_norm(slopes, 1.0), state)
        return updated, state, nn.global_norm(slopes)

    updated, _, norm = tk.jit(step)(parameters, gradients(), optimizer.init(parameters))
    assert norm.item() == 13.0
    assert nn.global_norm(updated).item() == pytest.approx(1.0)


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan])
def test_limits_that_are_not_positive_are_refused(limit: float) -> None:
    with pytest.raises(ArgumentError, match=f"clip_by_global_norm: the limit must be positive, got {limit}"):
        nn.clip_by_global_norm(gradients(), limit)
    with pytest.raises(ArgumentError, match=f"clip_by_value: the limit must be positive, got {limit}"):
        nn.clip_by_value(gradients(), limit)


def test_an_infinite_limit_clips_nothing() -> None:
    assert nn.clip_by_global_norm([tk.tensor([3.0, 4.0])], float("inf"))[0].tolist() == [3.0, 4.0]


def test_float16_is_clipped_by_a_float32_factor() -> None:
    (clipped,) = nn.clip_by_global_norm([tk.tensor([6e4, 6e4], tk.float16)], 1e-3)
    assert clipped.dtype is tk.float16
    assert clipped.tolist() == pytest.approx([1e-3 / 2**0.5] * 2, rel=1e-3)
