"""Elementary functions of complex tensors, by real functions of the parts.

Branch cuts and the signs of zeros on them are those of the array API standard and of C99's annex G.  The formulas of
the inverse functions are from W. Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign
bit", 1987.
"""

from __future__ import annotations

import math

from tensorken.complex_numbers.arithmetic import div, select, square
from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken_core.language.dtypes import float32
from tensorken_core.language.op import OPS
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor

_LN2 = math.log(2.0)


def _real(name: str, *operands: Tensor) -> Tensor:
    """The real op of this name."""
    result: Tensor = apply(OPS[name], operands)
    return result


def _is_infinite(x: Tensor) -> Tensor:
    return x.abs().eq(math.inf)


def _is_nan(x: Tensor) -> Tensor:
    return ~x.eq(x)


def times_i(z: ComplexTensor) -> ComplexTensor:
    """i z."""
    return ComplexTensor(-z.imag, z.real)


def over_i(z: ComplexTensor) -> ComplexTensor:
    """-i z."""
    return ComplexTensor(z.imag, -z.real)


# ---- exponentials --------------------------------------------------------------------------------------------


def _times(size: Tensor, angle: Tensor) -> Tensor:
    """size * angle, where an angle of 0 gives 0 also for a size that is infinite or NaN.

    Everywhere else it is the product, so that its derivative at an angle of 0 is right.
    """
    bare = angle.eq(0.0) & ~(size.abs() < math.inf)
    return bare.where((size < 0.0).where(size.scalar(-1.0), 1.0), size) * angle


def exp(z: ComplexTensor) -> ComplexTensor:
    """exp(x) (cos y + i sin y); exp(x) is two factors where it may overflow though the result does not."""
    x, y = z.real, z.imag
    shift, factor = (64.0, math.exp(64.0)) if x.dtype is float32 else (512.0, math.exp(512.0))
    large = (x > shift) & ~_is_infinite(x)
    size = large.where(x - shift, x).exp()
    rest = large.where(x.scalar(factor), 1.0)
    # exp(-inf) is 0 and exp(inf) is infinite, whatever y is.
    known = ~_is_infinite(x) | _is_infinite(y).where(False, y.eq(y))
    angle = known.where(y, 0.0)
    real, imag = size * angle.cos() * rest, _times(size, angle.sin()) * rest
    unknown = x.eq(math.inf) & ~known
    return ComplexTensor(
        unknown.where(math.inf, real), unknown.where(math.nan, _is_nan(x).where(y.eq(0.0).where(y, x), imag))
    )


def expm1(z: ComplexTensor) -> ComplexTensor:
    """exp(z) - 1: expm1(x) cos(y) - 2 sin(y/2)**2, and the imaginary part of exp(z)."""
    half = (z.imag * 0.5).sin()
    w = exp(z)
    near = 0.0 - (2.0 * half * half - z.real.expm1() * z.imag.cos())  # never -0.0
    return ComplexTensor((z.real.abs() < 1.0).where(near, w.real - 1.0), w.imag)


def exp2(z: ComplexTensor) -> ComplexTensor:
    """2**x (cos(y log(2)) + i sin(y log(2))); 2**x is two factors where it may overflow though the result does not."""
    x = z.real
    w = exp(ComplexTensor(_is_infinite(x).where(x, 0.0), z.imag * _LN2))
    shift = 64.0 if x.dtype is float32 else 512.0
    large = (x > shift) & ~_is_infinite(x)
    size = _real("exp2", _is_infinite(x).where(0.0, large.where(x - shift, x)))
    rest = large.where(x.scalar(2.0**shift), 1.0)
    return ComplexTensor(size * w.real * rest, _times(size, w.imag) * rest)


def sinh(z: ComplexTensor) -> ComplexTensor:
    """sinh(x) cos(y) + i cosh(x) sin(y)."""
    return _hyperbolic(z)[0]


