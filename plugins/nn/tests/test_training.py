"""Training: the loop learns the digits, and resumes with the same bits on one machine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError
from tensorken_nn.jobs import digits
from tensorken_nn.training import Summary, periods_without_improvement

SMALL = digits.Settings(epochs=2, batch_size=16, hidden=(12,), limit=80, seed=3)


def train(settings: digits.Settings) -> tuple[list[nn.Record], Any]:
    """The records of all epochs and the last state."""
    records, state = [], None
    for progress, record in nn.fit(digits.prepare(settings)):
        assert record is not None
        records.append(record)
        state = progress.state
    return records, state


def numbers(state: Any) -> list[float]:
    leaves = tree.leaves(state)
    return [x for leaf in leaves for x in (leaf.ravel().tolist() if isinstance(leaf, Tensor) else [leaf])]


@pytest.mark.feature(120)
def test_the_five_steps_of_training_lower_the_loss(backend: str) -> None:
    # 1. Data: inputs and targets.
    x = tk.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = tk.tensor([0, 1, 1, 0])
    # 2. A model.
    model = nn.mlp((2, 8, 2), tk.tanh, key=tk.random.key(0))

    # 3. The loss.
    def loss(model: Any) -> Tensor:
        return nn.cross_entropy(model(x), y)

    optimizer = nn.SGD(0.5, momentum=0.9)
    state = optimizer.init(model)
    losses = []
    for _ in range(60):
        # 4. The gradient of the loss.
        value, gradient = tk.value_and_grad(loss)(model)
        # 5. A step against the gradient.
        model, state = optimizer.update(model, gradient, state)
        losses.append(value.item())
    assert losses[0] > 0.5
    assert losses[-1] < 0.02
    assert nn.accuracy(model(x), y).item() == 1.0


# ---- tasks with known results --------------------------------------------------------------------


def counting(steps: int = 7, period: int = 3, **options: Any) -> nn.Task:
    """A task that adds the numbers 1, 2, ...; the metrics of a step are its number and a random number of its key."""

    def batches(step: int) -> Iterator[Tensor]:
        return (tk.tensor(float(i)) for i in itertools.count(step + 1))

    def step(state: Tensor, batch: Tensor, key: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return state + batch, {"loss": batch, "drawn_loss": tk.random.uniform(key, ())}

    defaults: dict[str, Any] = {
        "batches": batches,
        "evaluate": lambda state: {"test_loss": state},
        "key": tk.random.key(0),
        "monitor": "loss",
    }
    return nn.Task(("counts",), tk.tensor(0.0), step, steps=steps, period=period, **{**defaults, **options})


def test_metrics_are_means_over_the_steps_of_a_period() -> None:
    records = [record for _, record in nn.fit(counting())]
    assert all(record is not None for record in records)
    rows = [(r.step, r.metrics["loss"], r.metrics["test_loss"]) for r in records if r is not None]
    assert rows == [(3, 2.0, 6.0), (6, 5.0, 21.0), (7, 7.0, 28.0)]


def test_each_step_has_its_own_key() -> None:
    task = counting(steps=6, period=1)
    drawn = [record.metrics["drawn_loss"] for _, record in nn.fit(task) if record is not None]
    expected = [tk.random.uniform(tk.random.fold_in(task.key, i), ()).item() for i in range(6)]
    assert drawn == expected and len(set(drawn)) == 6


@pytest.mark.parametrize("stop", range(1, 8))
@pytest.mark.parametrize("compiled", [True, False])
def test_training_resumes_after_any_step_with_the_same_bits(stop: int, compiled: bool) -> None:
    task = counting(compiled=compiled)
    expected = [record for _, record in nn.fit(task)]
    steps = itertools.count(1)
    first = list(nn.fit(task, stop=lambda: next(steps) == stop))
    progress, last = first[-1]
    assert progress.step == stop
    assert (last is None) == (stop not in (3, 6, 7))
    records = [record for _, record in first if record is not None]
    records += [record for _, record in nn.fit(task, progress) if record is not None]
    assert records == expected


def test_a_run_resumed_with_more_steps_has_means_of_full_periods() -> None:
    *_, (progress, _) = nn.fit(counting(steps=7))
    resumed = [record for _, record in nn.fit(counting(steps=12), progress) if record is not None]
    uninterrupted = [record for _, record in nn.fit(counting(steps=12)) if record is not None]
    assert resumed == uninterrupted[2:]


def test_finite_batches_and_empty_periods_are_refused() -> None:
    with pytest.raises(ArgumentError, match="fit: the batches ended before step 3 of 7"):
        list(nn.fit(counting(batches=lambda step: iter([tk.tensor(1.0)] * 2))))
    with pytest.raises(ArgumentError, match="fit: `every` must be 1 or more, got 0"):
        list(nn.fit(counting(), every=0))


def test_progress_is_also_yielded_between_periods() -> None:
    steps = [(progress.step, record is None) for progress, record in nn.fit(counting(), every=2)]
    assert steps == [(2, True), (3, False), (4, True), (6, False), (7, False)]


def test_steps_are_compiled_unless_disabled() -> None:
    calls: list[bool] = []
    for compiled in (True, False):
        task = counting(compiled=compiled)

        def step(state: Any, batch: Any, key: Any, task: nn.Task = task) -> Any:
            calls.append(task.compiled)
            return task.step(state, batch, key)

        list(nn.fit(counting(compiled=compiled).__class__(**{**_fields(task), "step": step})))
    assert calls == [True] + [False] * 7


def _fields(task: nn.Task) -> dict[str, Any]:
    return {name: getattr(task, name) for name in task.__slots__}


def test_progress_is_counted_in_units() -> None:
    assert [counting().progress(step) for step in (0, 1, 3, 4, 7)] == [(0, 3), (1, 3), (1, 3), (2, 3), (3, 3)]
    assert counting(unit="step").progress(4) == (4, 7)


@pytest.mark.parametrize(("steps", "period"), [(0, 1), (1, 0)])
def test_a_task_without_steps_is_refused(steps: int, period: int) -> None:
    with pytest.raises(ArgumentError, match="Task: need one step or more"):
        counting(steps, period)


def test_the_default_summary_is_empty() -> None:
    assert counting().summarize(None, None) == Summary() == ((), {})  # type: ignore[arg-type]


def test_periods_without_improvement_are_counted() -> None:
    def after(*values: float, name: str = "test_loss") -> int:
        return periods_without_improvement(
            [nn.Record(i, {name: value}) for i, value in enumerate(values)], name
        )

    assert [after(), after(1.0), after(2.0, 1.0), after(1.0, 2.0, 1.5), after(1.0, 1.0)] == [0, 0, 0, 2, 1]
    assert after(float("nan"), float("nan")) == 1
    assert after(float("nan"), 5.0) == 0
    assert after(0.5, 0.6, 0.55, name="test_accuracy") == 1


# ---- the digits ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.feature(120)
def test_the_digits_are_learned() -> None:
    with tk.use_backend("numpy"):
        records, _ = train(digits.Settings())
    assert len(records) == 30
    assert records[0].metrics["loss"] > 2 * records[-1].metrics["loss"]
    assert records[-1].metrics["accuracy"] > 0.995
    assert records[-1].metrics["test_accuracy"] >= 0.97


def test_the_metrics_are_those_of_the_state(backend: str) -> None:
    images = digits.read()
    for progress, record in nn.fit(digits.prepare(SMALL)):
        assert record is not None
        summary = digits.prepare(SMALL).summarize(progress.state, None)  # type: ignore[arg-type]
        table = summary.results["confusion"]
        assert sum(map(sum, table)) == 16 < len(images)
        assert sum(table[i][i] for i in range(10)) == round(record.metrics["test_accuracy"] * 16)


@pytest.mark.feature(120)
def test_the_same_seed_gives_the_same_bits(backend: str) -> None:
    first_records, first = train(SMALL)
    second_records, second = train(SMALL)
    assert first_records == second_records
    assert numbers(first) == numbers(second)


def test_another_seed_gives_other_numbers() -> None:
    assert (
        train(SMALL)[0] != train(digits.Settings(epochs=2, batch_size=16, hidden=(12,), limit=80, seed=4))[0]
    )


def test_backends_agree() -> None:
    runs = {}
    for name in ("numpy", "reference"):
        with tk.use_backend(name):
            start = numbers(digits.prepare(SMALL).state)
            records, state = train(SMALL)
            assert {leaf.backend for leaf in tree.leaves(state.model)} == {name}
            runs[name] = start, records, numbers(state)
    (numpy_start, numpy_records, numpy_end) = runs["numpy"]
    (reference_start, reference_records, reference_end) = runs["reference"]
    assert numpy_start == pytest.approx(reference_start, rel=1e-6)
    assert numpy_end == pytest.approx(reference_end, abs=1e-4)
    for a, b in zip(numpy_records, reference_records, strict=True):
        assert a.metrics == pytest.approx(b.metrics, abs=1e-4)


def test_images_are_never_trained_on() -> None:
    task = digits.prepare(digits.Settings())
    seen: set[tuple[float, ...]] = set()
    for images, _ in itertools.islice(task.batches(0), task.period):
        seen |= {tuple(row) for row in images.tolist()}
    known = {tuple(pixel / 16 for pixel in pixels) for pixels, _ in digits.read()}
    assert len(known) == 1797  # no two images of the source are equal
    assert seen < known and len(seen) == 1797 - 359


def test_the_test_set_depends_only_on_the_seed() -> None:
    def training_rows(hidden: tuple[int, ...]) -> list[list[float]]:
        task = digits.prepare(digits.Settings(hidden=hidden, limit=100))
        return sorted(
            [row for images, _ in itertools.islice(task.batches(0), task.period) for row in images.tolist()]
        )

    assert training_rows(()) == training_rows((5, 5))


@pytest.mark.parametrize(("limit", "message"), [(1798, "there are 1797 images"), (2, "leave no test set")])
def test_an_impossible_limit_is_refused(limit: int, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        digits.prepare(digits.Settings(limit=limit))
