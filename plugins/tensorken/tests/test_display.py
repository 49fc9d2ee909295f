"""Printed tensors: numpy prints the same text for random arrays and options; formats, options, transforms."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

import tensorken as tk
from tensorken.arrays.display import display_text, repr_text, representation, text
from tensorken.arrays.display.options import PrintOptions
from tensorken_core.errors import ConcretizationError
from tensorken_core.language.dtypes import DType, bool_, float16, float32, float64, int32, int64

INF, NAN = math.inf, math.nan


# ---- the same text as numpy's ----------------------------------------------------------------------------------

COMPLEX = (DType("complex64", "complex", 8, ""), DType("complex128", "complex", 16, ""))  # type: ignore[arg-type]
DTYPES = {dtype.name: dtype for dtype in (bool_, int32, int64, float16, float32, float64, *COMPLEX)}
if (
    np.lib.NumpyVersion(np.__version__) < "2.3.0"
):  # where narrow floats get an exponent from 1e8 on, as float64 does
    DTYPES = {name: DTYPES[name] for name in ("bool", "int32", "int64", "float64", "complex128")}


def floats(rng, shape, dtype):
    """Floats of one of several distributions: random bits, bell curves, short decimals, powers, special numbers."""
    match rng.integers(8):
        case 0:
            return np.frombuffer(rng.bytes(math.prod(shape) * np.dtype(dtype).itemsize), dtype).reshape(shape)
        case 1:
            values = rng.normal(size=shape)
        case 2:
            values = rng.integers(-50, 50, shape) / rng.choice([1, 2, 4, 8, 10])
        case 3:
            values = 10.0 ** rng.integers(-9, 12, shape)
        case 4:
            values = rng.choice([1, -1], shape) * 2.0 ** rng.integers(-30, 30, shape)
        case 5:
            values = rng.uniform(-1, 1, shape) * 10.0 ** rng.integers(-6, 9)
        case 6:
            values = rng.choice([0, -0.0, NAN, INF, -INF, 1, 1.5, 1e-5], shape)
        case _:
            values = rng.integers(-3, 1000, shape) * 1.0
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(dtype)


def random_array(rng):
    """An array of at most 3,000 elements, of any of the dtypes."""
    name = rng.choice([*DTYPES])
    longest = rng.choice([3, 5, 12, 60])
    shape = tuple(rng.integers(rng.random() < 0.95, longest, rng.integers(4)).tolist())
    if math.prod(shape) > 3000:
        shape = shape[:2]
    match DTYPES[name].kind:
        case "float":
            return np.array(floats(rng, shape, name))
        case "complex":
            array = np.empty(shape, name)
            array.real, array.imag = (floats(rng, shape, array.real.dtype) for _ in range(2))
            return array
        case "int":
            return np.asarray(rng.integers(*(10 ** rng.integers(1, 9, 2) * [-1, 1]), shape)).astype(name)
        case _:
            return np.asarray(rng.random(shape) < 0.5)


def random_options(rng):
    """Options that tensors and arrays have in common, or none."""
    if rng.random() < 0.5:
        return {}
    return {
        "precision": int(rng.choice([0, 3, 8, 17])),
        "threshold": int(rng.choice([0, 10, 1000])),
        "edgeitems": int(rng.choice([0, 1, 2, 3])),
        "linewidth": int(rng.choice([0, 1, 20, 75, 130])),
        "suppress": bool(rng.random() < 0.3),
        "sign": str(rng.choice(["-", "+", " "])),
        "floatmode": str(rng.choice(["maxprec", "fixed", "unique", "maxprec_equal"])),
        "nanstr": str(rng.choice(["nan", "missing"])),
        "infstr": str(rng.choice(["inf", "infinity"])),
    }


def check_like_numpy(seed):
    rng = np.random.default_rng(seed)
    array, options = random_array(rng), random_options(rng)
    dtype, elements = DTYPES[array.dtype.name], array.ravel().tolist()
    with np.printoptions(**options), np.errstate(over="ignore"):  # numpy divides the extremes
        as_str = str(array)
        as_repr = np.array2string(array, separator=", ", prefix="tensor(", suffix=")")
    assert display_text(array.shape, elements, dtype, options=PrintOptions(**options)) == as_str, seed
    shown = repr_text(array.shape, elements, dtype, PrintOptions(**options))
    assert shown.startswith(f"tensor({as_repr}"), seed
    keywords = shown.removeprefix(f"tensor({as_repr}")
    assert keywords.endswith(")"), seed
    assert ("dtype=" in keywords) == (
        array.size == 0 or array.dtype.name not in ("bool", "int32", "float32")
    ), seed
    is_cut = array.size > options.get("threshold", 1000)
    assert (f"shape={array.shape}" in keywords) == (is_cut or (array.size == 0 and array.shape != (0,))), seed


@pytest.mark.feature(50)
@pytest.mark.parametrize("block", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 10))])
def test_random_arrays_print_as_in_numpy(block):
    for seed in range(1000 * block, 1000 * (block + 1)):
        check_like_numpy(seed)


@pytest.mark.feature(51)
@pytest.mark.slow
def test_every_float16_prints_as_in_numpy():
    values = np.arange(2**16, dtype=np.uint16).view(np.float16)
    with np.errstate(invalid="ignore"):
        for value in values if "float16" in DTYPES else ():
            assert display_text((), [float(value)], float16) == str(value)


@pytest.mark.feature(50)
@pytest.mark.parametrize(
    ("shape", "elements", "dtype", "shown"),
    [
        ((3,), [0.0, 0.0, 0.0], float32, "[0. 0. 0.]"),
        ((2, 2), [1.0, 2.5, -INF, NAN], float32, "[[ 1.   2.5]\n [-inf  nan]]"),
        ((2, 1, 2), range(4), int32, "[[[0 1]]\n\n [[2 3]]]"),
        ((2,), [1e8, 1e-8], float32, "[1.e+08 1.e-08]"),
        ((2,), [True, False], bool_, "[ True False]"),
        ((), [True], bool_, "True"),
        ((), [2.0], float32, "2.0"),
        ((), [1e16], float64, "1e+16"),
        ((0, 3), [], float32, "[]"),
        ((2,), [1 + 2j, -0.5j], COMPLEX[0], "[ 1.+2.j  -0.-0.5j]"),
        ((), [complex(0.0, -1.5)], COMPLEX[1], "-1.5j"),
        ((2000,), range(2000), int64, "[   0    1    2 ... 1997 1998 1999]"),
    ],
)
def test_str(shape, elements, dtype, shown):
    assert display_text(shape, elements, dtype) == shown


@pytest.mark.feature(50)
@pytest.mark.parametrize(
    ("shape", "elements", "dtype", "shown"),
    [
        ((2, 2), [1, 2, 3, 4], float32, "tensor([[1., 2.],\n        [3., 4.]])"),
        ((), [-0.0], float64, "tensor(-0., dtype=float64)"),
        ((), [7], int32, "tensor(7)"),
        ((), [True], bool_, "tensor(True)"),
        ((2,), [1e20, 0.5], float64, "tensor([1.e+20, 5.e-01], dtype=float64)"),
        ((0,), [], int32, "tensor([], dtype=int32)"),
        ((0, 3), [], float32, "tensor([], shape=(0, 3), dtype=float32)"),
        (
            (2000,),
            range(2000),
            int64,
            "tensor([   0,    1,    2, ..., 1997, 1998, 1999],\n       shape=(2000,), dtype=int64)",
        ),
    ],
)
def test_repr(shape, elements, dtype, shown):
    assert repr_text(shape, elements, dtype) == shown


# ---- options ---------------------------------------------------------------------------------------------------


@pytest.mark.feature(50)
def test_options_end_with_their_block_and_have_the_defaults_and_names_of_numpy():
    x = tk.tensor([0.123456789, 1.0])
    before = tk.get_printoptions()
    assert {name: value for name, value in np.get_printoptions().items() if name in before} == {
        name: value for name, value in before.items() if name != "style"
    }
    with tk.printoptions(precision=2) as options:
        assert options == tk.get_printoptions() == before | {"precision": 2}
        assert str(x) == "[0.12 1.  ]"
        tk.set_printoptions(4, floatmode="fixed")
        assert str(x) == "[0.1235 1.0000]"
        tk.set_printoptions(**before)
        assert tk.get_printoptions() == before
    assert tk.get_printoptions() == before
    with pytest.raises(ZeroDivisionError), tk.printoptions(style="boxes"):
        _ = 1 / 0
    assert tk.get_printoptions() == before


@pytest.mark.feature(50)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": -1}, "precision must be an integer from 0, got -1"),
        ({"sign": "x"}, "sign must be '-', '\\+' or ' ', got 'x'"),
        ({"style": "box"}, "style must be 'brackets' or 'boxes', got 'box'"),
        ({"threshold": NAN}, "threshold must be a number from 0.*got nan"),
        ({"width": 3}, "there is no option 'width'; the options are precision,"),
    ],
)
def test_invalid_options(options, message):
    before = tk.get_printoptions()
    with pytest.raises(tk.errors.ArgumentError, match=message), tk.printoptions(**options):
        pass
    assert tk.get_printoptions() == before


# ---- format specs, formulas and levels -------------------------------------------------------------------------


@pytest.mark.feature(193)
@pytest.mark.parametrize(
    ("elements", "dtype", "spec", "shown"),
    [
        ([1, 2.5, -INF, NAN], float32, ".3f", "[[1.000 2.500]\n [ -inf   nan]]"),
        ([1, 2.5, 1000, 0], float64, ".1e", "[[1.0e+00 2.5e+00]\n [1.0e+03 0.0e+00]]"),
        ([1, 2, 300, 4], int32, "+d", "[[  +1   +2]\n [+300   +4]]"),
        ([1, 2, 3, 4], int32, ".2f", "[[1.00 2.00]\n [3.00 4.00]]"),
        ([1, 2, 3, 4], float32, "5.1f", "[[  1.0   2.0]\n [  3.0   4.0]]"),
        ([0.5, 0.25, 1, 0], float16, ".0%", "[[ 50%  25%]\n [100%   0%]]"),
    ],
)
def test_format_specs(elements, dtype, spec, shown):
    assert display_text((2, 2), elements, dtype, spec) == shown


@pytest.mark.feature(193)
def test_format_spec_of_a_number_and_of_a_box():
    assert display_text((), [math.pi], float32, ".3f") == "3.142"
    assert "[0.33 0.67]" in display_text((1, 1, 2), [1 / 3, 2 / 3], float32, ".2f")
    with tk.printoptions(style="boxes"):
        assert "|  [0.33 0.67]  |" in display_text((1, 1, 2), [1 / 3, 2 / 3], float32, ".2f")
    with pytest.raises(ValueError, match="Unknown format code 'd'"):
        display_text((2,), [1.0, 2.0], float32, "d")


class Formula(SimpleNamespace):
    def __str__(self):
        return "(A + B)"


def stand_in(flat, below=None, transform=None):
    """The attributes of a Tensor of shape (2,) that display uses."""
    interpreter = SimpleNamespace(below=below, transform=transform, lower=lambda x: x.value)
    return SimpleNamespace(
        shape=(2,), dtype=float32, flat=flat, interpreter=interpreter, representation=Formula(value=Formula())
    )


def no_values():
    raise ConcretizationError("only a formula is known")


@pytest.mark.feature(50, 193)
def test_text_of_tensors_at_each_level():
    backend = SimpleNamespace(below=None)
    plain = stand_in(lambda: [1.0, 2.5])
    inside = stand_in(lambda: [1.0, 2.5], backend, "grad")
    assert text(plain) == text(inside) == "[1.  2.5]"
    assert text(plain, ".2f") == "[1.00 2.50]"
    assert representation(plain) == "tensor([1. , 2.5])"
    assert representation(inside) == "<tensor([1. , 2.5]) inside grad>"


@pytest.mark.feature(50)
def test_text_of_a_tensor_without_values_is_its_formula():
    assert text(stand_in(no_values)) == "(A + B)"
    assert representation(stand_in(no_values)) == "<tensor (A + B), shape=(2,), dtype=float32>"
    inside = stand_in(no_values, SimpleNamespace(below=None), "jvp")
    assert text(inside) == "(A + B)"
    assert representation(inside) == "<<tensor (A + B), shape=(2,), dtype=float32> inside jvp>"


def test_elements_may_be_any_sequence_or_a_function():
    values = np.arange(6, dtype="float32")
    expected = "[[0. 1. 2.]\n [3. 4. 5.]]"
    for elements in (values, memoryview(values), values.tolist(), tuple(values), lambda i: values[i]):
        assert display_text((2, 3), elements, float32) == expected
