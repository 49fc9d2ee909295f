"""The backend op by op, against numpy where numpy is exact, against tables where IEEE or Python decides."""

from __future__ import annotations

import array
import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tensorken_core.errors import MissingOpError
from tensorken_core.language.dtypes import (
    DTYPES,
    FLOATS,
    INTEGERS,
    DType,
    bool_,
    float16,
    float32,
    float64,
    int32,
    int64,
    wrap_integer,
)
from tensorken_core.language.op import Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import same as same_shape
from tensorken_reference.arrays import Array
from tensorken_reference.backend import Reference

inf, nan = math.inf, math.nan
EVERY_DTYPE = pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
EVERY_FLOAT = pytest.mark.parametrize("dtype", FLOATS, ids=str)
EVERY_INTEGER = pytest.mark.parametrize("dtype", INTEGERS, ids=str)


def same(a: float, b: float) -> bool:
    return (a != a and b != b) or (a == b and math.copysign(1.0, a) == math.copysign(1.0, b))


def numbered(reference: Reference, shape: tuple[int, ...], dtype: DType) -> Array:
    return reference.new(shape, [i % 2 if dtype is bool_ else i for i in range(math.prod(shape))], dtype)


def to_numpy(x: Array) -> Any:
    return np.array(x.data, x.dtype.name).reshape(x.shape)


def equals(x: Array, expected: Any) -> bool:
    """Shape, dtype, Python types and values; NaN equals NaN, signs of zeros count."""
    python_type = {"bool": bool, "int": int, "float": float}[x.dtype.kind]
    if x.shape != expected.shape or x.dtype.name != expected.dtype.name:
        return False
    if not all(type(v) is python_type for v in x.data):
        return False
    return all(map(same, x.data, expected.ravel().tolist()))


def values(reference: Reference, op: str, dtype: DType, *operands: list[Any]) -> list[Any]:
    """An elementwise op on lists."""
    arrays = [reference.new((len(xs),), xs, dtype) for xs in operands]
    return reference.ravel(getattr(reference, op)(*arrays))


# ---- create, inspect ---------------------------------------------------------------------------------------


@pytest.mark.feature(8, 9)
@EVERY_DTYPE
@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0,), (2, 0, 3), (1, 1)])
def test_new_and_ravel_round_trip(dtype: DType, shape: tuple[int, ...], reference: Reference) -> None:
    data = numbered(reference, shape, dtype)
    expected = np.arange(math.prod(shape)).reshape(shape)
    assert equals(data, (expected % 2 if dtype is bool_ else expected).astype(dtype.name))
    assert reference.shape(data) == shape
    assert reference.dtype(data) is dtype
    assert reference.ravel(data) == list(data.data)


@EVERY_DTYPE
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3)])
def test_new_reads_buffers(dtype: DType, shape: tuple[int, ...], reference: Reference) -> None:
    source = np.array([1, 0, 3, 5, 0, 2][: math.prod(shape)], dtype.name).reshape(shape)
    flat = source.astype(dtype.format)  # bfloat16 has no buffers, and is exchanged as float32
    for buffer in (flat, memoryview(flat), flat.view(flat.dtype.newbyteorder("="))):
        assert equals(reference.new(shape, buffer, dtype), source)
    packed = array.array("d", [0.5, 2.0])
    x = reference.new((2,), packed, float64)
    packed[0] = 7.0
    assert reference.ravel(x) == [0.5, 2.0]


def test_ravel_is_a_new_list(reference: Reference) -> None:
    x = reference.new((2,), [1.0, 2.0], float32)
    reference.ravel(x)[0] = 7.0
    assert reference.ravel(x) == [1.0, 2.0]


def test_new_rounds_wraps_and_converts(reference: Reference) -> None:
    def data(values: list[Any], dtype: DType) -> list[Any]:
        return reference.ravel(reference.new((len(values),), values, dtype))

    assert data([0.1, True, 3], float32) == [0.10000000149011612, 1.0, 3.0]
    assert data([1e300, -1e300, 65520.0, 65519.99], float16) == [inf, -inf, inf, 65504.0]
    assert data([3.5e38, -3.5e38], float32) == [inf, -inf]
    assert data([2**53 + 1, 10**400, -(10**400)], float64) == [2.0**53, inf, -inf]
    assert data([2**31, True], int32) == [-(2**31), 1]
    assert data([0, 2, 0.5, nan], bool_) == [False, True, True, True]


