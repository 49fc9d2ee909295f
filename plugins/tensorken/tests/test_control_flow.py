"""Control flow: loops and conds give the results of Python's own at every level; JAX 0.10.2's numbers where noted."""

from __future__ import annotations

import math
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, STACKS, Counting, Strict, array, close, f64, peak_of
from tensorken.compilation.call_op import forward_backward_of
from tensorken.programs.passes.common_subexpressions import without_common_subexpressions
from tensorken.programs.passes.dead_code import without_dead_code
from tensorken.programs.passes.inlining import inline
from tensorken_core.errors import ArgumentError, DTypeError, GradientError, ShapeError, StructureError
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.tensor.tensor import Tensor
from tensorken_reference.backend import Reference

pytestmark = pytest.mark.usefixtures("on_numpy")


BACKENDS = {
    name: STACKS[name] for name in ("Fuse(Numpy())", "Numpy()", "Required()", "ShapeTracker(Fuse(Numpy()))")
} | {"Fuse(Strict())": Fuse(Strict()), "Reference()": Reference()}

W = [[0.5, -0.2, 0.1], [0.3, 0.8, -0.5], [-0.7, 0.2, 0.4]]
H = [0.1, -0.3, 0.2]
XS = np.sin(np.arange(12.0)).reshape(4, 3)


@pytest.fixture(params=BACKENDS)
def arguments(request: Any) -> tuple[Tensor, ...]:
    backend = BACKENDS[request.param]
    return f64(H, backend), f64(XS, backend), f64(W, backend)


# ---- scan --------------------------------------------------------------------------------------------------


def step(w: Any) -> Callable[..., Any]:
    def one(h: Any, x: Any) -> Any:
        h = tk.tanh(h @ w + x)
        return h, (h * h).sum()

    return one


def weighted(h: Any, ys: Any) -> Any:
    return (ys * ys.constant([0.0, 1.0, 2.0, 3.0], ys.dtype, (4,))).sum() + h.sum()


def rnn(h: Any, xs: Any, w: Any) -> Any:
    return weighted(*tk.scan(step(w), h, xs))


def unrolled(h: Any, xs: Any, w: Any) -> Any:
    ys = []
    for i in range(4):
        h, y = step(w)(h, xs[i])
        ys.append(y)
    return weighted(h, tk.stack(ys))


JAX_VALUE = 2.899938047836021
JAX_GRADIENTS = (
    [-0.6085095190662615, 0.5561461243754262, 0.8869160345809926],
    [
        [-0.8062878976932184, 1.143976787074349, 0.2342978719521748],
        [-0.7567813702963683, 1.9939121115891003, -0.5552187602706695],
        [0.6950241042456632, 2.8509175549675394, 0.4750175400285331],
        [1.7354290692144336, 0.6131344514817345, -1.5275487351254824],
    ],
    [
        [-0.1376895651047993, -1.1953077723773766, -0.07878336898185599],
        [0.5278935088653963, 0.7056533567817899, -1.1218689855284647],
        [-0.21404880508198873, 0.16044932563488556, -1.6970162750817481],
    ],
)
JAX_HESSIAN = [
    [0.12638526677962553, -0.15649867603953854, -0.2238065089325188],
    [-0.15649867603953865, 0.7460413663544861, 0.10576438919455092],
    [-0.22380650893251874, 0.1057643891945509, 0.33525138190738496],
]
JAX_LAST_BATCH = [
    [-0.5857093502413495, -1.1562757783807376, -0.8274118175946],
    [-0.4727358306074858, -1.1275833082326145, -1.8552514065027568],
    [-1.2609108763468115, -1.8534739928562411, -2.568177567343482],
]
JAX_REVERSE = [
    [0.44739117399503114, 0.39836731955987675, 0.18235612588940953],
    [-1.301829988406301, -1.1544689625411961, -0.5319241680173241],
    [-0.1934621207622525, -0.2993179218222437, -0.043794413955723796],
]

EVERYTHING = (0, 1, 2)

