"""Branches and loops as machine code compute what numpy's executor does."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.program.program import Program
from tensorken_llvm import control_flow
from tensorken_llvm.concatenations import Concatenation
from tensorken_llvm.control_flow import ControlFlow
from tensorken_llvm.gemm import vectors_of
from tensorken_llvm.machine import optimised_module
from tensorken_llvm.plans import Kernel, Plan
from tensorken_llvm.products import MatrixProduct
from tensorken_llvm.program import MachineProgram, compiled
from tensorken_numpy.backend import Numpy

NUMPY = Numpy()

Function = Callable[..., Any]
Case = tuple[Function, tuple[Any, ...]]

SMALL, LARGE = 3, 300
"""Sizes of carries: small ones may be registers, large ones are exchanged in memory."""


def normal(*shape: int, dtype: str = "float32") -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


def traced(f: Function, xs: tuple[Any, ...]) -> Program:
    return optimised(tk.trace(f)(*[tk.tensor(x, backend=NUMPY) for x in xs]), NUMPY)


def routines(plan: Plan, kind: Any) -> list[Any]:
    """The routines of a plan and its inner plans."""
    found = []
    for step in plan.steps:
        if isinstance(step, Kernel):
            found += [step.computes] if isinstance(step.computes, kind) else []
            for inner in step.computes.plans if isinstance(step.computes, ControlFlow) else ():
                found += routines(inner, kind)
    return found


def called(plan: Plan) -> list[str]:
    """The ops that the backend runs."""
    return [step.op.name for step in plan.steps if not isinstance(step, Kernel)]


def machine(f: Function, xs: tuple[Any, ...]) -> MachineProgram:
    """The code of a function; all loops and branches are part of it."""
    found = compiled(traced(f, xs), NUMPY)
    assert isinstance(found, MachineProgram)
    assert called(found.source().plan) == [], called(found.source().plan)
    assert routines(found.source().plan, ControlFlow)
    return found


def check(f: Function, *xs: Any) -> None:
    """Compare with the executor: bits of integers and bools, floats within a few units."""
    arrays = tuple([np.asarray(x) for x in xs])
    code, program = machine(f, arrays), traced(f, arrays)
    before = [x.copy() for x in arrays]
    for _ in range(2):
        for y, z in zip(code(arrays), program.replay(NUMPY, arrays), strict=True):
            expected = np.asarray(z)
            assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
            unit = np.finfo(y.dtype).eps if y.dtype.kind == "f" else 0
            np.testing.assert_allclose(y, expected, rtol=64 * unit, atol=16 * unit)
    for x, y in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(x, y)


# ---- scan --------------------------------------------------------------------------------------------------


def cumulative(x: Any, reverse: bool = False) -> Any:
    """A carry that is stacked too, changed for the next step."""
    return tk.scan(lambda c, v: (0.5 * c + v, c * v), x[0], x, reverse=reverse)


def recurrent(x: Any, w: Any) -> Any:
    """The new carry is what is stacked."""

    def step(h: Any, v: Any) -> Any:
        h = tk.tanh(h @ w + v)
        return h, h

    return tk.scan(step, tk.zeros_like(x[0]), x)


def loop(steps: int, f: Function) -> Function:
    """A loop over carries that f replaces."""
    return lambda *xs: tk.fori_loop(0, steps, lambda _, carry: f(*carry), xs)


SCANS: Mapping[str, Case] = {
    **{
        f"{'backwards ' * reverse}{size}": (lambda x, r=reverse: cumulative(x, r), (normal(7, size),))
        for reverse in (False, True)
        for size in (SMALL, LARGE)
    },
    "one step": (cumulative, (normal(1, LARGE),)),
    "an even number of steps": (cumulative, (normal(8, LARGE),)),
    "no steps": (lambda x: tk.scan(lambda c, v: (c + v, c), x.sum(0), x), (normal(0, LARGE),)),
    "no steps, small": (lambda x: tk.scan(lambda c, v: (c + v, c), x.sum(0), x), (normal(0, SMALL),)),
    "0-d carries": (cumulative, (normal(9),)),
    "empty carries": (cumulative, (normal(9, 0, 4),)),
    "matrices": (recurrent, (normal(5, 4, 3), normal(3, 3))),
    "matrices by BLAS": (recurrent, (normal(5, 32, 48), normal(48, 48) * 0.1)),
    "carries and slices of several shapes": (
        lambda x, y: tk.scan(
            lambda c, v: ((c[0] + v[0].sum(), c[1] * v[1]), (c[1][0], v[0])), (x[0, 0], y[0]), (x, y)
        ),
        (normal(6, 4), normal(6, 2, 300)),
    ),
    "slices along other axes": (
        tk.vmap(lambda x: tk.scan(lambda c, v: (c + v, c * v), x[0], x)),
        (normal(4, 6, 5),),
    ),
    "captured values": (
        lambda x, w: tk.scan(lambda c, v: (tk.sin(c) * tk.exp(w) + v, None), x[0], x)[0],
        (normal(6, 5), normal(5)),
    ),
    "constants": (
        lambda x: tk.scan(lambda c, v: (c * np.arange(5, dtype="float32") + v, tk.ones_like(v)), x[0], x),
        (normal(6, 5),),
    ),
    "joined halves": (
        lambda x: tk.scan(lambda c, v: (tk.concatenate([c[2:] * v[0], c[:2]]), c), x[0], x),
        (normal(6, 5),),
    ),
}


@pytest.mark.parametrize("name", SCANS)
def test_scans(name: str) -> None:
    f, xs = SCANS[name]
    check(f, *xs)


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (3,), (40, 30)])
def test_carries_of_every_dtype(dtype: str, shape: tuple[int, ...]) -> None:
    xs = np.random.default_rng(1).integers(0, 2, (5, *shape)).astype(dtype)
    step = (lambda c, v: (c ^ v, c)) if dtype == "bool" else (lambda c, v: (c + c * v, c - v))
    if dtype == "bool":
        step = lambda c, v: (tk.where(v, c == v, c), c)  # noqa: E731
    check(lambda x: tk.scan(step, x[0], x), xs)


# ---- carries that are not computed -------------------------------------------------------------------------


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y, z: (y, x, z),
        lambda x, y, z: (y, z, x),
        lambda x, y, z: (y, x + z, z * 2.0),
        lambda x, y, z: (x + y, x + y, x),
        lambda x, y, z: (x * y, z, z),
        lambda x, y, z: (y.reshape(1, -1).reshape(-1), y[::-1], x),
        lambda x, y, z: (tk.ones_like(x), x, y),
    ],
    ids=["swapped", "turned", "swapped and changed", "the same", "copied", "reshaped", "constant"],
)
def test_carries_change_places(f: Function, steps: int, size: int) -> None:
    x, y, z = normal(3, size)
    check(loop(steps, f), x, y, z)
    check(lambda x, y: loop(steps, f)(x, x, y), x, y)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_outputs_that_are_one_value(size: int) -> None:
    """A new carry that is stacked twice and is a carry twice; slices, constants and captured values are stacked."""

    def f(x: Any, w: Any) -> Any:
        def step(c: Any, v: Any) -> Any:
            new = c[0] + v
            return (new, new), (new, new.reshape(1, -1), v, w, c[1])

        return tk.scan(step, (x[0], x[1]), x)

    check(f, normal(6, size), normal(2))


# ---- while_loop --------------------------------------------------------------------------------------------


def doubled(x: Any) -> Any:
    return tk.while_loop(lambda c: (c[0] * c[0]).sum() < 100.0, lambda c: (1.5 * c[0], c[1] + 1), (x, 0))


WHILES: Mapping[str, Case] = {
    "small": (doubled, (normal(SMALL),)),
    "large": (doubled, (normal(LARGE) * 0.1,)),
    "no steps": (doubled, (normal(LARGE) + 100.0,)),
    "no steps, small": (doubled, (normal(SMALL) + 100.0,)),
    "of each example": (tk.vmap(doubled), (normal(5, 3),)),
    "of each example, large": (
        tk.vmap(doubled),
        (normal(5, LARGE) * 0.1 * np.arange(1, 6)[:, None].astype("f4"),),
    ),
    "forward derivative": (lambda x: tk.jvp(doubled, (x,), (x,)), (normal(SMALL),)),
    "captured": (
        lambda x, w: tk.while_loop(lambda c: (c * w).sum() < 10.0, lambda c: c + w * w, x),
        (normal(4), normal(4)),
    ),
    "integers": (
        lambda a, b: tk.while_loop(lambda c: c[1] != 0, lambda c: (c[1], c[0] % c[1]), (a, b)),
        (np.int32(1071), np.int32(462)),
    ),
    "condition is a carry": (
        lambda x: tk.while_loop(
            lambda c: c[1], lambda c: (c[0] + 1.0, c[0].sum() < 50.0), (x, x.sum() < 50.0)
        ),
        (normal(4),),
    ),
}


@pytest.mark.parametrize("name", WHILES)
def test_while_loops(name: str) -> None:
    f, xs = WHILES[name]
    check(f, *xs)


# ---- cond --------------------------------------------------------------------------------------------------

CONDS: Mapping[str, Function] = {
    "computed": lambda x: tk.cond(x.sum() > 0, tk.exp, tk.sin, x),
    "an operand": lambda x: tk.cond(x.sum() > 0, lambda x: x, lambda x: x * 2.0, x),
    "swapped": lambda x: tk.cond(x.sum() > 0, lambda x, y: (x, y), lambda x, y: (y, x), x, x + 1.0),
    "the same twice": lambda x: tk.cond(x.sum() > 0, lambda x: (x, x), lambda x: (x + 1, x), x),
    "constants": lambda x: tk.cond(
        x.sum() > 0, lambda x: (tk.ones_like(x), 2.0), lambda x: (tk.zeros_like(x), 1.0), x
    ),
    "gradient": tk.grad(lambda x: tk.cond(x.sum() > 0, lambda x: tk.exp(x) * x, tk.sin, x).sum()),
    "nested": lambda x: tk.cond(
        x.sum() > 0,
        lambda x: tk.cond(x[0] > 0, tk.exp, tk.sin, x),
        lambda x: tk.cond(x[0] > 0, tk.cos, tk.tanh, x),
        x,
    ),
}


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("name", CONDS)
def test_conds(name: str, size: int) -> None:
    for x in (np.abs(normal(size)), -np.abs(normal(size)), np.full(size, np.nan, "float32")):
        check(CONDS[name], x)


# ---- nested ------------------------------------------------------------------------------------------------


def nested_scan(x: Any) -> Any:
    inner = lambda c, v: (tk.sin(c) + v, c * v)  # noqa: E731
    return tk.scan(lambda c, row: tk.scan(inner, c, row), x[0, 0], x)


def while_in_scan(x: Any) -> Any:
    return tk.scan(lambda c, v: (doubled(c * 0.1 + v)[0] * 0.01, doubled(v)), x[0], x)


def cond_in_scan(x: Any) -> Any:
    def step(c: Any, v: Any) -> Any:
        c = tk.cond(v.sum() > 0, lambda c, v: c + v, lambda c, v: c, c, v)
        return c, tk.cond(c.sum() > 0, lambda c: c * 2.0, tk.zeros_like, c)

    return tk.scan(step, x[0], x)


def scan_in_while(x: Any) -> Any:
    return tk.while_loop(
        lambda c: c.sum() < 1000.0, lambda c: tk.scan(lambda a, v: (a + v * v, None), c + 1.0, x)[0], x[0]
    )


def scan_in_cond(x: Any) -> Any:
    return tk.cond(
        x.sum() > 0, lambda x: tk.scan(lambda c, v: (c + v, c), x[0], x), lambda x: (x[1], x * 2.0), x
    )


NESTED = (nested_scan, while_in_scan, cond_in_scan, scan_in_while, scan_in_cond)


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("f", NESTED, ids=lambda f: f.__name__)
def test_loops_in_loops(f: Function, size: int) -> None:
    x = normal(4, 3, size) if f is nested_scan else normal(4, size)
    check(f, x)
    check(f, -x)


DIFFERENTIABLE: Mapping[str, Case] = {
    "cumulative": (cumulative, (normal(7, 5),)),
    "backwards": (lambda x: cumulative(x, True), (normal(7, LARGE),)),
    "recurrent": (recurrent, (normal(5, 4, 3), normal(3, 3))),
    "recurrent, by BLAS": (recurrent, (normal(5, 32, 40), normal(40, 40) * 0.1)),
    "nested": (nested_scan, (normal(4, 3, 5),)),
    "cond": (cond_in_scan, (normal(6, 4),)),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name: str) -> None:
    f, xs = DIFFERENTIABLE[name]

    def loss(x: Any, *rest: Any) -> Any:
        carry, stacked = f(x, *rest)
        return (carry * carry).sum() + tk.sin(stacked).sum()

    check(tk.grad(loss), *xs)
    check(lambda x, *rest: tk.jvp(lambda x: loss(x, *rest), (x,), (x,)), *xs)
    if len(xs) == 1:
        check(tk.vmap(tk.grad(loss)), np.stack([xs[0], 0.5 * xs[0]]))
        check(tk.grad(lambda x: (tk.grad(loss)(x) ** 2).sum()), *xs)


# ---- random loops ------------------------------------------------------------------------------------------


class RandomLoop:
    """A loop whose carries are mixed, exchanged, copied and stacked at random, also by loops and branches in it.

    Args:
        seed: of the choices.
    """

    SHAPES = ((), (3,), (2, 70), (300,), (0, 4))

    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, np.random.default_rng(seed)
        count = int(self.rng.integers(2, 5))
        shapes = [self.SHAPES[i] for i in self.rng.integers(0, len(self.SHAPES), 2)]
        self.shapes = [shapes[i] for i in self.rng.integers(0, 2, count)]
        self.length = int(self.rng.integers(0, 6))
        self.reverse = bool(self.rng.integers(0, 2))
        self.is_while = self.rng.random() < 0.25

    def arrays(self) -> tuple[Any, ...]:
        """The carries, and slices of the first."""
        slices = self.rng.normal(size=(self.length, *self.shapes[0]))
        return tuple([self.rng.normal(size=shape).astype("f4") for shape in self.shapes]) + (
            slices.astype("f4"),
        )

    def __call__(self, *xs: Any) -> Any:
        *carry, slices = xs
        choices = np.random.default_rng(self.seed)
        if self.is_while:
            start = (tk.zeros_like(slices.sum()).astype("int32"), *carry)
            return tk.while_loop(
                lambda c: c[0] < self.length,
                lambda c: (c[0] + 1, *self.step(c[1:], carry[0], choices, 0)[0]),
                start,
            )
        return tk.scan(lambda c, v: self.step(c, v, choices, 0), tuple(carry), slices, reverse=self.reverse)

    def step(self, carry: Any, v: Any, choices: Any, depth: int) -> Any:
        """New carries, each computed from those of the same shape, and some values to stack."""
        new = []
        for shape in self.shapes:
            same = [c for c, other in zip(carry, self.shapes, strict=True) if other == shape]
            a, b = [same[i] for i in choices.integers(0, len(same), 2)]
            new.append(self.value(a, b, choices, depth))
        if self.shapes[0] == v.shape and choices.random() < 0.5:
            new[0] = new[0] + v
        stacked = [one for one in (*new, *carry, v) if choices.random() < 0.3]
        return tuple(new), tuple(stacked)

    def value(self, a: Any, b: Any, choices: Any, depth: int) -> Any:
        """A value of the shape of a and b."""
        number = int(choices.integers(0, 9 if depth < 2 else 6))
        if number < 6:
            return (a, b, a * 0.5 + b, tk.sin(a - b), tk.ones_like(a), tk.tanh(a) * b)[number]
        if number == 6:
            return tk.cond(
                (a.sum() if a.size else b.sum()) > 0,
                lambda a, b: self.value(a, b, choices, depth + 1),
                lambda a, b: self.value(b, a, choices, depth + 1),
                a,
                b,
            )
        if number == 7:
            found = tk.fori_loop(0, 2, lambda _, c: (c[1], self.value(*c, choices, depth + 1)), (a, b))
            return found[int(choices.integers(0, 2))]
        return tk.scan(lambda c, _: (self.value(c, b, choices, depth + 1), None), a, None, length=3)[0]


def check_random_loop(seed: int) -> bool:
    """Compare a loop with the executor; whether it is machine code."""
    loop = RandomLoop(seed)
    xs = loop.arrays()
    program = traced(loop, xs)
    code = compiled(program, NUMPY)
    if code is None:  # nothing is computed
        return False
    for y, z in zip(code(xs), program.replay(NUMPY, xs), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5, err_msg=f"seed {seed}")
    return isinstance(code, MachineProgram) and bool(routines(code.source().plan, ControlFlow))


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_loops(first: int) -> None:
    assert sum(map(check_random_loop, range(first, first + 10))) >= 5


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(40, 1040, 50))
def test_many_random_loops(first: int) -> None:
    assert sum(map(check_random_loop, range(first, first + 50))) >= 25


# ---- programs ----------------------------------------------------------------------------------------------


def test_a_loop_of_an_op_without_code_is_called() -> None:
    xs = (normal(5, 4),)
    found = compiled(traced(lambda x: tk.scan(lambda c, v: (tk.sort(c + v), c), x[0] * 2.0, x), xs), NUMPY)
    assert isinstance(found, MachineProgram)
    assert called(found.source().plan) == ["scan"]
    program = found.source().plan.program
    for y, z in zip(found(xs), program.replay(NUMPY, xs), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-5)


def test_a_loop_between_other_steps() -> None:
    def f(x: Any, y: Any) -> Any:
        x = tk.cumsum(tk.exp(x), axis=0)  # called
        last, stacked = cumulative(x)
        return tk.cumsum(last * y), stacked.T @ stacked, tk.sort(stacked[0])

    xs = (normal(6, 40) * 0.1, normal(40))
    found = compiled(traced(f, xs), NUMPY)
    assert isinstance(found, MachineProgram)
    assert set(called(found.source().plan)) == {"cumsum", "sort"}
    for y, z in zip(found(xs), traced(f, xs).replay(NUMPY, xs), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-4)


def test_one_program_in_several_loops() -> None:
    step = tk.jit(lambda c, v: (c * 0.5 + v, c))
    check(lambda x: (tk.scan(step, x[0], x), tk.scan(step, x[1], x, reverse=True)), normal(5, 4))


def test_small_kernels_are_part_of_the_loop() -> None:
    """The code of a loop over four numbers has no function but the entry, and uses no memory of its own."""
    code = machine(lambda x: tk.fori_loop(0, 100, lambda _, c: c * c + 0.25, x), (normal(4),))
    text = str(optimised_module(code.source().text()))
    defined = [line for line in text.splitlines() if line.startswith("define")]
    assert len(defined) == 1, defined
    assert "alloca" not in text


def test_long_loops_let_other_threads_run() -> None:
    """Another thread counts while a loop of unknown length runs."""
    x = np.zeros(4, "float32")
    code = machine(lambda x: tk.while_loop(lambda c: c.sum() < 2.0**24, lambda c: c + 0.25, x), (x,))
    ready, done, counts = threading.Event(), threading.Event(), [0]

    def count() -> None:
        while not done.is_set():
            counts[0] += 1
            ready.set()

    thread = threading.Thread(target=count)
    thread.start()
    ready.wait()
    before = counts[0]
    code((x,))
    after = counts[0]
    done.set()
    thread.join()
    assert after > before


def endless(x: Any) -> Any:
    return tk.while_loop(lambda c: c.sum() > -1.0, lambda c: 0.5 * c + 1.0, x)


@pytest.mark.parametrize(
    "f",
    [
        endless,
        lambda x: tk.scan(lambda c, _: (endless(c), c), x, None, length=1000),
        lambda x: 2.0 * tk.cond(x.sum() > -1.0, endless, lambda x: x, x),
        lambda x: tk.scan(lambda c, _: (0.5 * c + 1.0, None), x, None, length=2**50)[0],
    ],
    ids=["while", "while in scan", "while in cond", "scan"],
)
def test_signals_stop_loops(f: Function) -> None:
    x = normal(4)
    code = machine(f, (x,))
    threading.Timer(0.1, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        code((x,))
    finished = machine(doubled, (x,))
    np.testing.assert_array_equal(finished((x,))[0], finished((x,))[0])


def test_concatenations() -> None:
    for axis in (0, 1, -1):
        for shapes in (((2, 3), (2, 3)), ((0, 3), (2, 3)) if axis == 0 else ((2, 0), (2, 3))):
            xs = tuple([normal(*shape) for shape in shapes])
            found = compiled(
                traced(lambda *xs, axis=axis: tk.concatenate([x * 2.0 for x in xs], axis), xs), NUMPY
            )
            assert isinstance(found, MachineProgram)
            assert called(found.source().plan) == []
            np.testing.assert_array_equal(found(xs)[0], np.concatenate([x * 2 for x in xs], axis))
    found = compiled(traced(lambda x, y: tk.concatenate([x, y * 2.0]), (normal(3), normal(4))), NUMPY)
    assert isinstance(found, MachineProgram)
    assert routines(found.source().plan, Concatenation)


def test_random_numbers_in_loops() -> None:
    def f(key: Any) -> Any:
        def step(key: Any, _: Any) -> Any:
            key, own = tk.random.split(key)
            return key, (tk.random.normal(own, (3,)), tk.random.randint(own, (4,), 0, 10))

        return tk.scan(step, key, None, length=20)

    check(f, np.array([1, 2], "int32"))


@pytest.mark.parametrize("axis", [0, 1])
def test_places_of_the_largest_and_smallest(axis: int) -> None:
    x = normal(5, 4, 6)
    x[1, 2, 3] = np.nan
    x[2, 1] = x[2, 0]
    check(lambda x: tk.scan(lambda c, v: (c * v, (c.argmax(axis), v.argmin(axis))), x[0], x), x)


# ---- products in loops -------------------------------------------------------------------------------------

needs_own_products = pytest.mark.skipif(
    vectors_of("float32") is None, reason="the CPU has no fused multiply-adds of vectors"
)

STEPS, ROWS, INNER = 5, 19, 40


def weights(inner: int, columns: int) -> Any:
    """A matrix whose columns have absolute sums of a half."""
    w = normal(inner, columns, dtype="float64")
    return w / abs(w).sum(0) / 2


def recurrences(columns: int) -> dict[str, Case]:
    """Loops with tanh(carry @ w + x) as the new carry."""
    x, w = normal(STEPS, ROWS, columns, dtype="float64"), weights(columns, columns)

    def step(carry: Any, x: Any, w: Any) -> Any:
        return tk.tanh(carry @ w + x)

    def scan(x: Any, w: Any) -> Any:
        return tk.scan(lambda carry, x: (step(carry, x, w), carry), tk.zeros_like(x[0]), x)

    def loop(x: Any, w: Any) -> Any:
        def body(state: Any) -> Any:
            i, carry = state
            return i + 1, step(carry, x[0], w)

        return tk.while_loop(
            lambda state: state[0] < STEPS, body, (tk.tensor(0, backend=NUMPY), tk.zeros_like(x[0]))
        )[1]

    def nested(x: Any, w: Any) -> Any:
        def outer(carry: Any, x: Any) -> Any:
            return tk.fori_loop(0, 3, lambda i, carry: step(carry, x, w), carry), None

        return tk.scan(outer, tk.zeros_like(x[0]), x)[0]

    def of_constant(x: Any, w: Any) -> Any:
        constant = tk.tensor(weights(columns, columns), x.dtype, backend=NUMPY)
        return tk.scan(lambda carry, x: (step(carry, x, constant), carry), tk.zeros_like(x[0]), x)

    def of_no_step(x: Any, w: Any) -> Any:
        return tk.scan(lambda carry, x: (step(carry, x, w), carry), x[0], x[:0])[0]

    return {
        "scan": (scan, (x, w)),
        "transposed": (lambda x, w: scan(x, w.T), (x, np.ascontiguousarray(w.T))),
        "while": (loop, (x, w)),
        "nested": (nested, (x, w)),
        "constant": (of_constant, (x, w)),
        "no step": (of_no_step, (x, w)),
    }


@needs_own_products
@pytest.mark.parametrize("columns", [24, 64, 150])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", recurrences(24))
def test_products_of_loops_read_packed_matrices(name: str, dtype: str, columns: int) -> None:
    f, exact = recurrences(columns)[name]
    xs = tuple([a.astype(dtype) for a in exact])
    code = machine(f, xs)
    products = routines(code.source().plan, MatrixProduct)
    if name != "no step":
        assert products
    assert all([product.is_packed for product in products])
    # an error of a carry is halved by the weights; each step adds the rounding errors of a sum, and of tanh
    step = (columns + 8) * np.finfo(dtype).eps * (0.5 + abs(xs[0]).max())
    expected = traced(f, xs).replay(NUMPY, xs)
    for y, z in zip(code(xs), expected, strict=True):
        np.testing.assert_allclose(y, np.asarray(z), rtol=0, atol=4 * step)


@needs_own_products
def test_matrices_that_change_are_not_packed() -> None:
    def f(x: Any, w: Any) -> Any:
        def step(w: Any, x: Any) -> Any:
            return w * 0.5, (x @ w, x @ x.T)

        return tk.scan(step, w, x)

    xs = normal(STEPS, 20, 30), normal(30, 30)
    products = routines(machine(f, xs).source().plan, MatrixProduct)
    assert products
    assert not any([product.is_packed for product in products])


def projected(x: Any, w: Any, bias: Any, reverse: bool = False) -> Any:
    """A scan over the slices of products."""
    products = x @ w.T + bias
    return tk.scan(
        lambda c, p: (tk.tanh(c * 0.5 + p), c),
        tk.zeros_like(products[0]),
        products,
        reverse=reverse,
    )


def in_steps(f: Function, xs: tuple[Any, ...], threads: int) -> tuple[int, list[Any]]:
    """The number of values with slices for all steps that are not written by loops, and the results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control_flow, "thread_count", lambda: threads)
        patch.setattr(control_flow, "MIN_STACK", 0)
        code = compiled(traced(f, xs), NUMPY)
        assert isinstance(code, MachineProgram)
        steps = [step for step in code.source().plan.steps if isinstance(step, Kernel)]
        kernels = [step for step in steps if not isinstance(step.computes, ControlFlow)]
        written = [v for step in kernels for v in step.writes if prod(v.shape) >= STEPS * ROWS * INNER]
        return len(written), list(code(xs))