@EVERY_DTYPE
def test_full(dtype: DType, reference: Reference) -> None:
    for shape in ((), (2, 3), (0,)):
        assert equals(reference.full(shape, 1, dtype), np.full(shape, 1, dtype.name))
    assert reference.ravel(reference.full((2,), 0.1, float16)) == [0.0999755859375] * 2


def test_realize_is_the_identity(reference: Reference) -> None:
    x = reference.full((2,), 1, float32)
    assert reference.realize(x) is x
    assert reference.compile(None) is None


# ---- arithmetic on floats ----------------------------------------------------------------------------------

AWKWARD = (0.0, -0.0, 1.0, -1.0, 0.1, 3.0, 1e-40, 3e38, 65504.0, 6e-8, -2.5, inf, -inf, nan)


def any_bits(rng: random.Random, dtype: DType) -> list[float]:
    """Floats of random bits."""
    drawn = [rng.getrandbits(8 * dtype.itemsize) for _ in range(3000)]
    found: list[float] = np.array(drawn, f"u{dtype.itemsize}").view(dtype.name).tolist()
    return found


@pytest.mark.feature(14)
@EVERY_FLOAT
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
def test_arithmetic_follows_ieee(op: str, dtype: DType, reference: Reference) -> None:
    """numpy's arithmetic is IEEE's in each dtype."""
    pairs = list(itertools.product(AWKWARD, repeat=2))
    rng = random.Random(op)
    pairs += zip(any_bits(rng, dtype), any_bits(rng, dtype), strict=True)
    a, b = (reference.new((len(pairs),), list(column), dtype) for column in zip(*pairs, strict=True))
    numpy_op = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[op]
    with np.errstate(all="ignore"):
        assert equals(getattr(reference, op)(a, b), numpy_op(to_numpy(a), to_numpy(b)))


@EVERY_FLOAT
def test_roots_reciprocals_and_floors(dtype: DType, reference: Reference) -> None:
    rng = random.Random(0)
    data = [*AWKWARD, *any_bits(rng, dtype), 2.5, -2.5, -0.5, 0.5]
    x = reference.new((len(data),), data, dtype)
    with np.errstate(all="ignore"):
        assert equals(reference.sqrt(x), np.sqrt(to_numpy(x)))
        assert equals(reference.floor(x), np.floor(to_numpy(x)))
        assert equals(reference.reciprocal(x), np.reciprocal(to_numpy(x)))


@EVERY_FLOAT
def test_quotients_are_rounded_once_down_to_subnormals(
    dtype: DType, reference: Reference, nearest: Any
) -> None:
    rng = random.Random(1)
    most = min(2000, 2**dtype.precision)
    for _ in range(300):
        a = rng.randrange(1, most) * 2.0**dtype.least
        b = rng.randrange(1, most) / 8.0
        assert values(reference, "div", dtype, [a], [b]) == [nearest(Fraction(a) / Fraction(b), dtype)]


@pytest.mark.feature(12)
def test_elementary_functions_have_the_right_names(reference: Reference) -> None:
    x = [0.25, 0.75]
    for name in ("exp", "log", "sin", "cos", "tan", "tanh", "log1p", "expm1", "erf", "asin", "acos", "atan",
                 "sinh", "cosh", "asinh", "atanh", "exp2", "log2", "log10"):  # fmt: skip
        expected = [getattr(math, name)(v) for v in x]
        assert values(reference, name, float64, x) == pytest.approx(expected, rel=1e-15), name
    assert values(reference, "acosh", float64, [1.5]) == pytest.approx([math.acosh(1.5)], rel=1e-15)
    assert values(reference, "sigmoid", float64, x) == pytest.approx([1 / (1 + math.exp(-v)) for v in x])
    assert values(reference, "pow", float64, x, [2.0, 0.5]) == [0.0625, 0.75**0.5]
    assert values(reference, "hypot", float64, [3.0], [4.0]) == [5.0]
    assert values(reference, "logaddexp", float64, [0.0], [0.0]) == [math.log(2.0)]
    assert values(reference, "atan2", float64, [1.0], [-2.0]) == pytest.approx([math.atan2(1.0, -2.0)])