NESTS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "value": lambda f: f,
    "grad": lambda f: tk.grad(f, EVERYTHING),
    "jvp": lambda f: lambda *xs: tk.jvp(f, xs, xs),
    "linearize": lambda f: lambda *xs: tk.linearize(f, *xs)[1](*xs),
    "jit": tk.jit,
    "jit of grad": lambda f: tk.jit(tk.grad(f, EVERYTHING)),
    "grad of jit": lambda f: tk.grad(tk.jit(f), EVERYTHING),
    "hvp": lambda f: lambda *xs: tk.hvp(f, xs, xs),
    "grad of grad": lambda f: tk.grad(lambda h, xs, w: (tk.grad(f, 2)(h, xs, w) ** 2).sum(), EVERYTHING),
    "jvp of grad of jit": lambda f: lambda *xs: tk.jvp(tk.grad(tk.jit(f), 2), xs, xs),
    "hessian": lambda f: tk.hessian(f, 0),
    "vmap of grad": lambda f: (
        lambda h, xs, w: tk.vmap(tk.grad(f, EVERYTHING), (None, 0, None))(h, tk.stack([xs, xs * 2.0]), w)
    ),
    "grad of vmap": lambda f: tk.grad(
        lambda h, xs, w: tk.vmap(f, (None, 0, None))(h, tk.stack([xs, xs * 2.0]), w).sum(), EVERYTHING
    ),
    "vmap over the carry": lambda f: lambda h, xs, w: tk.vmap(f, (0, None, None))(tk.stack([h, -h]), xs, w),
    "vmap over the weights": lambda f: (
        lambda h, xs, w: tk.vmap(f, (None, None, 2))(h, xs, tk.stack([w, -w], axis=2))
    ),
    "vmap of vmap of grad": lambda f: (
        lambda h, xs, w: tk.vmap(tk.vmap(tk.grad(f, EVERYTHING), (0, None, None)), (None, 1, None))(
            tk.stack([h, -h]), tk.stack([xs, xs * 2.0], axis=1), w
        )
    ),
    "jit of vmap of grad": lambda f: tk.jit(
        lambda h, xs, w: tk.vmap(tk.grad(f, 2), (0, None, None))(tk.stack([h, -h]), xs, w)
    ),
    "jvp of vmap": lambda f: (
        lambda h, xs, w: tk.jvp(lambda w: tk.vmap(f, (0, None, None))(tk.stack([h, -h]), xs, w), (w,), (w,))
    ),
    "checkpoint": lambda f: tk.grad(tk.checkpoint(f), EVERYTHING),
    "grad of grad of checkpoint": lambda f: tk.grad(
        lambda h, xs, w: (tk.grad(tk.checkpoint(f), 2)(h, xs, w) ** 2).sum(), EVERYTHING
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("nest", NESTS)
def test_a_scan_is_its_unrolled_loop(nest, arguments):
    close(NESTS[nest](rnn)(*arguments), NESTS[nest](unrolled)(*arguments))


def test_a_scan_gives_jaxs_numbers(arguments):
    h, xs, w = arguments
    close(rnn(h, xs, w), JAX_VALUE)
    close(tk.grad(rnn, EVERYTHING)(h, xs, w), JAX_GRADIENTS)
    close(tk.hessian(rnn)(h, xs, w), JAX_HESSIAN)
    close(tk.vmap(tk.grad(rnn, 2), (None, 0, None))(h, tk.stack([xs, xs.flip(0)]), w)[1], JAX_LAST_BATCH)


def test_a_scan_from_the_end(arguments):
    h, xs, w = arguments

    def loss(w: Any) -> Any:
        _, ys = tk.scan(lambda c, x: (tk.tanh(c @ w + x), c.sum()), h, xs, reverse=True)
        return weighted(ys.zeros_like(), ys)

    close(tk.grad(loss)(w), JAX_REVERSE)
    close(tk.jit(tk.grad(loss))(w), JAX_REVERSE)


def test_carries_and_slices_are_trees_of_any_dtypes():
    def one(carry: Any, x: Any) -> Any:
        total, (count, flag) = carry["total"], carry["more"]
        return {"total": total + x["a"] * x["b"][0], "more": (count + 1, ~flag)}, (x["a"], {"n": count})

    xs = {"a": f64([1.0, 2.0, 3.0]), "b": tk.tensor([[2], [3], [4]])}
    carry, (a, n) = tk.scan(one, {"total": f64([0.0, 1.0]), "more": (0, True)}, xs)
    assert carry["total"].tolist() == [20.0, 21.0]
    assert carry["more"][0].item() == 3 and carry["more"][1].item() is False
    assert a.tolist() == [1.0, 2.0, 3.0] and n["n"].tolist() == [0, 1, 2]
    gradient = tk.grad(
        lambda a: tk.scan(one, {"total": f64(0.0), "more": (0, True)}, {**xs, "a": a})[0]["total"]
    )
    assert gradient(xs["a"]).tolist() == [2.0, 3.0, 4.0]


@pytest.mark.parametrize("reverse", [False, True])
def test_many_steps_are_stacked_in_their_order(reverse):
    carry, ys = tk.scan(lambda i, x: (i + 1, (x, i)), 0, tk.arange(5000), reverse=reverse)
    count = np.arange(5000)
    assert carry.item() == 5000
    assert (array(ys[0]) == count).all()
    assert (array(ys[1]) == (count[::-1] if reverse else count)).all()


def test_no_steps_and_no_slices():
    carry, ys = tk.scan(lambda c, x: (c + x, x * 2), 1.5, tk.zeros((0,)))
    assert carry.item() == 1.5 and ys.shape == (0,)
    carry, ys = tk.scan(lambda c, _: (c * 2, None), 1, length=10)
    assert carry.item() == 1024 and ys is None
    assert tk.scan(lambda c, _: (c, 3.0), None, length=2)[1].tolist() == [3.0, 3.0]
    gradient = tk.grad(lambda x: tk.scan(lambda c, y: (c * y, None), x, tk.zeros((0,)))[0])(2.0)
    assert gradient.item() == 1.0


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        lambda carry, y: (carry * 2.0, None),
        lambda carry, y: (y, None),
        lambda carry, y: (tk.ones((2,), dtype="float64"), None),
        lambda carry, y: (tk.sign(carry), tk.floor(carry)),
    ],
    ids=["the carry", "a slice", "a number", "steps"],
)
def test_a_carry_that_no_step_changes_keeps_its_derivative(body, reverse):
    def f(x):
        return tk.scan(body, x * x, tk.zeros((0, 2), dtype="float64"), reverse=reverse)[0].sum()

    x = f64([1.0, -2.0])
    assert tk.grad(f)(x).tolist() == tk.grad(tk.jit(f))(x).tolist() == [2.0, -4.0]
    assert tk.vmap(tk.grad(f))(tk.stack([x, x])).tolist() == [[2.0, -4.0]] * 2
    assert tk.hessian(f)(x).tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_number_carries_take_the_dtype_of_the_step():
    carry, _ = tk.scan(lambda c, x: (c + x, None), 0, f64([1.5, 2.0]))
    assert carry.dtype is tk.float64 and carry.item() == 3.5
    carry, _ = tk.scan(lambda c, x: (0.0, None), f64(1.0), f64([1.5, 2.0]))
    assert carry.dtype is tk.float64 and carry.item() == 0.0
    assert tk.cond(True, lambda x: x, lambda x: 0, f64(2.0)).dtype is tk.float64
    assert tk.cond(False, lambda x: 0, lambda x: x, f64(2.0)).dtype is tk.float64
    assert tk.while_loop(lambda x: x < 3, lambda x: x + f64(1.0), 0).dtype is tk.float64


