"""Positions and counts: their dtype follows from shapes alone, the same in every mode, and little memory is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import peak_of
from plugins.tensorken.tests.namespace.laws import quiet
from tensorken.arrays.functions import editing, reductions
from tensorken.arrays.indexing import masks
from tensorken_core.errors import ScalarRangeError, ShapeError
from tensorken_core.tensor import tensor

pytestmark = pytest.mark.usefixtures("on_numpy")

# ---- dtypes ------------------------------------------------------------------------------------------------

N = 2**31 + 7


def of(shape: Any, dtype: str = "int8") -> tk.ShapeDtypeStruct:
    return tk.ShapeDtypeStruct(shape, dtype)


VECTOR, MATRIX, FLOATS, BOOLS = of((N,)), of((3, N)), of((N,), "float32"), of((N,), "bool")
PLACE, PLACES = of((), "int32"), of((2,), "int32")

RESULTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = {
    "argmax": (tk.argmax, (VECTOR,), ((), "int64")),
    "argmax of an axis": (lambda x: tk.argmax(x, 1), (MATRIX,), ((3,), "int64")),
    "argmax of a short axis": (lambda x: tk.argmax(x, 0), (MATRIX,), ((N,), "int32")),
    "argmax of all": (tk.argmax, (MATRIX,), ((), "int64")),
    "argmin": (lambda x: tk.argmin(x, keepdims=True), (BOOLS,), ((1,), "int64")),
    "nanargmax": (tk.nanargmax, (FLOATS,), ((), "int64")),
    "count_nonzero": (tk.count_nonzero, (VECTOR,), ((), "int64")),
    "count_nonzero of an axis": (lambda x: tk.count_nonzero(x, 0), (MATRIX,), ((N,), "int32")),
    "sum of bools": (tk.sum, (BOOLS,), ((), "int64")),
    "sum of some bools": (lambda x: tk.sum(x, 0), (of((3, N), "bool"),), ((N,), "int32")),
    "sum of int8": (tk.sum, (VECTOR,), ((), "int32")),  # a value, no count
    "sum in int64": (lambda x: x.sum(dtype="int64"), (VECTOR,), ((), "int64")),
    "mean": (tk.mean, (VECTOR,), ((), "float32")),
    "searchsorted": (tk.searchsorted, (VECTOR, of((2,))), ((2,), "int64")),
    "digitize": (tk.digitize, (of((2,), "float32"), FLOATS), ((2,), "int64")),
    "bincount": (lambda x: tk.bincount(x, length=4), (of((N,), "uint8"),), ((4,), "int64")),
    "histogram": (lambda x: tk.histogram(x, 4)[0], (FLOATS,), ((4,), "int64")),
    "take": (lambda x, i: tk.take(x, i, -1), (MATRIX, PLACES), ((3, 2), "int8")),
    "an index": (lambda x, i: x[i], (VECTOR, PLACE), ((), "int8")),
    "two indices": (lambda x, i: x[i, i], (of((2**16, 2**16)), PLACES), ((2,), "int8")),
    "take_along_axis": (
        lambda x, i: tk.take_along_axis(x, i, 1),
        (MATRIX, of((3, 2), "int32")),
        ((3, 2), "int8"),
    ),
    "at": (lambda x, i: x.at[i].add(1), (VECTOR, PLACES), ((N,), "int8")),
    "at[-1]": (lambda x: x.at[-1].set(1), (VECTOR,), ((N,), "int8")),
    "unravel_index": (lambda i: tk.unravel_index(i, (3, N))[0], (PLACES,), ((2,), "int64")),
    "ravel_multi_index": (lambda i: tk.ravel_multi_index((i, i), (3, N)), (PLACES,), ((2,), "int64")),
    "diagonal": (tk.diagonal, (of((2**16, 2**16)),), ((2**16,), "int8")),
    "roll": (lambda x: tk.roll(x, 5), (VECTOR,), ((N,), "int8")),
    "delete": (lambda x: tk.delete(x, [-1, 5]), (VECTOR,), ((N - 2,), "int8")),
    "insert": (lambda x: tk.insert(x, [5, N], 1), (VECTOR,), ((N + 2,), "int8")),
    "repeat": (lambda x: tk.repeat(x, 2), (VECTOR,), ((2 * N,), "int8")),
    "choice": (lambda k: tk.random.choice(k, 2**33, (2,)), (of((2,), "int32"),), ((2,), "int64")),
    "isin": (tk.isin, (of((2,)), VECTOR), ((2,), "bool")),
}
"""By a description the function, its operands, and the shape and dtype of its result."""


@each_of("name", RESULTS)
def test_the_dtype_of_positions_and_counts_follows_from_shapes(name: str) -> None:
    f, operands, (shape, dtype) = RESULTS[name]
    found = tk.eval_shape(f, *operands)
    assert (found.shape, found.dtype) == (shape, dtype)
    batch = [of((2, *x.shape), str(x.dtype)) for x in operands]
    found = tk.eval_shape(tk.vmap(f), *batch)
    assert (found.shape, found.dtype) == ((2, *shape), dtype)
    found = tk.eval_shape(tk.jit(f), *operands)
    assert (found.shape, found.dtype) == (shape, dtype)


REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], type[Exception]]] = {
    "argsort": (tk.argsort, (VECTOR,), ShapeError),
    "topk": (lambda x: tk.topk(x, 2), (VECTOR,), ShapeError),
    "argpartition": (lambda x: tk.argpartition(x, 2), (VECTOR,), ShapeError),
    "lexsort": (lambda x: tk.lexsort([x, x]), (VECTOR,), ShapeError),
    "unique": (tk.unique, (VECTOR,), ShapeError),
    "permutation": (tk.random.permutation, (tk.random.key(0), VECTOR), ShapeError),
    "quantile": (tk.quantile, (FLOATS, of((), "float32")), ScalarRangeError),
    "arange": (lambda: tk.arange(2**31, 2**31 + 2), (), ScalarRangeError),
}


@each_of("name", REFUSED)
def test_other_functions_refuse_in_one_line_that_names_them(name: str) -> None:
    f, operands, error = REFUSED[name]
    with pytest.raises(error, match=rf"^{name}: .*int32") as caught:
        tk.eval_shape(f, *operands)
    assert "\n" not in str(caught.value)


# ---- pieces ------------------------------------------------------------------------------------------------

SHAPES = ((300,), (7, 60), (3, 5, 40), (50, 2, 3), (65, 1))


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tensor is large."""
    monkeypatch.setattr(tensor, "PIECE", 8)
    monkeypatch.setattr(masks, "PIECE", 16)
    monkeypatch.setattr(reductions, "ROW", 4)
    monkeypatch.setattr(editing, "FEW", 3)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda m, x, **named: m.sum(x, dtype="int64", **named),
    "sum of bools": lambda m, x, **named: m.sum(x > 0, dtype="int64", **named),
    "prod": lambda m, x, **named: m.prod(x, dtype="int64", **named),
    "float64": lambda m, x, **named: m.sum(x.astype("float32"), dtype="float64", **named),
    "mean": lambda m, x, **named: m.mean(x, **named).astype("float32"),
    "count_nonzero": lambda m, x, **named: m.count_nonzero(x, **named),
}


