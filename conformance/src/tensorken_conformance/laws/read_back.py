"""values.read-back: tensors read back as the values that they were made from; all laws on values need this one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject, require_facts
from tensorken_core.language.dtypes import DTYPES, DType, wrap_integer
from tensorken_core.tensor.tensor import Tensor

SHAPES = {
    "scalar": (),
    "empty": (0,),
    "one": (1,),
    "small": (2, 3),
    "inner-zero": (2, 0, 3),
    "prime": (7,),
    "257": (257,),
}

SPECIALS = (0.0, -0.0, 1.0, -1.5, float("inf"), -float("inf"), float("nan"))


def cases(subject: Subject) -> Iterator[Case]:
    """Each way to make a tensor, dtype and shape."""
    for dtype in subject.dtypes():
        for shape in SHAPES:
            for way in ("new", "sequence", "full"):
                yield Case("values.read-back", way, dtype.name, shape)


def pool(subject: Subject, dtype: DType) -> list[bool | int | float]:
    """Values at the edges of a dtype, all different; subnormal ones unless the backend declares to make them zero."""
    if dtype.kind == "bool":
        return [True, False]
    if dtype.kind == "int":
        ends = np.iinfo(dtype.name)
        edges_of_ints = (0, 1, -1, 127, -127, int(ends.min), int(ends.max))
        return list(dict.fromkeys([wrap_integer(v, dtype) for v in edges_of_ints]))
    form = FORMATS[dtype.name]
    edges = [
        form.max,
        -form.max,
        form.tiny,
        1.0 + 2.0 ** (1 - form.precision),
        float(np.array(1 / 3, dtype.name)),
    ]
    if dtype.name not in subject.capabilities.flushes_subnormals:
        edges += [form.smallest, form.tiny - form.smallest]
    return [*SPECIALS, *edges]


def numbers(subject: Subject, case: Case, dtype: DType, count: int) -> Array:
    """`count` values of a dtype in random order: all edge values, if they fit."""
    values = pool(subject, dtype)
    rng = subject.random(case)
    found = rng.sample(values, len(values)) + [rng.choice(values) for _ in range(count)]
    return np.array(found[:count], dtype.name)


@law("values.read-back", cases, level=1, reads=False, stage=0)
def read_back(subject: Subject, case: Case) -> None:
    """A tensor made from a buffer, a sequence or one number reads back as the same bits."""
    dtype, shape = DTYPES[case.dtype], SHAPES[case.shape]
    interpreter = subject.call_counter
    if case.op == "full":
        for value in pool(subject, dtype):
            x = subject.wrap(interpreter.full(shape, value, dtype), shape, dtype)
            _compare(subject, f"full of {value}", x, np.full(shape, value, dtype.name))
        return
    values = numbers(subject, case, dtype, int(np.prod(shape, dtype=int))).reshape(shape)
    if case.op == "sequence":
        for value in pool(subject, dtype) if shape == (1,) else ():  # in sequence, equal ones too
            x = subject.wrap(interpreter.new(shape, [value], dtype), shape, dtype)
            _compare(subject, f"sequence of {value}", x, np.array([value], dtype.name))
        x = subject.wrap(interpreter.new(shape, values.reshape(-1).tolist(), dtype), shape, dtype)
    else:
        x = subject.tensor(values, dtype)
    _compare(subject, case.op, x, values)


def _compare(subject: Subject, says: str, x: Tensor, values: Array) -> None:
    """Require a tensor to have the shape, the dtype and the bits of an array."""
    require_facts(says, x, values.shape, x.dtype)
    exact.agree(subject, x, values, says)
