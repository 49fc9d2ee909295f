"""Suites that time tasks against other libraries: compiled by the backend, with an allocator that keeps memory, by the
compiler for CPUs, by XLA, by PyTorch, and eager.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterator, Sequence

from call import Call, supported_call
from compilers import MACHINE_CODE, NONE, compilers, missing
from harness import Row, compare
from libraries import OURS, installed
from tasks import TASKS, Case

import tensorken as tk

LARGE = (
    "chain_1e6",
    "chain_gradient_1e6",
    "chain_1e7",
    "chain_gradient_1e7",
    "transpose_add_4096",
    "cross_entropy_gradient_4096x1000",
    "convolution_gradient",
    "mlp_step",
    "gpt_step",
)

ON_OTHER_BACKENDS = (
    "tanh_gradient_1",
    "logistic_4x3",
    "matmul_512",
    "chain_gradient_1e6",
    "cross_entropy_gradient_4096x1000",
    "convolution_gradient",
    "lstm_gradient_200",
    "mlp_step",
    "gpt_step",
)


def traced(peers: Sequence[str], select: str) -> Iterator[Row]:
    """Compiled functions, with tk.jit, jax.jit or TinyJit; other libraries run eagerly."""
    with compilers(NONE):
        yield from _rows(_traced(), peers, select, True)


def kept(peers: Sequence[str], select: str) -> Iterator[Row]:
    """Large compiled tasks with an allocator that returns no memory to the system, so that no time is spent on
    new pages.
    """
    if not _keep_memory():
        print("kept: this system's allocator cannot be configured to keep memory")
        return
    with compilers(NONE):
        yield from _rows([TASKS[name] for name in LARGE], peers, select, True)


def machine_code(peers: Sequence[str], select: str) -> Iterator[Row]:
    """Compiled functions, with the compiler for CPUs and an allocator that returns no memory to the system."""
    with compilers(MACHINE_CODE):
        if message := missing():
            print(f"machine_code: {message}")
            return
        _keep_memory()
        yield from _rows(_traced(), peers, select, True)


def on_backend(backend: str, peers: Sequence[str], select: str) -> Iterator[Row]:
    """Compiled functions on another backend; a row for a function of one element shows the cost of a call."""
    if importlib.util.find_spec(f"tensorken_{backend}") is None:
        print(f"tensorken-{backend} is not installed")
        return
    with tk.use_backend(backend), compilers(NONE):
        yield from _rows([TASKS[name] for name in ON_OTHER_BACKENDS], peers, select, True)


def eager(peers: Sequence[str], select: str) -> Iterator[Row]:
    """Eager functions."""
    return _rows([case for case in TASKS.values() if "eager" in case.suites], peers, select, False)


def _traced() -> list[Case]:
    return [case for case in TASKS.values() if "traced" in case.suites]


def _rows(cases: Sequence[Case], peers: Sequence[str], select: str, compiled: bool) -> Iterator[Row]:
    libraries = installed([OURS, *peers])
    ours = libraries.pop(OURS)
    for case in cases:
        if select in case.name:
            theirs = {peer: supported_call(case, lib, compiled) for peer, lib in libraries.items()}
            yield compare(case.name, Call(case, ours, compiled), theirs, case.tolerance)


def _keep_memory() -> bool:
    """Configure glibc's malloc to keep memory and to use only the heap; returns False if it is not available."""
    trim_threshold, top_pad, mmap_max = -1, -2, -4  # parameters of mallopt in malloc.h
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(trim_threshold, 2**31 - 1) and mallopt(mmap_max, 0) and mallopt(top_pad, 2**28))
