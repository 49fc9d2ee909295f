"""spread, and groups of threads: what differs between members, checks of the group, and errors on every member."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.distributed import Group, join, run_threads
from tensorken_core.errors import ArgumentError, ConcretizationError, GroupError

MEMBERS = 3


def on_each(f: Callable[[Group], Any], timeout: float = 60) -> list[Any]:
    return run_threads(f, MEMBERS, timeout=timeout)


def errors_of_all(f: Callable[[Group], Any], timeout: float = 60) -> list[str]:
    """The message of the GroupError that each member gets."""
    messages: dict[int, str] = {}

    def run(group: Group) -> None:
        try:
            f(group)
        except GroupError as error:
            messages[group.rank] = str(error)

    on_each(run, timeout)
    return [messages[rank] for rank in sorted(messages)]


def loss(w: Any, x: Any) -> Any:
    return ((x * w).sum() - 1.0) ** 2


def step(w: Any, x: Any) -> Any:
    value, gradient = tk.psum(tk.value_and_grad(loss)(w, x), "workers")
    return w - 0.1 * gradient, value


X = np.arange(12.0, dtype="float32").reshape(MEMBERS, 4) / 10
W = tk.tensor([0.5, -0.25, 1.0, 0.0])


def test_one_program_text_serves_vmap_and_members() -> None:
    expected = tk.vmap(step, (None, 0), None, axis_name="workers")(W, tk.tensor(X))
    for compiled in (False, True):

        def run(group: Group, compiled: bool = compiled) -> Any:
            spread = tk.spread(step, group, (None, 0), None)
            return (tk.jit(spread) if compiled else spread)(W, X[group.rank])

        for w, value in on_each(run):
            np.testing.assert_allclose(w, expected[0], rtol=1e-6)
            np.testing.assert_allclose(value, expected[1], rtol=1e-6)


def test_keywords_and_results_that_differ() -> None:
    results = on_each(
        lambda group: tk.spread(
            lambda x, *, y: {"own": x * y, "sum": tk.psum(x, "workers")}, group, 0, {"own": 0, "sum": None}
        )(tk.tensor(1.0 + group.rank), y=2.0)
    )
    assert [(r["own"].item(), r["sum"].item()) for r in results] == [(2.0, 6.0), (4.0, 6.0), (6.0, 6.0)]


def test_results_never_share_memory_with_operands_or_other_members() -> None:
    class Alone(Group):
        size, rank = 1, 0

        def all_gather(self, x: Any) -> Any:
            assert not x.flags.writeable
            return x[None]

    x = tk.tensor(X)
    for f in (lambda x: tk.all_gather(x, "workers"), lambda x: tk.ppermute(x, "workers", [(0, 0)])):
        assert not np.shares_memory(tk.spread(f, Alone())(x).array, x.array)

    def run(group: Group) -> tuple[Any, Any]:
        own = np.full(4, float(group.rank))
        received = group.permute(own, [(i, (i + 1) % MEMBERS) for i in range(MEMBERS)])
        own[:] = -1
        group.all_gather(own)
        return received, group.all_reduce(received, "sum")

    results = on_each(run)
    for rank, (received, total) in enumerate(results):
        np.testing.assert_array_equal(received, np.full(4, (rank - 1) % MEMBERS))
        np.testing.assert_array_equal(total, np.full(4, 3.0))
        assert not any(np.shares_memory(total, other) for _, other in results[:rank])


def test_members_take_part_in_loops_until_the_last_has_ended() -> None:
    """A condition that differs: each member takes as many steps as any, and keeps its values after its own last one."""

    def count(n: Any) -> Any:
        return tk.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + tk.psum(1.0 * c[0], "workers")), (0, 0.0)
        )

    for compiled in (count, tk.jit(count)):
        one = tk.vmap(compiled, axis_name="workers")(tk.tensor([1, 3, 2]))
        members = on_each(lambda group, f=compiled: tk.spread(f, group)(tk.tensor([1, 3, 2][group.rank])))  # type: ignore[misc]
        for i in range(2):
            np.testing.assert_array_equal(np.stack([np.asarray(m[i]) for m in members]), one[i])


def test_loops_without_collectives_stay_in_each_member() -> None:
    calls: list[int] = []

    class Counted(Group):
        def __init__(self, group: Group) -> None:
            self.group, self.size, self.rank = group, group.size, group.rank

        def all_gather(self, x: Any) -> Any:
            calls.append(self.rank)
            return self.group.all_gather(x)

    def run(group: Group) -> Any:
        f = lambda n: tk.while_loop(lambda c: c < n, lambda c: c + 1, 0)  # noqa: E731
        return tk.spread(f, Counted(group))(tk.tensor(5 * group.rank)).item()

    assert on_each(run) == [0, 5, 10]
    assert not calls


def test_spread_within_vmap_and_within_grad() -> None:
    def scaled(x: Any) -> Any:
        return x * tk.psum(x, "workers")

    def run(group: Group) -> Any:
        spread = tk.spread(scaled, group)
        own = tk.tensor(X[group.rank])
        return tk.vmap(spread)(own), tk.grad(lambda x: (spread(x) ** 2).sum())(own)

    expected = tk.grad(lambda x: ((x * x.sum(0)) ** 2).sum())(tk.tensor(X))
    for rank, (values, gradient) in enumerate(on_each(run)):
        np.testing.assert_allclose(values, X[rank] * X.sum(0), rtol=1e-6)
        np.testing.assert_allclose(gradient, expected[rank], rtol=1e-5)


def test_the_methods_that_a_group_need_not_write() -> None:
    """all_reduce, all_to_all and permute by all_gather, for every dtype."""

    class Gathering(Group):
        def __init__(self, group: Group) -> None:
            self._group, self.size, self.rank = group, group.size, group.rank

        def all_gather(self, x: Any) -> Any:
            return self._group.all_gather(x)

    def run(group: Group) -> Any:
        results = []
        for dtype in ("bool", "int32", "int64", "float16", "float32", "float64"):
            x = (np.arange(MEMBERS * 2).reshape(MEMBERS, 2) + group.rank > 3).astype(dtype)
            both = [group, Gathering(group)]
            results.append([[g.all_reduce(x, op) for op in ("sum", "max", "min")] for g in both])
            results.append([[g.all_to_all(x), g.permute(x, ((0, 1), (2, 0)))] for g in both])
        return results

    for member in on_each(run):
        for own, gathered in member:
            for a, b in zip(own, gathered, strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(a, b)


# ---- errors --------------------------------------------------------------------------------------------------


def test_members_that_call_other_collectives_get_an_error() -> None:
    def run(group: Group) -> None:
        op = tk.pmax if group.rank == 1 else tk.psum
        tk.spread(lambda x: op(x, "workers"), group)(1.0)

    messages = errors_of_all(run)
    assert len(messages) == MEMBERS
    for message in messages:
        assert "the members run different programs: member" in message
        assert "call the same collectives in the same order on all members" in message
        assert "\n" not in message


def test_members_with_other_shapes_or_axes_get_an_error() -> None:
    for name, shape in (("rows", (2,)), ("workers", (3,))):

        def run(group: Group, name: str = name, shape: Any = shape) -> None:
            axis = name if group.rank else "workers"
            x = tk.ones(shape if group.rank else (2,))
            tk.spread(lambda x: tk.psum(x, axis), group, axis_name=axis)(x)

        assert len(errors_of_all(run)) == MEMBERS


def test_a_member_that_ends_or_fails_ends_the_group() -> None:
    def ends(group: Group) -> None:
        if group.rank:
            f = tk.spread(lambda x: tk.psum(x, "workers"), group)
            try:
                f(1.0)
            finally:
                with pytest.raises(
                    GroupError, match="the group has failed before: the threads of the members"
                ):
                    f(1.0)

    messages = errors_of_all(ends)
    assert len(messages) == MEMBERS - 1
    assert all("got no answer from all others" in message for message in messages)

    def fails(group: Group) -> Any:
        if group.rank == 1:
            raise ZeroDivisionError("of member 1")
        return tk.spread(lambda x: tk.psum(x, "workers"), group)(1.0)

    with pytest.raises(ZeroDivisionError, match="of member 1"):
        on_each(fails)


def test_a_member_that_is_late_is_an_error() -> None:
    late = threading.Event()

    def run(group: Group) -> None:
        if group.rank == 0:
            late.wait(30)
        else:
            try:
                tk.spread(lambda x: tk.psum(x, "workers"), group)(1.0)
            finally:
                late.set()

    messages = errors_of_all(run, timeout=0.2)
    assert len(messages) == MEMBERS - 1
    assert all("within 0.2 s" in message for message in messages)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda group: tk.spread(tk.sin, None), ArgumentError, "spread: need a group, got NoneType"),
        (
            lambda group: tk.spread(tk.sin, group, axis_size=4),
            ArgumentError,
            "need 4 members, and the group has 3",
        ),
        (
            lambda group: tk.spread(tk.sin, group, axis_name=None),
            ArgumentError,
            "the axis needs a name, got None",
        ),
        (
            lambda group: tk.spread(tk.sin, group, 0, None)(1.0),
            ArgumentError,
            "may differ between the members",
        ),
        (
            lambda group: tk.spread(tk.sin, group, (0, 0))(1.0),
            ArgumentError,
            "spread: in_axes (0, 0) has 2 entries",
        ),
        (lambda group: tk.spread(float, group)(1.0), ConcretizationError, "use tk.where"),
        (lambda group: run_threads(print, 0), ArgumentError, "need a positive number of threads, got 0"),
        (
            lambda group: join("carrier pigeons"),
            ArgumentError,
            "no plugin has a group named 'carrier pigeons'",
        ),
    ],
)
def test_bad_calls_get_one_clear_line(call: Callable[[Group], Any], error: Any, message: str) -> None:
    with pytest.raises(error) as caught:
        on_each(call)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
