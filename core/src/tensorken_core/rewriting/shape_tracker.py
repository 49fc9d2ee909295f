"""ShapeTracker: an interpreter over a backend that computes shapes and dtypes itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

from tensorken_core.language.dtypes import DType
from tensorken_core.language.interpreter import R
from tensorken_core.language.op import Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.rewriting.wrapper import Wrapper


@dataclass(frozen=True, slots=True)
class Tracked(Generic[R]):
    """A value of the backend, with its shape and dtype."""

    value: R
    shape: Shape
    dtype: DType


class ShapeTracker(Wrapper[Tracked[R]]):
    """Computes shapes and dtypes by the rules of the language, and calls a backend for values only.

    Shapes then never trigger the work of a backend that delays it.

    >>> import tensorken as tk
    >>> from tensorken_string.backend import String
    >>> x = tk.ones((2, 3), backend=tk.ShapeTracker(String()))
    >>> (x @ x.T).shape
    (2, 2)
    """

    raw: RawTensor[R]

    def wrap(self, value: R) -> Tracked[R]:
        return Tracked(value, self.raw.shape(value), self.raw.dtype(value))

    def value(self, x: Tracked[R]) -> R:
        return x.value

    def shape(self, x: Tracked[R]) -> Shape:
        return x.shape

    def dtype(self, x: Tracked[R]) -> DType:
        return x.dtype

    def new(self, shape: Shape, data: Any, dtype: DType) -> Tracked[R]:
        return Tracked(self.raw.new(shape, data, dtype), shape, dtype)

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Tracked[R]:
        return Tracked(self.raw.full(shape, value, dtype), shape, dtype)

    def deferred_operands(self, x: Tracked[R]) -> Sequence[Tracked[R]]:
        raw = self.raw
        return [Tracked(value, raw.shape(value), x.dtype) for value in raw.deferred_operands(x.value)]

    def settle(self, x: Tracked[R]) -> Tracked[R]:
        self.raw.settle(x.value)
        return x

    def realize(self, x: Tracked[R]) -> Tracked[R]:
        return Tracked(self.raw.realize(x.value), x.shape, x.dtype)

    def interpret(self, op: Op, operands: Sequence[Tracked[R]], params: tuple[Any, ...]) -> Any:
        if not self.raw.has(op) and op.body is not None:
            return super().interpret(op, operands, params)
        shape = op.shape(*[x.shape for x in operands], *params)
        dtype = op.result_dtype(tuple([x.dtype for x in operands]), params)
        value = run(self.raw, op, [x.value for x in operands], params)
        if op.results == 1:
            return Tracked(value, shape, dtype)
        return tuple([Tracked(*parts) for parts in zip(value, shape, dtype, strict=True)])
