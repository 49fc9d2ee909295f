"""Files in numpy's formats, and tensors of raw bytes: numpy reads and writes the same."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken_core.errors import ArgumentError, ConcretizationError, DTypeError, ShapeError
from tensorken_core.language.dtypes import DTYPES

pytestmark = pytest.mark.usefixtures("on_numpy")

ARRAYS = [
    np.arange(-6, 6).reshape(3, 4).astype(dtype) for dtype in DTYPES if dtype != "bfloat16"
] + [np.zeros((0, 3), "float32"), np.array(2.5), np.array([True, False])]  # fmt: skip


def same(found: Any, expected: Any) -> None:
    assert isinstance(found, tk.Tensor)
    assert (str(found.dtype), found.shape) == (str(expected.dtype), expected.shape)
    np.testing.assert_array_equal(np.asarray(found), expected)


@each_of("x", ARRAYS)
@each_of("backend", ["numpy", "reference"])
def test_numpy_reads_a_saved_tensor_and_the_bytes_are_numpys(x: Any, backend: str) -> None:
    mine, theirs = io.BytesIO(), io.BytesIO()
    tk.save(mine, tk.tensor(x, backend=backend))
    np.save(theirs, x)
    assert mine.getvalue() == theirs.getvalue()
    mine.seek(0)
    same(tk.load(mine, backend=backend), x)


@each_of(
    "x",
    [
        np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
        np.arange(5, dtype=">i4"),
        np.arange(5, dtype=">f8").reshape(5, 1),
        np.arange(3, dtype=">f2"),
    ],
)
def test_files_by_columns_and_with_other_byte_orders_are_loaded(x: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", x)
    same(tk.load(tmp_path / "x.npy"), x.astype(x.dtype.newbyteorder("=")))


@each_of("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format_is_loaded(version: tuple[int, int]) -> None:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.arange(4), version=version)
    file.seek(0)
    same(tk.load(file), np.arange(4))


@each_of("name", ["savez", "savez_compressed"])
def test_several_tensors_in_one_file(name: str, tmp_path: Path) -> None:
    a, b = np.arange(4.0), np.array([[1, 2]], "uint8")
    getattr(tk, name)(tmp_path / "mine", tk.tensor(a), b=tk.tensor(b))
    getattr(np, name)(tmp_path / "theirs.npz", a, b=b)
    for path in ("mine.npz", "theirs.npz"):
        found = tk.load(str(tmp_path / path))
        assert sorted(found) == ["arr_0", "b"]
        same(found["arr_0"], a)
        same(found["b"], b)
        with np.load(tmp_path / path) as read:
            np.testing.assert_array_equal(read["b"], b)


def test_a_path_gets_the_ending(tmp_path: Path) -> None:
    tk.save(tmp_path / "x", [1, 2])
    tk.save(str(tmp_path / "y.npy"), [3])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npy", "y.npy"]


def test_frombuffer_reads_raw_bytes() -> None:
    x = np.arange(6, dtype="float32")
    same(tk.frombuffer(x.tobytes()), x)
    for options in ({"offset": 8}, {"count": 2}, {"count": 2, "offset": 4}, {"count": 0}):
        same(tk.frombuffer(x, "float32", **options), np.frombuffer(x, "float32", **options))
    for dtype in DTYPES:
        same(tk.frombuffer(b"\x01\x00" * 8, dtype), np.frombuffer(b"\x01\x00" * 8, dtype))


def saved(x: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    np.save(file, x, **options)
    file.seek(0)
    return file


@each_of(
    ("call", "error", "message"),
    [
        (
            lambda: tk.load(io.BytesIO(b"text")),
            ArgumentError,
            "load: the file has neither of the formats npy and npz",
        ),
        (lambda: tk.load(saved(np.array(["a"]))), DTypeError, "load: the file's dtype '<U1' is none of bool"),
        (
            lambda: tk.load(saved(np.array([None]), allow_pickle=True)),
            DTypeError,
            "load: the file's dtype '|O' is",
        ),
        (
            lambda: tk.load(io.BytesIO(saved(np.arange(3)).getvalue()[:-1])),
            ArgumentError,
            "load: the file ends after 23 of 24 bytes",
        ),
        (
            lambda: tk.load(io.BytesIO(b"\x93NUMPY\x09\x00")),
            ArgumentError,
            "load: version 9 of the format npy",
        ),
        (
            lambda: tk.load(io.BytesIO(b"\x93NUMPY\x01\x00\x04\x00os.x")),
            ArgumentError,
            "load: the header 'os.x' is not that of the format npy",
        ),
        (lambda: tk.frombuffer(b"abc"), ShapeError, "frombuffer: 3 bytes are not a whole number of elements"),
        (
            lambda: tk.frombuffer(b"abcd", count=2),
            ShapeError,
            "frombuffer: 2 elements of float32 need 8 bytes, got 4",
        ),
        (
            lambda: tk.frombuffer(b"abcd", offset=5),
            ArgumentError,
            "frombuffer: offset=5 is outside the buffer",
        ),
        (
            lambda: tk.savez(io.BytesIO(), 1.0, arr_0=2.0),
            ArgumentError,
            "savez: arr_0 is the name of an argument",
        ),
        (lambda: tk.grad(lambda x: tk.save(io.BytesIO(), x) or x)(1.0), ConcretizationError, "save: "),
    ],
)
def test_errors_name_the_file_or_the_bytes(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        call()
