"""Vertices: values, gradients, topological order and comparisons."""

from __future__ import annotations

import copy
import gc
import math
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken_core.errors import ArgumentError, GradientError, ShapeError
from tensorken_nn.vertex import Matrix, Vector, Vertex, add, exp

LONG = 100_000


@pytest.mark.feature(142, 143, 163)
def test_a_vertex_has_a_value_a_gradient_and_parents() -> None:
    x = Vertex(0.44661426582452757)
    assert repr(x) == "Vertex(0.44661426582452757)"
    assert (x.value, x.grad, x.parents) == (0.44661426582452757, 0.0, ())
    y = x * 2.0
    assert y.parents[0] is x
    assert repr(y.parents) == "(Vertex(0.44661426582452757), Vertex(2.0))"
    assert f"{x:.2f} {x}" == "0.45 Vertex(0.44661426582452757)"
    assert repr(Vertex(tk.tensor([1.0]))) == "Vertex(tensor([1.]))"


@pytest.mark.parametrize("number", [3, 3.0, np.float32(3), np.float64(3), np.int64(3)])
def test_a_number_of_any_kind_becomes_a_float(number: Any) -> None:
    assert type(Vertex(number).value) is float
    for y in (number * Vertex(2.0), Vertex(2.0) * number):
        assert isinstance(y, Vertex) and type(y.value) is float and y.value == 6.0


@pytest.mark.parametrize("value", [True, "3", None, [3.0], np.ones(2)])
def test_values_that_are_not_numbers_are_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match="Vertex: need a number or a tensor, got"):
        Vertex(value)
    with pytest.raises(TypeError):
        Vertex(1.0) + value


def test_a_tensor_without_derivatives_is_refused() -> None:
    with pytest.raises(GradientError, match="Vertex: int32 has no derivatives; cast it first"):
        Vertex(tk.tensor([1, 2]))


# ---- derivatives -----------------------------------------------------------------------------------------------


@pytest.mark.feature(145)
def test_backward_starts_from_one_and_sums_over_paths() -> None:
    x = Vertex(3.0)
    y = x * x + x
    y.backward()
    assert (y.value, x.grad, y.grad) == (12.0, 7.0, 1.0)


@pytest.mark.feature(146)
def test_leaves_accumulate_until_they_are_reset() -> None:
    """Only leaves accumulate; if vertices in between did, the second call would give 20."""
    x = Vertex(3.0)
    square = x * x
    y = square + x
    y.backward()
    y.backward()
    assert (x.grad, square.grad, y.grad) == (14.0, 1.0, 1.0)
    y.zero_grad()
    assert (x.grad, square.grad, y.grad) == (0.0, 0.0, 0.0)
    y.backward()
    assert x.grad == 7.0


def test_two_results_may_share_operands() -> None:
    x = Vertex(3.0)
    square = x * x
    (square + 1.0).backward()
    (square * 2.0).backward()
    assert x.grad == 6.0 + 12.0


def test_backward_accepts_any_initial_cotangent() -> None:
    x = Vertex(3.0)
    (x * x).backward(0.5)
    assert x.grad == 3.0
    x.backward()
    assert x.grad == 4.0
    with pytest.raises(ShapeError, match=r"backward: grad has shape \(2,\), need \(\), the value's"):
        x.backward(tk.ones(2))


def test_nothing_is_added_if_a_function_fails() -> None:
    def fail(z: Vertex) -> Any:
        raise ZeroDivisionError

    x = Vertex(3.0)
    y = x * 2.0 + Vertex(1.0, (x,), fail)
    with pytest.raises(ZeroDivisionError):
        y.backward()
    assert x.grad == 0.0


def test_vertices_without_a_derivative_are_unchanged() -> None:
    x = Vertex(3.0)
    y = Vertex(1.0, (x * 2.0, x), lambda z: (None, z.grad))
    y.backward()
    assert (x.grad, y.parents[0].grad) == (1.0, 0.0)


def test_unreached_vertices_are_unchanged() -> None:
    x, y = Vertex(1.0), Vertex(2.0)
    x.grad = y.grad = 5.0
    (y * 1.0).backward()
    (y * 1.0).zero_grad()
    assert (x.grad, y.grad) == (5.0, 0.0)


@pytest.mark.feature(144)
def test_each_vertex_comes_before_its_parents() -> None:
    x, y = Vertex(1.0), Vertex(2.0)
    a = x * y
    b = a + x
    c = add(a, b, a, y)
    order = c.topological_order()
    assert order[0] is c and len(order) == len(set(order)) == 5
    indices = {vertex: i for i, vertex in enumerate(order)}
    assert all(indices[v] < indices[parent] for v in order for parent in v.parents)


@pytest.mark.feature(144)
def test_a_long_chain_needs_no_recursion() -> None:
    """Neither for its derivatives nor for its deallocation, also by the garbage collector."""
    x = Vertex(1.0)
    y = x
    for _ in range(LONG):
        y = -y
    assert sys.getrecursionlimit() < LONG
    y.backward()
    assert (y.value, x.grad) == (1.0, 1.0)
    assert len(y.topological_order()) == LONG + 1
    y.zero_grad()
    assert x.grad == 0.0
    cycle: list[Any] = [y]
    cycle.append(cycle)
    reference = weakref.ref(y)
    del y, cycle
    gc.collect()
    assert reference() is None


