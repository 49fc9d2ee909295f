"""Elements by their strides, against numpy's views."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tensorken as tk
from core.tests.support import FUSED, STACKS, array, f64
from tensorken_core.errors import ArgumentError, IndexingError, ShapeError
from tensorken_reference.backend import Reference

pytestmark = pytest.mark.usefixtures("on_numpy")


@st.composite
def layouts(draw):
    """A shape, strides and an offset, some of which reach beyond 24 elements."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    strides = tuple([draw(st.integers(-9, 9)) for _ in shape])
    return shape, strides, draw(st.integers(-2, 25))


@pytest.mark.feature(52)
@given(layouts())
def test_as_strided_is_numpys_view(layout):
    shape, strides, offset = layout
    values = np.arange(24.0)
    reached = np.full(shape, offset)
    for index, stride in zip(np.indices(shape), strides, strict=True):
        reached += index * stride
    for backend in (FUSED, STACKS["Required()"], Reference()):
        x = f64(values.reshape(2, 3, 4), backend)
        if math.prod(shape) and (reached.min() < 0 or reached.max() > 23):
            with pytest.raises(IndexingError, match=r"^as_strided: .* spans elements .* but there are 24"):
                x.as_strided(shape, strides, offset)
            continue
        view = np.lib.stride_tricks.as_strided(
            values[max(offset, 0) :], shape, [8 * stride for stride in strides]
        )
        got = tk.as_strided(x, shape, strides, offset)
        assert got.shape == view.shape
        assert array(got).tobytes() == view.tobytes()


@pytest.mark.feature(52, 171)
def test_cotangents_of_repeated_elements_add_up():
    x = f64([1.0, 2.0, 3.0, 4.0])
    windows = lambda x: tk.as_strided(x, (3, 2), (1, 1))  # noqa: E731
    assert tk.grad(lambda x: windows(x).sum())(x).tolist() == [1.0, 2.0, 2.0, 1.0]
    tk.testing.check_grads(lambda x: (windows(x) ** 3).sum(), (x,), order=2)
    batched = tk.vmap(lambda x: tk.as_strided(x, 2, -2, 3))(f64(np.arange(12.0).reshape(3, 4)))
    assert batched.tolist() == [[3.0, 1.0], [7.0, 5.0], [11.0, 9.0]]


@pytest.mark.feature(52, 55)
@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (((2, 2), (1,)), ShapeError, r"stride for each axis, got shape \(2, 2\) and strides \(1,\)"),
        (((-1,), (1,)), ShapeError, r"a size of at least 0"),
        (((2,), (0.5,)), ArgumentError, r"must be ints"),
        (
            ((5,), (1,)),
            IndexingError,
            r"shape \(5,\) with strides \(1,\) from 0 spans elements 0 to 4, .* are 4",
        ),
        (((2,), (-1,)), IndexingError, r"spans elements -1 to 0"),
        (((), (), 4), IndexingError, r"spans elements 4 to 4"),
    ],
)
def test_strides_out_of_bounds_are_refused(arguments, error, words):
    with pytest.raises(error, match=rf"^as_strided: .*{words}"):
        tk.as_strided(tk.zeros((2, 2)), *arguments)
