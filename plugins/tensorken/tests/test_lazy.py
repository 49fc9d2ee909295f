"""Lazy: ops run when their values are read, run once, and give the results of eager execution."""

from __future__ import annotations

import gc
import re
import sys
import threading
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tensorken as tk
from core.tests.examples import examples
from core.tests.random_programs.draft import Draft
from core.tests.random_programs.strategies import function_of, on, programs
from core.tests.support import LAZIES, Counting, array
from core.tests.threads import together
from tensorken.lazy.interpreter import Lazy
from tensorken_core.errors import BackendError, DTypeError
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import float32, float64, int32, int64
from tensorken_core.language.op import OPS
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference


@pytest.fixture
def raw() -> Counting:
    return Counting()


# ---- what it means -----------------------------------------------------------------------------------------


@pytest.mark.feature(59, 63)
@pytest.mark.parametrize("name", LAZIES)
def test_programs_equal_eager_results(name):
    @settings(max_examples=examples(25), deadline=None)
    @given(programs(whole=True))
    def agrees(draft: Draft) -> None:
        found = function_of(draft, LAZIES[name], everything=True)(*on(LAZIES[name], draft))
        for value, expected in list(zip(found, draft.results, strict=True))[::-1]:
            np.testing.assert_array_equal(array(value), expected)

    agrees()


