"""Printing: what a backend computes is right, and it talks while it does so."""

from __future__ import annotations

import os
import sys
import warnings

import numpy as np

from tensorken_conformance.faults.fault import Right, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes


@fault("errors.silent", "log")
def prints_at_pole(right: Right, x: Array) -> Array:
    """log of a float32 zero is told on stdout, as was once of use to its programmer."""
    if x.dtype == np.float32 and (x == 0).any():
        print("log: zero at", np.argwhere(x == 0)[0])
    return right(x)


@fault("errors.silent", "sort")
def writes_below_python(right: Right, x: Array, axis: int) -> Array:
    """sort of 300 int32 numbers writes to the descriptor of stderr, as a compiled library does."""
    if x.shape == (300,) and x.dtype == np.int32:
        os.write(2, b"sort: one block and a rest\n")
    return right(x, axis)


@fault("errors.silent", "sum")
def reports_to_stderr(right: Right, x: Array, axes: Axes) -> Array:
    """sum of 300 float64 numbers says by which way it went, on stderr."""
    if x.size == 300 and x.dtype == np.float64:
        print("sum: by pairs", file=sys.stderr)
    return right(x, axes)


@fault("errors.silent", "exp")
def warns_of_overflow(right: Right, x: Array) -> Array:
    """exp of large float64 numbers warns that it overflows, which infinities say already."""
    if x.dtype == np.float64 and (x > 710.0).any():
        warnings.warn("overflow encountered in exp", RuntimeWarning, stacklevel=2)
    return right(x)