def cosh(z: ComplexTensor) -> ComplexTensor:
    """cosh(x) cos(y) + i sinh(x) sin(y)."""
    return _hyperbolic(z)[1]


def _hyperbolic(z: ComplexTensor) -> tuple[ComplexTensor, ComplexTensor]:
    """The hyperbolic sine and cosine.

    For an infinite x an unknown angle gives an infinite real part and NaN; a part that is 0 whatever the other factor
    is, as cos(y) for x = 0, is 0 also where the other factor is infinite or NaN.
    """
    x, y = z.real, z.imag
    large, half, rest = _halves(x)
    small = large.where(0.0, x)
    s, c = large.where(_signed(half, x), _real("sinh", small)), large.where(half, _real("cosh", small))
    cos, sin = y.cos(), y.sin()
    unknown = ~(y.abs() < math.inf)
    far, flat = _is_infinite(x) & unknown, x.eq(0.0) & unknown
    sine = ComplexTensor(
        (far | flat).where(x, s * cos * rest),
        far.where(math.nan, _times(c, sin) * rest),
    )
    cosine = ComplexTensor(
        far.where(math.inf, c * cos * rest),
        flat.where(x * _signed(y.ones_like(), y), far.where(math.nan, _times(s, sin) * rest)),
    )
    return sine, cosine


