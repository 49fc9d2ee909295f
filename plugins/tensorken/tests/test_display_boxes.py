"""The style "boxes" of printed tensors: exact pictures, numbers that read back, and limits that hold for all shapes."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from tensorken.arrays.display.boxes import boxed, number_text
from tensorken.arrays.display.options import PrintOptions
from tensorken_core.language.dtypes import bool_, float16, float32, float64, int32, int64

INF, NAN = math.inf, math.nan


def normalised(picture):
    """The lines of a picture, with runs of spaces collapsed, and no spaces inside a row's brackets."""
    lines = (re.sub(r"\s+", " ", line) for line in picture.splitlines())
    return [line.replace("[ ", "[").replace(" ]", "]") for line in lines]


def single(numbers):
    return [float(x) for x in np.array(numbers, "float32")]


@pytest.mark.feature(50, 51)
@pytest.mark.parametrize(
    ("shape", "elements", "lines"),
    [
        ((3, 2), [0, 1, 2, 3, 4, 5], ["[0 1]", "[2 3]", "[4 5]"]),
        (
            (3, 2),
            [1, 2.7182817, 7.389056, 20.085537, 54.59815, 148.41316],
            ["[1 2.7182817]", "[7.389056 20.085537]", "[54.59815 148.41316]"],
        ),
        (
            (3, 2),
            [-INF, 0, 0.69314724, 1.0986124, 1.3862945, 1.6094381],
            ["[-inf 0]", "[0.69314724 1.0986124]", "[1.3862945 1.6094381]"],
        ),
        ((6,), [4, 3, 6, 4, 10, 6], ["[4 3 6 4 10 6]"]),
        ((3, 2), [12, 11, 104, 102, 1008, 1004], ["[12 11]", "[104 102]", "[1008 1004]"]),
        ((1,), [6], ["[6]"]),
        ((1, 1), [6], ["[6]"]),
        ((1, 2), [2, 4], ["[2 4]"]),
        ((2, 1), [1, 5], ["[1]", "[5]"]),
        ((), [2], ["2"]),
        (
            (8, 3),
            [0, 8, 16, 1, 9, 17, 2, 10, 18, 3, 11, 19, 4, 12, 20, 5, 13, 21, 6, 14, 22, 7, 15, 23],
            [f"[{i} {i + 8} {i + 16}]" for i in range(8)],
        ),
        (
            (5, 2, 2),
            [0, 1, 2, 3] * 5,
            [
                "+---------------------------------------------+",
                "| |",
                "| [0 1] [0 1] [0 1] [0 1] [0 1] |",
                "| [2 3] [2 3] [2 3] [2 3] [2 3] |",
                "| |",
                "+---------------------------------------------+",
            ],
        ),
        ((1, 2, 2), range(4), ["+---------+", "| |", "| [0 1] |", "| [2 3] |", "| |", "+---------+"]),
        (
            (6, 6),
            [0] * 7 + [2, 1, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0, 8, 4] + [0] * 15,
            ["[0 0 0 0 0 0]", "[0 2 1 0 0 0]", "[0 4 2 0 0 0]", "[0 8 4 0 0 0]"] + ["[0 0 0 0 0 0]"] * 2,
        ),
        ((4,), [1, 0, 0, 0], ["[1 0 0 0]"]),
        ((3, 4), [1, 0, 0, 0] * 3, ["[1 0 0 0]"] * 3),
        ((12,), [1, 0, 0, 0] * 3, ["[1 0 0 0 1 0 0 0 1 0 0 0]"]),
        ((3, 3), [1, 0, 0, 0, 1, 0, 0, 0, 1], ["[1 0 0]", "[0 1 0]", "[0 0 1]"]),
        (
            (3, 1, 4),
            range(12),
            [
                "+-----------------------------------------------+",
                "| |",
                "| [0 1 2 3] [4 5 6 7] [8 9 10 11] |",
                "| |",
                "+-----------------------------------------------+",
            ],
        ),
        (
            (1, 3, 4),
            [12, 15, 18, 21, 13, 16, 19, 22, 14, 17, 20, 23],
            [
                "+-------------------+",
                "| |",
                "| [12 15 18 21] |",
                "| [13 16 19 22] |",
                "| [14 17 20 23] |",
                "| |",
                "+-------------------+",
            ],
        ),
        (
            (3, 3, 4),
            [0, 15, 36, 63, 0, 16, 38, 66, 0, 17, 40, 69]
            + [48, 75, 108, 147, 52, 80, 114, 154, 56, 85, 120, 161]
            + [96, 135, 180, 231, 104, 144, 190, 242, 112, 153, 200, 253],
            [
                "+--------------------------------------------------------------+",
                "| |",
                "| [0 15 36 63] [48 75 108 147] [96 135 180 231] |",
                "| [0 16 38 66] [52 80 114 154] [104 144 190 242] |",
                "| [0 17 40 69] [56 85 120 161] [112 153 200 253] |",
                "| |",
                "+--------------------------------------------------------------+",
            ],
        ),
        (
            (3, 3, 1),
            [114, 120, 126, 378, 400, 422, 642, 680, 718],
            [
                "+------------------------+",
                "| |",
                "| [114] [378] [642] |",
                "| [120] [400] [680] |",
                "| [126] [422] [718] |",
                "| |",
                "+------------------------+",
            ],
        ),
    ],
)
def test_pictures_of_the_tour(shape, elements, lines):
    assert normalised(boxed(shape, single(elements), float32, PrintOptions(linewidth=88))) == lines


