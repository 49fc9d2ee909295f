"""lifetime.caller-memory: a tensor shares no memory with its source, nor with the values read from it."""

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
"""The tensors that are read: a new one, views of it, and results; changing the read values changes none of them."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each dtype, each way to make a tensor from memory, and each way to read one."""
    dtypes = subject.dtypes()[:1] if subject.depth == "smoke" else subject.dtypes()
    for dtype in dtypes:
        for way in memory.WAYS_IN:
            if memory.takes(way, dtype):
                yield Case("lifetime.caller-memory", way, dtype.name)
        for way in memory.WAYS_OUT:
            if memory.gives(way, _blank(subject, dtype.name)):
                yield Case("lifetime.caller-memory", way, dtype.name)


def _blank(subject: Subject, dtype: str) -> Tensor:
    """A tensor without values, which has only a shape and a dtype."""
    return Tensor(subject.stack, None, (1,), DTYPES[dtype])


@law("lifetime.caller-memory", cases, level=4)
def caller_memory(subject: Subject, case: Case) -> None:
    """Changing the memory that a tensor was made from, or values read from one, changes no tensor.

    That holds whether the tensor was used before the change or not, and two reads do not return the same memory.
    """
    few = subject.depth == "smoke" and case.op not in memory.WAYS_IN
    for shape in SHAPES[:2] if few else SHAPES:
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
        raise Failure(f"{says}: two reads return the same memory")
    exact.agree(
        subject, x, values, f"{says}: the operand, after the values read from the result were changed"
    )
    expected = right.reshape(y.shape).astype(case.dtype)
    exact.agree(subject, y, expected, f"{says}: after the read values were changed")
    exact.agree(subject, result(x), expected, f"{says}: computed again after the read values were changed")