@pytest.mark.usefixtures("small_pieces")
@each_of("name", REDUCTIONS)
def test_reductions_by_pieces_are_numpys(name: str) -> None:
    f = REDUCTIONS[name]
    for seed, shape in enumerate(SHAPES):
        x = np.random.default_rng(seed).integers(-3, 4, shape).astype("int8")
        for axis in (None, *range(x.ndim), tuple(range(x.ndim))[:2]):
            for keepdims in (False, True):
                named = {"axis": axis, "keepdims": keepdims}
                wanted = np.asarray(f(np, x, **named))
                with quiet():
                    found = [
                        f(tk, tk.tensor(x), **named),
                        tk.jit(lambda x, named=named: f(tk, x, **named))(tk.tensor(x)),
                        tk.vmap(lambda x, named=named: f(tk, x, **named))(tk.tensor(x[None]))[0],
                    ]
                for y in found:
                    assert y.dtype is found[0].dtype
                    np.testing.assert_allclose(np.asarray(y), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("small_pieces")
def test_derivatives_of_reductions_by_pieces() -> None:
    x = tk.tensor(np.linspace(-1.0, 2.0, 300), "float32")
    gradient = tk.grad(lambda x: (x * x).sum(dtype="float64"))(x)
    assert gradient.dtype is tk.float32
    assert gradient.tolist() == (2.0 * x).tolist()


@pytest.mark.usefixtures("small_pieces")
def test_positions_by_pieces_are_numpys() -> None:
    rng = np.random.default_rng(0)
    for shape in ((1030,), (40, 50), (3, 20, 30)):
        x = rng.integers(0, 3, shape) * (rng.random(shape) < 0.1)
        for found, wanted in zip(tk.nonzero(tk.tensor(x)), np.nonzero(x), strict=True):
            assert found.tolist() == wanted.tolist()
        assert tk.argwhere(tk.tensor(x)).tolist() == np.argwhere(x).tolist()
        y = x.astype("float32")
        y[rng.random(shape) < 0.01] = np.nan
        for z in (x, -x, y):
            for axis in range(z.ndim):
                for name in ("argmax", "argmin"):
                    index = reductions._long_extreme_index(name, tk.tensor(z), axis)
                    assert index.dtype is tk.int64
                    assert index.tolist() == getattr(np, name)(z, axis, keepdims=True).tolist()
    counted = rng.integers(0, 5, 700)
    weights = rng.random(700)
    assert tk.bincount(tk.tensor(counted)).tolist() == np.bincount(counted).tolist()
    found = tk.bincount(tk.tensor(counted), weights=tk.tensor(weights))
    np.testing.assert_allclose(np.asarray(found), np.bincount(counted, weights), rtol=1e-12)


@pytest.mark.parametrize("few", [0, 100])
def test_deleting_and_inserting_by_runs_and_by_lists_is_numpys(
    monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(editing, "FEW", few)
    x = np.arange(24.0).reshape(4, 6)
    keys: list[Any] = [
        0,
        -1,
        3,
        [1, 1, 2],
        [3, 0],
        [],
        slice(0, 4, 2),
        slice(None),
        [True, False, False, True],
    ]
    for key in keys:
        assert tk.delete(tk.tensor(x), key, 0).tolist() == np.delete(x, key, 0).tolist()
    for key in (0, -1, 4, [1, 1, 2], [4, 0, 2, 0], slice(1, 3)):
        assert tk.insert(tk.tensor(x), key, 7.0, 0).tolist() == np.insert(x, key, 7.0, 0).tolist()
        assert tk.insert(tk.tensor(x), 2, x[:2], 0).tolist() == np.insert(x, 2, x[:2], 0).tolist()


# ---- memory ------------------------------------------------------------------------------------------------

LARGE = 2**26
PEAKS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "sum in int64": (lambda x: x.sum(dtype="int64"), 1.0),
    "sum of an axis": (lambda x: x.reshape((2**13, 2**13)).sum(0, dtype="int64"), 1.0),
    "prod in int64": (lambda x: x.prod(dtype="int64"), 1.0),
    "mean": (tk.mean, 1.0),
    "count_nonzero": (tk.count_nonzero, 1.0),
    "nonzero": (tk.nonzero, 3.0),
    "delete": (lambda x: tk.delete(x, 5), 1.5),
}
"""Functions of many bytes, and how many times the memory of the operand they may take."""


@pytest.mark.slow
@each_of("name", PEAKS)
def test_functions_with_wider_results_take_little_memory(name: str) -> None:
    f, most = PEAKS[name]
    values = np.zeros(LARGE, "int8")
    values[:: 2**20] = 1
    x = tk.from_dlpack(values, copy=False)
    assert peak_of(lambda: f(x)) < most * LARGE
