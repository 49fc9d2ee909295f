"""Reductions that skip NaN, quantiles by every method, and reductions with `where` and `initial`."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugins.tensorken.tests.namespace.laws import Call, bools, call, floats, gappy, ints, law, with_nan

HOLES = (
    call(with_nan(floats(3, 4)), axis=1),
    call(with_nan(floats(2, 3, 2, dtype="float32")), axis=(0, 2), keepdims=True),
    call(gappy(floats(3, 4))),
    call(with_nan(floats(4, dtype="float16"))),
    call(ints(2, 3), axis=0),
)
EMPTY = (call(floats(0, 3, dtype="float32"), axis=0), call(floats(2, 0), axis=1))
WHERE = (call(with_nan(floats(3, 4)), axis=1, where=bools(3, 4, seed=1)),)
METHODS = """linear lower higher nearest midpoint inverted_cdf averaged_inverted_cdf closest_observation
    interpolated_inverted_cdf hazen weibull median_unbiased normal_unbiased""".split()


def quantiles(of: Any, scale: int) -> tuple[Call, ...]:
    x = of(floats(3, 5))
    shares = [0.0, 0.3, 0.5, 0.9, 1.0]
    return (
        *[call(x, np.array(shares) * scale, axis=1, method=method) for method in METHODS],
        *[call(x, [q * scale for q in shares[1:]], axis=0, method=method) for method in METHODS],
        call(of(floats(4, dtype="float32")), 0.25 * scale, keepdims=True),
        call(ints(2, 3), 0.5 * scale),
    )


NANS = {
    **{
        name: law(*HOLES, *EMPTY, *WHERE, call(with_nan(floats(3, 4)), axis=1, initial=2.0), smooth=True)
        for name in ("nansum", "nanprod")
    },
    "nanmean": law(*HOLES, *EMPTY, *WHERE, smooth=True),
    **{
        name: law(*HOLES, *EMPTY, *WHERE, call(gappy(floats(3, 4)), axis=1, ddof=1), smooth=True)
        for name in ("nanvar", "nanstd")
    },
    **{
        name: law(*HOLES, call(gappy(floats(3, 4)), axis=1, initial=2.0, where=bools(3, 4)), smooth=True)
        for name in ("nanmax", "nanmin")
    },
    **{
        name: law(
            call(gappy(floats(3, 4)), axis=1),
            call(gappy(floats(3, 4, dtype="float32")), axis=0, keepdims=True),
            call(gappy(floats(3, 4))),
            call(ints(2, 3), axis=1),
        )
        for name in ("nanargmax", "nanargmin")
    },
    **{
        name: law(
            call(with_nan(floats(3, 4)), axis=1),
            call(with_nan(floats(3, 2, dtype="float32"))),
            call(floats(0)),
            call(ints(2, 3), axis=0),
            smooth=True,
        )
        for name in ("nancumsum", "nancumprod")
    },
    "nanmedian": law(*HOLES, call(floats(2, 0), axis=1), smooth=True),
    "nanquantile": law(*quantiles(gappy, 1), call(with_nan(floats(3, 4)), 0.7, axis=1)),
    "nanpercentile": law(*quantiles(gappy, 100)),
}

METHODS_OF_QUANTILES = {
    "quantile": law(*quantiles(np.copy, 1)),
    "percentile": law(*quantiles(np.copy, 100)),
}

CHOSEN = (
    call(floats(3, 4), axis=1, where=bools(3, 4)),
    call(floats(2, 3, 2, dtype="float32"), axis=(0, 2), keepdims=True, where=bools(3, 1)),
    call(floats(3, 4, dtype="float16"), where=bools(4)),
)
FIRST = (
    call(floats(3, 4), axis=1, where=bools(3, 4), initial=0.5),
    call(floats(0, 3), axis=0, initial=2.0),
    call(floats(2, 3), initial=-1.0, keepdims=True),
    call(ints(2, 3), axis=0, initial=3),
)
PARTS = {
    **{name: law(*CHOSEN, *FIRST, smooth=True) for name in ("sum", "prod")},
    **{name: law(*FIRST, smooth=True) for name in ("max", "min", "amax", "amin")},
    **{name: law(*CHOSEN, smooth=True) for name in ("mean", "var", "std")},
    **{name: law(*CHOSEN, call(bools(2, 3), axis=1, where=bools(2, 3, seed=3))) for name in ("any", "all")},
}

CLIPPED = {
    "clip": law(
        call(floats(3, 4), a_min=-1.0, a_max=2.5),
        call(floats(3, 4, dtype="float32"), a_max=0.0, a_min=None),
        smooth=True,
    )
}

SINGULAR = np.array([0.0, -0.0, 1e-45, -3e38, np.inf, -np.inf, np.nan], "float32")

ROOTS = {
    "cbrt": law(
        call(floats(3, 4)),
        call(SINGULAR),
        call(floats(5, dtype="float16")),
        call(ints(4)),
        smooth=True,
    )
}
