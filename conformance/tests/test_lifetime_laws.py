"""lifetime.*: correct backends pass, and backends that share, reuse, leak or overwrite memory fail."""

from __future__ import annotations

import gc
import itertools
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import failed_cases, faulty_backend, run_law
from tensorken_conformance.laws.errors import silent
from tensorken_conformance.laws.lifetime import calls, global_state, growth, memory
from tensorken_conformance.subject import Depth, Subject
from tensorken_core.language.op import Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.wrapper import Wrapper
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

LAWS = ("calls", "caller-memory", "results-stay", "threads")

Change = Callable[..., Any]

MIB = 1 << 20


@pytest.mark.nightly
@pytest.mark.parametrize("law", LAWS)
def test_numpy_passes(law: str) -> None:
    results = run_law(
        Numpy(), f"lifetime.{law}", where=lambda case: case.dtype in ("bool", "float64", "int32")
    )
    assert {result.status for result in results} == {"passed"}
    assert len({result.case.id for result in results}) == len(results) > 30


@pytest.mark.nightly
@pytest.mark.parametrize("law", ["caller-memory", "results-stay", "threads"])
def test_reference_passes(law: str) -> None:
    ops = ("create", "derivative", "batch", "contraction", "sum", "new-numpy", "ravel")
    results = run_law(Reference(), f"lifetime.{law}", 3, where=lambda case: case.op in ops)
    assert {result.status for result in results} == {"passed"}


@pytest.mark.parametrize("law", [*LAWS, "growth"])
def test_numpy_passes_a_smoke_run(law: str) -> None:
    assert {result.status for result in run_law(Numpy(), f"lifetime.{law}", depth="smoke")} == {"passed"}


@pytest.mark.parametrize("law", [calls, global_state, silent])
def test_a_smoke_run_leaves_out_factorizations_without_a_method(law: ModuleType) -> None:
    def ops(backend: RawTensor[Any], depth: Depth) -> set[str]:
        return {case.op for case in law.cases(Subject(backend, "examined", 0, depth))}

    assert ops(Numpy(), "smoke") >= {"svd", "solve"}
    for name in ("Bodies", "Whole"):
        methods = {"svd": RawTensor.svd} if name == "Bodies" else {}
        backend = type(name, (Numpy,), methods)()
        assert ("svd" in ops(backend, "smoke")) is (name == "Whole")
        assert "svd" in ops(backend, "default")
        assert {"add", "exp", "sort"} <= ops(backend, "smoke")


# ---- operands ----------------------------------------------------------------------------------------------


def overwriting_operand(original: Change, x: Any, *rest: Any) -> Any:
    """Overwrite an operand of 65 float64 elements."""
    y = np.array(original(x, *rest))
    if x.shape == (65,) and x.dtype == np.float64 and x.flags.writeable:
        x[0] += 1
    return y


@pytest.mark.parametrize("op", ["relu", "neg", "sub", "max", "cumsum"])
def test_an_overwritten_operand_is_detected(op: str) -> None:
    failed = failed_cases(
        faulty_backend(op, overwriting_operand), "lifetime.calls", where=lambda case: case.op == op
    )
    assert failed == {f"lifetime.calls/{op}/float64"}


def test_an_overwritten_base_of_a_view_is_detected() -> None:
    def change(original: Change, a: Any, b: Any) -> Any:
        y = original(a, b)
        if a.strides[-1:] < (0,) and a.dtype == np.int32 and a.base is not None:
            a[...] = y
        return y

    assert "lifetime.calls/bitwise_xor/int32" in failed_cases(
        faulty_backend("bitwise_xor", change), "lifetime.calls"
    )


# ---- the caller's memory -----------------------------------------------------------------------------------


class Careless(Numpy):
    """Makes int64 tensors of the caller's buffers without a copy."""

    def new(self, shape: Any, data: Any, dtype: Any) -> Any:
        if isinstance(data, memoryview) and dtype.name == "int64":
            return np.asarray(data).reshape(shape)
        return super().new(shape, data, dtype)


class OpenRavel(Numpy):
    """Returns its own memory from `ravel` for bool."""

    def ravel(self, x: Any) -> Any:
        return np.ascontiguousarray(x).reshape(-1) if x.dtype == bool else super().ravel(x)


def test_tensors_that_share_the_callers_buffers_are_detected() -> None:
    failed = failed_cases(Careless(), "lifetime.caller-memory")
    assert any(case.split("/")[1:3] == ["new-numpy", "int64"] for case in failed)


