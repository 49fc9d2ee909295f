"""Loaders: each epoch has every row once, and from_step continues the same sequence of batches."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

import tensorken as tk
from tensorken_core.errors import ArgumentError, DTypeError, ScalarRangeError, ShapeError
from tensorken_nn.loader import DataLoader, Loader, Windows

KEY = tk.random.key(5, backend="numpy")


def examples(rows: int) -> tuple[tk.Tensor, tk.Tensor]:
    labels = tk.arange(rows)
    return tk.stack([labels.astype("float32"), -labels.astype("float32")], 1), labels


def numbers(batches: Any) -> list[Any]:
    return [tuple(x.tolist() for x in batch) for batch in batches]


@pytest.fixture(params=["rows", "rows that fit", "rows in order", "windows"])
def loader(request: pytest.FixtureRequest, backend: str) -> Loader:
    """Each kind of loader on each backend, with a key on another backend."""
    if request.param == "windows":
        return Windows(tk.arange(50) * 3, 4, 3, KEY)
    options = {"rows": {"key": KEY}, "rows that fit": {"key": KEY, "drop_last": True}, "rows in order": {}}
    return DataLoader(examples(11), 3, **options[request.param])  # type: ignore[arg-type]


def test_from_step_continues_the_sequence_of_batches(loader: Loader) -> None:
    batches = numbers(itertools.islice(loader.from_step(0), 9))
    for step in (1, 3, 4, 8):
        assert numbers(itertools.islice(loader.from_step(step), 9 - step)) == batches[step:], step


def test_one_key_gives_the_same_batches_on_every_backend(loader: Loader) -> None:
    expected = numbers(itertools.islice(loader.from_step(2), 5))
    with tk.use_backend("numpy"):
        on_numpy: Loader = (
            Windows(loader.tokens.to("numpy"), loader.context, loader.batch_size, loader.key)
            if isinstance(loader, Windows)
            else DataLoader(examples(11), 3, key=loader.key, drop_last=loader.drop_last)  # type: ignore[attr-defined]
        )
        assert numbers(itertools.islice(on_numpy.from_step(2), 5)) == expected


def test_steps_count_from_0(loader: Loader) -> None:
    with pytest.raises(ArgumentError, match="count from 0, got -"):
        next(loader.from_step(-1))


# ---- rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "size", "drop_last", "sizes"),
    [
        (23, 5, False, [5, 5, 5, 5, 3]),
        (23, 5, True, [5, 5, 5, 5]),
        (20, 5, False, [5] * 4),
        (20, 5, True, [5] * 4),
        (3, 10, False, [3]),
    ],
)
def test_an_epoch_has_every_row_once(
    backend: str, rows: int, size: int, drop_last: bool, sizes: list[int]
) -> None:
    loader = DataLoader(examples(rows), size, key=KEY, drop_last=drop_last)
    batches = list(loader.epoch(3))
    assert [labels.size for _, labels in batches] == sizes and len(loader) == len(sizes)
    assert all(x.tolist() == [[float(i), -float(i)] for i in y.tolist()] for x, y in batches)
    order = [i for _, y in batches for i in y.tolist()]
    assert len(set(order)) == sum(sizes) and set(order) <= set(range(rows))
    if rows > 3:
        assert order != sorted(order)


def test_each_epoch_has_its_own_order() -> None:
    loader = DataLoader(tk.arange(50), 10, key=KEY)
    epochs = [[batch.tolist() for batch in loader.epoch(number)] for number in (0, 1, 0)]
    assert epochs[0] == epochs[2] != epochs[1]
    other = DataLoader(tk.arange(50), 10, key=tk.random.key(6))
    assert [batch.tolist() for batch in other.epoch(0)] != epochs[0]


def test_without_a_key_rows_stay_in_order() -> None:
    loader = DataLoader({"x": tk.arange(5)}, 2)
    expected = [[0, 1], [2, 3], [4]]
    assert [batch["x"].tolist() for batch in loader.epoch(7)] == expected
    assert [batch["x"].tolist() for batch in itertools.islice(loader.from_step(1), 3)] == [
        [2, 3],
        [4],
        [0, 1],
    ]


def test_bad_data_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"DataLoader: .* got shapes \(3,\), \(2,\)"):
        DataLoader((tk.zeros(3), tk.zeros(2)), 1)
    with pytest.raises(ShapeError, match=r"got shapes \(\)"):
        DataLoader(tk.zeros(()), 1)
    with pytest.raises(ShapeError, match="got shapes none"):
        DataLoader({}, 1)
    with pytest.raises(ArgumentError, match="at least one row in a batch, got 0"):
        DataLoader(tk.zeros(3), 0)
    with pytest.raises(ArgumentError, match="0 rows make no batch"):
        DataLoader(tk.zeros((0, 2)), 1)
    with pytest.raises(ArgumentError, match="3 rows make no batch of 4; use a smaller batch_size"):
        DataLoader(tk.zeros(3), 4, drop_last=True)


# ---- windows -----------------------------------------------------------------------------------------------


def test_targets_are_the_inputs_one_token_later(backend: str) -> None:
    tokens = tk.arange(40, dtype="int64") * 7
    for inputs, targets in itertools.islice(Windows(tokens, 6, 5, KEY).from_step(0), 4):
        assert inputs.shape == targets.shape == (5, 6)
        assert inputs.dtype == targets.dtype == tk.int32
        assert {inputs.backend, targets.backend} == {backend}
        for row, later in zip(inputs.tolist(), targets.tolist(), strict=True):
            assert row == list(range(row[0], row[0] + 42, 7)) and row[0] % 7 == 0
            assert later == [token + 7 for token in row]


def test_windows_are_uniformly_distributed() -> None:
    windows = Windows(tk.arange(9), 4, 1000, KEY)
    counts = Counter(windows.batch(0)[0][:, 0].tolist())
    assert sorted(counts) == [0, 1, 2, 3, 4]  # the last window ends with the last token
    assert max(windows.batch(0)[1].ravel().tolist()) == 8
    assert all(abs(count - 200) < 60 for count in counts.values())  # 4.7 standard deviations


def test_a_text_of_one_window_is_enough() -> None:
    inputs, targets = Windows(tk.tensor([4, 5, 6]), 2, 2, KEY).batch(0)
    assert inputs.tolist() == [[4, 5]] * 2 and targets.tolist() == [[5, 6]] * 2


def test_windows_of_many_lengths_do_not_warn() -> None:
    for context in range(1, 21):  # jit's warning of repeated tracing would be an error here
        inputs, _ = Windows(tk.arange(40), context, 2, KEY).batch(0)
        assert inputs.shape == (2, context)


def test_bad_windows_are_refused() -> None:
    with pytest.raises(
        ShapeError, match=r"more than 3 tokens in one row, got shape \(3,\); give a longer text"
    ):
        Windows(tk.arange(3), 3, 1, KEY)
    with pytest.raises(ShapeError, match=r"got shape \(2, 9\)"):
        Windows(tk.zeros((2, 9), "int32"), 3, 1, KEY)
    with pytest.raises(DTypeError, match=r"tokens must be ints, got float32; see Vocabulary\.encode"):
        Windows(tk.zeros(9), 3, 1, KEY)
    for context, size in ((0, 1), (1, 0)):
        with pytest.raises(ArgumentError, match=f"batch_size of 1 or more, got {context} and {size}"):
            Windows(tk.arange(9), context, size, KEY)
    with pytest.raises(ScalarRangeError):
        Windows(tk.arange(9), 3, 1, KEY).batch(2**31)
