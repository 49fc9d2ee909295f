"""Programs as machine code compute what numpy's executor does, however arguments lie, and in several threads."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.beyond_range import NUMBERS
from core.tests.random_programs.design import by_design
from core.tests.random_programs.drawing import drawn
from core.tests.random_programs.judging import leaves_of
from core.tests.support import Required
from core.tests.threads import together
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.errors import TensorkenError
from tensorken_core.language.dtypes import DTYPES, round_float
from tensorken_core.program.program import Program
from tensorken_llvm import cache, dtypes, machine as target_cpu, nests, scalars
from tensorken_llvm.builder import has_wide_vectors
from tensorken_llvm.plugin import tensorken_compile, tensorken_report_header
from tensorken_llvm.program import MachineProgram, compiled
from tensorken_numpy.backend import Numpy

NUMPY = Numpy()
MIXED = np.random.default_rng(0).normal(size=(6, 8)).astype("float32")


def traced(f: Callable[..., Any], *arrays: Any) -> Program:
    return optimised(tk.trace(f)(*[tk.tensor(x, backend=NUMPY) for x in arrays]), NUMPY)


def machine(f: Callable[..., Any], *arrays: Any) -> MachineProgram:
    found = compiled(traced(f, *arrays), NUMPY)
    assert isinstance(found, MachineProgram)
    return found


def kernels(program: MachineProgram) -> int:
    """The number of functions in which Python is not asked."""
    return len(program.layout.names)


def check(found: Any, expected: Any, what: str = "", scale: float = 0.0) -> None:
    """Compare arrays: bits of integers and specials, and floats within some units of the largest, or of a scale."""
    expected = np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), what
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected, what)
        return
    wide = expected.astype("float64")
    finite = np.isfinite(wide)
    unit = {"float16": 1e-3, "float32": 1.2e-7, "float64": 2.3e-16}[expected.dtype.name]
    largest = np.abs(wide[finite]).max(initial=max(scale, 1e-300))
    np.testing.assert_allclose(
        found[finite].astype("float64"), wide[finite], rtol=16 * unit, atol=8 * unit * largest, err_msg=what
    )
    np.testing.assert_array_equal(found[~finite], expected[~finite], what)


# ---- random programs ---------------------------------------------------------------------------------------


def check_seed(seed: int) -> int:
    """Compare each step of a random program with numpy's; the number of steps that were compiled."""
    draft, count = drawn(seed), 0
    for step in draft.steps:
        part = draft.program.only([step], draft.found)
        leaves = leaves_of(part)
        names = list(leaves)

        def run(*xs: Any, part: Any = part, names: list[str] = names, step: Any = step) -> list[Any]:
            found = part.run(tk, dict(zip(names, xs, strict=True)))
            return [found[name] for name in step.names]

        xs = list(leaves.values())
        try:
            program = traced(run, *xs)
        except (TensorkenError, TypeError):  # of a step that is not traced
            continue
        code = compiled(program, NUMPY)
        if code is None:
            continue
        count += 1
        scale = max([largest_of(x) for x in xs], default=0.0)  # where results cancel, operands are rounded
        with np.errstate(all="ignore"):
            expected = program.replay(NUMPY, xs)
            nearby = program.replay(NUMPY, [next_above(x) for x in xs])
            for _ in range(2):
                for y, z, other in zip(code(xs), expected, nearby, strict=True):
                    differs = by_design(step, leaves, y, np.asarray(z))  # such as where a sum overflows
                    if np.asarray(z).dtype.kind == "f":
                        differs |= np.abs(y - z) <= 2 * np.abs(other - z)  # operands are not known better
                    check(np.where(differs, z, y), z, f"seed {seed}: {step.line}", scale)
    return count


def next_above(x: Any) -> Any:
    """The next larger numbers; integers and bools stay."""
    return np.nextafter(x, x.dtype.type(np.inf)) if x.dtype.kind == "f" else x


def largest_of(x: Any) -> float:
    """The largest finite magnitude of an array."""
    wide = np.abs(np.asarray(x, "float64"))
    return float(wide[np.isfinite(wide)].max(initial=0.0))


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 5])
def test_steps_of_random_programs(first: int) -> None:
    assert sum(map(check_seed, range(first, first + 5))) > 5


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(10, 1010, 20))
def test_steps_of_many_random_programs(first: int) -> None:
    assert sum(map(check_seed, range(first, first + 20))) > 20


