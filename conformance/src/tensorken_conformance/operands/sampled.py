"""Sampled: operands for every op, as it describes them itself: its samples, its domain, the roles of its operands.

For laws that ask whether an op runs at all, what shape it gives, or how long it takes.  The values are ordinary ones.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from tensorken_conformance.subject import Array, Subject
from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import DTYPES, DType, bool_, float64, int32
from tensorken_core.language.op import OPS, Op, Sample
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy

_ROLES = {"condition": bool_, "indices": int32}


def methods() -> list[Op]:
    """The ops that are methods of a backend."""
    return [op for op in OPS.values() if op.method]


def kinds_of(op: Op, count: int, dtype: DType) -> tuple[DType, ...]:
    """The dtypes of so many operands whose data are of a dtype."""
    return tuple([_ROLES.get(op.roles[i], dtype) if op.roles else dtype for i in range(count)])


def takes(op: Op, dtype: DType) -> bool:
    """Whether the language defines an op for data of a dtype.

    >>> takes(OPS["exp"], DTYPES["float32"]), takes(OPS["exp"], DTYPES["int32"])
    (True, False)
    """
    shapes, params = op.samples[0]
    try:
        op.result_dtype(kinds_of(op, len(shapes), dtype), params)
    except DTypeError:
        return False
    return True


def dtypes_of(op: Op) -> Iterator[DType]:
    """The dtypes for which the language defines an op."""
    return (dtype for dtype in DTYPES.values() if takes(op, dtype))


def samples_of(op: Op, dtypes: Collection[str] = tuple(DTYPES)) -> list[Sample]:
    """The samples of an op; a dtype among the params is one of these.

    >>> [str(params[0]) for shapes, params in samples_of(OPS["cast"], ["bool", "float32"])]
    ['float32', 'bool']
    """
    if "dtype" not in op.params:
        return list(op.samples)
    shapes, params = op.samples[0]
    place = op.params.index("dtype")
    offered = [dtype for name, dtype in reversed(DTYPES.items()) if name in dtypes]
    return [(shapes, (*params[:place], dtype, *params[place + 1 :])) for dtype in offered]


def values_of(op: Op, sample: Sample, dtype: DType) -> list[tuple[Array, DType]]:
    """Operands as the sample describes them, with their dtypes: data from the op's domain, no two alike.

    >>> [x.shape for x, dtype in values_of(OPS["gather"], OPS["gather"].samples[0], DTYPES["int32"])]
    [(3, 4), (5,)]
    """
    return list(_values(op.name, *sample, dtype))


@functools.lru_cache(maxsize=4096)
def _values(
    name: str, shapes: tuple[Shape, ...], params: tuple[Any, ...], dtype: DType
) -> tuple[tuple[Array, DType], ...]:
    op = OPS[name]
    rng = random.Random(f"{name} {shapes}")
    kinds = kinds_of(op, len(shapes), dtype)
    operands = [
        _drawn(op, i, shape, shapes, params, kind, rng)
        for i, (shape, kind) in enumerate(zip(shapes, kinds, strict=True))
    ]
    if op.prepare is not None and dtype.kind == "float":
        operands = _prepared(op, operands)
    return tuple([(x.astype(kind.name), kind) for x, kind in zip(operands, kinds, strict=True)])


def _drawn(
    op: Op,
    place: int,
    shape: Shape,
    shapes: Sequence[Shape],
    params: tuple[Any, ...],
    kind: DType,
    rng: random.Random,
) -> Array:
    count = int(np.prod(shape, dtype=int))
    values: list[Any]
    if op.roles and op.roles[place] == "indices":
        limit = params[-1] if op.params == ("axis", "size") else shapes[0][params[0]]
        values = [rng.randrange(limit) for _ in range(count)]
    elif kind.kind == "bool":
        values = [rng.random() < 0.5 for _ in range(count)]
    elif kind.kind == "int":
        values = [rng.randint(1, 5) for _ in range(count)]
    else:
        values = [rng.uniform(*op.domain) for _ in range(count)]
    return np.array(values, float64.name if kind.kind == "float" else kind.name).reshape(shape)


def _prepared(op: Op, operands: Sequence[Array]) -> list[Array]:
    """The operands made such that the op is smooth there."""
    place = Numpy()
    given = [Tensor(place, x, x.shape, float64) for x in operands]
    assert op.prepare is not None
    return [np.array(y.representation) for y in op.prepare(*given)]


def tensors_of(
    subject: Subject, op: Op, sample: Sample, dtype: DType, interpreter: RawTensor[Any] | None = None
) -> list[Tensor]:
    """These operands as tensors, on the call counter if no interpreter is named."""
    return [subject.tensor(x, kind, interpreter) for x, kind in values_of(op, sample, dtype)]
