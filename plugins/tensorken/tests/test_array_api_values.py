"""The functions of the array API standard agree with array-api-strict in dtypes, shapes and values.

Each expression is evaluated in both namespaces, on arrays of all shapes and dtypes.  Where array-api-strict raises, the
standard leaves the result unspecified, and nothing is compared.  Wider default dtypes are replaced by ours.
"""

from __future__ import annotations

import inspect
import operator
import re
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import tensorken as tk
from tensorken_core.errors import AxisError

pytestmark = pytest.mark.slow

strict_array = type(strict.asarray(0.0))
DTYPES = ("bool", "int32", "int64", "float32", "float64")
SHAPES = ((), (0,), (1,), (4,), (2, 3), (3, 3), (0, 2), (2, 0, 3), (2, 1, 3), (2, 3, 2))
INF, NAN = float("inf"), float("nan")
EXACT = {
    *(
        "abs",
        "ceil",
        "copysign",
        "floor",
        "maximum",
        "minimum",
        "negative",
        "nextafter",
        "positive",
        "round",
        "sign",
    ),
    *("square", "subtract", "trunc", "add", "multiply", "divide", "sqrt", "reciprocal", "remainder", "clip"),
}


def special(dtype: str) -> list[Any]:
    """Values at which something may go wrong."""
    if dtype == "bool":
        return [False, True]
    if dtype.startswith("int"):
        bits = int(dtype[3:])
        return [0, 1, -1, 2, -2, 3, 7, -8, 31, 1 - 2 ** (bits - 1), 2 ** (bits - 1) - 1]
    info = np.finfo(dtype)
    edges = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 1e-3, 10.0, 88.0, 1e4, float(info.tiny), float(info.max), INF]
    return [*edges, *[-v for v in edges], float(np.nextafter(np.array(1, dtype), 2)), NAN]


def sample(shape: tuple[int, ...], dtype: str, start: int = 0) -> Any:
    """An array of small numbers, some of them equal, some negative."""
    flat = (np.arange(start, start + np.prod(shape, dtype=int)) * 5) % 7 - 3
    scaled = flat / 2 if dtype.startswith("float") else flat % 2 if dtype == "bool" else flat
    return scaled.reshape(shape).astype(dtype)


def dtype_name(dtype: Any) -> str:
    return getattr(dtype, "name", str(dtype).split(".")[-1])


def plain(value: Any) -> Any:
    """A result of either namespace as numpy arrays, names of dtypes and Python numbers."""
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, strict_array):
        return np.asarray(value._array)
    if isinstance(value, tk.Tensor):
        return np.asarray(value)
    if isinstance(value, tk.DType | type(strict.float64)):
        return dtype_name(value)
    return value


INDICES = re.compile(
    r"(xp\.)?(arg(max|min|sort)|count_nonzero|nonzero|searchsorted|unique_(all|counts|inverse)(?!.*[.]values)|linalg.matrix_rank)\b"
)
"""Functions that return indices or counts: ours are int32 for every operand dtype."""


def narrowed(name: str, operands: list[Any]) -> str:
    """The expected dtype for a dtype of array-api-strict, whose defaults are float64 and int64."""
    given = {a.dtype.name for a in operands}
    if name == "int64" and "int64" not in given:
        return "int32"
    return "float32" if name == "float64" and "float64" not in given else name


