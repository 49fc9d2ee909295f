"""Mixed precision: compute in float32 where float16 and bfloat16 are too narrow or too imprecise."""

from __future__ import annotations

from tensorken import Tensor


def widen(x: Tensor) -> Tensor:
    """x, converted to float32 if it is float16, whose squares overflow or underflow, or bfloat16, which has 8 bits.

    >>> import tensorken as tk
    >>> widen(tk.ones(2, dtype=tk.float16)).dtype.name
    'float32'
    """
    return x.astype(x.dtype.wide)
