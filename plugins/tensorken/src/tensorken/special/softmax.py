"""softmax and log_softmax with scipy's default: all axes.  Those of `tk` take the last axis, as networks do.

Raises:
    DTypeError: if the function is not defined for the dtype.
    AxisError: if an axis is out of range, or named twice.
"""

from __future__ import annotations

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions import reductions
from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken_core.tensor.normalization import Axis
from tensorken_core.tensor.tensor import Tensor

__all__ = ["log_softmax", "softmax"]


@with_numpys_names
def softmax(x: ArrayLike, axis: Axis = None) -> Tensor:
    """exp(x) / sum(exp(x)) along axes, all by default, as in scipy; see `tk.softmax`.

    >>> import tensorken as tk
    >>> tk.special.softmax([[0.0, 0.0], [0.0, 0.0]]).tolist()
    [[0.25, 0.25], [0.25, 0.25]]
    """
    return reductions.softmax(x, axis)


@with_numpys_names
def log_softmax(x: ArrayLike, axis: Axis = None) -> Tensor:
    """log(softmax(x)) along axes, all by default, as in scipy; see `tk.log_softmax`.

    >>> import tensorken as tk
    >>> print(f"{tk.special.log_softmax([[0.0, -1000.0], [0.0, 0.0]]):.4f}")
    [[   -1.0986 -1001.0986]
     [   -1.0986    -1.0986]]
    """
    return reductions.log_softmax(x, axis)
