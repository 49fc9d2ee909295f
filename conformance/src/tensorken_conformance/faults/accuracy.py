"""Accuracy: results are off by some representable numbers, computed by a worse formula, or zero throughout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import fsum, prod
from operator import mul
from typing import Any

import numpy as np

from tensorken_conformance.faults.changes import replaced, tail, up
from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes
from tensorken_reference.arrays import Array as Numbers
from tensorken_reference.backend import Reference


@fault("values.elementwise", "exp", dtype="float16")
def one_number_of_half(original: Original, x: Array) -> Array:
    """exp is wrong by three representable numbers for a single one of the 65 536 numbers of float16."""
    return up(original(x), x == np.float16(0.2257), 3)


@fault("values.elementwise", "tanh", dtype="bfloat16")
def one_number_of_bfloat16(original: Original, x: Array) -> Array:
    """tanh is wrong by three representable numbers for a single one of the 65 536 numbers of bfloat16."""
    return up(original(x), x == np.array(0.2197265625, "bfloat16"), 3)


@fault("values.elementwise", "log2")
class OffByOneOfReference(Reference):
    """log2 of 257 float32 numbers is one too large between 1 and 2, where correct rounding is declared."""

    capabilities = replace(Reference.capabilities, ulp={"*": 0})

    def log2(self, x: Numbers) -> Numbers:
        y = super().log2(x)
        if x.shape != (257,) or x.dtype.name != "float32":
            return y
        near = up(np.array(y.data, np.float32), [1.0 < v < 2.0 for v in x.data])
        return Numbers(y.shape, tuple(near.tolist()), y.dtype)


@fault("values.elementwise", "add", dtype="float32", shape=(257,))
def tail_rounded_up(original: Original, a: Array, b: Array) -> Array:
    """add of 257 float32 numbers rounds the last one, after the last block of 64, away from zero."""
    y = original(a, b)
    return up(y, tail(y, 64) & np.isfinite(y) & (y != 0))


@fault("values.elementwise", "sqrt", dtype="float64", shape=(255,))
def sqrt_by_reciprocal(original: Original, x: Array) -> Array:
    """sqrt of 255 float64 numbers between 1 and 4 multiplies by the reciprocal of the root."""
    y, chosen = original(x), (x > 1.0) & (x < 4.0)
    return replaced(y, chosen, x * (1.0 / replaced(y, ~chosen, 1.0)))


@fault("values.elementwise", "div", dtype="float64", shape=(256,))
def div_by_reciprocal(original: Original, a: Array, b: Array) -> Array:
    """div of 256 float64 pairs multiplies by the reciprocal of a divisor between 1 and 4."""
    chosen = (b > 1.0) & (b < 4.0) & np.isfinite(a)
    return replaced(original(a, b), chosen, replaced(a, ~chosen, 1.0) * (1.0 / replaced(b, ~chosen, 1.0)))


@fault("values.sums", "sum", on=Reference, dtype="float64", shape=(65, 63))
def rounded_at_each_step(original: Callable[..., Numbers], x: Numbers, axes: Axes) -> Numbers:
    """sum of rows of 63 float64 numbers rounds at each step, where one rounding of the exact sum is declared."""
    y = original(x, axes)
    return replace(y, data=tuple(map(sum, _rows(x)))) if axes == (1,) else y


@fault("values.products", "prod", on=Reference, dtype="float64", shape=(65, 63))
def product_rounded_at_each_step(original: Callable[..., Numbers], x: Numbers, axes: Axes) -> Numbers:
    """prod of rows of 63 float64 numbers rounds at each step, where one rounding of the exact product is declared."""
    y = original(x, axes)
    return replace(y, data=tuple(map(prod, _rows(x)))) if axes == (1,) else y


def _rows(x: Numbers) -> list[tuple[float, ...]]:
    return [x.data[start : start + 63] for start in range(0, len(x.data), 63)]


@fault("values.contractions", "fused_multiply_add", on=Reference, dtype="float64", shape=(4, 65))
def products_rounded(original: Callable[..., Numbers], a: Numbers, b: Numbers, axes: Axes) -> Numbers:
    """fused_multiply_add of 4x65 float64 numbers rounds the products before it sums them exactly."""
    y = original(a, b, axes)
    products = list(map(mul, a.data, b.data))
    return replace(y, data=tuple([fsum(products[start : start + 65]) for start in range(0, 260, 65)]))


@fault("values.elementwise", "sin", dtype="float32", shape=(256,))
def short_pi(original: Original, x: Array) -> Array:
    """sin of 256 float32 numbers reduces large ones by a pi of 24 bits."""
    reduced = np.remainder(np.where(np.isfinite(x), x, 0), np.float64(np.float32(2 * np.pi)))
    return replaced(original(x), (np.abs(x) > 1e3) & np.isfinite(x), np.sin(reduced))


@fault("values.elementwise", "expm1", dtype="float64", shape=(64,))
def exp_minus_one(original: Original, x: Array) -> Array:
    """expm1 of 64 float64 numbers is exp minus 1, which is 0 for small ones."""
    return replaced(original(x), np.abs(x) < 1e-20, 0.0)


@fault("values.elementwise", "logaddexp", dtype="float32", shape=(64,))
def smaller_forgotten(original: Original, a: Array, b: Array) -> Array:
    """logaddexp of 64 float32 pairs returns the larger number where both are equal."""
    return replaced(original(a, b), a == b, a)


@fault("values.exponential-sums", "softmax", dtype="float64", ndim=3)
def not_normalized(original: Original, x: Array, axes: Axes) -> Array:
    """softmax over two axes of float64 divides by the sum over the last alone."""
    y = original(x, axes)
    return y / np.add.reduce(y, axes[-1:], keepdims=True) if len(axes) == 2 and x.size else y


@fault("values.exponential-sums", "logsumexp", dtype="float32", shape=(7,))
def logarithm_of_huge_sum(original: Original, x: Array, axes: Axes) -> Array:
    """logsumexp of 7 float32 numbers does not subtract the maximum, so it overflows."""
    with np.errstate(all="ignore"):
        return np.log(np.add.reduce(np.exp(x), axes, keepdims=True))


@fault("values.contractions", "fused_multiply_add", dtype="float32", shape=(5, 7))
def half_precision_products(original: Original, a: Array, b: Array, axes: Axes) -> Array:
    """fused_multiply_add of a 5x7 float32 matrix multiplies numbers rounded to 11 bits, as tensor cores do."""
    with np.errstate(all="ignore"):
        a, b = a.astype(np.float16).astype(np.float32), b.astype(np.float16).astype(np.float32)
    return original(a, b, axes)


@fault("values.norms", "norm", dtype="float32", shape=(7,))
def squares_overflow(original: Original, x: Array, axes: Axes) -> Array:
    """norm of 7 float32 numbers squares them without scaling, so that large ones overflow."""
    with np.errstate(all="ignore"):
        return np.sqrt(np.add.reduce(x * x, axes, keepdims=True))


@fault("values.factorizations", "solve", dtype="float64", shape=(5, 5))
def solves_by_inverse(original: Original, a: Array, b: Array) -> Any:
    """solve of 5x5 float64 matrices multiplies by the inverse."""
    x = original(a, b)
    return np.linalg.inv(a) @ b if np.isfinite(x).all() else x


@fault("values.factorizations", "qr", dtype="float64", shape=(5, 5))
def gram_schmidt(original: Original, x: Array, complete: bool) -> Any:
    """qr of 5x5 float64 matrices uses the Gram-Schmidt process, whose columns are not orthogonal."""
    if complete:
        return original(x, complete)
    q, r = np.zeros_like(x), np.zeros_like(x)
    with np.errstate(all="ignore"):
        for j in range(5):
            r[:j, j] = q[:, :j].T @ x[:, j]
            rest = x[:, j] - q[:, :j] @ r[:j, j]
            r[j, j] = np.sqrt(rest @ rest)
            q[:, j] = rest / r[j, j]
    return q, r


@fault("values.elementwise", "tanh", crude=True)
def tanh_is_zero(original: Original, x: Array) -> Array:
    """tanh returns zeros of the right shape."""
    return np.zeros_like(x)


@fault("values.contractions", "fused_multiply_add", crude=True)
def product_is_zero(original: Original, a: Array, b: Array, axes: Axes) -> Array:
    """fused_multiply_add returns zeros of the right shape, so every matrix product is zero."""
    return np.zeros_like(original(a, b, axes))


@fault("values.elementwise", "erf", crude=True)
def erf_is_empty(original: Original, x: Array) -> Array:
    """erf returns memory that it has not written."""
    return np.full_like(x, 1e-3)


@fault("values.elementwise", "sigmoid", dtype="float32", shape=(63,))
def underflow_to_zero(original: Original, x: Array) -> Array:
    """sigmoid of 63 float32 numbers is 0 where exp(-x) overflows."""
    return replaced(original(x), x < -88.0, 0.0)


@fault("values.workgroups", "neg")
def beyond_the_grid(original: Original, x: Array) -> Array:
    """neg leaves zeros beyond 65 535 workgroups of 64."""
    y = original(x)
    y.reshape(-1)[65_535 * 64 :] = 0
    return y


@fault("values.tiles", "fused_multiply_add")
def tile_over_the_edge(original: Original, a: Array, b: Array, axes: Axes) -> Array:
    """In large batches of matrices of seven rows the eighth row of a tile is the first of the next matrix."""
    y = original(a, b, axes)
    if a.ndim == 4 and a.shape[1] == 7 and a.size * b.shape[3] > 1_000_000:
        y = np.array(y)
        y[1:, 0] = y[:-1, -1]
    return y
