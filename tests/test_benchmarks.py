"""The benchmarks: failing or differing peers, figures beyond their bounds, and the tasks run by Tensorken."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.programs.passes.pipeline import PASSES
from tensorken_core.errors import BackendError

ROOT = Path(__file__).resolve().parent.parent
SMALL = (
    "hmc_1000",
    "tanh_gradient_1",
    "tanh_gradient_3",
    "gradient_of_three",
    "logistic_4x3",
    "matmul_64",
    "chain_1e3",
    "chain_gradient_1e3",
    "three_layer_mlp",
    "digits_step",
    "transformer_step",
    "jacfwd_64",
    "jacrev_64",
    "hessian_100",
)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that imports a module of the benchmarks folder."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module


@pytest.fixture
def harness(load: Any, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The harness, with fewer rounds."""
    module = load("harness")
    monkeypatch.setattr(module, "ROUNDS", 3)
    return module  # type: ignore[no-any-return]


class Candidate:
    """A fake candidate of a comparison."""

    def __init__(self, *numbers: Any, error: Exception | None = None) -> None:
        self.given, self.error = [np.array(x, np.float64) for x in numbers], error

    def __call__(self) -> float:
        return sum(range(100))

    def numbers(self) -> list[Any]:
        if self.error:
            raise self.error
        return self.given


