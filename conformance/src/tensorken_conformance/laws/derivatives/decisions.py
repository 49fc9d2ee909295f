"""derivatives.decisions: derivatives at ties and other points where a convention decides, and of integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.derivatives.scenarios import main_dtype, tensors
from tensorken_conformance.laws.derivatives.ties import TIES, Numbers, Tie
from tensorken_conformance.subject import Array, Subject
from tensorken_core.errors import GradientError
from tensorken_core.language.dtypes import DTYPES, int32
from tensorken_core.language.op import OPS
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor


def _op(name: str) -> Callable[..., Tensor]:
    return lambda *operands: apply(OPS[name], operands, ())


def _decided(
    call: Callable[..., Tensor], at: tuple[Numbers, ...], gradients: tuple[Numbers, ...], forward: bool = True
) -> Tie:
    return Tie(
        lambda _, *xs: call(*xs), lambda w, *xs: [np.array(g) for g in gradients], at=at, forward=forward
    )


def _one(call: Callable[[Tensor], Tensor], at: Numbers, gradient: Numbers, forward: bool = True) -> Tie:
    return _decided(call, (at,), (gradient,), forward)


def _inner_derivative(x: Tensor) -> Tensor:
    """x times the derivative of x * y by y, which is x: a level that confused the tangents would add to it."""
    one = x * 0.0 + 1.0
    slope: Tensor = tk.jvp(lambda y: x * y, (one,), (one,))[1]
    return x * slope


INFINITE, NOTHING = math.inf, math.nan

DECISIONS: dict[str, Tie] = {
    "max-of-zeros": _one(lambda x: tk.max(x), [0.0, -0.0], [0.5, 0.5]),
    "relu-at-zero": _one(tk.relu, [-1, 0, -0.0, 2], [0, 0, 0, 1]),
    "abs-at-zero": _one(tk.abs, [-3, 0, -0.0, 3], [-1, 1, 1, 1]),
    "norm-at-zero": _one(lambda x: tk.linalg.vector_norm(x, axis=1), [[0, 0], [3, 4]], [[0, 0], [0.6, 0.8]]),
    "hypot-at-zero": _decided(_op("hypot"), ([0, 3], [0, 4]), ([0, 0.6], [0, 0.8])),
    "atan2-at-zero": _decided(_op("atan2"), ([0, 1], [0, 1]), ([0, 0.5], [0, -0.5])),
    "pow-at-zero": _decided(lambda a, b: a**b, ([0, 0, 0, 0], [0, 1, 2, 3]), ([0, 1, 0, 0], [0, 0, 0, 0])),
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
    "where-selects-cotangents": _decided(
        lambda a, b: tk.sqrt(tk.where(a < b, a, b)), ([0, 4], [4, 0]), ([INFINITE, 0], [0, INFINITE]), False
    ),
    "steps-are-flat": _one(
        lambda x: tk.floor(x) + tk.round(x) + tk.trunc(x) + tk.ceil(x) + tk.sign(x) + x, [1.25, -0.75], [1, 1]
    ),
    "comparisons-are-flat": _one(lambda x: (x > 0.0).astype(x.dtype) * x, [2, -2], [1, 0]),
    "integers-stop": _one(lambda x: x.astype(int32).astype(x.dtype) * x, [2.5, -1.5], [2, -1]),
    "stop-gradient": _one(lambda x: tk.stop_gradient(x) * x, [3, -2], [3, -2]),
    "remainder-of-divisor": _decided(_op("remainder"), ([7.5, -7.5], [2, 2]), ([1, 1], [-3, 4])),
    "repeated-indices-add": _one(
        lambda x: x.gather(x.constant([0, 0, 2], int32, (3,)), 0) * x.constant([1, 2, 4], x.dtype, (3,)),
        [1, 1, 1],
        [3, 0, 4],
    ),
    "unused-operand": _decided(lambda a, b: a * 2.0, ([1, 2], [[1, 2, 3]]), ([2, 2], [[0, 0, 0]])),
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


TOLERANCE = 2.0**-10
"""The tolerance of a gradient: shares of a third are rounded, and a wrong share differs by much more."""

SMOKE = ("max", "median")
"""The rows of the smoke run."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each tie and decision, and each transform on integers and bools; a deep run draws the ties again."""
    dtype = main_dtype(subject)
    if dtype is None:
        return
    for name, tie in (TIES | DECISIONS).items():
        if subject.depth != "smoke" or name in SMOKE:
            for number in range(8 if subject.depth == "deep" and not tie.at else 1):
                yield Case("derivatives.decisions", name, dtype.name, detail=str(number or ""))
    if subject.depth != "smoke":
        for name in REFUSED:
            for kind in ("int32", "bool"):
                yield Case("derivatives.decisions", name, kind)


