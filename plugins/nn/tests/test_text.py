"""Text files and vocabularies: encodings, line endings and round trips."""

from __future__ import annotations

from pathlib import Path

import pytest

import tensorken as tk
from tensorken_core.errors import ArgumentError
from tensorken_nn.files import ContentError, FileError
from tensorken_nn.text import Vocabulary, read_text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"one\ntwo\n", "one\ntwo\n"),
        (b"one\r\ntwo\rthree", "one\ntwo\nthree"),
        (b"\xef\xbb\xbfGr\xc3\xbc\xc3\x9fe", "Grüße"),
        ("\N{GRINNING FACE}\x00".encode(), "\N{GRINNING FACE}\x00"),
    ],
)
def test_encodings_and_line_endings_are_normalised(data: bytes, text: str, tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes(data)
    assert read_text(file) == text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"one\ntwo \xff", r"text, line 2: byte 0xff is not UTF-8; save the text as UTF-8"),
        (b"\xe4hnlich", "line 1: byte 0xe4"),
        (b"cut \xc3", "line 1: byte 0xc3"),
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
    ],
)
def test_invalid_text_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes(data)
    with pytest.raises(ContentError, match=message):
        read_text(file)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cannot read .*: No such file"):
        read_text(tmp_path / "nowhere")


def test_encoding_and_decoding_round_trip() -> None:
    text = "the cat sät\non the mat \N{GRINNING FACE}"
    vocabulary = Vocabulary.of(text)
    assert vocabulary.characters == "".join(sorted(set(text))) and len(vocabulary) == len(set(text))
    codes = vocabulary.encode(text)
    assert set(codes) == set(range(len(vocabulary)))
    assert vocabulary.decode(codes) == text
    assert vocabulary.decode(tk.tensor(codes, tk.int32)) == text
    assert vocabulary.encode("") == [] and vocabulary.decode([]) == ""


def test_the_order_of_the_characters_is_kept() -> None:
    vocabulary = Vocabulary(".ba")
    assert vocabulary.encode("ab.") == [2, 1, 0]
    assert vocabulary == Vocabulary(".ba") != Vocabulary.of("ab.")
    assert hash(vocabulary) == hash(Vocabulary(".ba"))


def test_unknown_characters_and_numbers_are_refused() -> None:
    vocabulary = Vocabulary("abc")
    with pytest.raises(
        ArgumentError, match="character 'x', at 2, is not among the 3 of the vocabulary: 'abc'; remove it"
    ):
        vocabulary.encode("abxay")
    for number in (3, -1):
        with pytest.raises(ArgumentError, match=f"no character {number}; they are 0 to 2"):
            vocabulary.decode([0, number])
    with pytest.raises(ArgumentError, match="Vocabulary: 'b' occurs twice"):
        Vocabulary("abcb")
