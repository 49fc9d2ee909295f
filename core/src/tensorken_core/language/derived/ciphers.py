# mypy: disable-error-code="empty-body"
"""The derived op of random numbers: a cipher that maps counters to bits, equal on all backends."""

from __future__ import annotations

from tensorken_core.errors import DTypeError, ShapeError
from tensorken_core.language.bodies import ciphers
from tensorken_core.language.declare import primitive
from tensorken_core.language.dtypes import DType, int32
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.shapes import Shape, same


def _pairs(key: Shape, counter: Shape) -> Shape:
    """The common shape, with two words along the last axis."""
    shape = same(key, counter)
    if shape[-1:] != (2,):
        raise ShapeError(f"got shape {shape}; the last axis must have size 2, for the two words")
    return shape


def _words(key: DType, counter: DType) -> DType:
    for dtype in (key, counter):
        if dtype is not int32:
            raise DTypeError(f"not defined for {dtype}; it takes int32; cast first (x.astype)")
    return int32


class Ciphers(Interpreter[R]):
    """Ciphers."""

    @primitive(
        shape=_pairs,
        dtype=_words,
        body=ciphers.threefry2x32,
        samples=((((2,), (2,)), ()), (((3, 2), (3, 2)), ()), (((2, 0, 2), (2, 0, 2)), ())),
    )
    def threefry2x32(self, key: R, counter: R) -> R:
        """The Threefry-2x32 cipher with 20 rounds: encrypts each counter with the key at the same index.

        A key or a counter is two words of 32 bits, along the last axis, which has size 2.

        J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
        """
