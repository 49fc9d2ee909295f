"""Loops: steps are submitted without waiting, copy nothing, and have the results of numpy."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken.programs.execution import prepared
from tensorken.programs.passes.pipeline import optimised
from tensorken_core import tree
from tensorken_wgpu.device import encoding
from tensorken_wgpu.execution import loops, steps


def drawn(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) * 0.3


def arrays(f: Any, backend: Any, given: Any) -> list[Any]:
    results = tk.jit(f)(*[tk.tensor(x, backend=backend) for x in given])
    return [np.asarray(y.tolist()) for y in tree.leaves(results)]


def check(f: Any, lazy: Any, given: Any) -> None:
    for found, expected in zip(arrays(f, lazy, given), arrays(f, "numpy", given), strict=True):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


def counted(f: Any, lazy: Any, given: Any) -> dict[str, int]:
    """The work of a call whose program is hot."""
    values = [tk.tensor(x, backend=lazy).realize() for x in given]
    run = prepared(tk.trace(f)(*values), lazy.raw)
    memories = [lazy.value(x.representation) for x in values]
    for _ in range(10):
        ys = run(memories)
    lazy.raw.ravel(ys[0])
    before = lazy.raw.device.statistics
    ys = run(memories)
    lazy.raw.device.submit()
    after = lazy.raw.device.statistics
    return {key: after[key] - n for key, n in before.items()}


def network(u: Any, w: Any, xs: Any, reverse: bool = False) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = tk.tanh(h @ w + x @ u)
        return h, (h.sum(-1), x, h)

    return tk.scan(step, (xs[0] @ u) * 0.0, xs, reverse=reverse)


def solved(x: Any) -> Any:
    return tk.while_loop(lambda x: (x * x).sum() > 1e-3, lambda x: x * 0.9, x)


def branching(x: Any) -> Any:
    return tk.fori_loop(
        0, 8, lambda i, y: tk.cond(y.sum() > 0, lambda y: y - x, lambda y: (y + 0.5) * 2 * x, y), x
    )


U, W, XS = drawn(5, 8), drawn(8, 8, seed=1), drawn(7, 3, 5, seed=2)
X = drawn(12, seed=3)

LOOPS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "network": (network, (U, W, XS)),
    "reversed": (lambda u, w, x: network(u, w, x, True), (U, W, XS)),
    "gradient": (tk.grad(lambda *xs: (network(*xs)[1][0] ** 2).sum(), (0, 1, 2)), (U, W, XS)),
    "batch": (lambda u, w, x: tk.vmap(lambda v: network(u, w, v), in_axes=1)(x), (U, W, drawn(7, 2, 3, 5))),
    "hessian": (tk.hessian(lambda x: tk.scan(lambda c, r: (c * r + tk.sin(r), None), x[0], x)[0]), (X[:4],)),
    "counters": (
        lambda x, n: [
            tk.scan(lambda c, r: ((c[0] + 3, c[1] * 0.5 + r * c[0]), c[0]), (start, 0.0), x, reverse=reverse)
            for start in (2, n)
            for reverse in (False, True)
        ],
        (X, np.int32(-4)),
    ),
    "exchanged": (lambda x: tk.fori_loop(0, 30, lambda i, c: (c[1], c[0] * 0.5 + c[1]), (x, x * 2.0)), (X,)),
    "indexed": (lambda x: tk.fori_loop(2, 9, lambda i, y: y.at[i].set(x[i + 1] * 2.0), x * 0.0), (X,)),
    "no steps": (lambda x: tk.scan(lambda c, r: (c + r, r), x[0], x[:0]), (X,)),
    "a condition": (solved, (X,)),
    "a condition that is False": (
        lambda x: tk.while_loop(lambda c: c.sum() > 1e6, lambda c: c / 0.0, x),
        (X,),
    ),
    "infinite after the last step": (
        lambda x: tk.while_loop(lambda c: c[1] < 7, lambda c: (x / (6.5 - c[1]), c[1] + 1), (x, 0)),
        (X,),
    ),
    "conditions of examples": (lambda x: tk.vmap(solved)(x.reshape(3, 4)), (X,)),
    "the derivative of a condition": (lambda x: tk.jvp(solved, (x,), (x * 2.0,)), (X,)),
    "loops in a loop": (
        lambda x: tk.scan(
            lambda c, r: (tk.scan(lambda d, s: (d * 0.5 + s, d), c, r)[0], tk.cumsum(r)),
            x.sum(),
            x.reshape(3, 4),
        ),
        (X,),
    ),
    "a condition in a loop": (
        lambda x: tk.fori_loop(0, 5, lambda i, y: solved(y + x), x),
        (X,),
    ),
    "a loop in a condition": (
        lambda x: tk.while_loop(
            lambda c: c[1] < 5, lambda c: (tk.fori_loop(0, 3, lambda i, y: y * x, c[0]), c[1] + 1), (x, 0)
        ),
        (X,),
    ),
    "a condition in a condition": (
        lambda x: tk.while_loop(lambda c: c[1] < 3, lambda c: (solved(c[0] + x), c[1] + 1), (x, 0)),
        (X,),
    ),
    "branches": (branching, (X,)),
    "gradients of branches": (tk.grad(lambda x: branching(x).sum()), (X,)),
    "small numbers": (lambda x: tk.scan(lambda c, r: (c + r, c * r), x[0], x), (X.astype(np.float16),)),
}


@each_of("name", LOOPS)
def test_loops_have_the_results_of_numpy(name: str, lazy: Any) -> None:
    f, given = LOOPS[name]
    if name == "small numbers" and "float16" not in lazy.capabilities.dtypes:
        return
    check(f, lazy, given)


def mixed(rng: random.Random) -> Any:
    """A loop whose step copies, exchanges, computes and stacks its carries at random.

    Where a step has a sum, it is no loop kernel.
    """
    places = [rng.randrange(3) for _ in range(3)]
    computed = [rng.random() < 0.5 for _ in places]
    stacked = [rng.randrange(3) for _ in range(rng.randrange(3))]
    length, reverse, has_sum = rng.randint(1, 40), rng.random() < 0.5, rng.random() < 0.5

    def f(a: Any, b: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            x = x - x.sum() if has_sum else x
            after = tuple([c[i] * 0.5 + x if new else c[i] for i, new in zip(places, computed, strict=True)])
            return after, [(c if i % 2 else after)[i] for i in stacked]

        return tk.scan(step, (a, b, a), xs[:length], reverse=reverse)

    return f


def test_random_carries_and_stacks(lazy: Any) -> None:
    given = drawn(3, seed=4), drawn(3, seed=5), drawn(40, 3, seed=6)
    for seed in range(16):
        check(mixed(random.Random(seed)), lazy, given)


def test_steps_neither_copy_nor_wait(lazy: Any) -> None:
    """Two hundred steps: as many kernels as the step has, and a submission for each 256 commands."""
    xs = drawn(200, 3, 5)
    scan = counted(network, lazy, (U, W, xs))
    assert (scan["copies"], scan["reads"]) == (0, 0)
    assert scan["kernels"] <= 4 * 200 + 4 and scan["submissions"] <= 5
    counter = counted(lambda x: tk.fori_loop(0, 200, lambda i, y: y / (9.0 + y.sum()), x), lazy, (X,))
    assert (counter["kernels"], counter["submissions"], counter["reads"]) == (200, 2, 0)
    branches = counted(branching, lazy, (X,))
    assert branches["reads"] == 0 and branches["submissions"] == 1


def test_a_condition_is_read_every_few_steps(lazy: Any) -> None:
    """The second run submits as many steps as the first one took, before it reads the condition."""

    def f(x: Any) -> Any:
        return tk.while_loop(lambda c: c[1] < 200, lambda c: (c[0] / c[0].sum(), c[1] + 1), (x, 0))

    count = counted(f, lazy, (X,))
    assert count["reads"] <= 5 and count["kernels"] <= 3 * (200 + loops.MAX_AHEAD)


@each_of(
    ("f", "kernels"),
    [
        (lambda x: tk.fori_loop(0, 200, lambda i, y: y * 0.9 + i, x), 1),
        (lambda x: tk.fori_loop(3, 2503, lambda i, y: y * 0.99 + x[i % 7], x), 3),
        (lambda x: tk.scan(lambda c, r: (c * 0.5 + r, c), x[0] * 0.0, tk.concatenate([x] * 100)), None),
        (lambda x: tk.scan(lambda c, r: (c * 0.5 + r, (c, r)), x[0], x, reverse=True), None),
        (
            lambda x: tk.scan(
                lambda c, r: ((c[1], c[0] + r, c[2] * 0.5), (c[2], r)),
                (x, x * 2.0, x[0]),
                tk.ones(1500) * x[1],
            ),
            None,
        ),
        (
            lambda x: tk.while_loop(lambda c: c[1] < 1500, lambda c: (c[0] * 0.999 + x, c[1] + 1), (x, 0)),
            None,
        ),
        (lambda x: tk.vmap(lambda v: tk.fori_loop(0, 9, lambda i, z: z * z + v, v))(x), 1),
        (tk.grad(lambda x: tk.fori_loop(0, 9, lambda i, z: tk.sin(z) + x * i, x).sum()), None),
    ],
)
def test_elementwise_loops_are_one_kernel(f: Any, kernels: int | None, lazy: Any) -> None:
    """For each thousand steps; carries of one element are computed by each invocation."""
    with tk.use_backend(lazy):
        found = tk.jit(f)(tk.tensor(X, backend=lazy))
    with tk.use_backend("numpy"):
        expected = tk.jit(f)(tk.tensor(X, backend="numpy"))
    for y, z in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(y), np.asarray(z), rtol=1e-4, atol=1e-5)
    if kernels is not None:
        assert counted(f, lazy, (X,))["kernels"] == kernels


@pytest.mark.parametrize("limit", ["steps", "binding", "calls", "branches", "kernels", "period"])
def test_loops_that_are_not_recorded_have_the_same_results(
    raw: Any, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without numbers of steps, with operands above the binding limit, and so on."""
    device = type(raw.device)
    if limit == "steps":
        monkeypatch.setattr(device, "has_steps", False)
    elif limit == "binding":
        monkeypatch.setattr(
            loops, "with_recorded_loops", lambda p, has, _: steps.with_recorded_loops(p, has, 16)
        )
    elif limit == "calls":
        for function in (encoding.encode, encoding.submit_commands):
            monkeypatch.setattr(function, "__defaults__", (None,))
    elif limit == "kernels":
        monkeypatch.setattr(loops, "loop_plan", lambda *_: None)
    elif limit == "branches":
        monkeypatch.setattr(steps, "MAX_SELECTED", 0)
    else:
        monkeypatch.setattr(loops, "MAX_PERIOD", 1)
    lazy = tk.Lazy(raw)
    given = drawn(3, seed=4), drawn(3, seed=5), drawn(40, 3, seed=6)
    check(mixed(random.Random(3)), lazy, given)
    for name in ("network", "branches", "a condition", "a condition in a loop", "loops in a loop"):
        f, xs = LOOPS[name]
        check(lambda *args: f(*args), lazy, xs)  # noqa: B023, a new function, which is compiled again


