"""Ties: derivatives of functions that select, average or clip, where elements are equal.

There the functions have corners.  The derivative is the central difference, except where the function selects one of
several equal elements: there it goes to the selected one.  docs/numerics.md has the table of both conventions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Shape

Numbers = list[Any]

Rule = Callable[..., Sequence[Array]]
"""`(w, *operands) -> gradients` of the sum of w times the result, by each operand."""

STEP = 1.0 / 16.0
"""The step of central differences: drawn elements are equal or further apart; float32 represents all values."""


@dataclass(frozen=True, slots=True)
class Tie:
    """A function, and its gradient where elements are equal, or at other points where a convention decides.

    Attributes:
        call: `(namespace, *operands)`: the function with the names of tensorken and numpy.
        rule: the gradient by convention; None: central differences of the function on numpy.
        shapes: of the operands.
        values: the numbers from which elements are drawn.
        numpy: the function on numpy arrays, where `call` does not run on numpy.
        last: the last operand, where it is not drawn.
        at: all operands, where none is drawn; then the rule is the gradient for a w of ones.
        forward: whether forward mode agrees: it does unless a rule of the backward pass computes 0 * inf.
    """

    call: Callable[..., Any]
    rule: Rule | None = None
    shapes: tuple[Shape, ...] = ((4, 5),)
    values: tuple[float, ...] = (-1.0, 0.0, 1.0)
    numpy: Callable[..., Array] | None = None
    last: tuple[float, ...] = ()
    at: tuple[Numbers, ...] = ()
    forward: bool = True

    def draw(self, rng: random.Random) -> list[Array]:
        """Operands, in float64."""
        if self.at:
            return [np.array(x, np.float64) for x in self.at]
        drawn = [
            np.array([rng.choice(self.values) for _ in range(int(np.prod(shape)))]).reshape(shape)
            for shape in self.shapes
        ]
        return [*drawn[:-1], np.array(self.last)] if self.last else drawn

    def value(self, *operands: Array) -> Array:
        """The function on numpy."""
        return np.asarray(self.call(np, *operands) if self.numpy is None else self.numpy(*operands))

    def gradients(self, w: Array, operands: Sequence[Array]) -> list[Array]:
        """Of the sum of w times the result, by each operand."""
        if self.rule is not None:
            return [np.asarray(g, np.float64) for g in self.rule(w, *operands)]
        return [self._differences(w, operands, i) for i in range(len(operands))]

    def _differences(self, w: Array, operands: Sequence[Array], number: int) -> Array:
        found = np.zeros_like(operands[number])
        for at in np.ndindex(found.shape):
            ends = []
            for step in (STEP, -STEP):
                moved = [x.copy() for x in operands]
                moved[number][at] += step
                ends.append(float((w * self.value(*moved)).sum()))
            found[at] = (ends[0] - ends[1]) / (2.0 * STEP)
        return found


def _shared(extreme: Callable[..., Array], axis: int | None = 1) -> Rule:
    """The elements that equal the extreme share the derivative equally."""

    def rule(w: Array, x: Array) -> list[Array]:
        hits = x == extreme(x, axis=axis, keepdims=True)
        share = hits / hits.sum(axis=axis, keepdims=True)
        return [share * (w if axis is None else np.expand_dims(w, axis))]

    return rule


def _first(argextreme: Callable[..., Array]) -> Rule:
    """The first of the extremes has the whole derivative."""
    return lambda w, x: [w[:, None] * (np.arange(x.shape[1]) == argextreme(x, axis=1)[:, None])]


def _ordered(weights: Callable[[int], Array], descending: bool = False) -> Rule:
    """A linear function of the sorted rows: equal elements keep their order."""

    def rule(w: Array, x: Array) -> list[Array]:
        order = np.argsort(-x if descending else x, axis=1, kind="stable")
        gradient = np.zeros_like(x)
        np.put_along_axis(gradient, order, w.reshape(len(x), -1) @ weights(x.shape[1]), 1)
        return [gradient]

    return rule


def _quantiles(*shares: float, method: str = "linear") -> Callable[[int], Array]:
    """For each share, the weight of each element of a sorted row."""

    def weights(n: int) -> Array:
        found = np.zeros((len(shares), n))
        for row, share in zip(found, shares, strict=True):
            position = share * (n - 1)
            below, above = int(np.floor(position)), int(np.ceil(position))
            part = position - below
            rounded = {"lower": 0.0, "higher": 1.0, "midpoint": 0.5, "nearest": round(position) - below}
            part = rounded.get(method, part) if part else part
            row[below] += 1.0 - part
            row[above] += part
        return found

    return weights


def _by_shares(w: Array, x: Array, q: Array) -> list[Array]:
    """Of a quantile by both: between two elements its slope by q is their distance, at an element 0."""
    by_q = np.zeros_like(q)
    ordered, position = np.sort(x, axis=1), q * (x.shape[1] - 1)
    below, above = np.floor(position).astype(int), np.ceil(position).astype(int)
    for i in range(len(q)):
        by_q[i] = (w[i] * (ordered[:, above[i]] - ordered[:, below[i]])).sum() * (x.shape[1] - 1)
    return [*_ordered(_quantiles(*q.tolist()))(w.T, x), by_q]


def _updated(extreme: Callable[..., Array], x: Array, v: Array) -> Array:
    """The operand with the extremes of two columns and v in their place."""
    y = x.copy()
    y[:, [0, 3]] = extreme(y[:, [0, 3]], v)
    return y


def _running_rule(w: Array, x: Array) -> list[Array]:
    """Where a new element equals the maximum so far, each has a half."""
    gradient = np.zeros_like(x)
    share = np.zeros((len(x), x.shape[1]))
    share[:, 0] = 1.0
    top = x[:, 0]
    for j in range(x.shape[1]):
        new = x[:, j]
        mine = np.where(new > top, 1.0, np.where(new == top, 0.5, 0.0))
        share = share * (1.0 - mine)[:, None]
        share[:, j] += mine
        top = np.maximum(top, new)
        gradient += share * w[j][:, None]
    return [gradient]


WIDE = (-2.0, -1.0, 0.0, 1.0, 2.0)
TWO: tuple[Shape, ...] = ((4, 5), (4, 5))
PAIRS: tuple[Shape, ...] = ((6, 2),)
UPDATE: tuple[Shape, ...] = ((4, 5), (4, 2))

TIES: dict[str, Tie] = {
    # two operands
    "maximum": Tie(lambda xp, a, b: xp.maximum(a, b), None, TWO),
    "minimum": Tie(lambda xp, a, b: xp.minimum(a, b), None, TWO),
    "fmax": Tie(lambda xp, a, b: xp.fmax(a, b), None, TWO),
    "fmin": Tie(lambda xp, a, b: xp.fmin(a, b), None, TWO),
    "maximum-of-a-number": Tie(lambda xp, a: xp.maximum(a, 1.0)),
    "maximum-broadcast": Tie(lambda xp, a, b: xp.maximum(a, b), None, ((4, 1), (1, 3))),
    "clip": Tie(lambda xp, x: xp.clip(x, -1.0, 1.0), values=WIDE),
    "clip-from-below": Tie(lambda xp, x: xp.clip(x, -1.0, None), values=WIDE),
    "clip-from-above": Tie(lambda xp, x: xp.clip(x, None, 1.0), values=WIDE),
    "clip-by-tensors": Tie(
        lambda xp, x, low, above: xp.clip(x, low, low + above + 3.0), None, (*TWO, (4, 5)), WIDE
    ),
    "where-larger": Tie(
        lambda xp, a, b: xp.where(a > b, a, b), lambda w, a, b: [w * (a > b), w * (a <= b)], TWO
    ),
    "where-not-smaller": Tie(
        lambda xp, a, b: xp.where(a >= b, a, b), lambda w, a, b: [w * (a >= b), w * (a < b)], TWO
    ),
    "where-by-sign": Tie(
        lambda xp, x: xp.where(x > 0.0, x, x * 3.0), lambda w, x: [w * np.where(x > 0.0, 1.0, 3.0)]
    ),
    # one operand
    "abs": Tie(lambda xp, x: xp.abs(x), lambda w, x: [w * np.where(x < 0.0, -1.0, 1.0)]),
    "relu": Tie(lambda xp, x: xp.relu(x), lambda w, x: [w * (x > 0.0)], numpy=lambda x: np.maximum(x, 0.0)),
    "absolute-norm": Tie(
        lambda xp, x: xp.linalg.vector_norm(x, axis=1, ord=1),
        lambda w, x: [w[:, None] * np.where(x < 0.0, -1.0, 1.0)],
    ),
    "spread-of-equals": Tie(lambda xp, x: xp.std(x, axis=1), values=(1.0,)),
    # reductions
    "max": Tie(lambda xp, x: xp.max(x, axis=1), _shared(np.max)),
    "min": Tie(lambda xp, x: xp.min(x, axis=1), _shared(np.min)),
    "max-over-all": Tie(lambda xp, x: xp.max(x), _shared(np.max, None)),
    "min-over-all": Tie(lambda xp, x: xp.min(x), _shared(np.min, None)),
    "max-of-two": Tie(lambda xp, x: xp.max(x, axis=1), None, PAIRS),
    "min-of-two": Tie(lambda xp, x: xp.min(x, axis=1), None, PAIRS),
    "range-of-two": Tie(lambda xp, x: xp.ptp(x, axis=1), None, PAIRS),
    "range": Tie(
        lambda xp, x: xp.ptp(x, axis=1), lambda w, x: [_shared(np.max)(w, x)[0] - _shared(np.min)(w, x)[0]]
    ),
    "largest-norm-of-two": Tie(
        lambda xp, x: xp.linalg.vector_norm(x, axis=1, ord=float("inf")), None, PAIRS, (-1.0, 1.0)
    ),
    "element-at-argmax": Tie(
        lambda xp, x: xp.take_along_axis(x, xp.argmax(x, axis=1, keepdims=True), 1)[:, 0], _first(np.argmax)
    ),
    "element-at-argmin": Tie(
        lambda xp, x: xp.take_along_axis(x, xp.argmin(x, axis=1, keepdims=True), 1)[:, 0], _first(np.argmin)
    ),
    # order
    "sort": Tie(lambda xp, x: xp.sort(x, axis=1), _ordered(np.eye)),
    "sort-descending": Tie(
        lambda xp, x: xp.sort(x, axis=1, descending=True),
        _ordered(np.eye, descending=True),
        numpy=lambda x: np.sort(x, axis=1)[:, ::-1],
    ),
    "elements-by-argsort": Tie(
        lambda xp, x: xp.take_along_axis(x, xp.argsort(x, axis=1, stable=True), 1), _ordered(np.eye)
    ),
    "topk": Tie(
        lambda xp, x: xp.topk(x, 2).values,
        _ordered(lambda n: np.eye(n)[:2], descending=True),
        numpy=lambda x: np.sort(x, axis=1)[:, :-3:-1],
    ),
    "topk-smallest": Tie(
        lambda xp, x: xp.topk(x, 2, largest=False).values,
        _ordered(lambda n: np.eye(n)[:2]),
        numpy=lambda x: np.sort(x, axis=1)[:, :2],
    ),
    "median": Tie(lambda xp, x: xp.median(x, axis=1), _ordered(_quantiles(0.5))),
    "median-of-even": Tie(lambda xp, x: xp.median(x, axis=1), _ordered(_quantiles(0.5)), ((4, 6),)),
    "median-of-two": Tie(lambda xp, x: xp.median(x, axis=1), None, PAIRS),
    "quantile": Tie(lambda xp, x: xp.quantile(x, 0.375, axis=1), _ordered(_quantiles(0.375))),
    "quantile-at-an-element": Tie(lambda xp, x: xp.quantile(x, 0.25, axis=1), _ordered(_quantiles(0.25))),
    "percentile": Tie(lambda xp, x: xp.percentile(x, 62.5, axis=1), _ordered(_quantiles(0.625))),
    "quantiles": Tie(
        lambda xp, x: xp.quantile(x, xp.asarray([0.125, 0.5, 0.9375]), axis=1).T,
        _ordered(_quantiles(0.125, 0.5, 0.9375)),
    ),
    **{
        f"quantile-{method}": Tie(
            lambda xp, x, method=method: xp.quantile(x, 0.4375, axis=1, method=method),
            _ordered(_quantiles(0.4375, method=method)),
        )
        for method in ("lower", "higher", "nearest", "midpoint")
    },
    "quantile-by-share": Tie(
        lambda xp, x, q: xp.quantile(x, q, axis=1),
        _by_shares,
        ((8, 5), (6,)),
        (0.0, 1.0, 2.0),
        last=(0.0, 0.25, 0.375, 0.625, 0.875, 1.0),
    ),
    # updates and loops
    "at-max": Tie(lambda xp, x, v: x.at[:, [0, 3]].max(v), None, UPDATE, numpy=partial(_updated, np.maximum)),
    "at-min": Tie(lambda xp, x, v: x.at[:, [0, 3]].min(v), None, UPDATE, numpy=partial(_updated, np.minimum)),
    "running-maximum": Tie(
        lambda xp, x: xp.scan(lambda m, row: (xp.maximum(m, row),) * 2, x[:, 0], x.T)[1],
        _running_rule,
        numpy=lambda x: np.maximum.accumulate(x, axis=1).T,
    ),
}
"""Functions, by their names in reports."""