# ---- arguments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lay",
    [
        np.asfortranarray,
        lambda x: x[::-1],
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view("float32").reshape(x.shape),
    ],
    ids=["transposed", "flipped", "strided", "repeated", "unaligned"],
)
def test_arguments_may_lie_in_every_way(lay: Any) -> None:
    code = machine(lambda x, y: x * 2.0 + y, MIXED, MIXED)
    x = lay(MIXED)
    check(code([x, MIXED])[0], x * 2 + MIXED)
    check(code([MIXED, x])[0], MIXED * 2 + x)


def test_arguments_may_be_read_only_or_the_same_twice() -> None:
    code = machine(lambda x, y: (x + y, x - y), MIXED, MIXED)
    x = MIXED.copy()
    x.flags.writeable = False
    total, rest = code([x, x])
    check(total, 2 * x)
    check(rest, 0 * x)


def test_results_stay_and_share_no_memory() -> None:
    code = machine(lambda x: (x * 2.0, x.T + 1.0, x.sum(0)), MIXED)
    first = code([MIXED])
    copies = [y.copy() for y in first]
    second = code([MIXED + 1])
    for y, z in zip(first, copies, strict=True):
        np.testing.assert_array_equal(y, z)
    arrays = [MIXED, *first, *second]
    for i, y in enumerate(arrays):
        assert not any([np.shares_memory(y, z) for z in arrays[:i]])


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_arrays_may_be_empty(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, "float32")
    code = machine(lambda x, y: (x * 2.0, x.sum(0), y + 1.0), x, MIXED)
    found = code([x, MIXED])
    for y, z in zip(found, (x * 2, x.sum(0), MIXED + 1), strict=True):
        check(y, z)


# ---- kernels -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_a_softmax_is_one_kernel(axis: Any) -> None:
    code = machine(lambda x: tk.softmax(x, axis), MIXED)
    assert len(code.source().plan.steps) == kernels(code) == 1
    check(code([MIXED])[0], np.exp(MIXED) / np.exp(MIXED).sum(axis, keepdims=True))


def test_an_op_of_the_backend_runs_between_kernels() -> None:
    square = MIXED[:, :6]
    code = machine(lambda x: tk.sort(x * 2.0, axis=0) + x, square)
    assert kernels(code) == 2
    check(code([square])[0], np.sort(square * 2, axis=0) + square)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2), (1, 2)])
def test_long_sums_are_accurate(dtype: str, axis: Any) -> None:
    x = np.random.default_rng(1).uniform(0, 1, (3, 5000, 7)).astype(dtype)
    code = machine(lambda x: x.sum(axis), x)
    expected = x.astype("float64").sum(axis)
    tolerance = {"float16": 1e-3, "float32": 5e-7, "float64": 1e-14}[
        dtype
    ]  # in float64 5000 numbers one by one
    np.testing.assert_allclose(code([x])[0].astype("float64"), expected, rtol=tolerance)


def test_numbers_beyond_the_range_are_infinite() -> None:
    for dtype in (DTYPES["float16"], DTYPES["float32"]):
        for number in NUMBERS:
            assert dtypes.number(number, dtype).constant == round_float(number, dtype)


def test_sums_and_maxima_of_special_values() -> None:
    x = np.array([[np.inf, 1, -np.inf], [np.nan, 2, -0.0], [3, -0.0, -0.0]], "float32")
    code = machine(lambda x: (x.sum(1), x.max(1), x.max(0), x.sum(0)), x)
    with np.errstate(invalid="ignore"):
        expected = x.sum(1), x.max(1), x.max(0), x.sum(0)
    for y, z in zip(code([x]), expected, strict=True):
        np.testing.assert_array_equal(y, z)


# ---- threads, files, the plugin ----------------------------------------------------------------------------


def test_threads_run_one_program_at_once() -> None:
    x = np.random.default_rng(2).normal(size=(300, 300)).astype("float32")  # large enough to release the lock
    code = machine(lambda x: tk.tanh(x).sum(0) * x + tk.exp(x.T), x)
    inputs = [x + i for i in range(4)]
    expected = [code([y])[0].copy() for y in inputs]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(50):
            if not np.array_equal(code([inputs[i]])[0], expected[i]):
                wrong.append(i)

    together(4, work)
    assert not wrong


def test_doctor_describes_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    machine(lambda x: x * 11.0, MIXED)
    assert re.fullmatch(
        rf"LLVM [\d.]+ \(llvmlite [\d.]+\), [\w-]+(, vectors of \d+ bits)?; cache: {re.escape(str(tmp_path))}, "
        r"1 files of 0\.0 MiB",
        tensorken_report_header(),
    )
    monkeypatch.setenv(cache.VARIABLE, "0")
    assert tensorken_report_header().endswith("; cache: none")


