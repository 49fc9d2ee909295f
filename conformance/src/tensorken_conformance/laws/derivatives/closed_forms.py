"""derivatives.orders: the first four derivatives along lines, in every mix of the modes, against closed forms."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.derivatives.bounds import Bounds, certified, measured
from tensorken_conformance.laws.derivatives.scenarios import dyadic, main_dtype, tensors, uniform, uniforms
from tensorken_conformance.oracles.elementwise import VALUES
from tensorken_conformance.oracles.elementwise_functions import mp
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor

DIGITS = 60
"""The digits of the expected derivatives; finite differences lose half of them."""

LARGEST_ORDER = 4

Real = Any
"""A number of mpmath."""

MODES: dict[str, Callable[[Any], Any]] = {"f": tk.derivative, "r": tk.elementwise_grad}
"""Forward and reverse mode, of elementwise functions."""


ANY_ORDER = ("mul", "div", "pow", "reciprocal", "sqrt", "exp", "log", "sin", "tanh", "erf")
"""The ops whose third and fourth derivatives are tried; a deep run tries those of all ops."""


@dataclass(frozen=True, slots=True)
class Line:
    """A function of one number, on tensors and in real numbers.

    Attributes:
        call: the number as a tensor, and the constants, to a tensor of shape ().
        meaning: the number and the constants, as mpmath's numbers and matrices, to a number.
        draw: the constants.
        at: the number.
    """

    call: Callable[..., Tensor]
    meaning: Callable[..., Real]
    draw: Callable[[random.Random], list[Array]]
    at: float = 0.5


def _integers(*shapes: tuple[int, ...]) -> Callable[[random.Random], list[Array]]:
    def drawn(rng: random.Random, shape: tuple[int, ...]) -> Array:
        return np.array([float(rng.randint(-3, 3)) for _ in range(int(np.prod(shape)))]).reshape(shape)

    return lambda rng: [drawn(rng, shape) for shape in shapes]


def _numbers(*shapes: tuple[int, ...]) -> Callable[[random.Random], list[Array]]:
    return functools.partial(uniforms, shapes, -1.0, 1.0)


def _dominant(rng: random.Random) -> list[Array]:
    a, b = _integers((2, 2), (2, 2))(rng)
    return [a + np.diag([9.0, 16.0]), b]


def _each(x: Any, s: Real, v: Any) -> list[Real]:
    return [a + s * b for a, b in zip(list(x), list(v), strict=True)]


def _cube(a: Any, s: Real, b: Any) -> Real:
    m = a + s * b
    return sum(m * m * m)


LINES: dict[str, Line] = {
    "polynomial": Line(
        lambda s: ((s * 3.0 - 2.0) * s + 1.0) * s * s, lambda s: 3 * s**4 - 2 * s**3 + s**2, _numbers()
    ),
    "rational": Line(lambda s: (s * s + 1.0) / (s - 3.0), lambda s: (s * s + 1) / (s - 3), _numbers()),
    "nested": Line(lambda s: tk.exp(tk.sin(s) * tk.log(s + 2.0)), lambda s: (s + 2) ** mp.sin(s), _numbers()),
    "power-tower": Line(lambda s: (s + 1.0) ** (s * s), lambda s: (s + 1) ** (s * s), _numbers()),
    "matmul-cube": Line(
        lambda s, a, b: ((a + s * b) @ (a + s * b) @ (a + s * b)).sum(),
        lambda s, a, b: _cube(a, s, b),
        _integers((3, 3), (3, 3)),
        at=2.0,
    ),
    "matmul-quartic": Line(
        lambda s, x, m: (((x * s) @ m) * (x @ m.mT * s * s * s)).sum(),
        lambda s, x, m: s**4 * (x * m * (x * m.T).T)[0],
        _integers((1, 3), (3, 3)),
        at=1.0,
    ),
    "determinant": Line(
        lambda s, a, b: tk.linalg.det(a + s * b), lambda s, a, b: mp.det(a + s * b), _dominant, at=1.0
    ),
    "inverse": Line(
        lambda s, a, b: (a + s * b).apply(OPS["inv"]).sum(), lambda s, a, b: sum((a + s * b) ** -1), _dominant
    ),
    "product": Line(
        lambda s, x, v: tk.prod(x + s * v),
        lambda s, x, v: mp.fprod(_each(x, s, v)),
        _integers((4,), (4,)),
        at=1.0,
    ),
    "logsumexp": Line(
        lambda s, x, v: tk.logsumexp(x + s * v),
        lambda s, x, v: mp.log(mp.fsum([mp.exp(t) for t in _each(x, s, v)])),
        _numbers((4,), (4,)),
    ),
    "softmax": Line(
        lambda s, x, v: tk.softmax(x + s * v, axis=0)[0],
        lambda s, x, v: mp.exp(x[0] + s * v[0]) / mp.fsum([mp.exp(t) for t in _each(x, s, v)]),
        _numbers((4,), (4,)),
    ),
    "norm": Line(
        lambda s, x, v: tk.linalg.vector_norm(x + s * v),
        lambda s, x, v: mp.norm(_each(x, s, v)),
        _numbers((4,), (4,)),
    ),
    "gather-powers": Line(
        lambda s, x, v: ((x + s * v).at[1].multiply(s * s) ** 3).sum(),
        lambda s, x, v: mp.fsum([(t * (s * s if i == 1 else 1)) ** 3 for i, t in enumerate(_each(x, s, v))]),
        lambda rng: [uniform(rng, (3,), 1.0, 2.0), uniform(rng, (3,), 0.0, 1.0)],
    ),
}
"""The functions by name."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each function and order; two orders of ops whose rules consist of other ops, except in a deep run."""
    dtype = main_dtype(subject)
    if dtype is None:
        return
    names = [name for name in VALUES if name in OPS]
    if subject.depth == "smoke":
        yield Case("derivatives.orders", "nested", dtype.name, detail="order-3")
        return
    for name in [*names, *LINES]:
        known = name in LINES or name in ANY_ORDER or subject.depth == "deep"
        for order in range(1, 1 + (LARGEST_ORDER if known else 2)):
            yield Case("derivatives.orders", name, dtype.name, detail=f"order-{order}")


