"""Mixed precision: compute in float32 where float16 is too narrow."""

from __future__ import annotations

import tensorken as tk
from tensorken import Tensor


def widen(x: Tensor) -> Tensor:
    """x, converted to float32 if it is float16, in which squares overflow beyond 65504 or underflow to 0.

    >>> widen(tk.ones(2, dtype=tk.float16)).dtype.name
    'float32'
    """
    return x.astype(tk.float32) if x.dtype is tk.float16 else x
