"""What the tests of Tensorken's Rust ancestor compute, and what that ancestor got wrong: here it must be right."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest

import tensorken as tk
from tensorken_core.rewriting.view import View


def counting(*shape: int, start: float = 1.0) -> tk.Tensor:
    """start, start + 1, ... in a shape."""
    size = math.prod(shape)
    return tk.linspace(start, start + size - 1.0, size).reshape(shape)


# ---- the ancestor's own tests ------------------------------------------------------------------------------


@pytest.mark.feature(15, 101, 177)
def test_batched_matmul(seeds: dict[str, Any], backend: str, close: Callable[..., None]) -> None:
    numbers = seeds["tensorken_tests"]
    big = (counting(3, 2, 2, 3) * 3.0) @ counting(2, 3, 2, start=13.0)
    small = counting(2, 3, 5, start=0.0) @ counting(2, 5, 2, start=0.0)
    for found, name, shape in (
        (big, "matmul_3x2x2x3_2x3x2", (3, 2, 2, 2)),
        (small, "matmul_2x3x5_2x5x2", (2, 3, 2)),
    ):
        assert found.shape == shape
        close(found.reshape(-1), numbers[name], rtol=1e-6)


@pytest.mark.feature(15, 176)
def test_dot(seeds: dict[str, Any], backend: str, close: Callable[..., None]) -> None:
    numbers = seeds["tensorken_tests"]
    of_four_axes = numbers["dot_4x4_3x4x2"]
    found = tk.dot(tk.tensor(of_four_axes["a"]), tk.tensor(of_four_axes["b"]))
    assert found.shape == tuple(of_four_axes["shape"])
    close(found.reshape(-1), of_four_axes["out"], rtol=1e-6)
    of_vectors = numbers["dot_1d"]
    close(
        tk.dot(of_vectors["a"], of_vectors["b"]),
        of_vectors["out"],
        shape=tuple(of_vectors["shape_numpy"]),
        rtol=0.0,
    )
    of_both = numbers["dot_2dx1d"]
    close(tk.dot(counting(4, 3), tk.tensor(of_both["b"], "float32")), of_both["out"], rtol=0.0)


@pytest.mark.feature(34, 115, 176, 177)
@pytest.mark.parametrize("product", ["dot_shapes", "matmul_shapes"])
def test_shapes_of_products_are_known_without_a_product(seeds: dict[str, Any], product: str) -> None:
    function = {"dot_shapes": tk.dot, "matmul_shapes": tk.matmul}[product]
    for a, b, expected in seeds["tensorken_tests"][product]:
        found = function(tk.symbol("A", a), tk.symbol("B", b))
        assert found.shape == tuple(expected)


@pytest.mark.feature(89, 131)
def test_the_vjp_of_matmul(seeds: dict[str, Any], backend: str, close: Callable[..., None]) -> None:
    numbers = seeds["tensorken_tests"]["vjp_matmul"]
    a, b, cotangent = [tk.tensor(numbers[name], "float32") for name in ("a", "b", "ct")]
    y, pull_back = tk.vjp(tk.matmul, a, b)
    close(y.reshape(-1), numbers["primal"], rtol=0.0)
    for found, name, x in zip(pull_back(cotangent), ("ga", "gb"), (a, b), strict=True):
        assert found.shape == x.shape
        close(found.reshape(-1), numbers[name], rtol=0.0)


@pytest.mark.feature(81, 82)
@pytest.mark.parametrize("jacobian", [tk.jacfwd, tk.jacrev], ids=["forward", "reverse"])
def test_the_jacobian_of_squares(
    seeds: dict[str, Any], jacobian: Callable[..., Any], backend: str, close: Callable[..., None]
) -> None:
    expected = seeds["tensorken_tests"]["jac_pow2_at_123"]
    for f in (lambda x: x**2, lambda x: x**2.0, lambda x: x * x, lambda x: x ** tk.tensor([2.0])):
        close(jacobian(f)(tk.tensor([1.0, 2.0, 3.0])), expected, rtol=1e-6)


# ---- its defects -------------------------------------------------------------------------------------------


def test_the_tangent_of_max_has_the_shape_of_the_maximum(backend: str, close: Callable[..., None]) -> None:
    """Was: a tangent of shape (2, 3) beside a primal of shape (2, 1)."""
    x = tk.tensor([[1.0, 7.0, 3.0], [9.0, 2.0, 9.0]])
    t = tk.tensor([[0.5, 1.0, 2.0], [3.0, 5.0, 7.0]])
    value, tangent = tk.jvp(lambda x: x.max(1, keepdims=True), (x,), (t,))
    close(value, [[7.0], [9.0]], rtol=0.0)
    close(tangent, [[1.0], [5.0]], rtol=0.0)  # the tie shares: (3 + 7) / 2


@pytest.mark.feature(196)
def test_the_gradient_of_a_square_at_zero(backend: str) -> None:
    """Was: NaN, from 2 * (0**2 / 0)."""
    for power in (lambda x: x**2, lambda x: x**2.0, lambda x: x ** tk.scalar(2.0)):
        assert tk.grad(power)(0.0).item() == 0.0
        assert tk.derivative(power)(0.0).item() == 0.0


@pytest.mark.feature(178)
def test_the_gradient_of_sigmoid_far_below_zero(backend: str) -> None:
    """Was: NaN, from infinity over infinity squared; exp(-100) is a subnormal float32, or 0 where those are flushed."""
    for derivative in (tk.grad, tk.derivative):
        found = derivative(tk.sigmoid)(tk.scalar(-100.0)).item()
        assert found == 0.0 or found == pytest.approx(math.exp(-100.0), rel=0.05)
        assert derivative(tk.sigmoid)(tk.scalar(-100.0, "float64")).item() == pytest.approx(math.exp(-100.0))


@pytest.mark.feature(178)
def test_the_gradient_of_tanh_far_below_zero(backend: str) -> None:
    """Was: NaN."""
    for derivative in (tk.grad, tk.derivative):
        assert derivative(tk.tanh)(tk.scalar(-60.0)).item() == 0.0
        assert derivative(tk.tanh)(tk.scalar(60.0)).item() == 0.0


@pytest.mark.feature(178)
def test_tanh_keeps_its_digits_near_zero(backend: str) -> None:
    """Was: 1.0728836e-06, as two nearly equal numbers were subtracted."""
    assert tk.tanh(tk.scalar(1e-6)).item() == pytest.approx(1e-6, rel=2e-7)


@pytest.mark.feature(85)
@pytest.mark.parametrize("jacobian", [tk.jacfwd, tk.jacrev], ids=["forward", "reverse"])
def test_jacobians_of_matrices(jacobian: Callable[..., Any], backend: str) -> None:
    """Was: a panic going forward, shape (6, 2, 3) in reverse."""
    found = jacobian(lambda x: x * x)(counting(2, 3))
    assert found.shape == (2, 3, 2, 3)
    flat = found.reshape(6, 6).tolist()
    assert flat == [[2.0 * (i + 1) if i == j else 0.0 for j in range(6)] for i in range(6)]
    of_matrices = jacobian(lambda x: tk.ones((4, 2)) @ x @ tk.ones((3, 5)))(counting(2, 3))
    assert of_matrices.shape == (4, 5, 2, 3)
    assert set(of_matrices.reshape(-1).tolist()) == {1.0}


@pytest.mark.feature(24, 55)
def test_an_index_out_of_range(backend: str) -> None:
    """Was: the last element. Slices are cut to size, as in Python, single indices are not."""
    x = tk.tensor([1.0, 2.0, 3.0])
    for index in (9, 3, -4):
        with pytest.raises(IndexError, match=rf"{index} is out of range for axis 0 of shape \(3,\)"):
            x[index]
    assert x[-1].item() == 3.0
    assert x[1:9].tolist() == [2.0, 3.0]


@pytest.mark.feature(40, 164)
def test_a_crop_after_a_flip(backend: str) -> None:
    """Was: a panic, from an offset that was wrong for negative strides."""
    x = tk.tensor([1.0, 2.0, 3.0, 4.0])
    assert x[::-1][0:2].tolist() == [4.0, 3.0]
    assert x.flip(0).crop([(0, 2)]).tolist() == [4.0, 3.0]
    assert counting(2, 3).flip((0, 1)).crop([(0, 1), (1, 3)]).tolist() == [[5.0, 4.0]]
    flipped = View.contiguous((2, 3)).flip((0, 1))
    assert list(flipped.crop(((0, 1), (1, 3))).indices()) == [4, 3]
    assert list(flipped.crop(((1, 2), (0, 2))).flip((1,)).indices()) == [1, 2]


@pytest.mark.feature(22)
def test_the_maximum_of_infinities_and_nan(backend: str) -> None:
    """Was: the smallest finite float for two negative infinities, and 2 where one element is NaN."""
    assert tk.tensor([-math.inf, -math.inf]).max().item() == -math.inf
    assert math.isnan(tk.tensor([1.0, math.nan, 2.0]).max().item())
    assert tk.tensor([1.0, math.inf, 2.0]).max().item() == math.inf


@pytest.mark.feature(30, 55)
def test_an_order_that_is_no_permutation(backend: str) -> None:
    """Was: let through, as the sum of the axes was right, and out of bounds later."""
    with pytest.raises(ValueError, match=r"permute: .*\(1, 1, 1\)"):
        tk.zeros((2, 3, 4)).permute(1, 1, 1)


@pytest.mark.feature(31, 55)
def test_expand_adds_no_axes(backend: str) -> None:
    """Was: shape (3,) for the wish of (2, 3), without a word."""
    x = tk.tensor([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"expand: .*\(3,\).*\(2, 3\)"):
        x.expand((2, 3))
    assert tk.broadcast_to(x, (2, 3)).tolist() == [[1.0, 2.0, 3.0]] * 2


@pytest.mark.feature(5, 8, 71)
def test_a_tensor_without_axes(backend: str) -> None:
    """Was: a panic, as the product of no sizes was taken for 0."""
    x = tk.new((), [5.0])
    assert (x.shape, x.size, x.item(), str(x)) == ((), 1, 5.0, "5.0")
    assert (x + x).ravel().tolist() == [10.0]


@pytest.mark.feature(29)
def test_linspace_ends_where_it_should(backend: str) -> None:
    """Was: 0.70000005, 0.8000001, 0.9000001, 1.0000001, by adding up the step."""
    found = tk.linspace(0.0, 1.0, 11).tolist()
    nearest = tk.tensor([k / 10 for k in range(11)]).tolist()
    assert found == nearest
    assert found[-1] == 1.0
    assert tk.linspace(0.0, 1.0, 11, dtype="float64").tolist() == [k / 10 for k in range(11)]


@pytest.mark.feature(166)
def test_a_cast_between_floats_is_linear(backend: str, close: Callable[..., None]) -> None:
    """Was: gradients of zero."""
    x = tk.tensor([1.5, -2.0])
    for dtype in ("float32", "float64"):
        close(tk.grad(lambda x, d=dtype: x.astype(d).sum())(x), [1.0, 1.0], rtol=0.0)
        assert tk.grad(lambda x, d=dtype: x.astype(d).sum())(x).dtype is tk.float32
        tangent = tk.jvp(lambda x, d=dtype: x.astype(d), (x,), (x,))[1]
        assert tangent.dtype.name == dtype
        assert tangent.tolist() == [1.5, -2.0]
    # A cast to int jumps from step to step: it has no derivative.
    close(tk.grad(lambda x: x.astype("int32").astype("float32").sum())(x), [0.0, 0.0], rtol=0.0)


def test_the_product_of_two_vectors_is_a_number(backend: str, close: Callable[..., None]) -> None:
    """Was: [24, 30, 36] for [1, 2, 3] @ [4, 5, 6]."""
    a, b = tk.tensor([1.0, 2.0, 3.0]), tk.tensor([4.0, 5.0, 6.0])
    close(a @ b, 32.0, rtol=0.0)
    for found, expected in zip(tk.grad(tk.matmul, (0, 1))(a, b), (b, a), strict=True):
        close(found, expected.tolist(), rtol=0.0)


def test_what_is_not_selected_does_not_count(backend: str, close: Callable[..., None]) -> None:
    """Was: NaN for every element, where one that is not asked for is infinite; and 0 for an index out of range."""
    x = tk.tensor([1.0, math.inf, 3.0])
    assert tk.take(x, [0, 2]).tolist() == [1.0, 3.0]
    assert tk.take(tk.tensor([1.0, 2.0, 3.0]), [-1]).tolist() == [3.0]
    with pytest.raises(IndexError, match="out of range"):
        tk.take(tk.tensor([1.0, 2.0, 3.0]), [7, -1])
    close(tk.grad(lambda x: tk.take(x, [0, 2]).sum())(x), [1.0, 0.0, 1.0], rtol=0.0)


# ---- dtypes, where the ancestor was narrower ---------------------------------------------------------------


@pytest.mark.feature(165, 167)
def test_integers_and_booleans(backend: str) -> None:
    a = tk.tensor([[1, 2], [3, 4]])
    assert a.dtype is tk.int32
    assert (a + a).tolist() == [[2, 4], [6, 8]]
    assert (a * a).tolist() == [[1, 4], [9, 16]]
    assert (a @ a).tolist() == [[7, 10], [15, 22]]
    assert (a @ a).dtype is tk.int32
    flags = a.eq(tk.tensor([1, 4]))
    assert flags.dtype is tk.bool
    assert flags.tolist() == [[True, False], [False, True]]
    assert flags.eq(tk.tensor([[True], [False]])).tolist() == [[True, False], [True, False]]
    assert a.exp().dtype is tk.float32
    with pytest.raises(TypeError, match=r"neg: .*bool"):
        operator.neg(flags)
    assert flags.sum().item() == 2
    assert flags.sum().dtype is tk.int32
