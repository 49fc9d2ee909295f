"""DTypes: promotion, dtypes of Python numbers, wrapping integers, booleans, casts."""

from __future__ import annotations

import copy
import enum
import itertools
import math
import operator
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tensorken as tk
from core.tests.beyond_range import check_numbers_beyond_the_range
from core.tests.each import each_of
from core.tests.support import STACKS, array, f64
from tensorken_core.errors import DTypeError, ScalarRangeError
from tensorken_core.language.dtypes import (
    DTYPES,
    as_dtype,
    of_scalar,
    promote,
    round_float,
    with_scalar,
    wrap_integer,
)
from tensorken_core.language.op import OPS

pytestmark = pytest.mark.usefixtures("on_numpy")

ORDER = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
]
INT32 = st.integers(-(2**31), 2**31 - 1)


def of(name, *values):
    return tk.tensor(list(values), name)


# ---- dtypes themselves -------------------------------------------------------------------------------------


@pytest.mark.feature(7)
def test_each_dtype_is_one_object():
    assert list(DTYPES) == ORDER
    for name, dtype in DTYPES.items():
        assert (dtype.name, str(dtype), repr(dtype)) == (name, name, f"tensorken.{name}")
        assert as_dtype(name) is as_dtype(dtype) is as_dtype(np.dtype(name)) is dtype
        assert copy.deepcopy(dtype) is copy.copy(dtype) is pickle.loads(pickle.dumps(dtype)) is dtype
        assert np.dtype(dtype.format).itemsize == (4 if name == "bfloat16" else dtype.itemsize)
        assert len({dtype, as_dtype(name)}) == 1
    assert (as_dtype(bool), as_dtype(int), as_dtype(float)) == (tk.bool_, tk.int32, tk.float32)
    assert as_dtype(np.float64) is as_dtype(np.dtype("f8")) is tk.float64
    assert tk.bool is tk.bool_ is as_dtype("bool_")


@pytest.mark.feature(7)
def test_a_dtype_is_compared_with_objects_that_raise():
    class Absent:  # a dtype that a namespace does not have, as in array-api-tests
        name = "complex64"

        def __getattr__(self, attribute: str):
            raise AssertionError(f"{self.name} was asked for {attribute}")

    assert all(dtype != Absent() for dtype in DTYPES.values())
    assert tk.float32 not in (Absent(), tk.float64)


@pytest.mark.feature(7)
@pytest.mark.parametrize(
    "wrong", ["float8", "", "FLOAT32", None, 3, "complex256", np.clongdouble, list, object()]
)
def test_other_dtypes_are_refused(wrong):
    with pytest.raises(DTypeError, match=r"^dtype: .* is unknown; the dtypes are bool, int8"):
        as_dtype(wrong)


@pytest.mark.feature(7, 165)
@each_of("name", ["f4", "<f8", "|i1", "=u2", "b1", "c8", "f2", "i8"])
def test_the_codes_of_numpy_are_names(name):
    assert as_dtype(name).name == np.dtype(name).name


def test_names_of_types_of_python_and_c():
    assert [as_dtype(name) for name in ("float", "int", "bool", "complex")] == list(
        map(as_dtype, (float, int, bool, complex))
    )
    assert [as_dtype(name).name for name in ("half", "single", "double")] == ["float16", "float32", "float64"]
    with pytest.raises(DTypeError, match="'>f8' is unknown"):
        as_dtype(">f8")