@EVERY_FLOAT
@pytest.mark.parametrize(
    "op", ["exp", "log", "sin", "cos", "sqrt", "floor", "tan", "tanh", "sigmoid", "log1p", "expm1", "erf",
           "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "reciprocal", "exp2", "log2", "log10"],
)  # fmt: skip
def test_no_op_raises_and_results_are_of_the_dtype(op: str, dtype: DType, reference: Reference) -> None:
    extremes = [*AWKWARD, 1e308, -1e308, 5e-324, 1e5, -1e5, 710.0, -746.0]
    result = values(reference, op, dtype, extremes)
    again = reference.ravel(reference.new((len(result),), result, dtype))
    assert all(map(same, result, again))


# ---- comparisons, where, cast ------------------------------------------------------------------------------


@pytest.mark.feature(16)
@EVERY_DTYPE
def test_comparisons_give_bool(dtype: DType, reference: Reference) -> None:
    data = [0, 1, True, 2, -1] if dtype.kind == "int" else [0.0, -0.0, 1.0, inf, -inf, nan]
    pairs = list(itertools.product(data, repeat=2))
    a, b = (reference.new((len(pairs),), list(column), dtype) for column in zip(*pairs, strict=True))
    assert equals(reference.eq(a, b), to_numpy(a) == to_numpy(b))
    with np.errstate(invalid="ignore"):  # of ml_dtypes
        assert equals(reference.lt(a, b), to_numpy(a) < to_numpy(b))


@EVERY_DTYPE
def test_where(dtype: DType, reference: Reference) -> None:
    condition = reference.new((2, 2), [True, False, False, True], bool_)
    a, b = reference.full((2, 2), 1, dtype), reference.full((2, 2), 0, dtype)
    assert equals(reference.where(condition, a, b), np.array([[1, 0], [0, 1]], dtype.name))


@pytest.mark.parametrize(
    ("source", "data", "target", "expected"),
    [
        (float32, [1.9, -1.9, 0.0, nan], int32, [1, -1, 0, 0]),
        (float64, [inf, 3e9, 2147483647.5, 2.0**31], int32, [2**31 - 1] * 4),
        (float64, [-inf, -3e9, -2147483648.5, -(2.0**31)], int32, [-(2**31)] * 4),
        (float64, [inf, 2.0**63, 2.0**62], int64, [2**63 - 1, 2**63 - 1, 2**62]),
        (float64, [-inf, -(2.0**63), -1e300], int64, [-(2**63)] * 3),
        (int64, [2**31, -(2**31) - 1, 2**32 + 5, -1], int32, [-(2**31), 2**31 - 1, 5, -1]),
        (int32, [-5, 2**31 - 1], int64, [-5, 2**31 - 1]),
        (int64, [2**53 + 1, 2**63 - 1, -(2**63)], float64, [2.0**53, 2.0**63, -(2.0**63)]),
        (int64, [2**24 + 1, 2**24 + 3], float32, [2.0**24, 2.0**24 + 4]),
        (int64, [2**54 + 2**30 + 1], float32, [2.0**54 + 2.0**31]),  # rounded once, not through float64
        (int32, [65519, 65520, -70000, 2049], float16, [65504.0, inf, -inf, 2048.0]),
        (float64, [0.1, 1e39, -1e-50, nan], float32, [0.10000000149011612, inf, -0.0, nan]),
        (float64, [1.0 + 2.0**-11 + 2.0**-30], float16, [1.0 + 2.0**-10]),  # rounded once, not through float32
        (float32, [0.10000000149011612], float64, [0.10000000149011612]),
        (float32, [0.0, -0.0, nan, 1e-45], bool_, [False, False, True, True]),
        (int32, [0, -3], bool_, [False, True]),
        (bool_, [True, False], float16, [1.0, 0.0]),
        (bool_, [True, False], int64, [1, 0]),
    ],
)  # fmt: skip
def test_cast(
    source: DType, data: list[Any], target: DType, expected: list[Any], reference: Reference
) -> None:
    result = reference.cast(reference.new((len(data),), data, source), target)
    assert result.dtype is target
    assert equals(result, np.array(expected, target.name))


# ---- integers ----------------------------------------------------------------------------------------------


@EVERY_INTEGER
@pytest.mark.parametrize(
    "op", ["add", "sub", "mul", "floor_divide", "bitwise_and", "bitwise_or", "bitwise_xor"]
)
def test_integers_wrap(op: str, dtype: DType, reference: Reference) -> None:
    bits = 8 * dtype.itemsize
    lowest, highest = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    rng = random.Random(op)
    data = [0, 1, -1, 2, -7, lowest, highest, lowest + 1, *[rng.randint(lowest, highest) for _ in range(20)]]
    pairs = [(a, b) for a, b in itertools.product(data, repeat=2) if b or op != "floor_divide"]
    a, b = (reference.new((len(pairs),), list(column), dtype) for column in zip(*pairs, strict=True))
    numpy_op = {"sub": "subtract", "mul": "multiply"}.get(op, op)
    with np.errstate(over="ignore"):
        assert equals(getattr(reference, op)(a, b), getattr(np, numpy_op)(to_numpy(a), to_numpy(b)))


@EVERY_INTEGER
def test_integer_corners(dtype: DType, reference: Reference) -> None:
    bits = 8 * dtype.itemsize
    lowest = -(1 << (bits - 1))
    highest = -lowest - 1
    if not dtype.signed:
        top = 2**bits - 1
        assert values(reference, "floor_divide", dtype, [top, top], [0, top]) == [0, 1]
        assert values(reference, "shift_left", dtype, [3, 1], [bits - 1, top]) == [2 ** (bits - 1), 0]
        assert values(reference, "shift_right", dtype, [top, top], [1, bits]) == [top // 2, 0]
        return
    rows = {
        ("floor_divide", 7, 0): 0,
        ("floor_divide", lowest, 0): 0,
        ("floor_divide", lowest, -1): lowest,
        ("floor_divide", -7, 2): -4,
        ("shift_left", 1, 0): 1,
        ("shift_left", 1, bits - 1): lowest,
        ("shift_left", 3, bits - 1): lowest,
        ("shift_left", -1, 1): -2,
        ("shift_left", 1, bits): 0,
        ("shift_left", 1, -1): 0,
        ("shift_right", -1, 0): -1,
        ("shift_right", -1, 1): highest,
        ("shift_right", lowest, bits - 1): 1,
        ("shift_right", 8, 2): 2,
        ("shift_right", -1, bits): 0,
        ("shift_right", -1, -1): 0,
    }
    for (op, a, b), expected in rows.items():
        assert values(reference, op, dtype, [a], [b]) == [expected], (op, a, b)


@EVERY_INTEGER
def test_sums_of_integers_wrap(dtype: DType, reference: Reference) -> None:
    bits = 8 * dtype.itemsize
    top = (1 << (bits - 1)) - 1
    x = reference.full((3,), top, dtype)
    sums = [wrap_integer(n * top, dtype) for n in (1, 2, 3)]
    assert reference.ravel(reference.sum(x, (0,))) == sums[2:]
    assert reference.ravel(reference.fused_multiply_add(x, x, (0,))) == [3]
    assert reference.ravel(reference.cumsum(x, 0)) == sums


# ---- reductions --------------------------------------------------------------------------------------------


@pytest.mark.feature(21)
@pytest.mark.parametrize("dtype", [int32, int64, *FLOATS], ids=str)
@pytest.mark.parametrize("shape", [(2, 3, 4), (3, 1, 2), (2, 0, 3), (5,)])
def test_sums_over_axes(dtype: DType, shape: tuple[int, ...], reference: Reference) -> None:
    x = numbered(reference, shape, dtype)
    for count in range(len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            assert equals(reference.sum(x, axes), to_numpy(x).sum(axes, keepdims=True, dtype=dtype.name))


@pytest.mark.feature(22)
@EVERY_DTYPE
def test_max_over_axes(dtype: DType, reference: Reference) -> None:
    data = [(7 * i) % 24 - 12 for i in range(24)]
    x = reference.new((2, 3, 4), [v > 9 for v in data] if dtype is bool_ else data, dtype)
    for count in range(4):
        for axes in itertools.combinations(range(3), count):
            assert equals(reference.max(x, axes), to_numpy(x).max(axes, keepdims=True))
    assert equals(reference.max(reference.full((0, 2), 1, dtype), (1,)), np.zeros((0, 1), dtype.name))


@EVERY_FLOAT
def test_max_of_specials(dtype: DType, reference: Reference) -> None:
    def largest(row: list[float]) -> float:
        return float(reference.ravel(reference.max(reference.new((len(row),), row, dtype), (0,)))[0])

    for row in itertools.permutations([1.0, nan, inf, -inf]):
        assert math.isnan(largest(list(row)))
    assert largest([-inf, -inf]) == -inf
    assert largest([-inf, -1.0]) == -1.0
    assert same(largest([-0.0]), -0.0)


@EVERY_FLOAT
def test_cumsum_is_exact_at_each_step(dtype: DType, reference: Reference) -> None:
    big = 2.0 ** {2: 11, 4: 24, 8: 53}[dtype.itemsize]
    x = reference.new((2, 4), [big, 1.0, 1.0, -big, 1.0, inf, -inf, 1.0], dtype)
    assert equals(
        reference.cumsum(x, 1),
        np.array([[big, big, big + 2, 2.0], [1.0, inf, nan, nan]], dtype.name),
    )
    y = numbered(reference, (2, 3, 4), dtype)
    for axis in range(3):
        assert equals(reference.cumsum(y, axis), to_numpy(y).cumsum(axis))


@pytest.mark.feature(22)
@EVERY_DTYPE
def test_min_max_and_sort_along_an_axis(dtype: DType, reference: Reference) -> None:
    data = [(7 * i) % 10 - 4 for i in range(24)]
    x = reference.new((2, 3, 4), [v > 2 for v in data] if dtype is bool_ else data, dtype)
    y = to_numpy(x)
    for axis in range(3):
        assert equals(reference.argmax(x, axis), y.argmax(axis, keepdims=True).astype("int32"))
        assert equals(reference.argmin(x, axis), y.argmin(axis, keepdims=True).astype("int32"))
        assert equals(reference.sort(x, axis), np.sort(y, axis))
        assert equals(reference.argsort(x, axis), np.argsort(y, axis, stable=True).astype("int32"))
        assert equals(reference.min(x, (axis,)), y.min(axis, keepdims=True))
    assert equals(reference.min(x, (0, 2)), y.min((0, 2), keepdims=True))
    empty = reference.full((2, 0), 1, dtype)
    assert equals(reference.sort(empty, 1), to_numpy(empty))
    assert equals(reference.argsort(empty, 0), np.zeros((2, 0), "int32"))


@EVERY_FLOAT
def test_sort_with_special_values(dtype: DType, reference: Reference) -> None:
    x = reference.new((7,), [nan, 0.0, inf, -0.0, -inf, nan, 1.0], dtype)
    assert equals(reference.sort(x, 0), np.array([-inf, 0.0, -0.0, 1.0, inf, nan, nan], dtype.name))
    assert reference.ravel(reference.argsort(x, 0)) == [4, 1, 3, 6, 2, 0, 5]
    assert reference.ravel(reference.argmax(x, 0)) == reference.ravel(reference.argmin(x, 0)) == [0]
    assert math.isnan(reference.ravel(reference.min(x, (0,)))[0])
    late = reference.new((3,), [1.0, nan, nan], dtype)
    assert reference.ravel(reference.argmin(late, 0)) == [1]
    zeros = reference.new((2,), [-0.0, 0.0], dtype)
    assert same(reference.ravel(reference.max(zeros, (0,)))[0], -0.0)  # equal: the first stays
    assert reference.ravel(reference.argmax(zeros, 0)) == [0]


@EVERY_DTYPE
def test_concatenate(dtype: DType, reference: Reference) -> None:
    for axis in range(3):
        pieces = [
            numbered(reference, tuple(n if i == axis else 2 for i in range(3)), dtype) for n in (1, 3, 0, 2)
        ]
        assert equals(
            reference.concatenate(*pieces, axis), np.concatenate([to_numpy(x) for x in pieces], axis)
        )
    one = numbered(reference, (2,), dtype)
    assert equals(reference.concatenate(one, 0), to_numpy(one))


# ---- movement ----------------------------------------------------------------------------------------------


@pytest.mark.feature(27, 30, 31, 32, 33, 37, 53)
@EVERY_DTYPE
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3), (0, 2), (2, 3, 2, 2)])
def test_movement_equals_numpys(dtype: DType, shape: tuple[int, ...], reference: Reference) -> None:
    x = numbered(reference, shape, dtype)
    y = to_numpy(x)
    rank = len(shape)
    for order in itertools.permutations(range(rank)):
        assert equals(reference.permute(x, order), y.transpose(order))
    for count in range(rank + 1):
        for axes in itertools.combinations(range(rank), count):
            assert equals(reference.flip(x, axes), np.flip(y, axes))
    for new in ((math.prod(shape),), (1, *shape, 1), shape[::-1]):
        assert equals(reference.reshape(x, new), y.reshape(new))
    wide = tuple(4 if n == 1 else n for n in shape)
    assert equals(reference.expand(x, wide), np.broadcast_to(y, wide))
    none = tuple(0 if n == 1 else n for n in shape)
    assert equals(reference.expand(x, none), np.broadcast_to(y, none))
    pads = tuple((i % 3, (i + 1) % 2) for i in range(rank))
    assert equals(reference.pad(x, pads), np.pad(y, pads) if rank else y)
    limits = tuple((min(1, n), n) for n in shape)
    assert equals(reference.crop(x, limits), y[tuple(slice(*limit) for limit in limits)])