@law("derivatives.decisions", cases, level=3)
def decisions(subject: Subject, case: Case) -> None:
    """Ties share, or go to the selected element, where selects, steps are flat; integers have no derivative.

    Also elsewhere, derivatives at corners are those of the convention, or else central differences: in both modes,
    under jit and under vmap.
    """
    dtype, rng = DTYPES[case.dtype], subject.random(case)
    if case.op in REFUSED:
        (x,) = tensors(subject.stack, [np.array([1, 0], dtype.name)], dtype)
        try:
            REFUSED[case.op](x)
        except GradientError:
            return
        raise Failure(
            f"{case.op} of {dtype}: expected a GradientError, as it has no derivative, got a result"
        )
    tie = (TIES | DECISIONS)[case.op]
    xs = tie.draw(rng)
    operands, at = tensors(subject.stack, xs, dtype), tuple(range(len(xs)))
    value = subject.read(tie.call(_Namespace(operands[0]), *operands))
    w = np.ones(value.shape)
    if not tie.at:
        _agree(f"{case.op}: value", value, tie.value(*xs), xs)
        w = np.array([rng.choice((1.0, 2.0, 3.0, -1.0)) for _ in range(w.size)]).reshape(w.shape)
    (weights,) = tensors(subject.stack, [w], dtype)

    def loss(*operands: Tensor) -> Tensor:
        result: Tensor = (tie.call(_Namespace(operands[0]), *operands) * weights).sum()
        return result

    gradient = tk.grad(loss, at)
    expected = tie.gradients(w, xs)
    modes: dict[str, Callable[..., Any]] = {"reverse mode": gradient, "jit(grad)": tk.jit(gradient)}
    if tie.forward:
        modes["forward mode"] = tk.jacfwd(loss, at)
    for mode, transformed in modes.items():
        for got, expected_gradient in zip(transformed(*operands), expected, strict=True):
            _agree(f"{case.op} in {mode}", subject.read(got), expected_gradient, xs)
    others = xs if tie.at else [np.flip(x, -1) for x in xs]
    batches = tensors(subject.stack, [np.stack(pair) for pair in zip(xs, others, strict=True)], dtype)
    for got, *both in zip(tk.vmap(gradient)(*batches), expected, tie.gradients(w, others), strict=True):
        _agree(f"{case.op} in vmap(grad)", subject.read(got), np.stack(both), xs)


class _Namespace:
    """The namespace of tensorken, in which `asarray` makes a tensor on the backend of the operands."""

    def __init__(self, beside: Tensor) -> None:
        self._beside = beside

    def __getattr__(self, name: str) -> Any:
        return getattr(tk, name)

    def asarray(self, values: list[float]) -> Tensor:
        x = self._beside
        return x.constant(values, x.dtype, (len(values),))


def _agree(what: str, got: Array, expected: Array, xs: Sequence[Array]) -> None:
    if got.shape != expected.shape or not np.allclose(
        got, expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True
    ):
        at = ", ".join(str(x.tolist()) for x in xs)
        raise Failure(f"{what}: expected {expected.tolist()} at {at}, got {got.tolist()}")