def test_promotion_takes_the_wider_dtype_and_ranks_bool_int_float():
    floats = ("float16", "bfloat16", "float32", "float64")
    for a, b in itertools.product(ORDER, repeat=2):
        name = promote(DTYPES[a], DTYPES[b]).name
        if {a, b} == {"float16", "bfloat16"}:
            assert name == "float32"
        elif (a in floats) is (b in floats):
            assert name == np.promote_types(a, b).name
        else:
            assert name == (a if a in floats else b)  # numpy would widen the float
        if a <= b:
            for combine in (operator.add, operator.sub, operator.mul, tk.maximum, tk.minimum):
                if name != "bool" or combine is not operator.sub:
                    assert str(combine(of(a, 1), of(b, 2)).dtype) == name
            assert str(tk.where(of("bool", True), of(a, 1), of(b, 0)).dtype) == name
            assert str(tk.concatenate([of(a, 1), of(b, 0)]).dtype) == name
            assert str(array(tk.concatenate([of(a, 1), of(b, 0)])).dtype) == name
            assert (of(a, 1) == of(b, 1)).tolist() == [True]
            assert (of(a, 1) <= of(b, 0)).tolist() == [False]
    for a, b, c in itertools.product([d for d in DTYPES.values() if d is not tk.uint64], repeat=3):
        assert promote(promote(a, b), c) is promote(a, promote(b, c))


# ---- Python numbers ----------------------------------------------------------------------------------------


class Level(enum.IntEnum):
    HIGH = 2


@pytest.mark.feature(70, 165)
def test_a_python_number_takes_the_dtype_of_the_tensor_if_its_kind_allows():
    expected = {
        "bool": ("bool", "int32", "float32"),
        "int32": ("int32", "int32", "float32"),
        "int64": ("int64", "int64", "float32"),
        "uint8": ("uint8", "uint8", "float32"),
        "float16": ("float16", "float16", "float16"),
        "bfloat16": ("bfloat16", "bfloat16", "bfloat16"),
        "float32": ("float32", "float32", "float32"),
        "float64": ("float64", "float64", "float64"),
    }
    for name, results in expected.items():
        for number, result in zip((True, 2, 2.5), results, strict=True):
            assert with_scalar(DTYPES[name], number).name == result
            x = of(name, 1, 0)
            for y in (x + number, number + x, x * number, number * x):
                assert (str(y.dtype), str(array(y).dtype)) == (result, result)
            if result != "bool":
                for y in (x - number, number - x):
                    assert (str(y.dtype), str(array(y).dtype)) == (result, result)
            assert str(tk.maximum(x, number).dtype) == str(tk.maximum(number, x).dtype) == result
            assert str(tk.add(number, x).dtype) == result
            assert str(tk.where(of("bool", True, False), x, number).dtype) == result
            assert str(tk.where(of("bool", True, False), number, x).dtype) == result
            assert (x < number).dtype is tk.bool_
    assert str((of("int64", 3) * Level.HIGH).dtype) == "int64"
    assert (of("float64", 3) * np.float32(0.5)).dtype is tk.float64
    assert (of("float32", 3) * np.float64(0.5)).dtype is tk.float64  # an array of numpy's keeps its dtype


@pytest.mark.feature(7)
def test_the_defaults_are_bool_int32_and_float32():
    assert [str(of_scalar(v)) for v in (True, 1, 1.0)] == ["bool", "int32", "float32"]
    cases = {"bool": [True, False], "int32": [1, True], "float32": [1.0, 2, False]}
    for name, values in cases.items():
        assert str(tk.tensor(values).dtype) == name
        assert str(array(tk.tensor(values)).dtype) == name
    assert tk.tensor([]).dtype is tk.float32
    assert (
        tk.zeros(2).dtype is tk.ones(2).dtype is tk.eye(2).dtype is tk.linspace(0, 1, 3).dtype is tk.float32
    )
    assert tk.full(2, 3).dtype is tk.arange(3).dtype is tk.int32
    assert tk.arange(0.0, 3.0).dtype is tk.float32
    assert tk.full(2, True).dtype is tk.bool_
    assert tk.where(of("bool", True), 1, 2).dtype is tk.int32
    assert tk.where(of("bool", True), 1, 2.0).dtype is tk.float32


COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


