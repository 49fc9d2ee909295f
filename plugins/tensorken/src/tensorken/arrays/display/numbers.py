"""Numbers as text by numpy's rules: one format for all elements of a tensor, which aligns them.

There is one class per kind of number. It reads the elements to print, chooses widths and digits, and turns each
element into text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tensorken.arrays.display.digits import FLOAT_FORMATS, FloatFormat, shortest_digits
from tensorken.arrays.display.options import PrintOptions
from tensorken_core.language.dtypes import DType

ElementFormat: TypeAlias = Callable[[Any], str]
"""A function from an element to its text."""


def element_format(
    values: Sequence[Any], dtype: DType, options: PrintOptions, *, is_scalar: bool = False
) -> ElementFormat:
    """The format in which numpy prints these elements of an array.

    >>> from tensorken_core.language.dtypes import float32
    >>> values = [1.0, 2.5, 10.0]
    >>> [*map(element_format(values, float32, PrintOptions()), values)]
    [' 1. ', ' 2.5', '10. ']
    """
    match str(dtype.kind):
        case "bool":
            return str if is_scalar else "{!s:>5}".format
        case "float":
            return FloatText(values, FLOAT_FORMATS[dtype.name], options)
        case "complex":
            return ComplexText(values, FLOAT_FORMATS[dtype.name], options)
        case _:
            return _integer_format(values, options.sign)


def scalar_text(value: Any, dtype: DType) -> str:
    """A single number as numpy prints it: with the fewest digits that identify it in its dtype.

    >>> from tensorken_core.language.dtypes import float32, float64
    >>> scalar_text(math.e, float64), scalar_text(2.7182817459106445, float32), scalar_text(3.0, float32)
    ('2.718281828459045', '2.7182817', '3.0')
    """
    match str(dtype.kind):
        case "float":
            return float_text(value, dtype, point=".0")
        case "complex":
            real, imaginary = (float_text(part, dtype, point="") for part in (value.real, value.imag))
            if value.real == 0 and math.copysign(1, value.real) > 0:
                return f"{imaginary}j"
            return f"({real}{'' if imaginary.startswith('-') else '+'}{imaginary}j)"
        case _:
            return str(value)


def float_text(value: float, dtype: DType, *, point: str, limit: float | None = None) -> str:
    """A float with its shortest digits; `point` stands after a whole number, and an exponent from `limit` on.

    >>> from tensorken_core.language.dtypes import float32
    >>> float_text(3e7, float32, point=".0"), float_text(3e7, float32, point="", limit=1e16)
    ('3e+07', '30000000')
    """
    form = FLOAT_FORMATS[dtype.name]
    limit = form.scalar_limit if limit is None else limit
    sign, size = "-" if math.copysign(1, value) < 0 else "", abs(value)
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else f"{sign}inf"
    if size == 0:
        return f"{sign}0{point}"
    digits, exponent = shortest_digits(size, form)
    if 1e-4 <= size < limit:
        whole, fraction = _positional(digits, exponent)
        return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}{point}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{exponent:+03d}"


def _positional(digits: str, exponent: int) -> tuple[str, str]:
    """The digits before and after the point; the first digit is that of 10**exponent."""
    if exponent < 0:
        return "0", ("0" * (-exponent - 1) + digits).rstrip("0")
    digits = digits.ljust(exponent + 1, "0")
    return digits[: exponent + 1], digits[exponent + 1 :].rstrip("0")


def _integer_format(values: Sequence[int], sign: str) -> ElementFormat:
    """Integers aligned at the right."""
    largest, smallest = max(values), min(values)
    if sign == " " and smallest < 0:
        sign = "-"
    width = max(len(str(largest)) + (largest >= 0 and sign != "-"), len(str(smallest)))
    return f"{{:{sign}{width}d}}".format


class FloatText:
    """Floats aligned at their points, all with an exponent if one of them needs it.

    >>> form = FloatText([1.0, 1e9], FLOAT_FORMATS["float32"], PrintOptions())
    >>> form(1.0), form(1e9), form(math.nan)
    ('1.e+00', '1.e+09', '   nan')
    """

    __slots__ = ("_digits", "_exponent_width", "_form", "_least", "_most", "_options", "_sign", "_width")

    def __init__(
        self, values: Sequence[float], form: FloatFormat, options: PrintOptions, sign: str | None = None
    ) -> None:
        self._form, self._options, self._sign = form, options, sign or options.sign
        self._digits: dict[float, tuple[str, str, str]] = {}
        self._most = None if options.floatmode == "unique" else options.precision
        self._least = 0
        self._exponent_width = 0  # without its sign; 0 if there is no exponent
        finite = [value for value in values if math.isfinite(value)]
        with_exponent = _needs_exponent({abs(value) for value in finite if value}, form, options.suppress)
        if with_exponent:
            self._exponent_width = 2
        parts = [self._parts(value) for value in finite]
        wholes = [
            len(whole) + len(self._sign_of(value)) for value, (whole, _, _) in zip(finite, parts, strict=True)
        ]
        before = max(wholes, default=0)
        after = max((len(fraction) for _, fraction, _ in parts), default=0)
        if with_exponent:
            self._exponent_width = max(len(exponent) - 1 for _, _, exponent in parts)
        if with_exponent or (finite and options.floatmode in ("fixed", "maxprec_equal")):
            self._most = self._least = after
            self._digits.clear()
        tail = after + 1 + (2 + self._exponent_width if with_exponent else 0)
        if self._sign == " " and not any(math.copysign(1, value) < 0 for value in finite):
            before += 1
        if len(finite) < len(values):
            signed = self._sign != "-" or -math.inf in values
            before = max(before, len(options.nanstr) - tail, len(options.infstr) + signed - tail)
        self._width = before, tail

    def __call__(self, value: float) -> str:
        """The text of a number."""
        before, tail = self._width
        sign = self._sign_of(value)
        if not math.isfinite(value):
            name = self._options.nanstr if math.isnan(value) else self._options.infstr
            return f"{sign}{name}".rjust(before + tail)
        whole, fraction, exponent = self._parts(value)
        fraction = fraction.ljust(self._least, "0")
        if self._exponent_width:
            fraction += f"e{exponent[0]}{exponent[1:].rjust(self._exponent_width, '0')}"
        return f"{sign}{whole}".rjust(before) + f".{fraction}".ljust(tail)

    def _sign_of(self, value: float) -> str:
        """The sign to print."""
        if math.copysign(1, value) < 0 and not math.isnan(value):
            return "-"
        return "+" if self._sign == "+" else ""

    def _parts(self, value: float) -> tuple[str, str, str]:
        """The digits before and after the point, without zeros at the end, and the exponent with its sign."""
        size = abs(value)
        parts = self._digits.get(size)
        if parts is None:
            parts = self._digits[size] = self._rounded(size)
        return parts

    def _rounded(self, size: float) -> tuple[str, str, str]:
        scientific = self._exponent_width > 0
        if self._options.floatmode == "fixed":
            text = f"{size:.{self._most}{'e' if scientific else 'f'}}"
            number, _, power = text.partition("e")
            whole, _, fraction = number.partition(".")
            return whole, fraction, power
        if size == 0:
            return "0", "", "+00" if scientific else ""
        digits, exponent = shortest_digits(
            size, self._form, most=self._most, least=self._least, scientific=scientific
        )
        if scientific:
            return digits[0], digits[1:].rstrip("0"), f"{exponent:+03d}"
        return *_positional(digits, exponent), ""


def _needs_exponent(sizes: set[float], form: FloatFormat, suppress: bool) -> bool:
    """Whether numpy prints numbers with these absolute values, none of them 0, with exponents."""
    if not sizes:
        return False
    largest, smallest = max(sizes), min(sizes)
    if largest >= 10.0 ** min(8, form.decimals):
        return True
    return not suppress and (smallest < form.rounded(0.0001) or form.rounded(largest / smallest) > 1000.0)


class ComplexText:
    """Complex numbers: the real and the imaginary parts are aligned separately.

    >>> values = [1 + 2j, 0.5 - 10j]
    >>> [*map(ComplexText(values, FLOAT_FORMATS["complex64"], PrintOptions()), values)]
    ['1.  +2.j', '0.5-10.j']
    """

    __slots__ = ("_imaginary", "_real")

    def __init__(self, values: Sequence[complex], form: FloatFormat, options: PrintOptions) -> None:
        self._real = FloatText([value.real for value in values], form, options)
        self._imaginary = FloatText([value.imag for value in values], form, options, sign="+")

    def __call__(self, value: complex) -> str:
        """The text of a number."""
        imaginary = self._imaginary(value.imag)
        number = imaginary.rstrip()
        return f"{self._real(value.real)}{number}j{imaginary[len(number) :]}"
