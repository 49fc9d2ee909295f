"""`with_placement`: the devices that hold a value."""

from __future__ import annotations

from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays import creation
from tensorken_core import tree
from tensorken_core.tensor.tensor import as_tensor

__all__ = ["with_placement"]


def with_placement(x: ArrayLike, placement: Any) -> Any:
    """x, placed on devices as an object of the backend's library says.

    In a program it constrains where the value is computed; outside it moves the value.  It is linear: tangents and
    cotangents get the same placement.  Under `vmap` the placement is that of one example, and the new axis is free.

    Args:
        x: a tensor, or a pytree of tensors that are placed alike.
        placement: on the backend `jax` a sharding or a device of JAX; None leaves x as it is, on every backend.

    Raises:
        BackendError: if the backend has no placements.
        ShapeError: if the devices do not divide an axis that they share.

    >>> import tensorken as tk
    >>> tk.with_placement(tk.ones(2), None).tolist()
    [1.0, 1.0]
    """
    if placement is None:
        return x
    return tree.map(lambda leaf: creation.with_placement(as_tensor(leaf), placement), x)
