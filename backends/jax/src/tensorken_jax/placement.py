"""Placement: arrays on the devices that a sharding of JAX names."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

from tensorken_core.errors import ArgumentError, ShapeError


def placed(x: Any, placement: Any, batch_axes: int) -> Any:
    """The array on these devices: moved there, or, while it is traced, constrained to be there.

    Args:
        placement: a sharding or a device of JAX, for x without its first axes; None leaves x as it is.
        batch_axes: the number of first axes of which the placement says nothing.

    Raises:
        ArgumentError: if the placement is anything else.
        ShapeError: if the devices do not divide an axis.
    """
    if placement is None:
        return x
    if isinstance(placement, jax.Device):
        placement = SingleDeviceSharding(placement)
    if not isinstance(placement, Sharding):
        hint = "; make it a NamedSharding with a mesh" if isinstance(placement, PartitionSpec) else ""
        raise ArgumentError(
            f"with_placement: need a sharding or a device of JAX, got {placement!r:.80}{hint}"
        )
    is_traced = isinstance(x, jax.core.Tracer)
    sharding = _with_first_axes(placement, batch_axes, is_traced)
    _check_divides(x.shape, sharding)
    return lax.with_sharding_constraint(x, sharding) if is_traced else jax.device_put(x, sharding)


def movable(x: Any) -> Any:
    """The array, or a copy of a callback's result on several devices, whose sharding JAX refuses in other ops."""
    known = NamedSharding | SingleDeviceSharding
    return x if isinstance(x.sharding, known) else jax.device_put(np.asarray(x))


def _with_first_axes(sharding: Sharding, count: int, is_traced: bool) -> Sharding:
    """The sharding of arrays with more axes before the others: XLA chooses theirs, or no device divides them."""
    if not count or sharding.is_fully_replicated:
        return sharding
    if not isinstance(sharding, NamedSharding):
        raise ArgumentError(
            f"with_placement: under vmap the placement must be a NamedSharding or one device, got {sharding!r:.80}"
        )
    axis = PartitionSpec.UNCONSTRAINED if is_traced else None
    spec = PartitionSpec(*[axis] * count, *sharding.spec)
    return NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)


def _check_divides(shape: tuple[int, ...], sharding: Sharding) -> None:
    if not isinstance(sharding, NamedSharding):
        return
    if len(sharding.spec) > len(shape):
        raise ShapeError(
            f"with_placement: {sharding.spec} is for at least {len(sharding.spec)} axes, and the tensor has shape "
            f"{shape}; leave out the last of them"
        )
    for i, names in enumerate(sharding.spec):
        if names is None or names is PartitionSpec.UNCONSTRAINED:
            continue
        names = (names,) if isinstance(names, str) else names
        count = 1
        for name in names:
            count *= sharding.mesh.shape[name]
        if shape[i] % count:
            raise ShapeError(
                f"with_placement: the {count} devices along {', '.join(map(repr, names))} of the mesh do not divide "
                f"axis {i} of shape {shape}; pad it to a multiple of {count}, or place it otherwise"
            )
