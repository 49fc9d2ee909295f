"""The command `tensorken train`, run by the host: its output, files, errors and exit status."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tensorken as tk
from tensorken_cli.command import main
from tensorken_core.errors import BackendError
from tensorken_nn import cli, curves, run_directory
from tensorken_nn.interruption import Interruption
from tensorken_nn.train_run import RunMetadata
from tensorken_nn.training import Record
from tensorken_numpy.backend import Numpy
from tensorken_string.backend import String

QUICK = ("--epochs", "2", "--limit", "100", "--hidden", "8")


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run `tensorken train` in this process; returns exit status, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            status = main(["train", *arguments])
        except SystemExit as exit:
            status = exit.code if isinstance(exit.code, int) else 1
        out, err = capsys.readouterr()
        assert (out + err).isascii()
        assert "Traceback" not in err
        return status, out, err

    return run


def metrics(directory: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (directory / "metrics.jsonl").read_text(encoding="ascii").splitlines()
    ]


# ---- output ------------------------------------------------------------------------------------------


def test_a_run_prints_its_progress_and_ends_with_the_accuracy(run: Any, working_directory: Path) -> None:
    status, out, err = run("digits", *QUICK)
    assert (status, err) == (0, "")  # no progress bar without a terminal
    lines = out.splitlines()
    assert [line for line in lines if line.startswith("epoch ")] == lines[4:6]
    assert re.fullmatch(
        r"epoch 1/2   train: loss \d\.\d{4}, accuracy +\d+\.\d %   test: loss \d\.\d{4}, accuracy +\d+\.\d %",
        lines[4],
    )
    assert "80 images to train on, 20 to test" in lines[0]
    assert "backend: numpy" in lines[3]
    assert re.fullmatch(r"test accuracy: \d+\.\d %", lines[-1])
    directory = working_directory / "runs" / "digits-1"
    assert f"results are in {Path('runs', 'digits-1')}" in lines[-2]
    assert sorted(path.name for path in directory.iterdir()) == [
        "checkpoint.safetensors",
        "curves.png",
        "metrics.jsonl",
        "run.json",
    ]
    recorded = metrics(directory)
    assert [list(row) for row in recorded] == [
        ["epoch", "step", "loss", "accuracy", "test_loss", "test_accuracy"]
    ] * 2
    assert [row["epoch"] for row in recorded] == [1, 2]
    summary = json.loads((directory / "run.json").read_text(encoding="ascii"))
    assert summary["hidden"] == [8] and summary["limit"] == 100 and summary["seed"] == 0
    assert lines[-1] == f"test accuracy: {100 * summary['test_accuracy']:.1f} %"


def test_the_confusion_table_adds_up(run: Any, working_directory: Path) -> None:
    _, out, _ = run("digits", *QUICK)
    table = json.loads((working_directory / "runs" / "digits-1" / "run.json").read_text(encoding="ascii"))[
        "confusion"
    ]
    assert len(table) == 10 and {len(row) for row in table} == {10}
    assert sum(map(sum, table)) == 20
    correct = sum(table[i][i] for i in range(10))
    assert out.splitlines()[-1] == f"test accuracy: {100 * correct / 20:.1f} %"
    printed = [line.split() for line in out.splitlines() if re.match(r" {3}\d ", line)]
    assert printed == [[str(i), *[str(n) if n else "." for n in row]] for i, row in enumerate(table)]


@pytest.mark.slow
def test_the_reference_backend_runs_the_same_code(run: Any, working_directory: Path) -> None:
    for name in ("reference", "numpy"):
        status, out, _ = run("digits", "--backend", name, "--epochs", "1", "--limit", "64", "--out", name)
        assert status == 0
        assert f"backend: {name}" in out
    (reference,), (numpy,) = metrics(working_directory / "reference"), metrics(working_directory / "numpy")
    assert reference == pytest.approx(numpy, abs=1e-4)


def test_the_environment_chooses_the_backend(working_directory: Path) -> None:
    out = _process("train", "digits", *QUICK, TENSORKEN_BACKEND="reference").stdout
    assert "backend: reference" in out


def test_the_same_seed_writes_the_same_bytes(run: Any, working_directory: Path) -> None:
    outs = [
        run("digits", *QUICK, "--seed", seed, "--out", name)[1]
        for seed, name in (("5", "a"), ("5", "b"), ("6", "c"))
    ]
    first, second, other = ((working_directory / name / "metrics.jsonl").read_bytes() for name in "abc")
    assert first == second != other
    assert b"\r" not in first
    lines = [[line for line in out.splitlines() if "results are in" not in line] for out in outs]
    assert lines[0] == lines[1] != lines[2]


def test_quiet_prints_only_the_accuracy(run: Any) -> None:
    status, out, err = run("digits", *QUICK, "--quiet")
    assert status == 0 and err == ""
    assert re.fullmatch(r"test accuracy: \d+\.\d %\n", out)


def test_about_twenty_epochs_are_printed_and_all_recorded(run: Any, working_directory: Path) -> None:
    small = ("digits", "--epochs", "100", "--limit", "20", "--hidden")
    for options, expected in (((), [1, *range(5, 101, 5)]), (("--verbose",), [*range(1, 101)])):
        status, out, _ = run(*small, *options)
        assert status == 0
        assert [int(n) for n in re.findall(r"^epoch +(\d+)/100 ", out, re.MULTILINE)] == expected
    assert [len(metrics(working_directory / "runs" / f"digits-{n}")) for n in (1, 2)] == [100, 100]
    status, out, _ = run(*small, "--patience", "1", "--learning-rate", "1e-30")
    assert re.findall(r"^epoch +(\d+)/100 ", out, re.MULTILINE) == ["1", "2"]  # the last one, too


def test_without_hidden_layers_it_is_a_linear_classifier(run: Any) -> None:
    status, out, _ = run("digits", "--epochs", "1", "--limit", "50", "--hidden")
    assert status == 0
    assert "layers of 64, 10, 650 parameters" in out


def test_a_terminal_shows_a_progress_bar_that_is_removed(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    status, out, err = run("digits", *QUICK)
    assert status == 0
    assert re.search(r"0%\|.*\| 0/6 \[", err)
    assert err.endswith("\r") and "\n" not in err
    assert re.fullmatch(r"test accuracy: \d+\.\d %", out.splitlines()[-1])


# ---- the curves --------------------------------------------------------------------------------------


def test_the_curves_are_a_png(run: Any, working_directory: Path) -> None:
    run("digits", *QUICK)
    picture = (working_directory / "runs" / "digits-1" / "curves.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(picture[i : i + 4], "big") for i in (16, 20))
    assert width > 600 and height > 300


def test_curves_show_the_metrics(working_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    curves.draw(
        [
            Record(5, {"loss": 2.0, "accuracy": 0.25, "test_loss": 2.5, "test_accuracy": 0.125}),
            Record(10, {"loss": 1.0, "accuracy": 0.5, "test_loss": 1.5, "test_accuracy": 0.375}),
        ],
        period=5,
        unit="epoch",
        file=Path("unused"),
        title="the title",
    )
    (figure,) = figures
    drawn = [[list(line.get_ydata()) for line in axes.lines] for axes in figure.axes]
    assert drawn == [[[2.0, 1.0], [2.5, 1.5]], [[25.0, 50.0], [12.5, 37.5]]]
    assert [list(line.get_xdata()) for axes in figure.axes for line in axes.lines] == [[1, 2]] * 4
    assert [[text.get_text() for text in axes.get_legend().get_texts()] for axes in figure.axes] == [
        ["train", "test"]
    ] * 2
    assert figure.get_suptitle() == "the title"


def test_without_matplotlib_only_verbose_gives_the_reason(
    run: Any, working_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for options in ((), ("--verbose",)):
        status, out, err = run("digits", *QUICK, *options)
        assert (status, err) == (0, "")
        told = [line for line in out.splitlines() if "plots" in line or "curves" in line]
        assert len(told) == len(options)
        for line in told:
            assert line.startswith("no plots: ") and line.endswith('pip install "tensorken-nn[plot]"')
        assert out.splitlines()[-1].startswith("test accuracy: ")
    assert not list((working_directory / "runs").rglob("curves.png"))


# ---- the folder of results ---------------------------------------------------------------------------


def test_each_run_has_a_new_folder(run: Any, working_directory: Path) -> None:
    (working_directory / "runs" / "digits-7").mkdir(parents=True)
    (working_directory / "runs" / "digits-old").mkdir()
    for _ in range(2):
        assert run("digits", *QUICK)[0] == 0
    names = sorted(path.name for path in (working_directory / "runs").iterdir())
    assert names == ["digits-7", "digits-8", "digits-9", "digits-old"]


def test_a_folder_taken_by_another_run_is_skipped(
    working_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (working_directory / "runs" / "digits-1").mkdir(parents=True)
    monkeypatch.setattr(
        Path, "glob", lambda *_: iter(())
    )  # as if the other run created its folder after the listing
    assert run_directory.create("digits") == Path("runs", "digits-2")


def test_results_are_replaced_only_on_request(run: Any, working_directory: Path) -> None:
    directory = working_directory / "mine"
    directory.mkdir()
    (directory / "thesis.txt").write_text("years of work", encoding="utf-8")
    status, out, err = run("digits", *QUICK, "--out", "mine")
    assert (status, out) == (1, "")
    assert err == "tensorken: mine is not empty; choose another --out, or --force to replace results there\n"
    assert [path.name for path in directory.iterdir()] == ["thesis.txt"]
    (directory / "metrics.jsonl").write_text("old\n", encoding="utf-8")
    assert run("digits", *QUICK, "--out", "mine", "--force")[0] == 0
    assert (directory / "thesis.txt").read_text(encoding="utf-8") == "years of work"
    assert [row["epoch"] for row in metrics(directory)] == [1, 2]


def test_an_empty_or_new_folder_is_accepted(run: Any, working_directory: Path) -> None:
    (working_directory / "empty").mkdir()
    for name in ("empty", str(Path("new", "deep"))):
        assert run("digits", *QUICK, "--out", name)[0] == 0
        assert len(metrics(working_directory / name)) == 2


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_file_in_place_of_the_folder_is_refused(
    run: Any, working_directory: Path, force: tuple[str, ...]
) -> None:
    (working_directory / "file").write_text("kept", encoding="utf-8")
    status, out, err = run("digits", *QUICK, "--out", "file", *force)
    assert (status, out, err) == (1, "", "tensorken: file is a file; choose another --out\n")
    status, out, err = run("digits", *QUICK, "--out", str(Path("file", "below")), *force)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("tensorken: cannot write to ") and "choose another --out" in err
    assert (working_directory / "file").read_text(encoding="utf-8") == "kept"


def test_nan_and_infinite_metrics_are_null(working_directory: Path) -> None:
    run_directory.append_record(Path("lines"), {"loss": float("nan"), "accuracy": 0.5})
    run_directory.append_record(Path("lines"), {"loss": float("inf"), "accuracy": 0.5})
    text = Path("lines").read_text(encoding="ascii")
    assert [json.loads(line) for line in text.splitlines()] == [{"loss": None, "accuracy": 0.5}] * 2


# ---- errors ------------------------------------------------------------------------------------------


def test_a_backend_without_values_is_refused_in_a_line(run: Any, working_directory: Path) -> None:
    status, out, err = run("digits", "--backend", "string")
    assert (status, out) == (1, "")
    assert err == (
        "tensorken: train: backend 'string' computes no values, which training needs; choose another --backend\n"
    )
    assert not list(working_directory.iterdir())


def test_backends_without_values_are_detected_by_reading_a_value() -> None:
    class Mute(String):
        """A backend without values, with an unknown name."""

    with tk.use_backend(Mute()), pytest.raises(BackendError, match="computes no values"):
        cli.check_backend()
    with tk.use_backend(Numpy()):
        assert cli.check_backend()[0]


def test_an_unknown_backend_is_reported_by_the_host(run: Any, working_directory: Path) -> None:
    status, out, err = run("digits", "--backend", "nunpy")
    assert (status, out) == (1, "")
    assert "unknown backend 'nunpy'" in err and "did you mean: numpy" in err
    assert len(err.splitlines()) <= 8
    status, _, err = run("digits", "--backend", "numpy", "--device", "moon")
    assert status == 1 and "no device 'moon'" in err
    assert not list(working_directory.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--epochs", "0"), "--epochs: must be a whole number of at least 1, got '0'"),
        (("--epochs", "-3"), "--epochs: must be a whole number of at least 1, got '-3'"),
        (("--bakend", "numpy"), "there is no option --bakend; did you mean --backend?"),
        (("--epochs", "1.5"), "--epochs: must be a whole number of at least 1, got '1.5'"),
        (("--batch-size", "-1"), "--batch-size: must be a whole number of at least 1, got '-1'"),
        (("--learning-rate", "nan"), "--learning-rate: must be a number above 0, got 'nan'"),
        (("--learning-rate", "inf"), "--learning-rate: must be a number above 0, got 'inf'"),
        (("--learning-rate", "0"), "--learning-rate: must be a number above 0, got '0'"),
        (("--hidden", "8", "x"), "--hidden: must be a whole number of at least 1, got 'x'"),
        (("--seed", "-1"), "--seed: must be a whole number of at least 0, got '-1'"),
        (("--epoch", "3"), "there is no option --epoch; did you mean --epochs?"),
        (("more",), "unexpected argument 'more'"),
    ],
)
def test_bad_options_are_refused(
    run: Any, working_directory: Path, arguments: tuple[str, ...], message: str
) -> None:
    status, out, err = run("digits", *arguments)
    assert (status, out) == (2, "")
    assert (
        err == f"tensorken train digits: {message}\n  'tensorken train digits --help' lists the arguments\n"
    )
    assert not list(working_directory.iterdir())


def test_a_limit_beyond_the_data_is_refused_in_a_line(run: Any, working_directory: Path) -> None:
    status, out, err = run("digits", "--limit", "5000")
    assert (status, out) == (1, "")
    assert err == "tensorken: digits: there are 1797 images, the limit is 5000; lower it\n"
    assert not list(working_directory.iterdir())


def test_without_a_name_the_jobs_are_listed(run: Any) -> None:
    for arguments in ((), ("--help",)):
        status, out, err = run(*arguments)
        assert (status, err) == (0, "")
        assert re.search(r"^  digits +read handwritten digits", out, re.MULTILINE)


def test_a_misspelt_job_gets_a_suggestion(run: Any) -> None:
    status, out, err = run("digitz")
    assert (status, out) == (2, "")
    hint = "\n  'tensorken train --help' lists the arguments\n"
    assert err == f"tensorken train: there is no job 'digitz'; did you mean digits?{hint}"
    status, _, err = run("--epochs", "3")
    assert status == 2 and err == f"tensorken train: there is no option --epochs{hint}"


def test_help_lists_every_option_with_its_default(run: Any) -> None:
    status, out, _ = run("digits", "--help")
    text = " ".join(out.split())
    assert status == 0
    for option in (
        "backend",
        "device",
        "epochs",
        "batch-size",
        "learning-rate",
        "hidden",
        "limit",
        "seed",
        "out",
        "force",
    ):
        assert f"--{option}" in text
    assert "(default: 128 64)" in text and "(default: 30)" in text and "(default: all)" in text


# ---- interruption ------------------------------------------------------------------------------------

DRIVER = """
import _thread, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells disable it in background processes

