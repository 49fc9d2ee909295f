"""Chains: operands made by sequences of movement ops, so that they have every memory layout."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.subject import Array, Subject, put
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor

Step = tuple[str, tuple[int, ...]]
"""A movement and its axes: the order of a permute, or the axes that are flipped, cropped or expanded.

`head` crops to the first elements, which may be a block without gaps; `drop` crops one more axis to one element and
removes it, as for a column; `pad` adds a border of zeros along all axes,
and `reshape` begins with one axis.
"""

Chain = tuple[Step, ...]


@functools.cache
def chains(rank: int) -> dict[str, Chain]:
    """The chains for operands of a rank, by name."""
    axes = tuple(range(rank))
    found: dict[str, Chain] = {"plain": ()}
    if not rank:
        return found
    last = rank - 1
    found |= {f"flip-{axis}": (("flip", (axis,)),) for axis in axes}
    found |= {f"crop-{axis}": (("crop", (axis,)),) for axis in axes}
    found |= {f"expand-{axis}": (("expand", (axis,)),) for axis in axes}
    found |= {
        "head": (("head", (0,)),),
        "drop": (("drop", ()),),
        "flip-twice": (("flip", (last,)), ("flip", axes)),
    }
    if rank > 1:
        rotated, swapped = (*axes[1:], 0), (*axes[:-2], last, last - 1)
        permute: Step = ("permute", axes[::-1])
        found |= {
            "flip-all": (("flip", axes),),
            "crop-all": (("crop", axes),),
            "expand-all": (("expand", axes),),
            "expand-two": (("expand", (0, last)),),
            "head-permute": (("head", (0,)), permute),
            "permute-reversed": (permute,),
            "permute-crop": (permute, ("crop", axes)),
            "permute-flip": (permute, ("flip", (last,))),
            "flip-permute": (("flip", (last,)), permute),
            "expand-permute": (("expand", (0,)), permute),
            "expand-flip": (("expand", (0,)), ("flip", (last,))),
            "drop-permute": (("drop", ()), permute),
        }
        if rank > 2:
            found |= {
                "permute-rotated": (("permute", rotated),),
                "permute-swapped": (("permute", swapped),),
                "permute-permute": (permute, ("permute", rotated)),
            }
        if rank > 3:
            found["permute-first"] = (("permute", (1, 0, *axes[2:])),)
    return found


def single(movement: str, shape: Shape) -> Chain:
    """One movement along all axes of a shape; an expansion along the first that has several elements."""
    axes = tuple(range(len(shape)))
    if not movement or (not axes and movement != "reshape"):
        return ()
    if movement == "expand":
        return (("expand", (next((axis for axis in axes if shape[axis] > 1), 0),)),)
    return ((movement, (axes[-1], *axes[:-1]) if movement == "permute" else axes),)


def moved(op: str, values: Array, params: tuple[Any, ...]) -> Array:
    """The result of a movement op on an array, computed by numpy's indexing."""
    (what,) = params
    if op == "reshape":
        return values.reshape(what)
    if op == "permute":
        return values.transpose(what)
    if op == "expand":
        return np.broadcast_to(values, what)
    if op == "flip":
        return np.flip(values, what)
    if op == "crop":
        return values[tuple([slice(start, end) for start, end in what])]
    return np.pad(values, what) if what else values


Made = tuple[Array, list[tuple[str, tuple[Any, ...]]]]
"""The values of a plain operand, and the ops with params that turn it into another."""


def origin(chain: Chain, values: Array) -> Made:
    """The plain operand and the ops that make an operand with these values (fitted)."""
    ops: list[tuple[str, tuple[Any, ...]]] = []
    for step, axes in reversed(chain):
        if step == "permute":
            ops.append(("permute", (axes,)))
            values = values.transpose(np.argsort(axes))
        elif step == "flip":
            ops.append(("flip", (axes,)))
            values = np.flip(values, axes)
        elif step == "expand":
            ops.append(("expand", (values.shape,)))
            few = tuple([slice(0, 1) if i in axes else slice(None) for i in range(values.ndim)])
            values = values[few] if values.size else values
        elif step == "pad":
            ops.append(("pad", (((1, 1),) * values.ndim,)))
            values = values[(slice(1, -1),) * values.ndim]
        elif step == "reshape":
            ops.append(("reshape", (values.shape,)))
            values = values.reshape(-1)
        else:
            if step == "drop":
                ops.append(("reshape", (values.shape,)))
                values, axes = values[..., None], (values.ndim,)
            start = 0 if step == "head" else 1
            limits = tuple([(start, start + n) if i in axes else (0, n) for i, n in enumerate(values.shape)])
            ops.append(("crop", (limits,)))
            values = _surrounded(values, limits, axes)
    return values, ops[::-1]


def _surrounded(values: Array, limits: tuple[tuple[int, int], ...], axes: tuple[int, ...]) -> Array:
    """Values surrounded by other values, so that reads beyond the operand give wrong values."""
    shape = [n + 3 if i in axes else n for i, n in enumerate(values.shape)]
    source = np.resize(np.flip(values), shape) if values.size else np.zeros(shape, values.dtype)
    source[tuple([slice(*pair) for pair in limits])] = values
    return source


def fitted(chain: Chain, values: Array) -> Array:
    """Values for an operand of a chain: equal slices if it is expanded, a border of zeros if it is padded."""
    if not any(step in ("expand", "pad") for step, _ in chain):
        return values
    found, ops = origin(chain, values)
    for op, params in ops:
        found = moved(op, found, params)
    return np.array(found)


def lying(interpreter: RawTensor[Any], chain: Chain, values: Array, dtype: DType) -> Tensor:
    """A tensor with these values (fitted) on an interpreter, made by a chain."""
    source, ops = origin(chain, values)
    return by(put(interpreter, source, dtype), ops)


def by(x: Tensor, ops: Sequence[tuple[str, tuple[Any, ...]]]) -> Tensor:
    """The result of movements of a tensor."""
    for op, params in ops:
        x = Subject.run(OPS[op], [x], params)
    return x


def movements(chain: Chain) -> tuple[str, ...]:
    """The ops of a chain."""
    ops = {"drop": ("crop", "reshape"), "head": ("crop",)}
    return tuple([op for step, _ in chain for op in ops.get(step, (step,))])


def makes(subject: Subject, chain: Chain, dtype: str) -> bool:
    """Whether the backend supports the ops of a chain."""
    return all([subject.capabilities.why_not(op, dtype) is None for op in movements(chain)])


def possible(subject: Subject, dtype: str, rank: int) -> dict[str, Chain]:
    """The chains of a rank that a backend supports; in a smoke run four of them."""
    found = {name: chain for name, chain in chains(rank).items() if makes(subject, chain, dtype)}
    if subject.depth == "smoke":
        few = ("plain", "flip-0", "permute-reversed", "crop-all")
        return {name: chain for name, chain in found.items() if name in few}
    return found


def needs(
    dtype: str, ops: Iterable[str] = ("reshape", "permute", "expand", "flip", "crop")
) -> tuple[str, ...]:
    """The ids of the cases that operands made by these ops need."""
    return tuple([Case("values.movement", op, dtype, "small").id for op in ops])
