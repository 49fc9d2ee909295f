"""The job `shakespeare`: train a small character-level GPT on a text.

The default settings are nanoGPT's for a computer without a GPU (Andrej Karpathy, 2022).
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
from tensorken_nn.options import count, local_steps_option, option, parts_option, quantity, rate, seed
from tensorken_nn.schedules import cosine, warmup
from tensorken_nn.text import Vocabulary
from tensorken_nn.training import Learner, Summary, Task, gradient_step

HELD_OUT = 0.1  # the fraction of the text, at its end, for validation
PREVIEW = 200  # characters of a sample while training
WARMUP = 100  # steps


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the job."""

    layers: int = option(4, count, "the number of the transformer's layers")
    heads: int = option(4, count, "the number of attention heads")
    width: int = option(128, count, "the size of the hidden state")
    context: int = option(64, count, "the number of characters that the model sees")
    batch_size: int = option(12, count, "the number of passages in a batch")
    steps: int = option(2000, count, "the number of steps", may_change=True)
    learning_rate: float = option(1e-3, rate, "the largest learning rate; it falls to a tenth along a cosine")
    dropout: float = option(0.0, quantity, "the dropout rate while training")
    evaluate_every: int = option(250, count, "the number of steps between evaluations")
    evaluate_batches: int = option(20, count, "the number of batches in an evaluation")
    sample: int = option(2000, count, "the number of characters to write at the end", may_change=True)
    text: Path | None = option(None, Path, "a text file (default: plays by Shakespeare)")
    parts: int | None = parts_option()
    local_steps: int | None = local_steps_option()
    seed: int = option(0, seed, "of all random numbers")


def build(settings: Settings, characters: int, key: Tensor) -> GPT:
    """The initial model."""
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
    """AdamW with weight decay of matrices only, and a learning rate with warmup and a cosine decay."""
    falling = cosine(settings.learning_rate, settings.learning_rate / 10, max(settings.steps - WARMUP, 1))
    return AdamW(warmup(falling, WARMUP), beta2=0.99, weight_decay=0.1, mask=only_matrices)


def prepare(settings: Settings) -> Task:
    """Make the task, on the backend in use.

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
            f"pass one of {need} or more, or a smaller --context"
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

    loss_of = tk.jit(lambda model, inputs, labels: cross_entropy(model(inputs), labels))

    def evaluate(learner: Learner) -> dict[str, float]:
        evaluated = itertools.islice(batches["validation"](0), settings.evaluate_batches)
        losses = [loss_of(learner.model, *batch) for batch in evaluated]
        return {"validation_loss": sum(map(float, losses)) / len(losses)}

    write = Writer(settings, vocabulary)
    return Task(
        description=(
            f"shakespeare: {len(train)} characters to train on, {len(test)} to test; {len(vocabulary)} distinct ones",
            f"model: GPT with {settings.layers} layers of {settings.heads} heads and width {settings.width}, "
            f"context {settings.context}, {size(model)} parameters",
        ),
        state=Learner(model, optimizer.init(model)),
        step=gradient_step(objective, optimizer, clip=lambda gradients: clip_by_global_norm(gradients, 1.0)),
        batches=batches["train"],
        steps=settings.steps,
        period=settings.evaluate_every,
        key=step_key,
        monitor="validation_loss",
        unit="step",
        evaluate=evaluate,
        preview=lambda learner: write(learner, tk.random.key(settings.seed), "", PREVIEW, 0.8, None),
        summarize=lambda learner, folder: summarize(learner, settings, write, text),
        facts={"characters": vocabulary.characters},
    )


def summarize(learner: Learner, settings: Settings, write: Writer, text: str) -> Summary:
    """A passage written by the model, and the fraction of its words that occur in the text."""
    written = write(learner, tk.random.key(settings.seed), "", settings.sample, 0.8, None)
    share = known_words(written, text)
    lines = [
        "",
        *[f"  | {line}" for line in written[:600].splitlines()],
        "",
        f"words that occur in the text: {100 * share:.1f} %",
    ]
    return Summary(lines, {"known_words": share, "sample": written})


def known_words(written: str, text: str) -> float:
    """The fraction of the written words that occur in the text.

    Words are compared in lower case and separated by characters that are not letters.

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
    """Continues a prompt."""

    def __init__(self, settings: Settings, vocabulary: Vocabulary) -> None:
        self.settings = settings
        self.vocabulary = vocabulary

    @property
    def state(self) -> Learner:
        """The initial state, of the same structure as in training."""
        model = build(self.settings, len(self.vocabulary), tk.random.key(0))
        return Learner(model, optimizer_of(self.settings).init(model))

    def __call__(
        self, state: Any, key: Tensor, prompt: str, count: int, temperature: float, top_k: int | None
    ) -> str:
        """The prompt, followed by `count` characters."""
        codes = self.vocabulary.encode(prompt) or [0]  # the first character of the vocabulary: a line feed
        tokens: list[list[int]] = generate(
            state.model, tk.tensor([codes], tk.int32), count, key, temperature, top_k
        ).tolist()
        return self.vocabulary.decode(tokens[0])