@pytest.mark.parametrize("name", LAZIES)
def test_derivatives_loops_and_factorizations_give_eager_results(name):
    def loss(w: Any, x: Any) -> Any:
        def step(h: Any, row: Any) -> Any:
            return tk.tanh(h @ w + row), h.sum()

        h, sums = tk.scan(step, x[0], x)
        q, r = tk.linalg.qr(w + 3.0 * tk.eye(3, dtype="float64", backend=w.interpreter.base))
        return (h * h).sum() + sums.sum() + tk.cond(h[0] > 0, tk.sin, tk.cos, h).sum() + (q * r).sum()

    def results(backend: Any) -> list[Any]:
        rng = np.random.default_rng(0)
        w, x = (tk.tensor(rng.standard_normal(s), backend=backend) for s in ((3, 3), (4, 3)))
        return [
            array(tk.grad(loss)(w, x)),
            array(tk.hessian(loss, 1)(w, x)),
            array(tk.jit(tk.grad(loss))(w, x)),
            array(tk.grad(tk.jit(loss))(w, x)),
            array(tk.vmap(tk.grad(loss), (None, 0))(w, tk.stack([x, -x]))),
        ]

    for found, expected in zip(results(LAZIES[name]), results(Numpy()), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_signed_zeros_and_numbers_of_different_types_are_distinct(raw):
    lazy = Lazy(raw)
    x = tk.full((2,), 0.0, backend=lazy)
    assert np.signbit(array(-x + tk.full((2,), -0.0, backend=lazy))).all()
    assert not np.signbit(array(x)).any()
    nans = [tk.full((2,), z, backend=lazy) for z in (float("nan"), -float("nan"))]
    assert [tk.copysign(x + 1.0, z).tolist() for z in nans] == [[1.0, 1.0], [-1.0, -1.0]]
    assert tk.full((), True, "bool", backend=lazy).item() is True
    assert tk.full((), 1, "int32", backend=lazy).item() == 1
    assert lazy.fill_value(lazy.full((2, 3), 2.5, tk.float32)) == 2.5
    assert lazy.fill_value(lazy.expand(lazy.full((1, 3), 2.5, tk.float32), (2, 3))) == 2.5
    assert lazy.fill_value(lazy.exp(lazy.full((2, 3), 2.5, tk.float32))) is None


# ---- when it runs ------------------------------------------------------------------------------------------


@pytest.mark.feature(59, 61, 114)
def test_ops_run_only_when_read_and_shared_ops_run_once(raw):
    lazy = Lazy(raw)
    x = tk.tensor([1.0, 2.0, 3.0], backend=lazy)
    y = tk.exp(x)
    total, other = (y * y).sum(), tk.sin(y) + tk.exp(x)
    assert (total.shape, other.shape, other.dtype) == ((), (3,), tk.float32)
    assert not raw.calls and lazy.pending > 0
    assert total.item() == pytest.approx(sum(np.exp(2 * np.arange(1.0, 4.0))), rel=1e-5)
    assert raw.calls["exp"] == 1 and raw.calls["sin"] == 0
    array(other)
    assert raw.calls["exp"] == raw.calls["sin"] == 1  # both results use the same computed values
    assert lazy.pending == 0
    array(other)
    assert raw.calls["sin"] == 1


def test_the_same_op_on_the_same_nodes_is_the_same_node(raw):
    lazy = Lazy(raw)
    x = lazy.new((3,), [1.0, 2.0, 3.0], tk.float32)
    y = lazy.exp(x)
    assert lazy.exp(x) is y
    assert lazy.sum(y, (0,)) is lazy.sum(y, (0,))
    assert lazy.permute(y, (0,)) is not lazy.flip(y, (0,))
    lazy.value(y)
    assert lazy.exp(x) is y  # as long as y is referenced
    key = weakref.ref(y)
    del y
    gc.collect()
    assert key() is None
    pair = tk.linalg.qr(tk.tensor([[1.0, 2.0], [3.0, 4.0]], backend=lazy))
    assert all(part.interpreter is lazy for part in pair)


def test_a_pending_op_is_reused_until_the_next_run(raw):
    """Steps of a loop do not share values of constants, so that all steps have the same structure."""
    lazy = Lazy(raw)
    x = lazy.new((3,), [1.0, 2.0, 3.0], tk.float32)
    y, z = lazy.exp(x), lazy.sin(x)
    assert lazy.exp(x) is y
    lazy.value(z)
    again = lazy.exp(x)
    assert again is not y and lazy.exp(x) is again
    assert lazy.pending == 2
    lazy.flush()  # computes both nodes
    assert lazy.pending == 0 and y.value is not None and again.value is not None
    assert lazy.exp(x) is again and lazy.sin(x) is z


def test_leaves_are_compared_by_identity(raw):
    lazy = Lazy(raw)
    a, b = (lazy.new((2,), [1.0, 2.0], tk.float32) for _ in range(2))
    assert lazy.exp(a) is not lazy.exp(b)


def test_unreferenced_ops_never_run_and_free_their_operands(raw):
    lazy = Lazy(raw)
    x = lazy.new((3,), [1.0, 2.0, 3.0], tk.float32)
    y = lazy.exp(x)
    kept = weakref.ref(x)
    z = lazy.sin(y)
    del x, y
    gc.collect()
    assert kept() is not None
    lazy.value(z)
    gc.collect()
    assert kept() is None  # a computed node drops its operands
    w = lazy.cos(z)
    del w
    gc.collect()
    lazy.flush()
    assert raw.calls["cos"] == 0 and lazy.pending == 0


def test_reading_a_shape_or_settling_runs_nothing(raw):
    lazy = Lazy(raw)
    fused = Fuse(lazy)
    x = tk.ones((4, 3), backend=fused)
    y = tk.tanh(x @ x.T + 1.0)
    assert y.shape == (4, 4) and y.settle() is y and repr(lazy) == "Lazy(Counting())"
    gradient = tk.grad(lambda x: (x * x).sum())(y)
    assert not raw.calls
    gradient.realize()
    assert raw.calls["tanh"] == 1


def test_flush_runs_all_pending_ops_in_one_program(raw):
    lazy = Lazy(raw)
    x = tk.tensor([1.0, 2.0], backend=lazy)
    ys = [tk.exp(x), tk.sin(x), tk.exp(x) + 1.0]
    lazy.flush()
    assert lazy.pending == 0
    assert raw.calls["exp"] == raw.calls["sin"] == 1
    calls = raw.calls.total()
    for y in ys:
        array(y)
    assert raw.calls.total() == calls


# ---- programs are made once --------------------------------------------------------------------------------


class Compiling(Numpy):
    """Numpy that counts calls of `compile`."""

    def __init__(self) -> None:
        self.programs: list[Any] = []

    def __repr__(self) -> str:
        return "Compiling()"

    def compile(self, program: Any) -> Any:
        self.programs.append(program)
        return lambda xs: program.replay(self, xs)


def test_a_training_loop_is_compiled_once():
    raw = Compiling()
    lazy = Lazy(raw)
    with tk.use_backend(Fuse(lazy)):
        x, w = tk.ones((5, 4)), tk.full((4, 3), 0.5)

        def loss(w: Any) -> Any:
            return (tk.tanh(x @ w) ** 2).sum()

        losses = []
        for _ in range(20):
            value, gradient = tk.value_and_grad(loss)(w)
            w = w - 0.01 * gradient
            losses.append(value.item())
            w.realize()
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]
    assert len(raw.programs) <= 4  # the first step has a number where the others have a tensor


