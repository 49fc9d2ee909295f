"""errors.silent: an op reports by results and exceptions, and never prints or warns."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws import sampled
from tensorken_conformance.layouts.shapes import class_of
from tensorken_conformance.operands import pools, samples
from tensorken_conformance.subject import Array, Depth, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS, Op

ROWS: dict[Depth, int] = {"smoke": 48, "default": 257, "deep": 257}
"""The number of operands of an elementwise op."""

SHOWN = 200
"""The most characters of output in a message."""


@dataclass(slots=True)
class Output:
    """The output in a block of `listening`.

    Attributes:
        printed: the text on stdout and stderr, also of compiled code.
        warnings: the class and message of each warning.
    """

    printed: str = ""
    warnings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        parts = [*self.warnings, *([f"on the console {self.printed.strip()!r}"] if self.printed else [])]
        text = "; ".join(" ".join(part.split()) for part in parts)
        return text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."


@contextlib.contextmanager
def listening() -> Iterator[Output]:
    """Capture all output of the block, also of compiled code, and every warning.

    >>> with listening() as said:
    ...     print("hello")
    >>> str(said)
    "on the console 'hello'"
    """
    said = Output()
    with (
        tempfile.TemporaryFile() as file,
        open(file.fileno(), "w", encoding="utf-8", errors="backslashreplace", closefd=False) as text,
        warnings.catch_warnings(record=True) as given,
    ):
        warnings.simplefilter("always")
        try:
            with (
                _descriptors(file.fileno()),
                contextlib.redirect_stdout(text),
                contextlib.redirect_stderr(text),
            ):
                try:
                    yield said
                finally:
                    text.flush()
        finally:
            file.seek(0)
            said.printed = file.read().decode("utf-8", "backslashreplace")
            said.warnings = [f"{warning.category.__name__}: {warning.message}" for warning in given]


@contextlib.contextmanager
def _descriptors(target: int) -> Iterator[None]:
    """Redirect the descriptors of stdout and stderr, if the process has them, to another file."""
    kept: list[tuple[int, int]] = []
    _flush()
    try:
        for number in (1, 2):
            with contextlib.suppress(OSError):  # a process may have none
                kept.append((number, os.dup(number)))
                os.dup2(target, number)
        yield
    finally:
        _flush()
        for number, own in kept:
            os.dup2(own, number)
            os.close(own)


def _flush() -> None:
    for stream in (sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()


def cases(subject: Subject) -> Iterator[Case]:
    """Each op in each dtype, on its samples, and on operands of all kinds if it is elementwise.

    The smoke run has not the longest bodies.
    """
    return sampled.cases("errors.silent", subject)


@law("errors.silent", cases, level=4)
def silent(subject: Subject, case: Case) -> None:
    """Making tensors, running an op on them and reading its result print nothing and warn of nothing."""
    op, dtype = OPS[case.op], DTYPES[case.dtype]
    tried = [
        (tuple([x for x, _ in samples.values_of(op, one, dtype, subject.seed)]), one[1])
        for one in samples.repeated(subject, op)
    ]
    if op.elementwise:
        tried.append((pools.rows(op, dtype, "mixed", subject.seed, ROWS[subject.depth]), ()))
    for arrays, params in tried:
        with listening() as said:
            for few in _divided(subject, arrays) if op.elementwise else [arrays]:
                _run(subject, op, few, params)
        if said.printed or said.warnings:
            shapes = " and ".join(str(x.shape) for x in arrays)
            raise Failure(f"{op.name} of {dtype} {shapes}: expected no output and no warning, got {said}")


def _divided(subject: Subject, arrays: tuple[Array, ...]) -> Iterator[tuple[Array, ...]]:
    """Operands of an elementwise op; in the smoke run in parts of the shape that they have in other laws."""
    if subject.depth != "smoke":
        yield arrays
        return
    shape = class_of("small").shape
    size, flat = math.prod(shape), [x.reshape(-1) for x in arrays]
    for start in range(0, flat[0].size, size):
        yield tuple([np.resize(x[start : start + size], shape) for x in flat])


def _run(subject: Subject, op: Op, arrays: tuple[Array, ...], params: tuple[object, ...]) -> None:
    for y in subject.results(op, [subject.tensor(x, DTYPES[x.dtype.name]) for x in arrays], params):
        subject.read(y)
