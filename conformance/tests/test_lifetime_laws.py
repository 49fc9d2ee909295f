"""The laws on lifetimes: right backends keep them, and backends that share, reuse, keep or forget memory do not."""

from __future__ import annotations

import gc
import itertools
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import failures, faulty, results
from tensorken_conformance.laws.lifetime import growth, memory
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

LAWS = ("calls", "caller-memory", "results-stay", "threads")

Change = Callable[..., Any]

MIB = 1 << 20


@pytest.mark.nightly
@pytest.mark.parametrize("law", LAWS)
def test_numpy_passes(law: str) -> None:
    found = results(Numpy(), f"lifetime.{law}", where=lambda case: case.dtype in ("bool", "float64", "int32"))
    assert {result.status for result in found} == {"passed"}
    assert len({result.case.id for result in found}) == len(found) > 30


@pytest.mark.nightly
@pytest.mark.parametrize("law", ["caller-memory", "results-stay", "threads"])
def test_reference_passes(law: str) -> None:
    ops = ("create", "derivative", "batch", "contraction", "sum", "new-numpy", "ravel")
    found = results(Reference(), f"lifetime.{law}", 3, where=lambda case: case.op in ops)
    assert {result.status for result in found} == {"passed"}


@pytest.mark.parametrize("law", [*LAWS, "growth"])
def test_the_quick_run(law: str) -> None:
    assert {result.status for result in results(Numpy(), f"lifetime.{law}", depth="smoke")} == {"passed"}


# ---- operands ----------------------------------------------------------------------------------------------


def writing(right: Change, x: Any, *rest: Any) -> Any:
    """Overwrites its operand when that is float64 and has 65 elements."""
    y = np.array(right(x, *rest))
    if x.shape == (65,) and x.dtype == np.float64 and x.flags.writeable:
        x[0] += 1
    return y


@pytest.mark.parametrize("op", ["relu", "neg", "sub", "max", "cumsum"])
def test_a_written_operand_is_found(op: str) -> None:
    found = failures(faulty(op, writing), "lifetime.calls", where=lambda case: case.op == op)
    assert found == {f"lifetime.calls/{op}/float64"}


def test_a_written_source_of_a_view_is_found() -> None:
    def change(right: Change, a: Any, b: Any) -> Any:
        y = right(a, b)
        if a.strides[-1:] < (0,) and a.dtype == np.int32 and a.base is not None:
            a[...] = y
        return y

    assert "lifetime.calls/bitwise_xor/int32" in failures(faulty("bitwise_xor", change), "lifetime.calls")


# ---- the caller's memory -----------------------------------------------------------------------------------


class Careless(Numpy):
    """Takes the caller's buffers of int64 as they are, and hands out what is contiguous without a copy."""

    def new(self, shape: Any, data: Any, dtype: Any) -> Any:
        if isinstance(data, memoryview) and dtype.name == "int64":
            return np.asarray(data).reshape(shape)
        return super().new(shape, data, dtype)


class Open(Numpy):
    def ravel(self, x: Any) -> Any:
        return np.ascontiguousarray(x).reshape(-1) if x.dtype == bool else super().ravel(x)


def test_kept_buffers_are_found() -> None:
    found = {
        case.split("/")[1:3] == ["new-numpy", "int64"]
        for case in failures(Careless(), "lifetime.caller-memory")
    }
    assert True in found


def test_handed_out_memory_is_found() -> None:
    found = failures(Open(), "lifetime.caller-memory")
    assert found
    assert all("/bool" in case for case in found)


def test_memory_that_is_written_is_other_afterwards() -> None:
    values = np.array([[0.5, -1.0], [np.nan, 0.0]])
    before = values.tobytes()
    assert memory.overwrite(values)
    assert all(values.tobytes()[8 * i : 8 * i + 8] != before[8 * i : 8 * i + 8] for i in range(4))
    nested = [[True, False], [False, True]]
    assert memory.overwrite(nested)
    assert nested == [[False, True], [True, False]]
    assert not memory.overwrite(np.asarray(memoryview(b"abcd")))


# ---- sharing -----------------------------------------------------------------------------------------------


class Closed(Numpy):
    """Declares that nothing is shared, though numpy's movements are views."""

    capabilities = replace(Numpy.capabilities, shares_memory=False)


class Copying(Closed):
    """Shares nothing indeed."""


def _copy(name: str) -> Change:
    right = getattr(Numpy, name)

    def method(self: Any, *args: Any) -> Any:
        y = right(self, *args)
        return tuple(map(np.array, y)) if isinstance(y, tuple) else np.array(y)

    return method


for _name in (
    "reshape",
    "permute",
    "expand",
    "flip",
    "crop",
    "pad",
    "sum",
    "fused_multiply_add",
    "from_bits",
    "to_bits",
):
    setattr(Copying, _name, _copy(_name))


