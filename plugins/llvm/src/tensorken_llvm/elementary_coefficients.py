"""The numbers in the elementary functions: written by `python -m tools.coefficients`."""

from __future__ import annotations

from tensorken_core.language.dtypes import DType, float32, float64

# ---- constants in two parts: the first bits, and the rest ------------------------------------------------------------

HALF_PI: dict[DType, tuple[float, float, float]] = {
    float32: (1.57079637, -4.37113883e-08, -1.71512451e-15),
    float64: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
"""pi / 2"""

LN2: dict[DType, tuple[float, float]] = {
    float32: (0.693147182, -1.90465421e-09),
    float64: (0.6931471805599453, 2.3190468138462996e-17),
}
"""log(2)"""

LOG2_E: dict[DType, tuple[float, float]] = {
    float32: (1.44269502, 1.92596303e-08),
    float64: (1.4426950408889634, 2.0355273740931033e-17),
}
"""1 / log(2)"""

LOG10_E: dict[DType, tuple[float, float]] = {
    float32: (0.434294492, -1.010305e-08),
    float64: (0.4342944819032518, 1.098319650216765e-17),
}
"""1 / log(10)"""

LOG10_2: dict[DType, tuple[float, float]] = {
    float32: (0.30103001, -1.43209888e-08),
    float64: (0.3010299956639812, -2.8037281277851704e-18),
}
"""log(2) / log(10)"""

THIRD: dict[DType, tuple[float, float]] = {
    float32: (0.333333343, -9.93410776e-09),
    float64: (0.3333333333333333, 1.850371707708594e-17),
}
"""1 / 3"""

TWO_OVER_PI_BITS = 1280

TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921c"
    "fe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980f"
    "ef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d08"
    "56033046fc7b6babf0cfbc209af4361d",
    16,
)
"""2 / pi times 2**TWO_OVER_PI_BITS, rounded down"""

# ---- polynomials, the highest power first ------------------------------------------------------------

# fmt: off

LOG: dict[DType, tuple[float, ...]] = {
    float32: (
        0.0956066474, 0.11102365, 0.142857656, 0.200000003,
    ),
    float64: (
        0.058621635304428196, 0.058530632322795505, 0.06667404399406264, 0.07692297443503587,
        0.09090909168049924, 0.11111111110826383, 0.14285714285714685, 0.2,
    ),
}
"""atanh(s) = s * (1 + z * (1/3 + z * P(z))), z = s**2 <= (3 - 2 * sqrt(2))**2"""

SIN: dict[DType, tuple[float, ...]] = {
    float32: (
        2.72375769e-06, -0.000198399895, 0.00833333191, -0.166666672,
    ),
    float64: (
        -7.584263996034166e-13, 1.605848950955874e-10, -2.5052105961377e-08, 2.7557319218542833e-06,
        -0.0001984126984126402, 0.008333333333333331, -0.16666666666666666,
    ),
}
"""sin(x) = x * (1 + z * P(z)), z = x**2, abs(x) <= pi / 4"""

COS: dict[DType, tuple[float, ...]] = {
    float32: (
        2.45377505e-05, -0.00138882548, 0.0416666642,
    ),
    float64: (
        -1.1379086634729349e-11, 2.0876096058995368e-09, -2.755731702592346e-07, 2.4801587298282115e-05,
        -0.001388888888888707, 0.041666666666666664,
    ),
}
"""cos(x) = 1 - z / 2 + z**2 * P(z), z = x**2, abs(x) <= pi / 4"""

# fmt: on
