"""A backend on ONNX Runtime: an op is a graph of a few nodes, compiled once for its dtypes.

Values are numpy arrays.  The scripts in `bugs/` show why some ops are not a node of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import pi, prod
from typing import Any

import numpy as np
import onnxruntime
from onnx import parser

from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.dtypes import (
    DTYPES,
    DType,
    bool_,
    float32,
    float64,
    int32,
    int64,
    integer_bounds,
)
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Axes, Pairs, Shape, multiplied, reduced
from tensorken_core.rewriting.fuse import Fuse

ONNX = {bool_: "bool", int32: "int32", int64: "int64", float32: "float", float64: "double"}
"""The names of the dtypes in the text form of ONNX."""

NUMBER = {bool_: 9, int32: 6, int64: 7, float32: 1, float64: 11}
"""The values of the enum `TensorProto.DataType`."""

HEADER = '<ir_version: 13, opset_import: ["" : 26]>'

NODES = """
    exp:Exp log:Log sqrt:Sqrt floor:Floor ceil:Ceil round:Round reciprocal:Reciprocal
    neg:Neg abs:Abs sign:Sign add:Add sub:Sub mul:Mul div:Div pow:Pow eq:Equal matmul:MatMul
"""
"""The ops that are one node."""

SHIFT = """
    bits = Cast<to={unsigned}>(a)
    places = Cast<to={unsigned}>(b)
    shifted = BitShift<direction="{direction}">(bits, places)
    y = Cast<to={number}>(shifted)
"""

WHERE = """
    left = {to}<to={bits}>(b)
    right = {to}<to={bits}>(c)
    both = Where(a, left, right)
    y = {to}<to={number}>(both)
"""

NAMES = [*"abcde", *[f"x{i}" for i in range(5, 1000)]]
"""The names of the operands in a graph."""

QUARTER = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
"""Parts of pi / 2, of which products with small integers are exact."""

A = np.ndarray[Any, Any]


@cache
def session(graph: str) -> onnxruntime.InferenceSession:
    """The compiled model of a graph in the text form of ONNX."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    model = parser.parse_model(f"{HEADER} {graph}").SerializeToString()
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def computed(nodes: str, dtype: DType, *operands: A) -> A:
    """The result y of nodes that read the operands a, b, c, ..., which broadcast."""
    inputs = dict(zip(NAMES, operands, strict=False))
    params = ", ".join([f"{ONNX[DTYPES[x.dtype.name]]}[] {name}" for name, x in inputs.items()])
    result: A = session(f"op ({params}) => ({ONNX[dtype]}[] y) {{ {nodes} }}").run(None, inputs)[0]
    return result


def array(values: Any) -> A:
    """Integers as an operand that is no value of the backend, such as axes."""
    return np.array(values, np.int64)