def test_undeclared_views_are_found() -> None:
    watched = ("reshape", "permute", "flip", "crop", "add", "exp", "pad", "gather")
    found = failures(Closed(), "lifetime.calls", where=lambda case: case.op in watched)
    ops = {case.split("/")[1] for case in found}
    assert {"reshape", "permute", "flip", "crop"} <= ops
    assert not ops & {"add", "exp", "pad", "gather"}


def test_copies_share_nothing() -> None:
    assert not failures(
        Copying(),
        "lifetime.calls",
        where=lambda case: case.op in ("reshape", "permute", "flip", "crop", "expand", "add", "sort"),
    )


def test_it_is_told_what_shows_its_memory() -> None:
    name = "tensors that show memory"
    for backend, least in ((Numpy(), 1), (Reference(), 0)):
        found = results(backend, "lifetime.calls", where=lambda case: case.op == "add")
        assert all((result.figures[name] > 0) == bool(least) for result in found)


def test_memory_is_seen_in_what_holds_it() -> None:
    class Holder:
        __slots__ = ("data",)

        def __init__(self, data: Any) -> None:
            self.data = data

    x = np.arange(6.0)
    assert memory.overlap(Holder(x), (x[2:4],))
    assert not memory.overlap(Holder(x[:3]), Holder(x[3:]))
    assert not memory.overlap(b"abc", "abc")


# ---- results -----------------------------------------------------------------------------------------------


class Reusing(Numpy):
    """Has one buffer a shape for what `mul` gives."""

    def __init__(self) -> None:
        self.buffers: dict[Any, Any] = {}

    def mul(self, a: Any, b: Any) -> Any:
        y = super().mul(a, b)
        buffer = self.buffers.setdefault((y.shape, y.dtype), np.empty(y.shape, y.dtype))
        buffer[...] = y
        return buffer


class Stale(Numpy):
    """Remembers what it gathered by the shapes alone."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}

    def gather(self, x: Any, indices: Any, axis: Any) -> Any:
        return self.known.setdefault(
            (x.shape, indices.shape, axis, x.dtype), super().gather(x, indices, axis)
        )


class Recycling(Numpy):
    """Takes a buffer again 60 results later, whoever still has it."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    def flip(self, x: Any, axes: Any) -> Any:
        y = np.array(super().flip(x, axes))
        self.given.append(y)
        if len(self.given) > 60:
            old = self.given.pop(0)
            if old.shape == y.shape and old.dtype == y.dtype:
                old[...] = y
        return y


@pytest.mark.parametrize(
    ("backend", "op"),
    [(Reusing, "product"), (Stale, "gather"), (Recycling, "view")],
)
def test_reused_results_are_found(backend: Any, op: str) -> None:
    found = failures(
        backend(), "lifetime.results-stay", where=lambda case: case.op == op and case.detail != "dropped"
    )
    assert {case.rpartition("/")[2] for case in found} >= {"same-shapes", "interleaved"}


def test_reused_buffers_of_any_op_are_found() -> None:
    buffers: dict[Any, Any] = {}

    def change(right: Change, x: Any) -> Any:
        y = right(x)
        if y.shape != (65,):
            return y
        buffer = buffers.setdefault(y.dtype, np.empty(65, y.dtype))
        buffer[...] = y
        return buffer

    found = failures(faulty("atan", change), "lifetime.calls", where=lambda case: case.op == "atan")
    assert found == {f"lifetime.calls/atan/{dtype}" for dtype in ("float16", "float32", "float64")}


# ---- threads -----------------------------------------------------------------------------------------------


class Hasty(Numpy):
    """Keeps an operand of `add` on itself while it works."""

    def add(self, a: Any, b: Any) -> Any:
        self.left = a
        for _ in range(20):
            threading.get_ident()  # a chance for another thread
        left = self.left
        return super().add(left if left.shape == a.shape and left.dtype == a.dtype else a, b)


def test_state_that_threads_share_is_found() -> None:
    assert failures(
        Hasty(), "lifetime.threads", where=lambda case: case.op == "elementwise" and case.detail != "read"
    )


@pytest.mark.slow
def test_shared_state_of_any_op_is_found() -> None:
    kept: dict[str, Any] = {}

    def change(right: Change, x: Any) -> Any:
        kept["operand"] = x
        y = right(x)
        return right(kept["operand"]) if kept["operand"].shape == x.shape else y

    backend = faulty("log1p", change)
    every_op = "lifetime.threads/every-op/float32"
    assert any(  # by far most often the first
        failures(backend, "lifetime.threads", seed, where=lambda case: case.id == every_op)
        for seed in range(3)
    )