def test_shapes_and_params_decide_the_program_and_zeros_keep_their_signs():
    raw = Compiling()
    lazy = Lazy(raw)
    for shape in ((2, 3), (3, 2), (2, 3)):
        for factor in (2.0, -0.0, 0.0):
            for axis in (0, 1):
                x = tk.tensor(np.arange(1.0, 7.0).reshape(shape), backend=lazy)
                y = tk.tensor(np.arange(1.0, 7.0).reshape(shape), backend=Numpy())
                expected = array((tk.exp(y * 0.0) * y * factor).max(axis))
                found = array((tk.exp(x * 0.0) * x * factor).max(axis))
                assert found.tolist() == expected.tolist()
                assert np.signbit(found).tolist() == np.signbit(expected).tolist()
    # For two shapes and two axes, with the first factor and with others.
    assert len(raw.programs) == 2 * 2 * 2


def test_the_number_of_cached_programs_is_limited(monkeypatch):
    monkeypatch.setattr("tensorken.lazy.interpreter.MAX_PROGRAMS", 8)
    lazy = Lazy(Numpy())
    for n in range(1, 30):
        assert tk.ones((n,), backend=lazy).exp().sum().item() == pytest.approx(n * np.e, rel=1e-5)
    assert len(lazy._programs) == 8


def test_the_least_recently_used_programs_are_evicted(monkeypatch):
    monkeypatch.setattr("tensorken.lazy.interpreter.MAX_PROGRAMS", 3)
    raw = Compiling()
    lazy = Lazy(raw)

    def compiled(n: int) -> int:
        before = len(raw.programs)
        tk.tensor([0.5] * n, backend=lazy).exp().tolist()
        return len(raw.programs) - before

    assert [compiled(n) for n in (1, 2, 3, 4, 4, 5, 5, 4)] == [1, 1, 1, 1, 0, 1, 0, 0]
    # 5 was the least recently used when 6 was added.
    assert [compiled(n) for n in (3, 6, 3, 4, 5)] == [0, 1, 0, 0, 1]


class WithoutFactors(Reference):
    """The reference without its own factorizations; it records the programs passed to `compile`."""

    def __init__(self) -> None:
        super().__init__()
        self.programs: list[Any] = []

    def compile(self, program: Any) -> Any:
        self.programs.append(program)
        return lambda xs: program.replay(self, xs)


def test_the_rounds_of_a_factorization_are_one_program():
    raw = WithoutFactors()
    lazy = Lazy(raw)
    random = np.random.default_rng(0)
    for _ in range(2):
        made = len(raw.programs)
        a = random.normal(size=(2, 3, 3))
        a = a + a.swapaxes(-1, -2)
        values, vectors = tk.linalg.eigh(tk.tensor(a, backend=lazy))
        np.testing.assert_allclose(array(values), np.linalg.eigvalsh(a), atol=1e-12)
        eager = tk.linalg.eigh(tk.tensor(a, backend=WithoutFactors()))
        np.testing.assert_array_equal(array(vectors), array(eager.eigenvectors))
        left, sizes, right = tk.linalg.svd(tk.tensor(a, backend=lazy))
        np.testing.assert_allclose(array((left * sizes[..., None, :]) @ right), a, atol=1e-12)
    assert len(raw.programs) == made, "the second matrices need no program of their own"
    # All rounds as one program would have 2 000.
    assert max([len(program.equations) for program in raw.programs]) < 400


COLUMN_BY_COLUMN: dict[str, tuple[Any, ...]] = {
    "qr": (False,),
    "cholesky": (),
    "det": (),
    "slogdet": (),
    "inv": (),
    "triangular_solve": (True,),
    "solve": (),
}


@pytest.mark.parametrize("name", COLUMN_BY_COLUMN)
def test_the_columns_of_a_factorization_are_one_program(name):
    op, params = OPS[name], COLUMN_BY_COLUMN[name]
    for n in (7, 9):
        raw = WithoutFactors()
        a = np.random.default_rng(n).normal(size=(2, n, n))
        a = a @ a.swapaxes(-1, -2) + np.eye(n)

        def results(backend: Any, a: Any = a) -> list[Any]:
            x = tk.tensor(a, backend=backend)
            found = x.apply(op, *[x + 1.0][: (op.arity or 0) - 1], *params)
            return [array(y) for y in (found if isinstance(found, tuple) else (found,))]

        for lazy, eager in zip(results(Lazy(raw)), results(WithoutFactors()), strict=True):
            np.testing.assert_allclose(lazy, eager, rtol=1e-10, atol=1e-12)
        made = sum([len(program.equations) for program in raw.programs])
        assert made < 100, "those of 9 columns, one by one, are more"


