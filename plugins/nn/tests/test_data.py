"""Data: training and test set are disjoint, and the digits agree with their source."""

from __future__ import annotations

import hashlib
from importlib import resources

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.jobs import digits

KEY = tk.random.key(5, backend="numpy")


def examples(rows: int) -> tuple[tk.Tensor, tk.Tensor]:
    labels = tk.arange(rows)
    return tk.stack([labels.astype("float32"), -labels.astype("float32")], 1), labels


@pytest.mark.parametrize(
    ("rows", "share", "held_out"), [(10, 0.2, 2), (1797, 0.2, 359), (3, 0.5, 2), (2, 0.5, 1)]
)
def test_training_and_test_set_are_disjoint(rows: int, share: float, held_out: int) -> None:
    train, test = nn.hold_out(examples(rows), share, KEY)
    assert test[1].size == held_out
    assert sorted(train[1].tolist() + test[1].tolist()) == list(range(rows))
    assert all(x[:, 0].tolist() == y.tolist() for x, y in (train, test))
    assert nn.hold_out(examples(rows), share, KEY)[1][1].tolist() == test[1].tolist()


def test_another_key_gives_another_test_set() -> None:
    held_out = [nn.hold_out(tk.arange(100), 0.2, tk.random.key(seed))[1].tolist() for seed in range(2)]
    assert held_out[0] != held_out[1]


@pytest.mark.parametrize(("rows", "share"), [(0, 0.2), (1, 0.2), (2, 0.2), (5, 1.0), (5, -0.5)])
def test_empty_sets_are_refused(rows: int, share: float) -> None:
    with pytest.raises(
        ArgumentError, match=f"hold_out: a share of {share} of {rows} rows leaves one part empty"
    ):
        nn.hold_out(tk.zeros((rows,)), share, KEY)


def test_different_numbers_of_rows_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"hold_out: .* got shapes \(3,\), \(2,\)"):
        nn.hold_out((tk.zeros(3), tk.zeros(2)), 0.5, KEY)


@pytest.mark.feature(120)
def test_the_digits_are_those_of_the_source() -> None:
    images = digits.read()
    assert len(images) == 1797
    assert {len(pixels) for pixels, _ in images} == {64}
    assert {pixel for pixels, _ in images for pixel in pixels} == set(range(17))
    counts = [sum(digit == d for _, digit in images) for d in range(10)]
    assert counts == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]  # as stated by the source


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("digits.csv", ("Alpaydin", "Kaynak", "UCI", "CC BY 4.0")),
        ("names.txt", ("Social Security Administration", "public domain")),
        ("shakespeare.txt", ("Shakespeare", "public domain")),
    ],
)
def test_data_sets_name_their_source(name: str, words: tuple[str, ...]) -> None:
    folder = resources.files("tensorken_nn") / "datasets"
    origin = (folder / f"{name.partition('.')[0]}.txt").read_text(encoding="utf-8")
    assert origin.startswith(f"{name}.gz\n")
    assert hashlib.sha256((folder / f"{name}.gz").read_bytes()).hexdigest() in origin
    assert all(word in origin for word in words)
