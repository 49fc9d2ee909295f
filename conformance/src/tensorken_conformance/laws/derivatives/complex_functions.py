"""derivatives.complex: derivatives of functions of complex numbers, in both modes, against closed forms."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.derivatives.bounds import certified, measured
from tensorken_conformance.laws.derivatives.closed_forms import DIGITS, require_exact
from tensorken_conformance.laws.derivatives.scenarios import main_dtype
from tensorken_conformance.oracles import complex_functions
from tensorken_conformance.oracles.elementwise_functions import mp
from tensorken_conformance.subject import Subject, parts_of, put_parts
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.tensor import Tensor

ID = "derivatives.complex"

POINTS = (0.75 + 0.5j, -1.5 + 0.25j, -0.5 - 1.25j, 2.0 - 0.75j, 0.375 + 0.0j, 0.625j)
"""A number in each quadrant, and one on each axis, away from branch cuts; exact in every dtype; 0 is added to them."""

MOVED = {"acosh": 2.0}
"""Functions whose points on the real axis are moved off their cut."""

SINGULAR = ("log", "log2", "log10", "sqrt", "reciprocal", "power")
"""Functions that are not tried at 0."""

FIRST, SECOND, COTANGENT = 0.5 - 0.25j, 1.0 + 0.75j, -0.75 + 0.5j
"""The tangents and the cotangent."""

Function = Callable[[Any], Any]

_OF_MANY: dict[str, tuple[Function, Function]] = {
    "cube": (lambda z: z**3, lambda z: z**3),
    "quotient": (lambda z: (z - 1.0) / (z + 2j), lambda z: (z - 1) / (z + mp.mpc(0, 2))),
    "power": (lambda z: z ** (0.5 - 1j), lambda z: mp.exp(mp.mpc(0.5, -1) * mp.log(z))),
    "power-of-constant": (lambda z: (1 + 0.5j) ** z, lambda z: mp.exp(mp.log(mp.mpc(1, 0.5)) * z)),
    "product": (lambda z: tk.exp(z) * tk.sin(z), lambda z: mp.exp(z) * mp.sin(z)),
    "nested": (lambda z: tk.log(tk.cosh(z) + 3.0), lambda z: mp.log(mp.cosh(z) + 3)),
    "real-factor": (lambda z: z * 2.0 - (1.0 - z) / 4.0, lambda z: z * 2 - (1 - z) / 4),
}

HOLOMORPHIC: dict[str, tuple[Function, Function]] = {
    **{
        name: (functools.partial(lambda name, z: getattr(tk, name)(z), name), meaning)
        for name, meaning in complex_functions.FUNCTIONS.items()
        if name != "sign"
    },
    **_OF_MANY,
}
"""Holomorphic functions: on tensors, and at the precision of `mp`."""

REAL: dict[str, tuple[Function, Callable[[Any, Any], Any]]] = {
    "abs": (abs, lambda x, y: mp.hypot(x, y)),
    "angle": (lambda z: tk.angle(z), lambda x, y: mp.atan2(y, x)),
    "square-of-abs": (lambda z: (z * z.conj()).real, lambda x, y: x * x + y * y),
    "real-times-imag": (lambda z: z.real * tk.imag(z), lambda x, y: x * y),
    "log-of-abs": (lambda z: tk.log(z).real, lambda x, y: mp.log(mp.hypot(x, y))),
    "imag-of-exp-of-conj": (lambda z: tk.exp(tk.conj(z)).imag, lambda x, y: -mp.exp(x) * mp.sin(y)),
    "real-of-sign": (lambda z: tk.sign(z).real, lambda x, y: x / mp.hypot(x, y)),
    "abs-of-sine": (lambda z: abs(tk.sin(z)), lambda x, y: abs(mp.sin(mp.mpc(x, y)))),
}
"""Real functions: on complex tensors, and of the real and the imaginary part."""

AT_ZERO: dict[str, Function] = {"abs-at-zero": abs, "angle-at-zero": lambda z: tk.angle(z)}
"""Real functions whose derivatives at 0 are decided to be 0."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each function; in a smoke run one."""
    dtype = main_dtype(subject)
    if dtype is None:
        return
    for name in ("quotient",) if subject.depth == "smoke" else (*HOLOMORPHIC, *REAL, *AT_ZERO):
        yield Case(ID, f"complex-{name}", dtype.name)


def points_of(name: str) -> list[complex]:
    """The points of a function."""
    found = [z + MOVED.get(name, 0.0) if z.imag == 0 else z for z in POINTS]
    return found if name in SINGULAR or name in REAL else [*found, complex(MOVED.get(name, 0.0))]


def made(interpreter: RawTensor[Any], values: Sequence[complex], dtype: Any) -> Tensor:
    """A complex tensor."""
    z = np.array(values)
    return put_parts(interpreter, [z.real, z.imag], dtype)