def agree(
    ours: Any, theirs: Any, operands: list[Any], what: str, exact: bool = False, asked: bool = False
) -> None:
    """Assert equal dtypes (or the `asked` one), shapes and values, in all parts."""
    if isinstance(theirs, list):
        assert isinstance(ours, list) and len(ours) == len(theirs), f"{what}: {ours}, need {theirs}"
        for place, (mine, wanted) in enumerate(zip(ours, theirs, strict=True)):
            first_of_unique = what.removeprefix("xp.").startswith("unique") and place == 0  # the values
            agree(
                mine, wanted, operands, f"part {place} of {what}" if first_of_unique else what, exact, asked
            )
        return
    if not isinstance(theirs, np.ndarray):
        if isinstance(theirs, str) and not asked:
            theirs = narrowed(theirs, operands)
        assert type(ours) is type(theirs) and ours == theirs, f"{what}: {ours!r}, need {theirs!r}"
        return
    assert isinstance(ours, np.ndarray), f"{what}: {ours!r} is no array"
    dtype = theirs.dtype.name if asked else narrowed(theirs.dtype.name, operands)
    dtype = "int32" if INDICES.match(what) else dtype
    assert (ours.dtype.name, ours.shape) == (dtype, theirs.shape), f"{what}: {ours.dtype} {ours.shape}"
    wanted = theirs.astype(dtype)
    if wanted.dtype.kind != "f" or exact:
        np.testing.assert_array_equal(ours, wanted, err_msg=what)
    else:
        few = 32 * np.finfo(dtype).eps
        np.testing.assert_allclose(ours, wanted, rtol=few, atol=few, err_msg=what)
    if exact and wanted.dtype.kind == "f":
        signs = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(ours)[signs], np.signbit(wanted)[signs], err_msg=what)


# ---- elementwise functions -----------------------------------------------------------------------------------

ELEMENTWISE = {
    name: len(
        [p for p in inspect.signature(getattr(strict, name)).parameters.values() if p.default is p.empty]
    )
    for name in strict.__all__
    if getattr(getattr(strict, name), "__module__", "").endswith("_elementwise_functions")
    and name not in ("clip", "imag")  # clip has defaults; the standard defines imag only for complex numbers
}


