"""The job `names`: train a network on given names, and draw new ones.

There are three models: `bigram` sees the last character, `mlp` the last few, `transformer` the whole name so far.
Source of the first two: Andrej Karpathy, makemore, parts 1 and 2 (2022).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.gpt import GPT
from tensorken_nn.initializers import lecun_normal
from tensorken_nn.jobs.corpora import alphabet, names, pairs, spell
from tensorken_nn.layers import mlp
from tensorken_nn.loader import DataLoader
from tensorken_nn.module import Module, size, static
from tensorken_nn.optimizers import SGD, AdamW, Optimizer
from tensorken_nn.options import count, local_steps_option, one_of, option, parts_option, rate, seed
from tensorken_nn.sampling import draw
from tensorken_nn.schedules import cosine, warmup
from tensorken_nn.text import Vocabulary
from tensorken_nn.training import Learner, Summary, Task, gradient_step

HELD_OUT = 0.1
IGNORED = -1
"""The label of a position after the end of a name."""

WARMUP = 100  # steps
SAMPLES = 10  # names to draw after training
CHUNK = 1 << 15  # examples to evaluate in one batch


# ---- the models ----------------------------------------------------------------------------------------------


class Bigram(Module):
    """The logits of the next character, given only the last one."""

    weight: Tensor  # (characters, characters)

    def __call__(self, tokens: Tensor) -> Tensor:
        """Map any shape to (..., characters)."""
        return self.weight[tokens]


class Perceptron(Module):
    """The logits of the next character, given the embeddings of the last few characters.

    Source: Bengio, Ducharme, Vincent, Jauvin, A Neural Probabilistic Language Model (2003).
    """

    embedding: Tensor  # (characters, width)
    network: Any
    context: int = static()

    def __call__(self, tokens: Tensor) -> Tensor:
        """Map (batch, time) to (batch, time, characters); the text is padded in front with end marks."""
        batch, time = tokens.shape
        padded = tk.pad(tokens, ((0, 0), (self.context - 1, 0)))
        windows = tk.stack([padded[:, i : i + time] for i in range(self.context)], axis=-1)
        logits: Tensor = self.network(self.embedding[windows].reshape((batch, time, -1)))
        return logits


class Recipe(NamedTuple):
    """How to build and train a model."""

    build: Callable[[Any, int, int, Tensor], Any]  # from settings, characters, the longest name, and a key
    optimizer: Callable[[float, int], Optimizer]  # from the learning rate and the number of steps
    learning_rate: float
    steps: int
    period: int
    batch_size: int | None  # None: each batch has all pairs of characters, and there is no test set


def _bigram(settings: Settings, characters: int, longest: int, key: Tensor) -> Bigram:
    return Bigram(tk.random.normal(key, (characters, characters)))


def _perceptron(settings: Settings, characters: int, longest: int, key: Tensor) -> Perceptron:
    first, second = tk.random.split(key)
    sizes = (settings.context * settings.embedding, settings.width, characters)
    network = mlp(sizes, tk.tanh, key=second, weight_initializer=lecun_normal)
    return Perceptron(tk.random.normal(first, (characters, settings.embedding)), network, settings.context)


def _transformer(settings: Settings, characters: int, longest: int, key: Tensor) -> GPT:
    return GPT(characters, longest + 1, settings.layers, heads=4, width=64, key=key)


def _descent(learning_rate: float, steps: int) -> Optimizer:
    return SGD(learning_rate)


def _adamw(learning_rate: float, steps: int) -> Optimizer:
    falling = cosine(learning_rate, learning_rate / 100, max(steps - WARMUP, 1))
    return AdamW(warmup(falling, WARMUP), beta2=0.99)


RECIPES = {
    "bigram": Recipe(_bigram, _descent, 50.0, 200, 20, None),
    "mlp": Recipe(_perceptron, _adamw, 5e-3, 8000, 500, 128),
    "transformer": Recipe(_transformer, _adamw, 2e-3, 4000, 400, 64),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the job; None means the default of the model."""

    model: str = option("mlp", one_of(*RECIPES), "bigram, mlp or transformer")
    steps: int | None = option(None, count, "the number of steps (default: the model's)", may_change=True)
    batch_size: int | None = option(None, count, "the number of names in a batch (default: the model's)")
    learning_rate: float | None = option(None, rate, "the largest learning rate (default: the model's)")
    context: int = option(5, count, "the number of characters that the mlp sees")
    embedding: int = option(16, count, "the size of the mlp's character embeddings")
    width: int = option(256, count, "the size of the mlp's hidden layer")
    layers: int = option(4, count, "the number of the transformer's layers")
    text: Path | None = option(None, Path, "a file with one name a line (default: 32 033 given names)")
    parts: int | None = parts_option()
    local_steps: int | None = local_steps_option()
    seed: int = option(0, seed, "of all random numbers")


# ---- the task ------------------------------------------------------------------------------------------------


def examples(words: Sequence[str], vocabulary: Vocabulary, length: int) -> tuple[Tensor, Tensor]:
    """The characters of words, preceded by an end mark, and the next characters; int32 of shape (words, length)."""
    inputs, labels = [], []
    for word in words:
        codes = vocabulary.encode(word)
        rest = length - 1 - len(codes)
        inputs.append([0, *codes, *[0] * rest])
        labels.append([*codes, 0, *[IGNORED] * rest])
    return tk.tensor(inputs, tk.int32), tk.tensor(labels, tk.int32)


