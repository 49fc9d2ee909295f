"""Profiles: each op is recorded once, when it runs, with its line; the end of a profile restores everything."""

from __future__ import annotations

import inspect
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import tensorken as tk
import tensorken_profile
from core.tests.support import Counting, Required
from tensorken.lazy.interpreter import Lazy
from tensorken_core.errors import ArgumentError
from tensorken_core.host.registry import REGISTRY
from tensorken_core.language.observe import OBSERVERS
from tensorken_core.language.op import OPS
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.rewriting.shape_tracker import ShapeTracker
from tensorken_core.rewriting.wrapper import Wrapper
from tensorken_numpy.backend import Numpy
from tensorken_profile.instrumentation import Instrumented
from tensorken_reference.backend import Reference


def model(x: Any) -> Any:
    hidden = tk.tanh(x @ x.T)  # the hidden values
    return (hidden @ x).sum()  # the sum


def line(comment: str) -> str:
    """`FILE:LINE: SOURCE` of the line of this file that ends in a comment."""
    lines = enumerate(inspect.getsource(sys.modules[__name__]).splitlines(), 1)
    ((number, source),) = [(i, text.strip()) for i, text in lines if text.endswith(f"  # {comment}")]
    return f"{__file__}:{number}: {source}"


def counts(p: tensorken_profile.Profile, category: str = "op") -> dict[str, int]:
    return dict(Counter([event.name for event in p.events if event.category == category]))


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "plain": model,
    "grad": tk.grad(model),
    "forward": lambda x: tk.jvp(model, (x,), (x,)),
    "vmap": lambda x: tk.vmap(model)(tk.stack([x, x])),
    "per example": lambda x: tk.vmap(tk.grad(model))(tk.stack([x, x])),
    "second": tk.grad(lambda x: (tk.grad(model)(x) ** 2).sum()),
    "hessian": lambda x: tk.hessian(lambda v: model(v.reshape((2, 2))))(x.ravel()),
    "checkpoint": tk.grad(tk.checkpoint(model)),
}


@pytest.mark.parametrize("wrap", [Fuse, lambda raw: ShapeTracker(Fuse(raw)), ShapeTracker, lambda raw: raw])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_each_op_is_recorded_once_under_any_transform(name: str, wrap: Callable[[Any], Any]) -> None:
    raw = Counting()
    x = tk.tensor([[1.0, 2.0], [3.0, 4.0]], backend=wrap(raw))
    raw.clear()
    with tk.profile() as p:
        tk.tree.map(lambda y: y.tolist(), TRANSFORMS[name](x))
    recorded = {
        name: count for name, count in counts(p).items() if name in OPS
    }  # not the checkpoint's function
    assert recorded == dict(raw.calls)
    assert raw.calls


@pytest.mark.parametrize("name", TRANSFORMS)
def test_results_are_the_same_with_and_without_a_profile(name: str) -> None:
    def run() -> Any:
        return tk.tree.map(lambda y: y.tolist(), TRANSFORMS[name](x))

    x = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
    alone = run()
    with tk.profile():
        assert run() == alone
    assert run() == alone


def test_deferred_work_is_recorded_when_it_runs() -> None:
    x = tk.eye(8)
    with tk.profile() as p:
        y = (x[:, :, None] * x[None]).sum(1)  # the product
        assert "fused_multiply_add" not in counts(p)
        y.tolist()  # the read
    (event,) = [event for event in p.events if event.name == "fused_multiply_add"]
    assert str(event.line) == line("the read")
    assert (event.flop, event.bytes) == (2 * 8**3, 3 * 8 * 8 * 4)
    assert counts(p, "data") == {"ravel": 1}


def test_a_body_does_not_count_its_inner_ops() -> None:
    x = tk.tensor([[1.0, 2.0]], backend=Required())
    with tk.profile() as p:
        tk.softmax(x)
    (outer,) = [event for event in p.events if event.name == "softmax"]
    assert outer.flop == outer.bytes == 0
    assert {"exp", "max"} <= set(counts(p))
    inner = [event for event in p.events if event is not outer]
    assert all(
        [outer.start <= e.start and e.start + e.duration <= outer.start + outer.duration for e in inner]
    )
    assert 0 <= outer.self_time <= outer.duration - max([event.duration for event in inner])