def test_a_carry_gets_a_derivative_only_inside_the_loop():
    def loss(x: Any, start: Any) -> Any:
        return tk.scan(lambda c, y: ((c[1], c[0] * x + y), c[0]), (start, start * 0.0), f64([1.0, 2.0, 3.0]))[
            1
        ].sum()

    def plain(x: Any, start: Any) -> Any:
        c, total = (start, start * 0.0), 0.0
        for y in (1.0, 2.0, 3.0):
            total, c = total + c[0], (c[1], c[0] * x + y)
        return total

    x, start = f64(0.5), f64(2.0)
    close(tk.grad(loss)(x, start), tk.grad(plain)(x, start))
    close(tk.jvp(lambda x: loss(x, start), (x,), (x,)), tk.jvp(lambda x: plain(x, start), (x,), (x,)))
    close(tk.vmap(loss, (0, None))(f64([0.5, 2.0]), start), tk.vmap(plain, (0, None))(f64([0.5, 2.0]), start))


def test_scans_in_scans():
    def total(xs: Any, w: Any) -> Any:
        def row(c: Any, x: Any) -> Any:
            inner, _ = tk.scan(lambda d, e: (tk.sin(d * w) + e * c, None), c, x)
            return inner, inner

        return tk.scan(row, w, xs)[1].sum()

    def plain(xs: Any, w: Any) -> Any:
        c, result = w, 0.0
        for i in range(4):
            d = c
            for j in range(3):
                d = tk.sin(d * w) + xs[i, j] * c
            c = d
            result = result + c
        return result

    xs, w = f64(XS), f64(0.7)
    close(tk.grad(total, (0, 1))(xs, w), tk.grad(plain, (0, 1))(xs, w))
    close(tk.jit(tk.hessian(total, 1))(xs, w), tk.hessian(plain, 1)(xs, w))
    close(
        tk.vmap(tk.grad(total, 1), (None, 0))(xs, f64([0.7, 1.0])),
        tk.vmap(tk.grad(plain, 1), (None, 0))(xs, f64([0.7, 1.0])),
    )


def test_a_checkpointed_body_stores_only_its_carries():
    def block(h: Any, x: Any) -> Any:
        for _ in range(3):
            h = tk.sin(tk.exp(-h * h) + x)
        return h, None

    def loss(body: Any) -> Any:
        return lambda h, xs: tk.scan(body, h, xs)[0].sum()

    h, xs = f64(H), f64(XS)
    close(tk.grad(loss(tk.checkpoint(block)), (0, 1))(h, xs), tk.grad(loss(block), (0, 1))(h, xs))
    close(tk.jit(tk.grad(loss(tk.checkpoint(block)), (0, 1)))(h, xs), tk.grad(loss(block), (0, 1))(h, xs))

    def stacked(body: Any) -> int:
        (forward, *_) = [e for e in tk.trace(tk.grad(loss(body)))(h, xs).equations if e.op.name == "scan"]
        return len(forward.results) - 1

    assert stacked(tk.checkpoint(block)) == 1
    assert stacked(block) > 5


def test_a_product_with_shared_weights_stores_no_products():
    x, w = tk.ones((16, 8)), tk.ones((8, 8))

    def loss(w: Any) -> Any:
        return tk.scan(lambda h, _: (tk.tanh(h @ w), None), x, length=3)[0].sum()

    forward, backward = [e for e in tk.trace(tk.grad(loss))(w).equations if e.op.name == "scan"]
    assert max(math.prod(v.shape) for v in (*forward.results, *backward.results)) == 3 * 16 * 8


def test_a_body_is_traced_once_and_runs_once_a_step():
    traced = 0

    def body(c: Any, x: Any) -> Any:
        nonlocal traced
        traced += 1
        return tk.sin(c) + x, None

    counting = Counting()
    xs = tk.ones((50,), backend=Fuse(counting))
    tk.scan(body, tk.zeros((), backend=xs.interpreter), xs)[0].item()
    assert traced == 1
    assert counting.calls["sin"] == 50


