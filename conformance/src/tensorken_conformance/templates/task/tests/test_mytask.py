"""The task: a few steps reduce the loss, equal settings give equal models, and the command finds the job."""

from __future__ import annotations

import json
import math
from pathlib import Path

import tensorken as tk
import tensorken_nn as nn
from tensorken_nn.cli import main

from tensorken_mytask.job import Settings, prepare


def trained(settings: Settings) -> tuple[nn.Learner, list[dict[str, float]]]:
    """The state after the training, and the metrics of each epoch."""
    results = list(nn.fit(prepare(settings)))
    return results[-1][0].state, [record.metrics for _, record in results if record is not None]


def test_the_loss_falls() -> None:
    task = prepare(Settings(epochs=4))
    before = float(task.evaluate(task.state)["test_loss"])
    _, records = trained(Settings(epochs=4))
    losses = [record["test_loss"] for record in records]
    assert before > 0.8 * math.log(2.0)  # the initial network guesses
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.75 * before
    assert records[-1]["test_accuracy"] > 0.8


def test_equal_settings_give_equal_models() -> None:
    one, other = (trained(Settings(epochs=1, points=80))[0].model for _ in range(2))
    for a, b in zip(tk.tree.leaves(one), tk.tree.leaves(other), strict=True):
        assert a.tolist() == b.tolist()


def test_the_command_trains_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert main(["mytask", "--epochs", "2", "--points", "80", "--quiet", "--out", str(folder)]) == 0
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2]
