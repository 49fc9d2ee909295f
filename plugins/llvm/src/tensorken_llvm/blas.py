"""BLAS: products of matrices by the library that numpy itself computes with.

Machine code that is stored must not contain addresses, so it names a routine, and LLVM knows the address of each name.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir

from tensorken_llvm.builder import Builder, declared
from tensorken_llvm.dtypes import INT32, INT64, POINTER, TYPES
from tensorken_llvm.machine import define_symbol, load_text

GEMM = {"float32": "sgemm", "float64": "dgemm"}
"""The routine for each dtype: Y = alpha * A @ B + beta * Y."""

PATTERNS = ("scipy_cblas_{}64_", "cblas_{}64_", "cblas_{}$NEWLAPACK$ILP64", "scipy_cblas_{}", "cblas_{}")
"""How libraries name a routine of CBLAS; those with 64 in the name take integers of 64 bits."""

THREADS = "openblas_{}_num_threads"
"""How OpenBLAS names the functions that read and set its number of threads, with the prefix and suffix of a build."""

MIN_THREADED = 2**17
"""OpenBLAS uses threads of its own for products of twice as many multiplications."""

_GUARD = """
@locked = internal global i64 0, align 64
@depth = internal global i64 0
@threads = internal global i32 0

declare i32 @{get}()
declare void @{set}(i32)

define internal void @lock() {{
  br label %try
try:
  %pair = cmpxchg ptr @locked, i64 0, i64 1 seq_cst seq_cst
  %done = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %done, label %inside, label %try
inside:
  ret void
}}

define void @{enter}() {{
  call void @lock()
  %depth = load i64, ptr @depth
  %deeper = add i64 %depth, 1
  store i64 %deeper, ptr @depth
  %is_first = icmp eq i64 %depth, 0
  br i1 %is_first, label %first, label %done
first:
  %threads = call i32 @{get}()
  store i32 %threads, ptr @threads
  call void @{set}(i32 1)
  br label %done
done:
  store atomic i64 0, ptr @locked seq_cst, align 8
  ret void
}}

define void @{leave}() {{
  call void @lock()
  %depth = load i64, ptr @depth
  %less = sub i64 %depth, 1
  store i64 %less, ptr @depth
  %is_last = icmp eq i64 %less, 0
  br i1 %is_last, label %last, label %done
last:
  %threads = load i32, ptr @threads
  call void @{set}(i32 %threads)
  br label %done
done:
  store atomic i64 0, ptr @locked seq_cst, align 8
  ret void
}}
"""

ROW_MAJOR, NOT_TRANSPOSED, TRANSPOSED = 101, 111, 112
"""Flags, as CBLAS numbers them."""


@dataclass(frozen=True, slots=True)
class Blas:
    """The routines, which machine code may call.

    Attributes:
        integer: the type of sizes and strides.
        has_threads: whether the library's number of threads can be set.
    """

    integer: Any
    has_threads: bool

    @contextmanager
    def one_thread(self, b: Builder) -> Iterator[None]:
        """Let the library use one thread for the calls that are written in the block: ours divide the work."""
        if self.has_threads:
            self._call_guard(b, "enter")
        yield
        if self.has_threads:
            self._call_guard(b, "leave")

    def _call_guard(self, b: Builder, name: str) -> None:
        b.call(declared(b.module, symbol(name), ir.VoidType(), []), [])

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
        function = declared(b.module, symbol(GEMM[dtype]), ir.VoidType(), types)
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
                    define_symbol(symbol(name), ctypes.cast(function, ctypes.c_void_p).value or 0)  # type: ignore[arg-type]
                is_wide = "64" in pattern or "USE64BITINT" in _configuration(library)
                return Blas(INT64 if is_wide else INT32, _guard_threads(library))
    return None


def _guard_threads(library: Any) -> bool:
    """Compile the functions that set one thread, and the former number again; returns whether the library has any.

    Several Python threads may be inside at once: the last one that leaves sets the former number.
    """
    for pattern in PATTERNS:
        prefix, suffix = pattern.replace("cblas_{}", "{}").split("{}")
        found = {
            f"{name}_threads": getattr(library, f"{prefix}{THREADS.format(name)}{suffix}", None)
            for name in ("get", "set")
        }
        if all(found.values()):
            for name, function in found.items():
                define_symbol(symbol(name), ctypes.cast(function, ctypes.c_void_p).value or 0)  # type: ignore[arg-type]
            guards = {name: symbol(name) for name in ("enter", "leave")}
            text = _GUARD.format(get=symbol("get_threads"), set=symbol("set_threads"), **guards)

            load = functools.cache(functools.partial(load_text, text, tuple(guards.values())))
            for name in guards.values():
                define_symbol(name, functools.partial(_address, load, name))
            return True
    return False


def _address(load: Callable[[], Mapping[str, int]], name: str) -> int:
    return load()[name]


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