@pytest.mark.slow
def test_long_scans_need_no_recursion_and_only_the_memory_of_their_values():
    n = 5_000
    xs = tk.ones((n,), "float64", backend=FUSED)

    def total(xs: Any) -> Any:
        return tk.scan(lambda c, x: (tk.sin(c) + x, None), f64(0.0), xs)[0]

    limit = sys.getrecursionlimit()
    found: list[Any] = []

    def shallow() -> None:
        sys.setrecursionlimit(250)
        try:
            found.append(tk.grad(total)(xs))
        finally:
            sys.setrecursionlimit(limit)

    thread = threading.Thread(target=shallow)
    thread.start()
    thread.join()
    assert found and found[0].shape == (n,)
    assert peak_of(lambda: tk.grad(total)(xs)) < 60 * 8 * n


# ---- cond --------------------------------------------------------------------------------------------------


def choice(p: Any, x: Any) -> Any:
    return tk.cond(p, lambda x: (tk.sin(x) * x).sum(), lambda x: tk.exp(x).sum() ** 2, x)


def chosen(p: bool, x: Any) -> Any:
    return (tk.sin(x) * x).sum() if p else tk.exp(x).sum() ** 2


JAX_CHOICE = [
    [1.9800249888913688, 1.8220169162528101, 1.9203992895234712],
    [7.1993649699957025, 2.4428055163203397, 1.4816364413634355],
]