NESTED = """\
+----------------------------------------------------+
| +----------------------+  +----------------------+ |
| |                      |  |                      | |
| |  [0 1]      [4 5]    |  |  [16 17]    [20 21]  | |
| |  [2 3]      [6 7]    |  |  [18 19]    [22 23]  | |
| |                      |  |                      | |
| |  [ 8  9]    [12 13]  |  |  [24 25]    [28 29]  | |
| |  [10 11]    [14 15]  |  |  [26 27]    [30 31]  | |
| |                      |  |                      | |
| +----------------------+  +----------------------+ |
+----------------------------------------------------+"""

GRID = """\
+----------------------+
|                      |
|  [0 1]      [4 5]    |
|  [2 3]      [6 7]    |
|                      |
|  [ 8  9]    [12 13]  |
|  [10 11]    [14 15]  |
|                      |
+----------------------+"""

WRAPPED_ROWS = """\
[ 0  1  2  3  4  5
  6  7  8  9]
[10 11 12 13 14 15
 16 17 18 19]"""

WRAPPED_BOX = """\
+------------------+
|                  |
|  [0 1]    [4 5]  |
|  [2 3]    [6 7]  |
|                  |
+------------------+
|                  |
|  [ 8  9]         |
|  [10 11]         |
|                  |
+------------------+"""

CUT = """\
[   0    1    2 ...   97   98   99]
[ 100  101  102 ...  197  198  199]
[ 200  201  202 ...  297  298  299]
[ ...  ...  ... ...  ...  ...  ...]
[9700 9701 9702 ... 9797 9798 9799]
[9800 9801 9802 ... 9897 9898 9899]
[9900 9901 9902 ... 9997 9998 9999]"""

ONE_BOX = """\
+---------+
|         |
|  [0 1]  |
|         |
+---------+"""

NARROW_BOX = """\
+-------+
|       |
|  [0   |
|   1]  |
|       |
+-------+"""

WIDE_GUTTERS = """\
+----------------------------------------+
|                                        |
|   [0 1 2 3 4 5]      [6 7 8 9 10 11]   |
|                                        |
+----------------------------------------+"""

CUT_BOX = """\
+---------------------------+
|                           |
|  [0 1]    ...    [36 37]  |
|  [2 3]           [38 39]  |
|                           |
+---------------------------+"""


@pytest.mark.feature(50)
@pytest.mark.parametrize(
    ("shape", "picture", "limits"),
    [
        ((2, 6), "[0 1 2 3  4  5]\n[6 7 8 9 10 11]", {}),
        ((2, 2, 2, 2), GRID, {}),
        ((2, 2, 2, 2, 2), NESTED, {}),
        ((2, 10), WRAPPED_ROWS, {"linewidth": 20}),
        ((3, 2, 2), WRAPPED_BOX, {"linewidth": 24}),
        ((100, 100), CUT, {}),
        ((5000,), "[0 1 2 ... 4997 4998 4999]", {}),
        ((10, 2, 2), CUT_BOX, {"threshold": 9, "edgeitems": 1}),
        ((4,), "[0 1 2 3]", {"threshold": 4, "edgeitems": 1}),  # exactly at the limit
        ((1, 4), "[0 1 2 3]", {"linewidth": 9}),  # just as wide as allowed
        ((1, 4), "[0 1 2\n 3]", {"linewidth": 8}),
        ((2,), "[0\n 1]", {"linewidth": 0}),  # a number is never broken
        ((1, 1, 2), ONE_BOX, {"linewidth": 11}),
        ((1, 1, 2), NARROW_BOX, {"linewidth": 10}),
        ((2, 1, 6), WIDE_GUTTERS, {}),
        # Dots instead of one row would not be shorter.
        ((3, 9), "[ 0 ...  8]\n[ 9 ... 17]\n[18 ... 26]", {"threshold": 9, "edgeitems": 1}),
    ],
)
def test_layout(shape, picture, limits):
    options = PrintOptions(**{"linewidth": 88} | limits)
    assert boxed(shape, range(math.prod(shape)), int32, options) == picture


