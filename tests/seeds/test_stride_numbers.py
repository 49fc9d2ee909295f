"""Strides as the article on tensors from scratch works them out, and two of its claims put right."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy
import pytest

import tensorken as tk
from tensorken_core.rewriting.view import View

SEEDS = json.loads((Path(__file__).parents[1] / "fixtures" / "seeds.json").read_text(encoding="utf-8"))
STRIDES: dict[str, Any] = SEEDS["s001_strides"]
RESHAPES = [(case, False) for case in STRIDES["reshape_nocopy"]] + [
    (case, True) for case in STRIDES["reshape_must_copy"]
]


def numpy_strides(array: numpy.ndarray[Any, Any]) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)


@pytest.mark.feature(37, 39)
@pytest.mark.parametrize("case", STRIDES["row_major"], ids=str)
def test_row_major(case: dict[str, Any]) -> None:
    view = View.contiguous(tuple(case["shape"]))
    assert view.strides == tuple(case["strides"])
    assert view.is_contiguous


@pytest.mark.feature(42, 43)
def test_a_transpose_permutes_the_strides() -> None:
    case = STRIDES["transposed"]
    view = View.contiguous(tuple(case["base"])).permute(tuple(case["perm"]))
    assert (view.shape, view.strides, view.offset) == (tuple(case["shape"]), tuple(case["strides"]), 0)
    assert list(view.indices()) == case["buffer_order"]
    assert view.is_contiguous == case["contiguous"]


@pytest.mark.feature(20, 41)
def test_expand_repeats_by_a_stride_of_zero() -> None:
    case = STRIDES["expand"]
    view = View.contiguous(tuple(case["base"])).expand(tuple(case["to"]))
    assert view.strides == tuple(case["strides"])
    assert list(view.indices()) == [0, 1, 2] * 10
    assert view.is_contiguous is False


@pytest.mark.feature(32, 38, 40, 43)
def test_crop_moves_the_offset() -> None:
    case = STRIDES["crop"]
    limits = tuple(tuple(pair) for pair in case["limits"])
    view = View.contiguous(tuple(case["base_shape"])).crop(limits)
    assert (view.shape, view.strides, view.offset) == (
        tuple(case["shape"]),
        tuple(case["strides"]),
        case["offset"],
    )
    assert [view.buffer_index((i, 0)) for i in range(2)] == [1, 3]
    # The article names permute as the one movement that breaks contiguity; a crop within the rows does, too.
    assert view.is_contiguous is False
    assert View.contiguous((3, 2)).crop(((1, 3), (0, 2))).is_contiguous
    assert View.contiguous((3, 2)).flip((0,)).is_contiguous is False


@pytest.mark.feature(28, 44)
@pytest.mark.parametrize(("case", "copies"), RESHAPES, ids=str)
def test_a_reshape_copies_only_if_no_strides_can_say_it(case: dict[str, Any], copies: bool) -> None:
    """The article would copy for a transpose of shape (2, 6) to (2, 2, 3); the strides (1, 6, 2) save the copy."""
    base, to = tuple(case["base"]), tuple(case["to"])
    array = numpy.arange(math.prod(base)).reshape(base)
    view = View.contiguous(base)
    if "perm" in case:
        array, view = array.transpose(case["perm"]), view.permute(tuple(case["perm"]))
    reshaped = view.reshape(to)
    assert (reshaped is None) == copies
    assert numpy.shares_memory(array, array.reshape(to)) == (not copies)
    if reshaped is not None:
        assert reshaped.strides == tuple(case["strides"]) == numpy_strides(array.reshape(to))
        assert list(reshaped.indices()) == array.ravel().tolist()


@pytest.mark.feature(62)
def test_from_the_buffer_back_to_the_index() -> None:
    """The article's quotient and remainder hold for whole tensors; after a crop the strides must be peeled in turn."""
    case = STRIDES["inverse"]
    view = View(tuple(case["shape"]), tuple(case["strides"]), case["offset"])
    index = tuple(case["index"])
    assert view.buffer_index(index) == case["element"]
    assert view.tensor_index(case["element"]) == index
    article = tuple(
        (case["element"] - view.offset) // stride % size
        for stride, size in zip(view.strides, view.shape, strict=True)
    )
    assert article == (1, 0) != index
    with pytest.raises(IndexError):
        view.tensor_index(3)
    expanded = View.contiguous((1, 3)).expand((2, 3))
    assert list(expanded.tensor_indices(1)) == [(0, 1), (1, 1)]
    flipped = View.contiguous((4,)).flip((0,))
    assert [flipped.tensor_index(i) for i in range(4)] == [(3,), (2,), (1,), (0,)]


@pytest.mark.feature(9, 26, 36)
def test_tensors_walk_their_buffers_as_views_say(backend: str) -> None:
    base = tk.linspace(0.0, 11.0, 12)
    moved = base.reshape(6, 2).permute(1, 0)
    assert moved.ravel().tolist() == STRIDES["transposed"]["buffer_order"]
    part = moved.reshape(2, 2, 3)[1, :, 1:]
    del base, moved
    assert part.tolist() == [[3.0, 5.0], [9.0, 11.0]]


@pytest.mark.feature(26, 28, 30)
def test_movement_on_numpy_shares_memory() -> None:
    with tk.use_backend("numpy"):
        t = tk.linspace(0.0, 11.0, 12).reshape(6, 2)
        buffer = memory(t)
        for moved in (t.permute(1, 0), t[1:3], t.reshape(3, 4), t.permute(1, 0).reshape(2, 2, 3), t.flip(0)):
            assert numpy.shares_memory(buffer, memory(moved))
        for computed in (t.exp(), t + 0.0, t.sum(0), t.pad([(0, 1), (0, 0)]), t.permute(1, 0).reshape(12)):
            assert not numpy.shares_memory(buffer, memory(computed))


def memory(t: tk.Tensor) -> Any:
    """The numpy array behind a tensor on the numpy backend."""
    return t.interpreter.value(t.representation)  # type: ignore[attr-defined]


@pytest.mark.feature(20, 45, 46)
def test_broadcasting_a_billion_elements_takes_no_memory() -> None:
    import tracemalloc

    with tk.use_backend("numpy"):
        one = tk.ones((1, 1, 1))
        tracemalloc.start()
        try:
            big = one.expand((1000, 1000, 1000))
            assert big.size == 10**9
            assert big[999, 999, 999].item() == 1.0
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 1_000_000
