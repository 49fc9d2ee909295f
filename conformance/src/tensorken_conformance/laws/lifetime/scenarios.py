"""Scenarios: small programs, one of each kind, whose results are exact in any order of computation.

All operands are matrices with four columns of whole numbers from -3 to 3, so that no dtype rounds a result, and
without 0, so that no sum of zeros has a sign that depends on how it is formed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.tensor import Tensor

COLUMNS = 4

ROWS = 16
"""The default number of rows."""

ANY, NUMBERS, FLOATS = ("bool", "int", "float"), ("int", "float"), ("float",)

PICKED = (3, 0, 3, 1)
"""The indices of gather."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A program of two matrices.

    Attributes:
        run: the program.
        expected: the same in numpy.
        ops: the ops that it needs; a backend that declares one unsupported has no case of it.
        kinds: the kinds of its dtypes.
    """

    run: Callable[[Tensor, Tensor], Tensor]
    expected: Callable[[Array, Array], Any]
    ops: tuple[str, ...]
    kinds: tuple[str, ...] = NUMBERS


def _rows(x: Tensor) -> Tensor:
    return x.constant(list(PICKED), tk.int32, (len(PICKED),))


def _added(x: Array) -> Array:
    result = np.zeros((COLUMNS, x.shape[1]), x.dtype)
    for place, row in enumerate(PICKED):
        result[row] += x[place]
    return result


@tk.jit
def _compiled(x: Tensor, y: Tensor) -> Tensor:
    """Steps whose intermediate results a compiler may keep in its own memory."""
    z = (x + y) * x - y
    return z * x.sum(axis=1, keepdims=True) - (z - x) * y


def _compiled_by_numpy(x: Array, y: Array) -> Array:
    z = (x + y) * x - y
    return np.asarray(z * x.sum(1, x.dtype, keepdims=True) - (z - x) * y)


SCENARIOS: dict[str, Scenario] = {
    "create": Scenario(lambda x, y: x, lambda x, y: x, (), ANY),
    "full": Scenario(lambda x, y: x.scalar(1), lambda x, y: np.ones_like(x), (), ANY),
    "elementwise": Scenario(
        lambda x, y: (x + y) * x - y, lambda x, y: (x + y) * x - y, ("add", "mul", "sub")
    ),
    "product": Scenario(lambda x, y: x * y, lambda x, y: x * y, ("mul",)),
    "choice": Scenario(
        lambda x, y: (x < y).where(x, y), lambda x, y: np.where(x < y, x, y), ("lt", "where"), ANY
    ),
    "movement": Scenario(
        lambda x, y: x.flip((0,)).permute((1, 0)).pad(((1, 0), (0, 2))),
        lambda x, y: np.pad(x[::-1].T, ((1, 0), (0, 2))),
        ("flip", "permute", "pad"),
        ANY,
    ),
    "view": Scenario(
        lambda x, y: x.crop(((1, x.shape[0]), (1, COLUMNS))).flip((1,)),
        lambda x, y: x[1:, 1:][:, ::-1],
        ("flip", "crop"),
        ANY,
    ),
    "reduction": Scenario(
        lambda x, y: x.sum(1) + y.max(1), lambda x, y: x.sum(1, x.dtype) + y.max(1), ("sum", "max", "add")
    ),
    "gather": Scenario(lambda x, y: x.gather(_rows(x), 0), lambda x, y: x[list(PICKED)], ("gather",), ANY),
    "scatter": Scenario(
        lambda x, y: x.crop(((0, len(PICKED)), (0, COLUMNS))).scatter_add(_rows(x), 0, COLUMNS),
        lambda x, y: _added(x[: len(PICKED)]),
        ("crop", "scatter_add"),
    ),
    "contraction": Scenario(
        lambda x, y: x @ y.crop(((0, COLUMNS), (0, COLUMNS))),
        lambda x, y: x @ y[:COLUMNS],
        ("fused_multiply_add", "crop", "reshape", "permute", "expand"),
    ),
    "order": Scenario(
        lambda x, y: tk.concat([tk.sort(x, axis=1), tk.cumsum(y, axis=1)], axis=0),
        lambda x, y: np.concatenate([np.sort(x, 1), y.cumsum(1, y.dtype)]),
        ("sort", "cumsum", "concatenate"),
    ),
    "derivative": Scenario(
        lambda x, y: tk.grad(lambda a: (a * a * y).sum())(x),
        lambda x, y: 2 * x * y,
        ("mul", "sum", "add", "expand"),
        FLOATS,
    ),
    "forward": Scenario(
        lambda x, y: tk.jvp(lambda a: (a * a * y).sum(1), (x,), (y,))[1],
        lambda x, y: (2 * x * y * y).sum(1),
        ("mul", "sum", "add"),
        FLOATS,
    ),
    "batch": Scenario(
        lambda x, y: tk.vmap(lambda a, b: a * b + a.sum())(x, y),
        lambda x, y: x * y + x.sum(1, x.dtype, keepdims=True),
        ("mul", "sum", "add", "expand"),
    ),
    "compiled": Scenario(_compiled, _compiled_by_numpy, ("mul", "sum", "add", "sub", "expand")),
}


def cases(
    law: str, subject: Subject, details: Sequence[str] = ("",), names: Sequence[str] = tuple(SCENARIOS)
) -> list[Case]:
    """Each scenario in a dtype of each kind, in a deep run in all; in a smoke run one of them."""
    found = []
    for name in names:
        for dtype in dtypes(subject):
            scenario = SCENARIOS[name]
            refused = any(subject.capabilities.why_not(op, dtype.name) for op in scenario.ops)
            indices = "int32" in subject.capabilities.dtypes or name not in ("gather", "scatter")
            if dtype.kind in scenario.kinds and not refused and indices:
                found += [Case(law, name, dtype.name, detail=detail) for detail in details]
    if subject.depth == "smoke":
        return [case for case in found if case.op == "elementwise"][:1]
    return found


def dtypes(subject: Subject) -> list[DType]:
    """One dtype of each kind, in a deep run all."""
    declared = subject.dtypes()
    if subject.depth == "deep":
        return declared
    found: list[DType] = []
    for kind in ("float", "int", "bool"):
        of_kind = [dtype for dtype in declared if dtype.kind == kind]
        found += sorted(of_kind, key=lambda dtype: dtype.itemsize != 4)[:1]
    return found


def values(subject: Subject, case: Case, number: int = 0, rows: int = ROWS) -> tuple[Array, Array]:
    """The operands of a case; others for each number."""
    rng = np.random.default_rng([subject.seed, zlib.crc32(case.id.encode()), number])
    x, y = rng.choice([-3, -2, -1, 1, 2, 3], (2, rows, COLUMNS))
    if DTYPES[case.dtype].kind == "bool":
        return x > 0, y > 0
    return x.astype(case.dtype), y.astype(case.dtype)


def tensors(
    subject: Subject, case: Case, operands: Sequence[Array], interpreter: RawTensor[Any] | None = None
) -> list[Tensor]:
    """Operands as tensors, by default on the stack that users compute with."""
    dtype = DTYPES[case.dtype]
    return [subject.tensor(x, dtype, interpreter or subject.stack) for x in operands]


def run(subject: Subject, case: Case, operands: Sequence[Array]) -> Tensor:
    """The scenario of a case on fresh tensors."""
    return SCENARIOS[case.op].run(*tensors(subject, case, operands))


def expected(case: Case, operands: Sequence[Array]) -> Array:
    """The expected result of the scenario."""
    return np.asarray(SCENARIOS[case.op].expected(operands[0], operands[1]), case.dtype)


def agree(subject: Subject, case: Case, result: Tensor, expected_values: Array, says: str) -> None:
    """Compare a result, also in its shape and dtype.

    Raises:
        Failure: if a bit differs.
    """
    exact.agree(subject, result, expected_values, f"{case.op} of {case.dtype}, {says}")