@pytest.mark.parametrize("p", [True, False])
@pytest.mark.parametrize("backend", BACKENDS)
def test_cond_gives_the_result_of_the_branch_taken(p, backend):
    x = f64(H, BACKENDS[backend])
    q = tk.tensor(p, backend=BACKENDS[backend])
    close(choice(q, x), chosen(p, x))
    close(tk.grad(choice, 1)(q, x), tk.grad(chosen, 1)(p, x))
    close(tk.hessian(choice, 1)(q, x), tk.hessian(chosen, 1)(p, x))
    close(tk.jit(tk.grad(choice, 1))(q, x), tk.grad(chosen, 1)(p, x))
    close(tk.grad(tk.jit(choice), 1)(q, x), tk.grad(chosen, 1)(p, x))
    close(tk.jvp(lambda x: choice(q, x), (x,), (x,)), tk.jvp(lambda x: chosen(p, x), (x,), (x,)))
    close(
        tk.vmap(tk.grad(choice, 1), (None, 0))(q, tk.stack([x, -x])),
        tk.stack([tk.grad(chosen, 1)(p, y) for y in (x, -x)]),
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_example_takes_its_own_branch(backend):
    xs = f64([H, [-h for h in H]], BACKENDS[backend])
    ps = tk.tensor([False, True], backend=BACKENDS[backend])
    for transform in (lambda f: f, lambda f: tk.grad(f, 1), lambda f: tk.hessian(f, 1)):
        for found in (tk.vmap(transform(choice))(ps, xs), tk.vmap(tk.jit(transform(choice)))(ps, xs)):
            close(found, tk.stack([transform(chosen)(p, x) for p, x in zip((False, True), xs, strict=True)]))
    close(
        tk.grad(lambda x: tk.vmap(choice, (0, None))(ps, x).sum())(xs[0]),
        tk.grad(lambda x: chosen(False, x) + chosen(True, x))(xs[0]),
    )


def test_cond_gives_jaxs_numbers():
    def signed(x: Any) -> Any:
        return choice(x.sum() > 0, x)

    found = array(tk.hessian(signed)(f64([0.1, -0.3, 0.2 + 0.1])))
    assert np.count_nonzero(found - np.diag(np.diag(found))) == 0
    close(np.diag(array(tk.hessian(lambda x: choice(True, x))(f64(H)))), JAX_CHOICE[0])
    close(tk.hessian(lambda x: choice(False, x))(f64([-h for h in H]))[0], JAX_CHOICE[1])


def test_only_the_branch_taken_runs():
    counting = Counting()
    backend = Fuse(counting)
    x = tk.ones((2,), backend=backend)
    f = tk.jit(tk.grad(lambda p, x: tk.cond(p, tk.sin, tk.exp, x).sum(), 1))
    f(tk.tensor(True, backend=backend), x).tolist()
    assert counting.calls["exp"] == 0 and counting.calls["cos"] > 0
    counting.clear()
    f(tk.tensor(False, backend=backend), x).tolist()
    assert counting.calls["exp"] > 0 and counting.calls["cos"] == counting.calls["sin"] == 0


def test_a_loop_without_operands_in_a_branch_runs_only_if_it_is_taken():
    def grown(x: Any) -> Any:
        """Does not terminate for 0."""
        return tk.while_loop(lambda c: c < 100.0, lambda c: c * x, x)

    def power(x: Any) -> Any:
        return tk.fori_loop(0, 3, lambda i, c: c * x, x)

    for loop, three in ((grown, 243.0), (power, 81.0)):

        def f(x: Any, loop: Any = loop) -> Any:
            return tk.cond(x > 0.0, lambda: loop(x), lambda: x)

        assert [e.op.name for e in tk.trace(f)(f64(3.0)).equations] == ["lt", "cond"]
        for g in (f, tk.jit(f), tk.trace(f)(f64(3.0))):
            assert [g(f64(x)).item() for x in (3.0, 0.0)] == [three, 0.0]
            assert tk.jvp(g, (f64(3.0),), (f64(1.0),))[1].item() == {grown: 405.0, power: 108.0}[loop]
        assert tk.vmap(tk.jit(f))(f64([3.0, 2.0])).tolist() == [three, {grown: 128.0, power: 16.0}[loop]]
    assert tk.grad(lambda x: tk.cond(x > 0.0, lambda: tk.grad(power)(x), lambda: x))(f64(3.0)).item() == 108.0


def test_a_loop_over_constants_in_a_function_with_rules_in_a_branch():
    xs = f64([1.0, 2.0, 3.0])
    for wrap in (tk.checkpoint, tk.jit, lambda f: tk.checkpoint(tk.jit(f)), lambda f: f):
        inner = wrap(
            lambda x: (
                tk.scan(lambda c, y: (c * y, None), x, xs)[0] + tk.scan(lambda c, y: (c + y, None), 0, xs)[0]
            )
        )

        def f(x: Any, inner: Any = inner) -> Any:
            return tk.cond(x > 0.0, inner, lambda x: -x, x)

        assert [g(f64(2.0)).item() for g in (f, tk.jit(f), tk.grad(f))] == [18.0, 18.0, 6.0]
        assert tk.vmap(f)(f64([2.0, -2.0])).tolist() == [18.0, 2.0]


@pytest.mark.parametrize("p", [True, False])
@pytest.mark.parametrize("i", [0, 1])
def test_branches_with_different_derivatives(p, i):
    def f(x: Any, y: Any) -> Any:
        return tk.cond(
            p,
            lambda x, y: (x * x, x.zeros_like()),
            lambda x, y: (y.sum(), x * tk.sin(y).sum()),
            x,
            y,
        )

    def plain(x: Any, y: Any) -> Any:
        return (x * x, x.zeros_like()) if p else (y.sum(), x * tk.sin(y).sum())

    x, y = f64(2.0), f64([0.5, 1.0])
    close(tk.grad(lambda x, y: f(x, y)[i], (0, 1))(x, y), tk.grad(lambda x, y: plain(x, y)[i], (0, 1))(x, y))
    close(tk.jvp(f, (x, y), (x, y)), tk.jvp(plain, (x, y), (x, y)))


def test_cond_in_scan_and_scan_in_cond():
    def f(xs: Any, w: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            return tk.cond(
                x > 0,
                lambda c: tk.sin(c * w),
                lambda c: tk.scan(lambda d, e: (d * e + w, None), c, xs[:2])[0],
                c,
            ), c

        c, ys = tk.scan(body, w, xs)
        return c + ys.sum()

    def plain(xs: Any, w: Any) -> Any:
        c, total = w, 0.0
        for i in range(4):
            total = total + c
            if float(xs[i]) > 0:
                c = tk.sin(c * w)
            else:
                for j in range(2):
                    c = c * xs[j] + w
        return c + total

    xs, w = f64([0.5, -1.0, 2.0, -0.1]), f64(0.7)
    close(f(xs, w), plain(xs, w))
    close(tk.grad(f, (0, 1))(xs, w), tk.grad(plain, (0, 1))(xs, w))
    close(tk.jit(tk.hessian(f, (0, 1)))(xs, w), tk.hessian(plain, (0, 1))(xs, w))
    batch = tk.stack([xs, -xs])
    close(tk.vmap(tk.grad(f, 1), (0, None))(batch, w), tk.stack([tk.grad(plain, 1)(x, w) for x in batch]))


# ---- while_loop and fori_loop ------------------------------------------------------------------------------


def newton(a: Any) -> Any:
    def improved(value: Any) -> Any:
        x, n = value
        return 0.5 * (x + a / x), n + 1

    return tk.while_loop(lambda value: abs(value[0] * value[0] - a) > 1e-8, improved, (a, 0))


@pytest.mark.parametrize("backend", BACKENDS)
def test_newtons_iteration_gives_jaxs_numbers(backend):
    a = f64([2.0, 9.0, 0.25, 100.0], BACKENDS[backend])
    roots = [1.4142135623746899, 3.000000001396984, 0.5000000000000006, 10.000000000139897]
    slopes = [0.35355339061171626, 0.16666666860692203, 0.999999999999955, 0.05000000001878714]
    for f in (tk.vmap(newton), tk.jit(tk.vmap(newton)), tk.vmap(tk.jit(newton))):
        found, counts = f(a)
        close(found, roots)
        assert counts.tolist() == [4, 5, 5, 7]
    close(tk.vmap(tk.derivative(lambda a: newton(a)[0]))(a), slopes)
    close(tk.derivative(tk.vmap(lambda a: newton(a)[0]))(a), slopes)
    close(tk.jit(tk.derivative(lambda a: newton(a)[0]))(a[1]), slopes[1])
    assert newton(a[3])[1].item() == 7


def test_second_derivatives_in_forward_mode():
    second = tk.derivative(tk.derivative(lambda a: newton(a)[0]))
    assert second(f64(4.0)).item() == pytest.approx(-1 / 32, rel=1e-5)


SHARED = f64([1.0, 2.0, 3.0, 4.0])


def grow(x: Any, *kept: Any) -> Any:
    """A loop whose number of steps differs between examples, and that forwards its other carries."""
    return tk.while_loop(lambda c: c[0] < 9, lambda c: (c[0] * 2, *c[1:]), (x, *kept))


PASSED: dict[
    str, Callable[[Any], tuple[Any, Any]]
] = {  # from an example to the values that change, and the forwarded ones
    "while_loop": lambda x: grow(x, SHARED),
    "while_loop with as many steps for each": lambda x: tk.while_loop(
        lambda c: c[2] < 3, lambda c: (c[0] * 2, c[1], c[2] + 1), (x, SHARED, 0)
    )[:2],
    "fori_loop to a bound of each": lambda x: tk.fori_loop(
        0, x.astype("int32"), lambda i, c: (c[0] + i, c[1]), (x, SHARED)
    ),
    "scan": lambda x: tk.scan(lambda c, _: ((c[0] * 2, c[1]), None), (x, SHARED), length=3)[0],
    "scan of a swap": lambda x: tk.scan(
        lambda c, _: ((c[0] * 2, c[2], c[1]), None), (x, SHARED, SHARED), length=3
    )[0][:2],
    "what a scan stacks": lambda x: (
        x * 2,
        tk.scan(lambda c, _: (c, c[1][0]), (x, SHARED), length=4)[1] * SHARED,
    ),
    "cond": lambda x: tk.cond(x > 2, lambda x, s: (x, s), lambda x, s: (-x, s), x, SHARED),
    "while_loop in cond": lambda x: tk.cond(x > 2, grow, lambda x, s: (-x, s), x, SHARED),
    "cond in while_loop": lambda x: tk.while_loop(
        lambda c: c[0] < 9,
        lambda c: tk.cond(c[0] > 4, lambda a, s: (a * 2, s), lambda a, s: (a + 1, s), *c),
        (x, SHARED),
    ),
    "while_loop in scan": lambda x: tk.scan(lambda c, _: (grow(*c), None), (x, SHARED), length=2)[0],
    "scan in while_loop": lambda x: tk.while_loop(
        lambda c: c[0] < 9,
        lambda c: tk.scan(lambda c, _: ((c[0] + 1, c[1]), None), c, length=2)[0],
        (x, SHARED),
    ),
    "jit in while_loop": lambda x: tk.while_loop(
        lambda c: c[0] < 9, tk.jit(lambda c: (c[0] + 1, c[1])), (x, SHARED)
    ),
    "jvp of while_loop": lambda x: (
        tk.jvp(grow, (x, SHARED), (tk.ones_like(x), SHARED))[1][0],
        tk.jvp(grow, (x, SHARED), (tk.ones_like(x), SHARED))[0][1],
    ),
}


@each_of("name", PASSED)
def test_forwarded_operands_stay_unbatched(name):
    f = PASSED[name]
    xs = f64([1.0, 4.0, 3.0])
    wanted = [f(x) for x in xs]
    for g in (f, tk.jit(f)):
        for mapped in (tk.vmap(g, out_axes=(0, None)), tk.jit(tk.vmap(g, out_axes=(0, None)))):
            changed, shared = mapped(xs)
            assert shared.tolist() == wanted[0][1].tolist()
            close(changed, tk.stack([y for y, _ in wanted]))
        close(tk.vmap(g)(xs)[1], tk.stack([y for _, y in wanted]))


@each_of("name", PASSED)
def test_a_batch_may_be_empty(name):
    f = PASSED[name]
    for g in (tk.vmap(f, out_axes=(0, None)), tk.jit(tk.vmap(f, out_axes=(0, None)))):
        changed, shared = g(tk.zeros((0,), "float64"))
        assert (changed.shape, shared.tolist()) == ((0,), f(f64(3.0))[1].tolist())


@each_of(
    "f",
    [
        lambda x: tk.while_loop(lambda c: c[0] < 9, lambda c: (c[0] * 2, c[2], c[1]), (x, SHARED, -SHARED))[
            1
        ],
        lambda x: tk.while_loop(lambda c: c[0] < 9, lambda c: (c[0] * 2, c[1] + 1), (x, SHARED))[1],
        lambda x: tk.cond(x > 2, lambda a, b: a, lambda a, b: b, SHARED, -SHARED),
        lambda x: tk.scan(lambda c, _: ((c[1], c[0]), None), (x, SHARED[0]), length=2)[0][1],
    ],
)
def test_values_that_differ_between_examples_are_batched(f):
    xs = f64([1.0, 4.0, 3.0])
    close(tk.vmap(f)(xs), tk.stack([f(x) for x in xs]))
    with pytest.raises(ArgumentError, match="differs between the examples"):
        tk.vmap(f, out_axes=None)(xs)


def test_the_error_of_reverse_mode_through_a_while_loop_names_alternatives():
    with pytest.raises(
        GradientError, match=r"while_loop: reverse mode .* tk\.fori_loop with ints .* tk\.scan"
    ) as caught:
        tk.grad(lambda a: newton(a)[0])(f64(2.0))
    assert "\n" not in str(caught.value)
    with pytest.raises(GradientError, match="while_loop: reverse mode"):
        tk.jit(tk.grad(lambda a: newton(a)[0]))(f64(2.0))
    gradient, count = tk.grad(lambda a: (a * a, newton(a)[1]), has_aux=True)(
        f64(2.0)
    )  # the loop's value is not used
    assert gradient.item() == 4.0 and count.item() == 4
    assert tk.grad(lambda a: a * newton(tk.stop_gradient(a))[0])(f64(4.0)).item() == pytest.approx(2.0)


def test_a_while_loop_with_a_shared_predicate_stays_one():
    def doubled(x: Any) -> Any:
        return tk.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))

    counts, values = tk.vmap(doubled, out_axes=(None, 0))(f64([1.0, 2.0]))
    assert counts.item() == 3 and values.tolist() == [8.0, 16.0]


