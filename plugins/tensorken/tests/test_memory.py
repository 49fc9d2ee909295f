"""Memory: products that are never built, tapes that keep little, tangents without a trace, chains without recursion."""

from __future__ import annotations

import gc
import inspect
import math
import sys
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.support import FUSED, STACKS, array, f64, peak_of
from tensorken_core import tree
from tensorken_core.rewriting.fuse import Deferred, SumOfProducts
from tensorken_core.tensor.tensor import Tensor

pytestmark = pytest.mark.usefixtures("on_numpy")

# ---- matrix products ---------------------------------------------------------------------------------------

N = 1024
SMALL = 192  # the size of the operands: the full product has 192³ elements, 144 times those of an input and an output


def made(stack: Any, *shape: int, seed: int = 0) -> Tensor:
    values = np.random.default_rng(seed).standard_normal(shape, dtype="float32")
    return tk.tensor(values, backend=stack)


def by_hand(a: Tensor, b: Tensor) -> Tensor:
    return (a[:, :, None] * b[None]).sum(1)


def by_hand_permuted(a: Tensor, b: Tensor) -> Tensor:
    return (a[:, :, None] * b[None]).permute(2, 1, 0).sum(1)


Arguments = tuple[Tensor, ...]
SQUARES: Callable[[Any], Arguments] = lambda s: (made(s, N, N), made(s, N, N, seed=1))  # noqa: E731
LITTLE: Callable[[Any], Arguments] = lambda s: (made(s, SMALL, SMALL), made(s, SMALL, SMALL, seed=1))  # noqa: E731
BATCH: Callable[[Any], Arguments] = lambda s: (made(s, 8, 256, 512), made(s, 512, 256, seed=1))  # noqa: E731

CASES: dict[str, tuple[Callable[[Any], Arguments], Callable[..., Any]]] = {
    "a @ b": (SQUARES, lambda a, b: a @ b),
    "the JVP of a @ b, both tangents active": (SQUARES, lambda a, b: tk.jvp(tk.matmul, (a, b), (b, a))),
    "the gradient of the sum of a @ b": (SQUARES, tk.grad(lambda a, b: (a @ b).sum(), (0, 1))),
    "the gradient of a square of a @ b": (SQUARES, tk.grad(lambda a, b: ((a @ b) ** 2).sum(), (0, 1))),
    "an HVP of a square of a @ b": (
        SQUARES,
        lambda a, b: tk.hvp(lambda a, b: ((a @ b) ** 2).sum(), (a, b), (b, a)),
    ),
    "a batch with a shared weight, its sum": (BATCH, tk.grad(lambda x, w: (x @ w).sum(), 1)),
    "a batch with a shared weight": (BATCH, tk.grad(lambda x, w: tk.tanh(x @ w).sum(), 1)),
    "a batch and a shared weight, both": (BATCH, tk.grad(lambda x, w: ((x @ w) ** 2).sum(), (0, 1))),
    "a product by hand": (LITTLE, by_hand),
    "a product by hand, permuted": (LITTLE, by_hand_permuted),
    "the gradient of a product by hand": (LITTLE, tk.grad(lambda a, b: (by_hand(a, b) ** 2).sum(), (0, 1))),
    "the gradient of a product by hand, permuted": (
        LITTLE,
        tk.grad(lambda a, b: (by_hand_permuted(a, b) ** 2).sum(), (0, 1)),
    ),
    "the JVP of a product by hand, permuted": (LITTLE, lambda a, b: tk.jvp(by_hand_permuted, (a, b), (b, a))),
}


def in_full(result: Any) -> list[np.ndarray[Any, Any]]:
    """Each result as the backend below stores it, with nothing deferred."""
    return [x.interpreter.ravel(x.representation) for x in tree.leaves(result)]


@pytest.mark.slow
@pytest.mark.feature(57, 112, 113, 133)
@pytest.mark.parametrize("stack", ["Fuse(Numpy())", "Fuse(Strideless())", "ShapeTracker(Fuse(Numpy()))"])
@pytest.mark.parametrize("case", CASES)
def test_peak_memory_is_at_most_five_times_inputs_and_outputs(case, stack):
    make, compute = CASES[case]
    arguments = make(STACKS[stack])
    results = in_full(compute(*arguments))
    inputs = sum(4 * x.size for x in arguments)
    outputs = sum(x.nbytes for x in results)
    del results
    peak = peak_of(lambda: in_full(compute(*arguments)))
    assert peak + inputs <= 5 * (inputs + outputs)
    assert peak >= outputs  # the measurement sees numpy's memory