MIXED = ("polynomial", "nested", "matmul-cube", "logsumexp")
"""The functions whose third derivatives are tried in all mixes of the modes; a deep run tries all functions."""


def mixes(name: str, order: int, depth: str) -> list[str]:
    """The mixes of the modes, the innermost first: all of the lower orders, a few of the higher ones."""
    if depth != "deep" and order > (3 if name in MIXED else 2):
        return {3: ["fff", "rrr", "frf", "rfr"], 4: ["ffff", "rrrr", "rfrf", "ffrr"]}[order]
    return ["".join(mix) for mix in itertools.product(MODES, repeat=order)]


@law("derivatives.orders", cases, level=3)
def orders(subject: Subject, case: Case) -> Measured:
    """Derivatives of the orders 1 to 4, in mixed modes, equal closed forms: of polynomials, powers, exp, ..."""
    order, rng, dtype = int(case.detail[-1]), subject.random(case), DTYPES[case.dtype]
    if case.op in LINES:
        line = LINES[case.op]
        constants = [x.astype(dtype.name) for x in line.draw(rng)]
        exact = [closed_form(line.meaning, line.at, constants, order)]
        points = np.array(line.at)
        function = line.call
    else:
        count = OPS[case.op].arity or 1
        at = [uniform(rng, (3,), *OPS[case.op].domain).astype(dtype.name) for _ in range(count)]
        along = [dyadic(rng, (3,)) for _ in range(count)]
        constants, points = [*at, *along], np.zeros(3)

        def meaning(s: Real, *rows: Real) -> Real:
            return VALUES[case.op](*[x + s * v for x, v in zip(rows[:count], rows[count:], strict=True)])

        def function(s: Tensor, *rows: Tensor) -> Tensor:
            moved = [x + s * v for x, v in zip(rows[:count], rows[count:], strict=True)]
            return apply(OPS[case.op], moved)  # type: ignore[no-any-return]

        exact = [closed_form(meaning, 0.0, [x[k] for x in constants], order) for k in range(3)]
    ways = mixes(case.op, order, subject.depth)

    def compute(interpreter: RawTensor[Any]) -> list[Tensor]:
        s, *given = tensors(interpreter, [points, *constants], dtype)
        found = []
        for way in ways:
            derived: Any = lambda s: function(s, *given)  # noqa: E731
            for mode in way:
                derived = MODES[mode](derived)
            found.append(derived(s))
        return found

    bounds, _ = certified(subject, compute, [f"{case.op}: derivative {way}" for way in ways])
    for way, within in zip(ways, bounds, strict=True):
        require_exact(f"{case.op}: derivative {way}", within, exact)
    return measured(bounds)


def require_exact(name: str, within: Bounds, exact: Sequence[Real], places: Sequence[Any] = ()) -> None:
    """Require bounds of elements to hold numbers that are known to DIGITS / 2 digits.

    Args:
        name: of the tensor, for messages.
        within: the bounds.
        exact: a number for each element.
        places: a name for each element, for messages.

    Raises:
        Failure: if one does not.
    """
    for k, (low, high, value) in enumerate(zip(within.low.flat, within.high.flat, exact, strict=True)):
        with mp.workdps(DIGITS):
            room = (1 + abs(value)) * mp.mpf(10) ** (-DIGITS // 2)
            holds = mp.mpf(float(low)) <= value + room and value - room <= mp.mpf(float(high))
        if not holds:
            raise Failure(
                f"{name}{f' at {places[k]}' if places else ''}: expected {mp.nstr(value, 20)}, "
                f"which is not between {low.item()!r} and {high.item()!r}, so a rule is wrong"
            )


def closed_form(meaning: Callable[..., Real], at: float, constants: Sequence[Any], order: int) -> Real:
    """The derivative of a function of real numbers, from differences with twice the digits of the result."""
    with mp.workdps(DIGITS):
        given = [_as_real(np.asarray(x, np.float64)) for x in constants]
        return mp.diff(lambda s: meaning(s, *given), mp.mpf(at), order)


def _as_real(x: Array) -> Any:
    if x.ndim == 2:
        return mp.matrix(x.tolist())
    return mp.mpf(float(x)) if x.ndim == 0 else [mp.mpf(v) for v in x.tolist()]
