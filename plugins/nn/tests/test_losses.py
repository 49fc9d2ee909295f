"""Losses and metrics, against their definitions in plain Python, exact arithmetic and another library."""

from __future__ import annotations

import functools
import itertools
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import pytest

import tensorken as tk
import tensorken_nn as nn
from core.tests.each import each_of
from tensorken.testing import check_grads
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_nn.losses import minimum_cross_entropy

RECORDED = Path(__file__).parent / "recorded" / "training.json"
EXPECTED = json.loads(RECORDED.read_text(encoding="ascii"))["losses"]

Loss = Callable[..., tk.Tensor]
LOSSES: dict[str, tuple[Loss, str]] = {
    "squared_error": (nn.squared_error, "targets"),
    "l1": (nn.l1, "targets"),
    "huber": (functools.partial(nn.huber, delta=1.25), "targets"),
    "binary_cross_entropy_with_logits": (nn.binary_cross_entropy_with_logits, "targets"),
    "kl_divergence": (lambda x, y, **options: nn.kl_divergence(tk.log_softmax(x), y, **options), "chances"),
    "cross_entropy": (nn.cross_entropy, "labels"),
    "cross_entropy, smoothed": (functools.partial(nn.cross_entropy, label_smoothing=0.2), "labels"),
    "cross_entropy, ignoring": (functools.partial(nn.cross_entropy, ignore_index=1), "labels"),
}
"""Each loss as a function of logits, and the kind of its targets."""


def targets(name: str, dtype: Any) -> tk.Tensor:
    return tk.tensor(EXPECTED[name], tk.int32 if name == "labels" else dtype)


def plain_cross_entropy(logits: list[list[float]], labels: list[int], smoothing: float = 0.0) -> float:
    """The definition: the cross-entropy between the smoothed label and the softmax, averaged over rows."""
    total = 0.0
    for row, label in zip(logits, labels, strict=True):
        log_sum = math.log(math.fsum([math.exp(z) for z in row]))
        for i, z in enumerate(row):
            probability = smoothing / len(row) + (1 - smoothing if i == label else 0.0)
            total -= probability * (z - log_sum)
    return total / len(labels)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_cross_entropy_is_its_definition(backend: str, smoothing: float) -> None:
    rng = random.Random(0)
    logits = [[rng.uniform(-5, 5) for _ in range(4)] for _ in range(6)]
    labels = [rng.randrange(4) for _ in range(6)]
    loss = nn.cross_entropy(tk.tensor(logits, tk.float64), tk.tensor(labels), smoothing)
    assert loss.shape == ()
    assert loss.item() == pytest.approx(plain_cross_entropy(logits, labels, smoothing), rel=1e-13)


def test_the_gradient_of_cross_entropy_is_softmax_minus_label(backend: str) -> None:
    logits, labels = tk.tensor([[1.0, 2.0, -1.0], [0.0, 0.5, 3.0]], tk.float64), tk.tensor([1, 0])
    gradient = tk.grad(nn.cross_entropy)(logits, labels)
    one_hot = tk.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], tk.float64)
    expected = (tk.softmax(logits) - one_hot) / 2
    assert float((gradient - expected).abs().max()) < 1e-15


def test_rows_may_have_several_axes(backend: str) -> None:
    rng = random.Random(1)
    logits, labels = tk.randn((2, 3, 4), rng, tk.float64), tk.tensor([[0, 1, 2], [3, 2, 1]])
    flat = nn.cross_entropy(logits.reshape(6, 4), labels.reshape(6))
    assert nn.cross_entropy(logits, labels).item() == pytest.approx(flat.item(), rel=1e-14)


def test_large_logits_neither_overflow_nor_lose_the_loss(backend: str) -> None:
    loss, gradient = tk.value_and_grad(nn.cross_entropy)(
        tk.tensor([[1e4, 0.0], [0.0, -3e38]]), tk.tensor([1, 0])
    )
    assert loss.item() == 5e3
    assert gradient.tolist() == [[0.5, -0.5], [0.0, 0.0]]


