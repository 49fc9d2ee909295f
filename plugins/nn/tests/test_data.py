"""Data: splits and batches lose nothing, and the digits are those of the source."""

from __future__ import annotations

import hashlib
import random
from importlib import resources

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken.errors import ArgumentError, ShapeError
from tensorken_nn import digits


@pytest.mark.parametrize(
    ("count", "share", "held_out"), [(10, 0.2, 2), (1797, 0.2, 359), (3, 0.5, 2), (2, 0.5, 1)]
)
def test_a_split_is_in_two_parts_without_a_common_element(count: int, share: float, held_out: int) -> None:
    train, test = nn.split(count, share, random.Random(0))
    assert len(test) == held_out
    assert sorted(train + test) == list(range(count))
    assert nn.split(count, share, random.Random(0)) == (train, test)


def test_another_seed_splits_otherwise() -> None:
    assert nn.split(100, 0.2, random.Random(0))[1] != nn.split(100, 0.2, random.Random(1))[1]


@pytest.mark.parametrize(("count", "share"), [(0, 0.2), (1, 0.2), (2, 0.2), (5, 1.0)])
def test_no_part_of_a_split_is_empty(count: int, share: float) -> None:
    with pytest.raises(ArgumentError, match=f"split: of {count} examples.*leaves one part empty"):
        nn.split(count, share, random.Random(0))


def test_batches_hold_every_row_once_and_keep_rows_together(backend: str) -> None:
    n, size = 23, 5
    labels = tk.arange(n)
    inputs = tk.stack([labels.astype("float32"), -labels.astype("float32")], 1)
    seen = list(nn.batches((inputs, labels), size, random.Random(0)))
    assert [batch[1].size for batch in seen] == [5, 5, 5, 5, 3]
    assert all(x.tolist() == [[float(i), -float(i)] for i in y.tolist()] for x, y in seen)
    order = [i for _, y in seen for i in y.tolist()]
    assert sorted(order) == list(range(n))
    assert order != list(range(n))


def test_each_epoch_has_its_own_order() -> None:
    rng = random.Random(0)
    first, second = ([batch.tolist() for batch in nn.batches(tk.arange(50), 10, rng)] for _ in range(2))
    assert first != second


def test_a_batch_may_be_larger_than_the_data() -> None:
    assert [batch.shape for batch in nn.batches(tk.zeros((3, 2)), 10, random.Random(0))] == [(3, 2)]


def test_bad_batches_are_refused() -> None:
    rng = random.Random(0)
    with pytest.raises(ShapeError, match=r"got shapes \(3,\), \(2,\)"):
        next(nn.batches((tk.zeros(3), tk.zeros(2)), 1, rng))
    with pytest.raises(ShapeError, match=r"got shapes \(\)"):
        next(nn.batches(tk.zeros(()), 1, rng))
    with pytest.raises(ShapeError, match="got shapes none"):
        next(nn.batches({}, 1, rng))
    with pytest.raises(ArgumentError, match="at least one row in a batch, got 0"):
        next(nn.batches(tk.zeros(3), 0, rng))


@pytest.mark.feature(120)
def test_the_digits_are_those_of_the_source() -> None:
    folder = resources.files("tensorken_nn") / "datasets"
    checksum = hashlib.sha256((folder / "digits.csv.gz").read_bytes()).hexdigest()
    assert checksum == "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"
    origin = (folder / "digits.txt").read_text(encoding="utf-8")
    assert checksum in origin
    assert all(word in origin for word in ("Alpaydin", "Kaynak", "UCI", "CC BY 4.0"))
    images = digits.read()
    assert len(images) == 1797
    assert {len(pixels) for pixels, _ in images} == {64}
    assert {pixel for pixels, _ in images for pixel in pixels} == set(range(17))
    counts = [sum(digit == d for _, digit in images) for d in range(10)]
    assert counts == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]  # as the source gives them
