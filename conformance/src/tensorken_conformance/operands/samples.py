"""Samples: operands for every op, from its own samples, domain and kinds of operands."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.layouts import shapes as classes
from tensorken_conformance.subject import Array, Subject
from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import DTYPES, DType, bool_, float64, int32
from tensorken_core.language.op import OPS, Op, Sample
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy

MATRICES: dict[str, Sample] = {
    **dict.fromkeys(("cholesky", "eigh", "eigvalsh", "svdvals", "inv", "det", "cofactors"), (((3, 3),), ())),
    "slogdet": (((3, 3),), ()),
    "qr": (((3, 3),), (False,)),
    "svd": (((3, 3),), (False,)),
    "solve": (((3, 3), (3, 2)), ()),
    "triangular_solve": (((3, 3), (3, 2)), (True,)),
    "pinv": (((3, 3), ()), ()),
}
"""The samples of factorizations in the smoke run: those of values.factorizations."""

_ROLES = {"condition": bool_, "indices": int32}


# ---- ops and dtypes ----------------------------------------------------------------------------------------


def methods() -> list[Op]:
    """The ops that are methods of a backend."""
    return [op for op in OPS.values() if op.method]


def role_of(op: Op, position: int) -> str:
    """Whether an operand of an op is data, a condition, or indices."""
    return op.operand_kinds[position] if op.operand_kinds else "data"


def kinds_of(op: Op, count: int, dtype: DType) -> tuple[DType, ...]:
    """The dtypes of so many operands whose data are of a dtype."""
    return tuple([_ROLES.get(role_of(op, i), dtype) for i in range(count)])


def takes(op: Op, dtype: DType) -> bool:
    """Whether the language defines an op for data of a dtype.

    >>> takes(OPS["exp"], DTYPES["float32"]), takes(OPS["exp"], DTYPES["int32"])
    (True, False)
    """
    shapes, params = op.samples[0]
    try:
        op.dtype(*kinds_of(op, len(shapes), dtype), *params)
    except DTypeError:
        return False
    return True


def dtypes_of(op: Op) -> Iterator[DType]:
    """The dtypes for which the language defines an op."""
    return (dtype for dtype in DTYPES.values() if takes(op, dtype))


def offered(subject: Subject, op: Op) -> list[DType]:
    """The dtypes of an op's data for which the backend has all dtypes of its operands."""
    has, count = subject.dtypes(), len(op.samples[0][0])
    return [d for d in has if takes(op, d) and all(kind in has for kind in kinds_of(op, count, d))]


def cases(law: str, subject: Subject) -> Iterator[Case]:
    """Each op in each dtype that it takes and the backend has; in the smoke run in one of them."""
    for op in OPS.values():
        dtypes = subject.sampled(offered(subject, op)) if op.samples else []
        yield from [Case(law, op.name, dtype.name) for dtype in dtypes]


# ---- samples -----------------------------------------------------------------------------------------------


def samples_of(op: Op, dtypes: Collection[str] = tuple(DTYPES)) -> list[Sample]:
    """The samples of an op; each of these dtypes takes the place of a dtype among the params.

    >>> [str(params[0]) for shapes, params in samples_of(OPS["cast"], ["bool", "float32"])]
    ['float32', 'bool']
    """
    if "dtype" not in op.params:
        return list(op.samples)
    shapes, params = op.samples[0]
    position = op.params.index("dtype")
    offered = [dtype for name, dtype in reversed(DTYPES.items()) if name in dtypes]
    return [(shapes, (*params[:position], dtype, *params[position + 1 :])) for dtype in offered]


def heavy(op: Op) -> bool:
    """Whether an op prepares its sample operands, as factorizations do, which take long on some backends."""
    return op.adjust_samples is not None


def declared(subject: Subject, op: Op) -> list[Sample]:
    """The samples of an op; a dtype of the backend replaces a param dtype that the backend lacks."""
    has = subject.dtypes()
    return [
        (shapes, tuple([has[0] if isinstance(p, DType) and p not in has else p for p in params]))
        for shapes, params in op.samples
    ]