def test_no_logits_are_below_the_minimum_cross_entropy() -> None:
    classes, smoothing = 10, 0.1
    best = [math.log(1 - smoothing + smoothing / classes), *[math.log(smoothing / classes)] * (classes - 1)]
    least = minimum_cross_entropy(classes, smoothing)
    at_best = nn.cross_entropy(tk.tensor([best], tk.float64), tk.tensor([0]), smoothing).item()
    assert at_best == pytest.approx(least, rel=1e-13)
    rng = random.Random(0)
    for _ in range(20):
        near = tk.tensor([[z + rng.uniform(-1e-2, 1e-2) for z in best]], tk.float64)
        assert nn.cross_entropy(near, tk.tensor([0]), smoothing).item() >= least - 1e-15
    assert minimum_cross_entropy(3, 0.0) == 0.0


def test_bad_arguments_are_refused() -> None:
    logits = tk.zeros((3, 2))
    with pytest.raises(ShapeError, match=r"labels of shape \(2,\) for logits of shape \(3, 2\)"):
        nn.cross_entropy(logits, tk.tensor([0, 1]))
    with pytest.raises(ShapeError, match=r"logits of shape \(\)"):
        nn.cross_entropy(tk.zeros(()), tk.tensor([0]))
    with pytest.raises(DTypeError, match="labels must be ints, got float32"):
        nn.cross_entropy(logits, tk.zeros(3))
    with pytest.raises(ArgumentError, match=r"label_smoothing must be from 0 to 1, got 1\.5"):
        nn.cross_entropy(logits, tk.tensor([0, 1, 1]), 1.5)
    assert nn.cross_entropy(logits, tk.tensor([0, 1, 1])).item() == pytest.approx(math.log(2))