def test_self_times_add_up_to_less_than_the_block() -> None:
    x = tk.eye(30)
    with tk.profile() as p:
        for _ in range(20):
            tk.grad(model)(x)
    assert 0 < sum([event.self_time for event in p.events]) < 1e9 * p.time
    assert sum([row.share for row in p.by_op()]) == pytest.approx(1.0)
    assert sum([row.calls for row in p.by_op()]) == len(p.events) == sum([row.calls for row in p.by_line()])


# ---- lines -------------------------------------------------------------------------------------------------


def test_time_is_attributed_to_the_users_lines() -> None:
    with tk.profile() as p:
        model(tk.eye(4)).item()  # the call
    rows = {row.name: row for row in p.by_line()}
    assert set(rows) == {line("the hidden values"), line("the sum"), line("the call")}
    assert rows[line("the hidden values")].flop >= 2 * 4**3 + 16


def test_a_derivative_belongs_to_the_line_that_computed_the_value() -> None:
    x = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
    with tk.profile() as p:
        tk.grad(model)(x)
    (event,) = [event for event in p.events if event.name == "sech_squared"]
    assert str(event.line) == line("the hidden values")
    assert {event.derivative_of for event in p.events if event.derivative_of} >= {"tanh"}
    assert not [event for event in p.events if event.derivative_of is None and event.name == "sech_squared"]


def test_an_equation_belongs_to_the_line_that_it_was_traced_from() -> None:
    f = tk.jit(model)
    x = tk.tensor([[1.0, 2.0]], backend=Fuse(Reference()))
    f(x)
    with tk.profile() as p:
        f(x)
    assert {str(event.line) for event in p.events if event.name == "tanh"} == {line("the hidden values")}


# ---- programs ----------------------------------------------------------------------------------------------


def test_each_call_of_a_program_is_an_event_and_preparing_it_another() -> None:
    f = tk.jit(model)
    x = tk.eye(8) + 1.0
    with tk.profile() as p:
        for _ in range(3):
            f(x)
    assert counts(p, "trace") == counts(p, "prepare") == {"model": 1}
    assert counts(p, "program") == {"model": 3}
    rows = {row.name: row for row in p.by_op()}
    assert rows["trace model"].time > 0
    assert rows["prepare model"].time > 0
    assert rows["model"].flop >= 3 * 2 * 2 * 8**3
    with tk.profile() as again:
        f(x)
    assert counts(again, "trace") == counts(again, "prepare") == {}
    assert counts(again, "program") == {"model": 1}


def test_the_cost_of_a_program_does_not_depend_on_the_wrappers_representation() -> None:
    f = tk.jit(lambda x: tk.tanh(x @ x).sum())
    costs = set()
    for x in (tk.ones((30, 30)), tk.arange(900, dtype="float32").reshape((30, 30))):
        with tk.profile() as p:
            f(x)
        (event,) = [event for event in p.events if event.category == "program"]
        costs.add((event.flop, event.bytes))
    assert costs == {(2 * 30**3 + 2 * 30**2, 4 * 30**2 + 4)}


def test_programs_with_donated_operands_are_recorded() -> None:
    f = tk.jit(lambda x, y: (tk.sin(x) * y, y + 1.0), donate_argnums=(0, 1))
    x, y = [tk.arange(90_000, dtype="float32").reshape((300, 300)) / 9e4 for _ in range(2)]
    with tk.profile() as p:
        x, y = f(x, y)
        x, y = f(x, y)
    events = [event for event in p.events if event.category == "program"]
    assert [event.operands for event in events] == [(((300, 300), tk.float32),) * 2] * 2
    assert [event.bytes for event in events] == [4 * 360_000] * 2
    assert p.peak_bytes <= 2 * 360_000


def test_a_result_that_is_an_operand_or_a_view_of_it_takes_no_memory() -> None:
    x = tk.arange(600, dtype="float32").reshape((20, 30))
    with tk.profile() as p:
        results = tk.jit(lambda x: (x, x.T, x[3:]))(x)
    assert p.peak_bytes == 0
    del results


