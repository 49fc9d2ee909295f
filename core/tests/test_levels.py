"""Levels: escaped tensors are refused, and every way to leave a transform restores the levels."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, STACKS, array, f64
from tensorken_core.errors import EscapedTensorError, MixedBackendError
from tensorken_core.levels import reverse
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.tensor import level as levels
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy

pytestmark = pytest.mark.usefixtures("on_numpy")


def _jvp(f: Callable[[Any], Any], x: Any) -> Any:
    return tk.jvp(f, (x,), (tk.ones_like(x),))[1]


TRANSFORMS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "jvp": _jvp,
    "vjp": lambda f, x: tk.vjp(f, x)[1](1.0)[0],
    "grad": lambda f, x: tk.grad(f)(x),
    "value_and_grad": lambda f, x: tk.value_and_grad(f)(x)[1],
    "jacrev": lambda f, x: tk.jacrev(f)(x),
    "jacfwd": lambda f, x: tk.jacfwd(f)(x),
    "hessian": lambda f, x: tk.hessian(f)(x),
}
EACH = pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
BOTH = pytest.mark.parametrize("transform", [TRANSFORMS["jvp"], TRANSFORMS["grad"]], ids=["jvp", "grad"])


def leaked(transform: Callable[..., Any], value: float = 2.0) -> Tensor:
    """A tensor that outlived its transform."""
    kept: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        kept.append(x * x)
        return x * x

    transform(f, f64(value))
    return kept[0]


def assert_levels_are_right() -> None:
    """Assert that no level is running, and that derivatives are correct on the backend itself."""
    assert levels._running.get() is None
    assert tk.grad(tk.sin)(f64(0.0)).item() == 1.0
    assert tk.derivative(tk.grad(lambda x: x * x * x))(f64(2.0)).item() == 12.0
    assert tk.grad(tk.sin)(f64(0.0)).interpreter is FUSED


# ---- escapes -----------------------------------------------------------------------------------------------

USES: dict[str, Callable[[Tensor], Any]] = {
    "alone": lambda x: tk.sin(x),
    "with itself": lambda x: x * x,
    "with a concrete tensor": lambda x: x + f64(1.0),
    "behind a concrete tensor": lambda x: f64(1.0) + x,
    "with a number": lambda x: 2.0 * x,
    "compared": lambda x: x < 1.0,
    "in a reduction": lambda x: x.sum(),
    "in a movement": lambda x: x.reshape(1, 1),
    "indexed": lambda x: x[None],
    "broadcast": lambda x: x.broadcast_to((3,)),
    "cast": lambda x: x.astype("float32"),
    "in where": lambda x: tk.where(True, x, 0.0),
    "in matmul": lambda x: f64([[1.0, 2.0]]) * x,
    "concatenated": lambda x: tk.stack([f64(1.0), x]),
    "as the point of grad": lambda x: tk.grad(lambda y: y)(x),
    "as the point of jvp": lambda x: tk.jvp(lambda y: y, (x,), (1.0,)),
    "as the point of vjp": lambda x: tk.vjp(lambda y: y, x),
    "as the point of jacfwd": lambda x: tk.jacfwd(lambda y: y)(x),
    "as a tangent": lambda x: tk.jvp(lambda y: y, (f64(1.0),), (x,)),
    "as a cotangent": lambda x: tk.vjp(lambda y: y * 2.0, f64(1.0))[1](x),
    "as a cotangent that nothing touches": lambda x: tk.vjp(lambda y: y, f64(1.0))[1](x),
    "in the function of grad": lambda x: tk.grad(lambda y: y * x)(f64(1.0)),
    "in the function of jvp": lambda x: tk.jvp(lambda y: y * x, (f64(1.0),), (1.0,)),
    "as the result of the function of grad": lambda x: tk.grad(lambda y: x)(f64(1.0)),
    "as the result of the function of jvp": lambda x: tk.jvp(lambda y: x, (f64(1.0),), (1.0,)),
    "stopped": lambda x: tk.stop_gradient(x),
    "in at": lambda x: f64([1.0, 2.0]).at[0].set(x),
}


@pytest.mark.feature(109, 55)
@EACH
@each_of("use", USES.values())
def test_a_leaked_tensor_is_refused(transform, use):
    x = leaked(transform)
    with pytest.raises(
        EscapedTensorError, match=r"^\w+: this tensor was made inside \w+, which has returned; return it"
    ):
        use(x)
    assert_levels_are_right()


@pytest.mark.feature(181)
@EACH
def test_a_leaked_tensor_can_still_be_read(transform):
    x = leaked(transform)
    assert (x.item(), x.shape, x.dtype, x.tolist(), float(x), bool(x)) == (
        4.0,
        (),
        tk.float64,
        4.0,
        4.0,
        True,
    )
    assert "4." in repr(x)
    assert np.array(x) == 4.0


@pytest.mark.feature(55)
def test_the_message_names_the_transform_that_was_called():
    for name, transform in TRANSFORMS.items():
        if name in ("jvp", "vjp", "grad", "value_and_grad"):
            with pytest.raises(EscapedTensorError, match=f"made inside {name}, which"):
                leaked(transform).exp()


@BOTH
def test_tensors_of_sibling_transforms_are_refused(transform):
    def f(x):
        first = leaked(transform)
        return TRANSFORMS["grad"](lambda y: y * first, x)

    for outer in (TRANSFORMS["jvp"], TRANSFORMS["grad"]):
        with pytest.raises(EscapedTensorError, match=r"^mul: this tensor was made inside"):
            outer(f, f64(1.0))
        assert_levels_are_right()


@BOTH
@pytest.mark.parametrize("inner", [TRANSFORMS["jvp"], TRANSFORMS["grad"]], ids=["jvp", "grad"])
def test_a_tensor_of_an_inner_level_is_refused_as_result_of_the_outer(transform, inner):
    def f(x):
        kept = []

        def g(y):
            kept.append(y * x)
            return y * x

        inner(g, f64(2.0))
        return kept[0]

    with pytest.raises(EscapedTensorError, match="has returned"):
        transform(f, f64(3.0))
    assert_levels_are_right()


@BOTH
def test_a_pullback_that_outlives_the_outer_transform_is_refused(transform):
    kept = []

    def f(x):
        y, pull_back = tk.vjp(lambda z: z * z * x, x)
        kept.append(pull_back)
        return y

    transform(f, f64(3.0))
    with pytest.raises(EscapedTensorError, match="has returned"):
        kept[0](f64(1.0))
    assert_levels_are_right()


def test_two_open_levels_side_by_side_are_refused():
    """A thread without the context of its parent starts from the backend, not from the level that runs outside."""

    def f(x):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: tk.grad(lambda y: y * x)(f64(2.0))).result()

    with pytest.raises(EscapedTensorError, match=r"^mul: .* neither inside the other; .*copy_context"):
        tk.grad(f)(f64(3.0))
    assert_levels_are_right()


@pytest.mark.feature(6)
def test_backends_do_not_mix_inside_transforms_either():
    other = Fuse(Numpy())
    x, y = f64(1.0), f64(2.0, other)
    for use in (
        lambda: tk.grad(lambda a, b: a, (0, 1))(x, y),
        lambda: tk.grad(lambda a: a * y)(x),
        lambda: tk.grad(lambda a: y)(x),
        lambda: tk.jvp(lambda a: a, (x,), (y,)),
        lambda: tk.jvp(lambda a: a + y, (x,), (1.0,)),
        lambda: tk.vjp(lambda a: a, x)[1](y),
        lambda: tk.vjp(lambda a: a * a, x)[1](y),
    ):
        with pytest.raises(
            MixedBackendError, match=r"^\w+: operands live on different backends, .*; move one with"
        ):
            use()
        assert_levels_are_right()


def test_another_backend_may_be_differentiated_inside_a_transform():
    other = Fuse(Numpy())

    def f(x):
        slope = tk.grad(tk.sin)(f64(0.0, other))
        assert slope.interpreter is other
        return x * slope.item()

    assert tk.grad(f)(f64(3.0)).item() == 1.0


# ---- exceptions --------------------------------------------------------------------------------------------


class Interrupted(BaseException):
    pass


@EACH
@pytest.mark.parametrize(
    "exception", [ValueError, KeyboardInterrupt, GeneratorExit, SystemExit, Interrupted, RecursionError]
)
def test_an_exception_restores_the_levels(transform, exception):
    kept = []

    def f(x):
        kept.append(x)
        raise exception("from inside")

    with pytest.raises(exception, match="from inside"):
        transform(f, f64(1.0))
    assert_levels_are_right()
    with pytest.raises(EscapedTensorError):
        kept[0] + 1.0


@BOTH
def test_an_exception_two_levels_deep_closes_both_and_may_be_caught_in_between(transform):
    kept = []

    def inner(y):
        kept.append(y)
        raise ZeroDivisionError

    def f(x):
        try:
            transform(inner, x)
        except ZeroDivisionError:
            assert levels._running.get() is x.interpreter
        return x * x

    assert transform(f, f64(3.0)).item() == 6.0
    assert_levels_are_right()
    with pytest.raises(EscapedTensorError):
        kept[0] * 1.0


def test_an_error_in_a_pullback_restores_the_levels():
    _, pull_back = tk.vjp(lambda x: x @ x, f64([1.0, 2.0]))
    with pytest.raises(tk.errors.ShapeError):
        pull_back(f64([1.0]))
    assert_levels_are_right()
    assert pull_back(1.0)[0].tolist() == [2.0, 4.0]


@pytest.mark.slow
def test_an_interrupt_restores_the_levels():
    """Ctrl-C arrives between any two steps of the main thread."""
    import _thread

    def long(x):
        timer.start()
        for _ in range(100_000):
            x = tk.grad(tk.sin)(x) * x

    gc.disable()  # exceptions in a callback of the collector are ignored
    try:
        for delay in (0.01, 0.02, 0.03):
            timer = threading.Timer(delay, _thread.interrupt_main)
            with pytest.raises(KeyboardInterrupt):
                tk.grad(long)(f64(1.0))
            timer.join()
            assert_levels_are_right()
    finally:
        gc.enable()


# ---- generators, threads, asyncio --------------------------------------------------------------------------


@BOTH
def test_a_generator_suspended_inside_a_transform_resumes_outside(transform):
    """Tensors of the closed transform are refused; transforms inside the generator work wherever it is resumed."""

    def numbers(x):
        yield x * x
        yield tk.grad(lambda y: y * y)(f64(5.0))
        yield x * x

    running = []

    def f(x):
        running.append(numbers(x))
        return next(running[0])

    assert transform(f, f64(3.0)).item() == 6.0
    assert next(running[0]).item() == 10.0
    with pytest.raises(EscapedTensorError):
        next(running[0])
    assert_levels_are_right()


@BOTH
def test_a_generator_made_outside_advances_inside(transform):
    def slopes():
        while True:
            yield tk.grad(tk.sin)(f64(0.0))

    made = slopes()
    next(made)
    assert transform(lambda x: next(made) * x, f64(3.0)).item() == 1.0
    assert next(made).interpreter is FUSED
    assert_levels_are_right()


def test_abandoned_generators_restore_the_levels():
    def f(x):
        def steps():
            try:
                yield x * x
            finally:
                closed.append(levels._running.get() is x.interpreter)

        made = steps()
        value = next(made)
        made.close()
        return value

    closed = []
    assert tk.grad(f)(f64(3.0)).item() == 6.0
    assert closed == [True]
    assert_levels_are_right()


def serial(x: Tensor, workers: int = 6) -> Tensor:
    return combined([work(x, i) for i in range(workers)])


def work(x: Tensor, i: int) -> Tensor:
    s = x * float(i + 1)
    for _ in range(20):
        s = (s * 1.5).sin() + x
    return s


def combined(parts: list[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total * part
    return total.sum()


@pytest.mark.parametrize("stack", ["Fuse(Numpy())", "Numpy()", "ShapeTracker(Fuse(Numpy()))"])
@pytest.mark.parametrize(
    "transform", [tk.grad, tk.derivative, lambda f: tk.grad(tk.grad(f))], ids=["rev", "fwd", "rev-rev"]
)
def test_worker_threads_compute_with_values_of_an_outer_transform(stack, transform, eager_threads):
    def threaded(x):
        with ThreadPoolExecutor(6) as pool:
            return combined(list(pool.map(lambda i: work(x, i), range(6))))

    x = f64(0.3, STACKS[stack])
    assert transform(threaded)(x).item() == pytest.approx(transform(serial)(x).item(), rel=1e-12)
    assert_levels_are_right()


@pytest.fixture
def eager_threads():
    """Threads switch as often as Python can."""
    import sys

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_concurrent_threads_record_independently(monkeypatch):
    """Another thread may record between two steps of one thread's recording."""

    class Interleaved(list):
        def append(self, record):
            super().append(record)
            time.sleep(1e-5)  # lets another thread run

    def opened(self, inner):
        original(self, inner)
        self.tape = Interleaved()

    original = reverse.Reverse.__init__
    monkeypatch.setattr(reverse.Reverse, "__init__", opened)

    def f(x):
        def product(i):
            y = x
            for _ in range(10):
                y = y * float(i) + x
            return y

        with ThreadPoolExecutor(4) as pool:
            return combined(list(pool.map(product, range(1, 5))))

    # y_i = x (1 + i + ... + i^10): a polynomial, so f is c x⁴
    c = float(np.prod([sum(float(i) ** k for k in range(11)) for i in range(1, 5)]))
    assert tk.grad(f)(f64(1.0)).item() == pytest.approx(4 * c, rel=1e-12)


