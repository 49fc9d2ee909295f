"""Vectors: neighbouring elements that are read and written together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from tensorken_wgpu.wgsl.dtypes import SIZES, Value
from tensorken_wgpu.wgsl.ops import STORED

FOUR, EIGHT = 4, 8


@dataclass(frozen=True, slots=True)
class Vector:
    """Neighbouring elements as one object in memory.

    Attributes:
        size: the number of elements.
        type: the WGSL type.
        element: from a name and an index below the size to the stored element.
        joined: from the stored elements to the vector.
    """

    size: int
    type: str
    element: Callable[[str, int], str]
    joined: Callable[[Sequence[str]], str]


def vector_of(value: Value, most: int) -> Vector | None:
    """The largest vectors of at most this size that divide a value; None if there are none.

    >>> from tensorken_core.language.dtypes import DTYPES
    >>> from tensorken_wgpu.wgsl.single_op import Value
    >>> [vector_of(Value((2, 4), DTYPES[name]), 8).type for name in ("float32", "float64")]
    ['vec4<u64>', 'vec4<f64>']
    """
    dtype = value.dtype.name
    sizes = (EIGHT, FOUR) if SIZES[dtype] == 4 else (FOUR,)
    possible = [size for size in sizes if size <= most and prod(value.shape) % size == 0]
    return _VECTORS[dtype, possible[0]] if possible else None


def _four(stored: str) -> Vector:
    type_name = f"vec4<{stored}>"
    return Vector(
        FOUR,
        type_name,
        lambda name, i: f"{name}.{'xyzw'[i]}",
        lambda values: f"{type_name}({', '.join(values)})",
    )


def _eight(stored: str) -> Vector:
    """Four pairs, each a 64-bit number with the first element as its lower half."""

    def element(name: str, i: int) -> str:
        pair = f"{name}.{'xyzw'[i // 2]}"
        return f"bitcast<{stored}>(u32({pair}{' >> 32u' if i % 2 else ''}))"

    def joined(values: Sequence[str]) -> str:
        words = [f"u64(bitcast<u32>({value}))" for value in values]
        pairs = [f"{low} | ({high} << 32u)" for low, high in zip(words[::2], words[1::2], strict=True)]
        return f"vec4<u64>({', '.join(pairs)})"

    return Vector(EIGHT, "vec4<u64>", element, joined)


_VECTORS = {(dtype, FOUR): _four(stored) for dtype, stored in STORED.items()} | {
    (dtype, EIGHT): _eight(stored) for dtype, stored in STORED.items() if SIZES[dtype] == 4
}
