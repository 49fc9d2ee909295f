"""values.complex-edges: functions of complex numbers on branch cuts, at zeros of both signs, infinities and NaN."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.oracles import complex_functions, complex_special_values
from tensorken_conformance.oracles.complex_special_values import inf, nan
from tensorken_conformance.subject import Array, Subject, parts_of, put_parts
from tensorken_core.language.dtypes import DTYPES, float32

ID = "values.complex-edges"

PARTS = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0, inf, -inf, nan)
"""The numbers of which all pairs are tried: on the axes, within and beyond the branch points."""

POINTS = [*itertools.product(PARTS, PARTS)]

NAMES = [
    name
    for name in complex_functions.FUNCTIONS
    if name
    in {**complex_special_values.TABLES, **complex_special_values.TURNED, "cos": (), "log2": (), "log10": ()}
]
"""The functions with tables of special values."""

TOLERANCE = {"float32": 2.0**-18, "float64": 2.0**-47}
"""The relative error of numbers that are neither 0 nor infinite; values.complex has their bounds."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A computation with exact results.

    Attributes:
        call: on the namespace, tensorken or numpy, and the operands.
        operands: complex numbers and real ones.
        expected: the result; None: that of numpy.
    """

    call: Callable[..., Any]
    operands: tuple[Any, ...]
    expected: list[Any] | None = None


_A = [1 + 2j, -3 + 1j, 2 - 2j]
_B = [-1 + 1j, 2 + 3j, 1j]
_M = [[1 + 2j, -1j, 3], [2 - 1j, 1 + 1j, -2]]

FACTS: dict[str, Fact] = {
    "conj": Fact(lambda xp, z: xp.conj(z), ([complex(1, -0.0), complex(-0.0, 2), complex(inf, -inf)],)),
    "negation": Fact(lambda xp, z: -z, ([complex(0.0, -0.0), complex(-1, inf)],)),
    "plus-real": Fact(
        lambda xp, z, x: z + x,
        ([complex(-0.0, -0.0), complex(1, -0.0)], [-0.0, 1.0]),
        [complex(-0.0, -0.0), complex(2, -0.0)],
    ),
    "from-real": Fact(
        lambda xp, z, x: x - z,
        ([complex(1, 0.0), complex(1, -0.0)], [1.0, 2.0]),
        [complex(0.0, -0.0), complex(1, 0.0)],
    ),
    "times-real": Fact(
        lambda xp, z, x: x * z,
        ([complex(inf, 1), complex(-0.0, 3), complex(2, nan)], [2.0, -2.0, 0.5]),
        [complex(inf, 2), complex(0.0, -6), complex(1, nan)],
    ),
    "over-real": Fact(
        lambda xp, z, x: z / x,
        ([complex(inf, 1), complex(3, -0.0)], [2.0, -2.0]),
        [complex(inf, 0.5), complex(-1.5, 0.0)],
    ),
    "abs": Fact(
        lambda xp, z: abs(z),
        ([complex(inf, nan), complex(nan, -inf), complex(-3, 4), complex(-0.0, -0.0), complex(nan, 1)],),
        [inf, inf, 5.0, 0.0, nan],
    ),
    "abs-of-large": Fact(lambda xp, z: abs(z), ([complex(2.0**127, 2.0**80), complex(2.0**-120, 0)],)),
    "angle-of-zeros": Fact(
        lambda xp, z: xp.angle(z) * 0 + xp.copysign(1.0, xp.angle(z)),
        ([complex(1, -0.0), complex(-1, -0.0), complex(-1, 0.0), complex(0.0, 0.0), complex(-0.0, -0.0)],),
        [-1.0, -1.0, 1.0, 1.0, -1.0],
    ),
    "powers-of-zero": Fact(lambda xp, z, w: z**w, ([0j, 0j, 0j], [0j, 1 + 1j, 2 + 0j]), [1 + 0j, 0j, 0j]),
    "sign-of-zero": Fact(lambda xp, z: xp.sign(z), ([0j, 3j, -2 + 0j],), [0j, 1j, -1 + 0j]),
    "reciprocal-of-large": Fact(
        lambda xp, z: 1 / z, ([complex(2.0**100, 2.0**100)],), [complex(2.0**-101, -(2.0**-101))]
    ),
    "equal": Fact(
        lambda xp, a, b: a == b,
        ([1 + 2j, 1 + 2j, complex(nan, 0), complex(0.0, -0.0)], [1 + 2j, 1 - 2j, complex(nan, 0), 0j]),
    ),
    "sort": Fact(lambda xp, z: xp.sort(z), ([1 + 1j, 1 - 1j, 5j, -1 + 9j, 1 + 0j],)),
    "product": Fact(lambda xp, a, b: a * b, (_A, _B)),
    "square": Fact(lambda xp, a: xp.square(a), (_A,)),
    "prod": Fact(lambda xp, a: xp.prod(a), (_A,)),
    "cumprod": Fact(lambda xp, a: xp.cumprod(a), (_A,)),
    "sum": Fact(lambda xp, a, b: xp.sum(a) + xp.cumsum(b), (_A, _B)),
    "mean": Fact(lambda xp, a, b: xp.mean(a * b + a), ([4 + 8j, -12 + 4j], [1j, 2 + 0j])),
    "variance": Fact(lambda xp, a: xp.var(a), ([1 + 2j, -3 + 4j],)),
    "where": Fact(lambda xp, a, b: xp.where(xp.real(a) > 0, a, b), (_A, _B)),
    "matmul": Fact(lambda xp, m, a: m @ a, (_M, _A)),
    "vdot": Fact(lambda xp, a, b: xp.vdot(a, b), (_A, _B)),
    "vecdot": Fact(lambda xp, a, b: xp.linalg.vecdot(a, b), (_A, _B)),
    "inner": Fact(lambda xp, a, b: xp.inner(a, b), (_A, _B)),
    "outer": Fact(lambda xp, a, b: xp.outer(a, b), (_A, _B)),
    "einsum": Fact(lambda xp, m, a: xp.einsum("ij,j->i", m, xp.conj(a)), (_M, _A)),
    "convolve": Fact(lambda xp, a, b: xp.convolve(a, b), (_A, _B)),
    "adjoint": Fact(lambda xp, m: xp.conj(m).T, (_M,)),
}  # fmt: skip
"""Computations whose results are exact, or zeros, infinities and NaN."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each function and each fact; in a smoke run a function."""
    wide = [dtype for dtype in subject.dtypes() if dtype.name in ("float32", "float64")]
    for dtype in subject.sampled(wide):
        if subject.depth == "smoke":
            yield Case(ID, "complex-log", dtype.name)
            continue
        yield from [Case(ID, f"complex-{name}", dtype.name) for name in (*NAMES, *FACTS)]


