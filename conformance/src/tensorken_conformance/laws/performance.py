"""performance.profile: the time of ops, compared with numpy on the same machine.  A profile, without a verdict.

Times are the best of several, since disturbances only make a measurement longer.  Delayed work is realised, and one
element of the last result is read, before the clock is stopped.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Measured, Result
from tensorken_conformance.law import law
from tensorken_conformance.subject import Array, Subject, put
from tensorken_core.language.dtypes import float32, int32
from tensorken_core.language.op import OPS, run
from tensorken_core.language.raw import RawTensor

BUDGET = 0.02
"""Seconds for which an op is repeated, on the backend and with numpy."""

PATIENCE = 0.05
"""The longest time of one run in seconds; longer tasks are measured at a smaller size."""

REPEATS = 5
"""The number of times that the repetitions are timed."""

SMALLEST = 4
"""The smallest size that is tried."""

SMALLER = (64, 16, 4, 1)
"""The sizes that are tried, as divisors of the requested size: each predicts the time of the next."""

Values = Sequence[Array]
Computation = Callable[[RawTensor[Any], Sequence[Any]], Any]


@dataclass(frozen=True, slots=True)
class Task:
    """A computation to time.

    Attributes:
        operands: numpy arrays for a size, which is the length of an axis or the number of elements.
        sizes: names and sizes, the smallest first.
        compute: computes on an interpreter, from representations; returns a representation.
        baseline: computes the same with numpy.
        operations: the number of floating-point operations at a size; None: memory bandwidth is reported instead.
        stack: whether it runs as users run it, in `Fuse`, rather than on the bare backend.
        relies: the ops that must be right for the time to be reported.
        group: the group of the laws by which they must be right.
        reads: whether the result is realised and read.
    """

    operands: Callable[[int], Values]
    sizes: dict[str, int]
    compute: Computation
    baseline: Callable[..., Any]
    operations: Callable[[int], int] | None = None
    stack: bool = False
    relies: tuple[str, ...] = ()
    group: str = "values"
    reads: bool = True


FLAT = {"small": 4_096, "large": 1 << 18}
SQUARE = {"small": 64, "large": 512}


def _numbers(*shape: int, low: float = 0.25) -> Array:
    """Floats between low and low + 1, nearly all different."""
    count = int(np.prod(shape, dtype=int))
    return (low + np.arange(count) * 0.6180339887 % 1.0).astype(np.float32).reshape(shape)


def _softmax(x: Array) -> Array:
    e: Array = np.exp(x - np.max(x, 1, keepdims=True))
    e /= np.sum(e, 1, keepdims=True)
    return e


def _gradient(x: Array, w: Array) -> Array:
    """The gradient by w of the sum of tanh(x @ w), as one would write it with numpy."""
    y = np.tanh(x @ w)
    product: Array = x.T @ (1.0 - y * y)
    return product


def _flat(*lows: float) -> Callable[[int], Values]:
    return lambda n: [_numbers(n, low=low) for low in lows]


def _square(n: int) -> Values:
    return [_numbers(n, n)]


def _op(
    name: str,
    baseline: Callable[..., Any],
    params: Callable[[int], tuple[Any, ...]] = lambda n: (),
    operands: Callable[[int], Values] = _square,
    sizes: dict[str, int] = SQUARE,
    read_by: str = "",
) -> Task:
    """One op on matrices or other operands; a second op reads the result of a movement, which may be a view."""

    def compute(interpreter: RawTensor[Any], given: Sequence[Any]) -> Any:
        size = (*interpreter.shape(given[0]), 1)[0]
        result = run(interpreter, OPS[name], given, params(size))
        return run(interpreter, OPS[read_by], (result,), ()) if read_by else result

    return Task(operands, sizes, compute, baseline, relies=tuple(filter(None, (name, read_by))))


def _as_user(f: Callable[..., Any]) -> Computation:
    """A function of tensors as one of representations."""
    return lambda interpreter, operands: f(*[tk.Tensor(interpreter, x) for x in operands]).representation


UNARY = ("sqrt", "exp", "log", "sin", "tanh")
BINARY = {"add": np.add, "mul": np.multiply, "div": np.divide, "pow": np.power, "maximum": np.maximum}

TASKS: dict[str, Task] = {
    **{name: _op(name, getattr(np, name), operands=_flat(0.25), sizes=FLAT) for name in UNARY},
    **{name: _op(name, f, operands=_flat(0.25, 0.5), sizes=FLAT) for name, f in BINARY.items()},
    "sum": _op("sum", lambda x: np.sum(x, 1, keepdims=True), lambda n: ((1,),)),
    "max": _op("max", lambda x: np.max(x, 0, keepdims=True), lambda n: ((0,),)),
    "argmax": _op("argmax", lambda x: np.argmax(x, 1, keepdims=True), lambda n: (1,)),
    "cumsum": _op("cumsum", lambda x: np.cumsum(x, 1), lambda n: (1,)),
    "sort": _op("sort", lambda x: np.sort(x, 1, "stable"), lambda n: (1,)),
    "softmax": _op("softmax", _softmax, lambda n: ((1,),)),
    "pad": _op("pad", lambda x: np.pad(x, 1), lambda n: (((1, 1), (1, 1)),)),
    "permute": _op("permute", lambda x: np.negative(x.T), lambda n: ((1, 0),), read_by="neg"),
    "crop": _op(
        "crop", lambda x: np.negative(x[1:-1, 1:-1]), lambda n: (((1, n - 1), (1, n - 1)),), read_by="neg"
    ),
    "gather": _op(
        "gather",
        lambda x, indices: np.take(x, indices, 0),
        lambda n: (0,),
        lambda n: [_numbers(n, n), (np.arange(n) * 7 % n).astype(np.int32)],
    ),
    "launch": _op("add", np.add, operands=_flat(0.25, 0.25), sizes={"one": 1}),
    "upload": Task(
        _flat(0.25),
        FLAT,
        lambda interpreter, operands: interpreter.new(operands[0].shape, memoryview(operands[0]), float32),
        np.array,
        relies=("new",),
    ),
    "read-back": Task(
        _flat(0.25),
        FLAT,
        lambda interpreter, operands: interpreter.ravel(operands[0]),
        np.array,
        relies=("new",),
        reads=False,
    ),
    "matmul": Task(
        lambda n: [_numbers(n, n), _numbers(n, n)],
        {"small": 32, "medium": 128, "large": 512},
        _as_user(lambda a, b: a @ b),
        np.matmul,
        operations=lambda n: 2 * n**3,
        stack=True,
        relies=("fused_multiply_add", "matmul"),
    ),
    "gradient": Task(
        lambda n: [_numbers(n, n) / np.float32(n), _numbers(n, n)],
        {"small": 32, "large": 256},
        _as_user(lambda x, w: tk.grad(lambda v: tk.tanh(x @ v).sum())(w)),
        _gradient,
        operations=lambda n: 4 * n**3,
        stack=True,
        relies=("fused_multiply_add", "matmul", "tanh"),
        group="derivatives",
    ),
}
"""All tasks; a task that is one op has its name."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each task at each of its sizes, in float32; a smoke run has only the cost of a launch."""
    if float32.name not in subject.capabilities.dtypes:
        return
    for name, task in TASKS.items():
        if all(subject.capabilities.why_not(op, float32.name) is None for op in task.relies):
            for size in task.sizes:
                if subject.depth != "smoke" or name == "launch":
                    yield Case("performance.profile", name, float32.name, size)


