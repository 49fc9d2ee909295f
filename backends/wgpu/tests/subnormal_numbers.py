"""Subnormal numbers in tests: a device may take them for zeros."""

from __future__ import annotations

from typing import Any

import numpy as np


def without_subnormals(x: Any, raw: Any) -> Any:
    """An array as a device sees it: with zeros for subnormal numbers, if the device flushes those of the dtype."""
    if str(x.dtype) not in raw.capabilities.flushes_subnormals:
        return x
    return np.where(abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)