def of_size(op: Op, size: int) -> list[Sample]:
    """A sample with one axis of a size, if the params of the op allow it."""
    if op.elementwise:
        return [(((size,),) * (op.arity or 1), ())]
    if op.arity == 1 and op.params in (("axes",), ("axis",)):
        return [(((size,),), ((0,) if op.params == ("axes",) else 0,))]
    params: dict[str, Any] = {"fused_multiply_add": ((0,),), "gather": (0,), "scatter_add": (0, 3)}
    return [(((size,), (size,)), params[op.name])] if op.name in params else []


def repeated(subject: Subject, op: Op) -> list[Sample]:
    """The samples of laws that run an op many times: its own, and one with more elements than a workgroup.

    In the smoke run it is the smallest sample with several elements.  Elementwise ops and factorizations have operands
    of one shape there, so that a backend that compiles an op for each shape compiles it once for all laws.
    """
    found = declared(subject, op)
    if subject.depth == "smoke":
        if op.elementwise:
            return [((classes.class_of("small").shape,) * (op.arity or 1), ())]
        if op.name in MATRICES:
            return [MATRICES[op.name]]
        sizes = {sample: [math.prod(shape) for shape in sample[0]] for sample in found}
        several = [sample for sample in found if max(sizes[sample]) > 1]
        return sorted(several, key=lambda sample: sum(sizes[sample]))[:1]
    return [*found, *of_size(op, 65 if op.elementwise else 300)]


# ---- operands ----------------------------------------------------------------------------------------------


def drawn(op: Op, sample: Sample, dtype: DType, rng: random.Random) -> list[Array]:
    """Operands of a sample: data from the op's domain, conditions, indices with repetitions; floats in float64."""
    shapes, params = sample
    operands = []
    for position, (shape, kind) in enumerate(zip(shapes, kinds_of(op, len(shapes), dtype), strict=True)):
        count = math.prod(shape)
        values: list[Any]
        if role_of(op, position) == "indices":
            limit = params[-1] if op.params == ("axis", "size") else shapes[0][params[0]]
            values = [rng.randrange(limit) for _ in range(count)]
        elif kind.kind == "bool":
            values = [rng.random() < 0.5 for _ in range(count)]
        elif kind.kind == "int":
            values = [rng.randint(-7 if kind.signed else 0, 7) for _ in range(count)]
        else:
            values = [rng.uniform(*op.domain) for _ in range(count)]
        operands.append(np.array(values, "float64" if kind.kind == "float" else kind.name).reshape(shape))
    return operands if op.adjust_samples is None or dtype.kind != "float" else _prepared(op, operands)


def _prepared(op: Op, operands: Sequence[Array]) -> list[Array]:
    """The operands as the op adjusts them, so that it is smooth there."""
    numpy = Numpy()
    given = [Tensor(numpy, x, x.shape, float64) for x in operands]
    assert op.adjust_samples is not None
    return [np.array(y.representation) for y in op.adjust_samples(*given)]


def values_of(op: Op, sample: Sample, dtype: DType, seed: int = 0) -> list[tuple[Array, DType]]:
    """Operands of a sample, with their dtypes; they depend on the seed.

    >>> [x.shape for x, dtype in values_of(OPS["gather"], OPS["gather"].samples[0], DTYPES["int32"])]
    [(3, 4), (5,)]
    """
    return list(_values(op, *sample, dtype, seed))


@functools.lru_cache(maxsize=4096)
def _values(
    op: Op, shapes: tuple[Shape, ...], params: tuple[Any, ...], dtype: DType, seed: int
) -> tuple[tuple[Array, DType], ...]:
    operands = drawn(op, (shapes, params), dtype, random.Random(f"{seed} {op.name} {shapes} {params}"))
    found = []
    for x, kind in zip(operands, kinds_of(op, len(shapes), dtype), strict=True):
        x = x.astype(kind.name)
        x.setflags(write=False)
        found.append((x, kind))
    return tuple(found)


def tensors_of(
    subject: Subject, op: Op, sample: Sample, dtype: DType, interpreter: RawTensor[Any] | None = None
) -> list[Tensor]:
    """These operands as tensors, by default on the call counter."""
    return [subject.tensor(x, kind, interpreter) for x, kind in values_of(op, sample, dtype)]
