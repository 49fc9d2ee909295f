"""derivatives.decisions: derivatives at points where a convention decides, and of integers, which have none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.derivatives.bounds import (
    Bounds,
    enclosed,
    measured,
    require_equal,
    require_within,
)
from tensorken_conformance.laws.derivatives.scenarios import main_dtype, tensors
from tensorken_conformance.subject import Subject
from tensorken_core.errors import GradientError
from tensorken_core.language.dtypes import DTYPES, int32
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor

Numbers = list[Any]


@dataclass(frozen=True, slots=True)
class Decision:
    """A function at a point, and its gradient there, which is the transpose of its derivative by forward mode.

    Attributes:
        call: of the operands.
        at: the operands.
        gradients: of the sum of the results by each operand.
        forward: whether forward mode agrees: it does unless a rule of the backward pass computes 0 * inf.
    """

    call: Callable[..., Tensor]
    at: tuple[Numbers, ...]
    gradients: tuple[Numbers, ...]
    forward: bool = True


def _op(name: str) -> Callable[..., Tensor]:
    return lambda *operands: apply(OPS[name], operands, ())


def _one(call: Callable[[Tensor], Tensor], at: Numbers, gradient: Numbers, forward: bool = True) -> Decision:
    return Decision(call, (at,), (gradient,), forward)


def _inner_derivative(x: Tensor) -> Tensor:
    """x times the derivative of x * y by y, which is x: a level that confused the tangents would add to it."""
    one = x * 0.0 + 1.0
    slope: Tensor = tk.jvp(lambda y: x * y, (one,), (one,))[1]
    return x * slope


INFINITE, NOTHING = math.inf, math.nan

DECISIONS: dict[str, Decision] = {
    "max-shares-ties": _one(
        lambda x: tk.max(x, axis=1), [[1, 3, 3, 2], [2, 2, 2, 2]], [[0, 0.5, 0.5, 0], [0.25] * 4]
    ),
    "max-shares-three": _one(lambda x: tk.max(x), [4, 4, -1, 4], [1 / 3, 1 / 3, 0, 1 / 3]),
    "min-shares-ties": _one(lambda x: tk.min(x, axis=0), [[1, 3], [1, 2]], [[0.5, 0], [0.5, 1]]),
    "maximum-shares-ties": Decision(tk.maximum, ([1, 2, 3], [1, 3, 2]), ([0.5, 0, 1], [0.5, 1, 0])),
    "minimum-shares-ties": Decision(tk.minimum, ([1, 2, 3], [1, 3, 2]), ([0.5, 1, 0], [0.5, 0, 1])),
    "max-of-zeros": _one(lambda x: tk.max(x), [0.0, -0.0], [0.5, 0.5]),
    "sort-keeps-order-of-ties": _one(
        lambda x: tk.sort(x) * x.constant([1, 2, 4], x.dtype, (3,)), [1, 1, 0], [2, 4, 1]
    ),
    "relu-at-zero": _one(tk.relu, [-1, 0, -0.0, 2], [0, 0, 0, 1]),
    "abs-at-zero": _one(tk.abs, [-3, 0, -0.0, 3], [-1, 1, 1, 1]),
    "norm-at-zero": _one(lambda x: tk.linalg.vector_norm(x, axis=1), [[0, 0], [3, 4]], [[0, 0], [0.6, 0.8]]),
    "hypot-at-zero": Decision(_op("hypot"), ([0, 3], [0, 4]), ([0, 0.6], [0, 0.8])),
    "atan2-at-zero": Decision(_op("atan2"), ([0, 1], [0, 1]), ([0, 0.5], [0, -0.5])),
    "pow-at-zero": Decision(lambda a, b: a**b, ([0, 0, 0, 0], [0, 1, 2, 3]), ([0, 1, 0, 0], [0, 0, 0, 0])),
    "pow-of-negatives": _one(
        lambda a: a ** a.constant([2, 3, -1], a.dtype, (3,)), [-2, -2, -2], [-4, 12, -0.25]
    ),
    "square-has-two-at-zero": _one(tk.derivative(lambda a: a**2.0), [0, 1], [2, 2]),
    "prod-with-zeros": _one(lambda x: tk.prod(x, axis=1), [[0, 2, 3], [0, 0, 3]], [[6, 0, 0], [0, 0, 0]]),
    "cumprod-with-zeros": _one(tk.cumprod, [2, 0, 3], [1, 8, 0]),
    "infinite-slopes": _one(lambda x: tk.sqrt(x) + tk.log(x), [0], [INFINITE]),
    "where-selects": _one(lambda x: tk.where(x > 0.0, tk.log(x), x * 3.0), [-1, 2], [3, 0.5]),
    "where-guards": _one(
        lambda x: tk.where(x > 0.0, tk.sqrt(tk.where(x > 0.0, x, 1.0)), 0.0), [0, 4, -1], [0, 0.25, 0]
    ),
    "where-does-not-guard-operands": _one(
        lambda x: tk.where(x > 0.0, tk.sqrt(x), 0.0), [0, 4], [NOTHING, 0.25], forward=False
    ),
    "where-selects-cotangents": Decision(
        lambda a, b: tk.sqrt(tk.where(a < b, a, b)), ([0, 4], [4, 0]), ([INFINITE, 0], [0, INFINITE]), False
    ),
    "where-drops-tangents": Decision(
        lambda a, b: tk.where(a > 0.0, a, b), ([1, -1], [5, 7]), ([1, 0], [0, 1])
    ),
    "steps-are-flat": _one(
        lambda x: tk.floor(x) + tk.round(x) + tk.trunc(x) + tk.ceil(x) + tk.sign(x) + x, [1.25, -0.75], [1, 1]
    ),
    "comparisons-are-flat": _one(lambda x: (x > 0.0).astype(x.dtype) * x, [2, -2], [1, 0]),
    "integers-stop": _one(lambda x: x.astype(int32).astype(x.dtype) * x, [2.5, -1.5], [2, -1]),
    "stop-gradient": _one(lambda x: tk.stop_gradient(x) * x, [3, -2], [3, -2]),
    "remainder-of-divisor": Decision(_op("remainder"), ([7.5, -7.5], [2, 2]), ([1, 1], [-3, 4])),
    "repeated-indices-add": _one(
        lambda x: x.gather(x.constant([0, 0, 2], int32, (3,)), 0) * x.constant([1, 2, 4], x.dtype, (3,)),
        [1, 1, 1],
        [3, 0, 4],
    ),
    "unused-operand": Decision(lambda a, b: a * 2.0, ([1, 2], [[1, 2, 3]]), ([2, 2], [[0, 0, 0]])),
    "constant": _one(lambda x: x.constant([5.0], x.dtype, (1,)), [1, 2], [0, 0]),
    "same-operand-twice": _one(lambda x: x * x + x, [3], [7]),
    "infinite-scores": _one(lambda x: tk.logsumexp(x), [1.0, -INFINITE, 1.0], [0.5, 0, 0.5]),
    "nested-levels": _one(_inner_derivative, [3, -2], [6, -4]),
    "empty": _one(lambda x: x.sum(), [], []),
}
"""Points where the specification chooses the derivative, with that derivative."""

REFUSED: dict[str, Callable[[Tensor], Any]] = {
    "jvp": lambda x: tk.jvp(lambda a: a + a, (x,), (x,)),
    "vjp": lambda x: tk.vjp(lambda a: a + a, x),
    "grad": lambda x: tk.grad(lambda a: a.sum())(x),
    "jacfwd": lambda x: tk.jacfwd(lambda a: a + a)(x),
    "jacrev": lambda x: tk.jacrev(lambda a: a + a)(x),
    "hessian": lambda x: tk.hessian(lambda a: a.sum())(x),
}
"""Transforms, which refuse integers and bools."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each decision, and each transform on integers and bools."""
    dtype = main_dtype(subject)
    if dtype is None:
        return
    for name in DECISIONS:
        if subject.depth != "smoke" or name == "max-shares-ties":
            yield Case("derivatives.decisions", name, dtype.name)
    if subject.depth != "smoke":
        for name in REFUSED:
            for kind in ("int32", "bool"):
                yield Case("derivatives.decisions", name, kind)