def wait():
    if sys.stdin.readline():
        _thread.interrupt_main()

threading.Thread(target=wait, daemon=True).start()
from tensorken_cli.command import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("by", ["signal", "thread"])
def test_ctrl_c_saves_and_ends_with_130_and_a_clean_line(working_directory: Path, by: str) -> None:
    if by == "signal" and sys.platform == "win32":
        by = "thread"  # on Windows, a signal cannot be sent to a single process
    command = [sys.executable, "-c", DRIVER, *"train digits --epochs 1000 --hidden --out out".split()]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, encoding="utf-8", cwd=working_directory, **pipes) as process:  # type: ignore[call-overload]
        guard = threading.Timer(120, process.kill)
        guard.start()
        lines = list(_through(process.stdout, "epoch    1/1000"))
        if by == "signal":
            process.send_signal(signal.SIGINT)
        out, err = process.communicate("now\n" if by == "thread" else None)
        guard.cancel()
    assert process.returncode == 130
    match = re.fullmatch(
        r"tensorken: interrupted in epoch (\d+) of 1000; --resume out continues from there\n", err
    )
    assert match, err
    rows = metrics(working_directory / "out")
    assert int(match[1]) - len(rows) in (0, 1)  # the signal may arrive just after a line
    assert RunMetadata.read(working_directory / "out" / "checkpoint.safetensors").step >= rows[-1]["step"]
    assert "test accuracy" not in "".join(lines) + out


