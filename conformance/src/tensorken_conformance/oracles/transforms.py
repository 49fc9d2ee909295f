"""Transforms: exact discrete Fourier transforms, from roots of unity with 160 bits."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from tensorken_conformance.oracles.bounds import Array, Dyadic, aligned
from tensorken_conformance.oracles.elementwise_functions import mp

BITS = 160
"""The bits of the roots of unity after the point: their errors are invisible beside those of float64."""

Parts = tuple[Dyadic, Dyadic]
"""The real and the imaginary parts of complex numbers, or the cosines and the sines of angles."""


@cache
def roots(n: int) -> tuple[Array, Array]:
    """The cosines and the sines of 2 pi k / n, as whole numbers times 2**-BITS.

    >>> [x[1] / 2**BITS for x in roots(4)]
    [0.0, 1.0]
    """
    with mp.workprec(BITS + 20):
        cos, sin = [
            [int(mp.nint(mp.ldexp(function(mp.mpf(2 * k) / n), BITS))) for k in range(n)]
            for function in (mp.cospi, mp.sinpi)
        ]
    return np.array(cos, object), np.array(sin, object)


def transform(real: Dyadic, imag: Dyadic, inverse: bool) -> Parts:
    """The sums of x[j] exp(-2 pi i j k / n) over j along the last axis, or with +2 if inverse."""
    a, b, exponent = aligned(real, imag)
    n = a.shape[-1]
    terms = np.flatnonzero(((a != 0) | (b != 0)).reshape(-1, n).any(0))  # few, if the elements are pulses
    angles = np.outer(terms, np.arange(n)) % n
    a, b = a[..., terms], b[..., terms]
    cos, sin = [part[angles] for part in roots(n)]
    if inverse:
        sin = -sin
    return Dyadic(a @ cos + b @ sin, exponent - BITS), Dyadic(b @ cos - a @ sin, exponent - BITS)


def hermitian(real: Dyadic, imag: Dyadic, size: int) -> Parts:
    """The whole sequence of this size of which half is given: imaginary parts that are their own images are 0.

    >>> a, b = hermitian(Dyadic.of([1.0, 2.0, 3.0]), Dyadic.of([5.0, 6.0, 7.0]), 4)
    >>> a.integers.tolist(), b.integers.tolist()
    ([1, 2, 3, 2], [0, 6, 0, -6])
    """
    mirror = slice((size - 1) // 2, 0, -1)
    a, b, exponent = aligned(real, imag)
    b = without_ends(b, size)
    return (
        Dyadic(np.concatenate([a, a[..., mirror]], -1), exponent),
        Dyadic(np.concatenate([b, -b[..., mirror]], -1), exponent),
    )


def without_ends(imag: Array, size: int) -> Array:
    """Imaginary parts of half a sequence, 0 for the elements that are their own mirror images."""
    ends = np.array([k == 0 or 2 * k == size for k in range(size // 2 + 1)])
    return np.where(ends, 0, imag)


def squares(*parts: Dyadic) -> Dyadic:
    """The sum of squares along the last axis, which keeps size 1."""
    total: Any = None
    for x in parts:
        found = (x * x).sum(-1)
        total = found if total is None else total + found
    return total  # type: ignore[no-any-return]


# ---- errors ------------------------------------------------------------------------------------------------

PER_STAGE = 8
"""The roundings of a stage of radix 2: theorem 24.2 of Higham with roots of unity that are off by two roundings."""


def roundings(n: int) -> int:
    """The number of roundings that bounds the error of a transform of n elements, relative to its norm.

    The error of a fast transform in the Euclidean norm is at most gamma of log2(n) stages (theorem 24.2 of N. J.
    Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, 2002).  A length with a prime factor beyond 7
    may be a convolution, which has three transforms of up to four times the length.

    >>> roundings(1), roundings(8), roundings(11)
    (0, 32, 168)
    """
    if n == 1:
        return 0
    stages = 1 + math.ceil(math.log2(n))
    return PER_STAGE * (3 * (stages + 2) if is_convolution(n) else stages)


def is_convolution(n: int) -> bool:
    """Whether a length has a prime factor beyond 7, so that its transform may be a convolution."""
    for prime in (2, 3, 5, 7):
        while n % prime == 0:
            n //= prime
    return n > 1
