"""disable_jit: jitted functions, loops and conds run in Python on values, with the same results."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import f64
from tensorken_core.errors import ConcretizationError, DTypeError, ShapeError, StructureError

pytestmark = pytest.mark.usefixtures("on_numpy")

X = f64([0.3, -0.2, 0.5])


def newton(a):
    return tk.while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, 1.0)


def sums(x, reverse=False):
    return tk.scan(
        lambda c, v: ({"n": c["n"] + 1, "s": c["s"] + v}, (c["s"], 2.0, None)),
        {"n": 0, "s": 0.0},
        x,
        reverse=reverse,
    )


CALLS = {
    "jit": lambda: tk.jit(lambda x: tk.sin(x) * 2)(X),
    "numbers": lambda: tk.jit(lambda x, n: {"y": x.sum() + n, "n": 3})(2, True),
    "static": lambda: tk.jit(lambda x, n: x * n, static_argnames="n")(X, n=3),
    "grad of jit": lambda: tk.grad(tk.jit(lambda x: (x**3).sum()))(X),
    "hessian of jit": lambda: tk.hessian(tk.jit(lambda x: (x**3).sum()))(X),
    "vmap of jit": lambda: tk.vmap(tk.jit(tk.tanh))(X),
    "scan": lambda: sums(X),
    "scan, reversed": lambda: sums(X, reverse=True),
    "scan of a number that becomes another": lambda: tk.scan(lambda c, v: (c + v, c), 0, X),
    "scan without results": lambda: tk.scan(lambda c, _: (c * 2, None), 1.5, length=3),
    "scan without steps": lambda: tk.scan(lambda c, _: (c * 2, c), 1.5, length=0),
    "scan without a carry": lambda: tk.scan(lambda c, v: (c, v * 2), None, X),
    "grad of scan": lambda: tk.grad(lambda x: sums(x)[1][0].sum())(X),
    "vmap of scan": lambda: tk.vmap(sums)(f64([[1.0, 2.0], [3.0, 4.0]])),
    "while_loop": lambda: newton(f64(2.0)),
    "while_loop without steps": lambda: tk.while_loop(lambda x: x > 5, lambda x: x + 1.5, 1),
    "while_loop of a number that becomes another": lambda: tk.while_loop(lambda x: x < 5, lambda x: x + 1.5, 1),
    "jvp of while_loop": lambda: tk.jvp(newton, (f64(2.0),), (f64(1.0),)),
    "vmap of while_loop": lambda: tk.vmap(newton)(f64([2.0, 3.0, 16.0])),
    "fori_loop": lambda: tk.fori_loop(1, 4, lambda i, c: tk.sin(c) * i, X),
    "fori_loop to a tensor": lambda: tk.fori_loop(0, tk.tensor(3), lambda i, c: c + i, 0),
    "cond": lambda: tk.cond(X.sum() > 0, lambda x: x, lambda x: -x, X),
    "cond of numbers": lambda: tk.cond(True, lambda x: 1, lambda x: x, X[0]),
    "vmap of cond": lambda: tk.vmap(lambda x: tk.cond(x > 0, tk.sin, tk.cos, x))(X),
    "trace": lambda: tk.trace(lambda x: tk.while_loop(lambda c: c < 9, lambda c: c * 2, x))(2)(2),
    "checkpoint": lambda: tk.grad(lambda x: tk.checkpoint(tk.jit(lambda x: tk.sin(x).sum()))(x))(X),
    "custom rule": lambda: tk.grad(tk.jit(lambda x: tk.elementwise(tk.sin, tk.cos)(x).sum()))(X),
}  # fmt: skip


@each_of("name", CALLS)
def test_results_are_the_same(name):
    wanted = CALLS[name]()
    with tk.disable_jit():
        found = CALLS[name]()
    assert tk.tree.structure(found) == tk.tree.structure(wanted)
    for y, z in zip(tk.tree.leaves(found), tk.tree.leaves(wanted), strict=True):
        assert (y.shape, y.dtype) == (z.shape, z.dtype)
        np.testing.assert_allclose(np.asarray(y), np.asarray(z), rtol=1e-15)


def test_functions_see_values():
    seen = []

    def see(x):
        seen.append(x.item())
        return x

    @tk.jit
    def f(x):
        x = see(x) if x > 0 else -x
        x, _ = tk.scan(lambda c, _: (see(c) + 1, None), x, length=2)
        x = tk.while_loop(lambda c: see(c) < 7, lambda c: c + 1, x)
        x = tk.fori_loop(0, 2, lambda i, c: see(c) + i, x)
        return tk.cond(x > 7, see, lambda x: seen.append("not taken") or x, x)

    with tk.disable_jit():
        assert f(3.0).item() == 8.0
        assert seen == [3, 3, 4, 5, 6, 7, 7, 7, 8]
        seen.clear()
        assert tk.grad(f)(3.0).item() == 1.0
        assert seen == [3, 3, 4, 5, 6, 7, 7, 7, 8]
    with pytest.raises(ConcretizationError):
        f(3.0)


def test_it_affects_only_its_block_and_thread():
    runs = []
    f = tk.jit(lambda x: runs.append(1) or x + 1)
    x = tk.ones(2)

    def count(n):
        runs.clear()
        f(x), f(x)
        assert len(runs) == n

    f(x)
    count(0)
    with tk.disable_jit():
        count(2)
        with tk.disable_jit(False):
            count(0)
        count(2)
        failed = []
        thread = threading.Thread(
            target=lambda: failed.append(1) if runs.clear() or f(x) is None or runs else None
        )
        thread.start()
        thread.join()
        assert not failed
    count(0)
    with pytest.raises(ZeroDivisionError), tk.disable_jit():
        _ = 1 / 0
    count(0)
    tk.disable_jit()(lambda: count(2))()


@each_of(
    ("call", "error", "message"),
    [
        (
            lambda: tk.scan(lambda c, x: (c[:1], None), X, X),
            ShapeError,
            r"^scan: the carry has the input float64 \(3,\)",
        ),
        (
            lambda: tk.scan(lambda c, x: ((c, c), None), X, X),
            StructureError,
            "^scan: the carry that the function",
        ),
        (lambda: tk.scan(lambda c, x: c, X, X), TypeError, "must return a pair"),
        (
            lambda: tk.while_loop(lambda c: c.sum() < 9, lambda c: c.astype("float32") + 1, X),
            DTypeError,
            "the value",
        ),
        (
            lambda: tk.while_loop(lambda c: c < 9, lambda c: c, X),
            ShapeError,
            r"cond_fun returned bool \(3,\)",
        ),
        (lambda: tk.fori_loop(0, 2, lambda i, c: (c,), X), StructureError, "fori_loop: the value"),
        (lambda: tk.jit(lambda x: x)("text"), TypeError, "need a tensor, number or array"),
    ],
)
def test_mistakes_raise_the_same_errors(call, error, message):
    for disabled in (False, True):
        with tk.disable_jit(disabled), pytest.raises(error, match=message):
            call()