@law(ID, cases, level=3)
def check_complex(subject: Subject, case: Case) -> Measured:
    """Derivatives of complex functions are the complex ones, or df/dx - i df/dy of real functions, to second order.

    A tangent of a holomorphic function is multiplied by its derivative, and so is a cotangent, without conjugates.  A
    real function pulls 1 back to df/dx - i df/dy, and pushes dx + i dy to df/dx dx + df/dy dy.  Second derivatives are
    equal in three compositions of the modes.  The derivatives of abs and angle at 0 are 0.
    """
    name, dtype = case.op.partition("-")[2], DTYPES[case.dtype]
    if name in AT_ZERO:
        z = made(subject.stack, [0j, 1j], dtype)
        gradient = tk.grad(lambda z: AT_ZERO[name](z).sum())(z)
        got = [subject.read(part)[0] for part in parts_of(gradient)]
        if any(got):
            raise Failure(f"{name}: expected the derivative 0 at 0, got parts {got}")
        return Measured()
    points = points_of(name)
    ways = [
        "tangent",
        "cotangent",
        "tangent of the tangent",
        "tangent of the cotangent",
        "cotangent of the tangent",
    ]
    function = (HOLOMORPHIC.get(name) or REAL[name])[0]

    def compute(interpreter: RawTensor[Any]) -> list[Tensor]:
        z, t, s, v = [
            made(interpreter, [value] * len(points) if isinstance(value, complex) else value, dtype)
            for value in (points, FIRST, SECOND, COTANGENT)
        ]
        u = v if name in HOLOMORPHIC else v.real

        def pushed(z: Tensor) -> Any:
            return tk.jvp(function, (z,), (t,))[1]

        def pulled(z: Tensor) -> Any:
            return tk.vjp(function, z)[1](u)[0]

        results = [pushed(z), pulled(z), *[tk.jvp(f, (z,), (s,))[1] for f in (pushed, pulled)]]
        results.append(tk.vjp(pushed, z)[1](u)[0])
        return [part for y in results for part in parts_of(y)]

    exact = holomorphic(name, points) if name in HOLOMORPHIC else real(name, points)
    parts_of_ways = [
        (way, part) for way, parts in zip(ways, exact, strict=True) for part in PARTS[: len(parts)]
    ]
    names = [f"{name}: {part} of the {way}" for way, part in parts_of_ways]
    bounds, _ = certified(subject, compute, names)
    each = [part for parts in exact for part in parts]
    for label, within, expected in zip(names, bounds, each, strict=True):
        require_exact(label, within, expected, points)
    return measured(bounds)


PARTS = ("real part", "imaginary part")

Numbers = list[Any]
"""A part of a result at each point, as numbers of mpmath."""


@functools.cache
def derivatives(name: str, point: complex) -> list[Any]:
    """The first two derivatives of a holomorphic function."""
    with mp.workdps(2 * DIGITS):
        return [mp.diff(HOLOMORPHIC[name][1], mp.mpc(point), order) for order in (1, 2)]


def holomorphic(name: str, points: Sequence[complex]) -> list[list[Numbers]]:
    """The parts of the results of a holomorphic function."""
    found = []
    with mp.workdps(2 * DIGITS):
        t, s, v = map(mp.mpc, (FIRST, SECOND, COTANGENT))
        for order, factor in ((0, t), (0, v), (1, t * s), (1, v * s), (1, t * v)):
            values = [derivatives(name, z)[order] * factor for z in points]
            found.append([[w.real for w in values], [w.imag for w in values]])
    return found


@functools.cache
def partials(name: str, point: complex) -> dict[tuple[int, int], Any]:
    """The partial derivatives of a real function up to the second order."""
    with mp.workdps(2 * DIGITS):
        at = (mp.mpf(point.real), mp.mpf(point.imag))
        orders = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
        return {order: mp.diff(REAL[name][1], at, order) for order in orders}


def real(name: str, points: Sequence[complex]) -> list[list[Numbers]]:
    """The parts of the results of a real function; the cotangent is a real number."""
    u = mp.mpf(COTANGENT.real)
    found: list[list[Numbers]] = [[[]], [[], []], [[]], [[], []], [[], []]]
    with mp.workdps(2 * DIGITS):
        for point in points:
            d = partials(name, point)
            gradient = d[1, 0], d[0, 1]
            rows = (d[2, 0], d[1, 1]), (d[1, 1], d[0, 2])
            found[0][0].append(_dot(gradient, FIRST))
            found[2][0].append(_dot([_dot(row, FIRST) for row in rows], SECOND))
            pulled = [u * x for x in gradient]
            twice = [[u * _dot(row, along) for row in rows] for along in (SECOND, FIRST)]
            for place, (x, y) in ((1, pulled), (3, twice[0]), (4, twice[1])):
                found[place][0].append(x)
                found[place][1].append(-y)
    return found


def _dot(row: Sequence[Any], z: complex) -> Any:
    return row[0] * mp.mpf(z.real) + row[1] * mp.mpf(z.imag)