def test_a_factorization_of_few_steps_is_deferred_like_other_ops():
    raw = WithoutFactors()
    x = tk.tensor(np.eye(3) + 1.0, backend=Lazy(raw))
    total = (x.apply(OPS["inv"]) @ x).sum()
    assert not raw.programs
    assert total.item() == pytest.approx(3.0)
    assert len(raw.programs) == 1


# ---- memory and depth --------------------------------------------------------------------------------------


def walk(lazy: Any, steps: int) -> Any:
    """Steps of a training loop whose values are never read."""
    w = tk.tensor(np.linspace(0.0, 1.0, 1000), backend=lazy)
    x = tk.tensor(np.linspace(1.0, 2.0, 1000), backend=lazy)
    for _ in range(steps):
        w = w - 0.001 * tk.grad(lambda w: (tk.sin(w * x) ** 2).sum())(w)
    return w


@pytest.mark.parametrize("wrapped", [False, True])
def test_memory_stays_the_same_over_1000_steps_that_never_read(wrapped):
    lazy = Lazy(Numpy())
    backend = Fuse(lazy) if wrapped else lazy
    walk(backend, 500)  # until its programs are cached
    tracemalloc.start()
    try:
        short = walk(backend, 300)
        del short
        gc.collect()
        tracemalloc.reset_peak()
        start = tracemalloc.get_traced_memory()[0]
        w = walk(backend, 1000)
        peak = tracemalloc.get_traced_memory()[1] - start
    finally:
        tracemalloc.stop()
    assert peak < 6_000_000  # a step's values are 8 KB each: all of them would be over 30 MB
    assert lazy.pending <= 2048
    np.testing.assert_allclose(array(w), array(walk(Fuse(Numpy()), 1000)), rtol=1e-9)


def test_the_bytes_that_pending_ops_keep_alive_are_limited(monkeypatch):
    monkeypatch.setattr("tensorken.lazy.interpreter.MAX_PENDING_BYTES", 1_000_000)
    lazy = Lazy(Numpy())
    total = tk.zeros((1000,), "float64", backend=lazy)
    tracemalloc.start()
    try:
        for i in range(2000):
            total = total + tk.tensor(np.full(1000, float(i)), backend=lazy)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000  # not the 16 MB of all values that were added
    assert array(total)[0] == 1999 * 2000 / 2


@pytest.mark.slow
def test_a_chain_of_100_000_ops_needs_no_recursion():
    found: list[float] = []

    def chain(lazy: Any, length: int) -> None:
        x = tk.tensor(1.0, backend=lazy)
        for _ in range(length):
            x = tk.sin(x)
        found.append(x.item())

    limit = sys.getrecursionlimit()

    def shallow() -> None:
        sys.setrecursionlimit(200)
        try:
            chain(Lazy(Numpy()), 100_000)
            chain(Lazy(Counting(), max_pending=10**9), 100_000)
        finally:
            sys.setrecursionlimit(limit)

    thread = threading.Thread(target=shallow)
    thread.start()
    thread.join()
    assert found[0] == found[1] == pytest.approx((3 / 100_000) ** 0.5, rel=1e-2)


# ---- when something goes wrong -----------------------------------------------------------------------------


class Failing(Counting):
    """A backend whose sine fails until `broken` is cleared."""

    broken = True

    def sin(self, x: Any) -> Any:
        return 1 / 0 if self.broken else np.sin(x)


def test_a_run_that_fails_can_be_repeated():
    raw = Failing()
    lazy = Lazy(raw)
    x = tk.tensor([[2.0, 0.0], [0.0, 3.0]], backend=lazy)
    q, r = tk.linalg.qr(x)
    y = tk.sin(q @ r)
    z = y.sum() + 1.0
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            z.item()
        with pytest.raises(ZeroDivisionError):
            array(y)
    raw.broken = False
    assert z.item() == pytest.approx(np.sin([2.0, 3.0]).sum() + 1.0, rel=1e-5)
    np.testing.assert_allclose(array(q @ r), array(x), atol=1e-6)