def test_reads_that_share_the_backends_memory_are_detected() -> None:
    failed = failed_cases(OpenRavel(), "lifetime.caller-memory")
    assert failed
    assert all("/bool" in case for case in failed)


def test_overwrite_changes_every_element() -> None:
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
    """Declares that results share no memory, though numpy's movement ops return views."""

    capabilities = replace(Numpy.capabilities, shares_memory=False)


class Copying(Closed):
    """Declares that results share no memory, and copies them."""


def _copy(name: str) -> Change:
    original = getattr(Numpy, name)

    def method(self: Any, *args: Any) -> Any:
        y = original(self, *args)
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


def test_undeclared_views_are_detected() -> None:
    ops = ("reshape", "permute", "flip", "crop", "add", "exp", "pad", "gather")
    failed = failed_cases(Closed(), "lifetime.calls", where=lambda case: case.op in ops)
    views = {case.split("/")[1] for case in failed}
    assert {"reshape", "permute", "flip", "crop"} <= views
    assert not views & {"add", "exp", "pad", "gather"}


def test_copies_pass() -> None:
    assert not failed_cases(
        Copying(),
        "lifetime.calls",
        where=lambda case: case.op in ("reshape", "permute", "flip", "crop", "expand", "add", "sort"),
    )


def test_results_count_the_tensors_whose_memory_is_visible() -> None:
    name = "tensors that show memory"
    for backend, least in ((Numpy(), 1), (Reference(), 0)):
        results = run_law(backend, "lifetime.calls", where=lambda case: case.op == "add")
        assert all((result.figures[name] > 0) == bool(least) for result in results)


def test_overlap_finds_memory_in_objects_with_slots() -> None:
    class Holder:
        __slots__ = ("data",)

        def __init__(self, data: Any) -> None:
            self.data = data

    x = np.arange(6.0)
    assert memory.overlap(Holder(x), (x[2:4],))
    assert not memory.overlap(Holder(x[:3]), Holder(x[3:]))
    assert not memory.overlap(b"abc", "abc")


def test_overlap_reads_no_slot_of_weak_references() -> None:
    class Named:
        __slots__ = "data"

    class Extension(Named):
        __slots__ = ("__weakref__",)

        def __getattribute__(self, name: str) -> Any:
            if name == "__weakref__":
                raise TypeError("descriptor '__weakref__' does not apply to this object")
            return super().__getattribute__(name)

    held = Extension()
    held.data = np.arange(3.0)
    assert memory.overlap(held, (held.data[1:],))


# ---- results -----------------------------------------------------------------------------------------------


class Reusing(Numpy):
    """Returns the same buffer for all products of a shape."""

    def __init__(self) -> None:
        self.buffers: dict[Any, Any] = {}

    def mul(self, a: Any, b: Any) -> Any:
        y = super().mul(a, b)
        buffer = self.buffers.setdefault((y.shape, y.dtype), np.empty(y.shape, y.dtype))
        buffer[...] = y
        return buffer


class Stale(Numpy):
    """Caches results of gather by shapes only."""

    def __init__(self) -> None:
        self.cache: dict[Any, Any] = {}

    def gather(self, x: Any, indices: Any, axis: Any) -> Any:
        return self.cache.setdefault(
            (x.shape, indices.shape, axis, x.dtype), super().gather(x, indices, axis)
        )


class Recycling(Numpy):
    """Reuses the buffer of a result 60 results later."""

    def __init__(self) -> None:
        self.buffers: list[Any] = []

    def flip(self, x: Any, axes: Any) -> Any:
        y = np.array(super().flip(x, axes))
        self.buffers.append(y)
        if len(self.buffers) > 60:
            old = self.buffers.pop(0)
            if old.shape == y.shape and old.dtype == y.dtype:
                old[...] = y
        return y


@pytest.mark.parametrize(
    ("backend", "op"),
    [(Reusing, "product"), (Stale, "gather"), (Recycling, "view")],
)
def test_reused_results_are_detected(backend: Any, op: str) -> None:
    failed = failed_cases(
        backend(), "lifetime.results-stay", where=lambda case: case.op == op and case.detail != "dropped"
    )
    assert {case.rpartition("/")[2] for case in failed} >= {"same-shapes", "interleaved"}


