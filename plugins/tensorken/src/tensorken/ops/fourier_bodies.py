"""The bodies of the ops `fft`, `rfft` and `irfft`: a discrete Fourier transform of any length from other ops.

A power of two is transformed by stages of radix 4 and 2, and another length whose prime factors are small by stages of
a power of two and of odd primes, in the order of T. G. Stockham, "High-speed convolution and correlation", 1966, which
needs no permutation of bits.  Any other length is a convolution of a power of two: L. I. Bluestein, "A linear
filtering approach to the computation of discrete Fourier transform", 1970.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from tensorken_core.language.dtypes import bool_
from tensorken_core.language.op import OPS

Tensor = Any
Pair = tuple[Any, Any]

_LARGEST_RADIX = 61
_CACHED_LENGTH = 1 << 16  # the roots of longer transforms are computed each time


# ---- roots of unity --------------------------------------------------------------------------------------------


def root(k: int, n: int) -> tuple[float, float]:
    """The cosine and the sine of 2 pi k / n; the angle is reduced to an eighth of a turn in integers.

    >>> root(1, 4), root(6, 8)
    ((0.0, 1.0), (0.0, -1.0))
    """
    k %= n
    if 2 * k > n:
        cos, sin = root(n - k, n)
        return cos, -sin
    if 4 * k > n:
        cos, sin = root(n - 2 * k, 2 * n)
        return -cos, sin
    if 8 * k > n:
        cos, sin = root(n - 4 * k, 4 * n)
        return sin, cos
    angle = 2.0 * math.pi * k / n
    return math.cos(angle), math.sin(angle)


def _roots(n: int) -> tuple[list[float], list[float]]:
    """The cosines and the sines of 2 pi k / n for k from 0 to n - 1."""
    if n % 8:
        pairs = [root(k, n) for k in range(n)]
        return [cos for cos, _ in pairs], [sin for _, sin in pairs]
    eighth = [root(k, n) for k in range(n // 8 + 1)]
    cosines = [cos for cos, _ in eighth] + [
        sin for _, sin in eighth[-2::-1]
    ]  # a quarter of a turn, both ends
    sines = cosines[::-1]
    half = [-c for c in cosines[-2::-1]]
    cosines = cosines + half
    sines = sines + sines[-2::-1]
    return cosines + cosines[-2:0:-1], sines + [-s for s in sines[-2:0:-1]]


@functools.lru_cache(64)
def _cached_twiddles(radix: int, rest: int) -> tuple[list[float], list[float]]:
    return _twiddles(radix, rest)


def _twiddles(radix: int, rest: int) -> tuple[list[float], list[float]]:
    """The cosines and sines of 2 pi j k / (radix rest), for j below `rest` and k below `radix`, row by row."""
    found: list[list[float]] = []
    for parts, first in zip(_roots(radix * rest), (1.0, 0.0), strict=True):
        values = [first] * (radix * rest)
        for k in range(1, radix):
            values[k::radix] = parts[0 : k * rest : k]
        found.append(values)
    return found[0], found[1]


@functools.lru_cache(256)
def radices(n: int) -> tuple[int, ...]:
    """The largest power of two that divides n, and the odd prime factors in order; if n is that power, 4s and a 2.

    >>> radices(360), radices(32)
    ((8, 3, 3, 5), (4, 4, 2))
    """
    power = n & -n
    if power == n:
        bits = n.bit_length() - 1
        return (4,) * (bits // 2) + (2,) * (bits % 2)
    found = [power] if power > 1 else []
    n //= power
    p = 3
    while p * p <= n:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 2
    return (*found, n) if n > 1 else tuple(found)


# ---- transforms ------------------------------------------------------------------------------------------------


def fft(real: Tensor, imag: Tensor, inverse: bool) -> Pair:
    """The sums of x[j] exp(-2 pi i j k / n) over j, or with +2 if inverse, along the last axis."""
    *batch, n = real.shape
    if n == 1 or real.size == 0:
        return real, imag
    sign = 1.0 if inverse else -1.0
    count = math.prod(batch)
    x = real.reshape((count, n)), imag.reshape((count, n))
    found = radices(n)
    y = _mixed(x, found, sign) if found[-1] <= _LARGEST_RADIX else _bluestein(x, sign)
    return y[0].reshape(real.shape), y[1].reshape(real.shape)


def _transform(real: Tensor, imag: Tensor, inverse: bool) -> Pair:
    """The op `fft`, which some backends have for some lengths."""
    parts: Pair = real.apply(OPS["fft"], imag, inverse)
    return parts


def rfft(x: Tensor) -> Pair:
    """The first n // 2 + 1 elements of the transform of real numbers; of an even length by one of half of it."""
    *batch, n = x.shape
    count = math.prod(batch)
    if n % 2 or x.size == 0:
        parts = _transform(x, x.zeros_like(), False)
        return _crop(parts[0], 0, n // 2 + 1), _crop(parts[1], 0, n // 2 + 1)
    half = n // 2
    pairs = x.reshape((count, half, 2))
    first, second = [_crop(pairs, i, i + 1).reshape((count, half)) for i in (0, 1)]
    real, imag = _transform(first, second, False)
    # with z = even + i odd, the transforms are E[k] = (Z[k] + conj Z[-k]) / 2 and O[k] = (Z[k] - conj Z[-k]) / 2i
    real, imag = [z.concatenate(_crop(z, 0, 1), axis=1) for z in (real, imag)]
    mirrored = real.flip((1,)), imag.flip((1,))
    even = (real + mirrored[0]) * 0.5, (imag - mirrored[1]) * 0.5
    odd = (imag + mirrored[1]) * 0.5, (mirrored[0] - real) * 0.5
    cosines, sines = _half_turn(x, half + 1, n)
    shape = (*batch, half + 1)
    return (
        (even[0] + (odd[0] * cosines + odd[1] * sines)).reshape(shape),
        (even[1] + (odd[1] * cosines - odd[0] * sines)).reshape(shape),
    )


def irfft(real: Tensor, imag: Tensor, size: int) -> Tensor:
    """The inverse transform of the Hermitian sequence of this size whose first elements are given.

    A transform of an even size is one of half of it.
    """
    if real.size == 0:
        return _transform(real, imag, True)[0].reshape((*real.shape[:-1], size))
    imag = _ends(real, size).where(0.0, imag)
    last, half = real.ndim - 1, size // 2
    if size % 2:
        if size == 1:
            return _transform(real, imag, True)[0]
        mirrored = [_crop(z, 1, 1 + half).flip((last,)) for z in (real, imag)]
        return _transform(
            real.concatenate(mirrored[0], axis=last), imag.concatenate(-mirrored[1], axis=last), True
        )[0]
    # the results of even index are the transform of E[k] = X[k] + conj X[-k], and those of odd index that of
    # O[k] = (X[k] - conj X[-k]) times the roots; both are real, so they are the parts of the transform of E + i O
    first = [_crop(z, 0, half) for z in (real, imag)]
    mirrored = [_crop(z.flip((last,)), 0, half) for z in (real, imag)]
    even = first[0] + mirrored[0], first[1] - mirrored[1]
    difference = first[0] - mirrored[0], first[1] + mirrored[1]
    odd = _times(difference, _half_turn(real, half, size), 1.0)
    parts = _transform(even[0] - odd[1], even[1] + odd[0], True)
    shape = (*real.shape[:-1], half, 1)
    pairs = parts[0].reshape(shape).concatenate(parts[1].reshape(shape), axis=last + 1)
    return pairs.reshape((*real.shape[:-1], size))


def _half_turn(x: Tensor, count: int, n: int) -> Pair:
    """The cosines and sines of 2 pi k / n for k below `count`."""
    pairs = [root(k, n) for k in range(count)]
    cosines, sines = [x.constant(list(part), x.dtype, (count,)) for part in zip(*pairs, strict=True)]
    return cosines, sines


def _ends(x: Tensor, size: int) -> Tensor:
    """Whether the elements of half a spectrum along the last axis are their own mirror images."""
    count = x.shape[-1]
    flags = x.constant([k == 0 or 2 * k == size for k in range(count)], bool_, (count,))
    return flags.broadcast_to(x.shape)


def halved_inside(x: Tensor, size: int) -> Tensor:
    """Half a spectrum of this size, with the elements halved that have another mirror image."""
    return _ends(x, size).where(x, x * 0.5)


def doubled_inside(x: Tensor, size: int) -> Tensor:
    """Half a spectrum of this size, with the elements doubled that have another mirror image."""
    return _ends(x, size).where(x, x + x)


def _mixed(x: Pair, radixes: tuple[int, ...], sign: float) -> Pair:
    """Transforms of the rows of a matrix, whose length is the product of the radixes.

    Each stage has transforms of length radix of elements at equal distances, `done` of which are side by side.
    """
    count, n = x[0].shape
    done = 1
    for radix in radixes:
        rest = n // (radix * done)
        parts = x[0].reshape((count, radix, rest * done)), x[1].reshape((count, radix, rest * done))
        y = _ROUTINES[radix](parts, sign) if radix in _ROUTINES else _other(parts, radix, sign)
        if rest > 1:
            shape = (count, radix, rest, done)
            y = _stacked_by_rest(y[0], shape), _stacked_by_rest(y[1], shape)
            y = _times(y, _twiddle_constants(x[0], radix, rest), sign)
        x = y[0].reshape((count, n)), y[1].reshape((count, n))
        done *= radix
    return x


def _stacked_by_rest(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The results of a stage with the index within its transforms after that of the elements that remain."""
    return x.reshape(shape).permute((0, 2, 1, 3))


def _twiddle_constants(x: Tensor, radix: int, rest: int) -> Pair:
    """The factors between two stages, of shape (rest, radix, 1), for transforms with positive sign."""
    values = (_cached_twiddles if radix * rest <= _CACHED_LENGTH else _twiddles)(radix, rest)
    cosines, sines = [x.constant(part, x.dtype, (rest, radix, 1)) for part in values]
    return cosines, sines


def _times(x: Pair, factor: Pair, sign: float) -> Pair:
    """The products of complex numbers, with the conjugates of the factors if the sign is negative."""
    cosines, sines = factor
    if sign > 0:
        return x[0] * cosines - x[1] * sines, x[1] * cosines + x[0] * sines
    return x[0] * cosines + x[1] * sines, x[1] * cosines - x[0] * sines


def _part(x: Pair, start: int, end: int) -> Pair:
    """The elements `start` to `end` of the axis of the radix, which is the second."""
    found = [z.crop([(0, z.shape[0]), (start, end), *[(0, n) for n in z.shape[2:]]]) for z in x]
    return found[0], found[1]


def _joined(*parts: Pair) -> Pair:
    """The concatenation along the axis of the radix."""
    first, *others = parts
    return (
        first[0].concatenate(*[part[0] for part in others], axis=1),
        first[1].concatenate(*[part[1] for part in others], axis=1),
    )


def _sum(a: Pair, b: Pair) -> Pair:
    return a[0] + b[0], a[1] + b[1]


def _difference(a: Pair, b: Pair) -> Pair:
    return a[0] - b[0], a[1] - b[1]


def _turned(x: Pair, sign: float) -> Pair:
    """i x, or -i x if the sign is negative."""
    return (-x[1], x[0]) if sign > 0 else (x[1], -x[0])


def _radix_2(x: Pair, sign: float) -> Pair:
    a, b = _part(x, 0, 1), _part(x, 1, 2)
    return _joined(_sum(a, b), _difference(a, b))


def _radix_4(x: Pair, sign: float) -> Pair:
    a, b = _part(x, 0, 2), _part(x, 2, 4)
    even, odd = _sum(a, b), _difference(a, b)  # x0 + x2, x1 + x3 and x0 - x2, x1 - x3
    p, q = _part(even, 0, 1), _part(even, 1, 2)
    r, s = _part(odd, 0, 1), _turned(_part(odd, 1, 2), sign)
    return _joined(_sum(p, q), _sum(r, s), _difference(p, q), _difference(r, s))


_ROUTINES = {2: _radix_2, 4: _radix_4}


def _other(x: Pair, radix: int, sign: float) -> Pair:
    return _odd(x, radix, sign) if radix % 2 else _power_of_two(x, sign)


def _power_of_two(x: Pair, sign: float) -> Pair:
    """A transform by the op, for which some backends have kernels."""
    y = _transform(x[0].permute((0, 2, 1)), x[1].permute((0, 2, 1)), sign > 0)
    return y[0].permute((0, 2, 1)), y[1].permute((0, 2, 1))


def _odd(x: Pair, radix: int, sign: float) -> Pair:
    """A transform of odd length: the cosines of sums, and the sines of differences, of elements and mirror images."""
    half = radix // 2
    first, left = _part(x, 0, 1), _part(x, 1, half + 1)
    right = tuple([z.flip((1,)) for z in _part(x, half + 1, radix)])
    sums, differences = _sum(left, right), _difference(left, right)
    table = [[root(j * k, radix) for j in range(1, half + 1)] for k in range(1, half + 1)]
    cosines, sines = [
        x[0].constant([pair[i] for row in table for pair in row], x[0].dtype, (1, half, half)) for i in (0, 1)
    ]
    even = cosines @ sums[0] + first[0], cosines @ sums[1] + first[1]
    odd = _turned((sines @ differences[0], sines @ differences[1]), sign)
    minus = tuple([z.flip((1,)) for z in _difference(even, odd)])
    total = first[0] + sums[0].sum_in_own_dtype(1, True), first[1] + sums[1].sum_in_own_dtype(1, True)
    return _joined(total, _sum(even, odd), minus)


def _bluestein(x: Pair, sign: float) -> Pair:
    """A transform of any length as a convolution: 2 j k = j**2 + k**2 - (k - j)**2."""
    n = x[0].shape[1]
    length = 1 << (2 * n - 2).bit_length()
    chirp = [root(j * j % (2 * n), 2 * n) for j in range(n)]
    like = x[0]
    factor = tuple([like.constant([pair[i] for pair in chirp], like.dtype, (n,)) for i in (0, 1)])
    around = chirp + [(0.0, 0.0)] * (length - 2 * n + 1) + chirp[:0:-1]
    kernel = [like.constant([pair[i] for pair in around], like.dtype, (1, length)) for i in (0, 1)]
    if sign > 0:
        kernel[1] = -kernel[1]
    padded = [z.pad([(0, 0), (0, length - n)]) for z in _times(x, factor, sign)]
    a, b = _transform(padded[0], padded[1], False), _transform(kernel[0], kernel[1], False)
    product = _transform(a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0], True)
    scaled = [_crop(z, 0, n) * (1.0 / length) for z in product]
    return _times((scaled[0], scaled[1]), factor, sign)


def _crop(x: Tensor, start: int, end: int) -> Tensor:
    """The elements `start` to `end` of the last axis."""
    return x.crop([*[(0, n) for n in x.shape[:-1]], (start, end)])


# ---- derivatives -----------------------------------------------------------------------------------------------


def _zeros_if_none(values: Any, like: Any) -> list[Any]:
    return [x.zeros_like() if t is None else t for t, x in zip(values, like, strict=True)]


def fft_jvp(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    """The transform of the tangents."""
    real, imag = _zeros_if_none(tangents, xs)
    return real.apply(OPS["fft"], imag, *params)


def fft_vjp(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    """The transpose of [[C, -S], [S, C]], the transform of the pair of parts: that of the opposite sign."""
    real, imag = _zeros_if_none(cotangents, ys)
    return real.apply(OPS["fft"], imag, not params[0])


def rfft_jvp(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    """The transform of the tangent."""
    return tangents[0].apply(OPS["rfft"])


def rfft_vjp(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    """The inverse transform, which counts the elements within the spectrum twice, of halves of them."""
    size = xs[0].shape[-1]
    real, imag = [halved_inside(t, size) for t in _zeros_if_none(cotangents, ys)]
    return (real.apply(OPS["irfft"], imag, size),)


def irfft_jvp(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    """The inverse transform of the tangents."""
    real, imag = _zeros_if_none(tangents, xs)
    return (real.apply(OPS["irfft"], imag, *params),)


def irfft_vjp(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    """The transform, with the elements within the spectrum doubled."""
    real, imag = cotangents[0].apply(OPS["rfft"])
    return doubled_inside(real, params[0]), doubled_inside(imag, params[0])