def sines(bound: Any) -> Callable[..., Any]:
    return lambda x: tk.fori_loop(0, bound, lambda i, c: tk.sin(c) * (i + 1), x)


def test_a_loop_over_a_range():
    assert tk.grad(sines(5))(f64(0.7)).item() == pytest.approx(-5.468577338817244, rel=1e-12)
    assert tk.grad(sines(tk.tensor(5)))(f64(0.7)).item() == pytest.approx(-5.468577338817244, rel=1e-12)
    assert tk.jit(tk.grad(sines(5)))(f64(0.7)).item() == pytest.approx(-5.468577338817244, rel=1e-12)
    dynamic = tk.jit(lambda n, x: tk.fori_loop(0, n, lambda i, c: tk.sin(c) * (i + 1), x))
    for n in (0, 1, 5):
        assert dynamic(n, f64(0.7)).item() == pytest.approx(sines(n)(f64(0.7)).item(), rel=1e-15)
    slope = tk.jvp(lambda x: dynamic(5, x), (f64(0.7),), (f64(1.0),))[1]
    assert slope.item() == pytest.approx(-5.468577338817244, rel=1e-12)
    found = tk.vmap(dynamic)(tk.tensor([0, 1, 5]), f64([0.7, 0.7, 0.7]))
    close(found, tk.stack([sines(n)(f64(0.7)) for n in (0, 1, 5)]))
    assert tk.fori_loop(3, 1, lambda i, c: c + i, 7).item() == 7
    assert tk.fori_loop(-2, 2, lambda i, c: c + i, 0).item() == -2
    with pytest.raises(GradientError, match=r"tk\.fori_loop with ints"):
        tk.grad(lambda x: dynamic(5, x))(f64(0.7))


