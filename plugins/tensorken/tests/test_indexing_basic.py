"""Basic indexing, reading and writing: ints, slices with any step, None and `...`, against numpy, with derivatives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import tensorken as tk
from core.tests.examples import examples
from core.tests.support import FUSED, STACKS, Counting, array, f64
from tensorken_core.errors import IndexingError
from tensorken_core.rewriting.fuse import Fuse

pytestmark = pytest.mark.usefixtures("on_numpy")


@st.composite
def arrays_and_keys(draw):
    """An array of integers, and a key of numpy's basic indexing for its shape."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    values = np.arange(1.0, 1.0 + math.prod(shape)).reshape(shape)
    key = draw(hnp.basic_indices(shape, allow_ellipsis=True, allow_newaxis=True, max_dims=6))
    return values, key


def cell(values, key):
    """numpy's result, always as an array."""
    return np.asarray(values[key])


# ---- reading -----------------------------------------------------------------------------------------------


@pytest.mark.feature(24, 54, 56, 168)
@settings(max_examples=examples(300))
@given(arrays_and_keys())
def test_reading_is_numpys(drawn):
    values, key = drawn
    expected = cell(values, key)
    for stack in STACKS.values():
        got = f64(values, stack)[key]
        assert got.shape == expected.shape
        assert array(got).tolist() == expected.tolist()


@pytest.mark.feature(54, 168)
@given(st.integers(0, 7), st.slices(9), st.slices(9))
def test_slices_with_every_start_stop_and_step(size, one, two):
    """Also far beyond both ends."""
    values = np.arange(float(size * 3)).reshape(size, 3)
    assert array(f64(values)[one]).tolist() == values[one].tolist()
    assert array(f64(values)[one, two]).tolist() == values[one, two].tolist()
    wide = slice(one.start and one.start * 5, one.stop and -one.stop * 5, one.step and -one.step)
    assert array(f64(values)[wide]).tolist() == values[wide].tolist()


@pytest.mark.feature(24, 25, 56)
def test_the_forms_of_a_key():
    values = np.arange(24.0).reshape(2, 3, 4)
    x = f64(values)
    assert x[1].tolist() == values[1].tolist()
    assert x[1, 2, 3].item() == 23.0
    assert x[1, 2, 3].shape == ()
    assert x[-1, -1, -1].item() == 23.0
    for key in (
        (..., 0), (0, ...), (0, ..., 0), (...,), ..., (), None, (None, ...), (slice(None), None, 1),
        (slice(None, None, -1), slice(None, None, 2)), (np.int64(1), np.int32(-1)), slice(1, 1), (slice(5, 9),),
        (slice(None), slice(2, 0, -1), slice(-100, 100, 3)), (0, 0, 0, None), (None, 0, None, 0, None, 0, None),
    ):  # fmt: skip
        assert array(x[key]).tolist() == cell(values, key).tolist(), key
        assert x[key].shape == cell(values, key).shape, key
    one = tk.tensor(1)
    assert x[one].tolist() == values[1].tolist()
    assert x[one, tk.tensor(-1) : one + 2].tolist() == values[1, -1:3].tolist()
    assert x.at[1, ::2].get().tolist() == values[1, ::2].tolist()


@pytest.mark.feature(56)
def test_a_scalar_and_an_empty_tensor():
    assert f64(2.0)[...].item() == 2.0
    assert f64(2.0)[()].item() == 2.0
    assert f64(2.0)[None].tolist() == [2.0]
    assert tk.zeros((0, 3))[::-1].shape == (0, 3)
    assert tk.zeros((0, 3))[:, 1].shape == (0,)
    assert tk.zeros((2, 0))[1].shape == (0,)
    with pytest.raises(IndexingError, match=r"0 is out of range for axis 0 of shape \(0, 3\)"):
        tk.zeros((0, 3))[0]


@pytest.mark.feature(56)
@given(arrays_and_keys(), st.integers(0, 5))
def test_a_key_that_does_not_fit_is_refused(drawn, beyond):
    values, _ = drawn
    x = f64(values)
    with pytest.raises(IndexingError, match=r"^index: \d+ indices for shape"):
        x[(0,) * (values.ndim + 1)] if 0 not in values.shape else x[(slice(None),) * (values.ndim + 1)]
    if values.ndim:
        for index in (values.shape[-1] + beyond, -values.shape[-1] - 1 - beyond):
            with pytest.raises(
                IndexingError, match=rf"^index: {index} is out of range for axis {values.ndim - 1} of"
            ):
                x[..., index]


@pytest.mark.feature(26, 40)
def test_reading_copies_only_the_requested_elements():
    """A slice with a step is cropped first: no op runs on the full array or on elements outside the range."""
    backend = Counting()
    x = tk.tensor(np.zeros((1000, 1000)), backend=Fuse(backend))
    backend.clear()
    x[3:5, ::100].tolist()
    x[17].tolist()
    assert max(math.prod(shape) for _, shape in backend.sizes) <= 2000


# ---- writing -----------------------------------------------------------------------------------------------

CHANGES = {
    "set": lambda whole, key, value: whole.__setitem__(key, value),
    "add": lambda whole, key, value: whole.__setitem__(key, whole[key] + value),
    "multiply": lambda whole, key, value: whole.__setitem__(key, whole[key] * value),
}


