"""Enclosure: an interpreter whose values are intervals of the results of all conforming backends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorken.lazy.interpreter import Lazy
from tensorken_conformance.enclosure import (
    arithmetic,
    arrangement,
    complex_matrices,
    elementary,
    exponential_sums,
    factorizations,
    fourier,
    integers,
    reductions,
)
from tensorken_conformance.enclosure.arithmetic import Rule
from tensorken_conformance.enclosure.errors import Errors
from tensorken_conformance.enclosure.interval import Array, Interval, anything, exactly
from tensorken_core.errors import DTypeError
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.rewriting.wrapper import Wrapper
from tensorken_core.tensor.tensor import Tensor

RULES: dict[str, Rule] = {
    **arithmetic.RULES,
    **integers.RULES,
    **elementary.RULES,
    **reductions.RULES,
    **arrangement.RULES,
    **exponential_sums.RULES,
    **factorizations.RULES,
    **complex_matrices.RULES,
    **fourier.RULES,
}
"""The rule of each op."""


class Enclosure(RawTensor[Interval]):
    """The interpreter of intervals: those of the possible results of backends with these capabilities.

    A result lies in its interval if every op that led to it is within its errors.  Without declared errors, the limits
    of the kit hold.  Derivatives and batches run on it as on any backend.

    >>> import tensorken as tk
    >>> third = enclosed(tk.tensor(1.0, backend=Enclosure(Capabilities(ulp={"*": 0}))) / 3)
    >>> float(third[0]) == float(third[1]) == float(np.float32(1) / np.float32(3))
    True
    """

    broadcasts = True

    def __init__(self, capabilities: Capabilities | None = None) -> None:
        self.capabilities = capabilities or Capabilities(dtypes=tuple(DTYPES))
        self.errors = Errors(self.capabilities)

    def __repr__(self) -> str:
        return "Enclosure()"

    def interpret(self, op: Op, operands: Sequence[Interval], params: tuple[Any, ...]) -> Any:
        """Apply the op's rule; without one the result is unbounded, since a backend need not run the op's body."""
        rule = RULES.get(op.name)
        if rule is None:
            return self._unknown(op, operands, params)
        with np.errstate(all="ignore"):
            return rule(self.errors, *operands, *params)

    def _unknown(self, op: Op, operands: Sequence[Interval], params: tuple[Any, ...]) -> Any:
        """Intervals of all values."""
        shapes = op.shape(*[x.shape for x in operands], *params)
        dtypes = op.result_dtype(tuple([x.dtype for x in operands]), params)
        if op.results == 1:
            return anything(shapes, dtypes)
        return tuple([anything(*facts) for facts in zip(shapes, dtypes, strict=True)])

    def has(self, op: Op) -> bool:
        return True

    def new(self, shape: Shape, data: Any, dtype: DType) -> Interval:
        values = np.asarray(data) if isinstance(data, memoryview) else np.array(list(data), dtype.name)
        return exactly(values.reshape(shape), dtype)

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Interval:
        with np.errstate(over="ignore"):
            return exactly(np.full(shape, value, dtype.name), dtype)

    def shape(self, x: Interval) -> Shape:
        return x.shape

    def dtype(self, x: Interval) -> DType:
        return x.dtype

    def ravel(self, x: Interval) -> Any:
        """The values, if each is known.

        Raises:
            DTypeError: if one may be several numbers.
        """
        if not (x.exact | (x.empty & x.maybe_nan)).all():
            raise DTypeError("ravel: an enclosure has no single values here; use enclosed(x)")
        return np.where(x.empty, np.nan, x.low).astype(x.dtype.name).reshape(-1)


def enclosure_for(interpreter: RawTensor[Any], contracts: bool = False) -> RawTensor[Any]:
    """The enclosure for an interpreter; in `Fuse` if that is, so that sums of products are the same sums.

    Args:
        interpreter: in `Fuse`, or any other.
        contracts: whether a pass contracts sums of products as `Fuse` does; it does so for a lazy backend that
            compiles.
    """
    enclosure = Enclosure(interpreter.capabilities)
    layer = interpreter
    while isinstance(layer, Wrapper) and not isinstance(layer, Fuse | Lazy):
        layer = layer.raw
    if isinstance(layer, Lazy):
        contracts |= compiles(layer.raw)
    return Fuse(enclosure) if contracts or isinstance(layer, Fuse) else enclosure


def compiles(backend: RawTensor[Any]) -> bool:
    """Whether a backend compiles programs."""
    return type(backend).compile is not RawTensor.compile


def interval(x: Tensor) -> Interval:
    """The interval of a tensor on an enclosure, also on a fused one; DTypeError on another interpreter."""
    interpreter: Any = x.interpreter
    representation = x.representation
    if isinstance(interpreter, Fuse):
        interpreter, representation = interpreter.raw, interpreter.value(representation)
    if not isinstance(representation, Interval):
        raise DTypeError(f"enclosed: the tensor must stand on an Enclosure, not on {interpreter!r}")
    return representation


def enclosed(x: Tensor) -> tuple[Array, Array, Array]:
    """The lower ends, the upper ends, and where the element may be NaN; where low > high it is certainly NaN."""
    found = interval(x)
    return found.low, found.high, found.maybe_nan


def contains(x: Tensor, values: Array) -> Array:
    """Whether each of these values lies in its interval.

    >>> import tensorken as tk
    >>> x = tk.tensor([0.5, 1.0], backend=Enclosure())
    >>> contains(tk.exp(x), np.exp(np.array([0.5, 2.0], np.float32))).tolist()
    [True, False]
    """
    found = interval(x)
    if found.dtype.kind != "float":
        return np.asarray((found.low <= values) & (values <= found.high))
    wide = values.astype(np.float64)
    nan = np.isnan(wide)
    return np.asarray(np.where(nan, found.maybe_nan, (found.low <= wide) & (wide <= found.high)))