def test_a_thread_in_a_copied_context_stands_on_the_running_level():
    def f(x):
        context = contextvars.copy_context()
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(context.run, lambda: tk.grad(lambda y: y * y * x)(f64(2.0))).result()

    assert tk.grad(f)(f64(3.0)).item() == 4.0
    assert_levels_are_right()


def test_independent_threads_do_not_see_one_another():
    barrier = threading.Barrier(8, timeout=60)

    def slope(i):
        def f(x):
            barrier.wait()
            y = x * x * float(i)
            barrier.wait()
            return y

        return [tk.grad(f)(f64(1.0)).item() for _ in range(5)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(slope, range(8))) == [[2.0 * i] * 5 for i in range(8)]
    assert_levels_are_right()


def test_a_thread_that_outlives_its_transform_starts_over():
    """It runs in a copy of the context, in which the closed level still seems to run."""
    go = threading.Event()
    results: list[Any] = []

    def late():
        go.wait(60)
        results.append(tk.grad(tk.sin)(f64(0.0)))

    def f(x):
        threads.append(threading.Thread(target=contextvars.copy_context().run, args=(late,)))
        threads[0].start()
        return x * x

    threads: list[threading.Thread] = []
    assert tk.grad(f)(f64(3.0)).item() == 6.0
    go.set()
    threads[0].join()
    assert results[0].item() == 1.0
    assert results[0].interpreter is FUSED