@law("derivatives.decisions", cases, level=3)
def decisions(subject: Subject, case: Case) -> Measured | None:
    """Ties share, relu'(0) is 0, where selects, steps are flat, stop_gradient stops; integers have no derivative."""
    dtype = DTYPES[case.dtype]
    if case.op in REFUSED:
        (x,) = tensors(subject.stack, [np.array([1, 0], dtype.name)], dtype)
        try:
            REFUSED[case.op](x)
        except GradientError:
            return None
        raise Failure(
            f"{case.op} of {dtype}: expected a GradientError, as it has no derivative, got a result"
        )
    decision = DECISIONS[case.op]
    values = [np.array(x, np.float64) for x in decision.at]

    def compute(interpreter: RawTensor[Any]) -> list[Tensor]:
        at = tensors(interpreter, values, dtype)
        found = [*tk.elementwise_grad(decision.call, tuple(range(len(at))))(*at)]
        if decision.forward:
            rows = tk.jacfwd(decision.call, tuple(range(len(at))))(*at)
            found += [row.sum(tuple(range(row.ndim - x.ndim))) for row, x in zip(rows, at, strict=True)]
        return found

    found = [subject.read(y) for y in compute(subject.stack)]
    expected = [np.array(g, np.float64) for g in decision.gradients] * (2 if decision.forward else 1)
    if not any(np.isfinite(gradient).any() for gradient in expected):  # no finite number needs bounds
        bounds = [Bounds(gradient, gradient) for gradient in expected]
    else:
        bounds = enclosed(subject, compute)
    for values_, within, gradient in zip(found, bounds, expected, strict=True):
        finite = np.isfinite(gradient)
        if values_.shape != gradient.shape or not np.array_equal(
            values_[~finite], gradient[~finite], equal_nan=True
        ):
            raise Failure(f"{case.op}: expected {gradient.tolist()}, got {values_.tolist()}")
        known = Bounds(np.where(finite, within.low, -np.inf), np.where(finite, within.high, np.inf), ~finite)
        require_within(case.op, values_, known)
        require_equal(
            f"the derivative of {case.op}", known, "what is decided", Bounds(gradient, gradient, ~finite)
        )
    return measured(bounds)
