"""Effects occur in the order of the Python code, once, in every pass and under every transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorken as tk
from core.tests.effects import assert_same, draw, function_of, logged
from core.tests.support import FUSED
from tensorken.programs.passes.inlining import inline
from tensorken.programs.passes.pipeline import steps as passes
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

pytestmark = pytest.mark.filterwarnings(
    "ignore::tensorken_core.errors.RetraceWarning"
)  # each function is new
SEEDS = range(60)
ALL_KINDS = ("debug", "io", "value", "pure", "number")
X, Y = [0.5, -1.0, 0.25], [1.0, 0.125, -0.5]


def operands(backend: Any = FUSED) -> list[Any]:
    return [tk.tensor(values, backend=backend) for values in (X, Y)]


def in_python(f: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    with tk.disable_jit():
        return logged(f, *args)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_pass_keeps_effects_in_order(seed: int) -> None:
    f, raw = function_of(draw(seed, kinds=ALL_KINDS)), Numpy()
    expected = in_python(f, *operands(raw))
    program = tk.trace(f)(*operands(raw))
    flat = [x.representation for x in operands(raw)]

    def replay(program: Any) -> Any:
        ys = inline(program).replay(raw, flat)
        return [tk.Tensor(raw, y) for y in ys]

    assert_same(logged(replay, program), expected, "traced")
    for name, after in passes(program, raw):
        assert_same(logged(replay, after), expected, name)


@pytest.mark.parametrize("backend", [FUSED, Reference(), tk.Lazy(Reference()), tk.Lazy(Numpy())], ids=repr)
@pytest.mark.parametrize("seed", SEEDS[:20])
def test_effects_of_backends(seed: int, backend: Any) -> None:
    f = function_of(draw(seed, kinds=ALL_KINDS))
    expected = in_python(f, *operands())
    assert_same(logged(f, *operands(backend)), expected, "eager")
    jitted = tk.jit(f)
    for _ in range(3):  # the third call would take the fast path
        assert_same(logged(jitted, *operands(backend)), expected, "jit")


@pytest.mark.parametrize("seed", SEEDS[:30])
def test_derivatives_have_the_effects_of_the_function_once(seed: int) -> None:
    drawn = draw(seed, kinds=("debug", "io", "stopped", "number"), choices=seed % 2 == 0)
    f = function_of(drawn)
    x, y = operands()
    _, expected = in_python(f, x, y)

    def loss(x: Any) -> Any:
        last, total = f(x, y)
        return last.sum() + total

    def pushed(x: Any) -> Any:
        return tk.jvp(loss, (x,), (x,))[1]

    wanted = logged(pushed, x)[0]
    for name, derivative in {
        "jvp": pushed,
        "jit(jvp)": tk.jit(pushed),
        "jvp(jit)": lambda x: tk.jvp(tk.jit(loss), (x,), (x,))[1],
    }.items():
        assert_same(logged(derivative, x), (wanted, expected), name)
    if "'while'" in repr(drawn):  # has no reverse mode
        return
    for name, derivative in {
        "grad": tk.grad(loss),
        "jit(grad)": tk.jit(tk.grad(loss)),
        "grad(jit)": tk.grad(tk.jit(loss)),
        "jit(grad(jit))": tk.jit(tk.grad(tk.jit(loss))),
        "jacfwd": tk.jacfwd(loss),
        "hessian": tk.hessian(loss),
    }.items():
        _, log = logged(derivative, x)
        assert_same(([], log), ([], expected), name)


@pytest.mark.parametrize("seed", SEEDS[:30])
def test_a_linear_function_shows_no_values_again(seed: int) -> None:
    f = function_of(draw(seed, kinds=("debug", "number")))
    x, y = operands()

    def loss(x: Any) -> Any:
        return f(x, y)[0].sum()

    _, expected = in_python(f, x, y)
    linear: list[Any] = []
    _, log = logged(lambda: linear.append(tk.linearize(loss, x)[1]))
    assert_same(([], log), ([], expected), "linearize")
    pushed, log = logged(linear[0], x)
    assert log == []
    assert_same((pushed, []), (logged(lambda: tk.jvp(loss, (x,), (x,))[1])[0], []), "linear function")


@pytest.mark.parametrize("seed", SEEDS[:30])
def test_a_batch_has_the_effects_of_each_example_op_by_op(seed: int) -> None:
    f = function_of(draw(seed, kinds=("debug", "io", "value"), choices=False, shared=False))
    x, y = operands()
    xs, others = tk.stack([x, y, x - y]), tk.stack([y, x, x])
    runs = [in_python(f, *pair) for pair in zip(xs, others, strict=True)]
    logs = [log for _, log in runs]
    results = [
        tk.stack([tk.tensor(r) for r in parts]).tolist() for parts in zip(*[r for r, _ in runs], strict=True)
    ]
    expected = results, [entry for entries in zip(*logs, strict=True) for entry in entries]
    mapped = tk.vmap(f)
    for name, function in {
        "vmap": mapped,
        "jit(vmap)": tk.jit(mapped),
        "vmap(jit)": tk.vmap(tk.jit(f)),
    }.items():
        assert_same(logged(function, xs, others), expected, name)
