"""Elementary functions in fixed point, to any number of bits.

An integer `n` at `w` bits represents `n / 2**w`; a unit is `2**-w`. Each function states a bound of its error in
units, which includes every truncation, for `w` from 60 to 2000 and operands in the stated range. `function.py`
chooses the number of bits, and handles values that are too close to a tie.

The series are Taylor's. A logarithm and an angle start from the C library's double, which need not be accurate: its
error is computed from the exact inverse function and added, so an inaccurate start only takes more time.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache


def _inverse_tangents(terms: tuple[tuple[int, int], ...], sign: int, w: int) -> int:
    """The sum of `c * atan(1/q)` (sign -1) or `c * atanh(1/q)` (sign 1) over `(c, q)`, in units of 2**-w."""
    guard = 16
    total = 0
    for coefficient, q in terms:
        power = (1 << (w + guard)) // q
        n = 1
        while power:
            total += coefficient * (power // n) * (sign if n % 4 == 3 else 1)
            power //= q * q
            n += 2
    return total >> guard


@cache
def _stored(name: str, w: int) -> int:
    if name == "pi":  # Machin's formula
        return 4 * _inverse_tangents(((4, 5), (-1, 239)), -1, w)
    return _inverse_tangents(((18, 26), (-2, 4801), (8, 8749)), 1, w)  # ln 2, by Störmer's method


@lru_cache(512)
def constant(name: str, w: int) -> int:
    """`pi` or `ln2` at `w` bits, to within two units."""
    stored = max(256, 1 << w.bit_length())
    return _stored(name, stored) >> (stored - w)


def exp(x: int, w: int) -> tuple[int, int]:
    """`(n, k)` with exp(x) = n * 2**(k - w), n being about 1 to 2: within 8 units, for abs(x) < 2**15."""
    ln2 = constant("ln2", w + 20)
    k = (x << 20) // ln2
    r = x - (k * ln2 >> 20)
    halvings = 8 + w // 128
    p = w + halvings + 8
    r <<= 8  # now r / 2**halvings, at p bits
    total = term = 1 << p
    n = 1
    while term:
        term = (term * r >> p) // n
        total += term
        n += 1
    for _ in range(halvings):
        total = total * total >> p
    return total >> (halvings + 8), k


def _alternating(term: int, square: int, n: int, p: int) -> int:
    """term * (1 - square / (n(n+1)) * (1 - square / ((n+2)(n+3)) * (...)))."""
    total = 0
    while term:
        total += term
        term = (term * square >> p) // (n * (n + 1))
        total -= term
        term = (term * square >> p) // ((n + 2) * (n + 3))
        n += 4
    return total


def sin(x: int, w: int) -> int:
    """The sine, for abs(x) up to 1: within 2 units."""
    p = w + 8
    magnitude = abs(x) << 8
    y = _alternating(magnitude, magnitude * magnitude >> p, 2, p) >> 8
    return y if x >= 0 else -y


def cos(x: int, w: int) -> int:
    """The cosine, for abs(x) up to 1: within 2 units."""
    p = w + 8
    return _alternating(1 << p, (x * x << 8) >> w, 1, p) >> 8


def _near_zero(d: int, factor: int, step: int, w: int) -> int:
    """d + d * factor / (1 + step) + d * factor**2 / (1 + 2 * step) + ..., for a small d and factor."""
    total, power, n = d, d, 1
    for _ in range(w // max(1, w - factor.bit_length())):
        power = power * factor >> w
        n += step
        total += power // n
    return total


def log(x: int, w: int) -> int:
    """The natural logarithm, for x in [1/2, 2]: within 64 units."""
    start = int(math.log(x / (1 << w)) * 9007199254740992.0) << (w - 53)
    n, k = exp(-start, w)
    d = (x * n >> (w - k)) - (1 << w)
    return start + _near_zero(d, -d, 1, w)  # log(x) = s + log1p(x * exp(-s) - 1)


def log_scaled(n: int, e: int, w: int) -> int:
    """The natural logarithm of n * 2**e, for n > 0 and e of at most 16 bits: within 72 units."""
    size = n.bit_length()
    mantissa = n << (w - size) if size <= w else n >> (size - w)
    return log(mantissa, w) + ((size + e) * constant("ln2", w + 20) >> 20)


def atan2(y: int, x: int, w: int) -> int:
    """The angle of the point (x, y), in any common unit of x and y: within 32 units, for x and y not both 0."""
    near, far = sorted((abs(x), abs(y)))
    excess = max(0, far.bit_length() - 64)
    start = int(math.atan((near >> excess) / (far >> excess)) * 9007199254740992.0) << (w - 53)
    s, c = sin(start, w), cos(start, w)
    d = ((near * c - far * s) << w) // (far * c + near * s)
    angle = start + _near_zero(d, -(d * d >> w), 2, w)  # atan(u) = s + atan((u - tan(s)) / (1 + u * tan(s)))
    if abs(y) > abs(x):
        angle = constant("pi", w - 1) - angle  # at w - 1 bits: half of pi at w bits
    if x < 0:
        angle = constant("pi", w) - angle
    return angle if y >= 0 else -angle