# ---- what is refused ---------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[type[Exception], str, Callable[[], Any]]] = {
    "a carry of another structure": (
        StructureError,
        r"scan: the carry that the function returns: at \[0\]: expected",
        lambda: tk.scan(lambda c, x: (((c[0], c[1]), c[1]), x), (1.0, 2.0), tk.ones(3)),
    ),
    "a carry of another shape": (
        ShapeError,
        r'scan: the carry at \["h"\] has the input float32 \(2,\) and the output float32 \(3, 2\)',
        lambda: tk.scan(lambda c, x: ({"h": c["h"] + tk.ones((3, 2))}, x), {"h": tk.ones(2)}, tk.ones(3)),
    ),
    "a carry of another dtype": (
        DTypeError,
        r"scan: the carry has the input int32 \(2,\) and the output float32 \(2,\); convert it in the function",
        lambda: tk.scan(lambda c, x: (c + x, x), tk.tensor([1, 2]), tk.ones(3)),
    ),
    "no pair": (
        ArgumentError,
        r"scan: the function must return a pair",
        lambda: tk.scan(lambda c, x: c, 0.0, tk.ones(3)),
    ),
    "sizes that differ": (
        ShapeError,
        r"scan: leaf 0 of xs has 3 and leaf 1 of xs has size 4 along axis 0",
        lambda: tk.scan(lambda c, x: (c, c), 0.0, (tk.ones(3), tk.ones(4))),
    ),
    "a length that differs": (
        ShapeError,
        r"scan: length is 2 and leaf 0 of xs has size 3",
        lambda: tk.scan(lambda c, x: (c, c), 0.0, tk.ones(3), 2),
    ),
    "no length": (
        ArgumentError,
        r"scan: xs has no tensors; pass length=",
        lambda: tk.scan(lambda c, x: (c, c), 0.0),
    ),
    "a negative length": (
        ArgumentError,
        r"scan: length must not be negative, got -1",
        lambda: tk.scan(lambda c, x: (c, c), 0.0, length=-1),
    ),
    "xs without an axis": (
        ShapeError,
        r"scan: leaf 0 of xs has shape \(\), need an axis",
        lambda: tk.scan(lambda c, x: (c, c), 0.0, 1.0),
    ),
    "branches of two shapes": (
        ShapeError,
        r"cond: the result of false_fun, compared with true_fun's, at \[1\]: got float32 \(\), need float32 \(3,\)",
        lambda: tk.cond(True, lambda x: (x, x), lambda x: (x, x.sum()), tk.ones(3)),
    ),
    "branches of two dtypes": (
        DTypeError,
        r"cond: the result of false_fun, compared with true_fun's: got int32 \(3,\), need float32 \(3,\); make",
        lambda: tk.cond(True, lambda x: x, lambda x: x.astype("int32"), tk.ones(3)),
    ),
    "branches of two structures": (
        StructureError,
        r"cond: the result of false_fun, compared with true_fun's: at the top: expected a list",
        lambda: tk.cond(True, lambda x: [x], lambda x: (x,), tk.ones(3)),
    ),
    "a predicate of many": (
        ShapeError,
        r"cond: the predicate has shape \(2,\), need \(\); select elements with tk\.where",
        lambda: tk.cond(tk.tensor([True, False]), lambda x: x, lambda x: x, 1.0),
    ),
    "a condition that is no bool": (
        ShapeError,
        r"while_loop: cond_fun returned float32 \(2,\), need a bool of shape \(\)",
        lambda: tk.while_loop(lambda x: x, lambda x: x, tk.ones(2)),
    ),
    "a value of another shape": (
        ShapeError,
        r"while_loop: the value at \[1\] has the input float32 \(1,\) and the output float32 \(2,\)",
        lambda: tk.while_loop(lambda c: c[0] < 3, lambda c: (c[0], tk.ones(2)), (0, tk.ones(1))),
    ),
    "nothing to loop over": (
        ArgumentError,
        r"while_loop: init_val has no tensors",
        lambda: tk.while_loop(lambda c: True, lambda c: c, ()),
    ),
    "a bound that is a float": (
        ArgumentError,
        r"fori_loop: upper must be an int, or an integer tensor of shape \(\), got float",
        lambda: tk.fori_loop(0, 3.0, lambda i, c: c, 0.0),
    ),
    "a value of another structure": (
        StructureError,
        r"fori_loop: the value that the function returns: at the top: expected a dict of 1",
        lambda: tk.fori_loop(0, 3, lambda i, c: c["x"], {"x": 0.0}),
    ),
    "a part of a value of another shape": (
        ShapeError,
        r'fori_loop: the value at \["x"\] has the input float32 \(\) and the output float32 \(2,\)',
        lambda: tk.fori_loop(0, 3, lambda i, c: {"x": tk.ones(2)}, {"x": tk.tensor(0.0)}),
    ),
    "a value of another dtype, with bounds that are traced": (
        DTypeError,
        r"fori_loop: the value has the input float32 \(\) and the output bool \(\)",
        lambda: tk.jit(lambda n: tk.fori_loop(0, n, lambda i, c: c > 0, tk.tensor(0.0)))(3),
    ),
    "a condition that is a number": (
        ShapeError,
        r"while_loop: cond_fun returned int32 \(\), need a bool of shape \(\); compare it",
        lambda: tk.while_loop(lambda n: n, lambda n: n - 1, 3),
    ),
    "no function": (ArgumentError, r"scan: need a function, got int", lambda: tk.scan(3, 0.0, tk.ones(3))),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_arguments_raise_one_clear_line(case):
    kind, message, call = REFUSED[case]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 220


