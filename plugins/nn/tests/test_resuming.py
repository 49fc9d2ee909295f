"""A training run that is killed at any moment resumes with the same bits."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

JOB = ("train", "digits", "--epochs", "6", "--limit", "120", "--hidden", "8", "--checkpoint-every", "2")
KEPT = ("checkpoint.safetensors", "metrics.jsonl")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tensorken", *arguments]


def killed(arguments: tuple[str, ...], seconds: float, folder: Path) -> None:
    """Run a training process; kill it after this time unless it has ended."""
    with subprocess.Popen(
        command(*arguments), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            _, err = process.communicate(timeout=seconds)
            assert process.returncode == 0, err.decode()
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2, 3)]])
def test_a_killed_run_resumes_with_the_same_bits(tmp_path: Path, seed: int) -> None:
    start = time.monotonic()
    subprocess.run(
        command(*JOB, "--out", "whole"), cwd=tmp_path, check=True, capture_output=True, timeout=300
    )
    duration = time.monotonic() - start
    rng = random.Random(seed)
    checkpoint = tmp_path / "parts" / "checkpoint.safetensors"
    for _ in range(5):
        arguments = (
            ("train", "digits", "--resume", "parts", "--checkpoint-every", "2")
            if checkpoint.exists()
            else (*JOB, "--out", "parts", "--force")
        )
        killed(arguments, rng.uniform(0.3, 1.0) * duration, tmp_path)
    last = (
        ("train", "digits", "--resume", "parts")
        if checkpoint.exists()
        else (*JOB, "--out", "parts", "--force")
    )
    subprocess.run(command(*last), cwd=tmp_path, check=True, capture_output=True, timeout=300)
    for name in KEPT:
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    assert not list((tmp_path / "parts").glob("*.part"))
