"""Subnormal numbers: WGSL lets a driver take them for zero, so what it does is measured when a device is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS

if TYPE_CHECKING:
    from tensorken_wgpu.backend import Wgpu

_LEAST_NORMAL = {"float16": 2.0**-14, "float32": 2.0**-126, "float64": 2.0**-1022}


def flushed(backend: Wgpu) -> tuple[str, ...]:
    """The dtypes of floats in which a subnormal operand or result becomes zero."""
    return tuple(
        [name for name in _LEAST_NORMAL if name in backend.capabilities.dtypes and _flushes(backend, name)]
    )


def _flushes(backend: Wgpu, name: str) -> bool:
    """Whether a sum or a product of numbers of which one at least is subnormal, or its result, is wrong."""
    dtype, least = DTYPES[name], _LEAST_NORMAL[name]
    cases = {
        "add": [(0.5 * least, 0.25 * least), (least, -0.75 * least), (0.5 * least, 0.5 * least)],
        "mul": [(least, 0.5), (0.5 * least, 1.0), (0.25 * least, 4.0)],
    }
    for op, pairs in cases.items():
        a, b = [backend.new((len(pairs),), values, dtype) for values in zip(*pairs, strict=True)]
        found = [*backend.ravel(backend.interpret(OPS[op], (a, b), ()))]
        right = [x + y if op == "add" else x * y for x, y in pairs]
        if found != right:
            return True
    return False
