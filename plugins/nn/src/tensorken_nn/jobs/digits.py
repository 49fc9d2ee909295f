"""The job `digits`: train a multilayer perceptron or a convolutional network on handwritten digits.

The images are part of this package; datasets/digits.txt names their source.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, TypeAlias

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.initializers import he_normal, zeros
from tensorken_nn.jobs.classification import classify, evaluate, summarize
from tensorken_nn.layers import Conv2d, Flatten, MaxPool2d, Sequential, mlp
from tensorken_nn.loader import DataLoader
from tensorken_nn.losses import minimum_cross_entropy
from tensorken_nn.module import size
from tensorken_nn.optimizers import Adam
from tensorken_nn.options import count, local_steps_option, one_of, option, parts_option, rate, seed
from tensorken_nn.schedules import linear
from tensorken_nn.training import Learner, Task, gradient_step

SIDE, DARKEST, CLASSES = 8, 16, 10
PIXELS = SIDE * SIDE
HELD_OUT = 0.2
LABEL_SMOOTHING = 0.1  # raises the test accuracy by 1 %, on average over seeds

Image: TypeAlias = tuple[list[int], int]
"""The pixels, row by row, and the digit."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the job. On one machine, with the same number of threads, equal settings give equal bits."""

    model: str = option(
        "mlp", one_of("mlp", "convnet"), "mlp (a multilayer perceptron) or convnet (convolutions)"
    )
    epochs: int = option(30, count, "the number of passes over all images", may_change=True)
    batch_size: int = option(32, count, "the number of images in a batch")
    learning_rate: float = option(5e-3, rate, "of the first step; it falls linearly to 0")
    hidden: tuple[int, ...] = option(
        (128, 64), count, "the sizes of the mlp's hidden layers, if any", multiple=True
    )
    limit: int | None = option(None, count, "the number of images, drawn at random (default: all)")
    parts: int | None = parts_option()
    local_steps: int | None = local_steps_option()
    seed: int = option(0, seed, "of all random numbers")


def read() -> list[Image]:
    """Read the 1797 images: 64 pixels from 0 (white) to 16, and the digit.

    >>> images = read()
    >>> len(images), len(images[0][0]), images[0][1]
    (1797, 64, 0)
    """
    file = resources.files("tensorken_nn") / "datasets" / "digits.csv.gz"
    with file.open("rb") as packed, gzip.open(packed, "rt", encoding="ascii", newline="") as text:
        rows = [[int(cell) for cell in row] for row in csv.reader(text)]
    return [(row[:PIXELS], row[PIXELS]) for row in rows]


def prepare(settings: Settings) -> Task:
    """Make the task, on the backend in use.

    The test set, the initial parameters and the order of the batches each have a key derived from the seed.

    Raises:
        ArgumentError: if the limit exceeds the number of images, or leaves no test set.
    """
    images = read()
    limit = len(images) if settings.limit is None else settings.limit
    if limit > len(images):
        raise ArgumentError(f"digits: there are {len(images)} images, the limit is {limit}; lower it")
    split_key, model_key, order_key, step_key = tk.random.split(tk.random.key(settings.seed), 4)
    order: list[int] = tk.random.permutation(split_key, len(images))[:limit].tolist()
    held_out = round(limit * HELD_OUT)
    if not 0 < held_out < limit:
        raise ArgumentError(f"digits: {limit} images leave no test set; raise the limit")
    train, test = (tensors([images[i] for i in part]) for part in (order[held_out:], order[:held_out]))
    model, kind = build(settings, model_key)
    loader = DataLoader(train, settings.batch_size, key=order_key)
    steps = settings.epochs * len(loader)
    optimizer = Adam(linear(settings.learning_rate, 0.0, steps))
    return Task(
        description=(
            f"digits: {limit - held_out} images to train on, {held_out} to test",
            f"model: {kind}, {size(model)} parameters",
            f"loss: cross-entropy with label smoothing {LABEL_SMOOTHING}, "
            f"so never below {minimum_cross_entropy(CLASSES, LABEL_SMOOTHING):.2f}",
        ),
        state=Learner(model, optimizer.init(model)),
        step=gradient_step(lambda model, batch, key: classify(model, batch, LABEL_SMOOTHING), optimizer),
        batches=loader.from_step,
        steps=steps,
        period=len(loader),
        key=step_key,
        monitor="test_accuracy",
        evaluate=lambda learner: evaluate(learner.model, test, LABEL_SMOOTHING),
        summarize=lambda learner, folder: summarize(learner.model, test, list(map(str, range(CLASSES)))),
    )


def build(settings: Settings, key: Tensor) -> tuple[Sequential, str]:
    """The initial model, and its description."""
    if settings.model == "mlp":
        sizes = (PIXELS, *settings.hidden, CLASSES)
        return mlp(sizes, key=key), f"perceptron with layers of {', '.join(map(str, sizes))}"
    first, second, third = tk.random.split(key, 3)
    initializers: dict[str, Any] = {"weight_initializer": he_normal, "bias_initializer": zeros}
    model = Sequential(
        as_image,
        Conv2d(1, 16, 3, padding="same", key=first, **initializers),
        tk.relu,
        Conv2d(16, 32, 3, padding="same", key=second, **initializers),
        tk.relu,
        MaxPool2d(2),
        Flatten(),
        mlp((32 * SIDE // 2 * SIDE // 2, 64, CLASSES), key=third),
    )
    return model, "two convolutions of 16 and 32 channels, and a perceptron with a hidden layer of 64"


def as_image(pixels: Tensor) -> Tensor:
    """Map shape (n, 64) to (n, 1, 8, 8): one channel, rows and columns."""
    return pixels.reshape((-1, 1, SIDE, SIDE))


def tensors(images: Sequence[Image]) -> tuple[Tensor, Tensor]:
    """The pixels, scaled to [0, 1], float32 of shape (n, 64), and the digits, int32 of shape (n,)."""
    pixels = [[pixel / DARKEST for pixel in row] for row, _ in images]
    return tk.tensor(pixels, tk.float32), tk.tensor([digit for _, digit in images], tk.int32)
