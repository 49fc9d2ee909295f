"""A check of numbers beyond the range of a dtype that the tests of several backends share."""

from __future__ import annotations

from typing import Any

import tensorken as tk
from tensorken_core.language.dtypes import as_dtype, round_float

NUMBERS = (1e300, -3.5e38, 65520.0)


def check_numbers_beyond_the_range() -> None:
    """Check that the backend in use rounds numbers to infinities, in data and in functions; a warning is an error."""
    for dtype in map(as_dtype, ("float16", "bfloat16", "float32")):
        ones = tk.ones(2, dtype=dtype)

        def results(x: Any) -> list[Any]:
            found = []
            for n in NUMBERS:
                padded = tk.pad(x, (0, 1), constant_values=n)[1:] * x
                found += [x * n, x * x * n + 0.0, n / x, tk.where(x < 0.0, x, n), padded]
            return found

        for number in NUMBERS:
            wanted = [round_float(number, dtype)] * 2
            assert tk.tensor([number] * 2, dtype=dtype).tolist() == wanted
            assert tk.full(2, number, dtype=dtype).tolist() == wanted
        for found in (results(ones), tk.jit(results)(ones)):
            for k, y in enumerate(found):
                number = round_float(NUMBERS[k // 5], dtype)
                assert y.tolist() == ([1.0, number] if k % 5 == 4 else [number, number])
