"""Cells of the sweep: one function, one dtype, one call, one mode, each with a verdict."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracles.sweep import derivatives
from oracles.sweep.functions import Function
from oracles.sweep.judge import RIGHT, Verdict, of_error, of_values
from oracles.sweep.modes import MODES, leaves
from oracles.sweep.operands import numpy_dtype
from oracles.sweep.row import Case, Row

Array = Any
MODE_NAMES = (*MODES, *derivatives.ORDERS)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell, and what became of it."""

    function: str
    dtype: str
    case: str
    mode: str
    verdict: Verdict

    def __str__(self) -> str:
        return (
            f"{self.function} {self.dtype} {self.case} {self.mode} {self.verdict.kind} {self.verdict.reason}"
        )


def cells(function: Function, name: str, row: Row, dtype: str, modes: Sequence[str]) -> Iterator[Cell]:
    """Every cell of a function for a dtype."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for case in row.cases(dtype):
            expected = exact_results(row, case, dtype)
            for mode in modes:
                if mode not in row.modes:
                    continue
                if mode in MODES:
                    verdict = tried(function, row, case, dtype, mode, expected)
                else:
                    call, order = call_of(function, row, case), derivatives.ORDERS[mode]
                    exact = expected[0] if expected else []
                    verdict = derivatives.tried(function, row, case, dtype, order, call, exact)
                if verdict is not None:
                    yield Cell(name, dtype, case.label, mode, verdict)


def exact_results(row: Row, case: Case, dtype: str) -> list[list[Array]]:
    """The results of the oracle; of complex numbers in the same dtype too, whose ends differ; [] if it refuses."""
    found: list[list[Array]] = []
    if row.oracle is None:
        return found
    for widened in [
        row.widened,
        *([row.unchanged] if row.precision != "kept" and "complex" in dtype else []),
    ]:
        try:
            found.append(leaves(row.oracle(*[widened(x, dtype) for x in case.operands], **case.params)))
        except (TypeError, ValueError, IndexError, ArithmeticError, np.linalg.LinAlgError):
            continue
    return found


def call_of(function: Function, row: Row, case: Case) -> Callable[..., Any]:
    """The call of a case, as a function of its operands."""
    f = function.value
    if row.call is None:
        return lambda *xs: f(*xs, **case.params)
    return lambda *xs: row.call(f, *xs, **case.params)


def tried(
    function: Function, row: Row, case: Case, dtype: str, mode: str, expected: list[list[Array]]
) -> Verdict:
    """Call a function in a mode, and judge what it returns or raises."""
    try:
        got = MODES[mode](call_of(function, row, case), case.operands)
    except Exception as error:  # noqa: BLE001, judged
        return of_error(error, function.spellings)
    if row.inside is not None:
        return possible(row, dtype, got)
    if not expected:
        return Verdict("alone")  # the oracle refuses what we compute: nothing to compare with
    verdicts = [judged(row, case, dtype, got, exact) for exact in expected]
    return next((v for v in verdicts if v.kind == "right"), verdicts[0])


def judged(row: Row, case: Case, dtype: str, got: list[Array], exact: list[Array]) -> Verdict:
    """Compare all results of a call with the exact ones."""
    if len(got) != len(exact):
        return Verdict("wrong", f"{len(got)} results, not {len(exact)}")
    rules = row.result if isinstance(row.result, tuple) else (row.result,) * len(got)
    skip = row.skip(exact, *case.operands) if row.skip else None
    for g, e, rule in zip(got, exact, rules, strict=True):
        verdict = of_values(g, e, rule(dtype) if rule else None, row.ulp, row.scale, case.operands, skip)
        if verdict.kind == "wrong":
            return verdict
    return RIGHT


def possible(row: Row, dtype: str, got: list[Array]) -> Verdict:
    """Whether all elements are possible, and of the right dtype."""
    assert row.inside is not None and callable(row.result)
    for y in got:
        if y.dtype != numpy_dtype(row.result(dtype)):
            return Verdict("wrong", f"dtype {y.dtype}, not {row.result(dtype)}")
        good = row.inside(y)
        if not good.all():
            return Verdict(
                "wrong", f"{int((~good).sum())} of {y.size} are impossible: {y[~good][:3].tolist()}"
            )
    return RIGHT
