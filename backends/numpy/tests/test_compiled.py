"""Compiled programs give the bits that the same ops give one by one, and share no memory that anyone could write to.

The bits of ops that are not rounded correctly depend on numpy's loops for the processor, and are compared within bounds
where a compiled program may call another of these loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorken as tk
from backends.numpy.tests.random_programs import check_near, is_exact, program_on_arrays
from core.tests.each import each_of
from core.tests.laws.operands import SAMPLES, draw, dtypes_of, over
from core.tests.support import peak_of
from core.tests.threads import together
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Program, Variable
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy
from tensorken_numpy.compiled import blocks, equations, schedule, writing
from tensorken_numpy.compiled.program import compiled

RAW = Numpy()


def same(a: Any, b: Any) -> None:
    a, b = np.asarray(a), np.asarray(b)
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    np.testing.assert_array_equal(a, b)
    if a.dtype.kind == "f":
        finite = ~np.isnan(a)
        np.testing.assert_array_equal(np.signbit(a)[finite], np.signbit(b)[finite])


def close(a: Any, b: Any) -> None:
    a, b = np.asarray(a), np.asarray(b)
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    if a.dtype.kind == "f":
        eps = float(np.finfo(a.dtype).eps)
        np.testing.assert_allclose(a, b, rtol=32 * eps, atol=32 * eps, equal_nan=True)
    else:
        np.testing.assert_array_equal(a, b)


def results(program: Program, arrays: list[Any]) -> tuple[list[Any], ...]:
    """Results op by op, and of two calls; inputs stay; results of a call stay through the next, for other numbers."""
    want = [np.array(y) for y in program.replay(RAW, arrays)]
    run = compiled(program, RAW)
    assert run is not None
    kept = [np.array(x) for x in arrays]
    first = list(run(arrays))
    others = [np.array(x[::-1] if x.ndim else x, copy=True) for x in arrays]
    run([x.reshape(x.shape) for x in others])
    again = list(run(arrays))
    for x, before in zip(arrays, kept, strict=True):
        same(x, before)
    return want, first, again


def check(program: Program, arrays: list[Any], alike: Any = same) -> None:
    """The same as op by op."""
    want, *found = results(program, arrays)
    for ys in found:
        for y, expected in zip(ys, want, strict=True):
            alike(y, expected)


def traced(f: Any, *arguments: Any) -> tuple[Program, list[Any]]:
    """The program of a function, optimised, on the bare backend."""
    arguments = tk.tree.map(lambda x: tk.tensor(x, backend=RAW), arguments)
    program = optimised(tk.trace(f)(*arguments), RAW)
    return program, [x.representation for x in tk.tree.leaves(arguments)]


@over(SAMPLES)
def test_every_op(op: Any, sample: Any) -> None:
    for dtype in dtypes_of(op):
        operands = draw(op, sample, dtype=dtype, backend=RAW)
        params = sample[1]
        inputs = tuple([Variable(x.shape, x.dtype) for x in operands])
        shapes = op.shape(*[v.shape for v in inputs], *params)
        dtypes = op.dtype(*[v.dtype for v in inputs], *params)
        if op.results == 1:
            shapes, dtypes = [shapes], [dtypes]
        results = tuple([Variable(*facts) for facts in zip(shapes, dtypes, strict=True)])
        program = Program(inputs, results, (Equation(op, inputs, params, results),))
        if tk.bfloat16 in (dtype, *[v.dtype for v in results]):  # the executor runs it
            assert RAW.compile(program) is None
            continue
        check(program, [np.asarray(x.representation) for x in operands])


@pytest.mark.slow
@pytest.mark.parametrize("seeds", range(0, 80, 20))
def test_random_programs(seeds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(seeds, seeds + 20):
        program, arrays = program_on_arrays(seed)
        for block in (4, 32768):
            for module in (blocks, schedule):
                monkeypatch.setattr(module, "BLOCK_SIZE", block)
            monkeypatch.setattr(schedule, "MAX_ROW", 4 * block)
            monkeypatch.setattr(writing, "MIN_MASKED_SIZE", block // 1000)
            with np.errstate(all="ignore"):
                try:
                    if is_exact(program):
                        check(program, arrays)
                    else:
                        want, *found = results(program, arrays)
                        for ys in found:
                            check_near(program, arrays, ys, want)
                except Exception as error:
                    error.add_note(f"seed {seed}\n{program}\n{compiled(program, RAW).source(arrays)}")
                    raise


def mlp(weights: Any, x: Any) -> Any:
    return (tk.log_softmax(tk.tanh(x @ weights[0]) @ weights[1] + weights[2]) ** 2).mean()


def normalised(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return (centred / tk.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * tk.sigmoid(x)).sum()


def attention(q: Any, k: Any, v: Any) -> Any:
    return (tk.softmax(q @ k.permute((0, 2, 1)) * 0.5, -1) @ v).sum()


def numbers(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "mlp": (mlp, ((numbers(6, 7), numbers(7, 4), numbers(4)), numbers(5, 6))),
    "wide mlp": (mlp, ((numbers(60, 700), numbers(700, 40), numbers(40)), numbers(50, 60))),
    "normalised": (normalised, (numbers(3, 5),)),
    "many normalised": (normalised, (numbers(7, 30, 200),)),
    "attention": (attention, (numbers(2, 3, 4), numbers(2, 3, 4), numbers(2, 3, 4))),
    "transposed sum": (lambda a, b: ((a.T + b) * 2).sum(), (numbers(300, 200), numbers(200, 300))),
    "embedding": (lambda x, i: (tk.take(x, i, 0) ** 2).sum(), (numbers(9, 4), np.array([1, 3, 1, 8]))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_and_their_gradients(name: str) -> None:
    f, arguments = FUNCTIONS[name]
    check(*traced(f, *arguments), close)
    check(*traced(tk.grad(f), *arguments), close)


def test_groups_run_in_blocks_of_rows_and_keep_what_is_needed_later() -> None:
    def f(x: Any, bias: Any) -> Any:
        y = tk.exp(x + bias)  # no sum of these cancels
        total = y.sum(-1, keepdims=True)
        z = y / total
        return z * 2, total, z.max(0)

    program, arrays = traced(f, numbers(300, 200), numbers(200))
    run = compiled(program, RAW)
    text = run.source(arrays)  # type: ignore[union-attr]
    assert text.count("for ") == 1
    check(program, arrays, close)  # of exp numpy has several loops


def test_a_value_that_dies_gives_its_memory_to_the_next() -> None:
    def f(x: Any) -> Any:
        for _ in range(50):
            x = tk.exp(x.T @ x * 0.01)
        return x

    program, arrays = traced(f, numbers(128, 128))
    run = compiled(program, RAW)
    run(arrays)  # type: ignore[misc]
    (function,) = run._functions.values()  # type: ignore[union-attr]
    assert function.size <= 3 * 128 * 128 * 4


def test_inputs_constants_and_numbers_may_be_results_and_one_value_twice() -> None:
    constant = tk.tensor(numbers(3), backend=RAW)
    program, arrays = traced(lambda x: (x, constant, x.ones_like(), x + 1, x + 1, x.T), numbers(2, 3))
    outputs = (*program.outputs, program.outputs[-1])
    check(program.changed(outputs=outputs), arrays)


def test_results_are_the_callers_own() -> None:
    """Nothing that a later call computes is seen in what an earlier one gave."""
    program, (x,) = traced(lambda x: (x * 2, (x * 3).reshape((6,)), (x * 4)[0], tk.sort(x).T), numbers(2, 3))
    run = compiled(program, RAW)
    kept = list(run([x]))  # type: ignore[misc]
    first = [np.array(y) for y in kept]
    for i in range(5):
        run([x + i])  # type: ignore[misc]
    for y, before in zip(kept, first, strict=True):
        same(y, before)


def test_threads_have_memory_of_their_own() -> None:
    program, (x,) = traced(lambda x: tk.exp(tk.tanh(x @ x) @ x).sum(0), numbers(150, 150) * 0.01)
    run = compiled(program, RAW)
    assert run is not None
    want = {i: np.array(run([x * i])[0]) for i in range(4)}
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(50):
            if not np.array_equal(run([x * i])[0], want[i]):
                wrong.append(i)

    together(4, work)
    assert not wrong


def test_a_compiled_program_within_another() -> None:
    x = tk.tensor(numbers(40, 40), backend=RAW)
    inner = tk.jit(lambda x: tk.tanh(x) * 2)
    outer = tk.jit(lambda x: inner(inner(x) + 1))
    close(np.asarray(outer(x)), np.tanh(np.tanh(np.asarray(x)) * 2 + 1) * 2)


def test_floating_point_errors_are_nobodys_business_and_settings_stay() -> None:
    program, (x,) = traced(lambda x: tk.log(x) / (x - x), numbers(2, 3))
    with np.errstate(all="raise"):
        before = np.geterr()
        compiled(program, RAW)([x])  # type: ignore[misc]
        assert np.geterr() == before


def test_another_layout_of_the_inputs_gives_the_same() -> None:
    program, (x,) = traced(lambda x: ((x + 1).T @ x).sum(0), numbers(6, 6, 6)[0])
    run = compiled(program, RAW)
    assert run is not None
    want = np.array(run([x])[0])
    wide = np.zeros((60, 60), np.float32)
    for step in range(1, 10):  # more layouts than are remembered
        y = wide[: 6 * step : step, : 6 * step : step]
        y[...] = x
        close(run([y])[0], want)
    close(run([np.asfortranarray(x)])[0], want)


def test_a_subclass_with_methods_of_its_own_is_not_passed_by():
    class Doubling(Numpy):
        def exp(self, x):
            return 2 * np.exp(x)

    x = tk.ones(3, backend=Fuse(Doubling()))
    assert tk.jit(lambda x: tk.exp(x) + x)(x).tolist() == (tk.exp(x) + x).tolist()


def test_results_of_a_loop_take_turns_in_two_pieces_of_memory() -> None:
    program, (x,) = traced(lambda x: x * 0.5 + 1, numbers(300, 300))
    run = compiled(program, RAW)
    assert run is not None
    places = set()
    for _ in range(10):
        (x,) = run([x])
        places.add(x.ctypes.data)
    assert len(places) == 2


def test_the_memory_of_a_result_is_taken_again_only_when_no_view_of_it_is_left() -> None:
    program, (x,) = traced(lambda x: (x * 0.5).T, numbers(300, 300))
    run = compiled(program, RAW)
    assert run is not None
    held = []
    for i in range(1, 6):
        (y,) = run([x * i])
        held.append((i, y[5:, ::2], memoryview(y[0])))
        del y
    for i, view, buffer in held:
        same(view, (x * i * np.float32(0.5)).T[5:, ::2])
        same(np.asarray(buffer), (x * i * np.float32(0.5)).T[0])


def test_a_step_of_training_needs_no_memory_beyond_its_plan() -> None:
    def step(weights: Any, x: Any) -> Any:
        slopes = tk.grad(mlp)(weights, x)
        return tk.tree.map(lambda w, s: w - 0.1 * s, weights, slopes)

    weights = (numbers(200, 300), numbers(300, 100), numbers(100))
    program, arrays = traced(step, weights, numbers(250, 200))
    run = compiled(program, RAW)
    assert run is not None
    for _ in range(3):
        arrays = [*run(arrays), arrays[-1]]
    (function,) = run._functions.values()  # type: ignore[attr-defined]
    activations = 4 * 250 * (300 + 100)
    parameters = sum([w.nbytes for w in weights])
    assert function.size <= 3 * activations + parameters
    block = 2 * 8 * 25_000  # of log_softmax, which is computed in float64
    assert peak_of(lambda: run(arrays)) <= block + 20_000


@pytest.mark.parametrize("shape", [(700, 900), (3, 500, 40, 7)])
def test_transposed_operands_are_taken_block_by_block(shape: tuple[int, ...]) -> None:
    order = tuple(reversed(range(len(shape))))
    program, arrays = traced(lambda a, b: a.permute(order) + b, numbers(*shape), numbers(*reversed(shape)))
    run = compiled(program, RAW)
    assert "for " in run.source(arrays)  # type: ignore[union-attr]
    check(program, arrays)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_adding_slices_at_indices_is_what_numpy_does_one_by_one(axis: int) -> None:
    rng = np.random.default_rng(axis)
    x = rng.normal(size=(13, 600, 30)).astype(np.float32)
    indices = rng.integers(0, 9, x.shape[axis]).astype(np.int32)
    want = np.zeros((*x.shape[:axis], 9, *x.shape[axis + 1 :]), np.float32)
    np.add.at(want, (slice(None),) * axis + (indices,), x)
    same(RAW.scatter_add(x, indices, axis, 9), want)


def _in_two_conds(condition: Any, x: Any, y: Any) -> Any:
    return tk.cond(condition, tk.sin, tk.cos, x), tk.cond(condition, tk.sin, tk.cos, y)


@pytest.mark.parametrize(
    ("f", "copies"),
    [
        (lambda x, v, i: tk.exp(x) + v.scatter_add(i, 0, 40), 0),
        (lambda x, v, i: (tk.exp(x) + v.scatter_add(i, 0, 40)) * 2.0, 0),
        (lambda x, v, i: tk.exp(x).reshape((1200,)) + v.scatter_add(i, 0, 40).reshape((1200,)), 0),
        (lambda x, v, i: tk.exp(x).at[i].add(v).at[i].add(v * 2.0), 0),
        (lambda x, v, i: (x @ x.T @ x).at[i].add(v), 0),
        (lambda x, v, i: x.at[i].add(v), 1),  # the memory is the caller's
        (lambda x, v, i: (y := tk.exp(x), y.at[i].add(v)), 1),  # another output
        (lambda x, v, i: (y := tk.exp(x)).at[i].add(v) * y, 1),
        (lambda x, v, i: tk.exp(x).T.T.at[i].add(v), 0),
        (lambda x, v, i: tk.exp(x[:1]).expand((40, 30)).at[i].add(v), 1),
        (lambda x, v, i: tk.sin(tk.exp(x[:1]).expand((40, 30))).at[i].add(v), 1),  # kept as one row
        (lambda x, v, i: 2.0 + v.scatter_add(i, 0, 40), 1),
        (lambda x, v, i: tk.sort(x, axis=0).at[i].add(v), 1),
        (lambda x, v, i: _in_two_conds(x[0, 0] > 0.0, x, x.at[i].add(v)), 1),  # which may share all operands
    ],
)
def test_an_update_takes_memory_that_nothing_else_needs(
    f: Any, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    indices = rng.integers(0, 40, 70).astype(np.int32)
    program, arrays = traced(f, numbers(40, 30), numbers(70, 30), indices)
    assert any([e.op.name == "add_at" for e in program.equations])
    copied: list[int] = []
    original = np.copyto

    def copyto(y: Any, *given: Any) -> None:
        copied.append(y.size)
        original(y, *given)

    with monkeypatch.context() as patch:
        patch.setattr(np, "copyto", copyto)
        run = compiled(program, RAW)
        before = [x.copy() for x in arrays]
        run(arrays)  # type: ignore[misc]
    for x, y in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(x, y)
    assert copied.count(1200) == copies
    check(program, arrays, close)


@each_of("low", [-np.inf, -1e9, -144.9, -120.0, -90.0, -41.0, -39.0, 0.0])
@pytest.mark.parametrize("top", [-200.0, -39.0, 0.0, 39.0, 60.0, np.inf, np.nan])
def test_softmax_of_rows_is_accurate_whatever_lies_between(low: float, top: float) -> None:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(50, 64)).astype(np.float32)
    x[:, ::3] += np.float32(low)
    x[::2] += np.float32(top) if np.isfinite(top) else 0
    x[::2, 5] = top
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        below = wide - wide.max(1, keepdims=True)
        below[wide == wide.max(1, keepdims=True)] = 0.0
        powers = np.exp(below)
        want = powers / powers.sum(1, keepdims=True)
        got = RAW.softmax(x, (1,))
        errors = np.abs(got - want) / np.spacing(np.maximum(want, 1e-45).astype(np.float32))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    # The exponential, the sum and the quotient are off by 4 units, and where the difference from the largest is
    # rounded, to 2**-24 of itself, the exponential is off by that part of it, which is as many units at most.
    bound = 4.0 + np.where(np.isfinite(below), np.abs(below), 0.0)
    assert (errors <= bound)[~np.isnan(want)].all()


@pytest.mark.parametrize("count", [2, 3, 10, 300])
@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 5.0, 15.0, 100.0])
def test_log_softmax_of_rows_is_accurate_near_0_and_far_from_it(count: int, spread: float) -> None:
    rng = np.random.default_rng(count)
    x = (rng.normal(size=(400, count)) * spread).astype(np.float32)
    wide = x.astype(np.longdouble)
    below = wide - wide.max(1, keepdims=True)
    others = np.where(below == 0, 0, np.exp(below)).sum(1, keepdims=True)
    want = below - np.log1p(others + ((below == 0).sum(1, keepdims=True) - 1))
    errors = np.abs(RAW.log_softmax(x, (1,)) - want) / np.spacing(np.abs(want).astype(np.float32))
    assert errors.max() <= 4.0


@pytest.mark.parametrize("repeated_a", [(4, 4), (4, 1), (1, 4), (1, 1)])
@each_of("repeated_b", [(4, 4), (4, 1), (1, 4), (1, 1)])
def test_operands_that_are_repeated_from_size_one(repeated_a, repeated_b):
    rng = np.random.default_rng(0)
    a, b = (tk.broadcast_to(tk.tensor(rng.normal(size=n)), (4, 4)) for n in (repeated_a, repeated_b))
    for f in (
        lambda a, b: a @ b,
        lambda a, b: (a * b).sum(0),
        lambda a, b: (a.T @ b).sum(1),
        lambda a, b: tk.sort(a @ b, 1),
        lambda a, b: tk.softmax(tk.cumsum(a * b, 0), 0),
    ):
        jitted = tk.jit(f)
        close(jitted(a, b), f(a, b))
        for wanted, found in zip(
            tk.grad(lambda a, b, f=f: tk.tanh(f(a, b)).sum(), (0, 1))(a, b),
            tk.grad(lambda a, b, f=jitted: tk.tanh(f(a, b)).sum(), (0, 1))(a, b),
            strict=True,
        ):
            close(found, wanted)


@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize("other", [(0, 3), (1, 3), (1, 1), (0, 1)])
def test_operands_that_are_repeated_no_times(axes: Any, other: Any) -> None:
    """An axis of size 1 that is expanded to size 0 is kept as 1, and the result has no elements all the same."""
    small, b = Variable((1, 3), tk.float32), Variable(other, tk.float32)
    for operands in ((0, 1), (1, 0)):
        a = Variable((0, 3), tk.float32)
        y = Variable(tuple([1 if i in axes else n for i, n in enumerate((0, 3))]), tk.float32)
        product = OPS["fused_multiply_add"]
        equations = (
            Equation(OPS["expand"], (small,), ((0, 3),), (a,)),
            Equation(product, tuple([(a, b)[i] for i in operands]), (axes,), (y,)),
        )
        check(
            Program((small, b), (y, y), equations), [np.ones((1, 3), np.float32), np.ones(other, np.float32)]
        )


def test_what_is_joined_lies_as_it_is_needed() -> None:
    """Nothing is copied where the joined parts are permuted for a product: as many lines as without the permutation."""
    a, b = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4), np.ones((2, 3, 4), np.float32)
    w = np.arange(32.0, dtype=np.float32).reshape(8, 4)

    def joined(permuted: bool) -> tuple[Program, list[Any]]:
        def f(a: Any, b: Any, w: Any) -> Any:
            both = tk.concatenate([a * 2.0, b * 3.0], 0)
            return (both.permute((1, 0, 2)).reshape((6, 8)) if permuted else both.reshape((6, 8))) @ w

        program = tk.trace(f)(*[tk.tensor(x) for x in (a, b, w)])
        return optimised(program, RAW), [a, b, w]

    lines = []
    for permuted in (False, True):
        program, arrays = joined(permuted)
        check(program, arrays)
        run: Any = compiled(program, RAW)
        lines.append(len(run.source(arrays).splitlines()))
    assert lines[0] == lines[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("block", [2048, 32768])
def test_choices_that_are_the_same_in_every_call(
    dtype: Any, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On masks that are made once: of values and of numbers; alone and in loops over blocks."""
    made: list[Any] = []
    chosen = writing.write_where_constant
    for module in (blocks, equations):
        monkeypatch.setattr(
            module, "write_where_constant", lambda *given: [made.append(given), chosen(*given)]
        )
    for module in (blocks, schedule):
        monkeypatch.setattr(module, "BLOCK_SIZE", block)
    shape = (8, 32, 32)
    x, y = (np.random.default_rng(i).normal(size=shape).astype(dtype) for i in (0, 1))
    if dtype != np.int32:
        x[0, :2, :4], y[0, 2:5, :4] = (np.nan, np.inf, -0.0, -np.inf), -0.0
    visible = np.tril(np.ones((32, 32), bool))
    for condition in (visible, visible[None], visible[3]):
        c = tk.tensor(condition, backend=RAW)
        for f in (
            lambda x, y, c=c: tk.where(c, x, y),
            lambda x, y, c=c: tk.where(c, x, -3 if dtype == np.int32 else -np.inf),
            lambda x, y, c=c: tk.where(c, 0, x),
            lambda x, y, c=c: tk.where(c, x, 0),
            lambda x, y, c=c: tk.where(c, 2, y) * 3,
            lambda x, y, c=c: tk.where(c, x + y, 7) + tk.where(c, 5, 6),
        ):
            program = optimised(tk.trace(f)(tk.tensor(x, backend=RAW), tk.tensor(y, backend=RAW)), RAW)
            check(program, [x, y])
    assert len(made) == 3 * 6
