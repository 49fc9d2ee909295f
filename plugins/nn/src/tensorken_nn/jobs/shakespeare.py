"""The job `shakespeare`: a small GPT learns to write like a text, character by character.

The settings are those that nanoGPT proposes for a computer without a GPU (Andrej Karpathy, 2022).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.clipping import clip_by_global_norm
from tensorken_nn.gpt import GPT, generate
from tensorken_nn.jobs import corpora
from tensorken_nn.loader import Windows
from tensorken_nn.losses import cross_entropy
from tensorken_nn.module import size
from tensorken_nn.optimizers import AdamW, Optimizer, only_matrices
from tensorken_nn.options import count, option, quantity, rate, seed
from tensorken_nn.schedules import cosine, warmup
from tensorken_nn.text import Vocabulary
from tensorken_nn.training import Learner, Shown, Task, gradient_step

HELD_OUT = 0.1  # of the text, its end
GLIMPSE = 200  # characters that are written while training
WARMUP = 100  # steps


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be chosen."""

    layers: int = option(4, count, "of the transformer")
    heads: int = option(4, count, "of its attention")
    width: int = option(128, count, "of what passes")
    context: int = option(64, count, "how many characters it sees")
    batch_size: int = option(12, count, "how many passages make a step")
    steps: int = option(2000, count, "how many", extends=True)
    learning_rate: float = option(1e-3, rate, "at its largest; it falls to a tenth, as a cosine")
    dropout: float = option(0.0, quantity, "the share that is dropped while training")
    evaluate_every: int = option(250, count, "steps between looks at the text held out")
    evaluate_batches: int = option(20, count, "how many batches of it are looked at")
    sample: int = option(2000, count, "how many characters are written at the end", extends=True)
    text: Path | None = option(None, Path, "a file to learn (default: plays by Shakespeare)")
    seed: int = option(0, seed, "for all that is random")


def build(settings: Settings, characters: int, key: Tensor) -> GPT:
    """The model to begin with."""
    return GPT(
        characters,
        settings.context,
        settings.layers,
        settings.heads,
        settings.width,
        bias=False,
        dropout=settings.dropout,
        key=key,
    )


def optimizer_of(settings: Settings) -> Optimizer:
    """AdamW, which keeps matrices small and nothing else; its rate rises, then falls."""
    falling = cosine(settings.learning_rate, settings.learning_rate / 10, max(settings.steps - WARMUP, 1))
    return AdamW(warmup(falling, WARMUP), beta2=0.99, weight_decay=0.1, mask=only_matrices)


def prepare(settings: Settings) -> Task:
    """The text, the model and the recipe, on the backend in use.

    Raises:
        ArgumentError: if the text is too short for the context.
    """
    text = corpora.text("shakespeare", settings.text)
    vocabulary = Vocabulary.of(text)
    codes = vocabulary.encode(text)
    cut = len(codes) - round(len(codes) * HELD_OUT)
    if len(codes) - cut <= settings.context + 1:
        need = round((settings.context + 2) / HELD_OUT)
        raise ArgumentError(
            f"shakespeare: a text of {len(codes)} characters is too short for a context of {settings.context}; "
            f"give one of {need} or more, or a smaller --context"
        )
    train, test = tk.tensor(codes[:cut], tk.int32), tk.tensor(codes[cut:], tk.int32)
    model_key, order_key, test_key, step_key = tk.random.split(tk.random.key(settings.seed), 4)
    model = build(settings, len(vocabulary), model_key)
    optimizer = optimizer_of(settings)
    batches = {
        name: Windows(tokens, settings.context, settings.batch_size, key).from_step
        for name, tokens, key in (("train", train, order_key), ("validation", test, test_key))
    }

    def objective(
        model: GPT, batch: tuple[Tensor, Tensor], key: Tensor
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        inputs, labels = batch
        return cross_entropy(model(inputs, key=key if settings.dropout else None), labels), {}

    measured = tk.jit(lambda model, inputs, labels: cross_entropy(model(inputs), labels))

    def evaluate(learner: Learner) -> dict[str, float]:
        looked_at = itertools.islice(batches["validation"](0), settings.evaluate_batches)
        losses = [measured(learner.model, *batch) for batch in looked_at]
        return {"validation_loss": sum(map(float, losses)) / len(losses)}

    write = Writer(settings, vocabulary)
    return Task(
        description=(
            f"shakespeare: {len(train)} characters to train on, {len(test)} to test; {len(vocabulary)} different ones",
            f"model: GPT with {settings.layers} layers of {settings.heads} heads and width {settings.width}, "
            f"context {settings.context}, {size(model)} parameters",
        ),
        state=Learner(model, optimizer.init(model)),
        step=gradient_step(objective, optimizer, clip=lambda gradients: clip_by_global_norm(gradients, 1.0)),
        batches=batches["train"],
        steps=settings.steps,
        period=settings.evaluate_every,
        key=step_key,
        watched="validation_loss",
        unit="step",
        evaluate=evaluate,
        glimpse=lambda learner: write(learner, tk.random.key(settings.seed), "", GLIMPSE, 0.8, None),
        show=lambda learner, folder: show(learner, settings, write, text),
        facts={"characters": vocabulary.characters},
    )


def show(learner: Learner, settings: Settings, write: Writer, text: str) -> Shown:
    """A passage that the model writes, and how many of its words the text has."""
    written = write(learner, tk.random.key(settings.seed), "", settings.sample, 0.8, None)
    share = known_words(written, text)
    lines = [
        "",
        *[f"  | {line}" for line in written[:600].splitlines()],
        "",
        f"words of the text: {100 * share:.1f} %",
    ]
    return Shown(lines, {"known_words": share, "sample": written})


def known_words(written: str, text: str) -> float:
    """The share of the words written that occur in the text.

    Words are what stands between characters that are no letters, in lower case.

    >>> known_words("to be, or nott", "To be or not to be")
    0.75
    """
    known, words = words_of(text), words_of(written)
    vocabulary = set(known)
    return sum(word in vocabulary for word in words) / max(len(words), 1)


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return "".join([c if c.isalpha() or c == "'" else " " for c in text.lower()]).split()


class Writer:
    """Writes what follows a prompt."""

    def __init__(self, settings: Settings, vocabulary: Vocabulary) -> None:
        self.settings = settings
        self.vocabulary = vocabulary

    @property
    def state(self) -> Learner:
        """Of the structure that the training's has."""
        model = build(self.settings, len(self.vocabulary), tk.random.key(0))
        return Learner(model, optimizer_of(self.settings).init(model))

    def __call__(
        self, state: Any, key: Tensor, prompt: str, count: int, temperature: float, top_k: int | None
    ) -> str:
        """The prompt, and so many characters after it."""
        codes = self.vocabulary.encode(prompt) or [0]  # the first character in order: the end of a line
        tokens: list[list[int]] = generate(
            state.model, tk.tensor([codes], tk.int32), count, key, temperature, top_k
        ).tolist()
        return self.vocabulary.decode(tokens[0])
