"""Fuse: the same numbers as the backend below, with fewer and smaller steps."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import tensorken as tk
from core.tests.each import each_of
from core.tests.examples import examples
from core.tests.random_programs.draft import Draft
from core.tests.random_programs.strategies import differentiable, function_of, on, programs
from core.tests.support import FUSED, STACKS, Counting, Nothing, Required, Strict, array, f64
from tensorken_core.language.dtypes import DTYPES, round_float
from tensorken_core.language.op import OPS
from tensorken_core.rewriting.fuse import LIMIT, Deferred, Fuse
from tensorken_core.rewriting.shape_tracker import ShapeTracker
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

pytestmark = pytest.mark.usefixtures("on_numpy")

FEW = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])


# ---- every stack means the same ----------------------------------------------------------------------------


@pytest.mark.feature(112, 114, 116)
@FEW
@given(programs(whole=True), st.sampled_from(sorted(STACKS)), st.booleans())
def test_every_stack_computes_the_same(draft: Draft, stack: str, last_first: bool):
    """All values of a random program, read in either order, so that more or less is still held back."""
    values = function_of(draft, STACKS[stack], everything=True)(*on(STACKS[stack], draft))
    places = range(len(values))
    for place in reversed(places) if last_first else places:
        got, expected = values[place], draft.results[place]
        assert got.shape == expected.shape, place
        assert str(got.dtype) == str(expected.dtype), place
        read = array(got)
        assert (read.shape, read.dtype) == (expected.shape, expected.dtype), place
        assert read.tolist() == expected.tolist(), place


@pytest.mark.feature(99, 113, 116)
@FEW
@given(programs(smooth=True, whole=True), st.sampled_from(sorted({*STACKS} - {"Fuse(Numpy())"})))
def test_every_stack_computes_the_same_derivatives(draft: Draft, other: str):
    """Gradients, tangents and Hessian-vector products of random programs; <∇f, 1> = J 1."""
    expected = None
    for stack in (STACKS[other], FUSED):
        last, leaves = differentiable(draft, stack)

        def f(*leaves, last=last):
            return last(*leaves).sum()

        ones = [tk.ones_like(x) for x in leaves]
        gradients = [array(g) for g in tk.grad(f, tuple(range(len(leaves))))(*leaves)]
        pushed = array(tk.jvp(f, leaves, ones)[1])
        products = [array(h) for h in tk.hvp(f, leaves, ones)]
        got = [*gradients, pushed, *products]
        expected = got if expected is None else expected
        for mine, first in zip(got, expected, strict=True):
            np.testing.assert_allclose(mine, first, rtol=1e-12, atol=1e-9)
        assert math.fsum(float(g.sum()) for g in gradients) == pytest.approx(
            float(pushed), rel=1e-9, abs=1e-6
        )


# ---- what is held back -------------------------------------------------------------------------------------


@pytest.fixture
def counting():
    return Counting()


@pytest.fixture
def fused(counting):
    """Makes float64 tensors on Fuse over a backend that counts, ready to count."""
    stack = Fuse(counting)

    def make(*values, dtype="float64"):
        tensors = [tk.tensor(value, dtype, backend=stack) for value in values]
        counting.clear()
        return tensors

    return make


SQUARE = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.feature(111, 112)
def test_the_sum_of_a_product_is_one_contraction(fused, counting):
    x, y = fused(SQUARE, SQUARE)
    assert (x * y).sum().item() == 30.0
    assert counting.calls["fused_multiply_add"] == 1
    assert counting.calls["mul"] == 0


@pytest.mark.feature(112)
@pytest.mark.parametrize("axes", [None, 0, 1, (0, 1)])
def test_a_sum_of_products_is_a_contraction_each(fused, counting, axes):
    x, y, u, v = fused(SQUARE, [[1.0, -1.0], [2.0, 0.5]], [[2.0, 2.0], [1.0, 3.0]], [[1.0, 1.0], [4.0, 2.0]])
    got = (x * y + u * v).sum(axes)
    expected = (array(x) * array(y) + array(u) * array(v)).sum(axes)
    assert array(got).tolist() == expected.tolist()
    assert counting.calls["fused_multiply_add"] == 2
    assert counting.calls["mul"] == 0


def test_a_difference_of_products_is_a_contraction_each(fused, counting):
    x, y = fused(SQUARE, SQUARE)
    assert (x * y - x * x + y * y - x * y).sum().item() == 0.0
    assert counting.calls["mul"] == 0
    assert counting.calls["sub"] == 2


@each_of("dtype", ["float32", "float64"])
def test_sums_of_products_are_rounded_in_the_order_that_was_written(dtype):
    """Unless they are summed: q - (r - s) is not (q - r) + s, and has another zero."""
    rng = np.random.default_rng(0)
    xs = [rng.standard_normal((3, 50)).astype(dtype) for _ in range(6)]
    xs[0][0], xs[1][0], xs[2][0], xs[3][0] = -0.0, 1.0, 0.0, 1.0
    xs[4][0], xs[5][0] = 0.0, 1.0
    forms = {
        "right": lambda a, b, c, d, e, f: a * b - (c * d - e * f),
        "sum": lambda a, b, c, d, e, f: a * b + (c * d + e * f),
        "moved": lambda a, b, c, d, e, f: (a * b - (c * d - e * f)).reshape((3, 1, 50))[:, 0],
        "twice": lambda a, b, c, d, e, f: (a * b + c * d) - (e * f - a * b),
    }
    for name, form in forms.items():
        for function in (form, tk.jit(form)):
            found = array(function(*[tk.tensor(x, backend=STACKS["Fuse(Numpy())"]) for x in xs]))
            assert found.tobytes() == np.array(form(*xs)).tobytes(), name


def test_a_sum_defers_at_most_four_products(fused, counting):
    x, y = fused(SQUARE, SQUARE)
    total = x * y
    for _ in range(LIMIT):
        total = total + x * x
    assert total.sum().item() == 30.0 * (LIMIT + 1)


@pytest.mark.feature(112)
def test_sums_of_sums_add_their_axes(fused, counting):
    x, y = fused(np.ones((2, 3, 4)), np.ones((2, 3, 4)))
    assert (x * y).sum(1).sum(0).sum().item() == 24.0
    assert counting.calls["fused_multiply_add"] == 1
    counting.clear()
    assert (x * y).sum(0, keepdims=True).permute(2, 0, 1).reshape(4, 3).sum(1).tolist() == [6.0] * 4
    assert counting.calls["fused_multiply_add"] == 1
    assert counting.calls["mul"] + counting.calls["sum"] == 0


@pytest.mark.feature(20, 112)
def test_an_expanded_value_stays_small(fused, counting):
    (x,) = fused([[1.0], [2.0]])
    wide = x.expand((2, 1_000_000))
    y = (wide.exp() + wide).sin().max(1)
    assert y.shape == (2,)
    assert array(y).tolist() == np.sin(np.exp([1.0, 2.0]) + [1.0, 2.0]).tolist()
    assert max(np.prod(shape) for _, shape in counting.sizes) == 2
    assert counting.calls["expand"] == 0


def test_an_expanded_value_keeps_its_logical_shape(fused):
    (x,) = fused([[1.0], [2.0]])
    wide = x.expand((2, 3))
    assert wide.shape == (2, 3)
    assert wide.tolist() == [[1.0] * 3, [2.0] * 3]
    assert wide.T.tolist() == [[1.0, 2.0]] * 3
    assert wide.reshape(6).tolist() == [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    assert wide.reshape(2, 1, 3).tolist() == [[[1.0] * 3], [[2.0] * 3]]
    assert wide.flip().tolist() == [[2.0] * 3, [1.0] * 3]
    assert wide[:, 1:].tolist() == [[1.0] * 2, [2.0] * 2]
    assert wide.cumsum(1).tolist() == [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]
    assert wide.pad(((0, 0), (1, 0))).tolist() == [[0.0, 1.0, 1.0, 1.0], [0.0, 2.0, 2.0, 2.0]]


@pytest.mark.feature(112, 114)
@pytest.mark.parametrize(
    ("uses", "products"),
    [
        (lambda p: [p.exp(), p.sin(), p.max()], 1),
        (lambda p: [p + p], 1),
        (lambda p: [p.T.exp(), p.exp()], 1),
        (lambda p: [p.reshape(1, 2, 2).exp(), p.exp(), p], 1),
        (lambda p: [p.T.exp(), (p + p).exp(), p - p, p.T], 1),
        (lambda p: [p.exp(), p.sum(), p.sum(0)], 1),
        (lambda p: [p.sum(), p.sum()], 0),
    ],
)
def test_a_product_is_multiplied_out_at_most_once(fused, counting, uses, products):
    x, y = fused(SQUARE, SQUARE)
    for value in uses(x * y):
        value.tolist()
    assert counting.calls["mul"] == products


@pytest.mark.feature(114)
def test_doubling_a_product_many_times_computes_it_once(fused, counting):
    x, y = fused([1.0], [2.0])
    p = x * y
    for _ in range(50):
        p = p + p
    assert p.item() == 2.0**51
    assert counting.calls["mul"] == 1
    assert counting.calls["add"] < 60


@pytest.mark.feature(114)
def test_a_contraction_is_computed_at_most_once(fused, counting):
    a, b = fused(SQUARE, SQUARE)
    h = a @ b
    for value in (h + h, h.exp(), h.T, h - h.T, h):
        value.tolist()
    assert counting.calls["fused_multiply_add"] == 1


# ---- axes that operands do not have ------------------------------------------------------------------------


@pytest.mark.feature(112)
def test_an_axis_of_no_operand_multiplies_by_its_size(fused, counting):
    (x,) = fused([[1.0], [2.0]])
    assert x.expand((2, 500)).sum().item() == 1500.0
    wide = x.expand((2, 500))
    assert (wide * wide).sum(1).tolist() == [500.0, 2000.0]
    assert max(np.prod(shape) for _, shape in counting.sizes) == 2


@pytest.mark.feature(112)
def test_an_axis_of_length_zero_gives_zeros_whatever_the_value(fused):
    x, y = fused([[math.nan], [math.inf]], [[1.0], [2.0]])
    for product in (
        x.expand((2, 0)),
        x.expand((2, 0)) * y.expand((2, 0)),
        x.expand((2, 0)) * x.expand((2, 0)),
    ):
        assert product.shape == (2, 0)
        assert product.tolist() == [[], []]
        assert product.sum(1).tolist() == [0.0, 0.0]
        assert product.sum().item() == 0.0
        assert product.sum(0).tolist() == []


@pytest.mark.feature(112)
def test_an_axis_of_one_operand_is_summed_in_it_first(fused, counting):
    row, column = fused([np.arange(1000.0)], np.ones((1000, 1)))
    assert (row * column).sum(1).tolist() == [499500.0] * 1000
    assert max(np.prod(shape) for _, shape in counting.sizes) == 1000
    assert counting.calls["sum"] == 1


@pytest.mark.feature(165)
def test_a_count_beyond_the_dtype_wraps_or_overflows_as_the_sum_would():
    for backend in (Fuse(Numpy()), Fuse(Strict())):
        one = tk.full((1, 1), 3, "int32", backend=backend)
        assert one.expand((2**16, 2**16)).sum().item() == 0  # 3 * 2**32, wrapped
        assert one.expand((2**16, 2**15)).sum().item() == -(2**31)  # 3 * 2**31, wrapped
        assert (one.expand((2**16, 2**15)) * one.expand((2**16, 2**15))).sum().item() == -(2**31)
        half = tk.full((1,), 0.5, "float16", backend=backend)
        assert half.expand((100_000,)).sum().item() == pytest.approx(50_000, rel=2e-3)
        assert (half * 0.0).expand((100_000,)).sum().item() == 0.0
        assert half.expand((1_000_000,)).sum().item() == math.inf


@pytest.mark.feature(112, 165)
@each_of(("dtype", "count"), [("bfloat16", 257), ("bfloat16", 1001), ("float16", 2049), ("float16", 100_000)])
def test_a_sum_of_repeated_narrow_floats_is_rounded_once(dtype, count):
    """The count is no number of the dtype, or is beyond its range; the sum over the stored axis is none either."""
    for backend in (Fuse(Numpy()), Fuse(Reference())):
        x = tk.tensor([[1 / 3], [0.001], [0.007]], dtype, backend=backend)
        y = tk.tensor([[0.25], [0.75], [0.007]], dtype, backend=backend)
        numbers, others = (v.ravel().tolist() for v in (x, y))
        repeated, other = x.expand((3, count)), y.expand((3, count))
        each = [round_float(n * count, DTYPES[dtype]) for n in numbers]
        assert repeated.sum(1).tolist() == each
        assert tk.jit(lambda x: x.expand((3, count)).sum(1))(x).tolist() == each
        assert repeated.sum().item() == round_float(sum(numbers) * count, DTYPES[dtype])
        products = sum([a * b for a, b in zip(numbers, others, strict=True)])
        assert (repeated * other).sum().item() == round_float(products * count, DTYPES[dtype])


@pytest.mark.feature(112)
@each_of(
    "scaled",
    [
        lambda x, s: (x * s).sum(),
        lambda x, s: (x / (1.0 / s)).sum(),
        lambda x, s: (x * 2.0**-8 + x * s).sum(),
    ],
)
def test_a_factor_of_a_narrow_sum_keeps_it_in_range(scaled):
    """The sum of x alone is larger than all numbers of float16."""
    for backend in (Fuse(Numpy()), Fuse(Reference())):
        x = tk.full((100, 1), 4096.0, "float16", backend=backend) * tk.ones(
            (1, 3), "float16", backend=backend
        )
        s = tk.tensor(2.0**-10, "float16", backend=backend)
        wide = scaled(x.astype("float32"), s.astype("float32")).item()
        expected = round_float(wide, DTYPES["float16"])
        assert scaled(x, s).item() == tk.jit(scaled)(x, s).item() == expected


# ---- matrices ----------------------------------------------------------------------------------------------

M, K, N = 3, 4, 5


def operands(stack):
    a = tk.tensor(np.arange(M * K).reshape(M, K) - 5.0, "float64", backend=stack)
    b = tk.tensor(np.arange(K * N).reshape(K, N) * 0.5 - 3.0, "float64", backend=stack)
    return a, b


def loss(a, b):
    return ((a @ b) * (a @ b)).sum()


DERIVATIVES = {
    "value": lambda a, b: [a @ b],
    "jvp": lambda a, b: tk.jvp(tk.matmul, (a, b), (a, b)),
    "vjp": lambda a, b: tk.vjp(tk.matmul, a, b)[1](a @ b),
    "gradient of the sum": lambda a, b: tk.grad(lambda a, b: (a @ b).sum(), (0, 1))(a, b),
    "gradient": lambda a, b: tk.grad(loss, (0, 1))(a, b),
    "hvp": lambda a, b: tk.hvp(loss, (a, b), (a, b)),
    "reverse over reverse": lambda a, b: [
        tk.grad(lambda a: (tk.grad(loss)(a, b) * a).sum())(a),
    ],
    "forward over forward": lambda a, b: [tk.derivative(tk.derivative(loss))(a, b)],
    "third order": lambda a, b: [tk.hvp(lambda b: (tk.grad(loss)(a, b) * a).sum(), (b,), (b,))],
    "by hand": lambda a, b: [(a[:, :, None] * b[None]).sum(1)],
    "by hand, permuted": lambda a, b: [(a[:, :, None] * b[None]).permute(1, 0, 2).sum(0)],
    "by hand, sum of products": lambda a, b: [(a[:, :, None] * b[None] + b[None] * a[:, :, None]).sum(1)],
}


@pytest.mark.feature(57, 101, 112, 113)
@pytest.mark.parametrize("compute", DERIVATIVES.values(), ids=DERIVATIVES)
def test_no_derivative_of_matmul_builds_the_product(compute, counting):
    """No op has a result of m·k·n elements."""
    expected = [array(x) for x in compute(*operands(Numpy()))]
    a, b = operands(Fuse(counting))
    counting.clear()
    for got, want in zip(compute(a, b), expected, strict=True):
        np.testing.assert_allclose(array(got), want, rtol=1e-12)
    assert counting.calls["fused_multiply_add"] > 0
    sizes = {shape: name for name, shape in counting.sizes}
    assert max(math.prod(shape) for shape in sizes) <= max(M * K, K * N, M * N)


@pytest.mark.feature(133)
def test_a_shared_weight_is_contracted_over_the_batch_at_once(counting):
    stack = Fuse(counting)
    x = tk.tensor(np.ones((6, M, K)), backend=stack)
    w = tk.tensor(np.ones((K, N)), backend=stack)
    counting.clear()
    assert tk.grad(lambda w: ((x @ w) ** 2).sum())(w).tolist() == [[2.0 * K * 6 * M] * N] * K
    assert max(math.prod(shape) for _, shape in counting.sizes) == 6 * M * N


# ---- constants ---------------------------------------------------------------------------------------------


def test_constants_keep_their_sign_dtype_and_kind():
    stack = Fuse(Numpy())
    for value, dtype in itertools.product((0.0, -0.0, 1.0, -1.0, math.inf), ("float32", "float64")):
        x = tk.full((2,), value, dtype, backend=stack)
        assert [math.copysign(1.0, v) for v in x.tolist()] == [math.copysign(1.0, value)] * 2
        assert (x.tolist(), str(array(x).dtype)) == ([value] * 2, dtype)
    for value, dtype in (
        (True, "bool"),
        (1, "int32"),
        (1, "int64"),
        (1.0, "float32"),
        (0, "int32"),
        (False, "bool"),
    ):
        x = tk.full((), value, dtype, backend=stack)
        assert (x.item(), type(x.item())) == (value, type(value))
    assert math.isnan(tk.full((), math.nan, backend=stack).item())


@pytest.mark.parametrize(
    "move",
    [
        lambda x: x.broadcast_to((2, 3)),
        lambda x: x.reshape((1, 3, 1)).broadcast_to((2, 3, 4)),
        lambda x: x.broadcast_to((2, 3)).reshape((3, 2)),
        lambda x: x.broadcast_to((2, 3)).mT,
        lambda x: tk.flip(x.broadcast_to((2, 3)), axis=0),
    ],
)
def test_movement_ops_keep_the_fill_value(move):
    counting = Counting()
    stack = Fuse(counting)
    y = move(tk.full((3,), -0.0, backend=stack))
    assert str(stack.fill_value(y.representation)) == "-0.0"
    assert not counting.calls.keys() & {"expand", "permute", "flip"}
    expected = array(move(tk.full((3,), 1.0, backend=Numpy())))
    np.testing.assert_array_equal(np.signbit(array(y)), expected.astype(bool))


def test_a_thousand_constants_are_correct():
    stack = Fuse(Numpy())
    x = tk.zeros((2,), backend=stack)
    for i in range(1000):
        assert (x + i).tolist() == [float(i)] * 2
    assert (x + 3).tolist() == [3.0, 3.0]


# ---- what the backend below has and lacks ------------------------------------------------------------------


@pytest.mark.feature(2, 112)
def test_ops_that_the_backend_lacks_are_expanded_by_fuse():
    """Bodies run on Fuse itself, so their products and sums are deferred too."""
    stack = Fuse(Required())
    assert not stack.has(OPS["tanh"])
    assert stack.has(OPS["exp"])
    x = tk.tensor([0.5, -1.0, 2.0], "float64", backend=stack)
    np.testing.assert_allclose(array(tk.tanh(x)), np.tanh([0.5, -1.0, 2.0]), rtol=1e-15)
    gradient = tk.grad(lambda x: tk.softmax(x).max())
    np.testing.assert_allclose(array(gradient(x)), array(gradient(f64([0.5, -1.0, 2.0]))), rtol=1e-13)
    assert (x @ x).item() == 5.25


def test_a_sum_of_products_minus_itself_is_zero():
    """A sum on the right is one number, which is rounded, as it is written."""
    rng = np.random.default_rng(0)
    a, b, c, d = (tk.tensor(rng.normal(size=64)) for _ in range(4))

    def check(f):
        x, y = f(), f()
        assert not np.asarray(x - x).any()
        assert not np.asarray(x - y).any()
        assert not np.asarray(tk.jit(lambda *_: f() - f())(x)).any()

    check(lambda: a * b + c * d)
    check(lambda: a * b - c)
    check(lambda: (a * b + c * d).sum(0, keepdims=True))


def test_a_hundred_axes():
    """More axes than numpy supports; other backends may support any number."""
    tracker = Fuse(ShapeTracker(Nothing()))
    x = tk.zeros((1,) * 99 + (2,), backend=tracker)
    assert ((x * x).sum() + x).shape == x.shape


def test_the_dtype_and_shape_of_a_deferred_product_are_known(counting):
    stack = Fuse(counting)
    x = tk.ones((2, 3), "int64", backend=stack)
    p = (x * x).sum(0)
    held = p.representation
    assert isinstance(held, Deferred)
    assert (stack.shape(held), stack.dtype(held)) == ((3,), tk.int64)
    assert counting.calls["fused_multiply_add"] == 0
    assert p.tolist() == [2, 2, 2]


@pytest.mark.feature(180)
def test_realize_computes_deferred_values(counting):
    stack = Fuse(counting)
    x = tk.tensor(np.ones((2, 3)), backend=stack)
    p = (x * x).sum(0)
    assert counting.calls["fused_multiply_add"] == 0
    assert p.realize() is p
    assert counting.calls["fused_multiply_add"] == 1
    p.tolist()
    assert counting.calls["fused_multiply_add"] == 1
