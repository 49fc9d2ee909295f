# mypy: disable-error-code="empty-body"
"""Derived elementary functions: exponentials and logarithms, circular and hyperbolic functions, erf.

A derivative rule is as accurate as its function and overflows only where the derivative does; the same is true of the
derivative of the rule.  1 - y**2 for `tanh` and y * (1 - y) for `sigmoid` are not accurate enough: they are 0 where y
rounds to 1.  So both rules use an op of x, `sech_squared`.  The rule of `erf` uses `gaussian`, since the rounding of
x * x costs exp(-x * x) hundreds of units in the last place.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken_core.language import scalar
from tensorken_core.language.bodies import elementary
from tensorken_core.language.declare import elementwise
from tensorken_core.language.dtype_rules import floating
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import OPS

_LN2, _LN10 = math.log(2.0), math.log(10.0)


def _hypot(a: Any, b: Any) -> Any:
    return a.apply(OPS["hypot"], b)


def _logaddexp_rule(t: Any, a: Any, b: Any) -> Any:
    """t * exp(a) / (exp(a) + exp(b)); t / 2 for equal infinities."""
    difference = a - b
    return t * difference.eq(difference).where(difference, a.eq(b).where(0.0, difference)).sigmoid()


def _hypot_rule(t: Any, a: Any, y: Any) -> Any:
    """t * a / y; where y is infinite, t times the sign of an infinite `a`, else 0; 0 at the origin."""
    flat = y.eq(y + y)  # 0 or infinite
    return t * flat.where(a.abs().eq(y).where(a.sign(), 0.0), a / flat.where(1.0, y))


def _atan2_rule(t: Any, a: Any, b: Any) -> Any:
    """t * a / (a**2 + b**2), without overflow of the squares; 0 at the origin, where there is no angle."""
    radius = _hypot(a, b)
    return _hypot_rule(t, a, radius) / radius.eq(0.0).where(1.0, radius)


def _atan_rule(t: Any, y: Any, x: Any) -> Any:
    """t / (1 + x**2), without overflow of x**2."""
    root = _hypot(x, x.ones_like())
    return t / root / root


def _halves(x: Any) -> tuple[Any, Any, Any]:
    """Whether abs(x) < 1/2, and x on either side: 1 - x**2 is accurate below, its factors 1 - x and 1 + x above."""
    near = x.abs() < 0.5
    return near, near.where(x, 0.0), near.where(0.5, x)


def _asin_rule(t: Any, x: Any) -> Any:
    """t / sqrt(1 - x**2)."""
    near, z, far = _halves(x)
    return t / near.where(1.0 - z * z, (1.0 - far) * (far + 1.0)).sqrt()


def _atanh_rule(t: Any, y: Any, x: Any) -> Any:
    """t / (1 - x**2)."""
    near, z, far = _halves(x)
    return t * near.where(1.0 / (1.0 - z * z), 0.5 / (1.0 - far) + 0.5 / (far + 1.0))


def _gaussian_rule(t: Any, y: Any, x: Any) -> Any:
    """-2 * t * x * y; 0 where y is 0, since x may be infinite there."""
    return t * (y.eq(0.0).where(0.0, x) * y * -2.0)


class Elementary(Interpreter[R]):
    """The elementary functions other than exp, log, sin, cos and sqrt, which are required of a backend."""

    # ---- exponentials ------------------------------------------------------------------------------------------

    @elementwise(scalar.expm1, lambda t, y, x: t * x.exp(), dtype=floating, body=elementary.expm1)
    def expm1(self, x: R) -> R:
        """e**x - 1, accurate for small x."""

    @elementwise(scalar.exp2, lambda t, y, x: t * (y * _LN2), dtype=floating, body=elementary.exp2)
    def exp2(self, x: R) -> R:
        """2**x."""

    @elementwise(
        scalar.sigmoid,
        lambda t, y, x: t * ((x * 0.5).apply(OPS["sech_squared"]) * 0.25),
        dtype=floating,
        body=elementary.sigmoid,
    )
    def sigmoid(self, x: R) -> R:
        """1 / (1 + e**-x), without overflow."""

    @elementwise(scalar.softplus, lambda t, y, x: t * x.sigmoid(), dtype=floating, body=elementary.softplus)
    def softplus(self, x: R) -> R:
        """log(1 + e**x), without overflow."""

    @elementwise(
        scalar.logaddexp,
        lambda t, y, a, b: _logaddexp_rule(t, a, b),
        lambda t, y, a, b: _logaddexp_rule(t, b, a),
        dtype=floating,
        body=elementary.logaddexp,
    )
    def logaddexp(self, a: R, b: R) -> R:
        """log(e**a + e**b), without overflow."""

    # ---- logarithms --------------------------------------------------------------------------------------------

    @elementwise(
        scalar.log1p, lambda t, y, x: t / (x + 1.0), dtype=floating, body=elementary.log1p, domain=(-0.5, 2.0)
    )
    def log1p(self, x: R) -> R:
        """log(1 + x), accurate for small x."""

    @elementwise(
        scalar.log2,
        lambda t, y, x: t * (1.0 / _LN2) / x,
        dtype=floating,
        body=elementary.log2,
        domain=(0.5, 2.0),
    )
    def log2(self, x: R) -> R:
        """The base-2 logarithm of x; exact for powers of 2."""

    @elementwise(
        scalar.log10,
        lambda t, y, x: t * (1.0 / _LN10) / x,
        dtype=floating,
        body=elementary.log10,
        domain=(0.5, 2.0),
    )
    def log10(self, x: R) -> R:
        """The base-10 logarithm of x; exact for powers of 10."""

    # ---- circular functions ------------------------------------------------------------------------------------

    @elementwise(
        scalar.tan, lambda t, y, x: t * (y * y + 1.0), dtype=floating, body=elementary.tan, domain=(-1.0, 1.0)
    )
    def tan(self, x: R) -> R:
        """The tangent of x, which is in radians."""

    @elementwise(
        scalar.asin,
        lambda t, y, x: _asin_rule(t, x),
        dtype=floating,
        body=elementary.asin,
        domain=(-0.9, 0.9),
    )
    def asin(self, x: R) -> R:
        """The angle in [-pi/2, pi/2] whose sine is x."""

    @elementwise(
        scalar.acos,
        lambda t, y, x: -_asin_rule(t, x),
        dtype=floating,
        body=elementary.acos,
        domain=(-0.9, 0.9),
    )
    def acos(self, x: R) -> R:
        """The angle in [0, pi] whose cosine is x."""

    @elementwise(math.atan, _atan_rule, dtype=floating, body=elementary.atan)
    def atan(self, x: R) -> R:
        """The angle in [-pi/2, pi/2] whose tangent is x."""

    @elementwise(
        math.atan2,
        lambda t, y, a, b: _atan2_rule(t, b, a),
        lambda t, y, a, b: -_atan2_rule(t, a, b),
        dtype=floating,
        body=elementary.atan2,
        domain=(0.5, 2.0),
    )
    def atan2(self, a: R, b: R) -> R:
        """The angle in [-pi, pi] between the positive x axis and the point with y coordinate a and x coordinate b."""

    # ---- hyperbolic functions ----------------------------------------------------------------------------------

    @elementwise(scalar.sinh, lambda t, y, x: t * x.apply(OPS["cosh"]), dtype=floating, body=elementary.sinh)
    def sinh(self, x: R) -> R:
        """The hyperbolic sine of x."""

    @elementwise(scalar.cosh, lambda t, y, x: t * x.apply(OPS["sinh"]), dtype=floating, body=elementary.cosh)
    def cosh(self, x: R) -> R:
        """The hyperbolic cosine of x."""

    @elementwise(
        math.tanh, lambda t, y, x: t * x.apply(OPS["sech_squared"]), dtype=floating, body=elementary.tanh
    )
    def tanh(self, x: R) -> R:
        """The hyperbolic tangent of x."""

    @elementwise(
        scalar.sech_squared,
        lambda t, y, x: t * (y * x.tanh() * -2.0),
        dtype=floating,
        body=elementary.sech_squared,
    )
    def sech_squared(self, x: R) -> R:
        """1 / cosh(x)**2, which is 1 - tanh(x)**2."""

    @elementwise(
        math.asinh, lambda t, y, x: t / _hypot(x, x.ones_like()), dtype=floating, body=elementary.asinh
    )
    def asinh(self, x: R) -> R:
        """The inverse hyperbolic sine of x."""

    @elementwise(
        scalar.acosh,
        lambda t, y, x: t / (x - 1.0).sqrt() / (x + 1.0).sqrt(),
        dtype=floating,
        body=elementary.acosh,
        domain=(1.5, 3.0),
    )
    def acosh(self, x: R) -> R:
        """The inverse hyperbolic cosine of x, which is not negative."""

    @elementwise(
        scalar.atanh,
        _atanh_rule,
        dtype=floating,
        body=elementary.atanh,
        domain=(-0.9, 0.9),
    )
    def atanh(self, x: R) -> R:
        """The inverse hyperbolic tangent of x."""

    # ---- others ------------------------------------------------------------------------------------------------

    @elementwise(
        math.erf,
        lambda t, y, x: t * (x.apply(OPS["gaussian"]) * (2.0 / math.sqrt(math.pi))),
        dtype=floating,
        body=elementary.erf,
    )
    def erf(self, x: R) -> R:
        """The error function: 2 / sqrt(pi) times the integral of e**-s**2 for s from 0 to x."""

    @elementwise(
        scalar.erfinv,
        lambda t, y, x: t / y.apply(OPS["gaussian"]) * (math.sqrt(math.pi) / 2.0),
        dtype=floating,
        body=elementary.erfinv,
        domain=(-0.9, 0.9),
    )
    def erfinv(self, x: R) -> R:
        """The inverse error function; -inf at -1 and inf at 1."""

    @elementwise(scalar.gaussian, _gaussian_rule, dtype=floating, body=elementary.gaussian)
    def gaussian(self, x: R) -> R:
        """e**-(x**2), computed from the exact square of x."""

    @elementwise(
        math.hypot,
        lambda t, y, a, b: _hypot_rule(t, a, y),
        lambda t, y, a, b: _hypot_rule(t, b, y),
        dtype=floating,
        body=elementary.hypot,
    )
    def hypot(self, a: R, b: R) -> R:
        """sqrt(a**2 + b**2), without overflow; its derivative at the origin is 0."""