def test_only_numpy_is_compiled() -> None:
    program = traced(lambda x: x * 2.0, MIXED)
    assert tensorken_compile(program, NUMPY) is not None
    assert tensorken_compile(program, Required()) is None  # a subclass may compute otherwise
    assert tensorken_compile(traced(lambda x: tk.sort(x, axis=0), MIXED), NUMPY) is None  # nothing to compile


def test_jit_uses_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORKEN_COMPILERS", "llvm")
    calls: list[str] = []
    original = MachineProgram.__call__
    monkeypatch.setattr(
        MachineProgram, "__call__", lambda self, inputs: (calls.append("run"), original(self, inputs))[1]
    )

    @tk.jit
    def step(w: tk.Tensor, x: tk.Tensor) -> tk.Tensor:
        return w - 0.1 * tk.grad(lambda w: (tk.tanh(x * w) ** 2).sum())(w)

    w, x = tk.tensor(MIXED), tk.tensor(MIXED[0])
    found = step(w, x)
    assert calls
    monkeypatch.setenv("TENSORKEN_COMPILERS", "none")
    y = np.tanh(MIXED[0] * MIXED)
    check(np.asarray(found), MIXED - np.float32(0.1) * 2 * y * (1 - y * y) * MIXED[0])


# ---- numbers in registers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_maximum_is_nan_where_an_element_is(axis: int, wide: bool) -> None:
    x = np.random.default_rng(3).normal(size=(40, 1100) if wide else (40, 70)).astype("float32")
    x[3, 5], x[7, 69], x[9], x[11, :60] = np.nan, -np.nan, -np.inf, np.inf
    x[13] = np.nan
    code = machine(lambda x: (x.max(axis), tk.exp(x - x.max(axis, keepdims=True)).sum(axis)), x)
    with np.errstate(all="ignore"):
        top = x.max(axis)
        np.testing.assert_array_equal(code([x])[0], top)
        sums = np.exp((x - x.max(axis, keepdims=True)).astype("float64")).sum(axis)
    np.testing.assert_allclose(code([x])[1], sums, rtol=3e-6)


def test_a_chosen_cpu_has_no_wide_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(target_cpu.CPU, "haswell")
    has_wide_vectors.cache_clear()
    assert not has_wide_vectors()
    has_wide_vectors.cache_clear()


@pytest.mark.parametrize("has_wide_vectors", [False, True])
def test_rows_divided_by_one_number_are_rounded_correctly(
    has_wide_vectors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scalars, "has_wide_vectors", lambda: has_wide_vectors)
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2**32, (400, 300), np.uint32).view("float32")  # of all sizes, and NaN
    w = rng.integers(0, 2**32, 400, np.uint32).view("float32")
    w[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -3e-39, 3e38]
    x[:, :8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -3e-39, 3e38]
    code = machine(lambda x, w: x / w[:, None], x, w)
    with np.errstate(all="ignore"):
        expected = x / w[:, None]
    found = code([x, w])[0]
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("divisor", [3.0, 0.0, np.inf, 1e-45, -3e38, np.nan])
def test_arrays_divided_by_one_number_in_memory_are_rounded_correctly(
    divisor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scalars, "has_wide_vectors", lambda: True)
    x = np.random.default_rng(5).integers(0, 2**32, 30_000, np.uint32).view("float32")
    w = np.array(divisor, "float32")
    code = machine(lambda x, w: x / w, x, w)
    text = code.source().text()
    assert "fdiv double" in text and "fdiv float" not in text  # the reciprocal
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(code([x, w])[0], x / w)


