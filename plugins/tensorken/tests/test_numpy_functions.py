"""numpy's functions, called with tensors, run the functions of Tensorken and follow its transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import tensorken as tk
from core.tests.each import each_of
from tensorken_core.errors import ArgumentError, ConcretizationError, ImmutableError, TensorkenError

UFUNCS = sorted(
    {f.__name__ for f in vars(np).values() if isinstance(f, np.ufunc)} - {"isnat"}  # of dates alone
)
OF_INTS = {"gcd", "lcm", "ldexp", "left_shift", "right_shift", "invert", "bitwise_count"}
OF_INTS |= {name for name in UFUNCS if name.startswith("bitwise")}
OF_MATRICES = {"matmul": 2, "vecdot": 2, "matvec": 2, "vecmat": 2}


def arguments_of(name: str) -> list[Any]:
    """Arrays in the domain of a ufunc, which has values outside [-1, 1] only in arccosh."""
    if name in OF_MATRICES:
        shapes = {"matmul": ((2, 3), (3, 2)), "vecdot": ((2, 3), (2, 3))}
        a, b = shapes.get(name, ((2, 3), (3,)) if name == "matvec" else ((2,), (2, 3)))
        return [np.linspace(0.5, 1.0, int(np.prod(shape))).reshape(shape) for shape in (a, b)]
    if name == "ldexp":
        return [np.array([0.25, 0.75]), np.array([1, 2], "int32")]
    if name in OF_INTS:
        return [np.array(values, "int32") for values in ([6, 5], [3, 2])][: getattr(np, name).nin]
    first = [1.25, 1.75] if name == "arccosh" else [0.25, 0.75]
    return [np.array(values) for values in (first, [0.5, 2.0])][: getattr(np, name).nin]


@each_of("name", UFUNCS)
def test_every_ufunc_runs_the_function_here(name: str) -> None:
    arrays = arguments_of(name)
    wanted = getattr(np, name)(*arrays)
    found = getattr(np, name)(*map(tk.asarray, arrays))
    for y, z in zip(*[x if isinstance(x, tuple) else (x,) for x in (found, wanted)], strict=True):
        assert isinstance(y, tk.Tensor), type(y)
        np.testing.assert_allclose(np.asarray(y), z, rtol=1e-13)
    if len(arrays) == 2:  # the array comes first, so numpy is asked before the tensor
        mixed = getattr(np, name)(arrays[0], tk.asarray(arrays[1]))
        for y, z in zip(*[x if isinstance(x, tuple) else (x,) for x in (mixed, found)], strict=True):
            assert isinstance(y, tk.Tensor), type(y)
            assert y.dtype is z.dtype
            assert y.tolist() == z.tolist()


def test_ufuncs_follow_transforms() -> None:
    x, a = tk.tensor([0.5, 2.0], "float64"), np.array([3.0, 4.0])
    assert tk.grad(lambda x: (np.multiply(a, np.sin(x))).sum())(x).tolist() == (a * np.cos(x)).tolist()
    assert tk.jit(lambda x: np.exp(x) * a)(x).tolist() == (tk.exp(x) * a).tolist()
    assert tk.vmap(lambda x: a @ x)(x.broadcast_to((3, 2))).tolist() == [(a @ x).item()] * 3
    assert tk.grad(lambda x: scipy.special.gammaln(x).sum())(x).tolist() == tk.special.digamma(x).tolist()


def test_numpy_writes_into_its_own_arrays() -> None:
    x, a = tk.tensor([1.0, 2.0], "float64"), np.array([3.0, 4.0])
    out = a
    a += x
    assert out is a
    assert a.tolist() == [4.0, 6.0]
    assert np.multiply(x, 2.0, out=a) is a
    np.add.at(a, [0, 0], x)
    assert a.tolist() == [5.0, 4.0]
    with pytest.raises(ConcretizationError, match="inside grad"):
        tk.grad(lambda x: np.add(x, x, out=a).sum())(x)


def test_ufuncs_without_an_equivalent_return_arrays() -> None:
    def relu(x: float) -> float:  # a name of Tensorken's, which is another function
        return x + 1.0

    x = tk.tensor([1.0, 2.0])
    for found, wanted in [
        (scipy.special.jv(0, x), scipy.special.jv(0, np.asarray(x))),
        (np.frompyfunc(relu, 1, 1)(x), [2.0, 3.0]),
    ]:
        assert isinstance(found, np.ndarray)
        assert found.tolist() == list(wanted)


def test_dtypes_are_dtypes_of_numpy() -> None:
    for name in ("bool", "uint8", "int64", "float16", "float32", "complex64"):
        dtype = getattr(tk, name)
        assert np.dtype(dtype) == np.zeros(2, tk.zeros(2, dtype).dtype).dtype == np.dtype(name)
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True]) + tk.ones(2)
    assert masked.tolist() == [2.0, None]


class Quantity:
    """An operand of a library with ufuncs of its own."""

    def __array_ufunc__(self, *arguments: Any, **keywords: Any) -> str:
        return "theirs"


def test_the_ufuncs_of_other_libraries_come_first() -> None:
    assert np.add(tk.ones(2), Quantity()) == "theirs"
    assert np.add(Quantity(), tk.ones(2)) == "theirs"


x = tk.ones((2, 2))


@each_of(
    ("call", "error", "text"),
    [
        (lambda: np.add.reduce(x), ArgumentError, "numpy.add.reduce: .*use tk.sum"),
        (lambda: np.multiply.accumulate(x), ArgumentError, "numpy.multiply.accumulate: .*use tk.cumprod"),
        (lambda: np.add.at(x, 0, 1.0), ArgumentError, r"numpy.add.at: .*x.at\[indices\].add"),
        (lambda: np.hypot.outer(x, x), ArgumentError, r"numpy.hypot.outer: .*tk.hypot\(a\[:, None\], b\)"),
        (lambda: np.hypot.reduce(x), ArgumentError, r"numpy.hypot.reduce: .*numpy.asarray\(x\)"),
        (lambda: np.sin(x, where=x > 0), ArgumentError, "numpy.sin: unexpected argument where; .*tk.where"),
        (lambda: np.sin(np.ones(2), out=x), ImmutableError, "numpy.sin: out is a tensor.*use the result"),
        (lambda: {x: 1}, TypeError, "unhashable type: 'Tensor'"),
        (lambda: {x * 1j}, TypeError, "unhashable type: 'ComplexTensor'"),
        (lambda: hash(tk.random.key(0)), TypeError, "unhashable type: 'Key'"),
    ],
)
def test_errors_name_the_way_out(call: Any, error: type[TensorkenError], text: str) -> None:
    with pytest.raises(error, match=text) as raised:
        call()
    assert "\n" not in str(raised.value)
