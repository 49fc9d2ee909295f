"""Templates: kernels with holes where numbers stand, so that one serves many shapes.

A template is text with marks: `#u12#` stands for the whole number 12, `#f1065353216#` for the float32 with these
bits, `#i5#` for an int32, `#d5#` and `#l5#` for a float64 and an int64.  As it stands it is the kernel of one shape,
where a compiler can reckon with the numbers.  With the numbers taken out, and read from a uniform when it runs, it is
that of all shapes that lead to the same text.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from tensorken_wgpu.functions import needed
from tensorken_wgpu.wgsl import OPAQUE, of_bits

NUMBERS = "//numbers"
"""Where a template has the declaration of its uniform."""

_MARK = re.compile(r"#([ufidl])(\d+)#")
_TYPES = {"u": "u32", "f": "f32", "i": "i32", "d": "f64", "l": "i64"}
_KINDS = {type: kind for kind, type in _TYPES.items()}
_LONG = ("d", "l")
"""Those that have two words."""


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


def element(type: str, bits: int) -> str:
    """The mark of the number of a type that these bits are."""
    return f"#{_KINDS[type]}{bits}#"


def special(template: str) -> Text:
    """The kernel with its numbers in the text."""
    code = _MARK.sub(lambda mark: _written(mark[1], int(mark[2])), template)
    return _text(code, ())


def general(template: str) -> Text:
    """The kernel that reads its numbers."""
    found: list[int] = []
    elements: dict[str, int] = {}  # numbers that are elements mostly stand in several places

    def taken_out(mark: re.Match[str]) -> str:
        place = len(found) if mark[1] == "u" else elements.setdefault(mark[0], len(found))
        kind, bits = mark[1], int(mark[2])
        if place == len(found):
            found.extend([bits % 2**32, bits >> 32] if kind in _LONG else [bits])
        return _read(kind, place)

    return _text(_MARK.sub(taken_out, template), tuple(found))


def _text(code: str, found: tuple[int, ...]) -> Text:
    words = [*OPAQUE, *found, *[0] * (-len(found) % 4)]
    declared = f"@group(0) @binding(0) var<uniform> numbers: array<vec4<u32>, {len(words) // 4}>;"
    code = f"{needed(code)}\n{code}".replace("opaque.", "numbers[0].")
    return Text(code.replace(NUMBERS, declared, 1), struct.pack(f"<{len(words)}I", *words))


def _written(kind: str, bits: int) -> str:
    return f"{bits}u" if kind == "u" else of_bits(bits, _TYPES[kind])


def _read(kind: str, place: int) -> str:
    """A number that was taken out, from the words that begin at a place."""
    words = [f"numbers[{1 + i // 4}].{'xyzw'[i % 4]}" for i in (place, place + 1)]
    if kind == "u":
        return words[0]
    bits = "u64({}) | (u64({}) << 32u)".format(*words) if kind in _LONG else words[0]
    return f"bitcast<{_TYPES[kind]}>({bits})"