# ---- checkpoint --------------------------------------------------------------------------------------------


def chain(count: int) -> Callable[..., Any]:
    block = tk.checkpoint(lambda x: tk.sin(tk.exp(-x)))

    def f(x: Any) -> Any:
        for _ in range(count):
            x = block(x)
        return x.sum()

    return f


def test_recomputed_values_are_neither_merged_nor_stored():
    x = f64(H)
    plain = tk.trace(tk.grad(chain(4)))(x)
    merged = without_dead_code(without_common_subexpressions(inline(plain)))
    counts = Counter(e.op.name for e in merged.equations)
    assert counts["exp"] == 3 + 4  # the last block's result is not needed
    assert counts["cos"] == 4
    assert len({e.scope for e in merged.equations if e.op.name == "cos"}) == 4

    halves = forward_backward_of(tk.trace(chain(4))(x), (True,))
    assert len(halves.forward.outputs) == 1 + 3  # the loss, and the values between the blocks
    assert Counter(e.op.name for e in halves.backward.equations)["exp"] == 4
    order = [e.op.name for e in halves.backward.equations if e.op.name in ("exp", "cos", "mul")]
    first, last = order.index("mul"), len(order) - order[::-1].index("exp") - 1
    assert first < last  # each block is recomputed when it is needed, not all at the beginning
    close(tk.jit(tk.grad(chain(4)))(x), tk.grad(chain(4))(x))
    close(tk.grad(tk.jit(chain(4)))(x), tk.grad(chain(4))(x))


def test_scopes_do_not_leak_into_inner_programs():
    def body(c: Any, _: Any) -> Any:
        return tk.sin(c), None

    looped = tk.checkpoint(lambda x: tk.scan(body, x, length=3)[0])
    program = tk.trace(tk.grad(looped))(f64(0.5))
    for equation in program.equations:
        for param in equation.params:
            for inner in getattr(param, "equations", ()):
                assert inner.scope == 0
    expected = tk.grad(lambda x: tk.sin(tk.sin(tk.sin(x))))(f64(0.5))
    close(tk.grad(looped)(f64(0.5)), expected)
    close(tk.grad(tk.jit(looped))(f64(0.5)), expected)
    close(tk.jit(tk.grad(looped))(f64(0.5)), expected)