@each_of(
    ("f", "sizes"),
    [
        (lambda x: tk.linalg.eigh(x)[0], (9,)),
        (lambda x: tk.linalg.qr(x)[1], (12, 16)),
        (tk.linalg.inv, (12, 16)),
        (tk.grad(lambda x: tk.linalg.cholesky(x).sum()), (12, 16)),
    ],
)
def test_loops_of_factorisations_are_recorded(f: Any, sizes: tuple[int, ...], lazy: Any) -> None:
    """The program of many steps is as long as that of few, and no numbers of steps are uploaded."""
    lengths = []
    for n in sizes:
        x = drawn(n, n, seed=n) + np.eye(n, dtype=np.float32) * 4
        given = tk.tensor(x @ x.T, backend=lazy).realize()
        program = tk.trace(f)(given)
        run = prepared(program, lazy.raw)
        memories = [lazy.value(given.representation)]
        (y,) = run(memories)
        expected = np.asarray(f(tk.tensor(x @ x.T, backend="numpy")))
        found = np.reshape(lazy.raw.ravel(y), expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
        before = lazy.raw.device.statistics["writes"]
        run(memories)
        assert lazy.raw.device.statistics["writes"] == before
        lengths.append(len(optimised(program, lazy).equations))
    assert len({*lengths}) == 1 and lengths[0] < 250
