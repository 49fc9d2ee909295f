"""Compute the polynomials of the elementary functions, and write the files with their coefficients.

One file is for the default bodies, the other for the LLVM compiler, which uses both.

Each polynomial is the interpolant at Chebyshev nodes, in 200 bits, of the lowest degree that meets its bound: three
bits beyond the precision of the dtype. Such an interpolant is within a small factor of the best polynomial (L. N.
Trefethen, "Approximation Theory and Approximation Practice", chapter 16). `python -m tools.coefficients` writes the
files.
"""

from __future__ import annotations

import struct
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import mpmath

from tools.workspace import ROOT

FILE = ROOT / "core" / "src" / "tensorken_core" / "language" / "bodies" / "coefficients.py"
LLVM_FILE = ROOT / "plugins" / "llvm" / "src" / "tensorken_llvm" / "elementary_coefficients.py"
PRECISION = {"float32": 24, "float64": 53}
ZERO = mpmath.mpf(2) ** -100
"""The start of intervals in place of 0, to avoid a division by 0."""

TWO_OVER_PI_BITS = 1280
"""Enough bits for the remainder of the largest float64."""

RULE = "# ---- {} " + 60 * "-" + "\n"


@dataclass(frozen=True, slots=True)
class Row:
    """A polynomial: the function it approximates, its intervals, and the weight of its error in the result."""

    name: str
    formula: str
    function: Callable[[Any], Any]
    intervals: dict[str, tuple[Any, Any]]
    weight: Any = 1