def negative_log_likelihood(model: Any, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of -log(probability of the next character) over all positions that are not ignored, and their number."""
    counted = labels != IGNORED
    log_probabilities = tk.log_softmax(model(inputs), -1)
    of_labels = tk.take_along_axis(log_probabilities, tk.where(counted, labels, 0)[..., None], -1).squeeze(-1)
    return -tk.where(counted, of_labels, 0.0).sum(), counted.sum()


def initial_learner(
    settings: Settings, characters: int, longest: int, key: Tensor
) -> tuple[Learner, Optimizer]:
    """The initial state, and its optimiser."""
    recipe = RECIPES[settings.model]
    model = recipe.build(settings, characters, longest, key)
    steps = settings.steps or recipe.steps
    optimizer = recipe.optimizer(settings.learning_rate or recipe.learning_rate, steps)
    return Learner(model, optimizer.init(model)), optimizer


def prepare(settings: Settings) -> Task:
    """Make the task, on the backend in use."""
    recipe = RECIPES[settings.model]
    words = names(settings.text)
    vocabulary = alphabet(words)
    longest = max(map(len, words))
    split_key, model_key, order_key, step_key = tk.random.split(tk.random.key(settings.seed), 4)
    learner, optimizer = initial_learner(settings, len(vocabulary), longest, model_key)

    def objective(
        model: Any, batch: tuple[Tensor, Tensor], key: Tensor
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        total, count = negative_log_likelihood(model, *batch)
        return total / count, {}

    batch_size = settings.batch_size or recipe.batch_size
    order: list[int] = tk.random.permutation(split_key, len(words)).tolist()
    cut = 0 if batch_size is None else max(1, round(len(words) * HELD_OUT))
    if cut == len(words):
        raise ArgumentError("names: one name leaves no test set; pass a file with more names")
    train_words, test_words = ([words[i] for i in part] for part in (order[cut:], order[:cut]))
    if batch_size is None:
        train = test = pairs(train_words, vocabulary)

        def batches(step: int) -> Iterator[Any]:
            return itertools.repeat(train)

    else:
        train, test = (examples(part, vocabulary, longest + 1) for part in (train_words, test_words))
        batches = DataLoader(
            train, min(batch_size, len(train_words)), key=order_key, drop_last=True
        ).from_step
    monitor = "test_loss" if test_words else "all_loss"
    return Task(
        description=(
            f"names: {len(train_words)} to train on, {len(test_words)} to test; {len(vocabulary)} characters",
            f"model: {settings.model}, {size(learner.model)} parameters",
        ),
        state=learner,
        step=gradient_step(objective, optimizer),
        batches=batches,
        steps=settings.steps or recipe.steps,
        period=recipe.period,
        key=step_key,
        monitor=monitor,
        unit="step",
        evaluate=lambda learner: {monitor: mean_loss(learner.model, *test)},
        summarize=lambda learner, folder: summarize(learner, settings, vocabulary, longest),
        facts={"characters": vocabulary.characters, "longest": longest},
        weight=lambda batch: (batch[1] != IGNORED).sum(),
    )


def mean_loss(model: Any, inputs: Tensor, labels: Tensor) -> float:
    """The mean of -log(probability of the next character) over all positions that are not ignored."""
    total, count = 0.0, 0
    for start in range(0, len(inputs), CHUNK):
        part = slice(start, start + CHUNK)
        sums = _negative_log_likelihood(model, inputs[part], labels[part])
        total, count = total + sums[0].item(), count + sums[1].item()
    return total / count


_negative_log_likelihood = tk.jit(negative_log_likelihood)


# ---- sampling ------------------------------------------------------------------------------------------------


def summarize(learner: Learner, settings: Settings, vocabulary: Vocabulary, longest: int) -> Summary:
    """Names drawn from the model."""
    key = tk.random.key(settings.seed)
    drawn = Names(settings, vocabulary, longest)(learner, key, "", SAMPLES, 1.0, None).splitlines()
    return Summary(["names drawn from the model:", *[f"  {name}" for name in drawn]], {"names": drawn})


class Names:
    """Draws names from a model."""

    def __init__(self, settings: Settings, vocabulary: Vocabulary, longest: int) -> None:
        self.vocabulary = vocabulary
        self.longest = longest
        self.settings = settings

    @property
    def state(self) -> Learner:
        """The initial state, of the same structure as in training."""
        return initial_learner(self.settings, len(self.vocabulary), self.longest, tk.random.key(0))[0]

    def __call__(
        self, state: Learner, key: Tensor, prompt: str, count: int, temperature: float, top_k: int | None
    ) -> str:
        """Draw `count` names that begin with the prompt, one a line."""
        start = self.vocabulary.encode(prompt)
        if len(start) >= self.longest:
            raise ArgumentError(
                f"names: the prompt has {len(start)} characters, need fewer than {self.longest}; shorten it"
            )
        tokens = tk.tensor([[0, *start, *[0] * (self.longest - len(start))]] * count, tk.int32)
        for position in range(len(start), self.longest):
            tokens = _append_sampled(
                state.model, tokens, position, tk.random.fold_in(key, position), temperature, top_k
            )
        rows: list[list[int]] = tokens[:, 1:].tolist()
        return "\n".join([spell(row, self.vocabulary) for row in rows])


def _append_sampled(
    model: Any, tokens: Tensor, position: int, key: Tensor, temperature: float, top_k: int | None
) -> Tensor:
    """Draw the token after this position."""
    drawn = draw(key, _logits(model, tokens)[:, position], temperature, top_k).astype(tokens.dtype)
    ended = (tokens[:, position] == 0) & (position > 0)
    return tokens.at[:, position + 1].set(tk.where(ended, 0, drawn))


_logits = tk.jit(lambda model, tokens: model(tokens))
