"""A Python number takes the dtype of the tensor that it is combined with, in every mode as eagerly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken_core.errors import ArgumentError, TensorkenError

Function = Callable[..., Any]

FUNCTIONS: dict[str, Function] = {
    "x * n": lambda x, n: x * n,
    "n - x": lambda x, n: n - x,
    "x + (n + 1)": lambda x, n: x + (n + 1),
    "x * (0 - (-n))": lambda x, n: x * (0 - (-n)),
    "x * (n / 2)": lambda x, n: x * (n / 2),
    "x + n // 2 + n * n": lambda x, n: x + n // 2 + n * n,
    "x ** n": lambda x, n: x**n,
    "x % abs(n)": lambda x, n: x % abs(n),
    "divmod(x, n)": lambda x, n: divmod(x, n)[1],
    "n <= x": lambda x, n: n <= x,
    "x * (n > 1)": lambda x, n: x * (n > 1),
    "x << n": lambda x, n: x << n,
    "where": lambda x, n: tk.where(x > 3, x, n),
    "maximum": lambda x, n: tk.maximum(n, x),
    "clip": lambda x, n: tk.clip(x, 0, n),
    "sin": lambda x, n: x * tk.sin(n),
    "full": lambda x, n: x * tk.full(2, n),
    "stack": lambda x, n: tk.stack([n, x[0]]),
    "at.set": lambda x, n: x.at[0].set(n),
    "at.add": lambda x, n: x.at[0].add(n),
    "pad": lambda x, n: tk.pad(x, 1, constant_values=n),
}


def repeated(f: Function) -> Function:
    """The last of several calls, which later ones make faster."""
    return lambda *xs: [f(*xs) for _ in range(4)][-1]


def disabled(f: Function) -> Function:
    def call(*xs: Any) -> Any:
        with tk.disable_jit():
            return tk.jit(f)(*xs)

    return call


def with_carry(f: Function) -> Function:
    return lambda x, n: tk.scan(lambda c, _: (c, f(x, c)), n, None, length=2)[1][0]


def while_of(f: Function) -> Function:
    def call(x: Any, n: Any) -> Any:
        start = tk.zeros_like(f(x, n)), 0, n
        return tk.while_loop(lambda c: c[1] < 1, lambda c: (f(x, c[2]), c[1] + 1, c[2]), start)[0]

    return call


def modes(f: Function, differentiable: bool) -> Iterator[tuple[str, Function]]:
    """The function through each boundary of tracing."""
    yield from [
        ("jit", tk.jit(f)),
        ("jit, repeated", repeated(tk.jit(f))),
        ("jit of jit", tk.jit(lambda x, n: tk.jit(f)(x, n))),
        ("jit, by name", lambda x, n: tk.jit(lambda x, n: f(x, n))(x, n=n)),
        ("disable_jit", disabled(f)),
        ("trace", lambda x, n: tk.trace(f)(x, n)(x, n)),
        ("cond", lambda x, n: tk.cond(x[0] != 7, f, f, x, n)),
        ("jit of cond", tk.jit(lambda x, n: tk.cond(x[0] != 7, f, f, x, n))),
        ("switch", lambda x, n: tk.switch(tk.scalar(1), [f, f, f], x, n)),
        ("scan", with_carry(f)),
        ("jit of scan", tk.jit(with_carry(f))),
        ("while_loop", while_of(f)),
        ("jit of map", tk.jit(lambda x, n: tk.map(lambda _: f(x, n), tk.arange(2))[0])),
        ("checkpoint", tk.checkpoint(f)),
        ("jit of checkpoint", tk.jit(tk.checkpoint(f))),
        ("vmap", lambda x, n: tk.vmap(f, in_axes=(0, None))(x[None], n)[0]),
        ("jit of vmap", tk.jit(lambda x, n: tk.vmap(f, in_axes=(0, None))(x[None], n)[0])),
        ("custom_vjp", tk.custom_vjp(f)),
        ("jit of custom_jvp", tk.jit(tk.custom_jvp(f))),
    ]
    if differentiable:
        yield "vjp", lambda x, n: tk.vjp(f, x, n)[0]
        yield "linearize", lambda x, n: tk.linearize(f, x, n)[0]
        yield "jit of vjp", tk.jit(lambda x, n: tk.vjp(f, x, n)[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::tensorken_core.errors.RetraceWarning")
@each_of("dtype", ["uint8", "int64", "float16", "float32", "float64"])
def test_numbers_take_the_dtype_of_tensors_in_every_mode(dtype: str) -> None:
    x, tried, wrong = tk.tensor([3, 5], dtype), 0, []
    for (text, f), n in ((each, n) for each in FUNCTIONS.items() for n in (2, 2.5, True)):
        try:
            expected = f(x, n)
        except TensorkenError:  # the function is not defined for the dtype
            continue
        shape = tk.eval_shape(f, x, n)
        assert (shape.shape, shape.dtype) == (expected.shape, expected.dtype), (text, n)
        for mode, g in modes(f, dtype.startswith("float") or type(n) is float):
            y = g(x, n)
            tried += 1
            close = np.allclose(np.asarray(y), np.asarray(expected), rtol=1e-3)
            if y.dtype is not expected.dtype or not close:
                wrong.append(f"{mode} of {text} at {n}: {y.dtype} {y}, not {expected.dtype} {expected}")
    assert wrong == []
    assert tried > 500


def test_a_number_that_a_loop_makes_a_tensor_is_one() -> None:
    x = tk.tensor([3.0], "float16")
    total, seen = tk.scan(lambda c, y: (c + y, c * 1), 0, x)
    assert (total.dtype, seen.dtype) == ("float16", "float16")
    assert tk.fori_loop(0, 3, lambda i, c: c * 2, 1).dtype == "int32"
    assert tk.fori_loop(0, 3, lambda i, c: c + i, tk.tensor(1, "uint8")).dtype == "uint8"
    assert tk.jit(lambda n: n)(2**40).item() == 2**40
    assert tk.jit(lambda x, n: x + n)(tk.tensor([1], "int64"), 2**40).tolist() == [2**40 + 1]


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_powers_of_bools_have_the_default_dtype(n: int) -> None:
    x = tk.tensor([True, False])
    for y in (x**n, tk.power(x, n), tk.jit(lambda x: x**n)(x), tk.jit(lambda x, n: x**n)(x, n)):
        assert (y.dtype, y.tolist()) == (tk.int32, [1, 0**n])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_shapes_and_dtypes_of_complex_numbers(dtype: str) -> None:
    z = tk.ones((2, 3), dtype) * 1j
    structure = tk.ShapeDtypeStruct(z.shape, dtype)
    for argument in (z, structure):
        shapes = tk.eval_shape(
            lambda t: {"double": t["z"] * 2, "n": 1j, "part": t["z"].real}, {"z": argument}
        )
        assert shapes["double"] == structure
        assert shapes["n"] == tk.ShapeDtypeStruct((), "complex64")
        assert shapes["part"] == tk.ShapeDtypeStruct(z.shape, z.real.dtype)
        assert tk.eval_shape(lambda z: z.sum(), tk.eval_shape(lambda z: z * z, argument)).dtype == dtype
        assert tk.trace(lambda z: z * z)(argument)(z).tolist() == (z * z).tolist()
    with pytest.raises(ArgumentError, match="zeros_like: cannot make a tensor of ShapeDtypeStruct"):
        tk.zeros_like(structure)


def test_bools_stay_conditions() -> None:
    x = tk.tensor([1.0, 2.0])
    for f in (
        lambda x, b: tk.where(b, x, 0.0),
        lambda x, b: tk.select([b], [x], 0.0),
        lambda x, b: tk.cond(b, lambda: x, lambda: x + 1),
        lambda x, b: tk.sum(x, where=b),
        lambda x, b: tk.logical_not(b),
        lambda x, b: b & (x > 1),
        lambda x, b: tk.while_loop(lambda c: c[0] & (c[1] < 3), lambda c: (c[0], c[1] + 1), (b, 0))[1],
        lambda x, b: tk.scan(lambda c, y: (~c, c), b, x)[1],
        lambda x, b: tk.where(x[0] > b, x, 0.0),
    ):
        for flag in (True, False):
            y, z = f(x, flag), tk.jit(f)(x, flag)
            assert (y.dtype, y.tolist()) == (z.dtype, z.tolist())


def test_operands_keep_their_order() -> None:
    program = str(tk.trace(lambda x, n: n - x + x * n)(tk.tensor(1.0), 2.0))
    assert "sub(n, x)" in program
    assert "mul(x, n)" in program


PRECISE: dict[str, Function] = {
    "c * n": lambda c, n: c * n,
    "c * (n * 0.1)": lambda c, n: c * (n * 0.1),
    "c + n / 3": lambda c, n: c + n / 3,
    "c * n**0.5": lambda c, n: c * n**0.5,
    "hypot": lambda c, n: tk.hypot(c, n + 0.3),
    "sin": lambda c, n: tk.sin(n) * c,
    "full": lambda c, n: tk.full((2,), n) * c,
    "tensor": lambda c, n: tk.tensor(n) * c,
    "grad": lambda c, n: tk.grad(lambda m: (m * c).sum())(n),
    "checkpoint": lambda c, n: tk.checkpoint(lambda x, m: tk.exp(m * x) + m)(c, n),
    "itself": lambda c, n: n + 0,
    "fori_loop": lambda c, n: tk.fori_loop(0, 2, lambda i, m: m * 1.5, n),
    "fori_loop to c": lambda c, n: tk.fori_loop(0, 2, lambda i, m: m + c.real.sum(), n),
    "while_loop": lambda c, n: tk.while_loop(lambda m: m < 9.0, lambda m: m * 1.5, n),
    "scan": lambda c, n: tk.stack(list(tk.scan(lambda m, _: (m * n, m), n, None, length=1)[1]))[0] * c,
    "cond": lambda c, n: tk.cond(c.real.sum() > 0, lambda m: m, lambda m: c.real.sum() * m, n),
}


def compiled(f: Function, c: Any, n: float) -> list[Any]:
    """The result under jit, of a tensor that is an argument, is captured, or stands beside another float64."""
    return [
        tk.jit(f)(c, n),
        tk.jit(lambda n: f(c, n))(n),
        tk.jit(lambda c, n: tk.jit(f)(c, n))(c, n),
        tk.jit(lambda d, c, n: f(c, n))(tk.zeros(1, "float64"), c, n),
    ]


@each_of(
    ("name", "dtype"), [(name, dtype) for name in PRECISE for dtype in ("float32", "float64", "complex64")]
)
def test_a_number_keeps_its_digits_until_it_meets_a_tensor(name: str, dtype: str) -> None:
    """Functions of the number alone, as without jit, get a float32."""
    f, c = PRECISE[name], tk.tensor(np.array([0.7, 1.5]).astype(dtype))
    for n in (0.1, 3):
        if (name == "grad" and n == 3) or (name in ("hypot", "grad") and dtype == "complex64"):
            continue  # which is refused, as without jit
        expected = tk.tensor(f(c, n))
        with tk.disable_jit():
            found_in_python = compiled(f, c, n)
        for found in compiled(f, c, n) + found_in_python:
            assert found.dtype == expected.dtype
            rtol = 1e-15 if expected.dtype == tk.float64 else 1e-6
            np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=rtol)


COMPLEX: dict[str, Callable[[Any], Any]] = {
    **{
        text: eval(f"lambda z: {text}")
        for text in ("z * 3", "3 / z", "z - 0.1", "2 * z + z", "z * z / 3", "-z / 3")
    },
    **{
        text: eval(f"lambda z: {text}")
        for text in ("z**2", "2**z", "z.real * 0.1j", "z.imag * 3", "abs(z) / 3")
    },
    "conjugate": lambda z: z.conjugate() * 0.3,
    "of a float": lambda z: z.real / 3 + 0.7j,
    "exp": lambda z: tk.exp(z) * 0.3,
    "multiply": lambda z: tk.multiply(z, z),
    "tensor": lambda z: tk.tensor(z * 0.1) * 3,
}


@pytest.mark.filterwarnings("ignore::tensorken_core.errors.RetraceWarning")
@each_of("dtype", ["int32", "float16", "float32", "float64", "complex64", "complex128"])
def test_a_python_complex_number_takes_the_dtype_of_tensors(dtype: str) -> None:
    """Under jit, too, whatever stands beside it; it keeps its digits until it meets a tensor."""
    c = tk.tensor(np.array([3, 5]).astype(dtype))
    for text, g in COMPLEX.items():
        for f in (lambda c, z, g=g: c * g(z), lambda c, z, g=g: g(z) - c, lambda c, z, g=g: g(z)):
            expected = tk.tensor(f(c, 0.3 - 0.1j))
            for found in compiled(f, c, 0.3 - 0.1j):  # type: ignore[arg-type]
                assert found.dtype == expected.dtype, text
                rtol = {8: 1e-15, 4: 1e-6, 2: 2e-3}[np.asarray(tk.real(expected)).dtype.itemsize]
                np.testing.assert_allclose(
                    np.asarray(found), np.asarray(expected), rtol=8 * rtol, err_msg=text
                )


@each_of("n", [0.3 - 0.1j, 3j])
def test_loops_keep_the_digits_of_complex_numbers(n: complex) -> None:
    c = tk.tensor([0.7, 1.5], "complex128")
    for f in (
        lambda z: tk.fori_loop(0, 2, lambda i, m: m * 0.3, z),
        lambda z: c * tk.jit(lambda m: m)(z * 3.0),
        lambda z: tk.scan(lambda m, _: (m * z, c * m), z, None, length=2)[1],
        lambda z: tk.cond(c.real.sum() > 0, lambda m: c * m, lambda m: c, z * 3.0),
    ):
        expected = np.asarray(f(n))
        found = np.asarray(tk.jit(f)(n))
        assert found.dtype == expected.dtype
        rtol = 8e-15 if expected.dtype == np.complex128 else 1e-6
        np.testing.assert_allclose(found, expected, rtol=rtol)


COMPARISONS: dict[str, Function] = {
    **{
        text: eval(f"lambda x, n: {text}")
        for text in ("x < n", "x <= n", "x > n", "x >= n", "x == n", "n != x")
    },
    **{name: getattr(tk, name) for name in ("less", "less_equal", "greater", "greater_equal", "equal")},
    "not_equal, reflected": lambda x, n: tk.not_equal(n, x),
}


@pytest.mark.filterwarnings("ignore::tensorken_core.errors.RetraceWarning")
@each_of("dtype", ["uint8", "int8", "uint32", "int32", "uint64", "int64"])
def test_ints_beyond_a_range_are_compared_by_value(dtype: str) -> None:
    values = [0, 5, 100]
    x = tk.tensor(values, dtype)
    for n in (-1, 300, 70000, 2**31, -(2**31) - 1, 2**40, 5):
        for text, f in COMPARISONS.items():
            expected = [bool(f(np.int64(v), np.int64(n))) for v in values]
            assert f(x, n).tolist() == tk.jit(f)(x, n).tolist() == expected, (text, n)
