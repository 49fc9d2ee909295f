"""Training with divided batches: the gradient of the whole batch, and the same bits wherever a run is resumed."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken_cli.command import main
from tensorken_core import tree
from tensorken_core.errors import ArgumentError
from tensorken_nn.jobs import JOBS, digits, names, shakespeare
from tensorken_nn.parts import Parts, add, add_rounds, averaged, divided, in_process

QUICK = ("--epochs", "2", "--limit", "100", "--hidden", "8", "--batch-size", "30")


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a short list of names, and a short text."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "names.txt").write_text("\n".join(["emma", "olivia", "ava", "bo", "maximilian", "li"] * 9))
    (folder / "text.txt").write_text("To be, or not to be, that is the question.\n" * 9)
    return folder


def settings(job: str, texts: Path, **options: Any) -> Any:
    """Settings of a small run."""
    if job == "digits":
        return digits.Settings(limit=100, hidden=(8,), batch_size=30, **options)
    if job == "shakespeare":
        sizes: dict[str, int] = {
            "layers": 1,
            "heads": 2,
            "width": 8,
            "context": 8,
            "batch_size": 6,
            "steps": 4,
        }
        return shakespeare.Settings(text=texts / "text.txt", **sizes, **options)
    model = {"bigram": {}, "mlp": {"width": 8, "batch_size": 10}}[job.partition("-")[2]]
    return names.Settings(model=job.partition("-")[2], text=texts / "names.txt", steps=4, **model, **options)


def summed(parts: Parts) -> Any:
    return in_process(parts, parts.sums, add)


def trained(task: nn.Task, steps: int) -> tuple[Any, dict[str, float]]:
    """The model and the metrics after some steps."""
    count = itertools.count(1)
    (progress, _), *_ = nn.fit(task, every=steps, stop=lambda: next(count) == steps)
    return progress.state.model, {name: float(value) for name, value in progress.sums.items()}


@pytest.mark.parametrize("job", ["digits", "names-mlp", "names-bigram", "shakespeare"])
@pytest.mark.parametrize("parts", [1, 4])
def test_parts_of_a_batch_have_its_loss_metrics_and_gradient(job: str, parts: int, texts: Path) -> None:
    """Batches whose parts have different numbers of rows, and names of different lengths."""
    chosen = settings(job, texts)
    name = job.partition("-")[0]
    whole = JOBS[name].prepare(chosen)
    model, metrics = trained(whole, 3)
    found, sums = trained(divided(whole, summed(Parts(name, chosen, parts))), 3)
    assert sums == pytest.approx(metrics, rel=1e-4)
    for a, b in zip(tree.leaves(found), tree.leaves(model), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-3, atol=2e-4)


def test_a_batch_may_have_fewer_rows_than_parts() -> None:
    chosen = digits.Settings(limit=13, hidden=(4,), batch_size=3)  # batches of 3, 3, 3 and 1
    whole = JOBS["digits"].prepare(chosen)
    parts = Parts("digits", chosen, 5)
    results = [parts.sums(i, whole.state.model, 3, tk.random.key(0)) for i in range(5)]
    assert [result is None for result in results].count(False) == 1
    model, metrics = trained(whole, 4)
    found, sums = trained(divided(whole, summed(parts)), 4)
    assert sums == pytest.approx(metrics, rel=1e-4)
    for a, b in zip(tree.leaves(found), tree.leaves(model), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=1e-4)


def test_a_part_depends_on_settings_step_and_number_only(texts: Path) -> None:
    """In any order of steps and parts, as after the death of a worker."""
    chosen = settings("shakespeare", texts, dropout=0.2)
    model = JOBS["shakespeare"].prepare(chosen).state.model

    def results(order: list[tuple[int, int]]) -> dict[tuple[int, int], list[bytes]]:
        parts = Parts("shakespeare", chosen, 3)
        found: dict[tuple[int, int], list[bytes]] = {}
        for step, number in order:
            sums = parts.sums(number, model, step, tk.random.key(step))
            found[step, number] = [np.asarray(x).tobytes() for x in tree.leaves(sums)]
        return found

    order = list(itertools.product(range(3), range(3)))
    forwards, backwards = results(order), results(order[::-1])
    assert forwards == backwards
    assert len({tuple(bits) for bits in forwards.values()}) == 9


def test_the_gradient_may_come_from_elsewhere() -> None:
    """A function that jit cannot trace, as it reads numbers."""
    calls: list[float] = []

    def value_and_grad(w: Any, x: Any, key: Any) -> Any:
        calls.append(w.item())
        return (w * 0.0, {"count": w * 0.0 + 1.0}), tk.tensor(2.0)

    step = nn.gradient_step(lambda w, x, key: (w, {}), nn.SGD(0.5), lambda g: g * 3.0, value_and_grad)
    learner = nn.Learner(tk.tensor(1.0), nn.SGD(0.5).init(tk.tensor(1.0)))
    for _ in range(2):
        learner, metrics = step(learner, None, tk.random.key(0))
    assert calls == [1.0, -2.0] and learner.model.item() == -5.0
    assert list(metrics) == ["loss", "count"]


def test_only_gradient_steps_can_be_divided() -> None:
    task = JOBS["bigrams"].prepare(JOBS["bigrams"].settings())
    with pytest.raises(ArgumentError, match="cannot be divided"):
        divided(task, lambda *_: None)


@pytest.mark.parametrize("count", [1, 2, 9])
def test_local_steps_are_those_of_each_part_alone(count: int) -> None:
    """Periods have 3 steps, with 32, 32 and 16 rows; rounds end with them."""
    chosen = digits.Settings(limit=100, hidden=(4,), batch_size=32)
    task, parts = JOBS["digits"].prepare(chosen), Parts("digits", chosen, 2)
    stops = itertools.count(1)
    by_rounds = averaged(task, in_process(parts, parts.states, add_rounds), count)
    *_, (progress, record) = nn.fit(by_rounds, stop=lambda: next(stops) == 6)
    learner, losses, step = task.state, [], 0
    batches = list(itertools.islice(task.batches(0), 6))
    while step < 6:
        states, of_parts = [], []
        ends = min(step + count, step // 3 * 3 + 3)
        for number in range(2):
            alone, metrics = learner, []
            for i in range(step, ends):
                rows = len(tree.leaves(batches[i])[0]) // 2
                part = tree.map(lambda x, n=number, r=rows: x[n * r : n * r + r], batches[i])
                alone, found_metrics = task.step(alone, part, task.key)
                metrics.append(found_metrics["loss"].item())
            states.append(alone)
            of_parts.append(metrics)
        learner = tree.map(lambda x, y: (x + y) / 2 if isinstance(x, tk.Tensor) else x, *states)
        losses += list(np.mean(of_parts, axis=0))
        step = ends
    assert progress.step == 6 and record is not None
    for a, b in zip(tree.leaves(progress.state), tree.leaves(learner), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=1e-5)
    assert record.metrics["loss"] == pytest.approx(np.mean(losses[3:]), rel=1e-4)


def test_local_steps_of_a_part_without_rows_do_not_count() -> None:
    chosen = digits.Settings(limit=13, hidden=(4,), batch_size=3)  # the last batch has 1 row
    task, parts = JOBS["digits"].prepare(chosen), Parts("digits", chosen, 2)
    rounds = [parts.states(i, task.state, 3, 1) for i in range(2)]
    assert [r is None for r in rounds].count(True) == 1
    combined = add_rounds(*rounds)
    assert combined is not None and combined[1] == 1


# ---- the command -------------------------------------------------------------------------------------------


def checkpoint(folder: str) -> bytes:
    return Path(folder, "checkpoint.safetensors").read_bytes()


def test_parts_are_a_setting_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "digits", *QUICK, "--parts", "2", "--out", "run"]) == 0
    assert '"parts": 2' in Path("run", "run.json").read_text()
    assert main(["train", "digits", "--resume", "run", "--parts", "3"]) == 1
    assert "the run was started with --parts 2, got 3" in capsys.readouterr().err


def test_local_steps_resume_within_a_round(capsys: pytest.CaptureFixture[str]) -> None:
    """Three steps an epoch, in rounds of two and of one."""
    options = ("train", "digits", *QUICK, "--parts", "2", "--local-steps", "2")
    assert main([*options, "--out", "whole"]) == 0
    whole = Path("whole", "metrics.jsonl").read_bytes(), checkpoint("whole")
    for steps in range(1, 6):
        folder = f"run{steps}"
        with pytest.MonkeyPatch.context() as patch:
            stops = itertools.count(1)
            patch.setattr(
                "tensorken_nn.interruption.Interruption.requested", lambda _, n=steps, s=stops: next(s) >= n
            )
            assert main([*options, "--out", folder]) != 0
        assert checkpoint(folder) != whole[1]
        assert main(["train", "digits", "--resume", folder]) == 0
        assert (Path(folder, "metrics.jsonl").read_bytes(), checkpoint(folder)) == whole
    assert main(["train", "digits", *QUICK, "--parts", "2", "--out", "other"]) == 0
    assert checkpoint("other") != whole[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("digits", "--local-steps", "2"),
            "--local-steps needs parts to train alone; add --parts or --cluster",
        ),
        (
            ("names", "--model", "mlp", "--steps", "5", "--parts", "2", "--local-steps", "3"),
            "5 steps end 2 steps into a round of 3 local steps; train 3 or 6 steps, or choose other --local-steps",
        ),
    ],
)
def test_local_steps_that_do_not_fit(
    options: tuple[str, ...], message: str, texts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ("--text", str(texts / "names.txt")) if options[0] == "names" else ()
    assert main(["train", *options, *text]) == 1
    assert capsys.readouterr().err == f"tensorken: train: {message}\n"
    assert not Path("runs").exists()


def test_the_number_of_local_steps_is_positive(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("0", "-1", "x"):
        with pytest.raises(SystemExit):
            main(["train", "digits", "--parts", "2", f"--local-steps={wrong}"])
        assert "--local-steps: must be a whole number of at least 1, got" in capsys.readouterr().err


def test_a_cluster_needs_dask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorken_dask", None)
    assert main(["train", "digits", *QUICK, "--cluster", "local:2"]) == 1
    error = capsys.readouterr().err
    assert error == "tensorken: train: --cluster needs dask, which is missing: pip install tensorken[dask]\n"
    assert not Path("runs").exists()


@pytest.mark.parametrize("job", ["linear", "bigrams"])
def test_other_jobs_have_no_parts(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--parts", "--cluster"):
        with pytest.raises(SystemExit):
            main(["train", job, option, "2"])
        assert f"there is no option {option}" in capsys.readouterr().err


def test_a_lost_connection_saves_the_last_step(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The run ends with one line, and resumes with the same bits."""
    assert main(["train", "digits", *QUICK, "--parts", "2", "--out", "whole"]) == 0
    capsys.readouterr()

    def losing(parts: Parts, *functions: Any) -> Any:
        total = in_process(parts, *functions)

        def lost_in_step_4(model: Any, step: int, key: Any) -> Any:
            if step == 4:
                raise ConnectionResetError("the scheduler is lost")
            return total(model, step, key)

        return lost_in_step_4

    with monkeypatch.context() as patch:
        patch.setattr("tensorken_nn.cli.in_process", losing)
        assert main(["train", "digits", *QUICK, "--parts", "2", "--out", "run"]) == 1
    error = capsys.readouterr().err
    assert error == "tensorken: the scheduler is lost; --resume run continues in epoch 2 of 2\n"
    assert main(["train", "digits", "--resume", "run"]) == 0
    assert checkpoint("run") == checkpoint("whole")
    assert "resuming after step 4 of 6" in capsys.readouterr().out
