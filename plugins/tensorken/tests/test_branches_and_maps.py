"""associative_scan, switch, map and eval_shape: equal to Python's own loops and branches, at every level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import STACKS, array, f64
from tensorken_core.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    DTypeError,
    ShapeError,
    StructureError,
)

pytestmark = pytest.mark.usefixtures("on_numpy")

BACKENDS: dict[str, Any] = {
    name: STACKS[name] for name in ("Fuse(Numpy())", "Numpy()", "ShapeTracker(Fuse(Numpy()))")
}
BACKENDS["Reference()"] = "reference"
RNG = np.random.default_rng(3)


# ---- associative_scan --------------------------------------------------------------------------------------


def recurrence(first: Any, second: Any) -> Any:
    """The composition of x -> a * x + b, first that of `first`; it does not commute."""
    (a, b), (c, d) = first, second
    return a * c, b * c + d


def one_by_one(a: Any, b: Any, reverse: bool) -> Any:
    """The compositions along the first axis in a Python loop."""
    order = range(len(a))[::-1] if reverse else range(len(a))
    found, state = {}, None
    for i in order:
        state = (a[i], b[i]) if state is None else recurrence(state, (a[i], b[i]))
        found[i] = state
    return [np.stack([array(found[i][k]) for i in range(len(a))]) for k in range(2)]


@each_of("size", [*range(1, 20), 64, 65])
def test_partial_results_are_those_of_a_loop(size: int) -> None:
    a, b = RNG.normal(size=(2, size, 3))
    for reverse in (False, True):
        expected = one_by_one(a, b, reverse)
        for axis in (0, 1, -1):
            operands = [tk.tensor(np.moveaxis(x, 0, axis)) for x in (a, b)]
            found = tk.associative_scan(recurrence, tuple(operands), reverse, axis)
            for x, y in zip(found, expected, strict=True):
                np.testing.assert_allclose(np.moveaxis(array(x), axis, 0), y, rtol=1e-12)


@each_of("backend", BACKENDS.values())
def test_partial_results_at_every_level(backend: Any) -> None:
    a, b = f64(RNG.normal(size=(7,)), backend), f64(RNG.normal(size=(7,)), backend)

    def states(a: Any, b: Any) -> Any:
        return tk.associative_scan(recurrence, (a, b))[1]

    def by_scan(a: Any, b: Any) -> Any:
        def step(h: Any, row: Any) -> Any:
            h = row[0] * h + row[1]
            return h, h

        return tk.scan(step, b[0] * 0.0, (a, b))[1]

    np.testing.assert_allclose(array(states(a, b)), array(by_scan(a, b)), rtol=1e-12)
    np.testing.assert_allclose(array(tk.jit(states)(a, b)), array(by_scan(a, b)), rtol=1e-12)
    for mode in (tk.jacfwd, tk.jacrev):
        for found, expected in zip(mode(states, (0, 1))(a, b), mode(by_scan, (0, 1))(a, b), strict=True):
            np.testing.assert_allclose(array(found), array(expected), rtol=1e-10, atol=1e-12)
    rows = tk.stack([a, b, a * b])
    together = array(tk.vmap(states, (0, None))(rows, b))
    np.testing.assert_allclose(together, np.stack([array(states(row, b)) for row in rows]), rtol=1e-12)


def test_the_number_of_calls_grows_with_the_logarithm() -> None:
    calls: list[int] = []

    def add(a: Any, b: Any) -> Any:
        calls.append(a.shape[0])
        return a + b

    tk.associative_scan(add, tk.ones((1024,)))
    assert len(calls) <= 2 * 10
    assert sum(calls) < 2 * 1024


def test_no_element_and_one_element_come_back() -> None:
    for size in (0, 1):
        x = tk.ones((size, 2))
        assert array(tk.associative_scan(tk.add, x)).tolist() == array(x).tolist()


def test_errors_of_associative_scan() -> None:
    x = tk.ones((3,))
    with pytest.raises(ArgumentError, match=r"^associative_scan: elems has no tensors"):
        tk.associative_scan(tk.add, ())
    with pytest.raises(AxisError, match=r"^associative_scan: axis 1 is out of range"):
        tk.associative_scan(tk.add, x, axis=1)
    with pytest.raises(ShapeError, match=r"^associative_scan: leaf 0 of elems has size 3 .* leaf 1 has 2"):
        tk.associative_scan(tk.add, (x, tk.ones(2)))
    with pytest.raises(StructureError, match=r"^associative_scan: the result of the function: at the top"):
        tk.associative_scan(lambda a, b: (a, b), x)
    with pytest.raises(ShapeError, match=r"^associative_scan: the function returned float32 \(\) for leaf 0"):
        tk.associative_scan(lambda a, b: a.sum(), x)
    with pytest.raises(DTypeError, match=r"^associative_scan: the function returned float64 \(1,\)"):
        tk.associative_scan(lambda a, b: (a + b).astype("float64"), x)


# ---- switch ------------------------------------------------------------------------------------------------

BRANCHES: list[Callable[[Any], Any]] = [
    tk.sin,
    tk.exp,
    lambda x: x * x,
    lambda x: tk.fori_loop(0, 3, lambda i, c: c * 0.5, x),
    lambda x: -x,
]


@each_of("backend", BACKENDS.values())
def test_switch_runs_the_branch_of_the_index(backend: Any) -> None:
    x = f64(0.7, backend)
    indices = tk.tensor([-3, 0, 1, 2, 3, 4, 5, 99], backend=x.interpreter.base)
    for count in (1, 2, 3, 5):

        def f(i: Any, x: Any, count: int = count) -> Any:
            return tk.switch(i, BRANCHES[:count], x)

        compiled = tk.jit(f)
        chosen = [BRANCHES[min(max(int(i), 0), count - 1)] for i in indices.tolist()]
        expected = [array(g(x)) for g in chosen]
        slopes = [array(tk.grad(g)(x)) for g in chosen]
        for i, y, slope in zip(indices, expected, slopes, strict=True):
            np.testing.assert_allclose(array(f(i, x)), y, rtol=1e-12)
            np.testing.assert_allclose(array(compiled(i, x)), y, rtol=1e-12)
            np.testing.assert_allclose(array(tk.grad(f, 1)(i, x)), slope, rtol=1e-12)
            np.testing.assert_allclose(array(tk.jvp(lambda x, i=i: f(i, x), (x,), (x,))[1]), slope * 0.7)
        np.testing.assert_allclose(array(tk.vmap(f, (0, None))(indices, x)), expected, rtol=1e-12)
        np.testing.assert_allclose(array(tk.vmap(tk.grad(f, 1), (0, None))(indices, x)), slopes, rtol=1e-12)


def test_switch_takes_trees_captured_tensors_and_numbers() -> None:
    w = tk.tensor(3.0)

    def f(i: Any, w: Any) -> Any:
        return tk.switch(
            i, [lambda t: {"a": t[0] * w}, lambda t: {"a": t[1]}, lambda t: {"a": 1.0}], (w, 2.0)
        )

    assert [f(i, w)["a"].item() for i in range(3)] == [9.0, 2.0, 1.0]
    assert [tk.grad(lambda w, i=i: f(i, w)["a"])(w).item() for i in range(3)] == [6.0, 0.0, 0.0]
    with tk.disable_jit():
        assert [f(i, w)["a"].item() for i in range(3)] == [9.0, 2.0, 1.0]


def test_errors_of_switch() -> None:
    x = tk.ones((3,))
    with pytest.raises(ArgumentError, match=r"^switch: there is no branch"):
        tk.switch(0, [], x)
    with pytest.raises(ArgumentError, match=r"^switch: need a function"):
        tk.switch(0, [tk.sin, 3], x)  # type: ignore[list-item]
    with pytest.raises(DTypeError, match=r"^switch: the index must be an integer, got float64"):
        tk.switch(0.5, [tk.sin, tk.cos], x)
    with pytest.raises(ShapeError, match=r"^switch: the index has shape \(2,\)"):
        tk.switch(tk.arange(2), [tk.sin, tk.cos], x)
    with pytest.raises(StructureError, match=r"^switch: the result of branch 2, compared with branch 0's"):
        tk.switch(0, [tk.sin, tk.cos, lambda x: (x, x), lambda x: (x, x)], x)
    with pytest.raises(ShapeError, match=r"^switch: the result of branch 1, compared with branch 0's: got"):
        tk.switch(0, [tk.sin, lambda x: x.sum()], x)


# ---- map ---------------------------------------------------------------------------------------------------


@each_of("batch_size", [None, 1, 2, 3, 7, 100])
def test_map_stacks_the_results_of_a_loop(batch_size: int | None) -> None:
    xs = tk.tensor(RNG.normal(size=(7, 4)))
    ys = tk.tensor(RNG.normal(size=(7,)))

    def f(row: Any) -> Any:
        return {"sum": (row[0] * row[1]).sum(), "sin": row[0].sin()}

    def mapped(xs: Any, ys: Any) -> Any:
        return tk.map(f, (xs, ys), batch_size=batch_size)

    found = mapped(xs, ys)
    for name in ("sum", "sin"):
        expected = np.stack([array(f((x, y))[name]) for x, y in zip(xs, ys, strict=True)])
        np.testing.assert_allclose(array(found[name]), expected, rtol=1e-12)
        np.testing.assert_allclose(array(tk.jit(mapped)(xs, ys)[name]), expected, rtol=1e-12)
    slope = tk.grad(lambda xs: mapped(xs, ys)["sum"].sum())(xs)
    np.testing.assert_allclose(array(slope), np.repeat(array(ys)[:, None], 4, 1))
    both = tk.vmap(mapped)(tk.stack([xs, xs + 1.0]), tk.stack([ys, ys]))["sin"]
    np.testing.assert_allclose(array(both[1]), np.sin(array(xs) + 1.0), rtol=1e-12)


def test_map_of_no_rows_and_errors_of_map() -> None:
    for batch_size in (None, 3):
        y = tk.map(lambda x: x.sum(), tk.ones((0, 2)), batch_size=batch_size)
        assert (y.shape, y.dtype) == ((0,), tk.float32)
    with pytest.raises(ArgumentError, match=r"^map: xs has no tensors"):
        tk.map(tk.sin, ())
    with pytest.raises(ShapeError, match=r"^map: leaf 0 of xs has shape \(\), need an axis"):
        tk.map(tk.sin, 1.0)
    with pytest.raises(
        ShapeError, match=r"^map: leaf 0 of xs has 3 and leaf 1 of xs has size 2 along axis 0"
    ):
        tk.map(tk.add, (tk.ones(3), tk.ones(2)))
    with pytest.raises(ArgumentError, match=r"^map: batch_size must be positive, got 0"):
        tk.map(tk.sin, tk.ones(3), batch_size=0)


# ---- eval_shape --------------------------------------------------------------------------------------------


def test_eval_shape_computes_nothing() -> None:
    calls: list[int] = []

    def f(x: Any, scale: Any) -> Any:
        calls.append(1)
        return {"product": x @ x * scale, "rows": [x.sum(1), (x > 0).astype("int64")]}

    huge = tk.ShapeDtypeStruct((10**6, 10**6), "float32")
    found = tk.eval_shape(f, huge, scale=2.0)
    struct = tk.ShapeDtypeStruct
    assert found == {
        "product": struct((10**6, 10**6), "float32"),
        "rows": [struct((10**6,), "float32"), struct((10**6, 10**6), "int64")],
    }
    assert calls == [1]


def test_eval_shape_agrees_with_the_result_under_transforms() -> None:
    x = tk.tensor(RNG.normal(size=(3, 3)))

    def f(x: Any) -> Any:
        return tk.linalg.inv(x), tk.scan(lambda c, r: (c + r, r.sum()), x[0], x), 3

    shapes = tk.tree.map(lambda y: (y.shape, y.dtype), tk.eval_shape(f, x))
    assert shapes == tk.tree.map(lambda y: (tk.asarray(y).shape, tk.asarray(y).dtype), f(x))
    inside = tk.vmap(lambda row: tk.ones(tk.eval_shape(tk.outer, row, row).shape) * row.sum())(x)
    assert inside.shape == (3, 3, 3)
    slope = tk.grad(lambda x: x.sum() * len(tk.eval_shape(tk.sin, x).shape))(x)
    assert array(slope).tolist() == [[2.0] * 3] * 3


def test_errors_of_eval_shape() -> None:
    with pytest.raises(ConcretizationError):
        tk.eval_shape(lambda x: x if x > 0 else -x, 1.0)
    with pytest.raises(ArgumentError, match=r"^eval_shape: argument leaf 0 is a str, need a tensor"):
        tk.eval_shape(tk.sin, "x")
    with pytest.raises(ArgumentError, match=r"^eval_shape: need a function"):
        tk.eval_shape(3, 1.0)  # type: ignore[arg-type]


# ---- trees -------------------------------------------------------------------------------------------------

TREE = {"b": [1, (2, None)], "a": 3}


def test_functions_of_trees() -> None:
    assert tk.tree.reduce(lambda a, b: a * 10 + b, TREE) == 312
    assert tk.tree.reduce(lambda a, b: a * 10 + b, TREE, 9) == 9312
    lists = tk.tree.reduce(
        lambda n, x: n + isinstance(x, list), TREE, 0, is_leaf=lambda x: isinstance(x, list)
    )
    assert lists == 1
    assert tk.tree.reduce(max, [], 5) == 5
    with pytest.raises(StructureError, match=r"^reduce: the tree has no leaf"):
        tk.tree.reduce(max, [None])
    assert tk.tree.all(TREE)
    assert tk.tree.all([])
    assert not tk.tree.all([[1, 0]])
    assert tk.tree.all([[1, 0]], is_leaf=lambda x: x == [1, 0])
    paths = ['["a"]', '["b"][0]', '["b"][1][0]']
    assert tk.tree.leaves_with_path(TREE) == list(zip(paths, [3, 1, 2], strict=True))
    mapped = tk.tree.map_with_path(lambda path, x, y: (path, x, y), TREE, {"b": [10, ([20], None)], "a": 30})
    assert mapped == {"a": (paths[0], 3, 30), "b": [(paths[1], 1, 10), ((paths[2], 2, [20]), None)]}
    with pytest.raises(StructureError, match=r"^map_with_path: tree 2: at \[\"b\"\]"):
        tk.tree.map_with_path(lambda *args: args, TREE, {"b": 1, "a": 3})


def test_broadcasts_and_transposes_of_trees() -> None:
    assert tk.tree.broadcast(7, TREE) == {"b": [7, (7, None)], "a": 7}
    assert tk.tree.broadcast({"b": 1, "a": 2}, TREE) == {"b": [1, (1, None)], "a": 2}
    with pytest.raises(StructureError):
        tk.tree.broadcast({"b": [1], "a": 2}, TREE)
    outer, inner = tk.tree.structure([0, 0, 0]), tk.tree.structure({"x": 0, "y": 0})
    rows = [{"x": i, "y": -i} for i in range(3)]
    assert tk.tree.transpose(outer, inner, rows) == {"x": [0, 1, 2], "y": [0, -1, -2]}
    assert tk.tree.transpose(outer, None, rows) == {"x": [0, 1, 2], "y": [0, -1, -2]}
    assert tk.tree.transpose(inner, outer, {"x": [0, 1, 2], "y": [0, -1, -2]}) == rows
    assert tk.tree.transpose(tk.tree.structure([]), inner, []) == {"x": [], "y": []}
    with pytest.raises(StructureError, match=r"^transpose: an inner tree: at"):
        tk.tree.transpose(outer, inner, [rows[0], rows[1], {"x": 1}])
    with pytest.raises(StructureError, match=r"^transpose: there is no inner tree"):
        tk.tree.transpose(tk.tree.structure([]), None, [])
