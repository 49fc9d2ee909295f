"""The module that array-api-tests is told to test: tensorken, with one answer more.

When it starts, the suite asks for the dtype of `asarray(0j)`, as if every namespace had complex numbers.  The answer is
the dtype of its real part, which the suite notes and, since there is no complex dtype to test with, never uses.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import tensorken

_asarray = tensorken.asarray


@functools.wraps(_asarray)
def asarray(obj: Any, /, *arguments: Any, **named: Any) -> Any:
    """`tensorken.asarray`, which takes a complex number for its real part."""
    return _asarray(obj.real if isinstance(obj, complex) else obj, *arguments, **named)


setattr(tensorken, "asarray", asarray)  # noqa: B010 - an assignment would have to be of one type
sys.modules[__name__] = tensorken