@pytest.mark.feature(165)
def test_a_number_that_does_not_fit_is_refused_and_one_that_fits_is_exact():
    for name, bits in (("int32", 31), ("int64", 63)):
        x = of(name, 0)
        assert (x + (2**bits - 1)).tolist() == [2**bits - 1]
        assert (x + -(2**bits)).tolist() == [-(2**bits)]
        for number in (2**bits, -(2**bits) - 1, 10**400):
            for call in (
                lambda n=number, x=x: x + n,
                lambda n=number, x=x: tk.maximum(n, x),
            ):
                with pytest.raises(ScalarRangeError, match=rf"does not fit {name}"):
                    call()
            compared = [f(y, z) for f in COMPARISONS for y, z in ((x, number), (number, x))]
            assert [y.tolist() for y in compared] == [
                [f(y, z)] for f in COMPARISONS for y, z in ((0, number), (number, 0))
            ]
            with pytest.raises(ScalarRangeError, match=r"^tensor: "):
                tk.tensor(number, name)
    assert (of("float32", 1.0) * 1e300).tolist() == [math.inf]  # a float overflows as floats do
    assert (of("float32", 1.0) * 2**100).tolist() == [2.0**100]


# ---- what each op gives ------------------------------------------------------------------------------------


@pytest.mark.feature(165)
def test_quotients_and_means_of_integers_are_float32():
    for a, b in itertools.product(("bool", "int32", "int64"), repeat=2):
        y = of(a, 1, 0) / of(b, 1, 1)
        assert (y.dtype, y.tolist()) == (tk.float32, [1.0, 0.0])
    for name in ("bool", "int32", "int64"):
        assert of(name, 1, 0).mean().dtype is tk.float32
        assert of(name, 1, 0).mean().item() == 0.5
        assert (of(name, 1) / 2).dtype is (1 / of(name, 1)).dtype is tk.float32
    for name in ("float16", "bfloat16", "float32", "float64"):
        assert str(of(name, 1.0).mean().dtype) == str((of(name, 1.0) / 3).dtype) == name


@pytest.mark.feature(165)
def test_a_quotient_with_a_wide_integer_keeps_its_digits():
    """An integer combined with a float64 is converted to float64 directly, not through float32."""
    n = 2**40 + 1
    assert (f64([1.0]) * tk.tensor([n], "int64") / tk.tensor([n], "int64")).tolist() == [1.0]
    assert (tk.tensor([n], "int64") / f64([1.0])).tolist() == [float(n)]
    assert (f64([0.0]) + tk.tensor([n], "int64")).tolist() == [float(n)]
    assert (tk.tensor([n], "int64") / np.array([1.0])).tolist() == [float(n)]


