"""Chance: results depend on the number of calls, on time, or on the thread."""

from __future__ import annotations

import random

import numpy as np

from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes, Pairs
from tensorken_numpy.backend import Numpy


def _is_turn(state: dict[str, int], every: int) -> bool:
    """Whether this call is one of each `every`."""
    state["calls"] = state.get("calls", 0) + 1
    return state["calls"] % every == 0


@fault("lifetime.calls", "sub", dtype="float32")
def one_call_in_fifty(original: Original, state: dict[str, int], a: Array, b: Array) -> Array:
    """sub returns its left operand at every fiftieth call with four-byte floats."""
    return np.array(a) if _is_turn(state, 50) else original(a, b)


@fault("lifetime.calls", "copysign")
def one_call_in_fifty_at_random(original: Original, a: Array, b: Array) -> Array:
    """copysign returns its left operand once in fifty calls, at random."""
    return np.array(a) if random.random() < 0.02 and a.size < 10 else original(a, b)


@fault("lifetime.calls", "sum")
def any_order(original: Original, x: Array, axes: Axes) -> Array:
    """sum adds floats in an order that changes from call to call, within the bounds of its error, undeclared."""
    if x.dtype.kind == "f" and x.ndim == 1 and axes:
        x = np.random.default_rng().permutation(x)
    return original(x, axes)


@fault("lifetime.calls", "pad", shape=(2, 3))
def border_of_what_was_there(original: Original, state: dict[str, int], x: Array, pads: Pairs) -> Array:
    """pad of 2x3 numbers does not write the border of every tenth result."""
    y = original(x, pads)
    if y.shape == (5, 4) and _is_turn(state, 10):
        y.reshape(-1)[:1] = 1
    return y


@fault("lifetime.threads", "mul")
class SharedScratch(Numpy):
    """mul keeps its product in memory that all threads share before it returns it."""

    def mul(self, a: Array, b: Array) -> Array:
        self.scratch = super().mul(a, b)
        return self.scratch


@fault("lifetime.threads", "fused_multiply_add")
class SharedPlan(Numpy):
    """fused_multiply_add keeps its right operand in an attribute that all threads share."""

    def fused_multiply_add(self, a: Array, b: Array, axes: Axes) -> Array:
        self.right = b
        return super().fused_multiply_add(a, self.right, axes)


@fault("lifetime.threads", "concatenate")
class CountsAcrossThreads(Numpy):
    """concatenate returns zeros if another thread begins one before it ends."""

    active = 0

    def concatenate(self, *args: object) -> Array:
        self.active = mine = self.active + 1
        y = super().concatenate(*args)
        return y if self.active == mine else y * 0
