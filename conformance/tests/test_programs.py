"""programs.*: correct backends pass, faulty ones fail, and the script of a failure runs."""

from __future__ import annotations

import contextlib
import io
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from conformance.tests.examining import run_law
from tensorken_conformance.case import Case, Failure, Result
from tensorken_conformance.faults.fault import FAULTS
from tensorken_conformance.laws import programs as laws
from tensorken_conformance.programs import kernels
from tensorken_conformance.programs.draft import ENCLOSED
from tensorken_conformance.programs.judging import Tally, Wrong, judge
from tensorken_conformance.programs.kernels import judge_kernels, limits
from tensorken_conformance.programs.program import Leaf, Program, Step
from tensorken_conformance.programs.stateful import run_lifetimes
from tensorken_conformance.programs.writing import MOST, MOVED, write, write_moved
from tensorken_conformance.running.examine import examine, laws_for
from tensorken_conformance.subject import Subject
from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference


def first_failure(backend: Any, law: str, seed: int = 0) -> Result | None:
    """The first failed result of a law, in the order of a run."""
    subject = Subject(Fuse(backend), "examined", seed)
    (chosen,) = laws_for(subject, [law])
    results = (examine(subject, chosen, case) for case in chosen.cases(subject))
    return next((result for result in results if result.status == "failed"), None)


def first_five(case: Case) -> bool:
    """Whether a case is one of the first five of its op."""
    return case.detail in ("0", "1", "2", "3", "4")


# ---- correct backends ------------------------------------------------------------------------------------------


class Required(Numpy):
    """Lacks some optional ops, so that their bodies run."""


for _name in (
    "tanh",
    "square",
    "neg",
    "abs",
    "gaussian",
    "erf",
    "prod",
    "cumsum",
    "softmax",
    "inv",
    "norm",
    "relu",
):
    setattr(Required, _name, getattr(Numpy.__mro__[2], _name))


class Flushing(Numpy):
    """Flushes subnormal numbers to zero, and declares that."""

    capabilities = Capabilities(dtypes=tuple(DTYPES), flushes_subnormals=("float16", "float32", "float64"))


def _flushed(x: Any) -> Any:
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(np.zeros_like(x), x), x)
    return x


def _flushing(name: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any) -> Any:
        return _flushed(getattr(Numpy, name)(self, *[_flushed(x) for x in args]))

    return call


for _name in (
    "add",
    "sub",
    "mul",
    "div",
    "exp",
    "sum",
    "prod",
    "sin",
    "pow",
    "fused_multiply_add",
    "softmax",
):
    setattr(Flushing, _name, _flushing(_name))


class Narrow(Numpy):
    """Supports two dtypes, and declares an op unsupported."""

    capabilities = Capabilities(dtypes=("bool", "float32"), unsupported={"tanh": "not yet"})


@pytest.mark.parametrize(
    "backend", [pytest.param(Numpy, marks=pytest.mark.nightly), Required, Flushing, Narrow]
)
def test_correct_backends_pass(backend: type[Numpy]) -> None:
    for law in ("programs.meaning", "programs.stateful"):
        results = run_law(backend(), law, seed=7, where=first_five)
        assert [result.says for result in results if result.status != "passed"] == [] and len(results) >= 5


@pytest.mark.parametrize("backend", [Required, Flushing, Narrow])
def test_correct_backends_pass_programs_lowered(backend: type[Numpy]) -> None:
    results = run_law(backend(), "programs.lowered", seed=7, where=lambda case: case.detail in ("0", "1"))
    assert [result.says for result in results if result.status != "passed"] == [] and len(results) == 4


def test_the_reference_passes() -> None:
    results = run_law(Reference(), "programs.meaning", where=lambda case: case.detail == "0")
    assert [result.status for result in results] == ["passed", "passed"]


# ---- faulty backends -------------------------------------------------------------------------------------------


class InaccurateExp(Numpy):
    """Computes exp with a relative error of 2e-6."""

    def exp(self, x: Any) -> Any:
        return super().exp(x) * np.asarray(1 + 2e-6, x.dtype)


class RoundingCast(Numpy):
    """Rounds to the nearest integer in casts, instead of toward zero."""

    def cast(self, x: Any, dtype: Any) -> Any:
        return super().cast(np.rint(x) if x.dtype.kind == "f" and dtype.kind == "int" else x, dtype)


class LastOfTies(Numpy):
    """Returns the last index of a maximum from argmax."""

    def argmax(self, x: Any, axis: int) -> Any:
        return (x.shape[axis] - 1 - np.argmax(np.flip(x, axis), axis, keepdims=True)).astype(np.int32)


