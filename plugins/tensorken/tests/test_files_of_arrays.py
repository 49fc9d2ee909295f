"""Files in numpy's formats, and tensors of raw bytes: numpy reads and writes the same."""

from __future__ import annotations

import io
import random
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken_core.errors import ArgumentError, ConcretizationError, DTypeError, ShapeError, TensorkenError
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
            "load: the file ends early: 24 bytes are needed, and 23 are there",
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


# ---- damaged files -----------------------------------------------------------------------------------------


def npy(
    shape: str, data: bytes = b"", *, descr: str = "<f4", version: int = 1, length: int | None = None
) -> bytes:
    """A file of the format npy with any header."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    size = (len(text) if length is None else length).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


def npz(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A file of the format npz with any members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


FALSE_FILES = {
    "more axes than Python's parser takes": npy("(" + "[" * 300 + "]" * 300 + ",)"),
    "a negative size": npy("(-1,)"),
    "a size that is no int": npy("(2.0,)", bytes(8)),
    "a size that is a bool": npy("(True,)", bytes(4)),
    "an enormous size": npy(f"({2**70},)", bytes(4)),
    "a size larger than the file": npy(f"({2**40},)", bytes(4)),
    "an enormous empty shape": npy(f"({2**62}, 0)"),
    "a header larger than the file": npy("(1,)", bytes(4), version=2, length=2**32 - 1),
    "a header that computes": npy("(2 ** 99,)"),
    "an unknown version": npy("(1,)", bytes(4), version=9),
    "objects": npy("(1,)", bytes(8), descr="|O"),
    "text": npy("(1,)", bytes(8), descr="<U2"),
    "a superscript": npy("(1,)", bytes(8), descr="<f\u00b2"),
    "no byte order": npy("(1,)", bytes(4), descr="f4"),
    "control characters": npy("(1,)", bytes(4), descr="\x1b[2J\x07"),
    "a member with more bytes": npz({"a.npy": npy("(1,)", bytes(8))}),
    "a member with fewer bytes": npz({"a.npy": npy("(3,)", bytes(8))}),
    "a member of another format": npz({"\x1b[2J.npy": b"text"}),
    "a bomb in a member": npz({"a.npy": npy("(1,)", bytes(2**26))}),
}


@each_of("name", FALSE_FILES)
def test_false_files_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(TensorkenError, match=r"^load: ") as caught:
        tk.load(io.BytesIO(FALSE_FILES[name]))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_small_files_with_much_content_are_refused() -> None:
    content = npy(f"({2**18},)", bytes(2**20))
    bomb = io.BytesIO(npz({f"{i}.npy": content for i in range(4)}))
    with pytest.raises(
        ArgumentError, match=r"load: the file unpacks to 4194.* bytes, more than 4000000; pass max_b"
    ):
        tk.load(bomb, max_bytes=4_000_000)
    assert tk.load(bomb)["3"].shape == (2**18,)
    with zipfile.ZipFile(bomb, "a") as archive:  # which says how much it unpacks to, and is not unpacked
        archive.infolist()[0].file_size = 2**34
        archive.writestr("last", b"")
    with pytest.raises(
        ArgumentError, match=r"load: the file unpacks to .* bytes, more than 1073741824; pass max_byt"
    ):
        tk.load(bomb)


@pytest.mark.parametrize("kind", ["npy", "stored", "deflated"])
def test_damaged_files_are_refused_or_loaded(kind: str) -> None:
    file = io.BytesIO()
    arrays = {"a": tk.ones((3, 3)), "b": tk.arange(5)}
    if kind == "npy":
        tk.save(file, arrays["a"])
    elif kind == "stored":
        tk.savez(file, **arrays)
    else:
        tk.savez_compressed(file, **arrays)
    good, rng, refused = file.getvalue(), random.Random(0), 0
    for turn in range(600):
        bad = bytearray(good)
        if turn % 3 == 0:
            del bad[rng.randrange(len(bad)) :]
        else:
            for _ in range(rng.choice((1, 2, 8))):
                bad[rng.randrange(len(bad))] = rng.randrange(256)
        message, found = loaded(bytes(bad))
        assert message is None or (message.startswith("load: ") and message.isprintable())
        refused += message is not None
        for x in found:
            x.tolist()
    assert refused > 200


def loaded(content: bytes) -> tuple[str | None, list[Any]]:
    """The error or the tensors of a file."""
    try:
        found = tk.load(io.BytesIO(content))
    except TensorkenError as error:
        return str(error), []
    return None, [*found.values()] if isinstance(found, dict) else [found]