@pytest.mark.feature(165)
def test_sums_counts_and_positions():
    assert of("bool", True, True).sum().dtype is tk.int32
    assert of("bool", True, True).sum().item() == 2
    assert of("bool", True, True, False).cumsum().tolist() == [1, 2, 2]
    wider = {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
    for name in ORDER[1:]:
        sums = wider.get(name, name)
        assert str(of(name, 1, 2).sum().dtype) == str(array(of(name, 1, 2).sum()).dtype) == sums
        assert str(of(name, 1, 2).cumsum().dtype) == str(array(of(name, 1, 2).cumsum()).dtype) == sums
        assert (
            str(of(name, 1, 2).sum(dtype=name).dtype) == str((of(name, 1, 2) @ of(name, 1, 2)).dtype) == name
        )
    for name in ORDER:
        assert of(name, 0, 1).argmax().dtype is tk.int32
        assert str(of(name, 0, 1).max().dtype) == str(of(name, 0, 1).min().dtype) == name
        assert (of(name, 0, 1) == of(name, 0, 0)).dtype is tk.bool_


@pytest.mark.feature(165)
@pytest.mark.parametrize("stack", STACKS)
def test_integers_wrap_in_sums_and_products_of_every_kind(stack):
    big = tk.tensor([2**31 - 1, 1], "int32", backend=STACKS[stack])
    assert big.sum().tolist() == -(2**31)
    assert big.cumsum(0).tolist() == [2**31 - 1, -(2**31)]
    assert (big * big).sum().tolist() == 2
    assert (big @ big).tolist() == 2
    assert (big + big).tolist() == [-2, 2]
    assert big.reshape(2, 1).sum(1).sum().tolist() == -(2**31)
    assert (big[:, None] * tk.tensor([[3, 1]], "int32", backend=STACKS[stack])).sum(1).tolist() == [-4, 4]
    assert str(array((big * big).sum()).dtype) == "int32"
    assert (big**3).tolist() == [2**31 - 1, 1]


@pytest.mark.feature(165)
@given(INT32, INT32)
def test_integer_operators_are_those_of_python_wrapped(a, b):
    x, y = of("int32", a), of("int32", b)
    wrapped = {
        operator.add: a + b,
        operator.sub: a - b,
        operator.mul: a * b,
        operator.and_: a & b,
        operator.or_: a | b,
        operator.xor: a ^ b,
        operator.floordiv: a // b if b else 0,
        operator.mod: a % b if b else None,
    }
    for apply, expected in wrapped.items():
        if expected is not None:
            assert apply(x, y).tolist() == [wrap_integer(expected, tk.int32)]
            assert apply(x, b).tolist() == apply(a, y).tolist() == [wrap_integer(expected, tk.int32)]
    assert ((-x).tolist(), (~x).tolist(), abs(x).tolist()) == (
        [wrap_integer(-a, tk.int32)],
        [~a],
        [wrap_integer(abs(a), tk.int32)],
    )
    for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        assert compare(x, y).tolist() == [compare(a, b)]
        assert compare(x, b).tolist() == [compare(a, b)]
        assert compare(a, y).tolist() == [compare(a, b)]


@pytest.mark.feature(165)
@given(INT32, st.integers(0, 40), st.integers(0, 5))
def test_shifts_and_powers_of_integers(a, bits, exponent):
    x = of("int32", a)
    assert (x << bits).tolist() == [wrap_integer(a << bits, tk.int32) if bits < 32 else 0]
    assert (x >> bits).tolist() == [a >> min(bits, 31)]
    assert (x**exponent).tolist() == [wrap_integer(a**exponent, tk.int32)]
    assert tk.tensor(a, "int64").item() ** exponent == a**exponent


@pytest.mark.feature(165)
def test_integers_stay_integers():
    x = of("int32", -7, 7)
    assert (x // 2).tolist() == [-4, 3]
    assert (x % 3).tolist() == [2, 1]
    assert (x // np.array([2, 2], "int32")).dtype is tk.int32
    assert (x // [2, 2]).dtype is (7 // x).dtype is (7 % x).dtype is tk.int32
    assert (x // 2.0).dtype is tk.float32
    assert (x // of("float64", 2.0)).tolist() == [-4.0, 3.0]
    assert (x // 0).tolist() == [0, 0]
    assert x.floor() is x
    assert (x**2).dtype is (x**0).dtype is tk.int32
    assert (x**0).tolist() == [1, 1]
    assert (x**0.5).dtype is tk.float32
    assert of("int32", 2, 3).__matmul__(of("int64", 10, 1)).dtype is tk.int64


@pytest.mark.feature(165, 167)
def test_booleans_have_logic_and_the_arithmetic_of_int8():
    a, b = of("bool", True, True, False, False), of("bool", True, False, True, False)
    for apply in (
        operator.add,
        operator.mul,
        operator.and_,
        operator.or_,
        operator.xor,
        operator.eq,
        operator.ne,
        operator.lt,
        operator.ge,
    ):
        expected = [bool(apply(p, q)) for p, q in zip(a.tolist(), b.tolist(), strict=True)]
        assert apply(a, b).tolist() == expected
        assert apply(a, b).dtype is tk.bool_
        assert apply(a, np.array(b.tolist())).tolist() == expected
    assert (~a).tolist() == [False, False, True, True]
    assert (a & True).tolist() == (True & a).tolist() == a.tolist()
    assert (a | True).tolist() == [True] * 4
    assert (a ^ True).tolist() == (~a).tolist()
    assert (a & of("int32", 3, 3, 3, 3)).tolist() == [1, 1, 0, 0]
    assert (a + 1).tolist() == [2, 2, 1, 1]
    assert (a * 2.5).tolist() == [2.5, 2.5, 0.0, 0.0]
    assert (a.max().item(), a.min().item(), a.argmax().item(), b.argmax().item()) == (True, False, 0, 0)
    c = of("bool", True, True, True, True)
    for integers in (operator.floordiv, operator.mod, operator.pow, operator.lshift, operator.rshift):
        expected = [int(integers(int(p), 1)) for p in b.tolist()]
        assert integers(b, c).tolist() == expected
        assert integers(b, c).dtype is tk.int8
    assert tk.square(a).dtype is tk.int8
    assert (a**2).dtype is tk.int32
    for wrong in (lambda: a - b, lambda: a - True, lambda: True - a, lambda: tk.subtract(a, b)):
        with pytest.raises(
            DTypeError, match=r"^sub(tract)?: not defined for bool; .*, or use a \^ b \(logical_xor\)"
        ):
            wrong()
    with pytest.raises(
        DTypeError, match=r"^neg(ative)?: not defined for bool; .*, or use ~x \(logical_not\)"
    ):
        tk.negative(a)


@pytest.mark.feature(167)
@each_of("stack", ["Fuse(Numpy())", "Numpy()", "Fuse(Required())"])
def test_sums_and_products_of_booleans_are_or_and_and(stack):
    """At every level, and for the larger and the smaller of two as well."""
    p, q = np.array([[True, True, False, False]]), np.array([[True], [False]])
    calls = {
        np.add: (operator.add, tk.add, lambda a, b: a.at[...].add(b)),
        np.multiply: (operator.mul, tk.multiply, lambda a, b: a.at[...].multiply(b)),
        np.maximum: (tk.maximum, tk.fmax, lambda a, b: a.maximum(b), lambda a, b: a.at[...].max(b)),
        np.minimum: (tk.minimum, tk.fmin, lambda a, b: a.minimum(b), lambda a, b: a.at[...].min(b)),
    }
    a, b = (tk.tensor(x, backend=STACKS[stack]) for x in (np.broadcast_to(p, (2, 4)), q))
    for ufunc, functions in calls.items():
        expected = ufunc(p, q)
        for function in functions:
            for level in (function, tk.jit(function), tk.vmap(function)):
                y = level(a, b)
                assert y.dtype is tk.bool_
                assert y.tolist() == expected.tolist()
            for one in (True, False):
                assert function(a, one).tolist() == ufunc(p | np.zeros((2, 1), bool), one).tolist()
    x = tk.tensor([1.0, -2.0, -0.5, 6.0], backend=STACKS[stack])
    chosen = tk.grad(lambda x: (((x > 0) + (x < -1)) * (x < 5)).where(x * x, 0.0).sum())
    assert chosen(x).tolist() == tk.jit(chosen)(x).tolist() == [2.0, -4.0, 0.0, 0.0]
    assert (abs(a).tolist(), abs(a).dtype) == (a.tolist(), tk.bool_)
    assert (tk.add(True, True).item(), tk.clip(a, False, True).tolist()) == (True, a.tolist())
    for result, dtype in ((a.sum(), "int32"), (tk.prod(a), "int32"), (a.max(), "bool"), (a.min(), "bool")):
        assert result.dtype == dtype


@pytest.mark.feature(167)
def test_booleans_broadcast_and_move():
    a = of("bool", True, False, True)
    assert (a[:, None] == a).tolist() == [[True, False, True], [False, True, False], [True, False, True]]
    assert a.broadcast_to((2, 3)).tolist() == [[True, False, True]] * 2
    assert a.flip().pad(((1, 0),)).tolist() == [False, True, False, True]
    assert a[::2].tolist() == [True, True]
    assert tk.take(a, [1, 1, 0]).tolist() == [False, False, True]
    assert tk.concatenate([a, a]).shape == (6,)
    assert a.where(a, False).tolist() == a.tolist()


@pytest.mark.feature(166)
@pytest.mark.parametrize("stack", ["Fuse(Numpy())", "Numpy()", "Fuse(Required())"])
def test_casts(stack):
    def cast(values, start, end):
        y = tk.tensor(values, start, backend=STACKS[stack]).astype(end)
        assert (str(y.dtype), str(array(y).dtype)) == (end, end)
        return y.tolist()

    inf, nan = math.inf, math.nan
    assert cast([1.9, -1.9, 0.5, -0.0], "float32", "int32") == [1, -1, 0, 0]
    assert cast([nan, inf, -inf, 1e10, -1e10], "float32", "int32") == [
        0,
        2**31 - 1,
        -(2**31),
        2**31 - 1,
        -(2**31),
    ]
    assert cast([nan, inf, -inf, 1e30, 2.0**62], "float64", "int64") == [
        0,
        2**63 - 1,
        -(2**63),
        2**63 - 1,
        2**62,
    ]
    assert cast([2.0**63 - 1024, 2.0**63, -(2.0**63)], "float64", "int64") == [
        2**63 - 1024,
        2**63 - 1,
        -(2**63),
    ]
    assert cast([2147483647.5, 2147483648.0, -2147483648.5], "float64", "int32") == [
        2**31 - 1,
        2**31 - 1,
        -(2**31),
    ]
    assert cast([65504.0, inf], "float16", "int32") == [65504, 2**31 - 1]
    assert cast([2**31, -(2**31) - 1, 2**32 + 5], "int64", "int32") == [-(2**31), 2**31 - 1, 5]
    assert cast([0.0, -0.0, nan, 0.1, inf], "float32", "bool") == [False, False, True, True, True]
    assert cast([0, 3, -1], "int32", "bool") == [False, True, True]
    assert cast([True, False], "bool", "float16") == [1.0, 0.0]
    just_above = [1.0 + 2.0**-8 + 2.0**-40, 1.0 + 3 * 2.0**-8]  # of ties; the first is one in float32
    assert cast(just_above, "float64", "bfloat16") == [1.0 + 2.0**-7, 1.0 + 2.0**-6]
    assert cast([2**62 + 2**54 + 1, -(2**62) - 2**54 - 1], "int64", "bfloat16") == [
        2.0**62 + 2.0**55,
        -(2.0**62) - 2.0**55,
    ]
    assert cast([2**30 + 2**22 + 1, 2**30 + 2**22], "int32", "bfloat16") == [2.0**30 + 2.0**23, 2.0**30]
    assert cast([3.4e38, 3.39e38, 1e-40, 4e-41], "float64", "bfloat16") == [
        inf,
        255 * 2.0**120,
        2.0**-133,
        0.0,
    ]
    assert cast([-1.5, 3e38, nan], "bfloat16", "int32") == [-1, 2**31 - 1, 0]
    assert cast([16777217], "int32", "float32") == [16777216.0]
    assert cast([1e300, -1e300, 1e-300], "float64", "float32") == [inf, -inf, 0.0]
    assert cast([1.0 + 2**-30], "float64", "float32") == [1.0]
    for name in ORDER:
        x = tk.tensor([1], name, backend=STACKS[stack])
        assert x.astype(name) is x


@pytest.mark.feature(7)
def test_no_warning_leaves_the_library():
    """Overflow, division by zero and invalid operations return values and raise no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = tk.tensor([0.0, -1.0, 1e30, math.inf, math.nan])
        for y in (
            x / x,
            x * x * x,
            tk.log(x),
            tk.sqrt(x),
            tk.exp(x),
            x - x,
            tk.sin(x),
            x.sum(),
            x @ x,
            x**0.5,
            x.mean(),
        ):
            y.tolist()
        tk.grad(lambda x: tk.log(x).sum())(x).tolist()
        tk.full(3, 1e300).tolist()
        tk.tensor([1e300, -1e300]).tolist()
        tk.tensor(1e300, "float16").tolist()
        (of("int32", 2**31 - 1) * 2 // 0).tolist()
        x.astype("int32").tolist()
        tk.zeros((0,)).mean().tolist()


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_numbers_beyond_the_range_are_infinite(backend):
    with tk.use_backend(backend):
        check_numbers_beyond_the_range()


def test_rounding_and_wrapping_of_python_numbers():
    assert round_float(0.1, tk.float32) == float(np.float32(0.1))
    assert round_float(1e300, tk.float32) == math.inf
    assert round_float(-1e300, tk.float16) == -math.inf
    assert round_float(65519.99, tk.float16) == 65504.0
    assert math.copysign(1.0, round_float(-1e-60, tk.bfloat16)) == -1.0
    assert round_float(0.1, tk.float64) == 0.1
    assert [wrap_integer(v, tk.int32) for v in (2**31, -(2**31) - 1, 2**32, 5)] == [-(2**31), 2**31 - 1, 0, 5]


@pytest.mark.feature(7)
def test_half_precision_is_a_dtype_like_the_others():
    x = of("float16", 1.0, 2.0)
    y = tk.softmax(tk.tanh(x) * x)
    assert (y.dtype, str(array(y).dtype)) == (tk.float16, "float16")
    gradient = tk.grad(lambda x: (x @ x).sum())(x)
    assert (gradient.dtype, gradient.tolist()) == (tk.float16, [2.0, 4.0])


@each_of("stack", STACKS)
def test_bfloat16_is_computed_in_float32_and_rounded_once(stack):
    """Sums of ones would stop at 256 in bfloat16; derivatives, jit and vmap keep the dtype."""
    backend = STACKS[stack]
    ones = tk.ones((3, 1000), "bfloat16", backend=backend)
    for total in (
        ones.sum(1),
        tk.jit(lambda x: x.sum(1))(ones),
        (ones @ ones.T)[0],
        tk.vmap(lambda x: x.sum())(ones),
    ):
        assert (total.dtype, total.tolist()) == (tk.bfloat16, [1000.0] * 3)
    scattered = (
        tk.zeros(1, "bfloat16", backend=backend).at[tk.zeros(1000, "int32", backend=backend)].add(ones[0])
    )
    assert scattered.tolist() == [1000.0]
    assert (ones * 1.01).mean().item() == round_float(1.01, tk.bfloat16)
    x = tk.tensor([0.5, -1.25, 3.0], "bfloat16", backend=backend)
    for f in (lambda x: (tk.tanh(x) * x).sum(), lambda x: (x * x / 3).sum(), lambda x: tk.exp(x).sum()):
        wide = tk.grad(f)(x.astype("float32")).tolist()
        for gradient in (tk.grad(f), tk.jit(tk.grad(f))):
            y = gradient(x)
            assert y.dtype is tk.bfloat16
            assert y.tolist() == pytest.approx(wide, rel=2.0**-6)
    bits = x.apply(OPS["to_bits"])
    assert (bits.dtype, bits.tolist()) == (tk.int32, [0x3F00, 0xBFA0 - 2**16, 0x4040])


@each_of("name", ["bool", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
def test_a_dtype_equals_all_its_spellings(name):
    dtype = getattr(tk, name)
    assert dtype == name == np.dtype(name) == dtype
    assert dtype in (np.dtype(name).type, "complex64")
    assert dtype not in ("complex64", "uint4", np.complex64, None, 3, [name])
    assert [other for other in DTYPES.values() if other == name] == [dtype]
    assert {dtype: 1}[getattr(tk, name)] == 1
    assert pickle.loads(pickle.dumps(dtype)) is dtype
