"""The laws on programs: right backends keep them, faulty ones do not, and what is shown of a failure runs."""

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
from tensorken_conformance.programs.judging import Tally, Wrong, judge
from tensorken_conformance.programs.kernels import judge_kernels, limits
from tensorken_conformance.programs.program import Leaf, Program, Step, joined
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
    """The first case of a law that a backend fails, in the order of a run."""
    subject = Subject(Fuse(backend), "examined", seed)
    (chosen,) = laws_for(subject, [law])
    outcomes = (examine(subject, chosen, case) for case in chosen.cases(subject))
    return next((outcome for outcome in outcomes if outcome.status == "failed"), None)


def few(case: Case) -> bool:
    """One case in five."""
    return case.detail in ("0", "1", "2", "3", "4")


# ---- right backends --------------------------------------------------------------------------------------------


class Required(Numpy):
    """Numpy with few ops of its own, so that bodies run."""


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
    """Takes subnormal numbers for zero, and says so."""

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
    """Has two dtypes, and an op less."""

    capabilities = Capabilities(dtypes=("bool", "float32"), unsupported={"tanh": "not yet"})


@pytest.mark.parametrize(
    "backend", [pytest.param(Numpy, marks=pytest.mark.nightly), Required, Flushing, Narrow]
)
def test_right_backends_pass(backend: type[Numpy]) -> None:
    for law in ("programs.meaning", "programs.stateful"):
        outcomes = run_law(backend(), law, seed=7, where=few)
        assert [result.says for result in outcomes if result.status != "passed"] == [] and len(outcomes) >= 5


@pytest.mark.parametrize("backend", [Required, Flushing, Narrow])
def test_right_backends_pass_as_kernels(backend: type[Numpy]) -> None:
    outcomes = run_law(backend(), "programs.lowered", seed=7, where=lambda case: case.detail in ("0", "1"))
    assert [result.says for result in outcomes if result.status != "passed"] == [] and len(outcomes) == 4


def test_the_reference_passes_some_programs() -> None:
    outcomes = run_law(Reference(), "programs.meaning", where=lambda case: case.detail == "0")
    assert [result.status for result in outcomes] == ["passed", "passed"]


# ---- faulty backends -------------------------------------------------------------------------------------------


class TenUnitsOff(Numpy):
    def exp(self, x: Any) -> Any:
        return super().exp(x) * np.asarray(1 + 2e-6, x.dtype)


class RoundsWhenCast(Numpy):
    def cast(self, x: Any, dtype: Any) -> Any:
        return super().cast(np.rint(x) if x.dtype.kind == "f" and dtype.kind == "int" else x, dtype)


class LastOfTies(Numpy):
    def argmax(self, x: Any, axis: int) -> Any:
        return (x.shape[axis] - 1 - np.argmax(np.flip(x, axis), axis, keepdims=True)).astype(np.int32)


class ShortProducts(Numpy):
    def fused_multiply_add(self, a: Any, b: Any, axes: Any) -> Any:
        if a.dtype == np.float32:
            a = (np.array(a).view(np.int32) & ~0x1FFF).view(np.float32)
        return super().fused_multiply_add(a, b, axes)


class Zeros(Numpy):
    def log(self, x: Any) -> Any:
        return np.zeros_like(x)


class WritesOperands(Numpy):
    def add(self, a: Any, b: Any) -> Any:
        alike = a.dtype == b.dtype and a.shape == b.shape and a.flags.writeable
        return np.add(a, b, a) if alike else super().add(a, b)


class Refuses(Numpy):
    def tanh(self, x: Any) -> Any:
        raise RuntimeError("the device is tired")


MEANINGS = [TenUnitsOff, RoundsWhenCast, LastOfTies, ShortProducts, Zeros, WritesOperands, Refuses]


@pytest.mark.parametrize("backend", MEANINGS)
def test_a_program_shows_the_fault(backend: type[Numpy]) -> None:
    assert first_failure(backend(), "programs.meaning")


class KeepsBuffers(Numpy):
    def __init__(self) -> None:
        self.kept: dict[Any, Any] = {}

    def mul(self, a: Any, b: Any) -> Any:
        y = super().mul(a, b)
        kept = self.kept.setdefault((y.shape, y.dtype), np.empty_like(y))
        kept[...] = y
        return kept


class SharesWithCaller(Numpy):
    def new(self, shape: Any, data: Any, dtype: Any) -> Any:
        if isinstance(data, memoryview) and data.nbytes:
            return np.frombuffer(data, dtype.name).reshape(shape)
        return super().new(shape, data, dtype)


class ForgetsAFlip(Numpy):
    def flip(self, x: Any, axes: Any) -> Any:
        return x if any(stride < 0 for stride in x.strides) else super().flip(x, axes)


@pytest.mark.parametrize("backend", [KeepsBuffers, SharesWithCaller, ForgetsAFlip, WritesOperands])
def test_a_life_shows_the_fault(backend: type[Numpy]) -> None:
    assert first_failure(backend(), "programs.stateful")


# ---- what is shown of a failure --------------------------------------------------------------------------------

PLACES = {
    "meaning": (Zeros, "log: expected"),
    "stateful": (SharesWithCaller, ": expected"),
}


@pytest.mark.parametrize("law", PLACES)
def test_the_script_of_a_failure_has_five_lines_and_shows_it(law: str) -> None:
    backend, says = PLACES[law]
    outcome = first_failure(backend(), f"programs.{law}")
    assert outcome is not None and says in outcome.says[:40]
    assert 3 <= len(outcome.script) <= 5 and max(map(len, outcome.script)) < 400
    script = [line for line in outcome.script if not line.startswith("tk.use_backend")]
    output = io.StringIO()
    with tk.use_backend(backend()), contextlib.redirect_stdout(output):
        exec("\n".join(script), {})
    assert "0" in output.getvalue() or law == "stateful"


