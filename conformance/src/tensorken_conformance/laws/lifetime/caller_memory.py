"""lifetime.caller-memory: the memory that a tensor is made of, and what is read of it, belong to the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.lifetime import memory
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.tensor.tensor import Tensor

SHAPES = ((2, 3), (), (1,), (64,), (257,), (17, 16))

RESULTS: dict[str, Callable[[Tensor], Tensor]] = {
    "new": lambda x: x,
    "reshape": lambda x: x.reshape((x.size,)),
    "permute": lambda x: x.permute(tuple(reversed(range(x.ndim)))),
    "expand": lambda x: x.reshape((1, *x.shape)).expand((2, *x.shape)),
    "flip": lambda x: x.flip(tuple(range(x.ndim))),
    "crop": lambda x: x.crop(tuple([(0, n) for n in x.shape])),
    "full": lambda x: x.scalar(1),
    "choice": lambda x: x.eq(x).where(x, x),
}
"""What is read: a tensor as it was made, views of it, and results; they are not changed by changing what was read."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each dtype, each way to make a tensor of memory, and each to read one."""
    dtypes = subject.dtypes()[:1] if subject.depth == "smoke" else subject.dtypes()
    for dtype in dtypes:
        for way in memory.WAYS_IN:
            if memory.takes(way, dtype):
                yield Case("lifetime.caller-memory", way, dtype.name)
        for way in memory.WAYS_OUT:
            if memory.gives(way, _blank(subject, dtype.name)):
                yield Case("lifetime.caller-memory", way, dtype.name)


def _blank(subject: Subject, dtype: str) -> Tensor:
    """A tensor that is only asked what it is."""
    return Tensor(subject.stack, None, (1,), DTYPES[dtype])


@law("lifetime.caller-memory", cases, level=4)
def caller_memory(subject: Subject, case: Case) -> None:
    """Changing memory that a tensor was made of, or that was read of one, changes no tensor.

    That holds whether the tensor was used before the change or not, and what is read twice is not the same memory.
    """
    for shape in SHAPES:
        values = np.array(exact.drawn(subject, case, shape))
        if case.op in memory.WAYS_IN:
            _made(subject, case, values)
        else:
            for name, result in RESULTS.items():
                _read(subject, case, values, name, result)


def _made(subject: Subject, case: Case, values: Array) -> None:
    data, x = memory.WAYS_IN[case.op](subject, values, DTYPES[case.dtype])
    used = x.reshape((values.size,))
    says = f"{case.op} of {case.dtype} {values.shape}"
    memory.overwrite(data)
    exact.agree(subject, x, values, f"{says}, after its memory was changed")
    exact.agree(subject, used, values.reshape(-1), f"{says}, reshaped before its memory was changed")
    memory.overwrite(data)
    memory.overwrite(data)
    exact.agree(subject, x, values, f"{says}, after its memory was changed again")


def _read(subject: Subject, case: Case, values: Array, name: str, result: Callable[[Tensor], Tensor]) -> None:
    dtype, way = DTYPES[case.dtype], memory.WAYS_OUT[case.op]
    x = subject.tensor(values, dtype, subject.stack)
    y = result(x)
    says = f"{case.op} of {case.dtype} {values.shape}, {name}"
    first, second = way(y), way(y)
    right = memory.numbers(first)
    if not memory.overwrite(first):
        return
    if memory.numbers(second).tobytes() != right.tobytes():
        raise Failure(f"{says}: what was read first and what was read second are the same memory")
    exact.agree(subject, x, values, f"{says}: the operand, after what was read of the result was changed")
    expected = right.reshape(y.shape).astype(case.dtype)
    exact.agree(subject, y, expected, f"{says}: after what was read was changed")
    exact.agree(subject, result(x), expected, f"{says}: computed again after what was read was changed")
