"""BLAS: products of matrices by the library that numpy itself computes with.

Machine code that is stored must not contain addresses, so it names a routine, and LLVM knows the address of each name.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from tensorken_llvm.builder import Builder
from tensorken_llvm.dtypes import INT32, INT64, POINTER, TYPES

GEMM = {"float32": "sgemm", "float64": "dgemm"}
"""The routine for each dtype: Y = alpha * A @ B + beta * Y."""

PATTERNS = ("scipy_cblas_{}64_", "cblas_{}64_", "cblas_{}$NEWLAPACK$ILP64", "scipy_cblas_{}", "cblas_{}")
"""How libraries name a routine of CBLAS; those with 64 in the name take integers of 64 bits."""

ROW_MAJOR, NOT_TRANSPOSED, TRANSPOSED = 101, 111, 112
"""Flags, as CBLAS numbers them."""


@dataclass(frozen=True, slots=True)
class Blas:
    """The routines, which machine code may call.

    Attributes:
        integer: the type of sizes and strides.
    """

    integer: Any

    def call_gemm(self, b: Builder, dtype: str, arguments: Sequence[Any]) -> None:
        """Write a call.

        Args:
            b: writes the instructions.
            dtype: of the elements.
            arguments: layout, transposition of A and of B, rows, columns, inner size, alpha, A, its stride, B, its
                stride, beta, Y, its stride; a Python number is a constant.
        """
        flag, integer, element, pointer = INT32, self.integer, TYPES[dtype], POINTER
        types = [flag] * 3 + [integer] * 3 + [element, pointer, integer, pointer, integer]
        types += [element, pointer, integer]
        name = symbol(GEMM[dtype])
        function = b.module.globals.get(name)
        if function is None:
            function = ir.Function(b.module, ir.FunctionType(ir.VoidType(), types), name)
        given = zip(types, arguments, strict=True)
        b.call(function, [ir.Constant(type_, x) if isinstance(x, int | float) else x for type_, x in given])


def symbol(routine: str) -> str:
    """The name of a routine in machine code."""
    return f"tensorken_{routine}"


@functools.cache
def find_blas() -> Blas | None:
    """The routines of numpy's library; None if it has none of these names."""
    for library in _libraries():
        for pattern in PATTERNS:
            found = {name: getattr(library, pattern.format(name), None) for name in GEMM.values()}
            if all(found.values()):
                for name, function in found.items():
                    llvm.add_symbol(symbol(name), ctypes.cast(function, ctypes.c_void_p).value)  # type: ignore[arg-type]
                is_wide = "64" in pattern or "USE64BITINT" in _configuration(library)
                return Blas(INT64 if is_wide else INT32)
    return None


def _libraries() -> Iterator[Any]:
    """numpy's extension module, in which a symbol of its libraries is found too; those libraries, for Windows."""
    folder = Path(np.__file__).resolve().parent
    module = importlib.import_module("numpy._core._multiarray_umath")
    for path in [
        module.__file__,
        *sorted(folder.parent.glob("numpy.libs/*openblas*")),
        *sorted(folder.glob(".dylibs/*openblas*")),
    ]:
        try:
            yield ctypes.CDLL(str(path))
        except OSError:
            continue


def _configuration(library: Any) -> str:
    """What OpenBLAS says of its build; empty for other libraries."""
    function = getattr(library, "openblas_get_config", None)
    if function is None:
        return ""
    function.restype = ctypes.c_char_p
    found: bytes = function()
    return found.decode("ascii", "replace")
