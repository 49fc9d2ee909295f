"""Templates: kernels with holes where numbers stand, so that one serves many shapes.

A template is text with marks: `#u12#` stands for the whole number 12, `#f1065353216#` for the float32 with these
bits, `#i5#` for an int32.  As it stands it is the kernel of one shape, where a compiler can reckon with the numbers.
With the numbers taken out, and read from a uniform when it runs, it is that of all shapes that lead to the same text.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from tensorken_wgpu.functions import needed
from tensorken_wgpu.functions.floats import FLOAT32
from tensorken_wgpu.wgsl import OPAQUE, of_bits

NUMBERS = "//numbers"
"""Where a template has the declaration of its uniform."""

_MARK = re.compile(r"#([ufi])(\d+)#")
_OPAQUE = re.compile(r"\bopaque\b")
_READ = {"u": "{}", "f": "bitcast<f32>({})", "i": "bitcast<i32>({})"}


@dataclass(frozen=True, slots=True)
class Text:
    """A kernel as the driver gets it.

    Attributes:
        code: in WGSL.
        uniform: the bytes that binding 0 holds: the numbers that no compiler may know, and those taken out.
    """

    code: str
    uniform: bytes


def whole(number: int) -> str:
    """The mark of a whole number, modulo 2**32."""
    return f"#u{number % 2**32}#"


def bits(kind: str, word: int) -> str:
    """The mark of what these bits are: a float32 for "f", an int32 for "i"."""
    return f"#{kind}{word}#"


def special(template: str) -> Text:
    """The kernel with its numbers in the text."""
    code = _MARK.sub(lambda mark: _WRITTEN[mark[1]](int(mark[2])), template)
    return _text(code, ())


def general(template: str) -> Text:
    """The kernel that reads its numbers."""
    found: list[int] = []
    elements: dict[str, int] = {}  # numbers that are elements mostly stand in several places

    def taken_out(mark: re.Match[str]) -> str:
        place = len(found) if mark[1] == "u" else elements.setdefault(mark[0], len(found))
        if place == len(found):
            found.append(int(mark[2]))
        return _READ[mark[1]].format(f"numbers[{1 + place // 4}].{'xyzw'[place % 4]}")

    return _text(_MARK.sub(taken_out, template), tuple(found))


def _text(code: str, found: tuple[int, ...]) -> Text:
    words = [*OPAQUE, *found, *[0] * (-len(found) % 4)]
    declared = f"@group(0) @binding(0) var<uniform> numbers: array<vec4<u32>, {len(words) // 4}>;"
    code = _OPAQUE.sub("numbers[0]", f"{needed(code)}\n{code}")
    return Text(code.replace(NUMBERS, declared, 1), struct.pack(f"<{len(words)}I", *words))


def _float(word: int) -> str:
    return of_bits(word, FLOAT32)


def _integer(word: int) -> str:
    return f"{word}i" if word < 2**31 else f"bitcast<i32>({word:#010x}u)"


_WRITTEN = {"u": "{}u".format, "f": _float, "i": _integer}
