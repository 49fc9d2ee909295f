"""The shape strider against numpy's strides, and its inverse against a search through every index."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.lib.stride_tricks import as_strided

from tensorken_core.errors import AxisError, IndexingError, ShapeError
from tensorken_core.rewriting.view import View


def placed(array, buffer):
    """Shape, strides and offset of a numpy array in its buffer; strides that no index uses are None."""
    offset = (array.ctypes.data - buffer.ctypes.data) // buffer.itemsize if array.size else None
    strides = [
        s // array.itemsize if n > 1 and array.size else None
        for n, s in zip(array.shape, array.strides, strict=True)
    ]
    return array.shape, strides, offset


def assert_same(view, array, buffer):
    shape, strides, offset = placed(array, buffer)
    assert view.shape == shape
    assert view.size == array.size
    assert [
        s if known is not None else None for s, known in zip(view.strides, strides, strict=True)
    ] == strides
    assert offset is None or view.offset == offset
    assert (
        list(view.indices()) == array.ravel().tolist()
    )  # the buffer is arange, so each element is its own index
    assert view.is_contiguous == array.flags.c_contiguous
    for index in np.ndindex(array.shape):
        assert view.buffer_index(index) == array[index]
    if array.size:
        assert view.bounds == (array.min(), array.max())


def some_slice(size):
    bound = st.none() | st.integers(-size - 2, size + 2)
    return st.builds(slice, bound, bound, st.none() | st.integers(-3, 3).filter(bool))


def factorisations(size):
    """Shapes of `size` elements, with axes of size 1 among them."""
    if size == 0:
        return st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(lambda shape: 0 in shape).map(tuple)

    @st.composite
    def draw_shape(draw):
        shape, left = [], size
        for _ in range(draw(st.integers(1, 4))):
            shape.append(draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0])))
            left //= shape[-1]
        return tuple(draw(st.permutations([*shape, left])))

    return draw_shape()


@st.composite
def moved(draw, ops=("permute", "expand", "flip", "crop", "slice", "reshape"), smallest=0):
    """A view after a random chain of movements, the numpy array after the same chain, and the buffer."""
    shape = tuple(draw(st.lists(st.integers(smallest, 4), max_size=4)))
    view = View.contiguous(shape)
    buffer = np.arange(view.size)
    array = buffer.reshape(shape)
    for op in draw(st.lists(st.sampled_from(ops), max_size=6)):
        shape, axes = view.shape, range(len(view.shape))
        if op == "permute":
            order = draw(st.permutations(list(axes)))
            view, array = view.permute(order), array.transpose(order)
        elif op == "expand":
            target = tuple(draw(st.integers(smallest, 3)) if n == 1 else n for n in shape)
            view, array = view.expand(target), np.broadcast_to(array, target)
        elif op == "flip":
            flipped = tuple(axis for axis in axes if draw(st.booleans()))
            view, array = view.flip(flipped), np.flip(array, flipped) if shape else array
        elif op == "crop":
            starts = [draw(st.integers(0, n - smallest)) for n in shape]
            limits = [(a, draw(st.integers(a + smallest, n))) for a, n in zip(starts, shape, strict=True)]
            view, array = view.crop(limits), array[(*(slice(*pair) for pair in limits), ...)]
        elif op == "slice":
            slices = tuple(draw(some_slice(n)) for n in shape[: draw(st.integers(0, len(shape)))])
            view, array = view.slice_axes(slices), array[(*slices, ...)]  # `...`: an array, not a number
        else:
            target = draw(factorisations(view.size))
            reshaped = view.reshape(target)
            if reshaped is not None:
                view, array = reshaped, array.reshape(target, copy=False)
    return view, array, buffer


@pytest.mark.feature(36, 37, 38, 40, 41, 42, 43, 52, 53, 54)
@given(moved())
def test_chain_of_movements_is_numpys(case):
    view, array, buffer = case
    assert_same(view, array, buffer)
    assert not array.size or np.shares_memory(array, buffer)


@pytest.mark.feature(44)
@given(moved(), st.data())
def test_reshape_copies_exactly_where_numpy_copies(case, data):
    view, array, buffer = case
    target = data.draw(factorisations(view.size))
    reshaped = view.reshape(target)
    try:
        expected = array.reshape(target, copy=False)
    except ValueError:
        assert reshaped is None
    else:
        assert reshaped is not None
        assert_same(reshaped, expected, buffer)


@pytest.mark.feature(62)
@given(moved(ops=("permute", "expand", "flip", "crop"), smallest=1), st.data())
def test_inverse_of_the_index_map(case, data):
    view, _array, _buffer = case
    index = tuple(data.draw(st.integers(0, n - 1)) for n in view.shape)
    element = view.buffer_index(index)
    assert index in list(view.tensor_indices(element))
    assert view.buffer_index(view.tensor_index(element)) == element
    if 0 not in view.strides:
        assert view.tensor_index(element) == index


@pytest.mark.feature(62)
@given(moved())
def test_tensor_indices_are_all_in_row_major_order(case):
    view, array, buffer = case
    for element in range(-1, len(buffer) + 1):
        expected = [tuple(index) for index in np.argwhere(array == element).tolist()]
        assert list(view.tensor_indices(element)) == expected
        if not expected:
            with pytest.raises(IndexingError, match=f"has no element {element} of the buffer"):
                view.tensor_index(element)


@pytest.mark.feature(52, 62)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-4, 4)), max_size=4),
    st.integers(0, 40),
    st.integers(0, 60),
)
def test_as_strided_is_numpys_or_refused(axes, offset, buffer_size):
    shape, strides = tuple(n for n, _ in axes), tuple(s for _, s in axes)
    places = [offset + sum(map(int.__mul__, index, strides)) for index in np.ndindex(shape)]
    if all(0 <= place < buffer_size for place in places) and (places or offset <= buffer_size):
        view = View.as_strided(shape, strides, offset, buffer_size)
        buffer = np.arange(buffer_size)
        array = as_strided(buffer[offset:], shape, [8 * s for s in strides]).astype(int)
        assert array.ravel().tolist() == list(view.indices()) == places
        for element in {*places, -1, buffer_size}:  # also where elements overlap
            expected = [tuple(index) for index in np.argwhere(array == element).tolist()]
            assert list(view.tensor_indices(element)) == expected
    else:
        with pytest.raises(ShapeError, match="as_strided"):
            View.as_strided(shape, strides, offset, buffer_size)


@pytest.mark.feature(39)
@pytest.mark.parametrize(
    ("shape", "strides"),
    [((3, 3), (3, 1)), ((6, 2), (2, 1)), ((2, 3, 4), (12, 4, 1)), ((7,), (1,)), ((), ())],
)
def test_row_major_strides(shape, strides):
    view = View.contiguous(shape)
    assert view == View(shape, strides, 0)
    assert view.is_contiguous
    assert view.indices() == range(view.size)


@pytest.mark.feature(42, 43)
def test_transpose_walks_the_buffer_in_columns():
    view = View.contiguous((6, 2)).permute((1, 0))
    assert view == View((2, 6), (1, 2), 0)
    assert list(view.indices()) == [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]
    assert not view.is_contiguous


@pytest.mark.feature(41)
def test_expand_sets_the_stride_to_zero():
    assert View.contiguous((1, 3)).expand((10, 3)).strides == (0, 1)


@pytest.mark.feature(40)
def test_crop_moves_the_offset():
    cropped = View.contiguous((3, 2)).crop(((0, 2), (1, 2)))
    assert cropped == View((2, 1), (2, 1), 1)
    assert cropped.crop(((1, 2), (0, 1))) == View((1, 1), (2, 1), 3)


@pytest.mark.feature(40, 53, 54)
def test_crop_after_flip():
    backwards = View.contiguous((4,)).flip((0,))
    assert list(backwards.crop(((0, 2),)).indices()) == [3, 2]
    assert list(backwards.crop(((1, 4),)).flip((0,)).indices()) == [0, 1, 2]
    assert list(backwards.slice_axes([slice(None, None, -2)]).indices()) == [0, 2]


@pytest.mark.feature(43)
@pytest.mark.parametrize(
    ("view", "flag"),
    [
        (View.contiguous((4, 3)), True),
        (View.contiguous((4, 3)).reshape((2, 6)), True),
        (View.contiguous((4, 3)).permute((1, 0)), False),
        (View.contiguous((4, 1)).permute((1, 0)), True),  # an axis of size 1 has no order
        (View.contiguous((1, 3)).expand((4, 3)), False),
        (View.contiguous((1, 3)).expand((1, 3)), True),
        (View.contiguous((4, 3)).flip((1,)), False),
        (View.contiguous((4, 1)).flip((1,)), True),
        (View.contiguous((4, 3)).flip((0, 1)).flip((1, 0)), True),
        (View.contiguous((4, 3)).crop(((1, 3), (0, 3))), True),  # full rows: contiguous, from offset 3
        (View.contiguous((4, 3)).crop(((0, 4), (0, 2))), False),
        (View.contiguous((4, 3)).crop(((2, 2), (0, 2))), True),  # an empty view is always contiguous
        (View.contiguous((6,)).slice_axes([slice(None, None, 2)]), False),
        (View.as_strided((3, 3), (1, 1), 0, 5), False),
    ],
)
def test_contiguity_of_each_movement(view, flag):
    assert view.is_contiguous is flag


@pytest.mark.feature(44)
@pytest.mark.parametrize(
    ("view", "shape", "strides"),
    [
        (View.contiguous((24,)), (3, 2, 4), (8, 4, 1)),
        (View.contiguous((2, 1, 3, 1, 4)), (2, 3, 4), (12, 4, 1)),
        (View.contiguous((2, 1, 3, 1, 4)), (2, 3, 4, 1), (12, 4, 1, 1)),
        (View.contiguous((10, 10)).permute((1, 0)), (5, 2, 5, 2), (2, 1, 20, 10)),
        (View.contiguous((6, 2)).permute((1, 0)), (2, 2, 3), (1, 6, 2)),  # splits an axis: no copy is needed
        (View.contiguous((1, 1)).expand((2, 3)), (3, 2), (0, 0)),
        (View.contiguous((2, 3)).flip((0, 1)), (6,), (-1,)),
        (
            View.contiguous((1, 2, 3)).permute((1, 0, 2)),
            (6,),
            (1,),
        ),  # the stride of an axis of size 1 is irrelevant
        (View.contiguous((1,)), (), ()),
        (View.contiguous(()), (1, 1), (1, 1)),
    ],
)
def test_reshape_without_a_copy(view, shape, strides):
    reshaped = view.reshape(shape)
    assert (reshaped.shape, reshaped.strides, reshaped.offset) == (shape, strides, view.offset)
    assert list(reshaped.indices()) == list(view.indices())


@pytest.mark.feature(44)
@pytest.mark.parametrize("shape", [(12,), (4, 3), (3, 4)])
def test_reshape_that_must_copy(shape):
    assert View.contiguous((6, 2)).permute((1, 0)).reshape(shape) is None


@pytest.mark.feature(44)
def test_reshape_of_an_empty_view_never_copies():
    nothing = View.contiguous((3, 4)).permute((1, 0)).crop(((0, 4), (1, 1)))
    assert nothing.reshape((0, 7)).shape == (0, 7)
    assert list(nothing.reshape((5, 0, 2)).indices()) == []


@pytest.mark.feature(62)
def test_inverse_where_peeling_by_the_axes_own_order_fails():
    assert View((2, 2), (3, 1), 1).tensor_index(5) == (
        1,
        1,
    )  # (5 - 1) // 3 % 2, (5 - 1) // 1 % 2 gives (1, 0)
    assert View((2, 2), (3, 1), 1).tensor_index(4) == (1, 0)
    with pytest.raises(IndexingError, match="has no element 3 of the buffer"):
        View((2, 2), (3, 1), 1).tensor_index(3)  # cropped away
    assert list(View((2, 2), (0, 1), 0).tensor_indices(1)) == [(0, 1), (1, 1)]
    assert View((2, 3), (-3, -1), 5).tensor_index(0) == (1, 2)


@pytest.mark.feature(52, 62)
def test_overlapping_elements_are_found_in_row_major_order():
    assert list(View.as_strided((3, 3), (1, 2), 0, 7).tensor_indices(2)) == [(0, 1), (2, 0)]
    assert list(View.as_strided((3, 3), (1, 1), 0, 5).tensor_indices(2)) == [(0, 2), (1, 1), (2, 0)]
    assert View.as_strided((3, 3), (1, 2), 0, 7).tensor_index(2) == (0, 1)


@pytest.mark.feature(62)
def test_inverse_needs_no_search_through_a_large_view():
    view = View.contiguous((10**6, 10**6, 10**6)).permute((2, 0, 1)).flip((1,)).crop(((5, 10**6),) * 3)
    index = (123_456, 999_990, 7)
    assert view.tensor_index(view.buffer_index(index)) == index


@pytest.mark.feature(36)
def test_a_view_is_a_value():
    view = View.contiguous((2, 3))
    assert {view: 1}[View((2, 3), (3, 1))] == 1
    with pytest.raises(AttributeError):
        view.offset = 1
    assert View.contiguous([2, 3]).permute([1, 0]).flip([0]) == view.permute((1, 0)).flip((0,))


def test_three_uneven_axes_iterate_in_row_major_order():
    view = View.contiguous((5, 4, 3)).crop(((0, 2), (1, 3), (0, 2))).permute((2, 0, 1)).flip((1,))
    assert list(view.indices()) == [view.buffer_index(i) for i in itertools.product(range(2), repeat=3)]


MATRIX = View.contiguous((2, 3))


@pytest.mark.feature(52, 55)
@pytest.mark.parametrize(
    ("error", "call", "message"),
    [
        (ShapeError, lambda: View.contiguous((2, -1)), r"contiguous: shape (2, -1) has a negative size"),
        (
            ShapeError,
            lambda: MATRIX.reshape((4,)),
            r"reshape: cannot reshape (2, 3) (6 elements) to (4,) (4)",
        ),
        (ShapeError, lambda: MATRIX.reshape((-1,)), r"reshape: cannot reshape (2, 3) (6 elements) to (-1,)"),
        (
            AxisError,
            lambda: MATRIX.permute((1, 1)),
            r"permute: the order (1, 1) is not a permutation of the axes of shape (2, 3)",
        ),
        (AxisError, lambda: MATRIX.permute((0,)), r"permute: the order (0,) is not"),
        (
            AxisError,
            lambda: View.contiguous((2, 2, 2)).permute((1, 1, 1)),
            r"permute: the order (1, 1, 1) is not",
        ),
        (
            ShapeError,
            lambda: MATRIX.expand((2, 2, 3)),
            r"expand: cannot expand (2, 3) to (2, 2, 3): the number of axes differs",
        ),
        (
            ShapeError,
            lambda: MATRIX.expand((2, 6)),
            r"expand: cannot expand (2, 3) to (2, 6): axis 1 has size 3",
        ),
        (
            AxisError,
            lambda: MATRIX.flip((2,)),
            r"flip: axis 2 is out of range for shape (2, 3)",
        ),
        (AxisError, lambda: MATRIX.flip((1, 1)), r"flip: axes (1, 1) name an axis twice"),
        (
            ShapeError,
            lambda: MATRIX.crop(((0, 1),)),
            r"crop: shape (2, 3) needs 2 (start, end) pairs, got 1",
        ),
        (
            ShapeError,
            lambda: MATRIX.crop(((0, 1), (2, 4))),
            r"limits (2, 4) of axis 1 do not fit shape (2, 3)",
        ),
        (ShapeError, lambda: MATRIX.crop(((0, 1), (2, 1))), r"0 <= start <= end <= 3"),
        (
            ShapeError,
            lambda: MATRIX.crop(((0, 3), (0, 3))),
            r"limits (0, 3) of axis 0 do not fit shape (2, 3)",
        ),
        (
            ShapeError,
            lambda: MATRIX.crop(((-1, 1), (0, 3))),
            r"limits (-1, 1) of axis 0 do not fit shape (2, 3)",
        ),
        (ShapeError, lambda: MATRIX.slice_axes([slice(None, None, 0)]), r"the step of axis 0 is zero"),
        (ShapeError, lambda: MATRIX.slice_axes([slice(None)] * 3), r"3 slices for the 2 axes of (2, 3)"),
        (
            ShapeError,
            lambda: View.as_strided((2,), (1, 1), 0, 9),
            r"shape (2,) and strides (1, 1) must be equally",
        ),
        (
            ShapeError,
            lambda: View.as_strided((3, 2), (2, 1), 1, 6),
            r"shape (3, 2) with strides (2, 1) and offset 1 spans elements 1 to 6, but a buffer of 6 has",
        ),
        (ShapeError, lambda: View.as_strided((3,), (-1,), 1, 6), r"spans elements -1 to 1"),
        (IndexingError, lambda: MATRIX.buffer_index((0, 3)), r"(0, 3) is not a valid index for shape (2, 3)"),
        (IndexingError, lambda: MATRIX.buffer_index((0,)), r"(0,) is not a valid index for shape (2, 3)"),
        (ShapeError, lambda: View.contiguous((0, 2)).bounds, r"a view of shape (0, 2) has no elements"),
    ],
)
def test_errors_are_one_clear_line(error, call, message):
    with pytest.raises(error, match=re.escape(message)) as caught:
        call()
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)
