"""Subnormal numbers: WGSL lets a driver treat them as zero, so its behaviour is measured when a device is opened."""

from __future__ import annotations

from typing import Any

from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor

_LEAST_NORMAL = {"float16": 2.0**-14, "float32": 2.0**-126, "float64": 2.0**-1022}


def flushed(backend: RawTensor[Any]) -> tuple[str, ...]:
    """The float dtypes in which a subnormal operand or result becomes zero."""
    return tuple(
        [name for name in _LEAST_NORMAL if name in backend.capabilities.dtypes and _flushes(backend, name)]
    )


def _flushes(backend: RawTensor[Any], name: str) -> bool:
    """Whether a sum or a product with a subnormal operand or result is wrong."""
    dtype, least = DTYPES[name], _LEAST_NORMAL[name]
    cases = {
        "add": [(0.5 * least, 0.25 * least), (least, -0.75 * least), (0.5 * least, 0.5 * least)],
        "mul": [(least, 0.5), (0.5 * least, 1.0), (0.25 * least, 4.0)],
    }
    for op, pairs in cases.items():
        a, b = [backend.new((len(pairs),), values, dtype) for values in zip(*pairs, strict=True)]
        actual = [*backend.ravel(backend.interpret(OPS[op], (a, b), ()))]
        expected = [x + y if op == "add" else x * y for x, y in pairs]
        if actual != expected:
            return True
    return False