def _halves(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where cosh(x) = exp(|x|)/2 may overflow; there one factor of it, and the other factor, else 1."""
    shift, factor = (64.0, math.exp(64.0)) if x.dtype is float32 else (512.0, math.exp(512.0))
    large = x.abs() > shift
    half = large.where(x.abs() - shift, 0.0).exp() * 0.5
    return large, half, large.where(x.scalar(factor), 1.0)


def _signed(size: Tensor, x: Tensor) -> Tensor:
    """|size| with the sign of x."""
    return _real("copysign", size, x)


def sin(z: ComplexTensor) -> ComplexTensor:
    """-i sinh(iz)."""
    return over_i(sinh(times_i(z)))


def cos(z: ComplexTensor) -> ComplexTensor:
    """cosh(iz)."""
    return cosh(times_i(z))


def tanh(z: ComplexTensor) -> ComplexTensor:
    """(sinh x cosh x + i sin y cos y) / (sinh(x)**2 + cos(y)**2); where exp(-2|x|) is below rounding, +-1 and
    4 sin y cos y exp(-2|x|).
    """
    x, y = z.real, z.imag
    large = x.abs() > 20.0
    small = large.where(0.0, x)
    s, c = _real("sinh", small), _real("cosh", small)
    unknown = ~(y.abs() < math.inf)
    angle = (_is_infinite(x) & unknown).where(0.0, y)
    sin, cos = angle.sin(), angle.cos()
    divisor = large.where(1.0, s * s + cos * cos)
    tail = 4.0 * sin * cos * (-2.0 * large.where(x.abs(), 0.0)).exp()
    one = _signed(x.ones_like(), x) + 0.0 * cos
    real = (x.eq(0.0) & unknown).where(x, large.where(one, s * c / divisor))
    imag = _is_infinite(x).where(_signed(y.zeros_like(), y), large.where(tail, sin * cos / divisor))
    return ComplexTensor(real, (y.eq(0.0) & _is_nan(x)).where(y, imag))


def tan(z: ComplexTensor) -> ComplexTensor:
    """-i tanh(iz)."""
    return over_i(tanh(times_i(z)))


def sigmoid(z: ComplexTensor) -> ComplexTensor:
    """1 / (1 + exp(-z)), by exp(z) for x < 0.

    Near its poles, 1 + exp(z) is expm1(x) cos(y) + 2 cos(y/2)**2 + i exp(x) sin(y). For an infinite x it is 0 or 1,
    whatever y is.
    """
    limit = 120.0 if z.real.dtype is float32 else 800.0  # exp(-limit) is 0
    far, finite = z.real.abs() > limit, z.imag.abs() < math.inf
    x = far.where(_signed(z.real.ones_like() * limit, z.real), z.real)
    y = (far & (finite | _is_infinite(z.real))).where(0.0, z.imag)
    left = x < 0.0
    falling = left.where(x, -x)
    power, excess = falling.exp(), falling.expm1()
    cos, sin, half = y.cos(), y.sin(), (y * 0.5).cos()
    near_pole = (power > 0.5) & (cos < 0.0)  # only there 1 + exp(x) cos(y) and exp(x) + cos(y) cancel
    near_one = near_pole.where(excess * cos + 2.0 * half * half, power * cos + 1.0)
    near_cos = near_pole.where(excess + 2.0 * half * half, power + cos)
    turned = power * sin
    divisor = near_one * near_one + turned * turned
    return ComplexTensor(left.where(power * near_cos, near_one) / divisor, turned / divisor)


# ---- logarithms and powers -----------------------------------------------------------------------------------


def log_of_modulus(x: Tensor, y: Tensor) -> Tensor:
    """log|x + iy|; near 1 by log1p of (x - 1)(x + 1) + y**2, x being the larger part."""
    swap = x.square() < y.square()
    large, small = swap.where(y, x), swap.where(x, y)
    modulus = _real("hypot", x, y)
    near = (modulus > 0.5) & (modulus < 2.0)
    large, small = near.where(large, 1.0), near.where(small, 0.0)
    excess = (large - 1.0) * (large + 1.0) + small * small
    huge = _is_infinite(modulus) & ~_is_infinite(x) & ~_is_infinite(y)
    tiny = modulus < (2.0**-100 if x.dtype is float32 else 2.0**-1000)
    scale = huge.where(0.25, tiny.where(x.scalar(2.0**100), 1.0))
    scaled = near.where(1.0, _real("hypot", x * scale, y * scale)).log()
    far = scaled + huge.where(2.0 * _LN2, tiny.where(x.scalar(-100.0 * _LN2), 0.0))
    return near.where(0.5 * excess.log1p(), far)


def log(z: ComplexTensor) -> ComplexTensor:
    """log|z| + i angle(z)."""
    return ComplexTensor(log_of_modulus(z.real, z.imag), angle(z))


def angle(z: ComplexTensor) -> Tensor:
    """The argument of z, in (-pi, pi]."""
    return _real("atan2", z.imag, z.real)


def log1p(z: ComplexTensor) -> ComplexTensor:
    """log(1 + z); near 0 by log1p of x (2 + x) + y**2."""
    x, y = z.real, z.imag
    near = (x.abs() < 0.5) & (y.abs() < 0.5)
    a, b = near.where(x, 0.0), near.where(y, 0.0)
    real = near.where(0.5 * (a * (2.0 + a) + b * b).log1p(), log_of_modulus(1.0 + x, y))
    return ComplexTensor(real, _real("atan2", y, 1.0 + x))


def log2(z: ComplexTensor) -> ComplexTensor:
    """log(z) / log(2)."""
    w = log(z)
    return ComplexTensor(w.real / _LN2, w.imag / _LN2)


def log10(z: ComplexTensor) -> ComplexTensor:
    """log(z) / log(10)."""
    w = log(z)
    return ComplexTensor(w.real / math.log(10.0), w.imag / math.log(10.0))


def sqrt(z: ComplexTensor) -> ComplexTensor:
    """t + iy/(2t) with t = sqrt((|z| + x)/2), for x < 0 with the parts exchanged; the real part is not negative.

    The parts are scaled by a power of 4 where the modulus may overflow or underflow.
    """
    x, y = z.real, z.imag
    infinite, zero = _is_infinite(y), x.eq(0.0) & y.eq(0.0)
    bounds = (2.0**-100, 2.0**100, 2.0**24) if x.dtype is float32 else (2.0**-1000, 2.0**1000, 2.0**60)
    size = x.abs().maximum(y.abs())
    large, tiny = size > bounds[1], size < bounds[0]
    factor = large.where(0.0625, tiny.where(x.scalar(bounds[2] ** 2), 1.0))
    back = large.where(4.0, tiny.where(x.scalar(1.0 / bounds[2]), 1.0))
    left = x < 0.0
    a, b = (infinite | zero).where(1.0, x * factor), (infinite | zero).where(0.0, y * factor)
    t = ((_real("hypot", a, b) + left.where(-a, a)) * 0.5).sqrt()
    other = _is_infinite(t).where(_is_nan(b).where(math.nan, 0.0 * b), b / (2.0 * t))
    t, other = t * back, other * back
    real = left.where(_signed(other, x.ones_like()), t)
    imag = left.where(_signed(t, y), other)
    real, imag = zero.where(0.0, real), zero.where(y, imag)
    return ComplexTensor(infinite.where(math.inf, real), infinite.where(y, imag))


def power(a: ComplexTensor, b: ComplexTensor) -> ComplexTensor:
    """exp(b log(a)); 1 where b is 0, and 0 where a is 0 and the real part of b is positive.

    There it is a or a**2 for exponents 1 and 2, so that the first two derivatives are right.
    """
    origin = a.real.eq(0.0) & a.imag.eq(0.0)
    base = ComplexTensor(origin.where(1.0, a.real), origin.where(0.0, a.imag))
    y = exp(b * log(base))
    none, positive = b.real.eq(0.0) & b.imag.eq(0.0), b.real > 0.0
    other = positive.where(y.real.scalar(0.0), math.nan)
    at_origin = ComplexTensor(other, other)
    for exponent, result in ((1.0, a), (2.0, square(a))):
        at_origin = select(b.real.eq(exponent) & b.imag.eq(0.0), result, at_origin)
    y = select(origin, at_origin, y)
    known = (a.real.abs() < math.inf) & (a.imag.abs() < math.inf) & ~origin
    alone = none & ~known
    return ComplexTensor(alone.where(1.0, y.real), alone.where(0.0, y.imag))


# ---- inverse functions ---------------------------------------------------------------------------------------


def _roots(z: ComplexTensor) -> tuple[ComplexTensor, ComplexTensor]:
    """The square roots of 1 - z and 1 + z."""
    return sqrt(ComplexTensor(1.0 - z.real, -z.imag)), sqrt(ComplexTensor(1.0 + z.real, z.imag))


def _beyond(z: ComplexTensor) -> tuple[Tensor, ComplexTensor, Tensor, Tensor, Tensor]:
    """Where z is so large that log(2z) is the inverse hyperbolic cosine of z to rounding.

    Returns:
        these places; z elsewhere, and 0 there; and log|2z| and the parts of a number in the direction of z there, 0 or
        +-1 for an infinite z and NaN for a part that is NaN.
    """
    infinite = _is_infinite(z.real) | _is_infinite(z.imag)
    large = z.real.abs().maximum(z.imag.abs()) > (2.0**50 if z.real.dtype is float32 else 2.0**400)
    far = infinite | large
    x, y = far.where(z.real, 1.0), far.where(z.imag, 0.0)
    u, v = [
        (infinite & p.eq(p)).where(_signed(_is_infinite(p).where(1.0, p.zeros_like()), p), p) for p in (x, y)
    ]
    near = ComplexTensor(far.where(0.0, z.real), far.where(0.0, z.imag))
    return far, near, log_of_modulus(x, y) + _LN2, u, v


def asinh(z: ComplexTensor) -> ComplexTensor:
    """The inverse hyperbolic sine: cuts on the imaginary axis beyond -i and i."""
    far, w, size, u, v = _beyond(z)
    a, b = _roots(times_i(w))
    real = _real("asinh", a.real * b.imag - a.imag * b.real)
    imag = _real("atan2", w.imag, a.real * b.real - a.imag * b.imag)
    beyond = _signed(_real("atan2", v.abs(), u.abs()), z.imag)
    at_nan = z.imag.eq(0.0) & _is_nan(z.real)
    return ComplexTensor(
        far.where(_signed(size, z.real), real), far.where(beyond, at_nan.where(z.imag, imag))
    )


def asin(z: ComplexTensor) -> ComplexTensor:
    """-i asinh(iz): cuts on the real axis beyond -1 and 1."""
    return over_i(asinh(times_i(z)))


def acos(z: ComplexTensor) -> ComplexTensor:
    """The inverse cosine: cuts on the real axis beyond -1 and 1."""
    far, w, size, u, v = _beyond(z)
    a, b = _roots(w)
    real = far.where(_real("atan2", v.abs(), u), 2.0 * _real("atan2", a.real, b.real))
    imag = far.where(-_signed(size, z.imag), _real("asinh", b.real * a.imag - b.imag * a.real))
    return ComplexTensor((z.real.eq(0.0) & _is_nan(z.imag)).where(math.pi / 2.0, real), imag)


def acosh(z: ComplexTensor) -> ComplexTensor:
    """The inverse hyperbolic cosine: a cut on the real axis below 1."""
    far, w, size, u, v = _beyond(z)
    a, b = sqrt(ComplexTensor(w.real - 1.0, w.imag)), sqrt(ComplexTensor(w.real + 1.0, w.imag))
    real = far.where(size, _real("asinh", a.real * b.real + a.imag * b.imag))
    imag = far.where(_signed(_real("atan2", v.abs(), u), z.imag), 2.0 * _real("atan2", a.imag, b.real))
    return ComplexTensor(real, (z.real.eq(0.0) & _is_nan(z.imag)).where(math.pi / 2.0, imag))


def atanh(z: ComplexTensor) -> ComplexTensor:
    """log((1 + z)/(1 - z))/2: cuts on the real axis beyond -1 and 1."""
    x, y = z.real, z.imag
    size = x.abs().maximum(y.abs())
    large = size > (2.0**50 if x.dtype is float32 else 2.0**400)
    a, b = large.where(0.0, x), large.where(0.0, y)
    left = a < 0.0
    distance = left.where(1.0 + a, 1.0 - a)
    pole = distance.abs().maximum(b.abs()) < (2.0**-50 if x.dtype is float32 else 2.0**-400)
    square = pole.where(1.0, distance * distance + b * b)
    half = 0.25 * (left.where(a.scalar(-4.0), 4.0) * a / square).log1p()
    near_pole = 0.5 * (_LN2 - log_of_modulus(pole.where(distance, 1.0), pole.where(b, 0.0)))
    half = pole.where(near_pole, half)
    real = left.where(-half, half)
    imag = 0.5 * _real("atan2", 2.0 * b, (1.0 - a) * (1.0 + a) - b * b)
    infinite = _is_infinite(x) | _is_infinite(y)
    distant = large & ~infinite
    inverse = div(z.scalar(1.0), ComplexTensor(distant.where(x, 1.0), distant.where(y, 0.0)))
    quarter = _signed(y.ones_like() * (math.pi / 2.0), y)
    far = infinite.where(_signed(x.zeros_like(), x), inverse.real)
    unknown = infinite & _is_nan(y)
    at_nan = (x.eq(0.0) & _is_nan(y)).where(x, real)
    return ComplexTensor(
        (infinite | large).where(far, at_nan),
        unknown.where(math.nan, (infinite | large).where(quarter, imag)),
    )


def atan(z: ComplexTensor) -> ComplexTensor:
    """-i atanh(iz): cuts on the imaginary axis beyond -i and i."""
    return over_i(atanh(times_i(z)))


def norm(z: ComplexTensor, axes: tuple[int, ...]) -> Tensor:
    """The Euclidean norm over axes, of all parts: the modulus of an element that is 0 has no second derivative."""
    parts = [x.reshape((*x.shape, 1)) for x in (z.real, z.imag)]
    both = parts[0].concatenate(parts[1], axis=z.ndim)
    result: Tensor = apply(OPS["norm"], (both,), ((*axes, z.ndim),))
    return result.reshape(result.shape[:-1])