def test_peers_that_fail_or_differ_have_no_ratio(
    harness: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    peers = {
        "same": Candidate([1e-9, 2e-9]),
        "other": Candidate([1e-9, 2.1e-9]),
        "nan": Candidate([1e-9, np.nan]),
        "form": Candidate([1e-9]),
        "broken": Candidate(error=ValueError("no kernel\nmore")),
        "without": None,
    }
    row = harness.compare("work", Candidate([1e-9, 2e-9]), peers, 1e-4)
    differs = harness.DIFFERS
    assert row.unit == "s" and row.ours > 0 and row.ratios["same"] > 0
    assert {peer: row.ratios[peer] for peer in peers if peer != "same"} == {
        "other": differs,
        "nan": differs,
        "form": differs,
        "broken": harness.FAILS,
        "without": harness.NOT_SUPPORTED,
    }
    said = capsys.readouterr().out
    assert "work: broken fails: ValueError: no kernel\n" in said
    assert "work: other differs by 1e-10 where the largest number is 2.1e-09" in said


def test_a_slow_candidate_runs_in_fewer_rounds(harness: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "SLOW_SECONDS", 0.0)
    seconds = harness._time_in_turns({"": Candidate([1.0])})
    assert len(seconds[""]) == harness.FEW_ROUNDS


def test_figures_beyond_their_bounds_are_reported(load: Any, harness: ModuleType) -> None:
    bounds = {
        "a": {"peer": "jax", "at_most": 1.5},
        "b": {"at_most": 2.0},
        "c": {"peer": "jax", "at_most": 0.5},
        "d": {"peer": "best", "at_most": 0.5},
    }
    table = load("page").Table({"jax": "JAX", "torch": "PyTorch"}, bounds)
    a = harness.Row("a", 4.2e-6, "s", {"jax": 1.51})
    b = harness.Row("b", 1.999, "s", {"jax": 3.0})
    c = harness.Row("c", 61e6, "B", {"jax": harness.FAILS})
    d = harness.Row("d", 4.2e-6, "s", {"jax": 0.4, "torch": 0.6})
    e = harness.Row("d", 4.2e-6, "s", {"jax": 0.4, "torch": harness.FAILS})
    assert [table.missed(row) for row in (a, b, c, d, e)] == [True, False, True, True, False]
    assert table.markdown([d]).endswith("| 0.50 best, missed |")
    assert table.markdown([a, b, c]).splitlines() == [
        "| workload |   ours | / JAX |            bound |",
        "| -------- | -----: | ----: | ---------------: |",
        "| a        | 4.2 µs |  1.51 | 1.50 JAX, missed |",
        "| b        |    2 s |  3.00 |              2 s |",
        "| c        |  61 MB | fails | 0.50 JAX, missed |",
    ]


@pytest.mark.feature(190)
def test_the_page_has_a_row_for_each_bound() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    bounds = tomllib.loads((ROOT / "benchmarks" / "bounds.toml").read_text(encoding="utf-8"))
    for suite, workloads in bounds.items():
        table = page.split(f"<!-- figures: {suite} -->")[1].split(f"<!-- end of {suite} -->")[0]
        rows = {line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")}
        if suite == "gpu" and not rows:
            continue  # such figures need a machine with a GPU
        assert workloads.keys() <= rows, f"{suite}: run `nox -s bench -- --suite {suite}`"


@pytest.mark.feature(190)
@pytest.mark.parametrize("name", SMALL)
def test_tasks_are_the_same_eager_and_compiled(load: Any, name: str) -> None:
    lib = load("libraries").installed(["tensorken"])["tensorken"]
    case = load("tasks").TASKS[name]
    eager, compiled = (load("call").Call(case, lib, compiled).numbers() for compiled in (False, True))
    assert [x.shape for x in eager] == [x.shape for x in compiled]
    for x, y in zip(eager, compiled, strict=True):
        assert np.any(x)
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5 * np.max(np.abs(x)))


def test_losses_decrease_in_training(load: Any) -> None:
    lib = load("libraries").installed(["tensorken"])["tensorken"]
    (losses,) = load("call").Call(load("tasks").TASKS["mlp_step"], lib, True).numbers()
    assert len(losses) == load("call").STEPS
    assert np.all(np.diff(losses) < -0.1)


def test_plain_kernels_of_the_gpu_are_correct(load: Any) -> None:
    gpu, normal = load("gpu"), load("tasks.case").normal
    try:
        device = tk.tensor(0.0, backend="wgpu").interpreter.raw.device  # type: ignore[attr-defined]
    except BackendError as error:
        if os.environ.get("REQUIRE_WGPU"):
            raise
        pytest.skip(str(error))
    a, b, x = normal(64, 64), normal(64, 64, seed=1), normal(2**16)
    np.testing.assert_allclose(gpu._matmul(device, a, b).numbers()[0], a @ b, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(gpu._copied(device, x).numbers()[0], x)


def test_a_missing_library_is_reported(
    load: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "libraries.for_torch", raising=False)
    assert load("libraries").installed(["torch"]) == {}
    assert capsys.readouterr().out == "torch is not installed\n"


def test_a_task_is_measured_in_its_own_process() -> None:
    script = ROOT / "benchmarks" / "isolated.py"
    outputs = [
        subprocess.run(
            [sys.executable, script, "mlp_step", library], stdout=subprocess.PIPE, text=True, check=True
        ).stdout.splitlines()
        for library in ("tensorken", "nothing")
    ]
    figures = json.loads(outputs[0][0])
    assert isinstance(figures["first"], float)  # a difference of two times
    assert figures["peak"] is None or 10e6 < figures["peak"] < 2e9
    assert outputs[1] == ["nothing is not installed", "{}"]


def test_growth_is_reported_for_each_stage() -> None:
    command = [sys.executable, ROOT / "benchmarks" / "growth.py", "--sizes", "40,80"]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    heads = [line for line in lines if line and not line.startswith(" ")]
    assert len(heads) >= 4 and all(line.endswith(" equations") for line in heads)
    stages = [line[2:34].rstrip() for line in lines if line.startswith("  ")]
    assert {"trace", "schedule", "lifetimes", "emission and memory", "Python's compiler"} <= set(stages)
    passes = [name for name in stages if name.startswith("pass ")]
    assert len(passes) == len(heads) * len(PASSES)
    assert all(re.search(r" ms +(-|-?\d+\.\d\d)$", line) for line in lines if line.startswith("  "))


def test_the_front_end_is_reported_for_each_workload() -> None:
    """The script compares the results with JAX's, where it is installed."""
    command = [sys.executable, ROOT / "benchmarks" / "front_end.py", "--slices", "1"]
    head, *lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    assert head.split()[0] == "workload"
    rows = [line for line in lines if line != "JAX is not installed"]
    assert [row.split()[0] for row in rows] == ["one", "three", "dict_of_10", "numbers", "module_of_20"]
    assert all(re.search(r"^\w+ +\d+ +\d+ +-?\d+ +\d+ +(\d+\.\d\d|—)$", row) for row in rows)
