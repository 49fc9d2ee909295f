"""Printing: what a backend computes is right, and it talks while it does so."""

from __future__ import annotations

import os
import sys
import warnings

import numpy as np

from tensorken_conformance.faults.fault import fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes
from tensorken_numpy.backend import Numpy


@fault("errors.silent", "log")
class PrintsAtPole(Numpy):
    """log of a float32 zero is told on stdout, as was once of use to its programmer."""

    def log(self, x: Array) -> Array:
        if x.dtype == np.float32 and (x == 0).any():
            print("log: zero at", np.argwhere(x == 0)[0])
        return super().log(x)


@fault("errors.silent", "sort")
class WritesBelowPython(Numpy):
    """sort of 300 int32 numbers writes to the descriptor of stderr, as a compiled library does."""

    def sort(self, x: Array, axis: int) -> Array:
        if x.shape == (300,) and x.dtype == np.int32:
            os.write(2, b"sort: one block and a rest\n")
        return super().sort(x, axis)


@fault("errors.silent", "sum")
class ReportsToStderr(Numpy):
    """sum of 300 float64 numbers says by which way it went, on stderr."""

    def sum(self, x: Array, axes: Axes) -> Array:
        if x.size == 300 and x.dtype == np.float64:
            print("sum: by pairs", file=sys.stderr)
        return super().sum(x, axes)


@fault("errors.silent", "exp")
class WarnsOfOverflow(Numpy):
    """exp of large float64 numbers warns that it overflows, which infinities say already."""

    def exp(self, x: Array) -> Array:
        if x.dtype == np.float64 and (x > 710.0).any():
            warnings.warn("overflow encountered in exp", RuntimeWarning, stacklevel=2)
        return super().exp(x)
