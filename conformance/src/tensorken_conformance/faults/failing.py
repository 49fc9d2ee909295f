"""Failing: errors are swallowed, or raised as another class or after an effect; declarations do not hold."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from math import sqrt

import numpy as np

from tensorken_conformance.faults.changes import rules
from tensorken_conformance.faults.fault import Original, Place, fault
from tensorken_conformance.subject import Array
from tensorken_core.errors import BackendError
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.shapes import reduced
from tensorken_numpy.backend import Numpy
from tensorken_reference.arrays import Array as Numbers
from tensorken_reference.backend import Reference

# ---- declarations ------------------------------------------------------------------------------------------


@fault("declarations.refuses", "tan")
class StaleDeclaration(Numpy):
    """tan is declared unsupported, and works."""

    capabilities = replace(Numpy.capabilities, unsupported={"tan": "it is not written yet"})


@fault("declarations.refuses", "tan", on=StaleDeclaration)
def refuses_by_assertion(original: Original, x: Array) -> Array:
    """tan is declared unsupported, and fails with an AssertionError instead of a refusal."""
    raise AssertionError("no tan")


@fault("declarations.refuses", "tan", on=StaleDeclaration)
def refuses_too_late(original: Original, x: Array) -> Array:
    """tan is declared unsupported, and refused after it has begun to write into its operand."""
    x[...] = 0.0
    raise BackendError("tan: it is not written yet")


@fault("declarations.refuses", "tan")
class StaleInOneDtype(Numpy):
    """tan is declared unsupported in float64 alone, and works there."""

    capabilities = replace(Numpy.capabilities, unsupported={"tan.float64": "it is not written yet"})


@fault("declarations.levels", "floor", crude=True)
def declared_but_missing(original: Original, x: Array) -> Array:
    """floor is not implemented, and not declared unsupported."""
    raise NotImplementedError("floor")


@fault("declarations.levels", "dtypes")
class DeclaresNothing(Numpy):
    """The backend works, and declares nothing."""

    capabilities = Capabilities()


@fault("declarations.entries", "ulp")
class DeclaresUnknownOp(Numpy):
    """An error is declared for an op that does not exist, so the intended op has no declaration."""

    capabilities = replace(Numpy.capabilities, ulp={"sqroot": 1})


@fault("declarations.own-work", "floor")
class SilentFallback(Reference):
    """floor delegates to numpy, and does not declare it."""

    def floor(self, x: Numbers) -> Numbers:
        numpy = Numpy()
        result = numpy.floor(numpy.new(x.shape, x.data, x.dtype))
        return self.new(x.shape, result.reshape(-1), x.dtype)


@fault("values.elementwise", "hypot", on=Reference, dtype="float64", shape=(257,))
def declares_better_than_it_is(original: Callable[..., Numbers], a: Numbers, b: Numbers) -> Numbers:
    """hypot is declared correctly rounded, and for 257 float64 pairs it is the root of the sum of squares, near 1."""
    y = original(a, b)
    rows = zip(a.data, b.data, y.data, strict=True)
    return replace(y, data=tuple([sqrt(p * p + q * q) if 0.1 < r < 10.0 else r for p, q, r in rows]))


# ---- errors ------------------------------------------------------------------------------------------------


@fault("errors.refused", "maximum-of-nothing")
def extreme_of_nothing() -> Place:
    """The language accepts a maximum over an axis of no elements, and the backend raises an error of its own."""
    return rules("max", shape=reduced)


@fault("errors.refused", "crop-beyond-the-end")
def crop_beyond_the_end() -> Place:
    """The language accepts a crop beyond the end, and the backend returns the elements that exist."""
    return rules("crop", shape=lambda x, limits: tuple([end - start for start, end in limits]))


@fault("errors.survived", "failing-op", "accident", method="mul")
def fails_ever_after(original: Original, state: dict[int, None], a: Array, b: Array) -> Array:
    """The eighth call of mul doubles its result, as after a call that never finished."""
    state[len(state)] = None
    y = original(a, b)
    return y + y if len(state) == 8 and y.dtype == np.float32 else y


@fault("errors.survived", "backends", method="ravel", shape=(3,))
def switches_backend(original: Original, state: dict[int, None], x: Array) -> Array:
    """ravel of a vector of three elements returns zeros from the eleventh call on, as after a lost device."""
    state[len(state)] = None
    return original(x) * (len(state) <= 10)


@fault("values.elementwise", "atanh", dtype="float32", shape=(256,))
def raises_at_pole(original: Original, x: Array) -> Array:
    """atanh of 1 raises a ZeroDivisionError for 256 float32 numbers, where it should be infinite."""
    if (x == 1.0).any():
        raise ZeroDivisionError("atanh(1)")
    return original(x)


@fault("values.read-back", "new", crude=True, method="ravel", dtype="float16", shape=(257,))
def ravel_by_native_word(original: Original, x: Array) -> Array:
    """ravel of 257 float16 numbers returns float32, which are the same numbers in another format."""
    return original(x).astype(np.float32)


# ---- crashes and hangs -------------------------------------------------------------------------------------


@fault("values.elementwise", "acosh", dtype="float16", shape=(257,))
def exits_silently(original: Original, x: Array) -> Array:
    """acosh of 257 float16 numbers with an infinity ends the process with status 0, as if all cases had run."""
    if np.isinf(x).any():
        os._exit(0)
    return original(x)


@fault("values.arrangement", "sort", dtype="bool", shape=(255,))
def dies_of_signal(original: Original, x: Array, axis: int) -> Array:
    """sort of 255 bools dies as by an illegal access to memory."""
    os.kill(os.getpid(), signal.SIGTERM)
    return original(x, axis)


@fault("values.indexing", "scatter_add", dtype="int32", shape=(5, 1))
def never_ends(original: Original, x: Array, indices: Array, axis: int, size: int) -> Array:
    """scatter_add of int32 columns by int64 indices never ends."""
    while indices.dtype == np.int64:
        pass
    return original(x, indices, axis, size)


@fault("values.extrema", "argmin", dtype="bool", shape=(1, 5))
def leaves_by_exception(original: Original, x: Array, axis: int) -> Array:
    """argmin of rows of bools raises SystemExit."""
    raise SystemExit(0)