def test_reused_buffers_of_an_elementwise_op_are_detected() -> None:
    buffers: dict[Any, Any] = {}

    def change(original: Change, x: Any) -> Any:
        y = original(x)
        if y.shape != (65,):
            return y
        buffer = buffers.setdefault(y.dtype, np.empty(65, y.dtype))
        buffer[...] = y
        return buffer

    failed = failed_cases(
        faulty_backend("atan", change), "lifetime.calls", where=lambda case: case.op == "atan"
    )
    assert failed == {
        f"lifetime.calls/atan/{dtype}" for dtype in ("float16", "bfloat16", "float32", "float64")
    }


# ---- threads -----------------------------------------------------------------------------------------------


class Hasty(Numpy):
    """Keeps an operand of `add` in an attribute during the call."""

    def add(self, a: Any, b: Any) -> Any:
        self.left = a
        for _ in range(20):
            threading.get_ident()  # lets another thread run
        left = self.left
        return super().add(left if left.shape == a.shape and left.dtype == a.dtype else a, b)


def test_state_shared_by_threads_is_detected() -> None:
    assert failed_cases(
        Hasty(), "lifetime.threads", where=lambda case: case.op == "elementwise" and case.detail != "read"
    )


@pytest.mark.slow
def test_shared_state_of_an_elementwise_op_is_detected() -> None:
    state: dict[str, Any] = {}

    def change(original: Change, x: Any) -> Any:
        state["operand"] = x
        y = original(x)
        return original(state["operand"]) if state["operand"].shape == x.shape else y

    backend = faulty_backend("log1p", change)
    every_op = "lifetime.threads/every-op/float32"
    assert any(  # nearly always the first
        failed_cases(backend, "lifetime.threads", seed, where=lambda case: case.id == every_op)
        for seed in range(3)
    )


def test_an_exception_in_a_thread_is_a_failure() -> None:
    def change(original: Change, a: Any, b: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("only in the main thread")
        return original(a, b)

    results = run_law(
        faulty_backend("sub", change), "lifetime.threads", where=lambda case: case.op == "elementwise"
    )
    messages = {result.says for result in results if result.status == "failed"}
    assert messages == {"RuntimeError in one of 4 threads: only in the main thread"}


class BoundToThreads(Wrapper[Any]):
    """Numpy, whose values only the thread that made them can use."""

    def __init__(self, declares: bool) -> None:
        super().__init__(Numpy())
        self.capabilities = replace(Numpy.capabilities, thread_bound=declares)

    def wrap(self, value: Any) -> Any:
        return threading.get_ident(), value

    def value(self, x: Any) -> Any:
        if x[0] != threading.get_ident():
            raise RuntimeError("a value of another thread")
        return x[1]

    def interpret(self, op: Op, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
        if not self.raw.has(op):
            return super().interpret(op, operands, params)
        result = run(self.raw, op, [self.value(x) for x in operands], params)
        return self.wrap(result) if op.results == 1 else tuple([self.wrap(y) for y in result])

    def new(self, shape: Any, data: Any, dtype: Any) -> Any:
        return self.wrap(self.raw.new(shape, data, dtype))

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        return self.wrap(self.raw.full(shape, value, dtype))

    def shape(self, x: Any) -> Any:
        return self.raw.shape(x[1])

    def dtype(self, x: Any) -> Any:
        return self.raw.dtype(x[1])


@pytest.mark.parametrize("declares", [True, False])
def test_values_that_are_bound_to_threads_stay_in_them_if_that_is_declared(declares: bool) -> None:
    ops = ("elementwise", "compiled", "derivative", "programs")
    results = run_law(
        BoundToThreads(declares),
        "lifetime.threads",
        where=lambda case: case.op in ops and case.dtype == "float32",
    )
    failed = {result.case.detail for result in results if result.status == "failed"}
    assert not failed if declares else failed >= {"shared", "read"}
    assert {result.case.op for result in results} == set(ops)


# ---- repeats -----------------------------------------------------------------------------------------------


class Flaky(Numpy):
    """Returns a wrong last bit in one of fifty calls, regularly or at random."""

    op = "tanh"

    def __init__(self, chance: random.Random | None = None) -> None:
        self.chance, self.calls = chance, Counter[str]()

    def tanh(self, x: Any) -> Any:
        self.calls["tanh"] += 1
        y = super().tanh(x)
        is_wrong = self.calls["tanh"] % 50 == 0 if self.chance is None else self.chance.random() < 0.02
        return np.nextafter(y, y.dtype.type(2)) if is_wrong else y


@pytest.mark.parametrize("chance", [None, *range(10)])
def test_an_error_in_one_of_fifty_calls_is_detected(chance: int | None) -> None:
    backend = Flaky(None if chance is None else random.Random(chance))
    failed = failed_cases(backend, "lifetime.calls", where=lambda case: case.op in ("tanh", "sinh"))
    assert {case.split("/")[1] for case in failed} == {"tanh"}


def test_declared_nondeterminism_passes() -> None:
    class Declared(Flaky):
        capabilities = replace(Numpy.capabilities, nondeterministic=("tanh",))

    assert not failed_cases(Declared(), "lifetime.calls", where=lambda case: case.op == "tanh")


# ---- growth ------------------------------------------------------------------------------------------------


def examine_growth(backend: Any, op: str, detail: str) -> Any:
    """The result of one case of lifetime.growth."""
    from tensorken_conformance.case import Case
    from tensorken_conformance.law import LAWS
    from tensorken_conformance.running.examine import examine
    from tensorken_conformance.subject import Subject
    from tensorken_core.rewriting.fuse import Fuse

    case = Case("lifetime.growth", op, "float32", detail=detail)
    return examine(Subject(Fuse(backend), "leaking"), LAWS["lifetime.growth"], case)


class Leaking(Numpy):
    """Keeps every n-th sum forever."""

    def __init__(self, every: int) -> None:
        self.every, self.calls, self.results = every, 0, list[Any]()

    def add(self, a: Any, b: Any) -> Any:
        y = super().add(a, b)
        self.calls += 1
        if self.calls % self.every == 0:
            self.results.append(y)
        return y


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 50])
def test_leaks_are_detected(every: int) -> None:
    assert examine_growth(Leaking(every), "elementwise", "small").status == "failed"


