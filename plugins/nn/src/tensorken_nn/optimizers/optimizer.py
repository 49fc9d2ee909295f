"""The optimiser protocol, and functions shared by the optimisers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import tensorken as tk
from tensorken import DType, Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.precision import widen
from tensorken_nn.scalars import Scalar


class Optimizer(Protocol):
    """The interface of optimisers."""

    def init(self, parameters: Any) -> Any:
        """The state before the first step."""

    def update(self, parameters: Any, gradients: Any, state: Any) -> tuple[Any, Any]:
        """The parameters and the state after a step."""


def zeros(parameters: Any) -> Any:
    """A tree of zeros like the parameters, in the dtypes in which steps are computed.

    >>> zeros([tk.ones(2)])[0].tolist()
    [0.0, 0.0]
    """
    return tree.map(lambda p: widen(p).zeros_like(), parameters)


def first_step(parameters: Any) -> Any:
    """The number of steps before the first: a tensor on the backend of the parameters, so that steps are traced once.

    >>> first_step([tk.ones(2)]).item()
    0
    """
    tensors = [x for x in tree.leaves(parameters) if isinstance(x, Tensor)]
    return tensors[0].sum().zeros_like().astype(tk.int32) if tensors else 0


def step_number(step: Any, parameters: Any) -> Scalar:
    """The number of a step as a scalar; a tensor becomes a float, as wide as the widest parameter.

    >>> step_number(3, tk.ones(2)), step_number(tk.tensor(3), tk.ones(2, dtype=tk.float64)).dtype.name
    (3, 'float64')
    """
    if not isinstance(step, Tensor):
        return int(step)
    dtypes = [x.dtype for x in tree.leaves(parameters) if isinstance(x, Tensor)]
    return step.astype(max([tk.float32, *dtypes], key=_width))


def _width(dtype: DType) -> int:
    return dtype.itemsize if dtype.kind == "float" else 0


def update_each(
    rule: Callable[..., tuple[Any, ...]],
    scalars: tuple[Scalar, ...],
    parameters: Any,
    gradients: Any,
    decays: Any,
    *slots: Any,
) -> tuple[Any, ...]:
    """Apply the update rule of an optimiser to each parameter.

    Args:
        rule: a function from the scalars (a tuple), a parameter, its gradient, its weight decay and its slots, all
            of the same dtype, to the new parameter and slots.
        scalars: values shared by all parameters, computed once.
        parameters: a tree.
        gradients: a tree of the same structure.
        decays: a tree of numbers of the same structure.
        slots: trees of optimiser state of the same structure; None for an unused slot, which the rule receives and
            returns as None.

    Returns:
        The trees of the new parameters and of each slot.

    Raises:
        StructureError, ShapeError: if the gradients differ from the parameters in structure or shapes.
    """
    leaves, structure = tree.flatten(parameters)
    gradient_leaves = tree.flatten_up_to(structure, gradients, "update: the gradients")
    for p, g in zip(leaves, gradient_leaves, strict=True):
        if not isinstance(p, Tensor) or not isinstance(g, Tensor):
            what, x = ("gradient", g) if isinstance(p, Tensor) else ("parameter", p)
            raise ArgumentError(
                f"update: a {what} is a {type(x).__name__}, need a tensor; call update(parameters, gradients, state)"
            )
        if g.shape != p.shape:
            raise ShapeError(f"update: a gradient has shape {g.shape}, need {p.shape}, that of its parameter")
    slot_leaves = [
        [None] * len(leaves) if slot is None else tree.flatten_up_to(structure, slot, "update: the state")
        for slot in slots
    ]

    @cache
    def in_dtype(dtype: DType) -> tuple[Scalar, ...]:
        return tuple([x.astype(dtype) if isinstance(x, Tensor) else x for x in scalars])

    results = []
    for p, g, decay, *own_slots in zip(
        leaves, gradient_leaves, tree.leaves(decays), *slot_leaves, strict=True
    ):
        wide = widen(p)
        updated, *new_slots = rule(in_dtype(wide.dtype), wide, g.astype(wide.dtype), decay, *own_slots)
        results.append((updated.astype(p.dtype), *new_slots))
    columns = zip(*results, strict=True) if results else [()] * (1 + len(slots))
    used = (True, *[slot is not None for slot in slots])
    return tuple(
        [tree.unflatten(structure, list(c)) if u else None for c, u in zip(columns, used, strict=True)]
    )


def check_state(optimizer: Optimizer, state: Any, kind: type) -> None:
    """Check the type of an optimiser state.

    Raises:
        ArgumentError: if it is another type.

    >>> from tensorken_nn import Adam
    >>> Adam(0.1).update(tk.ones(2), tk.ones(2), tk.ones(2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.ArgumentError: Adam: update(parameters, gradients, state) needs an AdamState, ... got a Tensor
    """
    if not isinstance(state, kind):
        name, got = type(optimizer).__name__, type(state).__name__
        raise ArgumentError(
            f"{name}: update(parameters, gradients, state) needs {_a(kind.__name__)}, made by init(parameters), "
            f"got {_a(got)}"
        )


def _a(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def check_not_negative(name: str, **values: Any) -> None:
    """Check that numbers are not negative; tensors and schedules are not checked.

    Raises:
        ArgumentError: if a number is negative or NaN.

    >>> check_not_negative("Adam", learning_rate=0.1, epsilon=-1.0)
    Traceback (most recent call last):
    tensorken_core.errors.ArgumentError: Adam: epsilon must not be negative, got -1.0
    """
    for what, x in values.items():
        if isinstance(x, (int, float)) and not x >= 0.0:
            raise ArgumentError(f"{name}: {what} must not be negative, got {x}")


def check_fractions(name: str, **values: float) -> None:
    """Check that numbers, such as decay rates, are in [0, 1).

    Raises:
        ArgumentError: if a number is not.

    >>> check_fractions("Adam", beta1=1.0)
    Traceback (most recent call last):
    tensorken_core.errors.ArgumentError: Adam: beta1 must be in [0, 1), got 1.0
    """
    for what, x in values.items():
        if not 0.0 <= x < 1.0:
            raise ArgumentError(f"{name}: {what} must be in [0, 1), got {x}")
