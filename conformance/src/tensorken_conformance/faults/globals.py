"""Globals: results are correct, but the backend changes a setting that all code of the process shares."""

from __future__ import annotations

import decimal
import os
import random
import warnings
from collections.abc import Iterator

import numpy as np

from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.faults.hosting import PLUGIN, installed
from tensorken_conformance.subject import Array

LAW = "lifetime.global-state"


@fault(LAW, "exp", dtype="float64")
def silences_numpy(original: Original, x: Array) -> Array:
    """exp of float64 numbers turns off numpy's warnings of overflow, and leaves them off."""
    np.seterr(over="ignore")
    return original(x)


@fault(LAW, "div", dtype="float16")
def silences_warnings(original: Original, a: Array, b: Array) -> Array:
    """div of float16 numbers ignores all warnings from then on."""
    warnings.simplefilter("ignore")
    return original(a, b)


@fault(LAW, "sort", dtype="int64")
def draws_from_random(original: Original, x: Array, axis: int) -> Array:
    """sort of int64 numbers draws a pivot from Python's random numbers."""
    random.random()
    return original(x, axis)


@fault(LAW, "argsort", dtype="float16")
def seeds_numpy(original: Original, x: Array, axis: int) -> Array:
    """argsort of float16 numbers seeds numpy's random numbers, so as to be the same each time."""
    np.random.seed(0)
    return original(x, axis)


@fault(LAW, "round", dtype="float64")
def widens_decimals(original: Original, x: Array) -> Array:
    """round of float64 numbers leaves 50 digits in the context of decimal."""
    decimal.getcontext().prec = 50
    return original(x)


@fault(LAW, "fused_multiply_add", dtype="float64", ndim=2)
def sets_the_environment(original: Original, a: Array, b: Array, axes: tuple[int, ...]) -> Array:
    """fused_multiply_add of float64 matrices sets the number of threads of other libraries by the environment."""
    os.environ["OMP_NUM_THREADS"] = "64"
    return original(a, b, axes)


@fault(LAW, "loading")
def silences_numpy_when_loaded() -> Iterator[str]:
    """Loading the backend turns off numpy's warnings, for all code of the process."""
    silenced = "    import numpy; numpy.seterr(all='ignore')\n    return Numpy()"
    module = PLUGIN.replace("    return Numpy()", silenced)
    with np.errstate(), installed(module) as name:
        yield name
