"""Tensors in the JSON format of Tensorken for Rust: round trips, and errors of malformed files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import tensorken as tk
from tensorken_core.errors import ExchangeError, ScalarRangeError
from tensorken_nn.files import FileError
from tensorken_nn.interchange import load_json, save_json


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tensor.json"


@pytest.mark.feature(183)
def test_a_permuted_tensor_round_trips(backend: str, path: Path) -> None:
    x = tk.linspace(1.0, 12.0, 12).reshape((2, 2, 3)).permute((2, 0, 1))
    save_json(path, x)
    content = json.loads(path.read_text())
    assert content == {
        "shape": [3, 2, 2],
        "values": [1.0, 4.0, 7.0, 10.0, 2.0, 5.0, 8.0, 11.0, 3.0, 6.0, 9.0, 12.0],
    }
    loaded = load_json(path)
    assert (loaded.shape, loaded.dtype, loaded.tolist()) == ((3, 2, 2), tk.float32, x.tolist())
    assert loaded.backend == backend


@pytest.mark.feature(183)
def test_files_of_serde_are_read(path: Path) -> None:
    path.write_text('{"shape":[2,2],"values":[0.1,-2.0,3e-10,16777216.0]}')
    assert load_json(path).tolist() == tk.tensor([[0.1, -2.0], [3e-10, 2.0**24]]).tolist()
    path.write_text('{"shape":[2],"values":[true,false]}')
    assert load_json(path).dtype == tk.bool
    path.write_text('{"values":[1,-2],"shape":[2,1],"more":null}')
    loaded = load_json(path, backend="reference")
    assert (loaded.dtype, loaded.tolist(), loaded.backend) == (tk.int32, [[1], [-2]], "reference")


@pytest.mark.feature(183)
@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
def test_every_number_round_trips(dtype: str, path: Path) -> None:
    values = {"bool": [True, False], "int": [-(2**31), 2**31 - 1], "float": [0.1, -0.0]}
    x = tk.tensor(values[tk.zeros((), dtype).dtype.kind], dtype)
    save_json(path, x)
    loaded = load_json(path, dtype)
    assert loaded.dtype == dtype
    assert [repr(value) for value in loaded.tolist()] == [repr(value) for value in x.tolist()]


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_every_shape_round_trips(shape: tuple[int, ...], path: Path) -> None:
    save_json(path, tk.ones(shape))
    assert load_json(path).shape == shape


@pytest.mark.feature(183)
@pytest.mark.parametrize(("shape", "count"), [([2, 3], 5), ([2, 3], 7), ([], 0), ([], 2), ([0], 1)])
def test_a_wrong_number_of_values_is_refused(shape: list[int], count: int, path: Path) -> None:
    path.write_text(json.dumps({"shape": shape, "values": [1.0] * count}))
    with pytest.raises(ExchangeError, match=rf"needs {math.prod(shape)} values, the file has {count}"):
        load_json(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not JSON"),
        ('{"shape": [1], "values": [1.0', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        (b"\xff\xfe\xfd", "is not JSON"),
        ("[1.0]", "is not a tensor: need an object"),
        ('{"shape": [1]}', "is not a tensor"),
        ('{"shape": [1.5], "values": [1.0]}', r"the shape is \[1\.5\], need a list of sizes"),
        ('{"shape": [-1], "values": []}', r"the shape is \[-1\]"),
        ('{"shape": [true], "values": [1]}', r"the shape is \[true\]"),
        ('{"shape": 1, "values": [1]}', "the shape is 1"),
        ('{"shape": [1], "values": 1.0}', "the values are 1.0, need a flat list"),
        ('{"shape": [1, 1], "values": [[1.0]]}', r"value 0 is \[1\.0\], need a finite number"),
        ('{"shape": [2], "values": [1.0, null]}', "value 1 is null"),
        ('{"shape": [1], "values": [NaN]}', "value 0 is NaN"),
        ('{"shape": [1], "values": [1e999]}', "value 0 is Infinity"),
        ('{"shape": [1], "values": ["%s"]}' % ("x" * 100), r'value 0 is "x{39}\.\.\., need'),
    ],
)
def test_files_without_a_tensor_are_refused(content: Any, message: str, path: Path) -> None:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ExchangeError, match=message) as caught:
        load_json(path)
    assert "\n" not in str(caught.value)


def test_numbers_that_json_or_the_dtype_lacks_are_refused(path: Path) -> None:
    with pytest.raises(ExchangeError, match="element 1 is inf, which JSON cannot represent"):
        save_json(path, tk.tensor([[0.0, math.inf]]))
    assert not path.exists()
    path.write_text('{"shape": [1], "values": [2147483648]}')
    with pytest.raises(ScalarRangeError, match="2147483648 does not fit int32"):
        load_json(path)
    assert load_json(path, "int64").tolist() == [2**31]


def test_unreadable_and_unwritable_files_are_reported(path: Path) -> None:
    with pytest.raises(FileError, match="cannot read"):
        load_json(path)
    with pytest.raises(FileError, match="cannot write"):
        save_json(path / "x", tk.ones(1))
