"""Cache keys: a digest of everything that the machine code of a program depends on.

The values of constants are not part of it, since machine code reads them as it reads inputs; except those that count
along an axis, which it computes.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

import tensorken
import tensorken_core
import tensorken_llvm
import tensorken_numpy
from tensorken.control_flow import carries
from tensorken.kernels import lowering
from tensorken.kernels.positions import counted
from tensorken.programs.passes import pipeline
from tensorken.programs.passes.raw_constants import on_backend
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import OPS, Op
from tensorken_core.program.program import Program
from tensorken_llvm.blas import find_blas
from tensorken_llvm.machine import cpu, triple
from tensorken_llvm.threads import thread_count
from tensorken_numpy.compiled import memory

if TYPE_CHECKING:
    from types import ModuleType

    from tensorken_core.language.raw import RawTensor
    from tensorken_core.program.program import Variable

MAX_CONSTANTS = 2**22
"""The most bytes of the constants of a program that is looked up before the passes."""

_PLANNERS = (tensorken_llvm, lowering, memory, pipeline, carries)
"""Modules of the packages that decide what code is written: plans apply passes of their own."""


class _Unknown(Exception):
    """A param of an op that has no text by which it is known again."""


def program_key(program: Program, is_quick_allowed: bool) -> str | None:
    """The cache key of a program, in hexadecimal digits; None if a param of an op cannot be compared between processes.

    Args:
        program: as it is compiled.
        is_quick_allowed: see `tensorken_llvm.program`.
    """
    try:
        text = _Writer().program(program)
    except _Unknown:
        return None
    return _digest(environment(), is_quick_allowed, text)


def traced_key(
    program: Program, backend: RawTensor[Any], is_quick_allowed: bool
) -> tuple[str, Mapping[str, Any]] | None:
    """The cache key of a program before the passes, and its constants by their digests: passes depend on the values.

    None if a param of an op, or an op, cannot be compared between processes, or if the constants are large.

    Args:
        program: as it was traced.
        backend: of the constants.
        is_quick_allowed: see `tensorken_llvm.program`.
    """
    writer = _TracedWriter(backend)
    try:
        text = writer.program(program)
    except _Unknown:
        return None
    return _digest(
        f"before the passes\n{environment()}\n{_sources()}", is_quick_allowed, text
    ), writer.constants


def _digest(environment: str, is_quick_allowed: bool, text: str) -> str:
    content = f"{environment}\n{is_quick_allowed} {thread_count() > 1}\n{text}"
    return hashlib.sha256(content.encode()).hexdigest()


@functools.cache
def environment() -> str:
    """The CPU, and the versions of what writes and runs the code."""
    blas = find_blas()
    facts = [
        *cpu(),
        triple(),
        llvm.llvm_version_info,
        llvmlite.__version__,
        np.__version__,
        tensorken.__version__,
        sys.version_info,
        object.__basicsize__,
        "no BLAS" if blas is None else str(blas.integer),
        *[fact for module in _PLANNERS for fact in _files(module)],
    ]
    return "\n".join(map(str, facts))


@functools.cache
def _sources() -> str:
    """The files of the packages with the ops and the passes."""
    packages = (tensorken_core, tensorken, tensorken_numpy)
    folders = [folder for package in packages for folder, _, _ in sorted(os.walk(package.__path__[0]))]
    return "\n".join([fact for folder in folders for fact in _files_of(Path(folder))])


def _files(module: ModuleType) -> Iterator[str]:
    """The names, sizes and times of the files beside a module, which change while it is developed."""
    yield from _files_of(Path(module.__file__ or "").parent)


def _files_of(folder: Path) -> Iterator[str]:
    if folder.is_dir():
        with os.scandir(folder) as found:
            for entry in sorted(found, key=lambda x: x.name):
                if entry.name.endswith(".py"):
                    facts = entry.stat()
                    yield f"{entry.name} {facts.st_size} {facts.st_mtime_ns}"


class _Writer:
    """Writes programs as text, each once: equal programs with constants of their own are not the same."""

    def __init__(self) -> None:
        self._programs: dict[Program, str] = {}

    def program(self, program: Program) -> str:
        """The equations, with values as numbers."""
        numbers: dict[Variable, str] = {}
        types: dict[Any, str] = {}

        def define(v: Variable) -> str:
            known = v.dtype, v.shape
            found = types.get(known)
            if found is None:
                found = types[known] = f"{v.dtype.name}{v.shape}"
            numbers[v] = str(len(numbers))
            return found

        def use(v: Variable) -> str:
            found = numbers.get(v)
            if found is None:
                found = numbers[v] = f"{v.value!r} {v.dtype.name}{v.shape}"  # type: ignore[attr-defined]
            return found

        lines = [
            " ".join([define(v) for v in program.inputs]),
            " ".join([f"{define(v)}{self.constant(x)}" for v, x in program.constants.items()]),
            str(sorted(program.donated)),
        ]
        for e in program.equations:
            params = self.param(e.params) if e.params else ""
            operands = ",".join([use(v) for v in e.operands])
            lines.append(f"{self.op(e.op)}({operands}){params}:{' '.join([define(v) for v in e.results])}")
        lines.append(",".join([use(v) for v in program.outputs]))
        return "\n".join(lines)

    def param(self, x: Any) -> str:
        """A param of an op."""
        if x is None or isinstance(x, bool | int | float | str):
            return repr(x)
        if isinstance(x, tuple | list):
            return f"({','.join(map(self.param, x))})"
        if isinstance(x, DType):
            return x.name
        if isinstance(x, Program):
            known = self._programs.get(x)
            if known is None:
                self._programs[x] = f"program {len(self._programs)}"
                known = f"{{{self.program(x)}}}"
            return known
        if isinstance(x, Op):
            return self.op(x)
        raise _Unknown

    def op(self, op: Op) -> str:
        """An op: the backend runs it, or its dtypes and shapes say everything."""
        return op_text(op)

    def constant(self, x: Any) -> str:
        """What machine code depends on of a constant."""
        return str(counted(x) or "")


class _TracedWriter(_Writer):
    """Writes programs before the passes, which lower ops to their bodies and look at the values of constants.

    Attributes:
        constants: of the programs, as arrays, by their digests.
    """

    def __init__(self, backend: RawTensor[Any]) -> None:
        super().__init__()
        self.constants: dict[str, Any] = {}
        self._backend = backend
        self._bytes_left = MAX_CONSTANTS

    def op(self, op: Op) -> str:
        package = "tensorken_core" if op.body is None else op.body.__module__.partition(".")[0]
        if OPS.get(op.name) is not op or package not in ("tensorken", "tensorken_core"):
            raise _Unknown
        return op.name

    def constant(self, x: Any) -> str:
        self._bytes_left -= x.size * x.dtype.itemsize
        raw = on_backend(x, self._backend)
        if self._bytes_left < 0 or raw.interpreter is not self._backend:
            raise _Unknown
        digest = digest_of(raw.representation)
        self.constants[digest] = raw.representation
        return digest


def digest_of(array: Any) -> str:
    """A digest of the dtype, the shape and the elements of an array."""
    array = np.asarray(array)
    return hashlib.sha256(f"{array.dtype} {array.shape} ".encode() + array.tobytes()).hexdigest()


def op_text(op: Op) -> str:
    """The name of an op; another op may have the name of one of the language."""
    return op.name if OPS.get(op.name) is op else f"other {op.name}"


def params_text(params: tuple[Any, ...]) -> str | None:
    """The params of an op; None if they cannot be compared between processes."""
    try:
        return _Writer().param(params)
    except _Unknown:
        return None
