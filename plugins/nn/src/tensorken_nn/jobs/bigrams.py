"""The job `bigrams`: how often each character follows each other one in names, and names by those chances.

Source of the model and its figures: Andrej Karpathy, makemore, part 1 (2022).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_nn.jobs.corpora import alphabet, names, pairs, spelled
from tensorken_nn.options import option, quantity, seed
from tensorken_nn.pictures import attempt, heat_map
from tensorken_nn.sampling import draw
from tensorken_nn.text import Vocabulary
from tensorken_nn.training import Shown, Task

SHOWN = 10  # names that are drawn after the training
LONGEST = 100  # characters of a name that is drawn


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be chosen."""

    text: Path | None = option(None, Path, "a file with one name a line (default: 32 033 given names)")
    smoothing: float = option(1.0, quantity, "is added to each count, so that nothing is impossible")
    seed: int = option(0, seed, "for all that is random")


def count(first: Tensor, second: Tensor, size: int) -> Tensor:
    """How often each character (column) follows each (row), float32 of shape (size, size).

    >>> count(tk.tensor([0, 0, 1]), tk.tensor([1, 1, 0]), 2).tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """
    codes = first * size + second
    return tk.zeros_like(codes, tk.float32, shape=(size * size,)).at[codes].add(1.0).reshape((size, size))


def negative_log_likelihood(counts: Tensor, smoothing: float) -> Tensor:
    """The mean of -log(the chance of a pair), over all pairs that were counted; shape ()."""
    smoothed = counts + smoothing
    chances = smoothed / smoothed.sum(1, keepdims=True)
    return -tk.where(counts > 0, counts * tk.log(chances), 0.0).sum() / counts.sum()


def prepare(settings: Settings) -> Task:
    """The pairs of characters; the one step counts them."""
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
        watched="loss",
        unit="step",
        show=lambda counts, folder: show(counts, vocabulary, settings, folder),
        facts={"characters": vocabulary.characters},
    )


def show(counts: Tensor, vocabulary: Vocabulary, settings: Settings, folder: Path) -> Shown:
    """The commonest pairs, names that are drawn, and a picture of all counts."""
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
    problem = attempt(lambda file: heat_map(table, characters, file), folder / "bigrams.png")
    drawn = Bigrams(vocabulary, settings.smoothing)(
        counts, tk.random.key(settings.seed), "", SHOWN, 1.0, None
    )
    lines = [
        "commonest pairs: " + ", ".join([f"{pair} {n}" for n, pair in ordered[:5]]),
        *problem,
        "names by these chances:",
        *[f"  {name}" for name in drawn.splitlines()],
    ]
    return Shown(lines, {"pairs": {pair: n for n, pair in ordered if n}})


def vega_lite(ordered: Sequence[tuple[int, str]]) -> dict[str, Any]:
    """The counts as a picture in the language Vega-Lite, https://vega.github.io/vega-lite/ (version 5)."""
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
        """So many names, a line each, that begin with the prompt."""
        logits = tk.log(state + self.smoothing)
        start = self.vocabulary.encode(prompt)
        rows = tk.tensor([[start[-1] if start else 0]] * count, tk.int32)
        places = []
        for place in range(LONGEST):
            drawn = draw(tk.random.fold_in(key, place), logits[rows[:, 0]], temperature, top_k).astype(
                tk.int32
            )
            rows = tk.where(
                (rows == 0) & (place + len(start) > 0), 0, drawn[:, None]
            )  # what has ended stays so
            places.append(rows)
            if not rows.any():
                break
        codes: list[list[int]] = tk.concatenate(places, axis=1).tolist()
        return "\n".join([prompt + spelled(row, self.vocabulary) for row in codes])
