"""A share of the sweep, and its completeness; `nox -s "nightly(sweep)"` tries all of it."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from core.tests.each import each_of
from oracles.sweep import known
from oracles.sweep.cells import cells
from oracles.sweep.elsewhere import ELSEWHERE
from oracles.sweep.functions import public_functions, row_of
from oracles.sweep.judge import of_error, of_values
from oracles.sweep.operands import COMPLEX, DTYPES, FLOATS
from oracles.sweep.rows import ROWS
from tensorken_core.errors import DTypeError

VALUES, DERIVATIVES = ("eager", "jit", "vmap"), ("grad", "grad of grad")
SHARES = {VALUES: 6, DERIVATIVES: 120}
"""For each tuple of modes, how many pairs of a function and a dtype there are for each one that is tried."""


def test_every_public_function_has_a_row_or_a_reason() -> None:
    functions = public_functions()
    missing = [f.names[0] for f in functions if not row_of(f) and not set(f.names) & set(ELSEWHERE)]
    assert not missing, f"add rows to oracles/sweep for {missing}"
    names = {name for f in functions for name in f.names}
    assert set(ROWS) <= names, f"rows of no public function: {set(ROWS) - names}"
    assert set(ELSEWHERE) <= names - set(ROWS)


def test_every_open_fault_has_a_reason() -> None:
    assert not [fault for fault, reason in known.read().reasons.items() if reason.startswith("?")]


@pytest.mark.parametrize(
    ("modes", "dtype"),
    [*[(VALUES, dtype) for dtype in DTYPES], *[(DERIVATIVES, dtype) for dtype in (*FLOATS, *COMPLEX)]],
    ids=lambda x: x if isinstance(x, str) else x[0],
)
def test_a_share_of_all_cells_is_right_or_refused(
    modes: tuple[str, ...], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORKEN_COMPILERS", "none")
    monkeypatch.setenv("TENSORKEN_LLVM_CACHE", "0")
    found = []
    for function in public_functions():
        named = row_of(function)
        if named and not zlib.crc32(f"{named[0]} {dtype}".encode()) % SHARES[modes]:
            found += cells(function, *named, dtype, modes)
    assert len(found) > 5
    new = known.read().new(found)
    assert not new, "\n".join(map(str, new))


# fmt: off
WRONG = {  # results that must not count as right: got, exact, dtype
    "another dtype": (np.float64(1), 1.0, "float32"),
    "another shape": (np.float32([1]), 1.0, "float32"),
    "nine units": (np.float32(1 + 9 * 2**-23), 1.0, "float32"),
    "an infinity": (np.float32(np.inf), 3e38, "float32"),
    "a NaN": (np.float32(np.nan), 1.0, "float32"),
    "no NaN": (np.float32(1), np.nan, "float32"),
    "another infinity": (np.float32(np.inf), -np.inf, "float32"),
    "another integer": (np.int8(1), 2, "int8"),
    "a wrapped integer": (np.int8(-56), 200, "int8"),
    "another bool": (np.bool(True), False, "bool"),
    "a part": (np.complex64(1 + 1e-3j), 1 + 0j, "complex64"),
    "a half": (np.float16(1.01), 1.0, "float16"),
}
# fmt: on


@each_of("name", WRONG)
def test_wrong_results_are_found(name: str) -> None:
    got, exact, dtype = WRONG[name]
    assert of_values(got, exact, dtype, 4.0).kind == "wrong"
    assert of_values(np.asarray(exact).astype(dtype), exact, dtype, 4.0).kind == (
        "right" if name != "a wrapped integer" else "wrong"
    )


@each_of(
    ("error", "kind"),
    [
        (DTypeError("sin: not defined for bool"), "refused"),
        (DTypeError("maximum: not defined for complex64"), "wrong"),
        (DTypeError("sin: two\nlines"), "wrong"),
        (KeyError("int8"), "wrong"),
        (TypeError("unsupported operand"), "wrong"),
    ],
)
def test_only_a_line_that_names_the_function_is_a_refusal(error: Any, kind: str) -> None:
    assert of_error(error, {"sin"}).kind == kind