@pytest.mark.feature(50)
@pytest.mark.parametrize(
    ("shape", "shown"),
    [((), "7"), ((0,), "[]"), ((0, 3), "[] (shape (0, 3))"), ((3, 0, 2), "[] (shape (3, 0, 2))")],
)
def test_no_axes_and_no_elements(shape, shown):
    assert boxed(shape, [7], int32, PrintOptions()) == shown


def shapes(largest):
    return (
        st.lists(st.integers(1, 9), max_size=5).map(tuple).filter(lambda shape: math.prod(shape) <= largest)
    )


@pytest.mark.feature(50)
@given(st.lists(st.integers(0, 300), max_size=4).map(tuple), st.sampled_from([20, 88, 150]))
@example((2,) * 20, 88)
@example((1000, 1), 88)
@example((1, 5000, 1), 88)
@example((3, 1) * 6, 88)
def test_pictures_stay_within_the_limits(shape, width):
    asked = []

    def element(place):
        asked.append(place)
        return -place

    shown = boxed(shape, element, int64, PrintOptions(linewidth=width))
    assert shown.isascii()
    assert len(asked) <= 1000
    assert len(set(asked)) == len(asked)
    assert all(0 <= place < math.prod(shape) for place in asked)
    boxes_deep = max(len(shape) - 1, 0) // 2
    assert max(map(len, shown.splitlines())) <= max(width, 25 + 8 * boxes_deep)  # a number is never broken
    assert ("..." in shown) == (len(asked) < math.prod(shape))


@pytest.mark.feature(50)
@given(shapes(200))
def test_every_element_is_shown_once_and_rows_keep_their_order(shape):
    size = math.prod(shape)
    shown = boxed(shape, range(1000, 1000 + size), int32, PrintOptions(linewidth=10**6))
    assert sorted(map(int, re.findall(r"\d+", shown))) == [*range(1000, 1000 + size)]
    rows = [[int(n) for n in row.split()] for row in re.findall(r"\[([\d ]+)\]", shown)]
    if shape:
        expected = np.arange(1000, 1000 + size).reshape(-1, shape[-1]).tolist()
        assert sorted(rows) == expected
    lines = shown.splitlines()
    assert len(shape) < 2 or len({len(line) for line in lines}) == 1  # all lines are equally long


@pytest.mark.feature(51)
@given(st.floats(width=32))
@example(2.7182817459106445)
@example(20.08553695678711)
@example(0.30000001192092896)
@example(1.401298464324817e-45)
@example(3.4028234663852886e38)
@example(16777216.0)
@example(-0.0)
@example(0.12020188570022583)  # needs nine digits
def test_float32_reads_back_and_is_as_short_as_numpys(value):
    shown = number_text(value, float32)
    if math.isnan(value):
        assert shown == "nan"
        return
    assert np.float32(shown) == np.float32(value)
    assert math.copysign(1, float(shown)) == math.copysign(1, value)
    if not value.is_integer() and abs(math.frexp(value)[0]) != 0.5:  # numpy rounds some powers of 2 up
        assert significant(shown) == significant(np.format_float_scientific(np.float32(value), unique=True))


def significant(number):
    return number.lower().split("e")[0].lstrip("-").replace(".", "").strip("0")


@pytest.mark.feature(51)
def test_every_float16_reads_back():
    values = np.arange(0, 0x7C01, dtype=np.uint16).view(np.float16)  # all from 0 to infinity
    for value in values[::3]:
        shown = number_text(float(value), float16)
        assert np.float16(shown) == value
        assert len(significant(shown)) <= 5 or float(value).is_integer()


@pytest.mark.feature(51)
@given(st.floats())
def test_float64_reads_back(value):
    shown = number_text(value, float64)
    assert float(shown) == value or (shown == "nan" and math.isnan(value))


@pytest.mark.feature(50, 51)
@pytest.mark.parametrize(
    ("value", "dtype", "shown"),
    [
        (2.7182817459106445, float32, "2.7182817"),
        (math.e, float64, "2.718281828459045"),
        (0.0999755859375, float16, "0.1"),
        (65504.0, float16, "65504"),
        (1.0, float32, "1"),
        (-0.0, float32, "-0"),
        (1e10, float32, "10000000000"),
        (123456792.0, float32, "123456792"),  # all digits of an integer are exact
        (1.0000000200408773e20, float32, "1e+20"),
        (1e22, float64, "1e+22"),
        (9.999999747378752e-06, float32, "1e-05"),
        (0.00009999999747378752, float32, "1e-04"),
        (1.401298464324817e-45, float32, "1e-45"),
        (INF, float32, "inf"),
        (-INF, float16, "-inf"),
        (NAN, float64, "nan"),
        (-NAN, float32, "nan"),
        (1, bool_, "True"),
        (0, bool_, "False"),
        (-5, int32, "-5"),
        (2**62, int64, str(2**62)),
        (np.float32(0.1), float32, "0.1"),
        (np.int64(3), int64, "3"),
    ],
)
def test_numbers(value, dtype, shown):
    assert number_text(value, dtype) == shown