def test_leaves_can_be_copied() -> None:
    x = Vertex(2.0)
    x.grad = 1.0
    y = copy.deepcopy(x)
    x.value = 3.0
    assert (y.value, y.grad) == (2.0, 1.0)


# ---- comparisons -----------------------------------------------------------------------------------------------


@pytest.mark.feature(149)
def test_comparisons_use_values() -> None:
    x, y = Vertex(1.0), Vertex(2.0)
    assert x < y and x <= 1.0 and y > 1 and y >= 2.0 and x == 1.0 and x != y
    assert not any([y < x, y <= 1.0, x > 1, x >= 2.0, x == y, x != 1.0])
    assert max(x, y) is y and sorted([y, x]) == [x, y]
    assert x and not Vertex(0.0)
    assert x != "1.0" and x is not None
    with pytest.raises(TypeError):
        assert x < "1.0"


def test_sets_and_dicts_compare_vertices_by_identity() -> None:
    x, y = Vertex(1.0), Vertex(1.0)
    assert x == y and len({x, y, x}) == 2 and {x: "x", y: "y"}[x] == "x"


def test_functions_of_numbers_refuse_vertices() -> None:
    with pytest.raises(TypeError):
        math.exp(Vertex(1.0))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        float(Vertex(1.0))  # type: ignore[arg-type]


# ---- tensors ---------------------------------------------------------------------------------------------------


@pytest.mark.feature(152)
def test_a_vertex_may_hold_a_tensor(backend: str) -> None:
    x = Vertex(tk.tensor([[1.0, 2.0], [3.0, 4.0]], "float64"))
    b = Vertex(tk.tensor([10.0, 20.0]))
    y = exp(x * 0.5) * b + 1.0
    with pytest.raises(GradientError, match=r"backward: the value has shape \(2, 2\), need one number"):
        y.backward()
    weights = tk.tensor([[1.0, 2.0], [3.0, 5.0]], "float64")
    y.backward(weights)
    value, pull_back = tk.vjp(lambda x, b: tk.exp(x * 0.5) * b + 1.0, x.value, b.value)
    assert y.value.tolist() == value.tolist()
    for vertex, expected in zip((x, b), pull_back(weights), strict=True):
        assert vertex.grad.dtype is expected.dtype is vertex.value.dtype
        assert vertex.grad.ravel().tolist() == pytest.approx(expected.ravel().tolist(), rel=1e-6)
    y.zero_grad()
    assert x.grad == b.grad == 0.0
    (x * 2.0).backward(weights)
    assert (x.grad == weights * 2.0).all()


def test_a_tensor_of_one_element_needs_no_cotangent(backend: str) -> None:
    x = Vertex(tk.tensor([[2.0]]))
    (x * x).backward()
    assert x.grad.tolist() == [[4.0]]


def test_comparisons_of_tensors_are_elementwise() -> None:
    x = Vertex(tk.tensor([1.0, 2.0]))
    assert (x < 1.5).tolist() == [True, False]
    assert (x == Vertex(tk.tensor([1.0, 3.0]))).tolist() == [True, False]


def test_vertices_of_tensors_can_be_traced(backend: str) -> None:
    """Vertices of tensors use tensorken's ops, so a training step with vertices can be compiled."""

    def step(w: tk.Tensor, x: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor]:
        weight = Vertex(w)
        y = 2.0 * weight * x + 1.0
        loss = (y @ Vertex(x)) ** 2
        loss.backward()
        return loss.value, weight.grad

    w, x = tk.tensor([1.0, 2.0, 3.0], "float64"), tk.tensor([0.5, -1.0, 2.0], "float64")
    expected = tk.value_and_grad(lambda w: ((2.0 * w * x + 1.0) @ x) ** 2)(w)
    for result in (step(w, x), tk.jit(step)(w, x)):
        assert [t.tolist() for t in result] == [pytest.approx(t.tolist(), rel=1e-14) for t in expected]


@each_of(
    "combine",
    [
        lambda x, v: x + v,
        lambda x, v: x - v,
        lambda x, v: x * v,
        lambda x, v: x / v,
        lambda x, v: x**v,
        lambda x, v: x % v,
        lambda x, v: (
            tk.stack([x, x]).T @ v if isinstance(x, tk.Tensor) else Vertex(tk.stack([x.value] * 2).T) @ v
        ),
    ],
)
def test_a_tensor_may_be_the_left_operand_of_a_vertex(combine: Any) -> None:
    x, value = tk.tensor([2.0, 5.0], "float64"), tk.tensor([3.0, 0.7], "float64")
    v, w = Vertex(value), Vertex(value)
    result, expected = combine(x, v), combine(Vertex(x), w)
    assert type(result) is Vertex
    assert result.value.tolist() == expected.value.tolist()
    result.backward(result.value)
    expected.backward(expected.value)
    assert v.grad.tolist() == w.grad.tolist()


def test_a_tensor_may_be_the_left_operand_of_vectors_matrices_and_comparisons() -> None:
    x = tk.tensor(2.0)
    assert [y.value.item() for y in x * Vector([1.0, 3.0])] == [2.0, 6.0]
    assert [[y.value.item() for y in row] for row in (x - Matrix([[1.0, 3.0]])).rows] == [[1.0, -1.0]]
    v = Vertex(3.0)
    assert [bool(y) for y in (x < v, x <= v, x > v, x >= v, x == v, x != v)] == [
        True,
        True,
        False,
        False,
        False,
        True,
    ]
    with pytest.raises(ArgumentError, match="cannot combine a tensor with Vertex"):
        _ = x // v