# ---- all losses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_gradients_are_those_of_another_library(backend: str, name: str) -> None:
    """With logits up to 1e4."""
    loss, target_kind = LOSSES[name]
    expected = EXPECTED["cases"][name]
    x, y = tk.tensor(EXPECTED["logits"], tk.float64), targets(target_kind, tk.float64)
    none = loss(x, y, reduction="none")
    assert none.ravel().tolist() == pytest.approx(
        tk.tensor(expected["none"], tk.float64).ravel().tolist(), rel=1e-12
    )
    mean, gradient = tk.value_and_grad(loss)(x, y)
    assert mean.item() == pytest.approx(expected["mean"], rel=1e-13)
    expected_gradient = tk.tensor(expected["gradient"], tk.float64).ravel().tolist()
    assert gradient.ravel().tolist() == pytest.approx(expected_gradient, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("name", LOSSES)
def test_reductions_are_sums_and_means_of_individual_losses(backend: str, name: str) -> None:
    loss, target_kind = LOSSES[name]
    x, y = tk.tensor(EXPECTED["logits"], tk.float32), targets(target_kind, tk.float32)
    single = loss(x, y, reduction="none")
    count = 2 if name == "cross_entropy, ignoring" else single.size
    assert single.dtype is tk.float32
    assert loss(x, y, reduction="sum").item() == pytest.approx(single.sum().item(), rel=1e-6)
    assert loss(x, y).item() == pytest.approx(single.sum().item() / count, rel=1e-6)
    with pytest.raises(ArgumentError, match=r"reduction must be one of 'mean', 'sum', 'none', got 'avg'"):
        loss(x, y, reduction="avg")


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_agree_with_finite_differences(name: str) -> None:
    loss, target_kind = LOSSES[name]
    rng = random.Random(2)
    x = tk.tensor([[rng.uniform(-2, 2) for _ in range(3)] for _ in range(4)], tk.float64)
    y = targets(target_kind, tk.float64)
    check_grads(lambda x: loss(x, y), (x,), order=2)
    if target_kind == "targets":
        check_grads(lambda y: loss(x, y), (y,), order=2)


@pytest.mark.parametrize("name", LOSSES)
def test_compiled_losses_are_the_same(name: str) -> None:
    loss, target_kind = LOSSES[name]
    x, y = tk.tensor(EXPECTED["logits"], tk.float64), targets(target_kind, tk.float64)
    compiled = tk.jit(tk.value_and_grad(loss))(x, y)
    expected = tk.value_and_grad(loss)(x, y)
    for a, b in zip(compiled, expected, strict=True):
        assert a.ravel().tolist() == pytest.approx(b.ravel().tolist(), rel=1e-13, abs=1e-15)


# ---- individual losses -------------------------------------------------------------------------------------


@pytest.mark.feature(158)
def test_squared_error_is_the_loss_over_n() -> None:
    assert (
        nn.squared_error(tk.tensor([1.0, 2.0, 3.0, 4.0]), tk.tensor([1.0, 0.0, 0.0, 0.0])).item() == 29.0 / 4
    )


@pytest.mark.parametrize("loss", [nn.squared_error, nn.l1, nn.huber, nn.binary_cross_entropy_with_logits])
def test_shapes_do_not_broadcast(loss: Loss) -> None:
    with pytest.raises(ShapeError, match=r"targets of shape \(3,\) for outputs of shape \(3, 1\)"):
        loss(tk.zeros((3, 1)), tk.zeros(3))
    with pytest.raises(DTypeError, match="outputs must be floats, got int32"):
        loss(tk.zeros(3, dtype=tk.int32), tk.zeros(3))
    with pytest.raises(DTypeError, match="cross_entropy: outputs must be floats, got int32"):
        nn.cross_entropy(tk.zeros((3, 2), dtype=tk.int32), tk.tensor([0, 1, 1]))


@pytest.mark.parametrize("loss", [nn.squared_error, nn.l1, nn.huber, nn.binary_cross_entropy_with_logits])
def test_targets_take_the_dtype_of_the_outputs(loss: Loss) -> None:
    outputs, expected = tk.tensor([0.5, -1.0]), loss(tk.tensor([0.5, -1.0]), tk.tensor([1.0, 0.0]))
    for equal_targets in (tk.tensor([True, False]), tk.tensor([1, 0]), tk.tensor([1.0, 0.0], tk.float64)):
        result = loss(outputs, equal_targets)
        assert (result.dtype, result.item()) == (tk.float32, expected.item())


def test_huber_does_not_square_large_errors() -> None:
    x = tk.tensor([1e30, -1e30, 0.0, 0.5, 2.0, -2.0])
    losses = nn.huber(x, tk.zeros(6), 2.0, reduction="none")
    assert losses.tolist() == pytest.approx([2e30, 2e30, 0.0, 0.125, 2.0, 2.0])
    gradient = tk.grad(lambda x: nn.huber(x, tk.zeros(6), 2.0, reduction="sum"))(x)
    assert gradient.tolist() == [2.0, -2.0, 0.0, 0.5, 2.0, -2.0]
    with pytest.raises(ArgumentError, match=r"huber: delta must be positive, got 0\.0"):
        nn.huber(x, x, 0.0)


@pytest.mark.parametrize("target", [0.0, 0.3, 1.0])
def test_binary_cross_entropy_is_accurate_to_the_last_digits(backend: str, target: float) -> None:
    """The value and the derivative, from logits at which 1 - p is 1e-300 to those at which it is 1."""
    logits = [-700.0, -40.0, -3.0, -1e-9, 0.0, 1e-9, 0.5, 20.0, 300.0]
    x = tk.tensor(logits, tk.float64)
    y = tk.full((len(logits),), target, dtype=tk.float64)
    losses = nn.binary_cross_entropy_with_logits(x, y, reduction="none")
    slope = tk.grad(lambda x: nn.binary_cross_entropy_with_logits(x, y, reduction="sum"))(x)
    with mpmath.workdps(400):
        t = mpmath.mpf(target)
        probabilities = [1 / (1 + mpmath.exp(-mpmath.mpf(z))) for z in logits]
        expected = [float(-t * mpmath.log(p) - (1 - t) * mpmath.log(1 - p)) for p in probabilities]
        slopes = [float(p - t) for p in probabilities]
    assert losses.tolist() == pytest.approx(expected, rel=1e-14, abs=0.0)
    assert slope.tolist() == pytest.approx(slopes, rel=1e-13, abs=1e-16 if target == 0.3 else 0.0)


@pytest.mark.parametrize(("name", "logit"), [(name, z) for name in LOSSES for z in (1e4, -1e4)])
def test_no_loss_and_no_gradient_is_lost_at_large_logits(name: str, logit: float) -> None:
    loss, target_kind = LOSSES[name]
    y = targets(target_kind, tk.float32)
    x = tk.full((4, 3), 0.0).at[:, 1].set(logit)
    value, gradient = tk.value_and_grad(loss)(x, y)
    assert math.isfinite(value.item())
    assert bool(tk.isfinite(gradient).all())


def test_divergence_is_zero_between_equals_and_never_below() -> None:
    rng = random.Random(4)
    p, q = [tk.softmax(tk.randn((20, 5), rng, tk.float64)) for _ in range(2)]
    assert float(tk.abs(nn.kl_divergence(tk.log(p), p, reduction="none")).max()) < 1e-15
    assert float(nn.kl_divergence(tk.log(q), p, reduction="none").min()) > 0.0
    with pytest.raises(ShapeError, match=r"kl_divergence: got shape \(\), need an axis of classes"):
        nn.kl_divergence(tk.zeros(()), tk.zeros(()))


def test_impossible_classes_with_target_zero_add_nothing() -> None:
    """A target of 0 with a log-probability of -inf adds 0 to the loss and both derivatives, not NaN."""
    log_probabilities, target = tk.tensor([[0.0, -math.inf]], tk.float64), tk.tensor([[1.0, 0.0]], tk.float64)
    value, gradients = tk.value_and_grad(nn.kl_divergence, (0, 1))(log_probabilities, target)
    assert value.item() == 0.0
    assert [g.tolist() for g in gradients] == [[[-1.0, 0.0]], [[1.0, 0.0]]]
    assert nn.kl_divergence(log_probabilities, tk.tensor([[0.5, 0.5]], tk.float64)).item() == math.inf


def test_labels_may_be_ignored(backend: str) -> None:
    """The result is as without the ignored labels, whether `ignore_index` is a class or not."""
    rng = random.Random(3)
    logits = tk.randn((2, 3, 4), rng, tk.float64)
    rows = logits.reshape(6, 4)[tk.tensor([0, 2, 3])]
    for ignored in (-1, 3):
        labels = tk.tensor([[0, ignored, 2], [1, ignored, ignored]])
        for smoothing in (0.0, 0.1):
            expected = nn.cross_entropy(rows, tk.tensor([0, 2, 1]), smoothing).item()
            loss = nn.cross_entropy(logits, labels, smoothing, ignore_index=ignored)
            assert loss.item() == pytest.approx(expected, rel=1e-14)
        gradient = tk.grad(lambda x, y, i: nn.cross_entropy(x, y, ignore_index=i))(logits, labels, ignored)
        assert gradient.reshape(6, 4)[tk.tensor([1, 4, 5])].tolist() == [[0.0] * 4] * 3
    all_ignored = nn.cross_entropy(logits, tk.full((2, 3), -1), ignore_index=-1)
    assert math.isnan(all_ignored.item())


def test_cross_entropy_of_probabilities_is_that_of_labels_where_one_class_is_certain(backend: str) -> None:
    logits, labels = tk.randn((3, 4), random.Random(5), tk.float64), tk.tensor([3, 0, 1])
    certain = (labels.reshape(3, 1) == [0, 1, 2, 3]).astype(tk.float64)
    for options in ({}, {"label_smoothing": 0.1}, {"reduction": "none"}):
        expected = nn.cross_entropy(logits, labels, **options).ravel().tolist()
        assert nn.cross_entropy(logits, certain, **options).ravel().tolist() == pytest.approx(
            expected, rel=1e-14
        )
    likelihood = nn.negative_log_likelihood(tk.log_softmax(logits), labels)
    assert likelihood.item() == nn.cross_entropy(logits, labels).item()
    impossible = tk.tensor([[0.0, -math.inf]], tk.float64)
    value, gradient = tk.value_and_grad(nn.cross_entropy)(impossible, tk.tensor([[1.0, 0.0]], tk.float64))
    assert value.item() == 0.0 and gradient.tolist() == [[0.0, 0.0]]


def test_classes_have_weights(backend: str) -> None:
    """A weight counts an example as often as it says; the weight of a label divides the mean."""
    logits, labels = tk.randn((3, 2), random.Random(6), tk.float64), tk.tensor([0, 1, 1])
    twice = tk.concatenate([logits, logits[:1]]), tk.tensor([0, 1, 1, 0])
    for options in ({}, {"reduction": "sum"}, {"ignore_index": 1}):
        weighted = nn.cross_entropy(logits, labels, weight=tk.tensor([2.0, 1.0]), **options)
        assert weighted.item() == pytest.approx(nn.cross_entropy(*twice, **options).item(), rel=1e-14)
    with pytest.raises(ShapeError, match=r"got a weight of shape \(3,\), need \(2,\), one for each class"):
        nn.cross_entropy(logits, labels, weight=tk.ones(3))
    with pytest.raises(
        ArgumentError, match=r"ignore_index needs labels, got probabilities of shape \(3, 2\)"
    ):
        nn.cross_entropy(logits, tk.softmax(logits), ignore_index=1)
    with pytest.raises(
        ShapeError, match=r"a weight of shape \(2, 1\) does not broadcast to losses of shape \(3,\)"
    ):
        nn.binary_cross_entropy(tk.ones(3) * 0.5, tk.ones(3), weight=tk.ones((2, 1)))


def test_binary_cross_entropy_is_finite_at_certain_probabilities(backend: str) -> None:
    p, target = tk.tensor([0.0, 0.0, 1.0, 1.0, 0.25]), tk.tensor([0.0, 1.0, 0.0, 1.0, 1.0])
    losses = nn.binary_cross_entropy(p, target, reduction="none")
    assert losses.tolist() == pytest.approx([0.0, 100.0, 100.0, 0.0, -math.log(0.25)])
    gradient = tk.grad(lambda p: nn.binary_cross_entropy(p, target, reduction="sum"))(p)
    assert gradient.tolist() == pytest.approx([1.0, 0.0, 0.0, -1.0, -4.0])


def test_divergence_of_logarithms_is_that_of_probabilities() -> None:
    rng = random.Random(7)
    p, q = [tk.softmax(tk.randn((5, 4), rng, tk.float64)) for _ in range(2)]
    expected = nn.kl_divergence(tk.log(q), p).item()
    assert nn.kl_divergence(tk.log(q), tk.log(p), log_target=True).item() == pytest.approx(
        expected, rel=1e-13
    )
    impossible = tk.tensor([[0.0, -math.inf]], tk.float64)
    value, gradients = tk.value_and_grad(lambda x, y: nn.kl_divergence(x, y, log_target=True), (0, 1))(
        impossible, impossible
    )
    assert value.item() == 0.0
    assert [g.tolist() for g in gradients] == [[[-1.0, 0.0]], [[1.0, 0.0]]]


def test_ctc_is_the_sum_over_all_ways_to_write_the_labels(backend: str) -> None:
    steps, classes, blank = 4, 3, 2
    x = tk.randn((steps, classes), random.Random(8), tk.float64)
    chances = tk.softmax(x).tolist()

    def written(way: tuple[int, ...]) -> list[int]:
        return [c for i, c in enumerate(way) if c != blank and (not i or way[i - 1] != c)]

    for labels in ([0, 1], [1, 1], [0], [1, 0, 1]):
        ways = [way for way in itertools.product(range(classes), repeat=steps) if written(way) == labels]
        total = math.fsum([math.prod([chances[i][c] for i, c in enumerate(way)]) for way in ways])
        loss = nn.ctc(tk.log_softmax(x), tk.tensor(labels), blank=blank, reduction="sum")
        assert loss.item() == pytest.approx(-math.log(total), rel=1e-12)
    nothing = nn.ctc(tk.log_softmax(x), tk.tensor([0]), label_lengths=tk.tensor(0), blank=blank)
    assert nothing.item() == pytest.approx(-math.log(math.prod([row[blank] for row in chances])), rel=1e-12)
    short = nn.ctc(tk.log_softmax(x), tk.tensor([1, 1]), tk.tensor(2), blank=blank)
    assert short.item() == math.inf


def test_ctc_has_derivatives_of_two_orders() -> None:
    x, labels = tk.randn((2, 3, 3), random.Random(9), tk.float64), tk.tensor([[1, 2], [2, 0]])
    check_grads(lambda x: nn.ctc(tk.log_softmax(x), labels, None, tk.tensor([2, 1])), (x,), order=2)
    impossible = nn.ctc(tk.log_softmax(x), tk.tensor([[1, 1]] * 2), tk.tensor([2, 3]), zero_infinity=True)
    certain = tk.log(tk.tensor([[[1.0, 0.0], [0.0, 1.0]]]))
    value, gradient = tk.value_and_grad(nn.ctc)(certain, tk.tensor([[1]]))
    assert bool(tk.isfinite(impossible)) and value.item() == 0.0 and bool(tk.isfinite(gradient).all())


def test_vectors_of_length_0_have_similarity_0_and_no_derivative(backend: str) -> None:
    x, y = tk.zeros((1, 3), tk.float64), tk.ones((1, 3), tk.float64)
    value, gradient = tk.value_and_grad(lambda x: nn.cosine_similarity(x, y).sum())(x)
    assert value.item() == 0.0 and bool(tk.isfinite(gradient).all())
    assert nn.cosine_similarity(x + 3.0, -y, axis=1).tolist() == pytest.approx([-1.0])


@each_of(
    ("call", "message"),
    [
        (lambda x: nn.smooth_l1(x, x, -1.0), "smooth_l1: beta must not be negative, got -1.0"),
        (lambda x: nn.multi_margin(x, tk.tensor([0, 1]), p=3), "multi_margin: p must be 1 or 2, got 3"),
        (
            lambda x: nn.multi_margin(x, tk.tensor([0])),
            r"labels of shape \(1,\) for outputs of shape \(2, 3\)",
        ),
        (lambda x: nn.multi_margin(x, tk.ones(2)), "multi_margin: labels must be ints, got float32"),
        (
            lambda x: nn.cosine_embedding(x, x, tk.ones(3)),
            r"targets of shape \(3,\) for outputs of shape \(2,\)",
        ),
        (lambda x: nn.hinge(x.astype(tk.int32), x), "hinge: outputs must be floats, got int32"),
        (lambda x: nn.pairwise_distance(x.astype(tk.int32), x), "pairwise_distance: outputs must be floats"),
        (
            lambda x: nn.ctc(x, tk.tensor([[0]])),
            r"labels of shape \(1, 1\) for log-probabilities of shape \(2, 3\)",
        ),
        (lambda x: nn.ctc(x, tk.tensor([0]), blank=3), "ctc: blank must be from 0 to 2, got 3"),
        (lambda x: nn.ctc(x, tk.tensor([0.0])), "ctc: labels must be ints, got float32"),
        (
            lambda x: nn.ctc(x, tk.tensor([0]), tk.tensor([2])),
            r"ctc: input_lengths of shape \(1,\), need \(\)",
        ),
        (lambda x: nn.gaussian_negative_log_likelihood(x, x, x, eps=0.0), "eps must be positive, got 0.0"),
    ],
)
def test_arguments_of_margins_and_likelihoods_are_checked(call: Callable[..., Any], message: str) -> None:
    with pytest.raises((ArgumentError, ShapeError, DTypeError), match=message):
        call(tk.ones((2, 3)))


# ---- metrics -----------------------------------------------------------------------------------------------


def test_accuracy_is_the_fraction_of_correct_rows(backend: str) -> None:
    logits = tk.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 2.0, 1.0], [5.0, 0.0, 1.0]])
    labels = tk.tensor([0, 2, 0, 0])
    assert nn.correct(logits, labels).item() == 3
    assert nn.accuracy(logits, labels).item() == 0.75


def test_a_confusion_table_adds_up() -> None:
    rng = random.Random(0)
    labels = [rng.randrange(5) for _ in range(200)]
    predictions = [label if rng.random() < 0.7 else rng.randrange(5) for label in labels]
    table = nn.confusion(labels, predictions, 5)
    assert [sum(row) for row in table] == [labels.count(i) for i in range(5)]
    assert [sum(column) for column in zip(*table, strict=True)] == [predictions.count(i) for i in range(5)]
    correct = sum(a == b for a, b in zip(labels, predictions, strict=True))
    assert sum(table[i][i] for i in range(5)) == correct
    with pytest.raises(ValueError, match="shorter"):
        nn.confusion([0, 1], [0], 2)
