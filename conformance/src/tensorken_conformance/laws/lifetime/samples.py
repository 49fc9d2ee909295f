"""Samples: every op of the table, on operands on which it makes sense."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.laws import extrema, movement
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Depth, Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy

Sample = tuple[tuple[Shape, ...], tuple[Any, ...]]
"""The shapes of the operands, and the params."""

SIZES = (63, 64, 65, 255, 256, 257)


def samples(op: Op, depth: Depth = "default") -> list[Sample]:
    """Those that the op declares, and for ops of many sizes some around thresholds; in the quick run one."""
    if depth == "smoke":
        return quick(op)
    found: list[Sample] = list(op.samples)
    shapes: tuple[Shape, ...] = (*((n,) for n in SIZES), (3, 4, 2), (17, 16))
    if op.elementwise:
        found += [((shape,) * (op.arity or 1), ()) for shape in shapes]
    elif op.name in movement.MOVEMENTS and op.name != "expand":
        found += [
            ((shape,), params) for shape in shapes for params in movement.variants(op.name, shape).values()
        ]
    elif op.arity == 1 and op.params == ("axes",):
        found += [((shape,), (axes,)) for shape in shapes for axes in extrema.variants("max", shape)]
    elif op.arity == 1 and op.params == ("axis",):
        found += [((shape,), (axis,)) for shape in shapes for axis in range(len(shape))]
    elif op.name == "cast":
        found += [((shape,), op.samples[0][1]) for shape in shapes]
    elif op.name == "gather":
        found += [(((n,), (n,)), (0,)) for n in SIZES]
    elif op.name == "scatter_add":
        found += [(((n,), (n,)), (0, n)) for n in SIZES]
    return found


def heavy(op: Op) -> bool:
    """Whether an op is a factorization or the like, which backends may compute in many steps: they prepare operands."""
    return op.prepare is not None


def quick(op: Op) -> list[Sample]:
    """The smallest that the op declares with several elements: for the quick run, and slow backends."""
    sizes = {sample: [math.prod(shape) for shape in sample[0]] for sample in op.samples}
    return sorted((sample for sample in sizes if max(sizes[sample]) > 1), key=lambda one: sum(sizes[one]))[:1]


def repeated(op: Op, depth: Depth = "default") -> list[Sample]:
    """Those on which an op is run many times: the few that it declares, and one of more elements than a workgroup.

    In the quick run it is one.
    """
    if depth == "smoke":
        return quick(op)
    found: list[Sample] = list(op.samples)
    if op.elementwise:
        found.append((((65,),) * (op.arity or 1), ()))
    elif op.arity == 1 and op.params in (("axes",), ("axis",)):
        found.append((((300,),), ((0,) if op.params == ("axes",) else 0,)))
    elif op.name == "fused_multiply_add":
        found.append((((300,), (300,)), ((0,),)))
    elif op.name == "scatter_add":
        found.append((((300,), (300,)), (0, 3)))
    return found


def cases(law: str, subject: Subject) -> Iterator[Case]:
    """Each op in each dtype that it takes and the backend has; in the quick run in one of them."""
    for op in OPS.values():
        found = [dtype for dtype in subject.dtypes() if dtypes_of(subject, op, dtype) is not None]
        if subject.depth == "smoke":
            found = [dtype for dtype in found if dtype.name == "float32"] or found[:1]
        for dtype in found:
            yield Case(law, op.name, dtype.name)


def params_of(subject: Subject, params: tuple[Any, ...]) -> tuple[Any, ...]:
    """The params of a sample; in place of a dtype that the backend lacks one that it has."""
    declared = subject.dtypes()
    return tuple([declared[0] if isinstance(p, DType) and p not in declared else p for p in params])


def dtypes_of(subject: Subject, op: Op, dtype: DType) -> tuple[DType, ...] | None:
    """The dtype of each operand of an op, whose data have this one; None if there is no such op here."""
    if not op.samples:
        return None
    shapes, params = op.samples[0]
    roles = op.roles or ("data",) * len(shapes)
    special = {"condition": DTYPES["bool"], "indices": DTYPES["int32"]}
    found = tuple([special.get(role, dtype) for role in roles])
    has = all(kind in subject.dtypes() for kind in found)
    return found if has and exact.takes(op, found, params_of(subject, params)) else None


@functools.cache
def _drawn(
    op: Op, shapes: tuple[Shape, ...], params: tuple[Any, ...], dtypes: tuple[DType, ...], seed: int
) -> tuple[Array, ...]:
    rng = np.random.default_rng([seed, zlib.crc32(f"{op.name} {shapes} {params} {dtypes}".encode())])
    found: list[Array] = []
    for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
        if op.roles and op.roles[i] == "indices":
            end = params[1] if op.name == "scatter_add" else shapes[0][params[0]]
            found.append(rng.integers(0, max(end, 1), shape).astype(dtype.name))
        elif dtype.kind == "bool":
            found.append(rng.random(shape) < 0.5)
        elif dtype.kind == "int":
            found.append(rng.integers(-7, 8, shape).astype(dtype.name))
        else:
            found.append(rng.uniform(*op.domain, shape).astype(dtype.name))
    if op.prepare is not None:
        found = [np.array(x, x.dtype.name) for x in op.prepare(*_on_numpy(found))]
    for x in found:
        x.setflags(write=False)
    return tuple(found)


def _on_numpy(arrays: list[Array]) -> list[Tensor]:
    place = Numpy()
    return [Tensor(place, np.asarray(x), x.shape, DTYPES[x.dtype.name]) for x in arrays]


def operands(subject: Subject, op: Op, sample: Sample, dtype: DType, number: int = 0) -> tuple[Array, ...]:
    """The values of the operands of a sample; others for each number."""
    shapes, params = sample
    dtypes = dtypes_of(subject, op, dtype)
    assert dtypes is not None
    if op.arity is None:
        dtypes = (dtype,) * len(shapes)
    return _drawn(op, shapes, params_of(subject, params), dtypes, subject.seed + 1000 * number)
