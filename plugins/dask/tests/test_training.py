"""`tensorken train --cluster`: the bits of `--parts`, also after workers and the scheduler are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from tensorken_cli.command import main

DIGITS = ("digits", "--limit", "100", "--hidden", "8", "--batch-size", "30")
JOBS: dict[str, tuple[str, ...]] = {
    "digits": (*DIGITS, "--epochs", "2"),
    "names": ("names", "--steps", "3", "--width", "8", "--batch-size", "10", "--text", "names.txt"),
    "shakespeare": (
        *(
            "shakespeare",
            "--steps",
            "3",
            "--layers",
            "1",
            "--width",
            "8",
            "--context",
            "8",
            "--batch-size",
            "6",
        ),
        *("--dropout", "0.1", "--text", "text.txt", "--sample", "9", "--evaluate-batches", "1"),
    ),
}
SECONDS = 60.0  # to wait for processes

kills = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes are killed by SIGKILL")


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a short list of names, and a short text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "names.txt").write_text("\n".join(["emma", "olivia", "ava", "bo", "maximilian", "li"] * 9))
    (tmp_path / "text.txt").write_text("To be, or not to be, that is the question.\n" * 9)
    return tmp_path


def train(*arguments: str) -> int:
    return main(["train", *arguments, "--quiet"])


def kept(folder: str) -> list[bytes]:
    """The files of a run that depend on no clock."""
    return [Path(folder, name).read_bytes() for name in ("checkpoint.safetensors", "metrics.jsonl")]


def wait_until(condition: Any) -> None:
    """Wait until a function without arguments returns a true value."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < SECONDS
        time.sleep(0.02)


@pytest.mark.parametrize("job", JOBS)
def test_a_cluster_has_the_bits_of_one_process(job: str) -> None:
    assert train(*JOBS[job], "--parts", "3", "--out", "one") == 0
    assert train(*JOBS[job], "--parts", "3", "--cluster", "threads:2", "--out", "two") == 0
    assert kept("one") == kept("two")


def test_local_steps_on_a_cluster_have_the_bits_of_one_process() -> None:
    options = (*JOBS["digits"], "--parts", "3", "--local-steps", "2")
    assert train(*options, "--out", "one") == 0
    assert train(*options, "--cluster", "threads:2", "--out", "two") == 0
    assert kept("one") == kept("two")


def test_there_are_as_many_parts_as_workers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *DIGITS, "--epochs", "1", "--cluster", "threads:2", "--out", "run"]) == 0
    assert json.loads(Path("run", "run.json").read_text())["parts"] == 2
    assert "cluster: 2 workers" in capsys.readouterr().out
    # resumed in one process, in the same parts; and on a cluster of another size
    assert train("digits", "--resume", "run", "--epochs", "2") == 0
    assert train("digits", "--resume", "run", "--epochs", "3", "--cluster", "threads:3") == 0
    for epochs in ("1", "2", "3"):  # the learning rate falls to 0 in each
        options = ("--resume", "other") if epochs != "1" else (*DIGITS[1:], "--parts", "2", "--out", "other")
        assert train("digits", *options, "--epochs", epochs) == 0
    assert kept("run") == kept("other")


def test_an_undivided_run_stays_in_one_process(capsys: pytest.CaptureFixture[str]) -> None:
    assert train(*DIGITS, "--epochs", "1", "--out", "run") == 0
    assert train("digits", "--resume", "run", "--epochs", "2", "--cluster", "threads:2") == 1
    assert "the run was started without --parts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cluster", "local:none"), "need an address, as tcp://HOST:8786, or local:COUNT"),
        (("--cluster", "threads:1", "--device", "cpu"), "leave out --device"),
    ],
)
def test_wrong_options_are_one_line(
    options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(*DIGITS, *options) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


# ---- lost processes ----------------------------------------------------------------------------------------


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of dask, killed at the end."""
    command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def when_trained(folder: str, action: Any) -> Iterator[None]:
    """Call a function in a thread as soon as a run has trained for an epoch."""
    metrics = Path(folder, "metrics.jsonl")

    def act() -> None:
        wait_until(lambda: metrics.exists() and metrics.stat().st_size)
        action()

    thread = threading.Thread(target=act)
    thread.start()
    yield
    thread.join()


@kills
@pytest.mark.slow
def test_lost_workers_and_a_lost_scheduler_change_no_bit(capsys: pytest.CaptureFixture[str]) -> None:
    """A worker is killed in the first run, the scheduler in the second; the third ends in one process."""
    long = (*DIGITS, "--epochs", "60", "--parts", "3")
    assert train(*long, "--out", "one") == 0
    with ExitStack() as stack:
        file = Path("scheduler.json").absolute()
        start = stack.enter_context
        scheduler = start(
            running("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        )
        wait_until(file.exists)
        address = json.loads(file.read_text())["address"]
        for _ in range(2):
            start(running("worker", address, "--nthreads", "1", "--no-nanny"))

        def kill_worker() -> None:
            with Client(address, set_as_default=False) as client:
                client.wait_for_workers(2, timeout=SECONDS)
                os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)

        with when_trained("two", kill_worker):
            assert train(*long, "--cluster", address, "--out", "two") == 0
        assert kept("one") == kept("two")
        capsys.readouterr()
        with when_trained("three", scheduler.kill):
            assert train(*long, "--cluster", address, "--out", "three") == 1
        error = capsys.readouterr().err
        assert f"the scheduler {address} is lost" in error and "; --resume three continues in epoch" in error
        assert error.count("\n") == 1
        assert kept("three") != kept("one")
    assert train("digits", "--resume", "three") == 0
    assert kept("three") == kept("one")
