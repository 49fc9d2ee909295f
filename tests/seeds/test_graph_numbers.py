"""The numbers of the two articles that differentiate a graph: the quadratic, and matmul with a broadcast operand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import tensorken as tk
from core.tests.examples import examples
from tensorken_core.language.dtype_rules import floating
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.shapes import same
from tensorken_core.levels.reverse import Reverse


def quadratic(
    a: Any, b: Any, c: Any, x: Any, nudge: dict[str, Any], levels: dict[str, Any] | None = None
) -> Any:
    """a x**2 + b x + c, one operation a line; each intermediate result may be nudged and looked at."""
    found = {} if levels is None else levels
    t10 = found["t10"] = x * x + nudge["t10"]
    t11 = found["t11"] = b * x + nudge["t11"]
    t20 = found["t20"] = a * t10 + nudge["t20"]
    t21 = found["t21"] = t11 + c + nudge["t21"]
    t30 = found["t30"] = t20 + t21 + nudge["t30"]
    return t30


@pytest.mark.feature(93, 138)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_quadratic(seeds: dict[str, Any], backend: str, dtype: str, close: Callable[..., None]) -> None:
    """The article ends on 2 a b + b for the derivative by x, a slip of the pen: it is 2 a x + b, as its steps say."""
    numbers = seeds["s002_quadratic"]
    rtol = numbers["tol"]  # every number here is exact in float32
    at: list[Any] = [tk.scalar(numbers[name], dtype) for name in "abcx"]
    nudge = {name: tk.scalar(0.0, dtype) for name in numbers["levels"]}
    levels: dict[str, tk.Tensor] = {}
    close(quadratic(*at, nudge, levels), numbers["y"], rtol=rtol)
    for name, value in numbers["levels"].items():
        close(levels[name], value, rtol=rtol)
    *gradients, adjoints = tk.grad(quadratic, (0, 1, 2, 3, 4))(*at, nudge)
    for name, gradient in zip("abcx", gradients, strict=True):
        close(gradient, numbers[f"dy_d{name}"], rtol=rtol)
    a, b, x = numbers["a"], numbers["b"], numbers["x"]
    assert gradients[3].item() == 2 * a * x + b != 2 * a * b + b
    # A nudge adds to its intermediate result, so its gradient is that result's adjoint.
    for name, adjoint in numbers["adjoints"].items():
        close(adjoints[name], adjoint, rtol=rtol)
    for place, name in enumerate("abcx"):
        close(tk.derivative(quadratic, place)(*at, nudge), numbers[f"dy_d{name}"], rtol=rtol)


@pytest.mark.feature(89, 101, 131, 133)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_batched_matmul_with_one_matrix_for_all(
    seeds: dict[str, Any], backend: str, dtype: str, close: Callable[..., None]
) -> None:
    numbers = seeds["s003_batched_matmul"]
    a, b, g = [tk.tensor(numbers[name], dtype) for name in "ABG"]
    y, pull_back = tk.vjp(tk.matmul, a, b)
    close(y, numbers["Y"], rtol=numbers["tol"])
    grad_a, grad_b = pull_back(g)
    close(grad_a, numbers["grad_A"], rtol=numbers["tol"])
    close(grad_b, numbers["grad_B"], rtol=numbers["tol"])
    # The same by the article's formulas: the shared matrix collects the sum over the batch.
    close(g @ b.T, numbers["grad_A"], rtol=numbers["tol"])
    close((a.mT @ g).sum(0), numbers["grad_B"], rtol=numbers["tol"])


@pytest.mark.feature(132)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_gradient_of_a_broadcast_operand_is_a_sum(
    seeds: dict[str, Any], backend: str, dtype: str, close: Callable[..., None]
) -> None:
    numbers = seeds["s003_sum_over_broadcasted_batches"]
    shape = tuple(numbers["grad_shape"])
    cotangent = tk.arange(math.prod(shape), dtype=dtype).reshape(shape)
    small, large = tk.ones(numbers["origin_shape"], dtype), tk.ones(shape, dtype)
    of_small, of_large = tk.vjp(tk.add, small, large)[1](cotangent)
    close(of_small, numbers["result"], rtol=0.0)
    close(of_large, cotangent.tolist(), rtol=0.0)


@st.composite
def broadcastable(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast, zero-length axes among them."""
    full = draw(st.lists(st.integers(0, 3), max_size=4))
    pair = []
    for _ in range(2):
        sizes = [n if draw(st.booleans()) else 1 for n in full]
        pair.append(tuple(sizes[draw(st.integers(0, len(sizes))) :]))
    return pair[0], pair[1]