@pytest.mark.slow
def test_leaks_of_large_tensors_are_detected() -> None:
    """In a new process, as in a run, since this one may reuse memory that other tests freed."""
    code = (
        f"from {__name__} import Leaking, examine_growth; "
        "print(examine_growth(Leaking(1), 'elementwise', 'large').status)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.split() == ["failed"]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_footprint_counts_only_new_objects(monkeypatch: pytest.MonkeyPatch, frozen: bool) -> None:
    released: list[bool] = []
    monkeypatch.setattr(gc, "unfreeze", lambda: released.append(True))  # the test session freezes its objects
    monkeypatch.setattr(gc, "get_freeze_count", lambda: int(frozen))
    existing: list[list[int]] = [[] for _ in range(10_000)]
    with growth.alone():
        before = growth.Footprint.now().objects
        added: list[list[int]] = [[] for _ in range(100)]
        assert before < len(existing) // 10
        assert 90 < growth.Footprint.now().objects - before < 120
    assert (len(added), released) == (100, [True] * (not frozen))


def test_a_cache_with_a_limit_passes() -> None:
    class Caching(Numpy):
        def __init__(self) -> None:
            self.results: list[Any] = []

        def add(self, a: Any, b: Any) -> Any:
            y = super().add(a, b)
            if len(self.results) < 600:
                self.results.append(y)
            return y

    assert examine_growth(Caching(), "elementwise", "small").status == "passed"


def test_memory_that_alternates_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resident memory rises by 8 MiB in each measurement, and falls before the next one."""
    count = itertools.count()
    monkeypatch.setattr(growth, "resident", lambda: (1 << 26) + next(count) % 2 * -8 * MIB)
    monkeypatch.setattr(growth, "PATIENCE", 1e9)
    assert examine_growth(Numpy(), "create", "large").status == "passed"
    assert next(count) == 1 + 2 * 3, "one reading after the warm-up cycles, two in each of three measurements"


def test_leaked_objects_are_detected() -> None:
    class LeakingLists(Numpy):
        results: list[Any] = []  # noqa: RUF012

        def mul(self, a: Any, b: Any) -> Any:
            self.results.append([])
            return super().mul(a, b)

    result = examine_growth(LeakingLists(), "elementwise", "small")
    assert result.status == "failed"
    assert result.figures == {}
    assert "so did each of 3 measurements" in result.says


@pytest.mark.slow
@pytest.mark.parametrize("op", [pytest.param("derivative", marks=pytest.mark.nightly), "reduction"])
def test_numpy_does_not_leak(op: str) -> None:
    result = examine_growth(Numpy(), op, "small")
    assert (result.status, result.says) == ("passed", "")
    assert set(result.figures) == {"cycles", "objects tracked", "bytes allocated"}


def test_resident_memory_is_measured() -> None:
    before = growth.resident()
    block = np.ones(1 << 23)  # too large for memory that was freed before
    assert growth.resident() - before > 3 * block.nbytes // 4
