"""The job `bigrams`: count the pairs of characters in names, and draw names from these counts.

Source of the model and its metrics: Andrej Karpathy, makemore, part 1 (2022).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_nn.jobs.corpora import alphabet, names, pairs, spell
from tensorken_nn.options import option, quantity, seed
from tensorken_nn.plots import heat_map, try_draw
from tensorken_nn.sampling import draw
from tensorken_nn.text import Vocabulary
from tensorken_nn.training import Summary, Task

SAMPLES = 10  # names to draw after training
MAX_LENGTH = 100  # characters of a drawn name


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the job."""

    text: Path | None = option(None, Path, "a file with one name a line (default: 32 033 given names)")
    smoothing: float = option(1.0, quantity, "is added to each count, so that no pair is impossible")
    seed: int = option(0, seed, "of all random numbers")


def count(first: Tensor, second: Tensor, size: int) -> Tensor:
    """Count how often each character (column) follows each other (row); float32 of shape (size, size).

    >>> count(tk.tensor([0, 0, 1]), tk.tensor([1, 1, 0]), 2).tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """
    codes = first * size + second
    return tk.zeros_like(codes, tk.float32, shape=(size * size,)).at[codes].add(1.0).reshape((size, size))


def negative_log_likelihood(counts: Tensor, smoothing: float) -> Tensor:
    """The mean of -log(probability) over all counted pairs; shape ()."""
    smoothed = counts + smoothing
    probabilities = smoothed / smoothed.sum(1, keepdims=True)
    return -tk.where(counts > 0, counts * tk.log(probabilities), 0.0).sum() / counts.sum()


def prepare(settings: Settings) -> Task:
    """Make the task, whose only step counts the pairs."""
    words = names(settings.text)
    vocabulary = alphabet(words)
    data = pairs(words, vocabulary)
    size = len(vocabulary)

    def step(
        counts: Tensor, batch: tuple[Tensor, Tensor], key: Tensor
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        counts = counts + count(*batch, size)
        return counts, {"loss": negative_log_likelihood(counts, settings.smoothing)}

    return Task(
        description=(f"bigrams: {len(words)} names, {data[0].size} pairs of {size} characters",),
        state=tk.zeros((size, size)),
        step=step,
        batches=lambda steps: iter([data]),
        steps=1,
        period=1,
        key=tk.random.key(settings.seed),
        monitor="loss",
        unit="step",
        summarize=lambda counts, folder: summarize(counts, vocabulary, settings, folder),
        facts={"characters": vocabulary.characters},
    )


def summarize(counts: Tensor, vocabulary: Vocabulary, settings: Settings, folder: Path) -> Summary:
    """The most frequent pairs, drawn names, and a plot of all counts."""
    table: list[list[float]] = counts.tolist()
    characters = vocabulary.characters
    ordered = sorted(
        (
            (int(n), a + b)
            for a, row in zip(characters, table, strict=True)
            for b, n in zip(characters, row, strict=True)
        ),
        key=lambda pair: (-pair[0], pair[1]),
    )
    (folder / "bigrams.vl.json").write_text(json.dumps(vega_lite(ordered), indent=1) + "\n", encoding="utf-8")
    try_draw(lambda file: heat_map(table, characters, file), folder / "bigrams.png")
    drawn = Bigrams(vocabulary, settings.smoothing)(
        counts, tk.random.key(settings.seed), "", SAMPLES, 1.0, None
    )
    lines = [
        "most frequent pairs: " + ", ".join([f"{pair} {n}" for n, pair in ordered[:5]]),
        "names drawn from these counts:",
        *[f"  {name}" for name in drawn.splitlines()],
    ]
    return Summary(lines, {"pairs": {pair: n for n, pair in ordered if n}})


def vega_lite(ordered: Sequence[tuple[int, str]]) -> dict[str, Any]:
    """The counts as a Vega-Lite plot, https://vega.github.io/vega-lite/ (version 5)."""
    axes = {"x": {"field": "second", "type": "ordinal"}, "y": {"field": "first", "type": "ordinal"}}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "data": {"values": [{"first": pair[0], "second": pair[1], "count": n} for n, pair in ordered]},
        "mark": "rect",
        "encoding": {**axes, "color": {"field": "count", "type": "quantitative"}},
    }


class Bigrams:
    """Draws names from counts."""

    def __init__(self, vocabulary: Vocabulary, smoothing: float) -> None:
        self.vocabulary = vocabulary
        self.smoothing = smoothing
        self.state = tk.zeros((len(vocabulary), len(vocabulary)))

    def __call__(
        self, state: Tensor, key: Tensor, prompt: str, count: int, temperature: float, top_k: int | None
    ) -> str:
        """Draw `count` names that begin with the prompt, one a line."""
        logits = tk.log(state + self.smoothing)
        start = self.vocabulary.encode(prompt)
        rows = tk.tensor([[start[-1] if start else 0]] * count, tk.int32)
        drawn_rows = []
        for position in range(MAX_LENGTH):
            drawn = draw(tk.random.fold_in(key, position), logits[rows[:, 0]], temperature, top_k).astype(
                tk.int32
            )
            rows = tk.where(
                (rows == 0) & (position + len(start) > 0), 0, drawn[:, None]
            )  # finished names stay finished
            drawn_rows.append(rows)
            if not rows.any():
                break
        codes: list[list[int]] = tk.concatenate(drawn_rows, axis=1).tolist()
        return "\n".join([prompt + spell(row, self.vocabulary) for row in codes])