@needs_own_products
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reverse", [False, True])
def test_steps_compute_products_whose_slices_they_read(reverse: bool, dtype: str) -> None:
    arguments = [(STEPS, ROWS, INNER), (50, INNER), (50,)]
    xs = tuple([normal(*shape, dtype=dtype) for shape in arguments])

    def f(x: Any, w: Any, bias: Any) -> Any:
        return projected(x, w, bias, reverse)

    alone, results = in_steps(f, xs, 1)
    several, others = in_steps(f, xs, 2)
    assert (alone, several) == (0, 1)
    for y, z in zip(results, others, strict=True):
        np.testing.assert_array_equal(y, z)


@pytest.mark.parametrize(
    ("f", "values"),
    [
        (lambda x, y: projection_of(x * y + y), 0),
        (lambda x, y: projection_of(-x + y[:1]), 0),
        (lambda x, y: projection_of(x + y[:, :1]), 0),
        (lambda x, y: projection_of(x + 2.0), 0),
        (lambda x, y: projection_of(x.astype("float64") * 0.1), 0),
        (lambda x, y: projection_of(tk.sin(x)), 1),  # several threads divide it
        (lambda x, y: (projection_of(x + y), x + y), 1),  # a result
        (lambda x, y: (projection_of(x + y), projection_of(x + y, 2.0)), 1),  # of two loops
        (lambda x, y: projection_of(tk.sin(x) * y), 1),
        (lambda x, y: projection_of(tk.sin(x) * tk.exp(y)), 1),  # two values otherwise
        (lambda x, y: projection_of(x[:1] + y[:1]), 0),
    ],
)
def test_steps_compute_cheap_elementwise_operands(f: Function, values: int) -> None:
    xs = normal(STEPS, ROWS, INNER), normal(STEPS, ROWS, INNER)
    count, results = in_steps(f, xs, 2)
    assert count == values
    for y, z in zip(results, traced(f, xs).replay(NUMPY, xs), strict=True):
        expected = np.asarray(z)
        unit = np.finfo(expected.dtype).eps
        np.testing.assert_allclose(y, expected, rtol=64 * unit, atol=64 * unit)


def projection_of(x: Any, factor: float = 0.5) -> Any:
    return tk.scan(lambda c, v: (tk.tanh(c * factor + v), c), tk.zeros_like(x[0]), x)[1]