@pytest.mark.parametrize(
    ("transform", "names"),
    [
        (lambda f: tk.grad(f), {"grad of model"}),
        (lambda f: lambda x: tk.jvp(f, (x,), (x,)), {"jvp of model"}),
        (lambda f: lambda x: tk.vmap(f)(tk.stack([x, x])), {"vmap of model"}),
    ],
    ids=["grad", "jvp", "vmap"],
)
def test_programs_of_derivatives_and_batches_have_their_names(
    transform: Callable[[Any], Any], names: set[str]
) -> None:
    x = tk.eye(4)
    with tk.profile() as p:
        transform(tk.jit(model))(x)
    assert set(counts(p, "program")) == names == set(counts(p, "prepare"))


def test_ops_of_a_program_that_is_run_op_by_op_appear() -> None:
    f = tk.jit(model)
    x = tk.tensor([[1.0, 2.0]], backend=Fuse(Reference()))
    with tk.profile() as p:
        f(x).item()
    assert counts(p)["tanh"] == 1
    (program,) = [event for event in p.events if event.category == "program"]
    assert program.flop == 0  # its ops count
    assert sum([event.flop for event in p.events]) >= 2 * 2 + 1


def test_each_step_of_a_loop_is_an_event() -> None:
    with tk.profile() as p:
        tk.scan(lambda total, x: (total * 2.0 + x, total), tk.tensor(0.0), tk.arange(5, dtype="float32"))
    programs = counts(p, "program")
    assert programs.pop("scan") == 1
    assert set(programs.values()) == {5}


def test_profiling_does_not_change_symbolic_programs() -> None:
    f = tk.jit(lambda x: tk.sin(x) + 1)
    with tk.profile() as p:
        assert str(f(tk.symbol("x"))) == str(tk.sin(tk.symbol("x")) + 1)
    assert counts(p, "program") == {"<lambda>": 1}


def test_a_lazy_backend_prepares_its_work_once_under_any_number_of_profiles() -> None:
    backend = Lazy(Numpy())
    x = tk.tensor([1.0, 2.0], backend=backend)

    def work() -> None:
        tk.exp(tk.sin(x)).tolist()  # the read of deferred work

    profiles = [tk.profile() for _ in range(3)]
    for p in profiles:
        with p:
            work()
    assert [sum(counts(p, "prepare").values()) for p in profiles] == [1, 0, 0]
    for p in profiles:
        assert {event.line and str(event.line) for event in p.events if event.category == "program"} == {
            line("the read of deferred work")
        }
        assert sum([event.flop for event in p.events]) == 4
        assert counts(p, "data") == {"ravel": 1}


# ---- memory ------------------------------------------------------------------------------------------------


def test_results_count_from_creation_until_they_are_freed() -> None:
    x = tk.arange(1000, dtype="float32")
    with tk.profile() as p:
        y = tk.sin(x)
        z = tk.cos(y)
        del y
        halves = [z[:500], z[500:], z.reshape((10, 100)).T]  # views of counted results
        del z
        assert p.memory[-1][1] == 4000
        del halves
    assert [size for _, size in p.memory] == [4000, 8000, 4000, 0]
    assert p.peak_bytes == 8000
    times = [when for when, _ in p.memory]
    assert times == sorted(times)
    assert 0 < times[0] < times[-1] < p.time


def test_a_view_takes_no_memory_and_a_copy_does() -> None:
    x = tk.arange(600, dtype="float32").reshape((20, 30))
    with tk.profile() as p:
        views = [x.T, x[3:], tk.flip(x)]
        assert p.peak_bytes == 0
        copy = x.T.reshape((600,))
    assert p.peak_bytes == 2400
    del views, copy


def test_nothing_is_kept_alive() -> None:
    raw = Counting()
    backend = Fuse(raw)
    x = tk.arange(10, dtype="float32", backend=backend)
    with tk.profile() as p:
        for _ in range(5):
            tk.exp(tk.sin(x))
    assert p.peak_bytes <= 3 * 40
    assert p.memory[-1][1] <= 40