@pytest.mark.feature(57)
def test_the_products_by_hand_are_matrix_products():
    a, b = LITTLE(FUSED)
    expected = array(a).astype("float64") @ array(b).astype("float64")
    np.testing.assert_allclose(array(by_hand(a, b)), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(array(by_hand_permuted(a, b)), expected.T, rtol=1e-4, atol=1e-4)


@pytest.mark.feature(20)
def test_expanding_to_a_billion_elements_takes_no_memory():
    x = made(FUSED, 1, 1)

    def total():
        wide = x.expand((1_000_000, 1_000))
        return (wide.exp() * wide + 1.0).sum().item()

    assert peak_of(total) < 100_000
    assert total() == pytest.approx(1e9 * (math.exp(x.item()) * x.item() + 1.0), rel=1e-5)


# ---- tapes -------------------------------------------------------------------------------------------------


def arrays_of(value: Any) -> list[Any]:
    """Every array that a saved representation references."""
    found: list[Any] = []
    pending: list[Any] = [value]
    while pending:
        x = pending.pop()
        if isinstance(x, np.ndarray | np.generic):
            found.append(x)
        elif isinstance(x, Deferred):
            pending += [x.value, x.products]
        elif isinstance(x, SumOfProducts):
            pending += [part for term in x.terms for part in term]
        elif isinstance(x, dict):
            pending += x.values()
        elif isinstance(x, tuple | list):
            pending += x
        elif x is not None and hasattr(x, "primal"):
            pending.append(x.primal)
    return found


def saved_by(f: Callable[[Any], Any], x: Tensor) -> list[Any]:
    """All arrays on the tape of f at x."""
    kept = []

    def g(x):
        y = f(x)
        kept.extend(record[2] for record in x.interpreter.tape if record is not None)
        return y

    tk.vjp(g, x)
    return arrays_of(kept)


def repeated(step: Callable[[Any], Any], times: int) -> Callable[[Any], Any]:
    def f(x):
        for _ in range(times):
            x = step(x)
        return x

    return f


LINEAR: dict[str, Callable[[Any], Any]] = {
    "adding a number": lambda x: x + 1.0,
    "adding to a number": lambda x: 1.0 + x,
    "subtracting a number": lambda x: x - 2.0,
    "subtracting from a number": lambda x: 3.0 - x,
    "adding a tensor": lambda x: x + f64(np.ones(1000)),
    "adding itself": lambda x: x + x,
    "negating": lambda x: -x,
    "reversing": lambda x: x.flip(),
    "reshaping": lambda x: x.reshape(10, 100).T.reshape(1000),
    "summing": lambda x: x.sum(keepdims=True).expand((1000,)),
    "padding and cropping": lambda x: x.pad(((1, 1),)).crop(((1, 1001),)),
    "running sums": lambda x: x.cumsum(0),
    "casting": lambda x: x.astype("float32").astype("float64"),
    "indexing": lambda x: x[::-1],
}


@pytest.mark.feature(104, 135)
@pytest.mark.parametrize("step", LINEAR.values(), ids=LINEAR)
def test_the_tape_of_linear_steps_keeps_no_array(step):
    x = f64(np.linspace(0.0, 1.0, 1000))
    assert saved_by(repeated(step, 20), x) == []


@pytest.mark.feature(135)
def test_the_tape_keeps_what_the_rules_need_and_each_value_once():
    x = f64(np.linspace(0.1, 1.0, 1000))

    def distinct(f):
        return len({id(a) for a in saved_by(f, x) if a.size > 1})

    assert distinct(lambda x: tk.exp(x)) == 1  # the result
    assert distinct(lambda x: tk.log(x)) == 1  # the operand
    assert distinct(lambda x: tk.exp(tk.exp(tk.exp(x)))) == 3
    assert distinct(lambda x: x * x * x) <= 3  # x, and the deferred product x * x, which is x and x
    assert distinct(lambda x: (x * 3.0 + 1.0) * 2.0) == 0
    assert distinct(repeated(lambda x: x * 2.0 + 1.0, 50)) == 0


@pytest.mark.feature(104, 135)
def test_a_vjp_of_additions_of_a_scalar_takes_no_memory_for_arrays():
    """Tracemalloc's word: 500 steps over a megabyte hold a small part of a megabyte."""
    x = f64(np.zeros(125_000))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        _, pull_back = tk.vjp(lambda x: repeated(lambda x: x + 1.0, 500)(x).sum(), x)
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert held < 500_000  # the records themselves
    assert pull_back(1.0)[0].tolist() == [1.0] * 125_000


@pytest.mark.feature(128)
def test_the_backward_pass_frees_cotangents_and_what_it_has_used():
    """The gradient of thirty layers holds their thirty saved values, and hardly more on its way back."""
    megabyte = f64(np.full(125_000, 0.5))
    layers = 30
    peak = peak_of(lambda: tk.grad(lambda x: repeated(tk.sin, layers)(x).sum())(megabyte))
    assert layers * 1e6 < peak < (layers + 8) * 1e6


@pytest.mark.feature(128)
@pytest.mark.parametrize("stack", ["Fuse(Numpy())", "Numpy()"])
def test_gradients_reuse_the_memory_of_the_tape(stack):
    """Twenty parameters: a gradient replaces the value saved for it; a reusable pullback keeps both."""
    layers = 20
    x = f64(np.full(125_000, 0.5), STACKS[stack])
    parameters = [f64(np.full(125_000, 0.1 * i), STACKS[stack]) for i in range(layers)]

    def f(parameters):
        y = x
        for p in parameters:
            y = tk.sin(y + p)
        return y.sum()

    assert peak_of(lambda: tk.grad(f)(parameters)) < (layers + 5) * 1e6
    assert peak_of(lambda: tk.vjp(f, parameters)[1](1.0)) < (2 * layers + 5) * 1e6


@pytest.mark.feature(128)
def test_a_gradient_frees_all_its_memory():
    x = f64(np.full(125_000, 0.5))
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        tk.grad(lambda x: repeated(tk.sin, 10)(x).sum())(x)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            tk.grad(lambda x: repeated(tk.sin, 10)(x).sum())(x)
            tk.hvp(lambda x: repeated(tk.sin, 3)(x).sum(), (x,), (x,))
            tk.jvp(repeated(tk.sin, 10), (x,), (x,))
            tk.jacrev(lambda x: tk.sin(x).sum())(x)
        assert tracemalloc.get_traced_memory()[0] - before < 50_000
    finally:
        tracemalloc.stop()
        gc.enable()


def test_a_pullback_lets_go_of_its_tape():
    kept = []

    def f(x):
        kept.append(weakref.ref(x.interpreter))
        return tk.sin(x) * x

    _, pull_back = tk.vjp(f, f64(1.0))
    assert kept[0]() is not None
    pull_back(1.0)
    pull_back(2.0)
    del pull_back
    assert kept[0]() is None


# ---- forward mode ------------------------------------------------------------------------------------------


@pytest.mark.feature(90)
@pytest.mark.slow
def test_a_jvp_over_ten_thousand_ops_holds_constant_memory():
    x = f64(np.full(12_500, 0.5))  # 100 kB

    def steps(times):
        return repeated(lambda x: tk.sin(x) + x * 0.5, times // 3)

    few = peak_of(lambda: tk.jvp(steps(30), (x,), (x,)))
    many = peak_of(lambda: tk.jvp(steps(10_000), (x,), (x,)))
    assert many < few + 50_000
    assert many < 20 * 100_000


# ---- chains ------------------------------------------------------------------------------------------------


LONG = 100_000


@pytest.mark.feature(93, 108)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("transform", "steps"),
    [
        pytest.param(tk.grad, LONG, id="rev"),
        pytest.param(tk.derivative, LONG, id="fwd"),
        pytest.param(lambda f: tk.derivative(tk.grad(f)), LONG // 20, id="fwd-over-rev"),
        pytest.param(lambda f: tk.grad(tk.grad(f)), LONG // 20, id="rev-over-rev"),
    ],
)
def test_a_chain_of_a_hundred_thousand_ops_differentiates(transform, steps):
    """Repeated x -> a x + b with a limit of sixty frames: the library does not recurse."""
    a = 1.0 + 1.0 / steps

    def f(x):
        for _ in range(steps // 2):
            x = x * a + 1e-6
        return x * x

    transform(lambda x: x * x)(f64(1.0))  # imports and caches of the first use happen before
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 60)
    try:
        got = transform(f)(f64(1.0)).item()
    finally:
        sys.setrecursionlimit(limit)
    slope = a ** (steps // 2)  # of the chain before it is squared
    first, second = 2.0 * math.sqrt(f(1.0)) * slope, 2.0 * slope**2
    assert got == pytest.approx(first if steps == LONG else second, rel=1e-9)


@pytest.mark.feature(93)
def test_one_value_with_ten_thousand_uses():
    def f(x):
        total = x
        for _ in range(10_000):
            total = total + x
        return total

    assert tk.grad(f)(f64(1.0)).item() == 10_001.0
    assert tk.grad(lambda x: tk.stack([x] * 2_000).sum())(f64(1.0)).item() == 2_000.0


@pytest.mark.feature(114)
def test_a_shared_value_is_computed_once_at_every_level():
    """x + x, forty times: an interpreter that forgot sharing would take 2^40 steps."""
    f = repeated(lambda x: x + x, 40)
    assert tk.grad(f)(f64(1.0)).item() == 2.0**40
    assert tk.derivative(f)(f64(1.0)).item() == 2.0**40
    assert tk.derivative(tk.grad(lambda x: f(x) * f(x)))(f64(1.0)).item() == 2.0**81