@pytest.mark.parametrize("depth", [1, 2])
def test_a_task_that_outlives_its_transform_starts_over(depth):
    """A task that starts inside a transform takes a copy of its context along."""

    async def late():
        await asyncio.sleep(0)
        return tk.grad(tk.sin)(f64(0.0))

    async def main():
        tasks = []

        def f(x):
            tasks.append(asyncio.get_running_loop().create_task(late()))
            return x * x * x

        transformed = f
        for _ in range(depth):
            transformed = tk.grad(transformed)
        slope = transformed(f64(3.0)).item()
        return slope, [await task for task in tasks]

    slope, late_slopes = asyncio.run(main())
    assert slope == {1: 27.0, 2: 18.0}[depth]
    assert [s.item() for s in late_slopes] == [1.0]
    assert all(s.interpreter is FUSED for s in late_slopes)
    assert_levels_are_right()


def test_tasks_interleave_without_sharing_levels():
    async def slope(i):
        def f(x):
            return x * x * float(i)

        total = 0.0
        for _ in range(5):
            total += tk.grad(f)(f64(1.0)).item()
            await asyncio.sleep(0)
        return total

    async def main():
        return await asyncio.gather(*[slope(i) for i in range(6)])

    assert asyncio.run(main()) == [10.0 * i for i in range(6)]
    assert_levels_are_right()