@law("performance.profile", cases, level=5, stage=3)
def profile(subject: Subject, case: Case) -> Measured:
    """Each op is timed and compared with numpy on this machine; a profile, which no backend passes or fails.

    Figures: microseconds, those of numpy, their ratio, and gigabytes or gigaflops a second.  A task that takes too long
    is measured at a smaller size; `elements` is the number of its elements.
    """
    task = TASKS[case.op]
    size, once = _affordable(subject, task, task.sizes[case.shape])
    values = _operands(case.op, size)
    interpreter = subject.stack if task.stack else subject.backend
    operands = _uploaded(subject, task, values)
    seconds = _best(lambda count: _repeated(interpreter, task, operands, count), once)
    numpy = _numpy_seconds(case.op, size)
    figures = {
        "elements": float(max(x.size for x in values)),
        "microseconds": seconds * 1e6,
        "numpy microseconds": numpy * 1e6,
        "ratio": seconds / numpy,
    }
    if task.operations is not None:
        figures["gigaflops per second"] = task.operations(size) / seconds / 1e9
    else:
        figures["gigabytes per second"] = sum(x.nbytes for x in values) / seconds / 1e9
    return Measured(figures=figures)


def _affordable(subject: Subject, task: Task, requested: int) -> tuple[int, float]:
    """The requested size, or the largest tried below it that does not take too long; and the seconds of a run there."""
    found, once = requested, 0.0
    for part in SMALLER:
        size = requested // part
        if size < SMALLEST and part > 1:
            continue
        if once and once * _work(task, size) / _work(task, found) > PATIENCE:
            break
        found, once = size, _one_run(subject, task, task.operands(size))
    return found, once