# ---- indexing ----------------------------------------------------------------------------------------------


@EVERY_DTYPE
@pytest.mark.parametrize("of", INTEGERS, ids=str)
def test_gather(dtype: DType, of: DType, reference: Reference) -> None:
    x = numbered(reference, (3, 4, 2), dtype)
    for axis, indices in itertools.product(range(3), ([1, 0, 1], [], [1])):
        places = reference.new((len(indices),), indices, of)
        assert equals(reference.gather(x, places, axis), np.take(to_numpy(x), np.array(indices, int), axis))


@pytest.mark.parametrize("dtype", [int32, int64, *FLOATS], ids=str)
def test_scatter_add(dtype: DType, reference: Reference) -> None:
    for axis, shape in enumerate([(3, 4, 2), (4, 3, 2), (2, 4, 3)]):
        x = numbered(reference, shape, dtype)
        expected = np.zeros((*shape[:axis], 5, *shape[axis + 1 :]), dtype.name)
        indices = [4, 1, 4]
        np.add.at(expected, (*(slice(None),) * axis, indices), to_numpy(x))
        result = reference.scatter_add(x, reference.new((3,), indices, int32), axis, 5)
        assert equals(result, expected)
    nothing = reference.new((0,), [], int64)
    assert equals(
        reference.scatter_add(reference.full((0,), 0, dtype), nothing, 0, 2), np.zeros(2, dtype.name)
    )