def test_a_loop_inside_a_transform_sees_its_level():
    def f(x):
        async def main():
            async def part(i):
                await asyncio.sleep(0)
                return tk.grad(lambda y: y * y * x)(x) * float(i)

            return sum(await asyncio.gather(*[part(i) for i in range(4)]))

        return asyncio.run(main())

    # sum of i · 2x² = 12 x²
    assert tk.grad(f)(f64(3.0)).item() == 72.0
    assert_levels_are_right()


def test_a_shared_product_is_computed_by_one_of_many_threads():
    """Fuse holds the product back until it is read: here by all threads at once."""
    barrier = threading.Barrier(4, timeout=60)

    def read(p):
        barrier.wait()
        return array(p.sin()).tolist()

    with ThreadPoolExecutor(4) as pool:
        for _ in range(50):
            x = f64([0.5, 2.0])
            product = x * x
            expected = np.sin([0.25, 4.0]).tolist()
            assert list(pool.map(read, [product] * 4)) == [expected] * 4


# ---- levels end --------------------------------------------------------------------------------------------


@EACH
def test_no_level_outlives_its_transform_in_memory(transform):
    """A level is in no reference cycle, so its tape is freed without the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        kept = []

        def f(x):
            kept.append(weakref.ref(x.interpreter))
            return (x * x).sum()

        transform(f, f64(2.0))
        assert kept
        assert [level() for level in kept] == [None] * len(kept)
    finally:
        gc.enable()


def test_the_base_of_a_level_is_its_backend():
    chains = []

    def f(x):
        def g(y):
            chains.append((x.interpreter, y.interpreter))
            return y * x

        return tk.grad(g)(x)

    tk.derivative(f)(f64(1.0))
    ((outer, inner),) = chains
    assert inner.levels_below == (FUSED, outer)
    assert outer.levels_below == (FUSED,)
    assert (inner.depth, outer.depth, FUSED.depth) == (2, 1, 0)
    assert inner.base is outer.base is FUSED
    assert (inner.below, outer.below, FUSED.below) == (outer, FUSED, None)
    assert inner.closed and outer.closed


@pytest.mark.feature(104)
def test_a_python_number_is_not_recorded_on_the_tape():
    def f(x):
        before = len(x.interpreter.tape)
        y = x * 2.0 + 1.0 - f64(3.0) * f64(4.0) + x.shape[0]
        places.append(len(x.interpreter.tape) - before)
        return y.sum()

    places = []
    tk.grad(f)(f64([1.0, 2.0]))
    assert places == [4]  # mul, add, sub, add; the product of two constants is none