class Naming(Compiling):
    """A backend whose programs fail with the lines of their equations."""

    def compile(self, program: Any) -> Any:
        self.programs.append(program)

        def run(xs: Any) -> Any:
            raise BackendError(", ".join([str(e.origin) for e in program.equations]))

        return run


def test_a_program_names_the_lines_of_the_graph_that_runs():
    """Not the line that reads, nor those of another graph with the same structure, which shares its program."""
    raw = Naming()
    lazy = Lazy(raw)
    x, y = tk.tensor([1.0, 2.0], backend=lazy), tk.tensor([1.0, 2.0], backend=lazy)
    line = sys._getframe().f_lineno
    z = tk.exp(x)
    z = tk.sin(z)
    w = tk.sin(tk.exp(y))
    for result, lines in ((z, [1, 2]), (w, [3, 3]), (z, [1, 2])):
        with pytest.raises(BackendError) as found:
            result.tolist()
        places = re.findall(r"test_lazy\.py:(\d+): ", str(found.value))
        assert [int(place) - line for place in places] == lines
    assert len(raw.programs) == 1


def test_threads_may_read_and_write_one_graph():
    lazy = Lazy(Numpy(), max_pending=50)
    x = tk.tensor(np.arange(1.0, 101.0), backend=lazy)
    shared = tk.exp(-x)
    wrong: list[Any] = []

    def work(k: int) -> None:
        for i in range(60):
            y = (shared * float(k + i)).sum() + shared.max()
            expected = np.exp(-np.arange(1.0, 101.0)).sum() * (k + i) + np.exp(-1.0)
            if abs(y.item() - expected) > 1e-9 * max(1.0, abs(expected)):
                wrong.append((k, i))

    together(4, work)
    assert not wrong


def test_every_op_gives_the_same_lazily_and_eagerly():
    rng = np.random.default_rng(1)
    lazy, eager = Lazy(Numpy()), Numpy()
    for op in OPS.values():
        for shapes, params in list(op.samples)[:2]:
            if not op.method or op.operand_kinds or (op.results != 1 and op.adjust_samples is not None):
                continue
            low, high = op.domain
            values = [rng.uniform(low, high, s).astype("float32") for s in shapes]
            try:
                op.result_dtype(tuple([tk.float32] * len(shapes)), params)
            except tk.errors.DTypeError:
                continue
            found = getattr(lazy, op.name)(*[lazy.wrap(v) for v in values], *params)
            expected = getattr(eager, op.name)(*values, *params)
            pairs = [(found, expected)] if op.results == 1 else list(zip(found, expected, strict=True))
            for node, wanted in pairs:
                assert node.shape == np.shape(wanted)
                np.testing.assert_allclose(lazy.value(node), wanted, rtol=1e-5, atol=1e-6, err_msg=op.name)


def test_missing_dtypes_raise_when_the_op_is_recorded() -> None:
    class Narrow(Reference):
        capabilities = Capabilities(dtypes=("bool", "int32", "float32"))

    lazy = Lazy(Narrow())
    with pytest.raises(DTypeError, match=r"full: Narrow\(\) has no float64, only bool, int32, float32"):
        lazy.full((2,), 1.0, float64)
    x = lazy.full((2,), 1.0, float32)
    with pytest.raises(DTypeError, match=r"cast: Narrow\(\) has no int64"):
        lazy.interpret(OPS["cast"], [x], (int64,))
    assert lazy.pending == 0
    assert list(lazy.ravel(lazy.interpret(OPS["cast"], [x], (int32,)))) == [1, 1]


@pytest.mark.parametrize("name", LAZIES)
def test_programs_that_capture_pending_values_run(name):
    """The branch captures a value that is computed in the same run as the cond."""

    def f(x):
        def loss(v):
            positive = v.sum() > 0.0
            return tk.cond(
                positive, lambda w: tk.jit(lambda u: tk.maximum(x[0], u))(w), lambda w: w * 0.5, v
            ).sum()

        return tk.vmap(tk.grad(loss))(x)

    with tk.use_backend(LAZIES[name]):
        x = tk.tensor([[0.0, -1.0, 0.0]]).reshape((3, 1)).T
        assert f(x).tolist() == [[0.5, 0.5, 0.5]]