def test_scatter_add_is_exact_and_starts_from_zero(reference: Reference) -> None:
    x = reference.new((5,), [1e16, 1.0, -1e16, -0.0, inf], float64)
    places = reference.new((5,), [0, 0, 0, 1, 3], int32)
    assert equals(reference.scatter_add(x, places, 0, 4), np.array([1.0, 0.0, 0.0, inf]))
    top = reference.full((2,), 2**31 - 1, int32)
    assert reference.ravel(reference.scatter_add(top, reference.full((2,), 0, int32), 0, 1)) == [-2]


# ---- any other op ------------------------------------------------------------------------------------------


def plugin_op(definition: Any, arity: int, dtype: DType | None = None) -> Op:
    return Op(
        "of_a_plugin",
        arity,
        same_shape,
        lambda *dtypes: dtype or dtypes[0],
        scalar=definition,
        elementwise=True,
    )


def test_an_op_runs_by_its_scalar_definition(reference: Reference) -> None:
    def result(definition: Any, data: list[Any], dtype: DType, out: DType | None = None) -> list[Any]:
        op = plugin_op(definition, 1, out)
        assert reference.has(op)
        y = run(reference, op, [reference.new((len(data),), data, dtype)], ())
        assert y.dtype is (out or dtype)
        return list(y.data)

    assert result(lambda x: x / 3, [1.0], float32) == [0.3333333432674408]
    assert result(lambda x: x * 2**30, [3], int32) == [-(2**30)]
    assert result(lambda x: x > 0, [-1.0, 2.0], float64, bool_) == [False, True]
    assert result(math.cbrt, [27], int32, int64) == [3]
    assert result(math.exp, [1000.0], float64) == [inf]
    assert all(map(math.isnan, result(math.log, [-1.0], float16)))
    assert all(map(math.isnan, result(lambda x: 1.0 / x, [0.0], float32)))
    assert all(map(math.isnan, result(lambda x: x**0.5, [-2.0], float32)))
    assert result(lambda x: 1 // x, [0], int32) == [0]


def test_an_op_without_definition_or_body_is_an_error(reference: Reference) -> None:
    op = Op("unheard_of", 1, same_shape, lambda dtype: dtype)
    assert not reference.has(op)
    with pytest.raises(MissingOpError, match=r"^unheard_of: Reference has no method for it[^\n]*$"):
        run(reference, op, [reference.full((), 1, float32)], ())


@EVERY_FLOAT
def test_derived_ops_without_a_method(dtype: DType, reference: Reference) -> None:
    x = reference.new((5,), [-0.0, 2.5, -3.0, inf, nan], dtype)
    y = reference.new((5,), [0.0, nan, 1.0, -inf, 2.0], dtype)
    a = to_numpy(x)
    assert equals(reference.neg(x), -a)
    assert equals(reference.abs(x), np.abs(a))
    assert equals(reference.square(x), a * a)
    assert equals(reference.sign(x), np.array([0.0, 1.0, -1.0, 1.0, nan], dtype.name))
    assert equals(reference.maximum(x, y), np.array([-0.0, nan, 1.0, inf, nan], dtype.name))
    assert equals(reference.minimum(x, y), np.array([-0.0, nan, -3.0, -inf, nan], dtype.name))
    for name in ("ceil", "trunc"):
        assert equals(getattr(reference, name)(x), getattr(np, name)(a)), name
    halves = reference.new((6,), [0.5, 1.5, 2.5, -0.5, -1.5, inf], dtype)
    assert equals(reference.round(halves), np.array([0.0, 2.0, 2.0, -0.0, -2.0, inf], dtype.name))
    divisor = reference.new((5,), [3.0, -2.0, 2.0, 1.0, 1.0], dtype)
    assert equals(reference.remainder(x, divisor), np.array([0.0, -1.5, 1.0, nan, nan], dtype.name))
    assert equals(reference.relu(x), np.array([0.0, 2.5, 0.0, inf, nan], dtype.name))


@EVERY_INTEGER
def test_derived_ops_on_integers(dtype: DType, reference: Reference) -> None:
    lowest = -(1 << (8 * dtype.itemsize - 1))
    if not dtype.signed:
        x = reference.new((2,), [0, 5], dtype)
        assert reference.ravel(reference.neg(x)) == [0, wrap_integer(-5, dtype)]
        assert reference.ravel(reference.abs(x)) == [0, 5]
        assert reference.ravel(reference.sign(x)) == [0, 1]
        return
    x = reference.new((3,), [lowest, -3, 5], dtype)
    assert reference.ravel(reference.neg(x)) == [lowest, 3, -5]
    assert reference.ravel(reference.abs(x)) == [lowest, 3, 5]
    assert reference.ravel(reference.sign(x)) == [-1, -1, 1]
    assert reference.ravel(reference.square(x)) == [0, 9, 25]


@pytest.mark.feature(2)
def test_every_required_op_has_a_method() -> None:
    """Every op without a body in the table has a method here."""
    from tensorken_core.language.op import OPS

    missing = [op.name for op in OPS.values() if op.method and op.body is None and not Reference().has(op)]
    assert len(OPS) > 30
    assert missing == []
    bare = ("new", "full", "shape", "dtype", "ravel")
    assert all(getattr(Reference, name) is not getattr(RawTensor, name) for name in bare)