def test_what_a_thread_raises_is_a_failure() -> None:
    def change(right: Change, a: Any, b: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("only in the main thread")
        return right(a, b)

    found = results(faulty("sub", change), "lifetime.threads", where=lambda case: case.op == "elementwise")
    says = {result.says for result in found if result.status == "failed"}
    assert says == {"RuntimeError in one of 4 threads: only in the main thread"}


# ---- repeats -----------------------------------------------------------------------------------------------


class Flaky(Numpy):
    """Is wrong once in fifty calls, by count or by chance, in the last bit."""

    op = "tanh"

    def __init__(self, chance: random.Random | None = None) -> None:
        self.chance, self.calls = chance, Counter[str]()

    def tanh(self, x: Any) -> Any:
        self.calls["tanh"] += 1
        y = super().tanh(x)
        wrong = self.calls["tanh"] % 50 == 0 if self.chance is None else self.chance.random() < 0.02
        return np.nextafter(y, y.dtype.type(2)) if wrong else y


@pytest.mark.parametrize("chance", [None, *range(10)])
def test_what_is_wrong_once_in_fifty_calls_is_found(chance: int | None) -> None:
    backend = Flaky(None if chance is None else random.Random(chance))
    found = failures(backend, "lifetime.calls", where=lambda case: case.op in ("tanh", "sinh"))
    assert {case.split("/")[1] for case in found} == {"tanh"}


def test_declared_nondeterminism_is_no_failure() -> None:
    class Declared(Flaky):
        capabilities = replace(Numpy.capabilities, nondeterministic=("tanh",))

    assert not failures(Declared(), "lifetime.calls", where=lambda case: case.op == "tanh")


# ---- growth ------------------------------------------------------------------------------------------------


def examined(backend: Any, op: str, detail: str) -> Any:
    from tensorken_conformance.case import Case
    from tensorken_conformance.law import LAWS
    from tensorken_conformance.running.examine import examine
    from tensorken_conformance.subject import Subject
    from tensorken_core.rewriting.fuse import Fuse

    case = Case("lifetime.growth", op, "float32", detail=detail)
    return examine(Subject(Fuse(backend), "leaking"), LAWS["lifetime.growth"], case)


class Leaking(Numpy):
    """Keeps what it adds, or every fiftieth of that."""

    def __init__(self, every: int) -> None:
        self.every, self.calls, self.kept = every, 0, list[Any]()

    def add(self, a: Any, b: Any) -> Any:
        y = super().add(a, b)
        self.calls += 1
        if self.calls % self.every == 0:
            self.kept.append(y)
        return y


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 50])
def test_leaks_are_found(every: int) -> None:
    assert examined(Leaking(every), "elementwise", "small").status == "failed"


@pytest.mark.slow
def test_leaks_of_large_tensors_are_found() -> None:
    """In a process of its own, as in a run: this one may have memory left over from other tests."""
    code = f"from {__name__} import Leaking, examined; print(examined(Leaking(1), 'elementwise', 'large').status)"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.split() == ["failed"]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_footprint_is_of_what_comes_meanwhile(monkeypatch: pytest.MonkeyPatch, frozen: bool) -> None:
    released: list[bool] = []
    monkeypatch.setattr(gc, "unfreeze", lambda: released.append(True))  # the tests themselves freeze
    monkeypatch.setattr(gc, "get_freeze_count", lambda: int(frozen))
    there: list[list[int]] = [[] for _ in range(10_000)]
    with growth.alone():
        before = growth.Footprint.now().objects
        added: list[list[int]] = [[] for _ in range(100)]
        assert before < len(there) // 10
        assert 90 < growth.Footprint.now().objects - before < 120
    assert (len(added), released) == (100, [True] * (not frozen))


def test_caches_that_fill_are_no_leaks() -> None:
    class Caching(Numpy):
        def __init__(self) -> None:
            self.kept: list[Any] = []

        def add(self, a: Any, b: Any) -> Any:
            y = super().add(a, b)
            if len(self.kept) < 600:
                self.kept.append(y)
            return y

    assert examined(Caching(), "elementwise", "small").status == "passed"


def test_memory_that_comes_and_goes_is_no_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measurement sees an arena more after its cycles than before; all together see one arena."""
    count = itertools.count()
    monkeypatch.setattr(growth, "resident", lambda: (1 << 26) + next(count) % 2 * -8 * MIB)
    monkeypatch.setattr(growth, "PATIENCE", 1e9)
    assert examined(Numpy(), "create", "large").status == "passed"
    assert next(count) == 1 + 2 * 3, "one reading after the warm cycles, two in each of three measurements"


def test_leaked_objects_are_found() -> None:
    class Rings(Numpy):
        kept: list[Any] = []  # noqa: RUF012

        def mul(self, a: Any, b: Any) -> Any:
            self.kept.append([])
            return super().mul(a, b)

    found = examined(Rings(), "elementwise", "small")
    assert found.status == "failed"
    assert found.figures == {}
    assert "so did each of 3 measurements" in found.says


@pytest.mark.slow
@pytest.mark.parametrize("op", [pytest.param("derivative", marks=pytest.mark.nightly), "reduction"])
def test_numpy_grows_not(op: str) -> None:
    found = examined(Numpy(), op, "small")
    assert (found.status, found.says) == ("passed", "")
    assert set(found.figures) == {"cycles", "objects tracked", "bytes allocated"}


def test_resident_memory_is_measured() -> None:
    before = growth.resident()
    block = np.ones(1 << 23)  # so large that no memory is left over for it
    assert growth.resident() - before > 3 * block.nbytes // 4
