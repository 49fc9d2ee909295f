"""The inspection API and the constants of the Python array API standard."""

from __future__ import annotations

import math
from typing import Any

from tensorken.arrays.functions.promotion import KINDS
from tensorken.interchange.interop import API_VERSION
from tensorken_core.errors import DTypeError
from tensorken_core.host.registry import devices, resolve
from tensorken_core.language.dtypes import COMPLEX, DTYPES, DType, complex64, float32, int32
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.coercion import is_supported

__all__ = ["__array_api_version__", "__array_namespace_info__", "e", "inf", "nan", "newaxis", "pi"]

__array_api_version__ = API_VERSION

e = math.e
"""Euler's number, the base of the natural logarithm."""

inf = math.inf
"""Positive infinity."""

nan = math.nan
"""Not a number."""

newaxis = None
"""In an index: a new axis of size 1."""

pi = math.pi
"""The ratio of a circle's circumference to its diameter."""

_DTYPES = tuple([dtype for dtype in (*DTYPES.values(), *COMPLEX.values()) if dtype.wide is dtype])
"""The dtypes of the standard, which has no float16 and no bfloat16."""


def __array_namespace_info__() -> Info:  # noqa: N807 - the standard's name
    """The capabilities, defaults, dtypes and devices of this namespace: the standard's inspection API.

    >>> import tensorken as tk
    >>> sorted(tk.__array_namespace_info__().dtypes(kind="real floating"))
    ['float32', 'float64']
    """
    return Info()


class Info:
    """The result of `__array_namespace_info__`; its devices are the devices of the backend in use."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """The optional parts of the standard that are supported; the limit on the number of axes is numpy's."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The device on which tensors are made by default."""
        return devices()[0]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """The dtypes of results if no argument or operand determines them; the same on every device."""
        if device is not None:
            resolve(None, device)  # it raises if the backend in use has no such device
        return {
            "real floating": float32,
            "complex floating": complex64,
            "integral": int32,
            "indexing": int32,
        }

    def devices(self) -> tuple[str, ...]:
        """The devices of the backend in use, the default first."""
        return tuple(devices())

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The standard's dtypes that the backend in use has, by name, optionally of one kind or of several kinds.

        Raises:
            DTypeError: if the standard has no such kind.

        >>> import tensorken as tk
        >>> tk.__array_namespace_info__().dtypes(kind=("bool", "integral"))  # doctest: +ELLIPSIS
        {'bool': tensorken.bool, 'int8': tensorken.int8, ... 'uint64': tensorken.uint64}
        """
        interpreter = resolve(None, device)
        kinds = (kind,) if isinstance(kind, str) else tuple(KINDS) if kind is None else kind
        for name in kinds:
            if name not in KINDS:
                raise DTypeError(
                    f"dtypes: the kind {short_repr(name)} is unknown; the kinds are {', '.join(KINDS)}"
                )
        chosen = [dtype for dtype in _DTYPES if any([dtype in KINDS[name] for name in kinds])]
        return {dtype.name: dtype for dtype in chosen if is_supported(interpreter, dtype)}
