"""Printing: the results are correct, and the backend prints or warns while it computes them."""

from __future__ import annotations

import os
import sys
import warnings

import numpy as np

from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes


@fault("errors.silent", "log", dtype="float32")
def prints_at_pole(original: Original, x: Array) -> Array:
    """log prints float32 zeros on stdout, as left over from debugging."""
    if (x == 0).any():
        print("log: zero at", np.argwhere(x == 0)[0])
    return original(x)


@fault("errors.silent", "sort", dtype="int32", shape=(300,))
def writes_below_python(original: Original, x: Array, axis: int) -> Array:
    """sort of 300 int32 numbers writes to the descriptor of stderr, as a compiled library does."""
    os.write(2, b"sort: one block and a rest\n")
    return original(x, axis)


@fault("errors.silent", "sum", dtype="float64", shape=(300,))
def reports_to_stderr(original: Original, x: Array, axes: Axes) -> Array:
    """sum of 300 float64 numbers prints its algorithm on stderr."""
    print("sum: by pairs", file=sys.stderr)
    return original(x, axes)


@fault("errors.silent", "exp", dtype="float64")
def warns_of_overflow(original: Original, x: Array) -> Array:
    """exp of large float64 numbers warns that it overflows, which infinities say already."""
    if (x > 710.0).any():
        warnings.warn("overflow encountered in exp", RuntimeWarning, stacklevel=2)
    return original(x)
