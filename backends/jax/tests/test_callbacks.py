"""Opaque ops on JAX: ordered callbacks of XLA, whose exceptions reach the caller."""

from __future__ import annotations

import logging
from typing import Any

import jax
import numpy as np
import pytest

import tensorken as tk
from core.tests.effects import assert_same, assert_same_log, draw, function_of, logged
from tensorken_conformance import check


@pytest.fixture(autouse=True)
def _on_jax(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(
        logging.CRITICAL, "jax._src.callback"
    )  # which logs the exceptions that are expected here
    with tk.use_backend("jax"):
        yield


@pytest.mark.parametrize("seed", range(6))
def test_effects_occur_in_order(seed: int) -> None:
    drawn = draw(seed, kinds=("debug", "io", "stopped", "number"))
    f = function_of(drawn)
    x, y = tk.tensor([0.5, -1.0, 0.25]), tk.tensor([1.0, 0.125, -0.5])
    with tk.use_backend("numpy"), tk.disable_jit():
        expected = logged(f, *[tk.tensor(v.tolist()) for v in (x, y)])

    def loss(x: Any) -> Any:
        last, total = f(x, y)
        return last.sum() + total

    runs = {"eager": f, "jit": tk.jit(f)}
    if "'while'" not in repr(drawn):
        runs |= {"jit(grad)": tk.jit(tk.grad(lambda x, y: loss(x)))}
    for name, run in runs.items():
        for _ in range(2):
            result, log = logged(run, x, y)
            assert_same_log(log, expected[1], name)
            if name != "jit(grad)":
                assert_same((result, log), expected, name)


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float16", "float32", "float64"])
def test_callbacks_have_every_dtype_whatever_the_users_setting(dtype: str) -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append(x)
        return x

    x = tk.tensor([1, 0], dtype=dtype)
    assert not jax.config.jax_enable_x64
    for callback in (tk.pure_callback, tk.io_callback):
        for g in (lambda x, c=callback: c(f, x, x), tk.jit(lambda x, c=callback: c(f, x, x))):
            y = g(x)
            assert y.dtype is x.dtype and y.tolist() == x.tolist()
            assert type(seen[-1]) is np.ndarray and seen[-1].dtype == dtype
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize("callback", [tk.pure_callback, tk.io_callback])
@pytest.mark.parametrize("how", ["eager", "jit", "loop", "eager loop"])
def test_an_exception_reaches_the_caller_and_the_next_call_works(callback: Any, how: str) -> None:
    fails = [True]

    def f(x: Any) -> Any:
        if fails[0]:
            raise KeyError("mine")
        return x + 1

    def once(x: Any) -> Any:
        return callback(f, x, x)

    def loop(x: Any) -> Any:
        return tk.fori_loop(0, 3, lambda _, c: once(c), x)

    run = {"eager": once, "jit": tk.jit(once), "loop": tk.jit(loop), "eager loop": loop}[how]
    for fails_now in (True, False, True, False):
        fails[0] = fails_now
        if fails_now:
            with pytest.raises(KeyError, match="mine") as caught:
                run(tk.tensor(1.0))
            assert caught.value.__notes__[0].startswith(f"tensorken: in {callback.__name__} of f")
        else:
            assert run(tk.tensor(1.0)).item() == (4.0 if "loop" in how else 2.0)


def test_a_callback_may_compute_on_jax() -> None:
    def f(x: Any) -> Any:
        return tk.jit(tk.grad(lambda y: y * y))(tk.tensor(x))

    assert tk.jit(lambda x: tk.io_callback(f, x, x))(3.0).item() == 6.0


def test_large_arrays() -> None:
    x = tk.ones((1500, 1500))
    y = tk.jit(
        lambda x: tk.fori_loop(0, 2, lambda _, c: tk.io_callback(lambda c: c * 2, c, c @ c / 1500), x)
    )(x)
    assert tk.all(y == 8.0).item()


def test_effects_are_over_when_a_call_returns() -> None:
    seen: list[int] = []

    def step(i: Any, c: Any) -> Any:
        tk.debug.callback(lambda i: seen.append(int(i)), i)
        return c + 1

    f = tk.jit(lambda x: tk.fori_loop(0, 50, step, x))
    for count in (1, 2, 3):
        f(0.0)
        assert seen == [*range(50)] * count


@pytest.mark.parametrize(
    "case",
    [
        "cond/float32/-/-/jvp",  # whose zero tangent must not be computed while JAX traces
        "cond-in-a-loop/float32/-/-/values",
        "reverse-scan/float32/-/-/jit-of-vmap-of-grad",
        "while_loop/float32/-/-/jit-of-vmap",
    ],
)
def test_effects_pass_their_law(case: str) -> None:
    check(f"programs.effects/{case}", backend="jax")
