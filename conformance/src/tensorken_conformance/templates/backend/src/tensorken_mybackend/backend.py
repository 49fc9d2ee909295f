"""A complete backend in pure Python. A tensor is its shape, a flat list of numbers, and a dtype."""

import operator
from array import array
from collections.abc import Callable, Iterable
from itertools import product
from math import isfinite, nan, prod
from typing import Any, NamedTuple

from tensorken_core.host.plugin import Capabilities
from tensorken_core.language import scalar
from tensorken_core.language.dtypes import DType, bool_, float32, int32
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape, reduced


class Array(NamedTuple):
    """A tensor in row-major order."""

    shape: Shape
    data: list[Any]
    dtype: DType

    @property
    def steps(self) -> list[int]:  # the distance of neighbours along each axis
        return [prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]


def whole(v: int | float) -> int:
    """An int32: integers wrap; floats are truncated and saturate, and NaN is 0."""
    n = v if isinstance(v, int) else 0 if v != v else int(max(-(2.0**31), min(v, 2.0**31 - 1)))
    return (n + 2**31) % 2**32 - 2**31


def stored(values: Iterable[Any], dtype: DType) -> list[Any]:
    """Values in the format of the dtype: floats rounded to 32 bits, integers wrapped."""
    keep: Any = {bool_: bool, int32: whole, float32: float}[dtype]
    return array("f", values).tolist() if keep is float else list(map(keep, values))


def mapped(function: Callable[..., Any], *operands: Array) -> Array:
    """A method that applies a function to each element."""
    dtype = bool_ if function in (operator.eq, operator.lt) else operands[-1].dtype
    return Array(operands[0].shape, stored(map(function, *[x.data for x in operands]), dtype), dtype)


def places(shape: Shape, steps: Iterable[int], start: int = 0) -> list[int]:
    """The positions in the data of the elements of a view, in row-major order."""
    along = [range(0, n * step, step) if step else [0] * n for n, step in zip(shape, steps, strict=True)]
    return [start + sum(index) for index in product(*along)]


def view(x: Array, shape: Shape, steps: Iterable[int], start: int = 0) -> Array:
    """The elements of x in a view of this shape, these steps and this start."""
    return Array(shape, [x.data[i] for i in places(shape, steps, start)], x.dtype)


def totals(x: Array, axes: Shape, total: Callable[[list[Any]], Any]) -> Array:
    """One number for each slice along the axes, which keep size 1."""
    row = places(tuple([x.shape[axis] for axis in axes]), [x.steps[axis] for axis in axes])
    data = [total([x.data[start + i] for i in row]) for start in places(reduced(x.shape, axes), x.steps)]
    return Array(reduced(x.shape, axes), stored(data, x.dtype), x.dtype)


class Mybackend(RawTensor[Array]):
    """The required ops; all others have bodies."""

    capabilities = Capabilities(dtypes=("bool", "int32", "float32"), ulp={"add": 0, "sub": 0, "mul": 0})

    def new(self, shape: Shape, data: Any, dtype: DType) -> Array:
        return Array(shape, stored(data, dtype), dtype)

    def full(self, shape: Shape, value: Any, dtype: DType) -> Array:
        return Array(shape, stored([value], dtype) * prod(shape), dtype)

    def shape(self, x: Array) -> Shape:
        return x.shape

    def dtype(self, x: Array) -> DType:
        return x.dtype

    def ravel(self, x: Array) -> list[Any]:
        return list(x.data)

    def cast(self, x: Array, dtype: DType) -> Array:
        return self.new(x.shape, x.data, dtype)

    def to_bits(self, x: Array, code: str = "fi", dtype: DType = int32) -> Array:
        return Array(x.shape, array(code[1], array(code[0], x.data).tobytes()).tolist(), dtype)

    def from_bits(self, x: Array) -> Array:
        return self.to_bits(x, "if", float32)

    def sum(self, x: Array, axes: Shape) -> Array:
        return totals(x, axes, lambda row: sum(row[1:], row[0]) if row else 0)

    def max(self, x: Array, axes: Shape) -> Array:
        return totals(x, axes, lambda row: nan if any(v != v for v in row) else max(row))

    def reshape(self, x: Array, shape: Shape) -> Array:
        return Array(shape, x.data, x.dtype)

    def permute(self, x: Array, order: Shape) -> Array:
        return view(x, tuple([x.shape[axis] for axis in order]), [x.steps[axis] for axis in order])

    def expand(self, x: Array, shape: Shape) -> Array:
        return view(x, shape, [0 if n == 1 else step for n, step in zip(x.shape, x.steps, strict=True)])

    def flip(self, x: Array, axes: Shape) -> Array:
        steps = [-step if axis in axes else step for axis, step in enumerate(x.steps)]
        return view(x, x.shape, steps, sum([(x.shape[axis] - 1) * x.steps[axis] for axis in axes]))

    def crop(self, x: Array, limits: Any) -> Array:
        start = sum([low * step for (low, _), step in zip(limits, x.steps, strict=True)])
        return view(x, tuple([high - low for low, high in limits]), x.steps, start)

    def pad(self, x: Array, pads: Any) -> Array:
        shape = tuple([low + n + high for n, (low, high) in zip(x.shape, pads, strict=True)])
        y = self.full(shape, 0, x.dtype)
        start = sum([low * step for (low, _), step in zip(pads, y.steps, strict=True)])
        values = dict(zip(places(x.shape, y.steps, start), x.data, strict=True))
        return Array(shape, [values.get(i, zero) for i, zero in enumerate(y.data)], x.dtype)

    def gather(self, x: Array, indices: Array, axis: int) -> Array:
        rows, n, inner = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
        starts = [(i * n + j) * inner for i in range(rows) for j in indices.data]
        data = [value for start in starts for value in x.data[start : start + inner]]
        return Array((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), data, x.dtype)

    def scatter_add(self, x: Array, indices: Array, axis: int, size: int) -> Array:
        y = self.full((*x.shape[:axis], size, *x.shape[axis + 1 :]), 0, x.dtype)
        rows, inner = prod(x.shape[:axis]), range(prod(x.shape[axis + 1 :]))
        targets = [(i * size + j) * len(inner) + k for i in range(rows) for j in indices.data for k in inner]
        for target, value in zip(targets, x.data, strict=True):
            y.data[target] += value
        return Array(y.shape, stored(y.data, x.dtype), x.dtype)


ON_NUMBERS: dict[str, Callable[..., Any]] = {
    **{name: getattr(scalar, name) for name in ("exp", "log", "sin", "cos", "sqrt", "div", "pow")},
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "eq", "lt")},
    **{f"bitwise_{name}": getattr(operator, f"__{name}__") for name in ("and", "or", "xor")},
    "floor": lambda v: float(v // 1) if v and isfinite(v) else v,
    "where": lambda condition, p, q: p if condition else q,
    "floor_divide": lambda p, q: p // q if q else 0,
    "shift_left": lambda p, q: p << q if 0 <= q < 32 else 0,
    "shift_right": lambda p, q: p % 2**32 >> q if 0 <= q < 32 else 0,
}
for _name, _function in ON_NUMBERS.items():
    setattr(Mybackend, _name, lambda self, *operands, function=_function: mapped(function, *operands))