@functools.cache
def expected(name: str) -> list[tuple[str, str]]:
    """The parts of the results at all points."""
    found = []
    for x, y in POINTS:
        parts = complex_special_values.special(name, x, y)
        if parts is None:
            z = complex_functions.exactly(name, x, y)
            parts = repr(complex_functions.part(z.real)), repr(complex_functions.part(z.imag))
        found.append(parts)
    return found


@law(ID, cases, level=2)
def check_edges(subject: Subject, case: Case) -> None:
    """Results on branch cuts, at zeros, infinities, NaN and poles are those of the array API standard.

    On a branch cut the sign of a zero decides; zeros and infinities in results have the signs of the limit, where the
    standard does not leave them open.  They are the same under jit and vmap.  Real operands have no imaginary part, and
    computations of small integers are exact, with conjugates where numpy has them.
    """
    name, dtype = case.op.partition("-")[2], DTYPES[case.dtype]
    compiled = dtype is float32 or subject.depth == "deep"
    if name in FACTS and name not in NAMES:
        _check_fact(subject, case, FACTS[name], compiled)
        return
    z = put_parts(subject.stack, np.array(POINTS, case.dtype).T, dtype)

    def function(z: Any) -> Any:
        return getattr(tk, name)(z)  # looked up at each call, as faults replace functions

    _compare(subject, name, case.dtype, function(z))
    if compiled:
        _compare(subject, f"{name} under jit", case.dtype, tk.jit(function)(z))
        _compare(subject, f"{name} under vmap", case.dtype, tk.vmap(function)(z))


def _compare(subject: Subject, name: str, dtype: str, y: Any) -> None:
    rows = zip(POINTS, subject.read(y.real).tolist(), subject.read(y.imag).tolist(), strict=True)
    for ((a, b), *parts), wanted in zip(rows, expected(name.partition(" ")[0]), strict=True):
        for part, of in zip(parts, wanted, strict=True):
            if not complex_special_values.agrees(part, of, TOLERANCE[dtype]):
                raise Failure(
                    f"{name}({complex(a, b)}): expected parts {' and '.join(wanted)}, got {parts[0]!r} and {parts[1]!r}"
                )


def _check_fact(subject: Subject, case: Case, fact: Fact, compiled: bool) -> None:
    dtype = DTYPES[case.dtype]
    wide = "complex64" if case.dtype == "float32" else "complex128"
    arrays = [np.array(x) for x in fact.operands]
    arrays = [x.astype(wide if x.dtype.kind == "c" else case.dtype) for x in arrays]
    if fact.expected is None:
        with np.errstate(all="ignore"):
            wanted = np.asarray(fact.call(np, *arrays))
    else:
        wanted = np.array(fact.expected)
    parts = [[x.real, x.imag] if x.dtype.kind == "c" else [x] for x in arrays]
    operands = [put_parts(subject.stack, of_one, dtype) for of_one in parts]
    results = {"": fact.call(tk, *operands)}
    if compiled:
        results[" under jit"] = tk.jit(lambda *xs: fact.call(tk, *xs))(*operands)
    for how, y in results.items():
        got = [subject.read(part) for part in parts_of(y)]
        models: list[Array] = [wanted.real, wanted.imag] if y.dtype.kind == "complex" else [wanted]
        for x, model in zip(got, models, strict=True):
            same = (x == model) & (np.signbit(x) == np.signbit(model)) | (x != x) & (model != model)
            if x.dtype.kind == "b":
                same = x == model
            if x.shape != model.shape or not same.all():
                raise Failure(
                    f"{case.op}{how}: expected {wanted.tolist()}, got parts {[v.tolist() for v in got]}"
                )
