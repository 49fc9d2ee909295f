"""Small random programs over the language, with what numpy says about each of their values.

All values are small whole numbers, so every order of adding up gives the same bits and results compare exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tensorken as tk
from tensorken_core.tensor.tensor import Tensor

LARGEST = 100_000.0


@dataclass(frozen=True)
class Step:
    """One op: how it is said to Tensor and to numpy, and the places of its operands among the values so far."""

    name: str
    operands: tuple[int, ...]
    params: Any
    on_tensors: Callable[..., Any]
    on_arrays: Callable[..., Any]

    def __repr__(self) -> str:
        return f"{self.name}{self.operands}{'' if self.params is None else self.params}"


@dataclass(frozen=True)
class Program:
    """Leaves, steps and the values of all of them by numpy, leaves first."""

    leaves: tuple[Any, ...]
    steps: tuple[Step, ...]
    values: tuple[Any, ...]

    def __repr__(self) -> str:
        leaves = ", ".join(f"{x.dtype}{x.shape}={x.tolist()}" for x in self.leaves)
        return f"Program({leaves}; {', '.join(map(repr, self.steps))})"

    def run(self, *leaves: Tensor) -> list[Tensor]:
        """All values, the leaves first."""
        values = list(leaves)
        for step in self.steps:
            values.append(step.on_tensors(*[values[i] for i in step.operands]))
        return values


UNARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "neg": (lambda x: -x, np.negative),
    "abs": (lambda x: x.abs(), np.abs),
    "square": (lambda x: x.square(), np.square),
    "double": (lambda x: x + x, lambda x: x + x),
    "sign": (lambda x: x.sign(), np.sign),
}
BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "mul": (lambda a, b: a * b, lambda a, b: a * b),
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "sub": (lambda a, b: a - b, lambda a, b: a - b),
    "maximum": (lambda a, b: a.maximum(b), np.maximum),
    "where": (lambda a, b: (a < b).where(a, b), lambda a, b: np.where(a < b, a, b)),
}


def _padded(x: Any, pads: Any) -> Any:
    return np.pad(x, pads) if x.ndim else x


@st.composite
def _movement(draw: st.DrawFn, x: Any) -> tuple[str, Any, Callable[..., Any], Callable[..., Any]]:
    """A movement or a reduction of an array."""
    rank = x.ndim
    axes = tuple(sorted(draw(st.sets(st.integers(0, rank - 1))))) if rank else ()
    kind = draw(
        st.sampled_from(("sum", "sum", "max", "permute", "units", "flat", "expand", "flip", "pad", "crop"))
    )
    if kind == "max" and any(x.shape[i] == 0 for i in axes):
        kind = "sum"
    if kind in ("sum", "max"):
        keep = draw(st.booleans())
        if kind == "sum":
            return (
                kind,
                (axes, keep),
                lambda t: t.sum(axes, keep),
                lambda a: a.sum(axes, keepdims=keep, dtype=a.dtype),
            )
        return (
            kind,
            (axes, keep),
            lambda t: t.max(axes, keep),
            lambda a: a.max(axes, keepdims=keep) if axes else a,
        )
    if kind == "permute":
        order = tuple(draw(st.permutations(range(rank))))
        return kind, order, lambda t: t.permute(order), lambda a: a.transpose(order)
    if kind == "flip":
        return kind, axes, lambda t: t.flip(axes), lambda a: np.flip(a, axes)
    if kind == "pad":
        pads = tuple((draw(st.integers(0, 1)), draw(st.integers(0, 1))) for _ in range(rank))
        return kind, pads, lambda t: t.pad(pads), lambda a: _padded(a, pads)
    if kind == "crop":
        limits = tuple(sorted((draw(st.integers(0, n)), draw(st.integers(0, n)))) for n in x.shape)
        keys = tuple(slice(*pair) for pair in limits)
        return kind, limits, lambda t: t.crop(limits), lambda a: a[keys]
    if kind == "flat":
        return kind, None, lambda t: t.reshape((t.size,)), lambda a: a.reshape(a.size)
    if kind == "units":  # axes of size 1 come and go
        kept = [n for n in x.shape if n != 1 or draw(st.booleans())]
        place = draw(st.integers(0, len(kept)))
        shape = tuple(kept[:place] + [1] * draw(st.integers(0, 2)) + kept[place:])
        return kind, shape, lambda t: t.reshape(shape), lambda a: a.reshape(shape)
    grown = tuple(draw(st.sampled_from((0, 1, 2, 3))) if n == 1 else n for n in x.shape)
    shape = (*draw(st.sampled_from(((), (2,), (1,)))), *grown)
    return "expand", shape, lambda t: t.broadcast_to(shape), lambda a: np.array(np.broadcast_to(a, shape))


@st.composite
def programs(draw: st.DrawFn, dtypes: tuple[str, ...] = ("float64", "float32", "int32")) -> Program:
    """A program of one dtype with two or three leaves and up to ten steps."""
    dtype = draw(st.sampled_from(dtypes))
    rank = draw(st.integers(0, 3))
    full = [draw(st.sampled_from((0, 1, 2, 2, 3, 3))) for _ in range(rank)]
    values: list[Any] = []
    for _ in range(draw(st.integers(2, 3))):
        shape = tuple(n if draw(st.integers(0, 3)) else 1 for n in full)
        numbers = draw(
            st.lists(st.integers(-3, 3), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
        )
        values.append(np.array(numbers, dtype).reshape(shape))
    leaves, steps = tuple(values), []
    for _ in range(draw(st.integers(1, 10))):
        place = draw(st.integers(0, len(values) - 1))
        x = values[place]
        kind = draw(
            st.sampled_from(("unary", "binary", "binary", "binary", "movement", "movement", "movement"))
        )
        operands: tuple[int, ...] = (place,)
        params: Any = None
        if kind == "unary":
            name = draw(st.sampled_from(sorted(UNARY)))
            on_tensors, on_arrays = UNARY[name]
        elif kind == "binary":
            name = draw(st.sampled_from(("mul", "mul", *sorted(BINARY))))
            on_tensors, on_arrays = BINARY[name]
            partners = [i for i, y in enumerate(values) if _broadcasts(x.shape, y.shape)]
            operands = (place, draw(st.sampled_from(partners)))
        else:
            name, params, on_tensors, on_arrays = draw(_movement(x))
        y = np.asarray(on_arrays(*[values[i] for i in operands]), dtype)
        if y.size > 500 or y.ndim > 5 or (y.size and np.abs(y.astype("float64")).max() > LARGEST):
            continue
        steps.append(Step(name, operands, params, on_tensors, on_arrays))
        values.append(y)
    return Program(leaves, tuple(steps), tuple(values))


def _broadcasts(a: Any, b: Any) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def on(backend: Any, program: Program) -> list[Tensor]:
    """The leaves of a program as tensors of a backend."""
    return [tk.tensor(leaf, backend=backend) for leaf in program.leaves]
