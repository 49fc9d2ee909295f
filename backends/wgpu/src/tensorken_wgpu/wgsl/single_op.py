"""A program of one op, with the attributes of programs that this backend uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import Op
from tensorken_core.language.shapes import Shape


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """A variable of a program: its identity, a shape and a dtype."""

    shape: Shape
    dtype: DType


@dataclass(frozen=True, eq=False, slots=True)
class Equation:
    """The op on its operands."""

    op: Op
    operands: tuple[Value, ...]
    params: tuple[Any, ...]
    results: tuple[Value, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Single:
    """The program."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    equations: tuple[Equation, ...]
    constants: Mapping[Value, Any] = field(default_factory=dict)


def single(op: Op, values: Sequence[Value], params: tuple[Any, ...]) -> Single:
    """The program of an op on values of these shapes and dtypes."""
    inputs = tuple([Value(x.shape, x.dtype) for x in values])
    shapes = op.shape(*[x.shape for x in inputs], *params)
    dtypes = op.result_dtype(tuple([x.dtype for x in inputs]), params)
    types = [(shapes, dtypes)] if op.results == 1 else zip(shapes, dtypes, strict=True)
    results = tuple([Value(*type_) for type_ in types])
    return Single(inputs, results, (Equation(op, inputs, params, results),))
