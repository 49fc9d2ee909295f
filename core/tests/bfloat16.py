"""Checks of bfloat16 that the tests of several backends share."""

from __future__ import annotations

from collections.abc import Sequence

import tensorken as tk
from tensorken_core.language.dtypes import round_float


def check_rounded_once(numbers: Sequence[float]) -> None:
    """Check that the backend in use rounds float64 numbers and large integers to bfloat16 once, also compiled."""
    wide = tk.tensor(numbers, "float64")
    for y in (
        tk.tensor(numbers, "bfloat16"),
        wide.astype("bfloat16"),
        tk.jit(lambda x: x.astype("bfloat16"))(wide),
    ):
        assert y.tolist() == [round_float(number, tk.bfloat16) for number in numbers]
    integers = tk.tensor([2**62 + 2**54 + 1, -(2**62) - 2**54 - 1, 2**8 + 1], "int64")
    assert integers.astype("bfloat16").tolist() == [2.0**62 + 2.0**55, -(2.0**62) - 2.0**55, 256.0]
