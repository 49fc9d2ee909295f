"""values.factorizations: factors of matrices, solutions, inverses, determinants, to the backward errors of theorems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.factorizations import factors, operands, systems
from tensorken_conformance.laws.factorizations.residuals import Given, demand
from tensorken_conformance.layouts import shapes
from tensorken_conformance.limits import NARROW
from tensorken_conformance.operands import reductions
from tensorken_conformance.oracles import exact, terms
from tensorken_conformance.oracles.bounds import Arithmetic, Array
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS

ID = "values.factorizations"


@dataclass(frozen=True, slots=True)
class Kind:
    """The cases and the check of an op on matrices.

    Attributes:
        matrix: the kind of matrices, as in operands.py.
        check: checks the results of one matrix.
        rectangular: whether it takes matrices that are not square.
        details: the params by their names in ids, with the kind of matrix where that depends on them.
        values: additional value classes.
        without: regular classes that do not apply.
    """

    matrix: str
    check: Callable[[Given], float | None]
    rectangular: bool = False
    details: dict[str, tuple[Any, ...]] = field(default_factory=lambda: {"": ()})
    values: tuple[str, ...] = ("nan",)
    without: tuple[str, ...] = ()


KINDS: dict[str, Kind] = {
    "cholesky": Kind("positive", factors.cholesky, values=("garbage", "indefinite", "nan")),
    "qr": Kind("general", factors.qr, True, {"reduced": (False,), "complete": (True,)}, ("singular", "nan")),
    "eigh": Kind("symmetric", factors.eigh, values=("garbage", "nan")),
    "eigvalsh": Kind("symmetric", factors.eigvalsh, values=("garbage", "nan")),
    "svd": Kind("general", factors.svd, True, {"thin": (False,), "full": (True,)}, ("singular", "nan")),
    "svdvals": Kind("general", factors.svdvals, True, values=("singular", "nan")),
    "solve": Kind("general", systems.solve, values=("singular", "nan")),
    "triangular_solve": Kind(
        "general",
        systems.triangular_solve,
        details={"lower": (True,), "upper": (False,)},
        values=("garbage", "singular", "nan"),
    ),
    "inv": Kind("general", systems.inv, values=("singular", "nan")),
    "det": Kind("general", systems.det, values=("singular", "nan"), without=("scaled",)),
    "cofactors": Kind("general", systems.cofactors, values=("singular", "nan"), without=("scaled",)),
    "slogdet": Kind("general", systems.slogdet, values=("singular", "nan")),
    "pinv": Kind("deficient", systems.pinv, True, without=("graded", "nearly-singular")),
}
"""The ops on matrices."""

ALWAYS = ("qr", "svd", "svdvals", "cofactors")
"""Ops that singular matrices have, too."""

VIEWS = ("permuted", "flipped", "cropped", "expanded")
"""The shape classes whose movements are tried."""

MODELS = ("3x3", "batch", "7x4")
"""The shapes on which views are tried."""

SLOW = {"eigvalsh": 5, "svdvals": 5, "cofactors": 5, "det": 5, "slogdet": 5, "pinv": 5}
"""The largest size of ops whose oracle is slow."""

LARGE: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    **dict.fromkeys(
        ("cholesky", "triangular_solve", "solve", "inv"), (operands.DOMINANT, ("65x65",), ("130x130",))
    ),
    "qr": ("normals", ("65x65", "130x130"), ()),
    "eigh": ("normals", (), ("65x65",)),
    "svd": ("normals", (), ("65x65",)),
}
"""The values and shapes of large matrices, by op, and the shapes that only deep runs have: few, as they take long.

There are none of ops whose oracle is slow.
"""

RIGHT_SIDES = 2
"""The number of right-hand sides."""

CUT = {"float32": 2.0**-10, "float64": 2.0**-30}
"""The relative tolerance of pinv, which separates singular values from rounding errors of zero."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each op, dtype and shape on regular matrices; views and irregular matrices on some shapes; few large ones."""
    dtypes = [dtype for dtype in reductions.dtypes_of(subject, ("float",)) if dtype.name not in NARROW]
    for op, kind in KINDS.items():
        for dtype in dtypes:
            for shape, sizes in (operands.SQUARE | operands.RECTANGULAR).items():
                if not kind.rectangular and shape in operands.RECTANGULAR:
                    continue
                if max(sizes[-2:]) > SLOW.get(op, 8) and shape not in operands.RECTANGULAR:
                    continue
                if subject.depth == "smoke" and shape != "3x3":
                    continue
                for values, view, detail in _variants(subject, kind, shape, dtype.name):
                    if values == "nan" and op == "cofactors" and shape == "1x1":
                        continue  # its cofactor is the determinant of an empty matrix
                    yield Case(ID, op, dtype.name, shape, values, "-".join(filter(None, (detail, view))))
            if op in LARGE and subject.depth != "smoke":
                values, shapes, deep = LARGE[op]
                for shape in shapes + deep if subject.depth == "deep" else shapes:
                    yield Case(ID, op, dtype.name, shape, values, next(iter(kind.details)))


