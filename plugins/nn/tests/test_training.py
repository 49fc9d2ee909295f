"""Training: the recipe works, learns the digits, and gives the same on every backend and in every run."""

from __future__ import annotations

from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken import tree
from tensorken.errors import ArgumentError
from tensorken_nn import digits
from tensorken_nn.training import predict

SMALL = digits.Settings(epochs=2, batch_size=16, hidden=(12,), limit=80, seed=3)


def train(settings: digits.Settings) -> tuple[list[nn.Epoch], Any]:
    """The figures of all epochs and the model at the end."""
    epochs, model = [], None
    for epoch, model in nn.fit(digits.prepare(settings)):  # noqa: B007
        epochs.append(epoch)
    return epochs, model


def leaves(model: Any) -> list[float]:
    return [x for leaf in tree.leaves(model) for x in leaf.ravel().tolist()]


@pytest.mark.feature(120)
def test_the_five_steps_of_training_lower_the_loss(backend: str) -> None:
    # 1. Data: inputs and what is expected of them.
    x = tk.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = tk.tensor([0, 1, 1, 0])
    # 2. An architecture, and its model.
    model = nn.mlp((2, 8, 2), tk.tanh, key=tk.random.key(0))

    # 3. The loss.
    def loss(model: Any) -> tk.Tensor:
        return nn.cross_entropy(model(x), y)

    optimizer = nn.SGD(0.5, momentum=0.9)
    state = optimizer.init(model)
    losses = []
    for _ in range(60):
        # 4. The gradient of the loss.
        value, gradient = tk.value_and_grad(loss)(model)
        # 5. A step against it.
        model, state = optimizer.update(model, gradient, state)
        losses.append(value.item())
    assert losses[0] > 0.5
    assert losses[-1] < 0.02
    assert nn.accuracy(model(x), y).item() == 1.0


@pytest.mark.slow
@pytest.mark.feature(120)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_digits_are_learned(seed: int) -> None:
    with tk.use_backend("numpy"):
        epochs, _ = train(digits.Settings(seed=seed))
    assert [epoch.number for epoch in epochs] == list(range(1, 31))
    assert epochs[0].loss > 2 * epochs[-1].loss
    assert epochs[-1].accuracy > 0.995
    assert epochs[-1].test_accuracy >= 0.97


def test_the_figures_are_those_of_the_model(backend: str) -> None:
    task = digits.prepare(SMALL)
    for epoch, model in nn.fit(task):
        logits = model(task.test[0])
        assert epoch.test_accuracy == pytest.approx(nn.accuracy(logits, task.test[1]).item())
        assert epoch.test_loss == pytest.approx(nn.cross_entropy(logits, task.test[1], 0.1).item())
        table = nn.confusion(task.test[1].tolist(), predict(task, model), 10)
        assert sum(table[i][i] for i in range(10)) == round(epoch.test_accuracy * 16)
        assert sum(map(sum, table)) == 16


def test_every_step_is_told() -> None:
    task = digits.prepare(SMALL)
    told: list[None] = []
    epochs = list(nn.fit(task, lambda: told.append(None)))
    assert len(told) == task.steps == 2 * 4
    assert len(epochs) == 2


@pytest.mark.feature(120)
def test_the_same_seed_gives_the_same_bits(backend: str) -> None:
    first_epochs, first = train(SMALL)
    second_epochs, second = train(SMALL)
    assert first_epochs == second_epochs
    assert leaves(first) == leaves(second)


def test_another_seed_gives_other_numbers() -> None:
    assert (
        train(SMALL)[0] != train(digits.Settings(epochs=2, batch_size=16, hidden=(12,), limit=80, seed=4))[0]
    )


def test_backends_agree() -> None:
    found = {}
    for name in ("numpy", "reference"):
        with tk.use_backend(name):
            started = leaves(digits.prepare(SMALL).model)
            epochs, model = train(SMALL)
            assert {leaf.backend for leaf in tree.leaves(model)} == {name}
            found[name] = started, epochs, leaves(model)
    (started, epochs, numpy), (started_too, epochs_too, reference) = found["numpy"], found["reference"]
    assert started == pytest.approx(started_too, rel=1e-6)
    assert numpy == pytest.approx(reference, abs=1e-4)
    assert [e.loss for e in epochs] == pytest.approx([e.loss for e in epochs_too], abs=1e-4)


def test_the_images_held_out_are_never_learned_from() -> None:
    task = digits.prepare(digits.Settings())
    train_rows, test_rows = ({tuple(row) for row in part[0].tolist()} for part in (task.train, task.test))
    assert task.train[0].shape == (1438, 64) and task.test[0].shape == (359, 64)
    assert not train_rows & test_rows  # no two images of the source are equal
    assert float(task.train[0].max()) == 1.0 and float(task.train[0].min()) == 0.0


def test_what_is_held_out_depends_on_the_seed_alone() -> None:
    first, second = (
        digits.prepare(digits.Settings(hidden=hidden)).test[1].tolist() for hidden in ((), (5, 5))
    )
    assert first == second


@pytest.mark.parametrize(
    ("limit", "message"), [(1798, "there are 1797 images"), (2, "leaves one part empty")]
)
def test_a_limit_that_cannot_be_is_refused(limit: int, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        digits.prepare(digits.Settings(limit=limit))
