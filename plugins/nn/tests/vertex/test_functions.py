"""Functions of vertices: ops, sums and products, and custom functions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.op import OPS
from tensorken_nn.vertex import Function, Vertex, add, functions, lift, matmul, mult
from tensorken_nn.vertex.derivatives import vjp_of
from tensorken_nn.vertex.functions import Elementwise

pytestmark = pytest.mark.slow

ELEMENTWISE = [name for name, op in OPS.items() if op.elementwise and any(op.vjp) and name != "where"]
BUILT_IN = [function for function in vars(functions).values() if isinstance(function, Elementwise)]

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "**": operator.pow,
}


def cotangents_of(of_tensors: Callable[..., Any], t: float, *operands: float) -> list[float]:
    """Tensorken's cotangents in double precision, on a backend whose ops are Python's functions of floats."""
    with tk.use_backend("reference"):
        _, pull_back = tk.vjp(of_tensors, *[tk.scalar(x, "float64") for x in operands])
        return [x.item() for x in pull_back(tk.scalar(t, "float64"))]


def is_close(a: float, b: float) -> bool:
    """Up to the last digits, as the reference backend computes some ops by their bodies."""
    return math.isclose(a, b, rel_tol=1e-14) or (math.isnan(a) and math.isnan(b))


# ---- the op table ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_derivatives_of_floats_agree_with_the_op(name: str) -> None:
    """Also at edge cases; the test covers all ops of the table."""
    op = OPS[name]
    assert op.scalar is not None and op.arity is not None
    low, high = op.domain
    middle = [low + (high - low) * k / 7 for k in range(1, 7)]
    edges = [0.0, -0.0, 1.0, -1.0, 1e-300, 700.0, -700.0, math.inf, -math.inf]
    points: list[tuple[float, ...]] = [(x,) for x in middle + edges]
    if op.arity == 2:
        points = [(a, b) for (a,) in points for b in (middle[1], middle[4], 0.0, 1.0, 2.0)]
    for operands in points:
        cotangents = vjp_of(name)(3.0, op.scalar(*operands), *operands)
        expected = cotangents_of(lambda a, *rest: a.apply(op, *rest), 3.0, *operands)
        assert all(map(is_close, cotangents, expected)), (operands, cotangents, expected)


@pytest.mark.parametrize("function", BUILT_IN, ids=lambda function: function.name)
def test_functions_of_floats_and_tensors_agree(function: Elementwise, backend: str) -> None:
    op = OPS[function.name]
    low, high = op.domain
    numbers = [low + (high - low) * k / 5 for k in (1, 3)][: op.arity]
    floats = [Vertex(x) for x in numbers]
    y = function(*floats)
    y.backward(0.5)
    tensors = [Vertex(tk.tensor([x, x], "float64")) for x in numbers]
    z = function(*tensors)
    z.backward(tk.full((2,), 0.5, "float64"))
    assert z.value.tolist() == pytest.approx([y.value] * 2, rel=1e-14)
    for slope, vertex, pair in zip(function.backward(*floats), floats, tensors, strict=True):
        assert vertex.grad == pytest.approx(0.5 * slope, rel=1e-14)
        assert pair.grad.tolist() == pytest.approx([vertex.grad] * 2, rel=1e-13, abs=1e-300)
    for slopes, slope in zip(function.backward(*tensors), function.backward(*floats), strict=True):
        assert slopes.tolist() == pytest.approx([slope] * 2, rel=1e-13, abs=1e-300)  # type: ignore[union-attr]


def test_floats_follow_ieee_where_python_raises() -> None:
    x = Vertex(0.0)
    assert (1.0 / x).value == math.inf and functions.log(x).value == -math.inf
    assert math.isnan(functions.sqrt(Vertex(-1.0)).value) and functions.exp(Vertex(1000.0)).value == math.inf
    assert math.isnan((Vertex(-8.0) ** (1 / 3)).value)


def test_relu_is_flat_at_zero() -> None:
    assert [functions.relu.backward(Vertex(x)) for x in (-1.0, 0.0, 1.0)] == [(0.0,), (0.0,), (1.0,)]


def test_a_wrong_number_of_arguments_is_refused() -> None:
    with pytest.raises(ArgumentError, match="sin: need 1 argument, got 2"):
        functions.sin(Vertex(1.0), Vertex(2.0))
    with pytest.raises(ArgumentError, match="Add: need at least one argument, got none"):
        add()


# ---- operators -------------------------------------------------------------------------------------------------


@pytest.mark.feature(149)
@pytest.mark.parametrize("symbol", OPERATORS)
@pytest.mark.parametrize(("a", "b"), [(1.25, 0.5), (0.75, 3.0), (3, 2), (2.5, 2)])
def test_operators_agree_with_floats(symbol: str, a: float, b: float) -> None:
    apply = OPERATORS[symbol]
    slopes = cotangents_of(apply, 1.0, a, b)
    for left, right in [
        (Vertex(a), Vertex(b)),
        (Vertex(a), b),
        (a, Vertex(b)),
        (np.float64(a), Vertex(b)),
        (Vertex(a), np.float64(b)),
    ]:
        y = apply(left, right)
        assert isinstance(y, Vertex) and type(y.value) is float and y.value == apply(a, b)
        y.backward()
        for operand, slope in zip((left, right), slopes, strict=True):
            if isinstance(operand, Vertex):
                assert operand.grad == pytest.approx(slope, rel=1e-15, abs=0.0)


@pytest.mark.feature(149)
def test_signs_and_sums_of_numbers() -> None:
    x = Vertex(-2.0)
    for y, value, slope in [(-x, 2.0, -1.0), (+x, -2.0, 1.0), (abs(x), 2.0, -1.0), (sum([x, x]), -4.0, 2.0)]:
        x.grad = 0.0
        y.backward()
        assert (y.value, x.grad) == (value, slope)


@pytest.mark.feature(149)
@pytest.mark.parametrize("symbol", OPERATORS)
@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((3, 1), (1, 4)), ((), (2,)), ((2, 2), ())])
def test_operators_broadcast_tensors(symbol: str, shapes: tuple[Any, Any], backend: str) -> None:
    apply = OPERATORS[symbol]
    a, b = (
        tk.linspace(low, 2.0, math.prod(shape), dtype="float64").reshape(shape)
        for low, shape in zip((0.75, 1.25), shapes, strict=True)
    )
    b = b.astype("float32")
    x, y = Vertex(a), Vertex(b)
    z = apply(x, y)
    value, pull_back = tk.vjp(apply, a, b)
    t = tk.linspace(-1.0, 1.0, value.size, dtype=value.dtype).reshape(value.shape)
    z.backward(t)
    assert z.value.tolist() == value.tolist()
    for vertex, expected in zip((x, y), pull_back(t), strict=True):
        assert (vertex.grad.shape, vertex.grad.dtype) == (expected.shape, expected.dtype)
        assert vertex.grad.ravel().tolist() == pytest.approx(expected.ravel().tolist(), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("symbol", OPERATORS)
def test_a_number_with_a_tensor_takes_its_dtype(symbol: str, backend: str) -> None:
    apply, x = OPERATORS[symbol], Vertex(tk.tensor([1.5, 2.5]))
    for y in (apply(x, 2), apply(x, 2.0), apply(2.0, x), apply(x, Vertex(2.0)), apply(Vertex(2.0), x)):
        assert y.value.dtype is tk.float32


@pytest.mark.parametrize("symbol", OPERATORS)
def test_the_gradient_of_a_float_with_a_tensor_is_a_float(symbol: str, backend: str) -> None:
    apply, t = OPERATORS[symbol], tk.tensor([1.0, 3.0], "float64")
    for swapped in (False, True):
        a, b = Vertex(0.7), Vertex(tk.tensor([1.5, 2.5], "float64"))
        order = (lambda f, a, b: f(b, a)) if swapped else (lambda f, a, b: f(a, b))
        order(apply, a, b).backward(t)
        _, pull_back = tk.vjp(lambda a, b: order(apply, a, b), tk.scalar(0.7, "float64"), b.value)  # noqa: B023
        expected = pull_back(t)
        assert type(a.grad) is float and a.grad == pytest.approx(expected[0].item(), rel=1e-14)
        assert b.grad.tolist() == pytest.approx(expected[1].tolist(), rel=1e-14)


# ---- sums and products -----------------------------------------------------------------------------------------


@pytest.mark.feature(148)
def test_the_derivative_of_a_product_handles_zeros() -> None:
    values = [2.0, 0.0, 3.0, -1.0, 0.5]
    vertices = [Vertex(x) for x in values]
    mult(*vertices).backward()
    assert [v.grad for v in vertices] == [math.prod(values[:i] + values[i + 1 :]) for i in range(5)]
    x = Vertex(7.0)
    assert mult(x).value == add(x).value == 7.0 and mult.backward(x) == (1.0,)


@pytest.mark.feature(148)
def test_sums_add_from_the_left() -> None:
    """However Python's own sum of floats rounds."""
    assert add(*map(Vertex, [1e16, 1.0, 1.0, -1e16])).value == 0.0