def _of_square(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """(function(x) / x - 1) / x**2 as a function of z = x**2, for a function whose series starts with x."""

    def quotient(z: Any) -> Any:
        x = mpmath.sqrt(z)
        return (function(x) / x - 1) / z

    return quotient


def _scaled_erfc(t: Any) -> Any:
    x = 1 / t - 3
    return mpmath.erfc(x) * mpmath.exp(x * x)


def _scaled_erfinv(w: Any) -> Any:
    x = mpmath.sqrt(-mpmath.expm1(-w))
    return mpmath.erfinv(x) / x


def _scaled_erfinv_beyond(t: Any) -> Any:
    s = 1 / (t + mpmath.mpf("0.375"))
    return _scaled_erfinv(s * s) / s


def _for_all_dtypes(low: Any, high: Any) -> dict[str, tuple[Any, Any]]:
    return {name: (mpmath.mpf(low), mpmath.mpf(high)) for name in PRECISION}


def rows() -> list[Row]:
    """All polynomials, in the order of the file."""
    third, half_log2 = mpmath.mpf(1) / 9, mpmath.log(2) / 2 * mpmath.mpf("1.01")
    return [
        Row(
            "EXPM1",
            "expm1(x) = x * (1 + x * P(x)), abs(x) <= log(2) / 2",
            lambda x: (mpmath.expm1(x) / x - 1) / x,
            _for_all_dtypes(-half_log2 * (1 + ZERO), half_log2),
            half_log2,
        ),
        Row(
            "ATANH",
            "atanh(s) = s * (1 + z * P(z)), z = s**2 <= 1/9",
            _of_square(mpmath.atanh),
            _for_all_dtypes(ZERO, third),
            third,
        ),
        Row(
            "TANH",
            "tanh(x) = x / (1 + z * P(z)), z = x**2 <= 0.81",
            lambda z: (mpmath.sqrt(z) / mpmath.tanh(mpmath.sqrt(z)) - 1) / z,
            _for_all_dtypes(ZERO, "0.81"),
            mpmath.mpf("0.81"),
        ),
        Row(
            "ATAN",
            "atan(x) = x * (1 + z * P(z)), z = x**2 <= 1",
            _of_square(mpmath.atan),
            _for_all_dtypes(ZERO, 1),
        ),
        Row(
            "ASIN",
            "asin(x) = x * (1 + z * P(z)), z = x**2 <= 1/4",
            _of_square(mpmath.asin),
            _for_all_dtypes(ZERO, "0.25"),
            mpmath.mpf("0.25"),
        ),
        Row(
            "ERF",
            "erf(x) = x * P(z), z = x**2 <= 1",
            lambda z: mpmath.erf(mpmath.sqrt(z)) / mpmath.sqrt(z),
            _for_all_dtypes(ZERO, 1),
        ),
        Row(
            "ERFC",
            "erfc(x) = exp(-x**2) * P(1 / (x + 3)), x >= 1, where erf(x) is not 1",
            _scaled_erfc,
            {
                "float32": (1 / mpmath.mpf(7), 1 / mpmath.mpf(4)),
                "float64": (1 / mpmath.mpf(9), 1 / mpmath.mpf(4)),
            },
            mpmath.exp(-1),
        ),
        Row(
            "ERFINV",
            "erfinv(x) = x * P(w), w = -log(1 - x**2) <= 4",
            _scaled_erfinv,
            _for_all_dtypes(ZERO, 4),
        ),
        Row(
            "ERFINV_BEYOND",
            "erfinv(x) = x * s * P(1 / s - 0.375), s = sqrt(w) >= 2, where x is not 1",
            _scaled_erfinv_beyond,
            {
                "float32": (mpmath.mpf("-0.125"), mpmath.mpf("0.125")),
                "float64": (1 / mpmath.mpf("6.01") - mpmath.mpf("0.375"), mpmath.mpf("0.125")),
            },
        ),
    ]


def llvm_rows() -> list[Row]:
    """The polynomials of the LLVM compiler, in the order of the file."""
    largest = (3 - 2 * mpmath.sqrt(2)) ** 2 * mpmath.mpf("1.001")
    small = mpmath.mpf(2) ** -40
    eighth = (mpmath.pi / 4 * mpmath.mpf("1.02")) ** 2

    def beyond_cubes(z: Any) -> Any:
        s = mpmath.sqrt(z)
        return (mpmath.atanh(s) / s - 1 - z / 3) / (z * z)

    return [
        Row(
            "LOG",
            "atanh(s) = s * (1 + z * (1/3 + z * P(z))), z = s**2 <= (3 - 2 * sqrt(2))**2",
            beyond_cubes,
            _for_all_dtypes(small, largest),
        ),
        Row(
            "TANH",
            "tanh(x) = x / (1 + z * P(z)), z = x**2, abs(x) <= 0.56",
            lambda z: (mpmath.sqrt(z) / mpmath.tanh(mpmath.sqrt(z)) - 1) / z,
            _for_all_dtypes(ZERO, "0.3136"),
            mpmath.mpf("0.3136"),
        ),
        Row(
            "SIN",
            "sin(x) = x * (1 + z * P(z)), z = x**2, abs(x) <= pi / 4",
            _of_square(mpmath.sin),
            _for_all_dtypes(ZERO, eighth),
            eighth,
        ),
        Row(
            "COS",
            "cos(x) = 1 - z / 2 + z**2 * P(z), z = x**2, abs(x) <= pi / 4",
            lambda z: (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / (z * z),
            _for_all_dtypes(small, eighth),
            eighth**2,
        ),
    ]


def fit(row: Row, dtype: str) -> list[str]:
    """The coefficients, highest power first, of the lowest degree that meets the bound."""
    bound = mpmath.mpf(2) ** -(PRECISION[dtype] + 3)
    for count in range(2, 40):
        coefficients, error = _interpolate(row.function, *row.intervals[dtype], count)
        if error * row.weight < bound:
            return [_format(c, dtype) for c in coefficients]
    raise ValueError(f"{row.name}: no polynomial below degree 40 meets the bound in {dtype}")


def _interpolate(function: Callable[[Any], Any], low: Any, high: Any, count: int) -> tuple[list[Any], Any]:
    """The coefficients, highest power first, of the interpolant at `count` Chebyshev nodes, and its largest error."""
    middle, radius = (low + high) / 2, (high - low) / 2
    nodes = [middle + radius * mpmath.cos(mpmath.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    newton = [
        function(x) for x in nodes
    ]  # becomes the divided differences, the coefficients of Newton's form
    for order in range(1, count):
        for i in range(count - 1, order - 1, -1):
            newton[i] = (newton[i] - newton[i - 1]) / (nodes[i] - nodes[i - order])
    coefficients: list[Any] = []
    for node, difference in zip(
        reversed(nodes), reversed(newton), strict=True
    ):  # times (x - node), plus difference
        coefficients = [a - node * b for a, b in zip([*coefficients, 0], [0, *coefficients], strict=True)]
        coefficients[-1] += difference
    between = [middle + radius * mpmath.cos(mpmath.pi * i / count) for i in range(count + 1)]
    return coefficients, max(abs(function(x) - reduce(lambda y, c: y * x + c, coefficients)) for x in between)


def _format(value: Any, dtype: str) -> str:
    """The number of the dtype nearest to a value, with as few digits as possible."""
    if dtype == "float64":
        return repr(float(value)).replace("e+", "e")
    (narrow,) = struct.unpack("f", struct.pack("f", float(value)))
    return repr(float(f"{narrow:.9g}")).replace("e+", "e")


def _split(value: Any, bits: int, dtype: str) -> tuple[str, str]:
    """The first bits of a positive value, and the number of the dtype nearest to the rest."""
    scale = mpmath.mpf(2) ** (bits - 1 - int(mpmath.floor(mpmath.log(value, 2))))
    high = mpmath.floor(value * scale) / scale
    return _format(high, dtype), _format(value - high, dtype)


def _parts(value: Any, count: int, dtype: str) -> list[str]:
    """A value as the sum of numbers of the dtype, each the nearest to the rest."""
    parts = []
    for _ in range(count):
        parts.append(_format(value, dtype))
        value -= mpmath.mpf(
            struct.unpack("f", struct.pack("f", float(parts[-1])))[0]
            if dtype == "float32"
            else float(parts[-1])
        )
    return parts


def _constant(name: str, numbers: dict[str, Sequence[str]], remark: str) -> str:
    shape = ", ".join(["float"] * len(numbers["float32"]))
    lines = [f"    {dtype}: ({', '.join(numbers[dtype])}),\n" for dtype in PRECISION]
    return f'{name}: dict[DType, tuple[{shape}]] = {{\n{"".join(lines)}}}\n"""{remark}"""\n'


def _file(title: str, constants: Sequence[str], rows: Sequence[Row]) -> str:
    parts = [
        f'"""{title}: written by `python -m tools.coefficients`."""\n',
        "from __future__ import annotations\n",
        "from tensorken_core.language.dtypes import DType, float32, float64\n",
        RULE.format("constants in two parts: the first bits, and the rest"),
        *constants,
        RULE.format("polynomials, the highest power first"),
        "# fmt: off\n",
    ]
    for row in rows:
        lines = [f"{row.name}: dict[DType, tuple[float, ...]] = {{\n"]
        for dtype in PRECISION:
            numbers = textwrap.fill(", ".join(fit(row, dtype)), 100)
            lines.append(f"    {dtype}: (\n{textwrap.indent(numbers, ' ' * 8)},\n    ),\n")
        parts.append("".join(lines) + f'}}\n"""{row.formula}"""\n')
    parts.append("# fmt: on\n")
    return "\n".join(parts)


def render() -> str:
    """The content of the file of the default bodies."""
    with mpmath.workprec(200):
        log2, bits = mpmath.log(2), {"float32": 16, "float64": 40}
        constants = [
            _constant(
                "LN2",
                {dtype: _split(log2, bits[dtype], dtype) for dtype in PRECISION},
                "log(2); its first part times 64 is exact",
            ),
            _constant(
                "HALF_PI",
                {dtype: _split(mpmath.pi / 2, PRECISION[dtype], dtype) for dtype in PRECISION},
                "pi / 2",
            ),
        ]
        return _file("The numbers in the bodies of the elementary functions", constants, rows())


def render_llvm() -> str:
    """The content of the file of the LLVM compiler."""
    with mpmath.workprec(1400):
        two_over_pi = int(mpmath.floor(mpmath.ldexp(2 / mpmath.pi, TWO_OVER_PI_BITS)))
    digits = f"{two_over_pi:x}"
    lines = [f'    "{digits[i : i + 96]}"\n' for i in range(0, len(digits), 96)]
    lines[-1] = lines[-1].replace("\n", ",\n")
    with mpmath.workprec(300):
        constants = [
            _constant(name, {dtype: _parts(value, count, dtype) for dtype in PRECISION}, formula)
            for name, formula, value, count in (
                ("HALF_PI", "pi / 2", mpmath.pi / 2, 3),
                ("LN2", "log(2)", mpmath.log(2), 2),
                ("LOG2_E", "1 / log(2)", 1 / mpmath.log(2), 2),
                ("LOG10_E", "1 / log(10)", 1 / mpmath.log(10), 2),
                ("LOG10_2", "log(2) / log(10)", mpmath.log(2) / mpmath.log(10), 2),
                ("THIRD", "1 / 3", mpmath.mpf(1) / 3, 2),
            )
        ]
        constants += [
            f"TWO_OVER_PI_BITS = {TWO_OVER_PI_BITS}\n",
            f"TWO_OVER_PI = int(\n{''.join(lines)}    16,\n)\n"
            '"""2 / pi times 2**TWO_OVER_PI_BITS, rounded down"""\n',
        ]
        return _file("The numbers in the elementary functions", constants, llvm_rows())


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
    LLVM_FILE.write_text(render_llvm(), encoding="utf-8")