class Onnx(RawTensor[A]):
    """The required ops as graphs of ONNX, run on the CPU."""

    capabilities = Capabilities(dtypes=tuple(map(str, ONNX)), shares_memory=True)

    # ---- values ------------------------------------------------------------------------------------------------

    def new(self, shape: Shape, data: Any, dtype: DType) -> A:
        return self.full(shape, np.array(data, dtype.name).reshape(shape), dtype)

    def full(self, shape: Shape, value: Any, dtype: DType) -> A:
        if dtype not in ONNX:
            raise NotImplementedError(f"onnx: there is no {dtype}")
        return np.full(shape, value, dtype.name)

    def shape(self, x: A) -> Shape:
        return x.shape

    def dtype(self, x: A) -> DType:
        return DTYPES[x.dtype.name]

    def ravel(self, x: A) -> A:
        return x.flatten()

    # ---- elements ----------------------------------------------------------------------------------------------

    def lt(self, a: A, b: A) -> A:
        nodes = "c = Not(a) y = And(c, b)" if a.dtype == bool else "y = Less(a, b)"
        return computed(nodes, bool_, a, b)

    def where(self, condition: A, a: A, b: A) -> A:
        dtype = self.dtype(a)
        if dtype.kind == "int":
            return computed("y = Where(a, b, c)", dtype, condition, a, b)
        bits = NUMBER[int64 if dtype is float64 else int32]
        to = "Cast" if dtype is bool_ else "BitCast"
        nodes = WHERE.format(to=to, bits=bits, number=NUMBER[dtype])
        return computed(nodes, dtype, condition, a, b)

    def cast(self, x: A, dtype: DType) -> A:
        y = computed(f"y = Cast<to={NUMBER[dtype]}>(a)", dtype, x)
        if x.dtype.kind != "f" or dtype.kind != "int":
            return y
        low, high = integer_bounds(dtype)
        limits = [np.array(n, x.dtype) for n in (low, -low)]
        finite = self.where(self.lt(x, limits[0]), np.array(low, y.dtype), y)
        finite = self.where(self.lt(x, limits[1]), finite, np.array(high, y.dtype))
        return self.where(self.eq(x, x), finite, np.array(0, y.dtype))

    def to_bits(self, x: A) -> A:
        dtype = int64 if x.dtype == np.float64 else int32
        return computed(f"y = BitCast<to={NUMBER[dtype]}>(a)", dtype, x)

    def from_bits(self, x: A) -> A:
        dtype = float64 if x.dtype == np.int64 else float32
        return computed(f"y = BitCast<to={NUMBER[dtype]}>(a)", dtype, x)

    def remainder(self, a: A, b: A) -> A:
        if a.dtype.kind == "i":
            return self.interpret(OPS["remainder"], (a, b), ())
        zero, y = np.array(0.0, a.dtype), computed("y = Mod<fmod=1>(a, b)", self.dtype(a), a, b)
        negative = self.lt(b, zero)
        opposite = self.bitwise_xor(self.lt(y, zero), negative)
        y = self.where(self.eq(y, zero), zero, self.where(opposite, self.add(y, b), y))
        return self.where(self.bitwise_and(self.eq(y, zero), negative), self.neg(zero), y)

    def _circular(self, node: str, x: A) -> A:
        """The sine or cosine; of float64 from 0.7 to 16 by the remainder of a division by pi / 2."""
        y = computed(f"y = {node}(a)", self.dtype(x), x)
        if x.dtype == np.float32:
            return y
        a = self.tensor_type(self, x)
        turns = (a * (2 / pi)).round()
        for part in QUARTER:
            a = a - turns * part
        sine, cosine = [computed(f"y = {name}(a)", float64, a.representation) for name in ("Sin", "Cos")]
        quarters = turns + (node == "Cos")
        halves = (quarters * 0.5).floor()
        value = self.where((quarters - halves * 2.0).eq(1.0).representation, cosine, sine)
        negative = (halves * 0.5).floor() < halves * 0.5
        reduced = self.where(negative.representation, self.neg(value), value)
        size = self.tensor_type(self, x).abs()
        return self.where(((size > 0.7) & (size < 16.0)).representation, reduced, y)

    def sin(self, x: A) -> A:
        return self._circular("Sin", x)

    def cos(self, x: A) -> A:
        return self._circular("Cos", x)

    def floor_divide(self, a: A, b: A) -> A:
        zero, one, minus_one = [np.array(n, a.dtype) for n in (0, 1, -1)]
        by_zero, by_minus_one = self.eq(b, zero), self.eq(b, minus_one)
        divisor = self.where(self.bitwise_or(by_zero, by_minus_one), one, b)
        quotient = self.div(a, divisor)
        rest = self.sub(a, self.mul(quotient, divisor))
        opposite = self.bitwise_xor(self.lt(rest, zero), self.lt(divisor, zero))
        below = self.lt(self.eq(rest, zero), opposite)
        quotient = self.where(below, self.sub(quotient, one), quotient)
        return self.where(by_zero, zero, self.where(by_minus_one, self.neg(a), quotient))

    def _bitwise(self, name: str, a: A, b: A) -> A:
        node = name if a.dtype == bool else f"Bitwise{name}"
        return computed(f"y = {node}(a, b)", self.dtype(a), a, b)

    def bitwise_and(self, a: A, b: A) -> A:
        return self._bitwise("And", a, b)

    def bitwise_or(self, a: A, b: A) -> A:
        return self._bitwise("Or", a, b)

    def bitwise_xor(self, a: A, b: A) -> A:
        return self._bitwise("Xor", a, b)

    def _shift(self, direction: str, a: A, b: A) -> A:
        dtype = self.dtype(a)
        zero, most = [np.array(n, a.dtype) for n in (0, 8 * dtype.itemsize - 1)]
        outside = self.bitwise_or(self.lt(b, zero), self.lt(most, b))
        nodes = SHIFT.format(unsigned=12 if dtype is int32 else 13, number=NUMBER[dtype], direction=direction)
        return self.where(outside, zero, computed(nodes, dtype, a, self.where(outside, zero, b)))

    def shift_left(self, a: A, b: A) -> A:
        return self._shift("LEFT", a, b)

    def shift_right(self, a: A, b: A) -> A:
        return self._shift("RIGHT", a, b)

    # ---- movements ---------------------------------------------------------------------------------------------

    def reshape(self, x: A, shape: Shape) -> A:
        return computed("y = Reshape<allowzero=1>(a, b)", self.dtype(x), x, array(shape))

    def permute(self, x: A, order: Shape) -> A:
        return computed(f"y = Transpose<perm={list(order)}>(a)", self.dtype(x), x) if order else x

    def expand(self, x: A, shape: Shape) -> A:
        return computed("y = Expand(a, b)", self.dtype(x), x, array(shape))

    def _slice(self, x: A, starts: Any, ends: Any, axes: Any, step: int) -> A:
        params = [array(n) for n in (starts, ends, axes, [step] * len(axes))]
        return computed("y = Slice(a, b, c, d, e)", self.dtype(x), x, *params)

    def flip(self, x: A, axes: Axes) -> A:
        ends = [integer_bounds(int64)[0]] * len(axes)
        return self._slice(x, [-1] * len(axes), ends, axes, -1) if axes else x

    def crop(self, x: A, limits: Pairs) -> A:
        return self._slice(x, *zip(*limits, strict=True), range(x.ndim), 1) if limits else x

    def pad(self, x: A, pads: Pairs) -> A:
        return computed("y = Pad(a, b)", self.dtype(x), x, array(pads).T.reshape(-1)) if pads else x

    # ---- reductions and indexing -------------------------------------------------------------------------------

    def sum(self, x: A, axes: Axes) -> A:
        if x.dtype.kind == "f":
            return computed("y = ReduceSum<keepdims=1>(a, b)", self.dtype(x), x, array(axes)) if axes else x
        kept = tuple([axis for axis in range(x.ndim) if axis not in axes])
        shape = reduced(x.shape, axes)
        rows = self.reshape(
            self.permute(x, (*kept, *axes)), (prod(shape), prod([x.shape[axis] for axis in axes]))
        )
        ones = self.full((rows.shape[1], 1), 1, self.dtype(x))
        return self.reshape(computed("y = MatMul(a, b)", self.dtype(x), rows, ones), shape)

    def _largest(self, x: A, axes: Axes) -> A:
        return computed("y = ReduceMax<keepdims=1>(a, b)", self.dtype(x), x, array(axes))

    def max(self, x: A, axes: Axes) -> A:
        if not axes or x.dtype.kind != "f":
            return self._largest(x, axes) if axes else x
        unordered = self._largest(computed("y = IsNaN(a)", bool_, x), axes)
        return self.where(unordered, np.array(np.nan, x.dtype), self._largest(x, axes))

    def fused_multiply_add(self, a: A, b: A, axes: Axes) -> A:
        a, b = [
            self.sum(x, tuple([axis for axis in axes if other.shape[axis] == 1 != x.shape[axis]]))
            for x, other in ((a, b), (b, a))
        ]
        letters = "abcdefghijklmnopqrstuvwxyz"[: a.ndim]
        names = ["".join([c for c, n in zip(letters, x.shape, strict=True) if n != 1]) for x in (a, b)]
        kept = "".join([c for axis, c in enumerate(letters) if axis not in axes and c in "".join(names)])
        squeezed = [self.reshape(x, tuple([n for n in x.shape if n != 1])) for x in (a, b)]
        node = f'y = Einsum<equation="{",".join(names)}->{kept}">(a, b)'
        return self.reshape(computed(node, self.dtype(a), *squeezed), multiplied(a.shape, b.shape, axes))

    def gather(self, x: A, indices: A, axis: int) -> A:
        return computed(f"y = Gather<axis={axis}>(a, b)", self.dtype(x), x, indices)

    def scatter_add(self, x: A, indices: A, axis: int, size: int) -> A:
        column = self.reshape(indices, tuple([-1 if i == axis else 1 for i in range(x.ndim)]))
        start = self.full((*x.shape[:axis], size, *x.shape[axis + 1 :]), 0, self.dtype(x))
        node = f'y = ScatterElements<axis={axis}, reduction="add">(a, b, c)'
        return computed(node, self.dtype(x), start, self.expand(column, x.shape), x)

    def concatenate(self, *operands: Any) -> A:
        *pieces, axis = operands
        names = ", ".join(NAMES[: len(pieces)])
        return computed(f"y = Concat<axis={axis}>({names})", self.dtype(pieces[0]), *pieces)


def _method(node: str) -> Callable[..., A]:
    names = "a, b" if node in ("Add", "Sub", "Mul", "Div", "Pow", "Equal", "MatMul") else "a"
    return lambda self, *operands: computed(
        f"y = {node}({names})", bool_ if node == "Equal" else self.dtype(operands[0]), *operands
    )


for _pair in NODES.split():
    _name, _, _node = _pair.partition(":")
    setattr(Onnx, _name, _method(_node))


def load() -> RawTensor[Any]:
    """The backend for users: products are fused with the sums of them."""
    return Fuse(Onnx())
