"""Products of matrices as one op: long sums, and the transposes of square matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Original, fault, fault_in_rule
from tensorken_conformance.subject import Array


@fault("values.contractions", "matmul", dtype="float32")
def matmul_leaves_out_the_last_product(original: Original, a: Array, b: Array) -> Array:
    """matmul of float32 leaves out the last product of sums of more than 64."""
    return original(a[..., :-1], b[..., :-1, :]) if a.shape[-1] > 64 else original(a, b)


@fault("values.contractions", "matmul", dtype="float64")
def batches_share_the_first_matrix(original: Original, a: Array, b: Array) -> Array:
    """matmul of float64 multiplies the matrices of a batch of more than two by the first one of the other batch."""
    return original(a, np.broadcast_to(b[:1], b.shape) if b.ndim == 3 and len(b) > 2 else b)


@fault_in_rule("derivatives.consistency", "matmul", modes=("vjp",))
def square_matrices_are_not_transposed(original: Any, t: Any, y: Any, a: Any, b: Any) -> Any:
    """The VJP of matmul does not transpose the second matrix if it is square."""
    return original(t, y, a, b.mT if b.shape[-2] == b.shape[-1] else b)
