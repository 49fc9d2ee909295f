"""The jobs: their data agree with the sources, and training reaches known results."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken_core.errors import ArgumentError
from tensorken_nn.jobs import JOBS, bigrams, corpora, digits, names, regressions, shakespeare


def trained(task: nn.Task, steps: int | None = None) -> tuple[Any, list[nn.Record]]:
    """The state and the records after this many steps, or all."""
    count = itertools.count(1)
    steps_and_records = list(nn.fit(task, stop=lambda: next(count) == steps))
    return steps_and_records[-1][0].state, [record for _, record in steps_and_records if record is not None]


def test_each_job_has_a_summary_and_a_seed() -> None:
    for name, job in JOBS.items():
        assert job.summary and job.settings().seed >= 0, name


# ---- names -------------------------------------------------------------------------------------------------


def test_the_names_are_those_of_the_source() -> None:
    words = corpora.names()
    assert (len(words), min(map(len, words)), max(map(len, words))) == (32033, 2, 15)
    assert corpora.alphabet(words).characters == ".abcdefghijklmnopqrstuvwxyz"
    first, second = corpora.pairs(words, corpora.alphabet(words))
    assert first.size == second.size == 228146
    assert first[:5].tolist() == [0, 5, 13, 13, 1] and second[:5].tolist() == [5, 13, 13, 1, 0]  # .emma.


@pytest.mark.feature(119, 191)
def test_pairs_are_counted(tmp_path: Path) -> None:
    task = bigrams.prepare(bigrams.Settings())
    counts, (record,) = trained(task)
    assert record.metrics["loss"] == pytest.approx(2.454576820115704, abs=1e-5)
    summary = task.summarize(counts, tmp_path)
    assert list(summary.results["pairs"].items())[:5] == [
        ("n.", 6763),
        ("a.", 6640),
        ("an", 5438),
        (".a", 4410),
        ("e.", 3983),
    ]
    assert sum(summary.results["pairs"].values()) == 228146
    assert len(list(summary.lines)) == 2 + bigrams.SAMPLES
    assert (tmp_path / "bigrams.png").read_bytes().startswith(b"\x89PNG")
    values = json.loads((tmp_path / "bigrams.vl.json").read_text(encoding="utf-8"))["data"]["values"]
    assert len(values) == 27 * 27 and values[0] == {"first": "n", "second": ".", "count": 6763}


@pytest.mark.feature(119, 192)
def test_a_network_of_one_layer_takes_the_expected_steps() -> None:
    """Against the gradient from the counts: softmax minus the fraction of each pair."""
    task = names.prepare(names.Settings(model="bigram"))
    weights = np.asarray(task.state.model.weight, np.float64)
    first, second = (np.asarray(x) for x in next(task.batches(0)))
    counts = np.zeros((27, 27))
    np.add.at(counts, (first, second), 1.0)

    def probabilities() -> Any:
        powers = np.exp(weights)
        return powers / powers.sum(1, keepdims=True)

    for _ in range(3):
        weights -= 50.0 * (probabilities() * counts.sum(1, keepdims=True) - counts) / counts.sum()
    learner, _ = trained(task, 3)
    np.testing.assert_allclose(
        np.asarray(learner.model.weight), weights, atol=1e-3
    )  # sums of thousands, in float32
    assert names.mean_loss(learner.model, *next(task.batches(0))) == pytest.approx(
        -(counts * np.log(probabilities())).sum() / counts.sum(), abs=1e-4
    )


@pytest.mark.nightly
@pytest.mark.feature(192)
def test_a_network_of_one_layer_approaches_the_counts() -> None:
    _, records = trained(names.prepare(names.Settings(model="bigram")))
    assert 2.4540 < records[-1].metrics["all_loss"] <= 2.463


def test_examples_of_names_end_with_a_mark_and_ignore_the_rest() -> None:
    inputs, labels = names.examples(["ab", "b"], nn.Vocabulary(".ab"), 4)
    assert inputs.tolist() == [[0, 1, 2, 0], [0, 2, 0, 0]]
    assert labels.tolist() == [[1, 2, 0, -1], [2, 0, -1, -1]]
    even = names.Bigram(tk.zeros((3, 3)))
    total, count = names.negative_log_likelihood(even, inputs, labels)
    assert (total.item(), count.item()) == (pytest.approx(5 * math.log(3)), 5)


def test_a_perceptron_sees_only_the_last_characters() -> None:
    settings = names.Settings(context=2, embedding=3, width=5)
    model = names.RECIPES["mlp"].build(settings, 4, 6, tk.random.key(0))
    logits = np.asarray(model(tk.tensor([[0, 1, 2, 3], [3, 1, 2, 1]])))
    # A logit is a sum of 5 products, whose factors are tanh of sums of 6, with terms of order 1. BLAS may add them up
    # in another order for another number of rows, or for another row: at most (5 + 6) times eps for each of the two.
    rounding = 2 * (5 + 6) * 2.0**-23
    np.testing.assert_allclose(logits[0][2], logits[1][2], rtol=0, atol=rounding)  # after 1, 2
    assert abs(logits[0][1] - logits[1][1]).max() > 1000 * rounding
    beginning = np.asarray(model(tk.tensor([[1]])))[0][0]
    np.testing.assert_allclose(
        np.asarray(model(tk.tensor([[0, 1]])))[0][1], beginning, rtol=0, atol=rounding
    )  # the end mark is padding


@pytest.mark.parametrize(("model", "steps"), [("mlp", 60), ("transformer", 15)])
def test_networks_learn_names(model: str, steps: int) -> None:
    text = "".join([f"{a}{b}{a}\n" for a in "abcdefgh" for b in "mnopqrst"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "packaged", lambda name: text)
        settings = names.Settings(
            model=model, steps=steps, batch_size=16, learning_rate=3e-2, width=16, layers=1
        )
        _, records = trained(names.prepare(settings))
    assert records[-1].metrics["loss"] < 2.6 < math.log(17)


def test_one_name_leaves_no_test_set(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("anna\n", encoding="utf-8")
    with pytest.raises(ArgumentError, match="names: one name leaves no test set"):
        names.prepare(names.Settings(text=tmp_path / "one.txt"))


# ---- plays -------------------------------------------------------------------------------------------------


def test_the_plays_are_those_of_the_source() -> None:
    text = corpora.packaged("shakespeare")
    assert len(text) == 1_115_394 and len(set(text)) == 65
    task = shakespeare.prepare(shakespeare.Settings())
    assert nn.size(task.state.model) == (65 + 64) * 128 + 4 * (12 * 128**2 + 2 * 128) + 128
    assert (
        task.description[0] == "shakespeare: 1003855 characters to train on, 111539 to test; 65 distinct ones"
    )


def test_a_small_gpt_learns_and_backends_agree() -> None:
    settings = shakespeare.Settings(
        layers=1, heads=2, width=16, context=8, batch_size=4, steps=12, evaluate_every=6, evaluate_batches=2
    )
    metrics = {}
    for backend in ("numpy", "reference"):
        with tk.use_backend(backend), pytest.MonkeyPatch.context() as patch:
            patch.setattr(corpora, "packaged", lambda name: "abcdefgh " * 40)
            _, records = trained(shakespeare.prepare(settings))
        metrics[backend] = [value for record in records for value in record.metrics.values()]
    assert metrics["numpy"] == pytest.approx(metrics["reference"], abs=1e-4)
    assert metrics["numpy"][-1] < metrics["numpy"][1]


def test_known_words_are_counted() -> None:
    assert shakespeare.words_of("O Romeo, 'tis thou: art-less 12") == [
        "o",
        "romeo",
        "'tis",
        "thou",
        "art",
        "less",
    ]
    assert shakespeare.known_words("Thou wert nott", "thou wert") == pytest.approx(2 / 3)
    assert shakespeare.known_words("...", "thou") == 0.0


# ---- images and functions ----------------------------------------------------------------------------------


def test_a_convolutional_network_reads_digits() -> None:
    task = digits.prepare(digits.Settings(model="convnet", limit=200, epochs=4))
    assert nn.size(task.state.model) == 16 * 9 + 16 + 32 * 16 * 9 + 32 + 64 * 512 + 64 + 10 * 64 + 10
    _, records = trained(task)
    assert records[-1].metrics["test_accuracy"] >= 0.6


@pytest.mark.nightly
def test_a_convolutional_network_reads_nearly_all_digits() -> None:
    _, records = trained(digits.prepare(digits.Settings(model="convnet")))
    assert records[-1].metrics["test_accuracy"] >= 0.985


@pytest.mark.feature(159, 160)
def test_functions_are_learned_and_plotted(tmp_path: Path) -> None:
    linear = regressions.prepare_linear(regressions.Linear(epochs=2, samples=50))
    nonlinear = regressions.prepare_nonlinear(regressions.Nonlinear(epochs=2, samples=20))
    for task, result in ((linear, "slopes"), (nonlinear, "clean_error")):
        folder = tmp_path / result
        folder.mkdir()
        state, records = trained(task)
        assert records[1].metrics["loss"] < records[0].metrics["loss"]
        rows = [json.dumps({"step": record.step, **record.metrics}) for record in records]
        (folder / "metrics.jsonl").write_text("\n".join(rows) + "\n", encoding="ascii")
        assert list(task.summarize(state, folder).results) == [result]
        assert (folder / regressions.PICTURE).read_bytes().startswith(b"\x89PNG")