def both(function: Any, arrays: list[Any]) -> tuple[Any, Any] | None:
    """The results in tensorken and in array-api-strict, or None where the latter refuses."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            theirs = function(strict, *[strict.asarray(a) for a in arrays])
        except (TypeError, ValueError, IndexError):
            return None
    try:
        ours = function(tk, *[tk.asarray(a) for a in arrays])
    except AxisError:
        if arrays[0].ndim == 0:  # an axis of a scalar: numpy accepts it, the standard does not
            return None
        raise
    return plain(ours), plain(theirs)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_functions_at_special_values(name):
    tried = 0
    for dtype in DTYPES:
        values = np.array(special(dtype), dtype)
        arrays = [values] if ELEMENTWISE[name] == 1 else [values[:, None], values[None, :]]
        if name.startswith("bitwise_") and name.endswith("_shift"):
            arrays = [values[:, None], np.arange(8).astype(dtype)[None, :]]
        if name == "pow" and dtype.startswith("int"):
            arrays = [np.arange(-3, 4, dtype=dtype)[:, None], np.arange(6, dtype=dtype)[None, :]]
        if name in ("floor_divide", "remainder") and dtype.startswith("int"):
            arrays[1] = arrays[1][arrays[1] != 0][None, :]
        if name in ("floor_divide", "remainder"):
            arrays = [a[np.isfinite(a)].reshape([-1 if n > 1 else 1 for n in a.shape]) for a in arrays]
        found = both(lambda xp, *xs: getattr(xp, name)(*xs), arrays)
        if found is not None:
            tried += 1
            agree(*found, arrays, f"{name} of {dtype}", exact=name in EXACT)
    assert tried


@pytest.mark.parametrize("name", [name for name, arity in ELEMENTWISE.items() if arity == 2])
def test_numbers_combined_with_arrays(name):
    for dtype, number in product(DTYPES, (True, 2, 1.5)):
        x = sample((2, 3), dtype)
        x = np.abs(x) if name.endswith("_shift") or name == "pow" else x
        for function in (
            lambda xp, a, number=number: getattr(xp, name)(a, number),
            lambda xp, a, number=number: getattr(xp, name)(number, a),
        ):
            if name in ("floor_divide", "remainder") and not x.all():
                x = np.where(x == 0, np.array(1, dtype), x)
            found = both(function, [x])
            if found is not None:
                agree(*found, [x], f"{name} of {dtype} and {number}", exact=name in EXACT)


def test_promotion_follows_the_standard():
    for one, other in product(DTYPES, DTYPES):
        a, b = sample((2, 3), one), sample((3,), other)
        for function in (operator.add, operator.mul, operator.lt, operator.eq, operator.and_):
            found = both(lambda xp, a, b, function=function: function(a, b), [a, b])
            if found is not None:
                agree(*found, [a, b], f"{function.__name__} of {one} and {other}")
        found = both(lambda xp, a, b: xp.result_type(a, b.dtype), [a, b])
        if found is not None:
            agree(*found, [a, b], f"result_type of {one} and {other}")


# ---- everything else -------------------------------------------------------------------------------------------

EXPRESSIONS = Path(__file__).with_name("array_api_expressions.txt").read_text(encoding="utf-8").splitlines()
"""One a line, about an array x; where there is a {}, each dtype is put in."""


def refused(expression: str, dtype: str) -> bool:
    """Whether the standard leaves an expression unspecified for a dtype."""
    return (
        (dtype == "bool" and re.search("arange|sum|prod|trace", expression) is not None)
        or ("iinfo" in expression and not dtype.startswith("int"))
        or (("finfo" in expression or "linspace" in expression) and not dtype.startswith("float"))
    )


CALLS = [
    (line.replace("{}", f"xp.{dtype}"), "{}" in line)
    for line in EXPRESSIONS
    for dtype in (DTYPES if "{}" in line else DTYPES[:1])
    if not ("{}" in line and refused(line, dtype))
]


@pytest.mark.parametrize("backend", ["numpy", pytest.param("reference", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("expression", "asked"), CALLS, ids=[expression for expression, _ in CALLS])
def test_the_same_expression_gives_the_same_in_both_namespaces(expression, asked, backend):
    code = compile(expression, expression, "eval")
    tried = 0
    for shape, dtype in product(SHAPES, DTYPES) if "x" in expression.replace("xp", "") else [((), "float32")]:
        a = sample(shape, dtype)
        to = re.search(r"can_cast\(.*xp\.(\w\w\w)", expression)
        if to and not dtype.startswith(to[1]):
            continue  # the standard does not specify mixed kinds; ours follows promotion
        with tk.use_backend(backend):
            found = both(lambda xp, x: eval(code, {"xp": xp, "x": x}), [a])
        if found is not None:
            tried += 1
            agree(*found, [a], f"{expression} for {dtype} of shape {shape}", asked=asked)
    assert tried, f"array-api-strict itself refuses {expression}"


@pytest.mark.parametrize("name", sorted({"max", "min", "sum", "prod", "mean", "var", "std", "argmax", "argmin", "sort",
    "argsort", "any", "all", "count_nonzero", "cumulative_sum", "cumulative_prod", "unique_values", "unique_counts",
    "nonzero"}))  # fmt: skip
def test_reductions_and_orders_at_special_values(name):
    for dtype, values in product(("float32", "float64"), product((0.0, -0.0, 1.0, INF, -INF, NAN), repeat=3)):
        if name in ("sort", "argsort") and any(v != v for v in values):
            continue  # the standard does not specify the position of NaN
        a = np.array(values, dtype)
        found = both(lambda xp, x: getattr(xp, name)(x), [a])
        if found is not None:
            agree(*found, [a], f"{name} of {values}", exact=name in ("max", "min"))


@pytest.mark.parametrize(
    "ours",
    [[1.0, 2.0], np.array([1, 2]), np.array([1.0, 2.0]), np.array([[1.0, 2.0]], "float32"),
     np.array([1.0, 2.5], "float32"), np.array([1.0, np.nan], "float32")],
)  # fmt: skip
def test_a_difference_would_be_seen(ours):
    with pytest.raises(AssertionError):
        agree(ours, np.array([1.0, 2.0]), [np.zeros(1, "float32")], "it")


def test_a_different_sign_or_another_default_would_be_seen():
    zero = np.array([0.0], "float32")
    agree(zero, -zero, [zero], "it")
    with pytest.raises(AssertionError):
        agree(zero, -zero, [zero], "it", exact=True)
    agree(np.array([1], "int32"), np.array([1]), [zero], "it")
    with pytest.raises(AssertionError):
        agree(np.array([1], "int32"), np.array([1]), [np.array([1])], "it")
    agree("float32", "float64", [zero], "it")
    with pytest.raises(AssertionError):
        agree("float64", "float64", [zero], "it")
    with pytest.raises(AssertionError):
        agree([zero], [zero, zero], [zero], "it")
