"""A row of the sweep: how a function is called, and what its results should be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from oracles.sweep.operands import COMPUTED, INTEGERS, ends, numpy_dtype, pairs, part

Array = Any
VALUES = frozenset(("eager", "jit", "machine code", "vmap"))
ALL_MODES = VALUES | {"grad", "grad of grad"}
DTypeRule = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Case:
    """One call: its operands and params.

    Attributes:
        label: the kind of operands, such as `ends` or `none`.
        operands: the arguments; numpy's arrays among them become tensors.
        params: the keyword arguments.
    """

    label: str
    operands: tuple[Any, ...]
    params: Mapping[str, Any] = field(default_factory=dict)


# ---- dtypes of results ----------------------------------------------------------------------------------------


def same(name: str) -> str:
    """The dtype of the operand."""
    return name


def inexact(name: str) -> str:
    """The dtype of the operand, float32 for integers and bools."""
    return "float32" if name == "bool" or name in INTEGERS else name


def real(name: str) -> str:
    """The dtype of the parts of a complex operand; else that of the operand."""
    return part(name)


def real_inexact(name: str) -> str:
    """The dtype of the parts; float32 for integers and bools."""
    return part(inexact(name))


def arithmetic(name: str) -> str:
    """The dtype of the operand; int8 for bools, as in numpy."""
    return "int8" if name == "bool" else name


def with_int32(name: str) -> str:
    """The dtype of the operand and int32, promoted, as where positions or degrees are factors."""
    wider = {"uint32": "int64", "uint64": "float64"}
    return wider.get(name, "int32" if name in ("bool", "int8", "int16", "uint8", "uint16") else name)


def summed(name: str) -> str:
    """The dtype of a sum: at least 32 bits."""
    narrow = {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
    return narrow.get(name, counted(name))


def complex_of(name: str) -> str:
    """The complex dtype in which eigenvalues, roots and spectra are."""
    return "complex128" if name in ("float64", "complex128") else "complex64"


def counted(name: str) -> str:
    """The dtype of the operand, int32 for bools, as in sums."""
    return "int32" if name == "bool" else name


def always(result: str) -> DTypeRule:
    """This dtype for every operand."""
    return lambda name: result


# ---- operands -------------------------------------------------------------------------------------------------


def none_and_one(name: str) -> list[Case]:
    """A vector of no elements, and a scalar."""
    x = ends(name)
    return [Case("none", (x[:0],)), Case("one", (x[1],))]


def unary(*special: float) -> Callable[[str], list[Case]]:
    """All ends of a dtype, with further numbers such as poles; no elements, and one."""

    def cases(name: str) -> list[Case]:
        x = ends(name)
        if special and name not in ("bool", *INTEGERS):
            x = np.concatenate([x, np.array(special).astype(numpy_dtype(name))])
        return [Case("ends", (x,)), *none_and_one(name)]

    return cases


on_ends = unary()


def binary(name: str) -> list[Case]:
    """All pairs of ends of a dtype; no elements, and one."""
    a, b = pairs(name)
    return [Case("ends", (a, b)), Case("none", (a[:0], b[:0])), Case("one", (a[1], b[1]))]


# ---- the row --------------------------------------------------------------------------------------------------


Precision = Literal["wide", "same", "floating", "kept"]


@dataclass(frozen=True, slots=True)
class Row:
    """A function of the sweep.

    Attributes:
        oracle: the function in another library, on numpy's arrays; None if no library has it.
        cases: the calls, for a dtype.
        result: the dtype of the result, for a dtype; of each result, if there are several; None: it is not compared.
        precision: in which dtype the oracle computes: `wide`, in a wider one than the function, so that its result
            is then rounded; `same`, in the same, but half precision in float32; `floating`, in the same, but integers
            in float32; `kept`, in the same.
        ulp: the bound of the error, in units in the last place of the result.
        scale: what errors are compared with, a word of `judge.of_values`.
        call: calls the function, if its operands are not simply its arguments.
        modes: the modes in which the function is called.
        skip: the elements that are not compared, for the results of the oracle and the operands.
        inside: which elements of a result are possible, where no oracle knows it, as for random numbers.
    """

    oracle: Callable[..., Any] | None
    cases: Callable[[str], Sequence[Case]] = on_ends
    result: DTypeRule | tuple[DTypeRule, ...] | None = inexact
    precision: Precision = "wide"
    ulp: float = 4.0
    scale: str = "result"
    call: Callable[..., Any] | None = None
    modes: frozenset[str] = ALL_MODES
    skip: Callable[..., Array] | None = None
    inside: Callable[[Array], Array] | None = None

    def widened(self, x: Array, name: str) -> Array:
        """An operand as the oracle takes it."""
        if not isinstance(x, np.ndarray | np.generic) or self.precision == "kept":
            return x
        x = np.asarray(x)
        is_own = x.dtype == numpy_dtype(name)
        if self.precision == "floating":
            return x.astype("float32") if x.dtype.kind in "biu" and is_own else x
        if self.precision == "same":
            return x.astype("float32") if name in COMPUTED and is_own else x
        if x.dtype.kind in "biu":
            return x.astype("float32").astype("float64") if is_own else x
        if x.dtype.kind == "c":
            return x.astype("clongdouble" if x.dtype == np.complex128 else "complex128")
        return x.astype("longdouble" if x.dtype == np.float64 else "float64")

    def unchanged(self, x: Array, name: str) -> Array:
        """An operand in its own dtype."""
        return x


# ---- facts of many rows ---------------------------------------------------------------------------------------


MOVES: dict[str, Any] = {"precision": "same", "result": same, "ulp": 0}
"""The facts of functions that move or choose elements."""

KEEPS: dict[str, Any] = {"precision": "kept", "result": same, "ulp": 0}
"""The facts of functions that return their operand, whose dtype the oracle keeps."""

POSITIONS: dict[str, Any] = {"precision": "same", "result": always("int32")}
"""The facts of functions whose results are positions or counts."""

TRUTHS: dict[str, Any] = {"precision": "same", "result": always("bool")}
"""The facts of functions whose results are bools."""
