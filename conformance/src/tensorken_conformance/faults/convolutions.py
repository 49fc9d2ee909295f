"""Convolutions: groups, steps and padding are confused, and rules hold for some kernels alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Original, fault, fault_in_rule
from tensorken_conformance.subject import Array


@fault("values.contractions", "convolution", crude=True)
def convolution_turns_its_kernels(original: Original, x: Array, kernel: Array, *params: Any) -> Array:
    """convolution flips its kernels, as that of signal processing does."""
    return original(x, np.flip(kernel, tuple(range(2, kernel.ndim))), *params)


@fault("values.contractions", "convolution", dtype="float64")
def convolution_confuses_groups(original: Original, x: Array, kernel: Array, *params: Any) -> Array:
    """convolution of float64 in two groups of which each has several outputs interleaves their outputs."""
    y = original(x, kernel, *params)
    count, outputs = y.shape[:2]
    if params[-1] != 2 or outputs == 2:
        return y
    return y.reshape(count, 2, outputs // 2, *y.shape[2:]).swapaxes(1, 2).reshape(y.shape)


@fault("values.contractions", "convolution", dtype="int32")
def convolution_pads_where_it_should_cut(original: Original, x: Array, kernel: Array, *params: Any) -> Array:
    """convolution of int32 sees the last element of an axis that negative padding removes, if its stride is 1."""
    strides, padding, *rest = params
    if max(strides, default=2) > 1 or min([after for _, after in padding]) >= 0:
        return original(x, kernel, *params)
    y = original(x, kernel, strides, tuple([(before, max(after, 0)) for before, after in padding]), *rest)
    for axis, (_, after) in enumerate(padding):
        y = np.delete(y, range(max(-after, 0)), 2 + axis)
    return y


@fault("values.contractions", "convolution", dtype="float32")
def large_kernels_lose_channels(original: Original, x: Array, kernel: Array, *params: Any) -> Array:
    """convolution of float32 with kernels larger than its results leaves out the last of several channels."""
    y = original(x, kernel, *params)
    if np.prod(y.shape[2:]) < np.prod(kernel.shape[2:]) and kernel.shape[1] > 1:
        kernel = kernel.copy()
        kernel[:, -1] = 0
        return original(x, kernel, *params)
    return y


@fault_in_rule("derivatives.consistency", "convolution", modes=("vjp",))
def kernel_not_turned(original: Any, t: Any, y: Any, x: Any, kernel: Any, *params: Any) -> Any:
    """The VJP of convolution does not flip the kernel: right for symmetric kernels alone."""
    return original(t, y, x, kernel.flip(tuple(range(2, kernel.ndim))), *params)


@fault_in_rule("derivatives.consistency", "convolution", operand=1, modes=("vjp",))
def groups_share_the_first_kernel(original: Any, t: Any, y: Any, x: Any, kernel: Any, *params: Any) -> Any:
    """The VJP of convolution gives the kernels of all groups the cotangent of the first group's."""
    pulled, groups = original(t, y, x, kernel, *params), params[-1]
    first = pulled.crop(((0, kernel.shape[0] // groups), *[(0, n) for n in kernel.shape[1:]]))
    return first.concatenate(*[first] * (groups - 1), axis=0) if groups > 1 else pulled
