"""The module under test for array-api-tests: tensorken with a patched `asarray`.

At startup, the suite reads the dtype of `asarray(0j)`, as if every namespace had complex numbers. Here it is the
dtype of the real part. The suite never uses it, as there is no complex dtype to test.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import tensorken

_asarray = tensorken.asarray


@functools.wraps(_asarray)
def asarray(obj: Any, /, *arguments: Any, **named: Any) -> Any:
    """`tensorken.asarray`, which converts a complex number to its real part."""
    return _asarray(obj.real if isinstance(obj, complex) else obj, *arguments, **named)


setattr(tensorken, "asarray", asarray)  # noqa: B010 - an assignment would need the same type
sys.modules[__name__] = tensorken
