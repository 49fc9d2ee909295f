"""Read text files, and convert text to token numbers and back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.files import ContentError, read


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a UTF-8 file, with or without a byte order mark; line endings become a line feed.

    Raises:
        FileError: if the file cannot be read.
        ContentError: if it is not UTF-8, or is empty.
    """
    data = read(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ContentError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8; save the text as UTF-8"
        ) from None
    if not text:
        raise ContentError(f"{path}: the file is empty; pass a file with text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The characters of a text; the number of a character is its index.

    >>> vocabulary = Vocabulary.of("hello")
    >>> vocabulary
    Vocabulary(characters='ehlo')
    >>> vocabulary.encode("hole"), vocabulary.decode([1, 0, 2, 2, 3])
    ([1, 3, 2, 0], 'hello')

    Raises:
        ArgumentError: if a character occurs twice.
    """

    characters: str
    _indices: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        indices = {character: index for index, character in enumerate(self.characters)}
        if len(indices) < len(self.characters):
            repeated = next(c for index, c in enumerate(self.characters) if indices[c] != index)
            raise ArgumentError(f"Vocabulary: {repeated!r} occurs twice; see Vocabulary.of")
        object.__setattr__(self, "_indices", indices)

    @classmethod
    def of(cls, text: str) -> Vocabulary:
        """The vocabulary of a text, in Unicode order."""
        return cls("".join(sorted(set(text))))

    def __len__(self) -> int:
        return len(self.characters)

    def encode(self, text: str) -> list[int]:
        """The numbers of a text's characters.

        Raises:
            ArgumentError: if a character is not in the vocabulary.
        """
        indices = self._indices
        try:
            return [indices[character] for character in text]
        except KeyError as error:
            unknown = error.args[0]
            raise ArgumentError(
                f"encode: character {unknown!r}, at {text.index(unknown)}, is not among the {len(self)} of the "
                f"vocabulary: {self.characters[:100]!r}; remove it"
            ) from None

    def decode(self, tokens: Sequence[int] | Tensor) -> str:
        """The text of token numbers: ints, or a tensor of shape (n,).

        Raises:
            ArgumentError: if a number is out of range.
        """
        numbers: Sequence[int] = tokens.tolist() if isinstance(tokens, Tensor) else tokens
        for number in numbers:
            if not 0 <= number < len(self):
                raise ArgumentError(
                    f"decode: there is no character {number!r}; they are 0 to {len(self) - 1}"
                )
        return "".join([self.characters[number] for number in numbers])
