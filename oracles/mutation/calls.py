"""Calls: every op with random params, operands of many sizes, dtypes and memory layouts, and special values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorken_conformance.operands.samples import kinds_of, takes
from tensorken_conformance.subject import put
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS, Op, Sample
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor

Array = np.ndarray[Any, Any]

LENGTHS = (0, 1, 1, 2, 3, 5, 8, 16, 17, 33, 64, 65, 129, 256, 513, 1000, 4097, 66_000)
SYMMETRIC = ("cholesky", "eigh", "eigvalsh")
SQUARE = ("solve", "triangular_solve", "inv", "det", "cofactors", "slogdet", "eig", "eigvals", *SYMMETRIC)
MATRICES = (*SQUARE, "qr", "svd", "svdvals", "pinv")
SPECIAL = (np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0, 1e-40, -1e-310, 1e38, -1e300, 6e-8, 65504.0)


class Calls:
    """Random calls on an interpreter.

    Args:
        interpreter: the backend.
        rng: the generator of all that is random.
        largest: the number of elements of the largest operand.
    """

    def __init__(self, interpreter: RawTensor[Any], rng: np.random.Generator, largest: int) -> None:
        self._interpreter, self._rng, self._largest = interpreter, rng, largest

    def drawn(self, op: Op) -> Iterator[tuple[str, list[Tensor], tuple[Any, ...]]]:
        """One call for each dtype that the op takes: a description, the operands and the params."""
        for dtype in DTYPES.values():
            if dtype.name in self._interpreter.capabilities.dtypes and takes(op, dtype):
                shapes, params = self._sample(op)
                kinds = kinds_of(op, len(shapes), dtype)
                operands = [
                    self._operand(op, i, shape, kind, shapes, params)
                    for i, (shape, kind) in enumerate(zip(shapes, kinds, strict=True))
                ]
                sizes = " ".join("x".join(map(str, shape)) or "scalar" for shape in shapes)
                yield f"{op.name} {dtype} {sizes} {params or ''}", operands, params

    # ---- shapes and params ---------------------------------------------------------------------------------

    def _any(self, values: Any) -> Any:
        return values[int(self._rng.integers(len(values)))]

    def _length(self, most: int | None = None) -> int:
        most = min(most or self._largest, self._largest)
        return int(self._any([n for n in LENGTHS if n <= most]))

    def _shape(self, least: int = 0) -> Shape:
        """A shape of at least so many axes, of which the last or another one may be long."""
        count = int(self._rng.integers(least, 4 + (least > 3)))
        shape = [int(self._rng.integers(1, 5)) for _ in range(count)]
        if count:
            place = int(self._rng.integers(count))
            others = math.prod(shape) // shape[place]
            shape[place] = self._length(self._largest // others)
        return tuple(shape)

    def _axes(self, count: int) -> tuple[int, ...]:
        return tuple(i for i in range(count) if self._rng.random() < 0.5)

    def _sample(self, op: Op) -> Sample:
        """Shapes of the operands, and params; the op's own samples if it is not known here."""
        if self._rng.random() < 0.1:
            return self._any(op.samples)  # type: ignore[no-any-return]
        shape = self._shape()
        axes = self._axes(len(shape))
        if op.elementwise:
            return ((shape,) * (op.arity or 1), ())
        match op.name, op.params:
            case _, ("axes",) if op.arity == 1:
                is_empty = any(shape[i] == 0 for i in axes) and op.name in ("max", "min", "softmax")
                return ((shape,), (() if is_empty else axes,))
            case "concatenate", _:
                shape = self._shape(1)
                axis = int(self._rng.integers(len(shape)))
                several = [
                    (*shape[:axis], self._length(40), *shape[axis + 1 :])
                    for _ in range(self._rng.integers(1, 5))
                ]
                return (tuple(several), (axis,))
            case _, ("axis",) if op.arity == 1:
                shape = tuple(max(n, 1) for n in self._shape(1))
                return ((shape,), (int(self._rng.integers(len(shape))),))
            case "matmul", _:
                m, k, n = (max(1, self._length(70)) for _ in range(3))
                return (((m, k), (k, n)), ())
            case "fused_multiply_add", _:
                m, k, n = (max(1, self._length(70)) for _ in range(3))
                batch = self._any(((), (3,)))
                return (((*batch, m, k, 1), (*batch, 1, k, n)), ((len(batch) + 1,),))
            case "convolution", _:
                return self._convolution()
            case "gather", _:
                shape = tuple(max(n, 1) for n in self._shape(1))
                return ((shape, (self._length(300),)), (int(self._rng.integers(len(shape))),))
            case "scatter_add", _:
                shape = self._shape(1)
                axis = int(self._rng.integers(len(shape)))
                return ((shape, (shape[axis],)), (axis, int(self._rng.integers(1, 20))))
            case "reshape", _:
                factors = [n for n in shape if n != 1]
                return ((shape,), (tuple(self._rng.permutation(factors).tolist()),))
            case "permute", _:
                return ((shape,), (tuple(self._rng.permutation(len(shape)).tolist()),))
            case "expand", _:
                return ((tuple(1 if i in axes else n for i, n in enumerate(shape)),), (shape,))
            case "flip", _:
                return ((shape,), (axes,))
            case "pad", _:
                return ((shape,), (tuple((self._length(3), self._length(3)) for _ in shape),))
            case "crop", _:
                ends = [sorted(self._rng.integers(0, n + 1, 2).tolist()) for n in shape]
                return ((shape,), (tuple((start, end) for start, end in ends),))
            case "fft", _:
                shape = tuple(max(n, 1) for n in self._shape(1))
                return ((shape, shape), (bool(self._rng.random() < 0.5),))
            case "rfft", _:
                return ((tuple(max(n, 1) for n in self._shape(1)),), ())
            case "irfft", _:
                size = max(1, self._length(4097))
                shape = (3, size // 2 + 1)
                return ((shape, shape), (size,))
            case "cast", _:
                has = [DTYPES[name] for name in self._interpreter.capabilities.dtypes]
                return ((shape,), (self._any(has),))
            case "threefry2x32", _:
                shape = (*self._shape(), 2)
                return ((shape, shape), ())
        return self._factorization(op) or self._any(op.samples)

    def _convolution(self) -> Sample:
        count = int(self._rng.integers(1, 3))
        groups, batch, outs, ins = (int(n) for n in self._rng.integers(1, 4, 4))
        window = [int(n) for n in self._rng.integers(1, 4, count)]
        strides, dilation, holes = (tuple(self._rng.integers(1, 3, count).tolist()) for _ in range(3))
        most = max(8, round((self._largest / 16) ** (1 / count)))
        sizes = [int(self._rng.integers(8, min(most, 40) + 1)) for _ in range(count)]
        padding = tuple((int(a), int(b)) for a, b in self._rng.integers(-1, 3, (count, 2)))
        shapes = (batch, groups * ins, *sizes), (groups * outs, ins, *window)
        return (shapes, (strides, padding, dilation, holes, groups))

    def _factorization(self, op: Op) -> Sample | None:
        name = op.name.removeprefix("complex_")
        if name not in MATRICES:
            return None
        n = int(self._rng.integers(1, 12 if self._largest > 100 else 5))
        m = n if name in SQUARE else int(self._rng.integers(1, 12))
        batch = self._any(((), (2,)))
        copies = 2 if op.name != name else 1
        shapes: list[Shape] = [(*batch, n, m)] * copies
        if name in ("solve", "triangular_solve"):
            shapes += [(*batch, n, 3)] * copies
        if name == "pinv":
            shapes += [batch]
        params = (bool(self._rng.random() < 0.5),) if op.params == ("flag",) else ()
        return (tuple(shapes), params)

    # ---- operands ------------------------------------------------------------------------------------------

    def _operand(
        self,
        op: Op,
        place: int,
        shape: Shape,
        dtype: DType,
        shapes: tuple[Shape, ...],
        params: tuple[Any, ...],
    ) -> Tensor:
        role = op.operand_kinds[place] if op.operand_kinds else "data"
        if role == "indices":
            size = params[1] if op.name == "scatter_add" else shapes[0][params[0]]
            values = self._rng.integers(0, size, shape)
        elif op.name.removeprefix("complex_") in MATRICES:
            values = self._matrix(op.name.removeprefix("complex_"), shape, place)
            if op.name.startswith("complex_") and place % 2 and len(shape) > 1:
                values = (
                    (values - values.swapaxes(-1, -2)) / 8 if shape[-1] == shape[-2] else values / 4
                )  # Hermitian
        else:
            values = self._numbers(shape, dtype, op.domain)
        with np.errstate(all="ignore"):
            rounded = np.asarray(values).astype(dtype.name)
        return self._laid(rounded, dtype)

    def _matrix(self, name: str, shape: Shape, place: int) -> Array:
        if len(shape) < 2 or (name == "pinv" and place and len(shape) < 2):
            return np.full(shape, 1e-4)
        x = self._rng.normal(size=shape)
        if name in SYMMETRIC:
            x = x @ x.swapaxes(-1, -2) + np.eye(shape[-1])
        elif name in SQUARE and shape[-1] == shape[-2]:
            x = x + 3 * np.eye(shape[-1])
        return x

    def _numbers(self, shape: Shape, dtype: DType, domain: tuple[float, float]) -> Array:
        if dtype.kind == "bool":
            return self._rng.random(shape) < 0.5
        if dtype.kind == "int":
            limits = np.iinfo(dtype.name)
            if self._rng.random() < 0.5:
                return self._rng.integers(-7 if dtype.signed else 0, 8, shape)
            return self._rng.integers(limits.min, limits.max, shape, dtype.name, endpoint=True)
        values = self._rng.uniform(*domain, shape)
        if self._rng.random() < 0.3:
            values = np.where(self._rng.random(shape) < 0.2, self._rng.choice(SPECIAL, shape), values)
        return values

    def _laid(self, values: Array, dtype: DType) -> Tensor:
        """A tensor of these values in a random memory layout."""
        layout = self._any(("plain", "plain", "flipped", "permuted", "cropped", "repeated"))
        count = values.ndim
        axes = tuple(range(count))
        if layout == "flipped" and count:
            return self._moved("flip", np.flip(values, axes), dtype, axes)
        if layout == "permuted" and count:
            return self._moved("permute", values.transpose(axes[::-1]), dtype, axes[::-1])
        if layout == "cropped" and count:
            limits = tuple((1, n + 1) for n in values.shape)
            return self._moved("crop", np.pad(values, 1), dtype, limits)
        if layout == "repeated" and count and values.shape[0] and values.shape[0] < 20:
            return self._moved("expand", values[:1], dtype, values.shape)
        return put(self._interpreter, values, dtype)

    def _moved(self, name: str, base: Array, dtype: DType, *params: Any) -> Tensor:
        tensor: Tensor = apply(OPS[name], [put(self._interpreter, base, dtype)], params)
        return tensor
