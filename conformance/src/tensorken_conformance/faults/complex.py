"""Complex: functions of complex numbers lose a conjugate, a branch, the sign of a zero, or digits."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import tensorken as tk
from tensorken.complex_numbers import arithmetic, elementary, rules
from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken_conformance.faults.changes import entry
from tensorken_conformance.faults.fault import Declared, Place, fault_by, fault_in_function
from tensorken_core.language.bodies.arrangement import take_along
from tensorken_core.language.op import OPS
from tensorken_core.transforms import grad

VALUES = "values.complex"
EDGES = "values.complex-edges"
DERIVATIVES = "derivatives.complex"


def _fault_in_function_of_z(law: str, name: str) -> Callable[[Declared], Declared]:
    """Declare a fault in the rule of an op; the function receives the original rule and its arguments."""

    def patch(wrong: Callable[..., Any]) -> Place:
        return entry(rules.RULES, name, functools.partial(wrong, rules.RULES[name]))

    return fault_by(patch, law)


def _positive_zeros(x: Any) -> Any:
    """The tensor with 0.0 for -0.0."""
    return x.eq(0.0).where(0.0, x)


# ---- accuracy ------------------------------------------------------------------------------------------------


@_fault_in_function_of_z(VALUES, "div")
def divided_by_the_squared_modulus(original: Any, a: Any, b: Any) -> Any:
    """Division multiplies by the conjugate and divides by the square of the modulus, which overflows."""
    size = b.real * b.real + b.imag * b.imag
    real, imag = a.real * b.real + a.imag * b.imag, a.imag * b.real - a.real * b.imag
    return ComplexTensor(real / size, imag / size)


@_fault_in_function_of_z(VALUES, "sqrt")
def root_by_a_difference(original: Any, z: Any) -> Any:
    """The imaginary part of sqrt is the root of half of the modulus minus the real part, which cancels."""
    y = original(z)
    half = (arithmetic.magnitude(z) - z.real).maximum(0.0) * 0.5
    return ComplexTensor(y.real, elementary._signed(half.sqrt(), z.imag))


@fault_in_function(VALUES, elementary, "log_of_modulus")
def logarithm_of_the_modulus(original: Any, x: Any, y: Any) -> Any:
    """The real part of log is the logarithm of the modulus, which has no digits near 1."""
    return arithmetic.magnitude(ComplexTensor(x, y)).log()


@_fault_in_function_of_z(VALUES, "exp")
def exponential_overflows_early(original: Any, z: Any) -> Any:
    """exp computes exp(x) in one piece, which overflows where the sine and the cosine would not."""
    y = original(z)
    early = z.real.exp().eq(math.inf) & (z.real.abs() < math.inf)
    return ComplexTensor(early.where(math.inf, y.real), early.where(math.inf, y.imag))


@_fault_in_function_of_z(VALUES, "tanh")
def tangent_by_a_quotient(original: Any, z: Any) -> Any:
    """tanh is sinh over cosh, which is NaN where both overflow."""
    return arithmetic.div(elementary.sinh(z), elementary.cosh(z))


@_fault_in_function_of_z(VALUES, "sigmoid")
def sigmoid_by_tanh(original: Any, z: Any) -> Any:
    """sigmoid is half of 1 + tanh(z/2), which cancels left of the imaginary axis."""
    t = elementary.tanh(ComplexTensor(z.real * 0.5, z.imag * 0.5))
    return ComplexTensor(0.5 + 0.5 * t.real, 0.5 * t.imag)


@_fault_in_function_of_z(VALUES, "asin")
def arcsine_by_a_logarithm(original: Any, z: Any) -> Any:
    """asin is -i log(iz + sqrt(1 - z**2)), which cancels for large z in the upper half-plane."""
    i_z = elementary.times_i(z)
    inner: Any = i_z + elementary.sqrt(1.0 - z * z)
    return elementary.over_i(elementary.log(inner))


@_fault_in_function_of_z(VALUES, "expm1")
def exponential_minus_one(original: Any, z: Any) -> Any:
    """expm1 subtracts 1 from exp(z), which cancels near 0."""
    y = elementary.exp(z)
    return ComplexTensor(y.real - 1.0, y.imag)


# ---- branch cuts, zeros, infinities --------------------------------------------------------------------------


@fault_in_function(EDGES, elementary, "angle")
def angles_below_the_cut_are_positive(original: Any, z: Any) -> Any:
    """The angle of a negative number is pi, also if its imaginary part is -0.0."""
    return original(ComplexTensor(z.real, _positive_zeros(z.imag)))


@_fault_in_function_of_z(EDGES, "sqrt")
def root_from_above(original: Any, z: Any) -> Any:
    """sqrt of a negative number is on the positive imaginary axis, also if the imaginary part is -0.0."""
    return original(ComplexTensor(z.real, (z.real < 0.0).where(_positive_zeros(z.imag), z.imag)))


@_fault_in_function_of_z(EDGES, "asin")
def cut_is_continuous_from_the_other_side(original: Any, z: Any) -> Any:
    """asin beyond 1 takes the value above its cut for the value below it."""
    beyond = (z.real > 1.0) & z.imag.eq(0.0)
    return original(ComplexTensor(z.real, beyond.where(-z.imag, z.imag)))


@_fault_in_function_of_z(EDGES, "acosh")
def cut_ends_at_minus_one(original: Any, z: Any) -> Any:
    """acosh has no cut between -1 and 1: it ignores the sign of a zero there."""
    inside = (z.real.abs() < 1.0) & z.imag.eq(0.0)
    return original(ComplexTensor(z.real, inside.where(0.0, z.imag)))


@_fault_in_function_of_z(EDGES, "sinh")
def hyperbolic_zeros_are_positive(original: Any, z: Any) -> Any:
    """sinh of a number on an axis has no part -0.0."""
    y = original(z)
    return ComplexTensor(_positive_zeros(y.real), _positive_zeros(y.imag))


@_fault_in_function_of_z(EDGES, "exp")
def infinite_exponential_of_real_numbers(original: Any, z: Any) -> Any:
    """exp of infinity multiplies it by the sine of 0, which is NaN."""
    y = original(z)
    bare = z.imag.eq(0.0) & z.real.eq(math.inf)
    return ComplexTensor(y.real, bare.where(math.nan, y.imag))


@_fault_in_function_of_z(EDGES, "tanh")
def tangent_at_infinity_of_the_sine(original: Any, z: Any) -> Any:
    """The imaginary part of tanh of an infinity has the sign of the sine of twice the imaginary part."""
    y = original(z)
    zero = elementary._signed(z.imag.zeros_like(), (2.0 * z.imag).sin())
    return ComplexTensor(y.real, (z.real.abs().eq(math.inf) & (z.imag.abs() < math.inf)).where(zero, y.imag))


@_fault_in_function_of_z(EDGES, "log1p")
def logarithm_of_minus_one_is_nan(original: Any, z: Any) -> Any:
    """log1p of -1 is NaN instead of minus infinity."""
    y = original(z)
    pole = z.real.eq(-1.0) & z.imag.eq(0.0)
    return ComplexTensor(pole.where(math.nan, y.real), y.imag)


@_fault_in_function_of_z(EDGES, "mul")
def real_factors_have_an_imaginary_part(original: Any, a: Any, b: Any) -> Any:
    """A product with a real number multiplies by its imaginary part 0, too, which is NaN for an infinity."""
    return original(ComplexTensor(a.real, a.imag), ComplexTensor(b.real, b.imag))


@_fault_in_function_of_z(EDGES, "add")
def real_terms_have_an_imaginary_part(original: Any, a: Any, b: Any) -> Any:
    """A sum with a real number adds its imaginary part 0, which turns -0.0 into 0.0."""
    return ComplexTensor(a.real + b.real, a.imag + b.imag)


@_fault_in_function_of_z(EDGES, "abs")
def modulus_of_nan(original: Any, z: Any) -> Any:
    """The modulus of an infinity is NaN if the other part is NaN."""
    nan = ~z.real.eq(z.real) | ~z.imag.eq(z.imag)
    return nan.where(math.nan, original(z))


@_fault_in_function_of_z(EDGES, "sort")
def sorted_by_the_real_part_alone(original: Any, z: Any, axis: int) -> Any:
    """sort does not look at imaginary parts where real parts are equal."""
    order = z.real.apply(OPS["argsort"], axis)
    return ComplexTensor(take_along(z.real, order, axis), take_along(z.imag, order, axis))


@fault_in_function(EDGES, tk, "vdot")
def vdot_does_not_conjugate(original: Any, a: Any, b: Any) -> Any:
    """vdot does not conjugate its first operand."""
    return original(tk.conj(a), b)


@fault_in_function(EDGES, tk, "var")
def variance_of_squares(original: Any, x: Any, *args: Any, **given: Any) -> Any:
    """The variance of complex numbers is the mean of the squares of the differences instead of their moduli."""
    centred = x - tk.mean(x)
    return tk.mean(tk.real(centred * centred))


# ---- derivatives -----------------------------------------------------------------------------------------------


@fault_in_function(DERIVATIVES, grad, "conjugated")
def gradients_are_conjugated(original: Any, structure: Any, leaves: Any) -> Any:
    """Cotangents of complex numbers are df/dx + i df/dy."""
    return list(leaves)


@_fault_in_function_of_z(DERIVATIVES, "acosh")
def other_branch_of_the_derivative(original: Any, z: Any) -> Any:
    """The derivative of acosh is 1 / sqrt(z**2 - 1), which has the wrong sign left of the imaginary axis."""
    y, left = original(z), z.real < 0.0
    still = ComplexTensor(tk.stop_gradient(y.real), tk.stop_gradient(y.imag))
    return ComplexTensor(
        left.where(2.0 * still.real - y.real, y.real), left.where(2.0 * still.imag - y.imag, y.imag)
    )


@_fault_in_function_of_z(DERIVATIVES, "exp")
def angles_that_are_zero_are_constant(original: Any, z: Any) -> Any:
    """exp of a real number returns its imaginary part 0, so the derivative lacks the factor exp(x)."""
    y = original(z)
    return ComplexTensor(y.real, z.imag.eq(0.0).where(z.imag, y.imag))


@_fault_in_function_of_z(DERIVATIVES, "abs")
def modulus_by_a_root(original: Any, z: Any) -> Any:
    """The modulus is the root of the sum of squares, whose derivative at 0 is NaN."""
    zero = z.real.eq(0.0) & z.imag.eq(0.0)
    return zero.where((z.real * z.real + z.imag * z.imag).sqrt(), original(z))


@_fault_in_function_of_z(DERIVATIVES, "mul")
def second_factor_is_constant(original: Any, a: Any, b: Any) -> Any:
    """The imaginary part of a product has no derivative by the real part of the second factor."""
    y = original(a, b)
    if a.is_real or b.is_real:
        return y
    imag = a.imag * b.real
    return ComplexTensor(y.real, y.imag - imag + a.imag * tk.stop_gradient(b.real))


@fault_in_function(DERIVATIVES, tk, "angle")
def angle_has_the_derivative_of_a_right_angle(original: Any, z: Any) -> Any:
    """The derivative of angle by the real part lacks the minus sign."""
    y = z.imag.apply(OPS["atan2"], z.real)
    slope = z.imag / (z.real * z.real + z.imag * z.imag)
    return y + 2.0 * tk.stop_gradient(slope) * (z.real - tk.stop_gradient(z.real))