@pytest.mark.feature(18, 131, 132)
@given(shapes=broadcastable())
@settings(max_examples=examples(60))
def test_a_gradient_has_the_shape_of_its_argument(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    with tk.use_backend("numpy"):
        a, b = [tk.linspace(1.0, 2.0, tk.ones(s).size, dtype="float64").reshape(s) for s in shapes]
        y, pull_back = tk.vjp(lambda a, b: a * b, a, b)
        of_a, of_b = pull_back(y)
        assert of_a.shape == a.shape
        assert of_b.shape == b.shape
        # <y, y> is both <of_a, a> and <of_b, b>, as the product is linear in each operand.
        total = (y * y).sum().item()
        assert (of_a * a).sum().item() == pytest.approx(total)
        assert (of_b * b).sum().item() == pytest.approx(total)


@pytest.mark.feature(101, 134)
@pytest.mark.parametrize(
    ("a_shape", "b_shape", "y_shape"),
    [
        ((3,), (3,), ()),
        ((2, 3), (3,), (2,)),
        ((3,), (3, 2), (2,)),
        ((4, 2, 3), (3,), (4, 2)),
        ((3,), (4, 3, 2), (4, 2)),
        ((2, 1, 2, 3), (4, 3, 2), (2, 4, 2, 2)),
    ],
    ids=str,
)
def test_matmul_with_vectors(
    a_shape: tuple[int, ...], b_shape: tuple[int, ...], y_shape: tuple[int, ...], backend: str
) -> None:
    a = tk.linspace(-1.0, 2.0, math.prod(a_shape), dtype="float64").reshape(a_shape)
    b = tk.linspace(3.0, -1.0, math.prod(b_shape), dtype="float64").reshape(b_shape)
    y, pull_back = tk.vjp(tk.matmul, a, b)
    assert y.shape == y_shape
    assert [t.shape for t in pull_back(y)] == [a_shape, b_shape]
    tk.testing.check_grads(tk.matmul, (a, b), order=2)
    # A vector is a matrix of one row, or of one column, whose axis is dropped again.
    rows = a.reshape(1, 3) if a.ndim == 1 else a
    columns = b.reshape(3, 1) if b.ndim == 1 else b
    assert (rows @ columns).reshape(-1).tolist() == y.reshape(-1).tolist()


@pytest.mark.feature(93, 135)
def test_the_tape_records_each_op_with_its_parents(backend: str) -> None:
    inner = tk.scalar(0.0).interpreter
    level: Reverse[Any] = Reverse(inner)
    x, y = [level.variable(tk.scalar(v).representation) for v in (3.0, 5.0)]
    constant = level.lift(tk.scalar(10.0).representation)
    product = level.mul(x, y)
    result = level.add(product, level.mul(constant, constant))
    assert (x.index, y.index, constant.index, product.index, result.index) == (0, 1, None, 2, 3)
    records = [record for record in level.tape if record is not None]
    assert [(op, parents) for op, parents, _, _ in records] == [(OPS["mul"], [0, 1]), (OPS["add"], [2, None])]
    # A product keeps both factors for its rules, a sum nothing at all; constants leave no record.
    assert [[value is not None for value in kept] for _, _, kept, _ in records] == [
        [False, True, True],
        [False, False, False],
    ]
    found = level.pull_back({3: tk.scalar(1.0)})
    assert {place: t.item() for place, t in found.items()} == {0: 5.0, 1: 3.0}


@pytest.mark.feature(138)
def test_several_uses_add_up(backend: str) -> None:
    def diamond(x: tk.Tensor) -> tk.Tensor:
        left, right = x * 2.0, x.square()
        return left * right + x

    assert tk.grad(diamond)(3.0).item() == 6.0 * 9.0 + 1.0
    assert tk.derivative(diamond)(3.0).item() == 6.0 * 9.0 + 1.0


@pytest.mark.feature(137, 178)
@pytest.mark.parametrize("derivative", [tk.elementwise_grad, tk.derivative], ids=["reverse", "forward"])
def test_tanh_and_relu(derivative: Callable[..., Any], backend: str, close: Callable[..., None]) -> None:
    points = tk.tensor([-2.0, -0.5, 0.0, 0.5, 2.0], "float64")
    t = points.tanh()
    close(derivative(tk.tanh)(points), (1.0 - t * t).tolist(), rtol=1e-14)
    # The article has relu'(0) = 1; the subgradient that libraries agree upon is 0.
    close(derivative(tk.relu)(points), [0.0, 0.0, 0.0, 1.0, 1.0], rtol=0.0)


def _slope(t: Any, y: Any, x: Any) -> Any:
    return t * x.sigmoid()


SOFTPLUS = Op(
    "softplus", 1, same, floating, jvp=(_slope,), vjp=(_slope,), body=lambda x: (x.exp() + 1.0).log()
)


@pytest.mark.feature(106, 136)
def test_an_elementwise_function_from_itself_and_its_derivative(
    backend: str, close: Callable[..., None]
) -> None:
    """An op that only this file knows: its value, and one rule for both modes."""

    def softplus(x: tk.Tensor) -> tk.Tensor:
        return x.apply(SOFTPLUS)  # type: ignore[no-any-return]

    x = tk.tensor([-1.0, 0.0, 2.0], "float64")
    expected = [1.0 / (1.0 + math.exp(-v)) for v in x.tolist()]
    close(softplus(x), [math.log1p(math.exp(v)) for v in x.tolist()], rtol=1e-12)
    close(tk.elementwise_grad(softplus)(x), expected, rtol=1e-12)
    close(tk.derivative(softplus)(x), expected, rtol=1e-12)
    tk.testing.check_grads(softplus, (x,), order=2)
    # The body would have had a derivative of its own, infinite over infinite out here; the given rule counts.
    assert tk.grad(softplus)(1000.0).item() == 1.0
