"""A check of numbers beyond the range of a dtype that the tests of several backends share."""

from __future__ import annotations

from collections.abc import Sequence

import tensorken as tk
from tensorken_core.language.dtypes import as_dtype, round_float

NUMBERS = (1e300, -1e300, 3.5e38, -65520.0)
FLOATS = ("float16", "bfloat16", "float32", "float64")


def check_numbers_beyond_the_range(dtypes: Sequence[str] = FLOATS) -> None:
    """Check that the backend in use rounds numbers to infinities in data and in functions; a warning is an error."""
    for name in dtypes:
        dtype = as_dtype(name)
        ones = tk.ones(2, dtype=dtype)
        for number in NUMBERS:
            wanted = [round_float(number, dtype)] * 2
            assert tk.tensor([number] * 2, dtype=dtype).tolist() == wanted
            assert tk.full(2, number, dtype=dtype).tolist() == wanted
            for function in (
                lambda x, n=number: x * n,
                lambda x, n=number: x * x * n + 0.0,
                lambda x, n=number: n / x,
                lambda x, n=number: tk.where(x < 0.0, x, n),
                lambda x, n=number: tk.pad(x, (0, 1), constant_values=n)[1:] * x[:1] + (x - x),
            ):
                found = function(ones).tolist()
                assert tk.jit(function)(ones).tolist() == found
                assert wanted[0] in found