class TruncatedProducts(Numpy):
    """Truncates an operand of float32 contractions to 11 bits."""

    def fused_multiply_add(self, a: Any, b: Any, axes: Any) -> Any:
        if a.dtype == np.float32:
            a = (np.array(a).view(np.int32) & ~0x1FFF).view(np.float32)
        return super().fused_multiply_add(a, b, axes)


class ZeroLog(Numpy):
    """Returns zeros from log."""

    def log(self, x: Any) -> Any:
        return np.zeros_like(x)


class OverwritesOperands(Numpy):
    """Writes sums into the first operand."""

    def add(self, a: Any, b: Any) -> Any:
        same_type = a.dtype == b.dtype and a.shape == b.shape and a.flags.writeable
        return np.add(a, b, a) if same_type else super().add(a, b)


class RaisesInTanh(Numpy):
    """Raises RuntimeError in tanh."""

    def tanh(self, x: Any) -> Any:
        raise RuntimeError("the device failed")


FAULTY = [
    InaccurateExp,
    RoundingCast,
    LastOfTies,
    TruncatedProducts,
    ZeroLog,
    OverwritesOperands,
    RaisesInTanh,
]


@pytest.mark.parametrize("backend", FAULTY)
def test_programs_meaning_detects_faults(backend: type[Numpy]) -> None:
    assert first_failure(backend(), "programs.meaning")


class ReusesBuffers(Numpy):
    """Returns the same buffer for all products of a shape and dtype."""

    def __init__(self) -> None:
        self.buffers: dict[Any, Any] = {}

    def mul(self, a: Any, b: Any) -> Any:
        y = super().mul(a, b)
        buffer = self.buffers.setdefault((y.shape, y.dtype), np.empty_like(y))
        buffer[...] = y
        return buffer


class SharesWithCaller(Numpy):
    """Makes tensors of the caller's buffers without a copy."""

    def new(self, shape: Any, data: Any, dtype: Any) -> Any:
        if isinstance(data, memoryview) and data.nbytes:
            return np.frombuffer(data, dtype.name).reshape(shape)
        return super().new(shape, data, dtype)


class IgnoresSecondFlip(Numpy):
    """Returns the operand from flip if it is a flipped view."""

    def flip(self, x: Any, axes: Any) -> Any:
        return x if any(stride < 0 for stride in x.strides) else super().flip(x, axes)


@pytest.mark.parametrize("backend", [ReusesBuffers, SharesWithCaller, IgnoresSecondFlip, OverwritesOperands])
def test_programs_stateful_detects_faults(backend: type[Numpy]) -> None:
    assert first_failure(backend(), "programs.stateful")


# ---- scripts of failures --------------------------------------------------------------------------------------

EXAMPLES = {
    "meaning": (ZeroLog, "log: expected"),
    "stateful": (SharesWithCaller, ": expected"),
}


@pytest.mark.parametrize("law", EXAMPLES)
def test_the_script_of_a_failure_has_at_most_five_lines_and_runs(law: str) -> None:
    backend, message = EXAMPLES[law]
    result = first_failure(backend(), f"programs.{law}")
    assert result is not None and message in result.says[:40]
    assert 3 <= len(result.script) <= 5 and max(map(len, result.script)) < 400
    script = [line for line in result.script if not line.startswith("tk.use_backend")]
    output = io.StringIO()
    with tk.use_backend(backend()), contextlib.redirect_stdout(output):
        exec("\n".join(script), {})
    assert "0" in output.getvalue() or law == "stateful"


def test_a_failing_program_is_reduced_to_the_faulty_step() -> None:
    result = first_failure(InaccurateExp(), "programs.meaning")
    assert result is not None
    text = "\n".join(result.script)
    assert text.count("tk.exp(") == 1 and text.count(" = ") == 2


def test_programs_depend_only_on_the_seed() -> None:
    first, again = [first_failure(InaccurateExp(), "programs.meaning", seed=1) for _ in range(2)]
    assert first is not None and again is not None
    assert (first.case.id, first.says, first.script) == (again.case.id, again.says, again.script)
    runs = [run_law(Numpy(), "programs.meaning", seed=seed, where=first_five) for seed in (1, 2)]
    assert [r.case.id for r in runs[0]] == [r.case.id for r in runs[1]]
    for a, b in zip(*runs, strict=True):
        assert (a.worst == b.worst) == (a.case.op == "pinned")


# ---- the programs ----------------------------------------------------------------------------------------------