def test_a_failure_is_reduced_to_the_step_that_is_wrong() -> None:
    outcome = first_failure(TenUnitsOff(), "programs.meaning")
    assert outcome is not None
    text = "\n".join(outcome.script)
    assert text.count("tk.exp(") == 1 and text.count(" = ") == 2


def test_failures_are_the_same_in_each_run_for_a_seed_and_others_for_another() -> None:
    first, again = [first_failure(TenUnitsOff(), "programs.meaning", seed=1) for _ in range(2)]
    assert first is not None and again is not None
    assert (first.case.id, first.says, first.script) == (again.case.id, again.says, again.script)
    one, other = [run_law(Numpy(), "programs.meaning", seed=seed, where=few) for seed in (1, 2)]
    assert [r.case.id for r in one] == [r.case.id for r in other]
    for a, b in zip(one, other, strict=True):
        assert (a.worst == b.worst) == (a.case.op == "pinned")


# ---- the programs ----------------------------------------------------------------------------------------------


def test_programs_are_about_all_ops_and_have_no_more_than_thirty_nodes() -> None:
    programs = [write(random.Random(number).randrange, Numpy.capabilities) for number in range(300)]
    assert {op.name for op in OPS.values() if op.higher_order is None} <= joined(programs)
    sizes = [len(program.nodes) for program in programs]
    assert max(sizes) <= MOST and np.median(sizes) >= 10
    dtypes = {node.dtype for program in programs for node in program.nodes if isinstance(node, Leaf)}
    assert dtypes == set(DTYPES.values())


def test_programs_for_a_backend_have_its_dtypes_and_leave_out_what_it_refuses() -> None:
    declared = Narrow.capabilities
    for number in range(100):
        program = write(random.Random(number).randrange, declared)
        assert "tanh" not in program.ops
        assert {n.dtype.name for n in program.nodes if isinstance(n, Leaf)} <= {"bool", "float32"}


def test_a_deep_run_has_at_least_300_pinned_programs_and_a_smoke_one_few() -> None:
    assert np.prod(laws.PINNED["deep"]) >= 300 and np.prod(laws.DRAWN["default"]) >= 200
    assert np.prod(laws.DRAWN["smoke"]) + np.prod(laws.PINNED["smoke"]) <= 5


def test_most_of_what_programs_give_is_proven() -> None:
    subject, tally = Subject.select("numpy"), Tally()
    for number in range(60):
        judge(subject, write(random.Random(number).randrange, subject.capabilities), tally)
    assert tally.elements > 1000 and tally.unproven < 0.1 * tally.elements


def test_programs_that_prove_nothing_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "PROVEN", 1.0)
    failure = first_failure(Numpy(), "programs.meaning")
    assert failure is not None and "prove something" in failure.says


def test_kernels_compute_most_programs_of_many_kinds() -> None:
    subject = Subject(Fuse(Numpy()), "examined")
    rng = random.Random(0)
    lowered: list[Program] = []
    for number in range(60):
        program = write_moved(rng.randrange, subject.capabilities)
        tally = Tally()
        judge_kernels(subject, program, tally, [], limits=limits(random.Random(number // 5)))
        lowered += [program] * bool(tally.elements)
    assert len(lowered) > 50
    assert joined(lowered) == {*MOVED}


def test_programs_that_are_too_large_for_kernels_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "LARGE", -1)
    outcome = first_failure(Numpy(), "programs.lowered")
    assert outcome is not None and "at least one program that is small enough" in outcome.says


def test_a_failure_of_a_kernel_names_its_limits_and_can_be_repeated(capsys: Any) -> None:
    with FAULTS["lowering/bounds-from-above"].place():
        subject = Subject.select("numpy")
        (law,) = laws_for(subject, ["programs.lowered"])
        outcome = next(
            r for case in law.cases(subject) if (r := examine(subject, law, case)).status == "failed"
        )
        assert outcome.says.startswith("kernels of at most ")
        assert 3 <= len(outcome.script) <= 5
        script = [line for line in outcome.script if not line.startswith("tk.use_backend")]
        with tk.use_backend("numpy"):
            exec("\n".join(script), {})
    assert capsys.readouterr().out.startswith(f"failed: {outcome.says}\n")


def test_a_step_of_which_nothing_is_known_is_compared_with_the_reference() -> None:
    class WrongSide(Numpy):
        def div(self, a: Any, b: Any) -> Any:
            y = super().div(a, b)
            return np.where(np.isinf(y), -y, y)

    one, zero = [Leaf(np.array([x], "float32"), DTYPES["float32"]) for x in (1.0, 0.0)]
    program = Program((one, zero, Step("{0} / {1}", (0, 1), ("div",))))
    tally = Tally()
    judge(Subject(Numpy(), "right"), program, tally)
    assert (tally.again, tally.referred, tally.unproven) == (1, 1, 0)
    with pytest.raises(Wrong, match="as the reference has it"):
        judge(Subject(WrongSide(), "wrong"), program)


# ---- what a run leaves behind ----------------------------------------------------------------------------------


def test_nothing_is_stored_where_a_run_takes_place(tmp_path: Path) -> None:
    script = (
        "from tensorken_conformance.running.options import Options\n"
        "from tensorken_conformance.running.run import run\n"
        "options = Options('numpy', depth='smoke', select=('programs',), in_process=True)\n"
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


def test_a_life_that_goes_wrong_is_shortened() -> None:
    with pytest.raises(Failure) as failure:
        run_lifetimes(Subject(KeepsBuffers(), "buffers"), "seed", 60)
    lines = "; ".join(failure.value.script).split("; ")
    assert sum("*" in line for line in lines) <= 3 and len(lines) <= 10