def test_memory_that_cannot_be_tracked_is_reported() -> None:
    x = tk.tensor([1.0, 2.0], backend=Fuse(Reference()))
    with tk.profile() as p:
        tk.exp(x)
    assert p.peak_bytes == 0
    assert str(p).endswith("and 8 B that cannot be tracked")


# ---- threads, several profiles, errors ---------------------------------------------------------------------


def test_events_carry_their_thread() -> None:
    x = tk.ones(3) + tk.zeros(3)

    def work() -> None:
        for _ in range(50):
            tk.sin(x)

    with tk.profile() as p:
        threads = [threading.Thread(target=work, name=f"worker {i}") for i in range(3)]
        for thread in threads:
            thread.start()
        tk.cos(x)
        for thread in threads:
            thread.join()
    by_thread = Counter([(p.threads[event.thread], event.name) for event in p.events])
    main = threading.current_thread().name
    assert by_thread == {**{(f"worker {i}", "sin"): 50 for i in range(3)}, (main, "cos"): 1}
    assert ", in 4 threads; " in str(p)


def test_profiles_may_overlap_and_nest() -> None:
    x = tk.ones(3) + tk.zeros(3)
    first, second = tk.profile(), tk.profile()
    first.__enter__()
    tk.sin(x)
    second.__enter__()
    tk.cos(x)
    first.__exit__(None, None, None)
    tk.exp(x)
    second.__exit__(None, None, None)
    tk.log(x)
    assert counts(first) == {"sin": 1, "cos": 1}
    assert counts(second) == {"cos": 1, "exp": 1}


def test_profiles_and_debug_nans_combine() -> None:
    x = tk.tensor([1.0, 4.0])
    for outer, inner in ((tk.profile, tk.debug_nans), (tk.debug_nans, tk.profile)):
        with outer() as p, inner() as q:
            tk.sqrt(x)
            with pytest.raises(tk.errors.NonFiniteError, match="sqrt"):
                tk.sqrt(-x)
        assert counts(p or q)["sqrt"] == 2


def test_the_end_of_a_profile_restores_everything() -> None:
    backend = Fuse(Reference())
    x = tk.tensor([1.0], backend=backend)
    tk.ones(3)
    with pytest.raises(ZeroDivisionError), tk.profile() as p:  # noqa: PT012
        tk.sin(x)
        assert type(backend.raw) is Instrumented
        assert repr(backend) == "Fuse(Reference())"
        1 / 0  # noqa: B018
    assert OBSERVERS == []
    for wrapper in (backend, *REGISTRY.loaded()):
        assert not (isinstance(wrapper, Wrapper) and type(wrapper.raw) is Instrumented)
    count = len(p.events)
    tk.sin(x)
    assert len(p.events) == count == 1
    assert p.time == p.time


def test_a_failing_op_is_not_recorded() -> None:
    class Failing(Reference):
        def sin(self, x: Any) -> Any:
            raise RuntimeError("no sine today")

    x = tk.tensor([1.0], backend=Fuse(Failing()))
    with tk.profile() as p:
        with pytest.raises(RuntimeError, match="no sine today"):
            tk.sin(x)
        tk.cos(x)
    assert counts(p) == {"cos": 1}
    assert p.events[0].line is not None


def test_a_profile_cannot_be_reused() -> None:
    with tk.profile() as p:
        pass
    with pytest.raises(ArgumentError, match="another"), p:
        pass
    assert str(p).startswith("op  calls  time  bytes  FLOP  share\n0 s recorded of ")
    assert p.peak_bytes == 0


def test_without_a_profile_an_op_makes_no_extra_calls(calls: Callable[[Callable[[], object]], int]) -> None:
    x = tk.ones(3) + tk.zeros(3)

    def count() -> int:  # the fewest: the first call fills caches, and the garbage collector may call others
        return min(calls(lambda: tk.sin(x)) for _ in range(5))

    before = count()
    with tk.profile():
        assert before < count() < before + 120
    assert count() == before