def test_programs_contain_all_ops_and_have_at_most_thirty_nodes() -> None:
    programs = [write(random.Random(number).randrange, Numpy.capabilities) for number in range(300)]
    assert {op.name for op in OPS.values() if op.higher_order is None} <= set[str]().union(
        *[program.ops for program in programs]
    )
    sizes = [len(program.nodes) for program in programs]
    assert max(sizes) <= MOST and np.median(sizes) >= 10
    dtypes = {node.dtype for program in programs for node in program.nodes if isinstance(node, Leaf)}
    assert dtypes == set(ENCLOSED)


def test_programs_have_only_declared_dtypes_and_supported_ops() -> None:
    declared = Narrow.capabilities
    for number in range(100):
        program = write(random.Random(number).randrange, declared)
        assert "tanh" not in program.ops
        assert {n.dtype.name for n in program.nodes if isinstance(n, Leaf)} <= {"bool", "float32"}


def test_deep_runs_have_at_least_300_pinned_programs_and_smoke_runs_at_most_5() -> None:
    assert np.prod(laws.PINNED["deep"]) >= 300 and np.prod(laws.DRAWN["default"]) >= 200
    assert np.prod(laws.DRAWN["smoke"]) + np.prod(laws.PINNED["smoke"]) <= 5


def test_most_results_of_programs_are_proven() -> None:
    subject, tally = Subject.select("numpy"), Tally()
    for number in range(60):
        judge(subject, write(random.Random(number).randrange, subject.capabilities), tally)
    assert tally.elements > 1000 and tally.unproven < 0.1 * tally.elements


def test_cases_that_prove_too_few_elements_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "PROVEN", 1.0)
    failure = first_failure(Numpy(), "programs.meaning")
    assert failure is not None and "prove something" in failure.says


def test_most_programs_are_lowered_to_kernels() -> None:
    subject = Subject(Fuse(Numpy()), "examined")
    rng = random.Random(0)
    lowered: list[Program] = []
    for number in range(60):
        program = write_moved(rng.randrange, subject.capabilities)
        tally = Tally()
        judge_kernels(subject, program, tally, [], limits=limits(random.Random(number // 5)))
        lowered += [program] * bool(tally.elements)
    assert len(lowered) > 50
    assert set[str]().union(*[program.ops for program in lowered]) == {*MOVED}


def test_cases_without_a_program_small_enough_for_kernels_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "LARGE", -1)
    result = first_failure(Numpy(), "programs.lowered")
    assert result is not None and "at least one program that is small enough" in result.says


def test_a_failure_of_a_kernel_names_its_limits_and_its_script_runs(capsys: Any) -> None:
    with FAULTS["lowering/bounds-from-above"].place():
        subject = Subject.select("numpy")
        (law,) = laws_for(subject, ["programs.lowered"])
        result = next(
            r for case in law.cases(subject) if (r := examine(subject, law, case)).status == "failed"
        )
        assert result.says.startswith("kernels of at most ")
        assert 3 <= len(result.script) <= 5
        script = [line for line in result.script if not line.startswith("tk.use_backend")]
        with tk.use_backend("numpy"):
            exec("\n".join(script), {})
    assert capsys.readouterr().out.startswith(f"failed: {result.says}\n")


def test_a_step_with_an_unbounded_interval_is_compared_with_the_reference() -> None:
    class WrongSign(Numpy):
        def div(self, a: Any, b: Any) -> Any:
            y = super().div(a, b)
            return np.where(np.isinf(y), -y, y)

    one, zero = [Leaf(np.array([x], "float32"), DTYPES["float32"]) for x in (1.0, 0.0)]
    program = Program((one, zero, Step("{0} / {1}", (0, 1), ("div",))))
    tally = Tally()
    judge(Subject(Numpy(), "numpy"), program, tally)
    assert (tally.again, tally.referred, tally.unproven) == (1, 1, 0)
    with pytest.raises(Wrong, match="as the reference has it"):
        judge(Subject(WrongSign(), "faulty"), program)


# ---- files and reduction ---------------------------------------------------------------------------------------


def test_a_run_writes_no_files_into_the_current_folder(tmp_path: Path) -> None:
    script = (
        "from tensorken_conformance.running.options import Options\n"
        "from tensorken_conformance.running.run import run\n"
        "options = Options('numpy', depth='smoke', select=('programs',), in_process=True, budget=0.0)\n"
        "print({r.status for r in run(options).results})"
    )
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.strip() == str({"passed"}), run.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_failing_lifetime_is_reduced() -> None:
    with pytest.raises(Failure) as failure:
        run_lifetimes(Subject(ReusesBuffers(), "buffers"), "seed", 60)
    lines = "; ".join(failure.value.script).split("; ")
    assert sum("*" in line for line in lines) <= 3 and len(lines) <= 10
