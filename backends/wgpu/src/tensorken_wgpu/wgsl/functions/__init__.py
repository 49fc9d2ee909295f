"""WGSL functions, where the built-in ones are too inaccurate or have other special values.

Functions of floats are written once, in `TEXT` of a file, with capital words for the parts that differ between
types: `F` is the type, `U` the unsigned integer of its size.  Names for float64 end in `_f64`.
"""

from __future__ import annotations

import re
from functools import cache

from tensorken_wgpu.wgsl.functions import (
    complex_numbers,
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
from tensorken_wgpu.wgsl.functions.floats import FLOAT32, FLOAT64, Float, with_words

ERRORS = {"exp": 1, "exp2": 1, "log": 1, "sin": 1, "cos": 1, "pow": 1}
"""The largest errors of each op in ulps; all are below 1.1."""

_FILES = (special, exponentials, logarithms, pairs, powers, trigonometry, conversions)
_DEFINITION = re.compile(r"^(?:fn|struct) (\w+).*?(?=^(?:fn|struct) |\Z)", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")


def _of_floats(float_type: Float) -> str:
    text = "".join([file.TEXT for file in _FILES]) + logarithms.LEADING_ZEROS[float_type.type]
    words = {match[1]: match[1] + float_type.suffix for match in _DEFINITION.finditer(text)}
    for file in _FILES:
        words.update(file.words(float_type))
    return with_words(text, words)


def _of_integers(i: str, word: str, bits: int, suffix: str) -> str:
    names = {match[1]: match[1] + suffix for match in _DEFINITION.finditer(integers.TEXT)}
    return with_words(integers.TEXT, {"I": i, "W": word, "BITS": str(bits), **names})


_ALL = "".join(
    [
        _of_floats(FLOAT32),
        _of_integers("i32", "u32", 32, ""),
        halves.TEXT,
        _of_floats(FLOAT64),
        _of_integers("i64", "u64", 64, "_i64"),
        _of_integers("u32", "u32", 32, "_u32"),
        halves.FROM_DOUBLES,
        integers.WIDENED,
        complex_numbers.TEXT,
    ]
)
DEFINITIONS: dict[str, str] = {match[1]: match[0].strip() + "\n" for match in _DEFINITION.finditer(_ALL)}
"""The text of each function and struct, by name."""


@cache
def _with_dependencies(name: str) -> frozenset[str]:
    """The functions and structs that this one needs, itself included."""
    direct = set(_WORD.findall(DEFINITIONS[name])) & DEFINITIONS.keys() - {name}
    return frozenset({name}).union(*map(_with_dependencies, direct))


def needed(text: str) -> str:
    """The head of a module that calls functions in its text: `enable` if necessary, and definitions.

    Args:
        text: the rest of the module: the bindings and `main`.

    >>> print(needed("result[t] = exact(x0[t] + x1[t]);"), end="")
    fn exact(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) | u32(opaque)); }
    """
    used = set(_WORD.findall(text))
    names = frozenset().union(*map(_with_dependencies, used & DEFINITIONS.keys()))
    enable = "enable f16;\n" if "f16" in used else ""
    return enable + "".join([DEFINITIONS[name] for name in DEFINITIONS if name in names])