def _work(task: Task, size: int) -> int:
    return sum(x.size for x in task.operands(size)) if task.operations is None else task.operations(size)


@functools.lru_cache(maxsize=256)
def _operands(name: str, size: int) -> Values:
    """The same for the backend and for numpy."""
    return TASKS[name].operands(size)


def _uploaded(subject: Subject, task: Task, values: Values) -> list[Any]:
    """The operands on the interpreter that computes; for an upload, numpy's arrays."""
    if task is TASKS["upload"]:
        return list(values)
    interpreter = subject.stack if task.stack else subject.call_counter
    return [put(interpreter, x, int32 if x.dtype.kind == "i" else float32).representation for x in values]


def _one_run(subject: Subject, task: Task, values: Values) -> float:
    """Seconds for one run on the call counter, the best of three: the first may compile."""
    operands = _uploaded(subject, task, values)
    interpreter = subject.stack if task.stack else subject.call_counter
    first = _repeated(interpreter, task, operands, 1)
    again = 2 if first <= PATIENCE else 1 if first <= 10 * PATIENCE else 0
    return min([first, *(_repeated(interpreter, task, operands, 1) for _ in range(again))])


def _repeated(interpreter: RawTensor[Any], task: Task, operands: Sequence[Any], count: int) -> float:
    """Seconds for some runs, until all of them have finished.

    A result is dropped before the next run, so that its memory is used again, and no backend can return the last one.
    """
    if not task.reads:
        return _timed(lambda: task.compute(interpreter, operands), count)
    return _timed(
        lambda: interpreter.realize(task.compute(interpreter, operands)),
        count,
        lambda y: _read_one(interpreter, y),
    )


def _timed(work: Callable[[], Any], count: int, finish: Callable[[Any], None] = lambda y: None) -> float:
    y, start = None, time.perf_counter()
    for _ in range(count):
        y = None
        y = work()
    finish(y)
    return time.perf_counter() - start


def _read_one(interpreter: RawTensor[Any], y: Any) -> None:
    """Read one element, which waits for the device."""
    shape = interpreter.shape(y)
    if shape and all(shape):
        y = run(interpreter, OPS["crop"], (y,), (tuple([(0, 1)] * len(shape)),))
    interpreter.ravel(y)


def _best(repeated: Callable[[int], float], once: float) -> float:
    """The shortest time of a run: several are timed together, several times."""
    count = max(1, int(BUDGET / REPEATS / max(once, 1e-7)))
    repeats = REPEATS if once * count <= BUDGET else 2
    return min(repeated(count) for _ in range(repeats)) / count


@functools.lru_cache(maxsize=256)
def _numpy_seconds(name: str, size: int) -> float:
    """The time of numpy, measured once in a process."""
    task, values = TASKS[name], _operands(name, size)

    def repeated(count: int) -> float:
        return _timed(lambda: task.baseline(*values), count)

    repeated(1)
    return max(_best(repeated, repeated(1)), 1e-9)


def trusted(results: Iterable[Result]) -> list[Result]:
    """The profiles among the results, without those of ops that failed a case."""
    results = list(results)
    wrong = {
        (result.case.law.partition(".")[0], result.case.op)
        for result in results
        if result.status not in ("passed", "unsupported") and result.case.dtype in ("", float32.name)
    }

    def is_right(task: Task) -> bool:
        return not any((group, op) in wrong for op in task.relies for group in (task.group, "values"))

    passed = [r for r in results if r.case.law == "performance.profile" and r.status == "passed"]
    return [result for result in passed if is_right(TASKS[result.case.op])]