@pytest.mark.parametrize("target", ["tensorken_nn.jobs.digits.read", "tensorken_nn.curves.draw"])
def test_ctrl_c_outside_the_steps_ends_with_a_clean_line(
    run: Any, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    module, _, name = target.rpartition(".")
    monkeypatch.setattr(sys.modules[module], name, _interrupt)
    status, _, err = run("digits", *QUICK)
    assert (status, err) == (
        130,
        "tensorken: interrupted; the last checkpoint, if any, is in the run's folder\n",
    )


def test_a_signal_waits_for_the_end_of_a_step_and_a_second_one_does_not() -> None:
    with Interruption() as interruption:
        assert not interruption.requested()
        signal.raise_signal(signal.SIGINT)
        assert interruption.requested() and interruption.status == 130
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_after_an_interrupt_the_next_run_works(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("tensorken_nn.jobs.classification.accuracy", _interrupt)
        assert run("digits", *QUICK)[0] == 130
    assert run("digits", *QUICK)[0] == 0


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


# ---- resuming ----------------------------------------------------------------------------------------


def interrupted(run: Any, monkeypatch: pytest.MonkeyPatch, after: int, *arguments: str) -> None:
    """Run until a signal after this many steps."""
    steps = 0

    def requested(self: Interruption) -> bool:
        nonlocal steps
        steps += 1
        return steps >= after

    with monkeypatch.context() as patch:
        patch.setattr(Interruption, "requested", requested)
        assert run(*arguments)[0] == 130


@pytest.mark.parametrize("after", [1, 3, 4, 5])
def test_a_resumed_run_ends_with_the_same_bits(
    run: Any, working_directory: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    assert run("digits", *QUICK, "--out", "whole")[0] == 0
    interrupted(run, monkeypatch, after, "digits", *QUICK, "--out", "parts")
    status, out, err = run("digits", "--resume", "parts")
    assert (status, err) == (0, "")
    assert re.search(r"^resuming after step \d of 6$", out, re.MULTILINE)
    for name in ("metrics.jsonl", "checkpoint.safetensors"):
        assert (working_directory / "whole" / name).read_bytes() == (
            working_directory / "parts" / name
        ).read_bytes()


def test_a_finished_run_can_be_resumed_with_more_steps(run: Any, working_directory: Path) -> None:
    assert run("digits", *QUICK, "--out", "out")[0] == 0
    assert run("digits", "--resume", "out", "--epochs", "4")[0] == 0
    assert [row["epoch"] for row in metrics(working_directory / "out")] == [1, 2, 3, 4]
    status, out, _ = run("digits", "--resume", "out")
    assert status == 0 and out.splitlines()[-1].startswith("test accuracy: ")


def test_a_folder_without_a_checkpoint_cannot_be_resumed(run: Any, working_directory: Path) -> None:
    status, out, err = run("digits", "--resume", "nowhere")
    assert (status, out) == (1, "")
    assert err == (
        "tensorken: train: there is no checkpoint.safetensors in nowhere; give the folder of an earlier run\n"
    )
    assert run("digits", *QUICK, "--out", "out")[0] == 0
    status, _, err = run("bigrams", "--resume", "out")
    assert (
        status == 1 and err == "tensorken: train: out is a run of 'digits', not of 'bigrams'; name that job\n"
    )
    status, _, err = run("digits", "--resume", "out", "--out", "elsewhere")
    assert status == 1 and err.startswith("tensorken: train: --resume continues in its own folder")


def test_a_resumed_run_keeps_its_settings(run: Any) -> None:
    assert run("digits", *QUICK, "--out", "out")[0] == 0
    status, _, err = run("digits", "--resume", "out", "--hidden", "9", "8")
    assert status == 1
    assert err.startswith(
        "tensorken: train: the run was started with --hidden 8, got 9 8; a resumed run keeps"
    )
    assert run("digits", "--resume", "out", "--hidden", "8")[0] == 0


def test_patience_ends_with_the_best_state(
    run: Any, working_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accuracies = iter([0.1, 0.5, 0.4, 0.3, 0.2, 0.9])
    monkeypatch.setattr(
        "tensorken_nn.jobs.digits.evaluate", lambda *_: {"test_accuracy": next(accuracies), "test_loss": 1.0}
    )
    status, out, _ = run("digits", *QUICK, "--epochs", "6", "--patience", "2", "--out", "out")
    assert status == 0
    assert [row["test_accuracy"] for row in metrics(working_directory / "out")] == [0.1, 0.5, 0.4, 0.3]
    assert out.splitlines()[-1] == "test accuracy: 50.0 %"
    assert RunMetadata.read(working_directory / "out" / "best.safetensors").step == 6


def test_patience_and_the_best_state_are_resumed(
    run: Any, working_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accuracies = iter([0.5, 0.4, 0.6, 0.3, 0.2])
    monkeypatch.setattr("tensorken_nn.jobs.digits.evaluate", lambda *_: {"test_accuracy": next(accuracies)})
    assert run("digits", *QUICK, "--patience", "2", "--out", "out")[0] == 0
    assert RunMetadata.read(working_directory / "out" / "best.safetensors").step == 3
    status, out, _ = run("digits", "--resume", "out", "--epochs", "9")
    assert (status, out.splitlines()[-1]) == (0, "test accuracy: 60.0 %")
    assert [row["test_accuracy"] for row in metrics(working_directory / "out")] == [0.5, 0.4, 0.6, 0.3, 0.2]
    assert RunMetadata.read(working_directory / "out" / "best.safetensors").step == 9


def test_other_data_or_fewer_steps_are_refused_on_resume(run: Any) -> None:
    Path("table.csv").write_text("1,a\n2,a\n3,b\n4,b\n5,b\n", encoding="utf-8")
    assert run("classifier", "--csv", "table.csv", "--epochs", "2", "--out", "out")[0] == 0
    status, _, err = run("classifier", "--resume", "out", "--epochs", "1")
    assert (status, err) == (1, "tensorken: train: out is at step 2 already, beyond 1; request more steps\n")
    Path("table.csv").write_text("1,a\n2,a\n3,b\n4,c\n5,c\n", encoding="utf-8")
    status, _, err = run("classifier", "--resume", "out")
    assert (status, err) == (
        1,
        "tensorken: train: out was trained on other data; use the same data, or start a new run\n",
    )


def test_checkpoint_every_sets_the_interval(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    monkeypatch.setattr(
        "tensorken_nn.checkpoints.save", lambda file, state, texts: steps.append(json.loads(texts["step"]))
    )
    assert run("digits", *QUICK, "--checkpoint-every", "2")[0] == 0
    assert steps == [0, 2, 3, 4, 6]


# ---- consoles ----------------------------------------------------------------------------------------


def test_an_ascii_console_is_enough(working_directory: Path) -> None:
    process = _process("train", "digits", *QUICK, "--out", "Übung", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert process.returncode == 0, process.stderr
    assert r"results are in \xdcbung" in process.stdout
    assert len(metrics(working_directory / "Übung")) == 2


def test_no_display_is_needed(working_directory: Path) -> None:
    process = _process("train", "digits", *QUICK, MPLBACKEND="TkAgg")
    assert process.returncode == 0, process.stderr
    assert (working_directory / "runs" / "digits-1" / "curves.png").exists()


def _through(lines: Iterable[str], start: str) -> Iterator[str]:
    """The lines up to the first with this prefix, or to the end."""
    for line in lines:
        yield line
        if line.startswith(start):
            return


def _process(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tensorken", *arguments]
    environment = {**{k: v for k, v in os.environ.items() if k != "DISPLAY"}, **variables}
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", env=environment, timeout=120, check=False
    )


# ---- CSV files of the user ---------------------------------------------------------------------------


def test_a_csv_file_of_the_user_is_learned(run: Any, working_directory: Path) -> None:
    rows = [f"{x},{100 * y},{'above' if y > x else 'below'}" for x in range(12) for y in range(12) if x != y]
    Path("table.csv").write_text("\n".join(["x,y,side", *rows]) + "\n", encoding="utf-8")
    status, out, err = run("classifier", "--csv", "table.csv", "--epochs", "30", "--out", "out")
    assert (status, err) == (0, "")
    assert "106 rows to train on, 26 to test; 2 columns, 2 classes" in out
    assert "   0 is above" in out and "   1 is below" in out
    assert metrics(working_directory / "out")[-1]["test_accuracy"] > 0.9
    assert run("classifier", "--resume", "out", "--epochs", "31")[0] == 0


def test_an_unusable_csv_file_is_refused_in_a_line(run: Any) -> None:
    Path("one.csv").write_text("1,2,a\n3,4,a\n", encoding="utf-8")
    for arguments, message in (
        ((), "there is no data; pass a table with --csv FILE"),
        (("--csv", "one.csv"), "all rows of one.csv have the class 'a'; need two classes or more"),
        (("--csv", "nowhere.csv"), "cannot read nowhere.csv"),
    ):
        status, out, err = run("classifier", *arguments)
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert message in err


def test_a_finished_run_without_metrics_is_reported(run: Any, working_directory: Path) -> None:
    assert run("digits", *QUICK, "--out", "out")[0] == 0
    (working_directory / "out" / "metrics.jsonl").unlink()
    status, _, err = run("digits", "--resume", "out")
    assert (status, err.count("\n")) == (1, 1) and "no metrics.jsonl" in err