@pytest.mark.feature(148)
def test_sums_and_products_of_tensors(backend: str) -> None:
    shapes = [(2, 1), (3,), (), (2, 3)]
    values = [tk.linspace(1.0, 2.0, math.prod(s), dtype="float64").reshape(s) for s in shapes]
    t = tk.linspace(-1.0, 2.0, 6, dtype="float64").reshape(2, 3)
    for function, plain in (
        (add, lambda a, b, c, d: a + b + c + d),
        (mult, lambda a, b, c, d: a * b * c * d),
    ):
        vertices = [Vertex(x) for x in values]
        function(*vertices).backward(t)
        expected = tk.vjp(plain, *values)[1](t)
        for vertex, x in zip(vertices, expected, strict=True):
            assert vertex.grad.shape == x.shape
            assert vertex.grad.ravel().tolist() == pytest.approx(x.ravel().tolist(), rel=1e-14)


# ---- custom functions ------------------------------------------------------------------------------------------


class Hypotenuse(Function):
    """sqrt(x**2 + y**2), elementwise for tensors."""

    @staticmethod
    def forward(*args: Any) -> Vertex:
        x, y = args
        return Vertex((x.value**2 + y.value**2) ** 0.5)

    @staticmethod
    def backward(*args: Any) -> tuple[Any, ...]:
        x, y = args
        z = (x.value**2 + y.value**2) ** 0.5
        return x.value / z, y.value / z