@pytest.mark.parametrize("has_wide_vectors", [False, True])
@pytest.mark.parametrize("shape", [(20_000,), (300, 2000), (300, 60)])
def test_long_loops_compute_four_vectors_at_once(
    shape: tuple[int, ...], has_wide_vectors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nests, "has_wide_vectors", lambda: has_wide_vectors)
    x = np.random.default_rng(6).normal(size=shape).astype("float32")
    code = machine(lambda x: tk.tanh(x).sum(-1), x)
    counts = set(re.findall(r'interleave.count", i32 (\d)', code.source().text()))
    assert counts == {"4" if has_wide_vectors and shape[-1] > 60 else "2"}
    np.testing.assert_allclose(code([x])[0], np.tanh(x.astype("float64")).sum(-1), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("columns", [30, 1000, 5000])
def test_values_that_two_loops_need_are_computed_once(columns: int) -> None:
    x = np.random.default_rng(6).normal(size=(9, columns)).astype("float32")
    code = machine(lambda x: tk.softmax(tk.tanh(x), 1) * tk.tanh(x), x)
    assert len(code.source().plan.steps) == 1
    y = np.tanh(x.astype("float64"))
    expected = np.exp(y) / np.exp(y).sum(1, keepdims=True) * y
    np.testing.assert_allclose(code([x])[0], expected, rtol=3e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("columns", [3, 70, 2100])
def test_values_of_rows_side_by_side_are_computed_before_the_loops_that_need_them(
    dtype: str, columns: int
) -> None:
    def f(x: Any) -> Any:
        mean = x.mean(0, keepdims=True)
        scale = tk.tanh(mean) + tk.exp(-mean)
        centred = (x - mean) * scale
        spread = tk.sqrt((centred * centred).mean(0, keepdims=True) + 1e-3)
        return centred / spread, tk.sin(spread), (centred > spread).any(0)

    x = np.random.default_rng(8).normal(size=(30, columns)).astype(dtype)
    code = machine(f, x)
    assert len(code.source().plan.steps) == 1
    mean = x.astype("float64").mean(0, keepdims=True)
    centred = (x - mean) * (np.tanh(mean) + np.exp(-mean))
    spread = np.sqrt((centred * centred).mean(0, keepdims=True) + 1e-3)
    found = code([x])
    tolerance = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-13}[dtype]
    np.testing.assert_allclose(found[0].astype("float64"), centred / spread, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found[1].astype("float64"), np.sin(spread), rtol=tolerance)
    if dtype == "float64":
        np.testing.assert_array_equal(found[2], (centred > spread).any(0))


def test_bfloat16_is_left_to_the_executor() -> None:
    """Machine code computes the rest of a program."""
    x = np.random.default_rng(0).standard_normal((20, 30)).astype("float32")

    def mixed(x: Any) -> Any:
        narrow = tk.exp(x * 0.5).astype("bfloat16") * 3
        return narrow.sum(0), tk.sin(narrow.astype("float32")) + x, tk.jit(lambda x: x @ x.T)(narrow)

    for f, given in ((mixed, x), (lambda x: tk.tanh(x) * x + 1, x.astype("bfloat16"))):
        program = traced(f, given)
        run = compiled(program, NUMPY)
        results = program.replay(NUMPY, [given])
        for found, expected in zip(run([given]) if run else results, results, strict=True):
            assert found.dtype == expected.dtype
            tolerance = 2.0**-8 if expected.dtype == "bfloat16" else 1e-5
            np.testing.assert_allclose(
                found.astype("float64"), expected.astype("float64"), tolerance, tolerance
            )
        assert (run is None) is (given.dtype == "bfloat16")


OF_INTEGERS: list[Callable[..., Any]] = [
    lambda x, y: (x * 3 + y).max(0),
    lambda x, y: x // y + x % y,
    lambda x, y: tk.where(x < y, x, y) - tk.minimum(x, y) + tk.maximum(x, 1),
    lambda x, y: (x ^ y) & ~x | (x << 1) | (y >> 2),
    lambda x, y: (x.astype("float32") * 1.7 - 100).astype(x.dtype),
    lambda x, y: x.astype("int64") + y.astype("int8"),
    lambda x, y: tk.sign(x) + abs(y) - x**2,
    lambda x, y: x.sum(),
    lambda x, y: x.sum(0, dtype=x.dtype),
    lambda x, y: x.astype("float64").astype("uint16").astype("float16"),
    lambda x, y: (x.min(1), x @ y),
]


@pytest.mark.parametrize("name", [name for name, dtype in DTYPES.items() if dtype.kind == "int"])
def test_integers_of_every_width(name: str) -> None:
    """The ends of the dtype, and divisors 0 and -1, among random numbers."""
    ends, rng = np.iinfo(name), np.random.default_rng(0)
    x, y = rng.integers(ends.min, ends.max, (2, 20, 20), name, endpoint=True)
    y[0, :9], x[0, 0:3] = 0, ends.min
    y[0, 1:3] = np.array([-1, 1]).astype(name)
    for f in OF_INTEGERS:
        program = traced(f, x, y)
        run = compiled(program, NUMPY)
        assert run is not None
        for found, expected in zip(run([x, y]), program.replay(NUMPY, [x, y]), strict=True):
            check(np.asarray(found), expected)