def _variants(subject: Subject, kind: Kind, shape: str, dtype: str) -> Iterator[tuple[str, str, str]]:
    """The value classes, views and params for a shape."""
    smoke = subject.depth == "smoke"
    regular = [values for values in operands.REGULAR if values not in kind.without]
    for detail in list(kind.details)[:1] if smoke else kind.details:
        for values in regular[:1] if smoke else (*regular, *kind.values):
            if values in regular or 0 not in operands.SHAPES[shape]:
                yield values, "", detail
        for view in VIEWS if shape in MODELS and not smoke else ():
            if exact.makes(subject, view, DTYPES[dtype]) and (view != "expanded" or shape == "batch"):
                yield "normals", view, detail


@dataclass(frozen=True, slots=True)
class Problem:
    """The operands of a case, its params, and cached facts on its matrices."""

    operands: tuple[Array, ...]
    params: tuple[Any, ...]
    view: str
    known: dict[Any, Any]


@terms.remembered
def problem(subject: Subject, case: Case) -> Problem:
    """The numbers of a case."""
    rng, kind, shape = terms.generator(subject, case), KINDS[case.op], operands.SHAPES[case.shape]
    detail = next(name for name in kind.details if case.detail.startswith(name))
    view = case.detail.removeprefix(detail).strip("-") or "plain"
    params = kind.details[detail]
    matrix = detail if case.op == "triangular_solve" else kind.matrix
    with np.errstate(all="ignore"):
        a = shapes.fitted(view, operands.drawn(rng, case.values, shape, case.dtype, matrix))
    others: tuple[Array, ...] = ()
    if case.op in ("solve", "triangular_solve"):
        count = 1 if case.shape == "5x5" else RIGHT_SIDES
        others = (shapes.fitted(view, _right_sides(rng, a, count, matrix)),)
    elif case.op == "pinv":
        others = (np.full(shape[:-2], CUT[case.dtype], case.dtype),)
    return Problem((a, *others), params, view, {})


def _right_sides(rng: np.random.Generator, a: Array, count: int, matrix: str) -> Array:
    """Random columns; the last one has a small solution also where `a` is nearly singular.

    There multiplication by the inverse has errors that a solution must not have (Higham, section 14.1).
    """
    b = rng.standard_normal((*a.shape[:-1], count))
    read = np.tril(a) if matrix == "lower" else np.triu(a) if matrix == "upper" else a
    finite = np.where(np.isfinite(read), read, 0).astype(np.float64)
    b[..., -1:] = finite @ rng.standard_normal((*a.shape[:-1], 1))
    return b.astype(a.dtype)


def need(case: Case) -> tuple[str, ...]:
    """The movement that makes the matrix."""
    return shapes.need(case.detail.rpartition("-")[2], case.dtype)


@law(ID, cases, level=2, needs=need)
def check_factorizations(subject: Subject, case: Case) -> Measured:
    """Results are exact for a matrix within the backward error of elimination, or of orthogonal factors.

    Triangles are zero where they should be, eigenvalues ascend, singular values descend; only one triangle is read of
    matrices that are symmetric or triangular. The result of a matrix that is singular, or not positive definite, is all
    NaN, as the spec says, and the others of its batch are right; a matrix with NaN has NaN in its result.

    The bounds: Higham, chapters 8 to 10, 14 and 19, as each check in this package names them.
    """
    given, kind, dtype = problem(subject, case), KINDS[case.op], DTYPES[case.dtype]
    inputs = [shapes.operand(subject, given.view, given.operands[0], dtype)]
    inputs += [subject.tensor(x, dtype) for x in given.operands[1:]]
    got = tuple([subject.read(y) for y in subject.results(OPS[case.op], inputs, given.params)])
    arithmetic, worst = Arithmetic(subject.capabilities, case.dtype), list[float]()
    indices = list(np.ndindex(given.operands[0].shape[:-2]))
    for index in indices:
        parts = tuple([x[index] for x in got])
        where = f"{case.op}{given.params if given.params else ''}{terms.at(index)}"
        try:
            spoilt = case.values in operands.SPOILT and index == indices[0]
            if spoilt and (case.values != "singular" or case.op not in ALWAYS):
                _spoilt(case, given.operands[0][index], parts)
                continue
            finite = bool(all([np.isfinite(part).all() for part in parts]))
            demand(finite, "finite results", next((x for x in parts if not np.isfinite(x).all()), parts[0]))

            def fact(function: Callable[[Array], Any], index: tuple[int, ...] = index) -> Any:
                key = (index, function.__qualname__)
                if key not in given.known:
                    given.known[key] = function(given.operands[0][index])
                return given.known[key]

            one = Given(tuple([x[index] for x in given.operands]), parts, given.params, arithmetic, fact)
            ulp = kind.check(one)
            worst += [] if ulp is None else [ulp]
        except Failure as failure:
            raise Failure(f"{where}: {failure.says}", ulp=failure.ulp) from None
    return Measured(max(worst, default=None))


def _spoilt(case: Case, a: Array, got: tuple[Array, ...]) -> None:
    """Check the result of a matrix without a regular result."""
    if case.values == "nan":
        demand(
            any([np.isnan(part).any() for part in got]),
            "NaN somewhere, as there is one in the matrix",
            got[0],
        )
    elif case.op == "det":
        demand(got[0] == 0, "0, as the matrix is singular", got[0])
    elif case.op == "slogdet":
        demand((got[0] == 0) & (got[1] == -np.inf), "0 and -inf, as the matrix is singular", np.stack(got))
    else:
        reason = "not positive definite" if case.values == "indefinite" else "singular"
        demand(np.isnan(got[0]), f"NaN alone, as the matrix is {reason}", got[0])
