"""Randomly damaged checkpoints, JSON tensors and tables are refused in one line, or read correctly."""

from __future__ import annotations

import json
import os
import random
import struct
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorken as tk
import tensorken_nn as nn
from plugins.tensorken.tests.fuzzing import damaged_bytes, damaged_json, outcomes
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, TensorkenError
from tensorken_nn import checkpoints, run_directory
from tensorken_nn.checkpoints import CHECKSUM, METADATA, UncheckedWarning
from tensorken_nn.train_run import RunMetadata

DEEP = int(os.environ.get("FUZZED_FILES", 1_000_000))
"""The number of files that the deep test damages."""

Reader = Callable[[Path], Any]


def comparable(value: Any) -> Any:
    """The leaves and the structure of a result, in a form that can be compared."""
    leaves = [*tree.leaves(value), str(tree.structure(value))]
    return [
        np.asarray(x).tobytes() + str((x.shape, x.dtype)).encode() if isinstance(x, Tensor) else x
        for x in leaves
    ]


def saved() -> dict[str, Any]:
    """A tree with every kind of leaf."""
    return {
        "weight": tk.tensor([[0.5, -1.0, 2.0], [3.0, 0.25, -0.0]]),
        "half": tk.tensor([1.5, -2.0], "float16"),
        "long": tk.tensor([2**40, -1], "int64"),
        "mask": tk.tensor([True, False, True]),
        "empty": tk.zeros((0, 3)),
        "step": 7,
        "rate": 0.1,
        "done": False,
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


def attempt_with(
    file: Path, samples: list[tuple[bytes, Reader]], has_json: bool
) -> Callable[[random.Random], str]:
    """Damage one of the samples and read it."""
    expected: list[Any] = []
    for data, read in samples:
        file.write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UncheckedWarning)
            expected.append(comparable(read(file)))

    def attempt(rng: random.Random) -> str:
        i = rng.randrange(len(samples))
        data, read = samples[i]
        try:
            damaged = _damaged(data, rng, has_json)
        except (ValueError, UnicodeError):  # JSON that Python cannot encode
            return "unwritten"
        file.write_bytes(damaged)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UncheckedWarning)
                result = comparable(read(file))
        except TensorkenError as error:
            message = str(error)
        else:
            return "same" if result == expected[i] else "different"
        assert "\n" not in message and len(message) < 600, message
        return "refused"

    return attempt


def _damaged(data: bytes, rng: random.Random, has_json: bool) -> bytes:
    if not has_json or rng.random() < 0.4:
        return damaged_bytes(data, rng)
    if data[:1] == b"{":
        return json.dumps(damaged_json(data.decode(), rng)).encode()
    size = int.from_bytes(data[:8], "little")
    header = json.dumps(damaged_json(data[8 : 8 + size].decode(), rng)).encode()
    return struct.pack("<Q", len(header)) + header + data[8 + size :]


def checkpoint_samples(file: Path) -> list[tuple[bytes, Reader]]:
    """Checkpoints with a checksum, without one, and their metadata."""
    values = saved()
    checkpoints.save(file, values, {"job": "digits", "settings": '{"rate": 0.1}'})
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    del header[METADATA][CHECKSUM]
    text = json.dumps(header).encode()
    unchecked = struct.pack("<Q", len(text)) + text + data[8 + size :]
    like = tree.map(lambda x: x * 0 if isinstance(x, Tensor) and x.dtype.kind != "bool" else x, values)

    def load(path: Path) -> Any:
        return checkpoints.load(path, like)

    return [(data, load), (unchecked, load), (data, checkpoints.metadata)]


def json_samples(file: Path) -> list[tuple[bytes, Reader]]:
    """Tensors of floats and ints, with and without a dtype."""
    samples: list[tuple[bytes, Reader]] = []
    for x in (
        tk.tensor([[1.5, -2.0], [1e-30, 3.0]]),
        tk.tensor([1, 2, 3]),
        tk.zeros((2, 0)),
        tk.tensor(0.25),
    ):
        nn.save_json(file, x)
        samples.append((file.read_bytes(), nn.load_json))
        samples.append((file.read_bytes(), lambda path: nn.load_json(path, "float64")))
    return samples


TABLES = (
    "length,width,kind\n5.5,2,lily\n1,0.5,rose\n6,2,lily\n",
    "1,2,3\n4,5,6\n",
    '"a ""b""",c\r\n1e3, -0.5\r\n\r\n2,3\r\n',
    "ä;ö\n1;2\n",
)


def table_samples() -> list[tuple[bytes, Reader]]:
    def table(path: Path) -> Any:
        read = nn.read_csv(path)
        return read.inputs, read.targets, read.columns, read.classes

    def classes(path: Path) -> Any:
        read = nn.read_csv(path, labels=True)
        return read.inputs, read.targets, read.columns, read.classes

    numbers = [(text.encode(), table) for text in TABLES[1:3]]
    return [*numbers, (TABLES[0].encode(), classes), (TABLES[3].encode(), nn.read_text)]


def tally(file: Path, seeds: range) -> dict[str, Counter[str]]:
    """Count the outcomes for each kind of file."""
    counts_of = {
        "checkpoints": outcomes(attempt_with(file, checkpoint_samples(file), True), seeds),
        "JSON": outcomes(attempt_with(file, json_samples(file), True), seeds),
        "tables": outcomes(attempt_with(file, table_samples(), False), seeds),
    }
    print({kind: dict(counts) for kind, counts in counts_of.items()})
    return counts_of


def test_damaged_files_are_refused_or_read(file: Path) -> None:
    for kind, counts in tally(file, range(500)).items():
        assert min(counts["refused"], counts["same"]) > 10, kind
        assert counts.total() == 500


def test_metadata_of_a_run_are_checked(file: Path) -> None:
    """With a valid checksum, as another program might write it."""
    texts = RunMetadata("digits", {"rate": 0.1}, {"rows": 3}, 7, {"loss": 0.5}, None).to_texts()
    refused = 0
    for name in texts:
        for invalid in ("", "[", "3", "-1", "null", '"x"', "[1]", '{"a": "b"}', "true", "[" * 100_000):
            checkpoints.save(file, {}, {**texts, name: invalid})
            try:
                recorded = RunMetadata.read(file)
            except ArgumentError:
                refused += 1
            else:
                assert type(recorded.job) is str and type(recorded.step) is int
                assert all([type(value) is float for value in recorded.sums.values()])
    assert refused > 40
    checkpoints.save(file, {}, {**texts, "step": '"x"'})
    with pytest.raises(ArgumentError, match="is not from `tensorken train`: its metadata name no job"):
        RunMetadata.read(file)
    checkpoints.save(file, {}, texts)
    assert RunMetadata.read(file) == RunMetadata("digits", {"rate": 0.1}, {"rows": 3}, 7, {"loss": 0.5}, None)


def test_intact_records_of_a_damaged_file_are_read(file: Path) -> None:
    data = b"".join([b'{"step": %d, "epoch": 1, "loss": 0.5, "best": null}\n' % i for i in range(20)])
    rng = random.Random(0)
    for _ in range(500):
        file.write_bytes(damaged_bytes(data, rng))
        for record in run_directory.read_records(file):
            assert type(record.pop("step")) is int
            assert all([value is None or type(value) in (int, float) for value in record.values()])


@pytest.mark.nightly
def test_a_million_damaged_files_are_refused_or_read(file: Path) -> None:
    tally(file, range(10_000, 10_000 + DEEP // 3))
