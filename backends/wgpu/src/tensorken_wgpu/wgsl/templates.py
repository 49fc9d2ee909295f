"""Templates: kernels with marked numbers, so that one pipeline serves many shapes.

`#u12#` marks the index 12, `#f1065353216#` the float32 with these bits, `#i5#` an int32, `#w5#` a uint32, `#d5#` and
`#l5#` a float64 and an int64.  A specialised kernel has the numbers in its text, where the compiler can use them.
A generic kernel reads them from a uniform, and serves all shapes with the same template.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from tensorken.kernels.element_indices import STEP
from tensorken.kernels.index_expressions import IndexExpression
from tensorken_wgpu.wgsl.functions import needed
from tensorken_wgpu.wgsl.ops import OPAQUE, literal_of_bits

NUMBERS = "//numbers"
"""The line that the declaration of the uniform replaces."""

_MAIN = re.compile(r"^fn main\(.*\{$", re.MULTILINE)

_READ_OPAQUE = "opaque = numbers[n.x >> 31u].x;"
"""Reads the first word of the uniform, 0, which the compiler must not know, at an index that it does not know to be 0.

A driver may compile a kernel for the values that it finds at known indices of a uniform, where they decide a branch:
Mesa's does.  Then it would also know the results of functions that rely on the 0.
"""

_MARK = re.compile(r"#([ufiwdl])(\d+)#")
_TYPES = {"w": "u32", "f": "f32", "i": "i32", "d": "f64", "l": "i64"}
_LETTERS = {type: letter for letter, type in _TYPES.items()}
_LONG = ("d", "l")
"""The types with two words."""


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a kernel.

    Attributes:
        code: in WGSL.
        uniform: the bytes of binding 0: numbers that the compiler must not know, and the numbers of a generic
            kernel.
    """

    code: str
    uniform: bytes


def integer(number: int) -> str:
    """The mark of an integer, modulo 2**32."""
    return f"#u{number % 2**32}#"


def index_text(index: IndexExpression) -> str:
    """An index expression."""
    return index.text(integer)


def number(type: str, bits: int) -> str:
    """The mark of a number of this type with these bits."""
    return f"#{_LETTERS[type]}{bits}#"


def specialised_text(template: str) -> Text:
    """The kernel with its numbers in the text."""
    code = _MARK.sub(lambda mark: _written(mark[1], int(mark[2])), template)
    return _text(code, ())


def generic_text(template: str) -> Text:
    """The kernel that reads its numbers from the uniform."""
    words: list[int] = []
    elements: dict[str, int] = {}  # constants among elements often occur several times

    def read_mark(mark: re.Match[str]) -> str:
        word = len(words) if mark[1] == "u" else elements.setdefault(mark[0], len(words))
        letter, bits = mark[1], int(mark[2])
        if word == len(words):
            words.extend([bits % 2**32, bits >> 32] if letter in _LONG else [bits])
        return _read(letter, word)

    return _text(_MARK.sub(read_mark, template), tuple(words))


def _text(code: str, numbers: tuple[int, ...]) -> Text:
    words = [*OPAQUE, *numbers, *[0] * (-len(numbers) % 4 or (0 if numbers else 4))]  # two vectors at least
    declared = f"var<immediate> {STEP}: u32;\n" if STEP in code else ""
    code = f"{needed(code)}\n{code}"
    if "opaque" in code:
        declared += "var<private> opaque: u32;\n"
        code = _MAIN.sub(rf"\g<0>\n{_READ_OPAQUE}", code, count=1)
    declared += f"@group(0) @binding(0) var<uniform> numbers: array<vec4<u32>, {len(words) // 4}>;"
    return Text(code.replace(NUMBERS, declared, 1), struct.pack(f"<{len(words)}I", *words))


def _written(letter: str, bits: int) -> str:
    return f"{bits}u" if letter == "u" else literal_of_bits(bits, _TYPES[letter])


def _read(letter: str, word: int) -> str:
    """Read a number from the words of the uniform from this index on."""
    words = [f"numbers[{1 + i // 4}].{'xyzw'[i % 4]}" for i in (word, word + 1)]
    if letter == "u":
        return words[0]
    bits = "u64({}) | (u64({}) << 32u)".format(*words) if letter in _LONG else words[0]
    return f"bitcast<{_TYPES[letter]}>({bits})"