@pytest.mark.feature(13, 168)
@pytest.mark.parametrize("change", CHANGES)
@given(drawn=arrays_and_keys(), scalar=st.booleans())
def test_writing_is_numpys(change, drawn, scalar):
    values, key = drawn
    part = cell(values, key)
    value = 7.0 if scalar else -np.arange(float(part.size)).reshape(part.shape)
    expected = values.copy()
    CHANGES[change](expected, key, value)
    for stack in ("Fuse(Numpy())", "Fuse(Strict())", "Fuse(Required())"):
        x = f64(values, STACKS[stack])
        given_value = value if scalar else f64(value, STACKS[stack])
        got = getattr(x.at[key], change)(given_value)
        assert got.shape == expected.shape
        assert array(got).tolist() == expected.tolist()
        assert array(x).tolist() == values.tolist()


@pytest.mark.feature(13)
def test_written_values_broadcast_and_take_the_dtype():
    x = tk.zeros((2, 3), "int32")
    assert x.at[:, 1:].set([5, 6]).tolist() == [[0, 5, 6], [0, 5, 6]]
    assert x.at[0].set(tk.tensor(4)).tolist() == [[4, 4, 4], [0, 0, 0]]
    assert x.at[0, 0].set(2.7).tolist() == [[2, 0, 0], [0, 0, 0]]
    assert x.at[0, 0].set(2.7).dtype is tk.int32
    assert x.at[...].set(True).tolist() == [[1, 1, 1]] * 2
    assert tk.zeros(3, "bool").at[1].set(True).tolist() == [False, True, False]
    assert f64([1.0, 2.0]).at[0].set(3).dtype is tk.float64


@pytest.mark.feature(171)
def test_infinities_elsewhere_do_no_harm():
    x = f64([math.inf, 1.0, math.nan, -math.inf])
    assert x[1].item() == 1.0
    assert x[1::5].tolist() == [1.0]
    assert x.at[0].set(5.0)[:2].tolist() == [5.0, 1.0]
    assert tk.grad(lambda x: x[1] * x[1])(x).tolist() == [0.0, 2.0, 0.0, 0.0]
    assert tk.grad(lambda x: x.at[0].set(2.0)[:2].sum())(x).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert array(x.at[1].set(-0.0)).tobytes() == np.array([math.inf, -0.0, math.nan, -math.inf]).tobytes()


# ---- derivatives -------------------------------------------------------------------------------------------


@pytest.mark.feature(171)
@given(arrays_and_keys())
def test_the_cotangent_of_a_part_lies_in_its_place(drawn):
    values, key = drawn
    part = cell(values, key)
    expected = np.zeros_like(values)
    expected[key] = np.arange(1.0, 1.0 + part.size).reshape(part.shape)
    cotangent = f64(expected[key])
    y, pull_back = tk.vjp(lambda x: x[key], f64(values))
    assert array(y).tolist() == part.tolist()
    assert array(pull_back(cotangent)[0]).tolist() == expected.tolist()
    pushed = tk.jvp(lambda x: x[key], (f64(values),), (f64(values * 2.0),))[1]
    assert array(pushed).tolist() == (2.0 * part).tolist()


@pytest.mark.feature(171)
@pytest.mark.parametrize("change", CHANGES)
@given(drawn=arrays_and_keys())
def test_the_derivatives_of_writing(change, drawn):
    """In both modes, with respect to the tensor and the written value, the derivatives equal those of `where`."""
    values, key = drawn
    part = cell(values, key)
    written = f64(np.arange(2.0, 2.0 + part.size).reshape(part.shape))
    mask = np.zeros(values.shape, bool)
    mask[key] = True
    weights = f64(np.cos(values))

    def f(x, v):
        return (getattr(x.at[key], change)(v) * weights).sum()

    by_x, by_v = tk.grad(f, (0, 1))(f64(values), written)
    inside = {"set": 0.0, "add": 1.0, "multiply": None}[change]
    factor = np.zeros_like(values)
    factor[key] = array(written) if inside is None else inside
    np.testing.assert_allclose(array(by_x), np.cos(values) * np.where(mask, factor, 1.0), rtol=1e-14)
    scale = part if change == "multiply" else 1.0
    np.testing.assert_allclose(array(by_v), np.cos(part) * scale, rtol=1e-14)
    pushed = tk.jvp(f, (f64(values), written), (f64(values), written))[1].item()
    together = (array(by_x) * values).sum() + (array(by_v) * array(written)).sum()
    assert pushed == pytest.approx(together, rel=1e-11, abs=1e-11)


@pytest.mark.feature(108, 171)
def test_second_derivatives_through_indices():
    f = lambda x: (x[::2] * x[1::2] * x[0]).sum()  # noqa: E731
    tk.testing.check_grads(f, (f64([0.5, -1.0, 2.0, 0.3]),), order=3)
    g = lambda x, v: (x.at[1:3].multiply(v) * x).sum()  # noqa: E731
    tk.testing.check_grads(g, (f64([0.5, -1.0, 2.0, 0.3]), f64([1.5, -0.7])), order=3)
    assert f64([1.0]).interpreter is FUSED
