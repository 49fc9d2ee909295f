"""Operands for every op of the table, drawn as the op says: its samples, its domain, the roles of its operands."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tensorken as tk
from core.tests.each import with_rows
from core.tests.support import FUSED
from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import DTYPES, DType, bool_, float64, int32
from tensorken_core.language.op import OPS, Op, Sample
from tensorken_core.tensor.tensor import Tensor, apply

SAMPLES = [(op, sample) for op in OPS.values() for sample in op.samples]
DIFFERENTIABLE = [(op, sample) for op, sample in SAMPLES if op.differentiable]


def over(cases: list[tuple[Op, Sample]]) -> Any:
    """One test for each op, which runs all samples of the op."""
    samples: dict[Op, list[dict[str, Sample]]] = {}
    for op, sample in cases:
        samples.setdefault(op, []).append({"sample": sample})
    each = pytest.mark.parametrize("op", samples, ids=[op.name for op in samples])

    def decorate(test: Callable[..., None]) -> Any:
        return each(with_rows(test, ("sample",), lambda op, **fixtures: samples[op]))

    return decorate


def role_of(op: Op, place: int) -> str:
    return op.operand_kinds[place] if op.operand_kinds else "data"


def draw(op: Op, sample: Sample, seed: int = 0, dtype: DType = float64, backend: Any = FUSED) -> list[Tensor]:
    """Operands of an op: distinct data from its domain, conditions, and indices with repetitions."""
    rng = random.Random(f"{op.name} {seed}")
    shapes, params = sample
    operands = []
    for place, shape in enumerate(shapes):
        size = 1
        for n in shape:
            size *= n
        values: list[Any]
        role = role_of(op, place)
        if role == "condition":
            kind, values = bool_, [rng.random() < 0.5 for _ in range(size)]
        elif role == "indices":
            limit = params[-1] if op.name == "scatter_add" else shapes[0][params[0]]
            kind, values = int32, [rng.randrange(limit) for _ in range(size)]
        else:
            kind = dtype
            if dtype is bool_:
                values = [rng.random() < 0.5 for _ in range(size)]
            elif dtype.kind == "int":
                values = [rng.randint(-5 if kind.signed else 0, 5) for _ in range(size)]
            else:
                low, high = op.domain
                values = [rng.uniform(low, high) for _ in range(size)]
        operands.append(tk.new(shape, values, kind, backend=backend))
    return operands if op.adjust_samples is None else list(op.adjust_samples(*operands))


def random_like(x: Tensor, seed: object) -> Tensor:
    rng = random.Random(f"like {seed}")
    return x.constant([rng.uniform(-1.0, 1.0) for _ in range(x.size)], x.dtype, x.shape)


def smooth(op: Op) -> tuple[int, ...]:
    """The indices of the operands that have a derivative."""
    return tuple(i for i in range(99 if op.arity is None else op.arity) if role_of(op, i) == "data")


def as_function(op: Op, sample: Sample, operands: list[Tensor], places: tuple[int, ...]) -> Any:
    """The op as a function of the operands at these indices; several results are concatenated."""

    def f(*chosen: Tensor) -> Tensor:
        full = list(operands)
        for place, x in zip(places, chosen, strict=True):
            full[place] = x
        result = apply(op, full, sample[1])
        return result if op.results == 1 else tk.concatenate([y.ravel() for y in result])

    return f


def dtypes_of(op: Op) -> Iterator[DType]:
    """The dtypes that the op takes as data."""
    for dtype in DTYPES.values():
        if takes(op, dtype):
            yield dtype


def takes(op: Op, dtype: DType) -> bool:
    shapes, params = op.samples[0]
    given = [
        {"data": dtype, "condition": bool_, "indices": int32}[role_of(op, i)] for i in range(len(shapes))
    ]
    try:
        op.dtype(*given, *params)
    except DTypeError:
        return False
    return True