@pytest.mark.feature(147)
def test_a_custom_function() -> None:
    x = Vertex(3.0)
    z = Hypotenuse()(x, 4.0)
    (z * 2.0).backward()
    assert (z.value, x.grad) == (5.0, pytest.approx(1.2, rel=1e-15))
    assert z.parents[0] is x and z.parents[1].value == 4.0


@pytest.mark.feature(147)
def test_a_custom_function_broadcasts(backend: str) -> None:
    x, y, f = Vertex(tk.tensor([[3.0], [5.0]])), Vertex(tk.tensor([4.0, 12.0], "float64")), Vertex(1.0)
    z = Hypotenuse()(x, y) + Hypotenuse()(y, f) + Hypotenuse()(2.0, y)
    z.backward(tk.ones((2, 2), "float64"))
    hypot = tk.hypot
    _, pull_back = tk.vjp(
        lambda x, y, f: hypot(x, y) + hypot(y, f) + hypot(2.0, y), x.value, y.value, tk.scalar(1.0, "float64")
    )
    expected = pull_back(tk.ones((2, 2), "float64"))
    assert x.grad.dtype is tk.float32 and x.grad.shape == (2, 1)
    assert x.grad.ravel().tolist() == pytest.approx(expected[0].ravel().tolist(), rel=1e-6)
    assert y.grad.tolist() == pytest.approx(expected[1].tolist(), rel=1e-14)
    assert type(f.grad) is float and f.grad == pytest.approx(expected[2].item(), rel=1e-14)


@pytest.mark.feature(147)
def test_a_function_may_return_its_argument_or_a_vertex_with_parents() -> None:
    class Same(Function):
        @staticmethod
        def forward(*args: Vertex) -> Vertex:
            return args[0]

        @staticmethod
        def backward(*args: Vertex) -> tuple[float, ...]:
            return (1.0,)

    class Double(Same):
        @staticmethod
        def forward(*args: Vertex) -> Vertex:
            return args[0] + args[0]

        @staticmethod
        def backward(*args: Vertex) -> tuple[float, ...]:
            return (2.0,)

    x = Vertex(3.0)
    y = Double()(Same()(x))
    y.backward()
    assert (x.parents, y.value, x.grad) == ((), 6.0, 2.0)


@pytest.mark.feature(147)
def test_mistakes_in_a_custom_function_are_reported() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(*args: Vertex) -> Any:
            return args[0].value if len(args) == 1 else Vertex(0.0)

        @staticmethod
        def backward(*args: Vertex) -> Any:
            return (1.0,) if len(args) == 2 else 1.0

    with pytest.raises(
        ArgumentError, match=r"Wrong.forward: need a Vertex, got float; return Vertex\(value\)"
    ):
        Wrong()(1.0)
    with pytest.raises(ArgumentError, match=r"Wrong.backward: need a tuple of 2 derivatives, .* got 1"):
        Wrong()(Vertex(1.0), Vertex(1.0)).backward()
    with pytest.raises(ArgumentError, match=r"Wrong.backward: need a tuple of 3 derivatives, .* got float"):
        Wrong()(1.0, 2.0, 3.0).backward()
    with pytest.raises(TypeError, match="abstract"):
        Function()  # type: ignore[abstract]


# ---- functions of tensors --------------------------------------------------------------------------------------


@pytest.mark.feature(152)
def test_any_function_of_tensors_can_be_lifted(backend: str) -> None:
    x, y = Vertex(tk.tensor([[1.0, 2.0], [3.0, 4.0]])), Vertex(tk.tensor([1.0, -1.0]))
    z = functions.sum(lift(tk.softmax)(x @ y, axis=0) * tk.tensor([1.0, 3.0]))
    z.backward()
    expected = tk.grad(lambda x, y: (tk.softmax(x @ y, axis=0) * tk.tensor([1.0, 3.0])).sum(), (0, 1))(
        x.value, y.value
    )
    for vertex, t in zip((x, y), expected, strict=True):
        assert vertex.grad.ravel().tolist() == pytest.approx(t.ravel().tolist(), rel=1e-6, abs=1e-7)
    assert functions.mean(x, axis=0).value.tolist() == [2.0, 3.0]


def test_lifted_functions_refuse_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="matmul: need a tensor among the arguments"):
        matmul(Vertex(1.0), Vertex(2.0))
    with pytest.raises(ArgumentError, match="frexp: need one tensor as the result, got"):
        lift(lambda x: (x, x), "frexp")(Vertex(tk.ones(2)))
    with pytest.raises(ShapeError, match="matmul"):
        Vertex(tk.ones((2, 3))) @ Vertex(tk.ones((2, 3)))
