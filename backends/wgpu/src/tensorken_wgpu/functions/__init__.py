"""Functions in WGSL: those that its built-in ones are too inaccurate for, or have other special values.

Each of floats is written once, in `TEXT` of a file, with capital words for what differs between types: `F` is the type,
`U` the unsigned integer of its size.  The names of those of float64 end in `_f64`.
"""

from __future__ import annotations

import re
from functools import cache

from tensorken_wgpu.functions import (
    conversions,
    exponentials,
    halves,
    integers,
    logarithms,
    pairs,
    powers,
    special,
    trigonometry,
)
from tensorken_wgpu.functions.floats import FLOAT32, FLOAT64, Float, written

ERRORS = {"exp": 1, "exp2": 1, "log": 1, "sin": 1, "cos": 1, "pow": 1}
"""How many representable numbers a result may be from the right one, for each op: all are within 1.1 units."""

_FILES = (special, exponentials, logarithms, pairs, powers, trigonometry, conversions)
_DEFINITION = re.compile(r"^(?:fn|struct) (\w+).*?(?=^(?:fn|struct) |\Z)", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")


def _of_floats(of: Float) -> str:
    text = "".join([file.TEXT for file in _FILES]) + logarithms.LEADING_ZEROS[of.type]
    words = {found[1]: found[1] + of.suffix for found in _DEFINITION.finditer(text)}
    for file in _FILES:
        words.update(file.words(of))
    return written(text, words)


def _of_integers(i: str, word: str, bits: int, suffix: str) -> str:
    names = {found[1]: found[1] + suffix for found in _DEFINITION.finditer(integers.TEXT)}
    return written(integers.TEXT, {"I": i, "W": word, "BITS": str(bits), **names})


_ALL = "".join(
    [
        _of_floats(FLOAT32),
        _of_integers("i32", "u32", 32, ""),
        halves.TEXT,
        _of_floats(FLOAT64),
        _of_integers("i64", "u64", 64, "_i64"),
        halves.FROM_DOUBLES,
        integers.WIDENED,
    ]
)
DEFINITIONS: dict[str, str] = {found[1]: found[0].strip() + "\n" for found in _DEFINITION.finditer(_ALL)}
"""The text of each function and struct, by name."""


@cache
def _all_that(name: str) -> frozenset[str]:
    """The functions and structs that one needs, itself among them."""
    direct = set(_WORD.findall(DEFINITIONS[name])) & DEFINITIONS.keys() - {name}
    return frozenset({name}).union(*map(_all_that, direct))


def needed(text: str) -> str:
    """What a module begins with, for what is called in its text: `enable` where it must, and definitions.

    Args:
        text: of all the rest of the module: the bindings and `main`.

    >>> print(needed("result[t] = exact(x0[t] + x1[t]);"), end="")
    fn exact(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) | u32(opaque.x)); }
    """
    used = set(_WORD.findall(text))
    names = frozenset().union(*map(_all_that, used & DEFINITIONS.keys()))
    enable = "enable f16;\n" if "f16" in used else ""
    return enable + "".join([DEFINITIONS[name] for name in DEFINITIONS if name in names])
