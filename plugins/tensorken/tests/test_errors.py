"""Bad input: the exact class and the message of every mistake, and that the next call works.

A message names the call, what came (shapes, dtypes, axes), what was needed, and the way out; it is one short line.
"""

from __future__ import annotations

import inspect
import math
import pickle
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, array
from tensorken_core import errors
from tensorken_core.errors import (
    ArgumentError,
    AxisError,
    BackendError,
    ConcretizationError,
    DTypeError,
    EscapedTensorError,
    ExchangeError,
    GradientError,
    ImmutableError,
    IndexingError,
    MixedBackendError,
    ScalarRangeError,
    ShapeError,
    StructureError,
    UnknownBackendError,
)
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy
from tensorken_string.backend import String

pytestmark = pytest.mark.usefixtures("on_numpy")

V = tk.tensor([1.0, 2.0, 3.0], backend=FUSED)
M = tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], backend=FUSED)
S = tk.tensor(2.0, backend=FUSED)
I = tk.tensor([1, 2, 3], backend=FUSED)
B = tk.tensor([True, False, True], backend=FUSED)
D = tk.tensor([1.0, 2.0, 3.0], "float64", backend=FUSED)
E = tk.zeros((0, 3), backend=FUSED)
T = tk.zeros((2, 3, 4), backend=FUSED)
EXPRESSION = tk.symbol("A", backend=String())
OTHER = tk.tensor([1.0, 2.0, 3.0], backend=Fuse(Numpy()))


def zeros(*shape: int) -> tk.Tensor:
    return tk.zeros(shape)


def total(x: Any) -> Any:
    return (x * x).sum()


def leak() -> tk.Tensor:
    kept: list[tk.Tensor] = []

    def f(x: tk.Tensor) -> tk.Tensor:
        kept.append(x * x)
        return total(x)

    tk.grad(f)(V)
    return kept[0]


@dataclass(frozen=True)
class Row:
    """A mistake, and how it is answered; `words` are found in the message in this order."""

    call: Callable[[], Any]
    error: type[Exception]
    start: str
    words: tuple[str, ...]


def row(call: Callable[[], Any], error: type[Exception], start: str, *words: str) -> Row:
    return Row(call, error, start, words)


# fmt: off
SHAPES = [
    row(lambda: V + M.T, ShapeError, "add:", "(3,) and (3, 2) do not", "3 and 2 clash at axis -1", "reshape one"),
    row(lambda: M - zeros(2), ShapeError, "sub:", "(2, 3) and (2,)", "axis -1", "need equal, or 1", "reshape"),
    row(lambda: T * zeros(2, 1, 5), ShapeError, "mul:", "(2, 3, 4) and (2, 1, 5)", "4 and 5", "axis -1", "reshape"),
    row(lambda: T / zeros(5, 3, 4), ShapeError, "div:", "2 and 5 clash at axis -3", "reshape"),
    row(lambda: M ** zeros(2), ShapeError, "pow:", "(2, 3) and (2,)", "reshape"),
    row(lambda: zeros(4) > M, ShapeError, "greater:", "(2, 3) and (4,)", "reshape"),
    row(lambda: M.eq(zeros(2, 2)), ShapeError, "eq:", "(2, 3) and (2, 2)", "reshape"),
    row(lambda: tk.maximum(M, zeros(2)), ShapeError, "maximum:", "(2, 3) and (2,)", "reshape"),
    row(lambda: tk.where(B, M.T, V), ShapeError, "where:", "(3, 2)", "axis -1", "reshape"),
    row(lambda: M @ M, ShapeError, "matmul:", "(2, 3) @ (2, 3)", "axis -1", "has 3", "axis -2", "a.mT @ b would"),
    row(lambda: M @ zeros(2), ShapeError, "matmul:", "(2, 3) @ (2,)", "has 3", "axis -1", "has 2", "a.mT @ b would"),
    row(lambda: M @ zeros(4, 3), ShapeError, "matmul:", "(2, 3) @ (4, 3)", "has 3", "has 4", "a @ b.mT would fit"),
    row(lambda: M @ zeros(4, 2), ShapeError, "matmul:", "(2, 3) @ (4, 2)", "has 3", "has 4", "a.mT @ b.mT would fit"),
    row(lambda: zeros(4, 4) @ zeros(3, 2), ShapeError, "matmul:", "(4, 4) @ (3, 2)", "axis -1 of the first has 4",
        "axis -2 of the second has 3", "they must be equal"),
    row(lambda: V @ zeros(4), ShapeError, "matmul:", "(3,) @ (4,)", "has 3", "axis -1 of the second has 4", "equal"),
    row(lambda: M @ 2.0, ShapeError, "matmul:", "at least one axis", "(2, 3) and ()", r"use \*"),
    row(lambda: 2.0 @ M, ShapeError, "matmul:", "at least one axis", "() and (2, 3)", r"use \*"),
    row(lambda: T @ zeros(5, 4, 3),
        ShapeError, "matmul:", "batch axes of (2, 3, 4) @ (5, 4, 3)", "equal sizes, or 1"),
    row(lambda: tk.dot(T, T), ShapeError, "dot:", "axis -1 of (2, 3, 4) and axis -2 of (2, 3, 4)", "equal"),
    row(lambda: tk.linalg.solve(M, V), ShapeError, "solve:", "square", "(2, 3)", "tk.linalg.lstsq"),
    row(lambda: tk.linalg.inv(M), ShapeError, "inv:", "square", "(2, 3)", "tk.linalg.pinv"),
    row(lambda: tk.linalg.eigh(M), ShapeError, "eigh:", "square", "(2, 3)", "tk.linalg.svd"),
    row(lambda: tk.linalg.det(M), ShapeError, "det:", "square", "(2, 3)", "as many rows as columns"),
    row(lambda: M.reshape(4, 2), ShapeError, "reshape:", "(2, 3) (6 elements) to (4, 2) (8)", "sizes must agree"),
    row(lambda: M.reshape(-1, -1), ShapeError, "reshape:", "only one", "-1", "(-1, -1)", "give the others"),
    row(lambda: M.reshape(4, -1),
        ShapeError, "reshape:", "(4, -1)", "6 elements of shape (2, 3)", "change a size"),
    row(lambda: M.reshape(-2, -3), ShapeError, "reshape:", "(2, 3)", "(-2, -3)", "negative"),
    row(lambda: E.reshape(0, -1), ShapeError, "reshape:", "(0, -1)", "0 elements of shape (0, 3)"),
    row(lambda: M.reshape(1.5), ArgumentError, "reshape:", "must be ints", "1.5"),
    row(lambda: M.reshape((2, "3")), ArgumentError, "reshape:", "must be ints", "(2, '3')"),
    row(lambda: M.expand((2, 4)), ShapeError, "expand:", "(2, 3) to (2, 4)", "axis 1 has size 3", "only size 1"),
    row(lambda: M.expand((3,)), ShapeError, "expand:", "(2, 3) to (3,)", "number of axes", "reshape"),
    row(lambda: tk.broadcast_to(V, (3, 2)), ShapeError, "broadcast_to:", "(3,)", "(3, 2)", "equal or 1"),
    row(lambda: tk.broadcast_to(M, 3), ShapeError, "broadcast_to:", "(2, 3)", "(3,)", "equal or 1"),
    row(lambda: V.mT, ShapeError, "mT:", "at least 2 axes", "(3,)", "reshape"),
    row(lambda: M.pad(((1, 1),)), ShapeError, "pad:", "(2, 3) needs 2 (before, after) pairs", "got 1", "give"),
    row(lambda: M.pad(((1, 1), (-1, 0))), ShapeError, "pad:", "negative", "(-1, 0)", "crop"),
    row(lambda: M.pad(3), ArgumentError, "pad:", "pair of ints for each axis", "got 3"),
    row(lambda: M.pad(((1.5, 0), (0, 0))), ArgumentError, "pad:", "pair of ints", "1.5"),
    row(lambda: M.crop(((0, 3), (0, 1))), ShapeError, "crop:", "(0, 3) of axis 0", "(2, 3)", "end <= 2"),
    row(lambda: M.crop(((1, 0), (0, 1))), ShapeError, "crop:", "(1, 0) of axis 0", "start <= end"),
    row(lambda: M.crop(((0, 1),)), ShapeError, "crop:", "(2, 3) needs 2 (start, end) pairs", "got 1", "give"),
    row(lambda: tk.cbrt(1j), DTypeError, "cbrt:", "not defined for complex64"),  # made of other functions
    row(lambda: tk.bitwise_right_shift(V, V), DTypeError, "bitwise_right_shift:", "float32", "integers"),
    row(lambda: tk.nanmax(E), ShapeError, "nanmax:", "no elements to reduce", "(0, 3)"),
    row(lambda: tk.vmap(tk.fmax)(1j * V, 1j * V), DTypeError, "fmax:", "complex numbers have no order"),
    row(lambda: tk.jit(tk.digitize)(1j * V, V), DTypeError, "digitize:", "complex numbers have no order"),
    row(lambda: tk.squeeze(M, 0), ShapeError, "squeeze:", "axis 0 of shape (2, 3) has size 2", "leave this axis out"),
    row(lambda: tk.concatenate([M, V]), ShapeError, "concatenate:", "axis 0", "(2, 3) and (3,)", "reshape"),
    row(lambda: tk.concatenate([M, zeros(2, 2)]), ShapeError, "concatenate:", "(2, 3) and (2, 2)", "reshape or pad"),
    row(lambda: tk.concatenate([]),
        ArgumentError, "concatenate:", "at least one tensor", r"write concatenate([a, b])"),
    row(lambda: tk.concatenate(3), ArgumentError, "concatenate:", "sequence", "got 3", "write"),
    row(lambda: tk.stack([V, M]), ShapeError, "stack:", "one shape", "(3,) and (2, 3)", "reshape"),
    row(lambda: E.max(0), ShapeError, "max:", "no elements", "(0, 3)", "axes (0,)", "other axes"),
    row(lambda: E.min(), ShapeError, "min:", "no elements", "axes (0, 1)", "other axes"),
    row(lambda: E.argmax(0), ShapeError, "argmax:", "no elements", "(0, 3)", "other axes"),
    row(lambda: M.gather(tk.tensor([[0]]), 0), ShapeError, "gather:", "one axis", "(1, 1)", "tk.take"),
    row(lambda: M.scatter_add(I, 0, 3), ShapeError, "scatter_add:", "axis 0 of shape (2, 3)", "(2,)", "got (3,)"),
    row(lambda: V.scatter_add(I, 0, -1), ShapeError, "scatter_add:", "size of axis 0", "-1"),
    row(lambda: V.at[0].set([1.0, 2.0]), ShapeError, "at:", "(2,)", "indexed shape ()", "reshape"),
    row(lambda: V.item(), ShapeError, "item:", "(3,) has 3 elements", "exactly 1", "tolist"),
    row(lambda: float(V), ShapeError, "item:", "(3,)", "tolist"),
    row(lambda: int(M), ShapeError, "item:", "(2, 3) has 6 elements", "tolist"),
    row(lambda: tk.elementwise(lambda x: x.sum(), lambda x: x)(V),
        ShapeError, "lambda:", "keep the shape (3,)", "got ()"),
]

AXES = [
    row(lambda: M.sum(2), AxisError, "sum:", "axis 2", "(2, 3)", "from -2 to 1"),
    row(lambda: M.mean(-3), AxisError, "mean:", "axis -3", "(2, 3)", "from -2 to 1"),
    row(lambda: M.max((0, 5)), AxisError, "max:", "axis 5", "(2, 3)"),
    row(lambda: M.sum((1, -1)), AxisError, "sum:", "(1, -1)", "twice", "(2, 3)", "once"),
    row(lambda: M.flip((0, -2)), AxisError, "flip:", "(0, -2)", "twice", "(2, 3)", "once"),
    row(lambda: M.flip(2), AxisError, "flip:", "axis 2", "(2, 3)"),
    row(lambda: S.sum(0), AxisError, "sum:", "axis 0", "shape ()", "no axes"),
    row(lambda: M.sum(1.0), AxisError, "sum:", "must be an int", "1.0", "(2, 3)"),
    row(lambda: M.sum("0"), AxisError, "sum:", "must be an int", "'0'"),
    row(lambda: M.sum(True), AxisError, "sum:", "must be an int", "True"),
    row(lambda: M.sum(np.zeros((40, 40))), AxisError, "sum:", "must be an int", "<ndarray>"),
    row(lambda: M.argmax(5), AxisError, "argmax:", "axis 5", "(2, 3)"),
    row(lambda: M.cumsum(-4), AxisError, "cumsum:", "axis -4", "(2, 3)"),
    row(lambda: tk.softmax(M, 4), AxisError, "softmax:", "axis 4", "(2, 3)"),
    row(lambda: tk.log_softmax(M, 4), AxisError, "log_softmax:", "axis 4", "(2, 3)"),
    row(lambda: tk.logsumexp(M, (0, 0)), AxisError, "logsumexp:", "(0, 0)", "twice"),
    row(lambda: M.permute(0, 0), AxisError, "permute:", "(0, 0)", "(2, 3)", "each of 0..1 once"),
    row(lambda: M.permute(0), AxisError, "permute:", "(0,)", "(2, 3)", "once"),
    row(lambda: M.permute(0, 2), AxisError, "permute:", "axis 2", "(2, 3)"),
    row(lambda: tk.expand_dims(M, 7), AxisError, "expand_dims:", "axis 7", "from -3 to 2"),
    row(lambda: tk.squeeze(M, 4), AxisError, "squeeze:", "axis 4", "(2, 3)"),
    row(lambda: tk.concatenate([M, M], axis=2), AxisError, "concatenate:", "axis 2", "(2, 3)"),
    row(lambda: tk.concatenate([1.0, 2.0]), AxisError, "concatenate:", "axis 0", "shape ()", "no axes"),
    row(lambda: tk.stack([V, V], axis=3), AxisError, "stack:", "axis 3", "from -2 to 1"),
    row(lambda: tk.take(M, [0], 2), AxisError, "take:", "axis 2", "(2, 3)"),
]

DTYPES = [
    row(lambda: B - B, DTypeError, "sub:", "not defined for bool", "cast", "logical_xor"),
    row(lambda: -B, DTypeError, "neg:", "not defined for bool", "cast", "logical_not"),
    row(lambda: tk.cross(B, B), DTypeError, "cross:", "not defined for bool", "(3,) and (3,)", "cast"),
    row(lambda: V & V, DTypeError, "bitwise_and:", "not defined for float32", "integers", "cast"),
    row(lambda: V << 1, DTypeError, "shift_left:", "not defined for float32", "cast"),
    row(lambda: ~V, DTypeError, "invert:", "not defined for float32", "cast"),
    row(lambda: I**-1, DTypeError, "pow:", "int32", "-1", "not an integer", "cast"),
    row(lambda: tk.where(V, 1.0, 2.0), DTypeError, "where:", "condition must be bool", "float32", "x > 0"),
    row(lambda: tk.take(V, [0.5]), DTypeError, "take:", "integers", "float32", "cast"),
    row(lambda: V.gather(V, 0), DTypeError, "gather:", "int32 or int64", "float32", "cast"),
    row(lambda: tk.zeros(2, 3), DTypeError, "zeros:", "<int> is unknown", "the sizes of a shape go into one tuple"),
    row(lambda: V.astype("float8"), DTypeError, "astype:", "'float8' is unknown", "float32, float64"),
    row(lambda: tk.zeros(3, "complex256"), DTypeError, "zeros:", "'complex256'", "complex64, complex128"),
    row(lambda: V.astype(3), DTypeError, "astype:", "<int>", "float32, float64"),
    row(lambda: tk.tensor(np.array([1j]), "float32"), DTypeError, "tensor:", "complex numbers", "float32", "x.real"),
    row(lambda: tk.tensor([1], "uint8") + 256, ScalarRangeError, "add:", "256", "uint8", "0 to 2**8 - 1", "int64"),
]

NUMBERS = [
    row(lambda: I + 2**40, ScalarRangeError, "add:", "1099511627776", "int32", "-2**31 to 2**31 - 1", "int64"),
    row(lambda: -(2**31) - 1 - I, ScalarRangeError, "sub:", "-2147483649", "int32", "int64"),
    row(lambda: V * 10**400, ScalarRangeError, "mul:", "an int of 1329 bits", "float32", "math.inf"),
    row(lambda: I + 10**5000, ScalarRangeError, "add:", "an int of 16610 bits", "int32"),
    row(lambda: tk.tensor([1, 2**31]), ScalarRangeError, "tensor:", "2147483648", "int32", "int64"),
    row(lambda: tk.tensor([2**63], "int64"),
        ScalarRangeError, "tensor:", "9223372036854775808", "int64", "use a float"),
    row(lambda: tk.tensor(np.array([2**63], "uint64"), "int64"), ScalarRangeError, "tensor:", "9223372036854775808"),
    row(lambda: tk.tensor([10**400], "float64"), ScalarRangeError, "tensor:", "1329 bits", "float64"),
    row(lambda: tk.full(3, 2**31, "int32"), ScalarRangeError, "full:", "2147483648", "int32", "int64"),
    row(lambda: tk.tensor([1.0, math.inf], "int32"), ScalarRangeError, "tensor:", "inf", "int32", "floating-point"),
    row(lambda: tk.tensor([1.0, math.nan, 2.0], "int64"), ScalarRangeError, "tensor:", "nan", "int64", "floating"),
    row(lambda: tk.full((), math.nan, "int32"), ScalarRangeError, "full:", "nan", "int32", "floating-point"),
]

CREATION = [
    row(lambda: tk.tensor([[1, 2], [3]]),
        ShapeError, "tensor:", "ragged", r"data[1]", "(1,)", r"data[0]", "(2,)", "pad"),
    row(lambda: tk.tensor([[[1], [2]], [[3], [4, 5]]]), ShapeError, "tensor:", r"data[1][1]", r"data[1][0]", "pad"),
    row(lambda: tk.tensor([1, [2]]), ShapeError, "tensor:", "ragged", "(1,)", "()", "pad"),
    row(lambda: tk.tensor([V, S]), ShapeError, "tensor:", "(3,) and ()", "reshape"),
    row(lambda: tk.tensor(None), ArgumentError, "tensor:", "NoneType", "nested lists"),
    row(lambda: tk.tensor(["a"]), ArgumentError, "tensor:", "str", "nested lists"),
    row(lambda: tk.tensor({1, 2}), ArgumentError, "tensor:", "set", "list(x)"),
    row(lambda: tk.tensor(i for i in range(3)), ArgumentError, "tensor:", "generator", "list(x)"),
    row(lambda: tk.tensor(np.array(["2020-01-01"], "M8[D]")), DTypeError, "tensor:", "datetime64[D]", "astype"),
    row(lambda: tk.new((2, 2), [1, 2, 3]), ShapeError, "new:", "(2, 2) needs 4 values", "got shape (3,)"),
    row(lambda: tk.zeros((2, -1)), ShapeError, "zeros:", "negative", "(2, -1)"),
    row(lambda: tk.ones(2.5), ArgumentError, "ones:", "must be ints", "2.5"),
    row(lambda: tk.full(3, "x"), ArgumentError, "full:", "one number or tensor", "'x'", "tk.tensor"),
    row(lambda: tk.arange(0, 3, 0), ArgumentError, "arange:", "step from 0 to 3", "not be 0"),
    row(lambda: tk.arange(math.nan), ArgumentError, "arange:", "finite", "nan"),
    row(lambda: tk.linspace(0.0, 1.0, -1), ShapeError, "linspace:", "negative", "-1"),
    row(lambda: tk.eye(-1), ShapeError, "eye:", "negative", "-1"),
    row(lambda: tk.randn((2,), 0), ArgumentError, "randn:", "random.Random", "got 0", "random.Random(seed)"),
    row(lambda: tk.symbol("A", backend=FUSED), BackendError, "symbol:", "Fuse(Numpy())", "backend='string'"),
    row(lambda: tk.Tensor([1, 2]), ArgumentError, "Tensor:", "[1, 2]", r"tk.tensor(data)"),
    row(lambda: tk.Tensor(2, 3), ArgumentError, "Tensor:", "got 2", "tk.zeros"),
    row(lambda: tk.Tensor([1.0], dtype=tk.float32), ArgumentError, "Tensor:", "[1.0]", r"tk.tensor(data)"),
    row(lambda: M.sum(dim=0), ArgumentError, "sum:", "unexpected argument dim", "axis"),
    row(lambda: tk.sum(M, dim=0), ArgumentError, "sum:", "unexpected argument dim", "axis"),
    row(lambda: M.mean(axis=0, keepdim=True), ArgumentError, "mean:", "unexpected argument keepdim", "keepdims"),
    row(lambda: tk.stack([V, V], dim=1), ArgumentError, "stack:", "unexpected argument dim", "axis"),
    row(lambda: tk.concatenate(V, V), ArgumentError, "concatenate:", "one list", r"concatenate([a, b])"),
    row(lambda: tk.stack(V, V), ArgumentError, "stack:", "one list", r"stack([a, b])"),
    row(lambda: np.sum(M, out=V), ArgumentError, "sum:", "argument out", "immutable", "instead of numpy.sum"),
    row(lambda: V + "a", ArgumentError, "add:", "cannot combine", "str"),
    row(lambda: V * None, ArgumentError, "mul:", "cannot combine", "NoneType"),
    row(lambda: b"a" - V, ArgumentError, "sub:", "cannot combine", "bytes"),
    row(lambda: V < {}, ArgumentError, "lt:", "cannot combine", "dict"),
]

INDICES = [
    row(lambda: V[3], IndexingError, "index:", "3 is out of range for axis 0", "(3,)", "3 elements"),
    row(lambda: V[-4], IndexingError, "index:", "-4", "axis 0", "(3,)"),
    row(lambda: M[0, 3], IndexingError, "index:", "3", "axis 1", "(2, 3)"),
    row(lambda: V[0, 0], IndexingError, "index:", "2 indices", "(3,)", "1 axes", "fewer"),
    row(lambda: S[0], IndexingError, "index:", "1 indices", "shape ()", "fewer"),
    row(lambda: V[1.0], IndexingError, "index:", "float", "(3,)", "ints, slices"),
    row(lambda: V["a"], IndexingError, "index:", "str", "(3,)", "ints, slices"),
    row(lambda: V[I], IndexingError, "index:", "from 1 to 3", "axis 0", "(3,)", "-3 to 2"),
    row(lambda: M[B], IndexingError, "index:", "mask of shape (3,)", "sizes (2,)", "(2, 3)"),
    row(lambda: M[[0, 1, 0], [0, 1]], IndexingError, "index:", "(3,) and (2,)", "broadcast", "oindex"),
    row(lambda: V[S], IndexingError, "index:", "need integers or bools", "float32 of shape ()", "cast"),
    row(lambda: M[..., ...], IndexingError, "index:", "only one ...", "other axes"),
    row(lambda: V[::0], IndexingError, "index:", "slice(None, None, 0)", "size 3", "zero"),
    row(lambda: V[0.5:], IndexingError, "index:", "slice(0.5, None, None)", "integers"),
    row(lambda: V.at[5].set(1.0), IndexingError, "index:", "5", "axis 0", "(3,)"),
    row(lambda: tk.take(V, [0, 3]), IndexingError, "take:", "from 0 to 3", "axis 0", "(3,)", "-3 to 2"),
    row(lambda: tk.take(M, [-3], 0), IndexingError, "take:", "-3", "axis 0", "(2, 3)", "-2 to 1"),
]

USES = [
    row(lambda: V.__setitem__(0, 1.0), ImmutableError, "assignment:", "immutable", r"x.at[i].set(v)"),
    row(lambda: V.__delitem__(0), ImmutableError, "del:", "immutable", "tk.delete(x, i, axis)"),
    row(lambda: V.sort(inplace=True), ArgumentError, "sort:", "inplace", "immutable"),
    row(lambda: tk.sort(V, kind="fastest"), ArgumentError, "sort:", "kind 'fastest'", "stable"),
    row(lambda: tk.argsort(V, reverse=True), ArgumentError, "argsort:", "reverse", "descending"),
    row(lambda: tk.vstack(V, V), ArgumentError, "vstack:", "one list", "vstack([a, b])"),
    row(lambda: tk.histogram(V, "auto"), ArgumentError, "histogram:", "'auto'", "choose one"),
    row(lambda: tk.array(n for n in (1, 2)), ArgumentError, "asarray:", "generator", "list(x)"),
    row(lambda: tk.random.uniform(tk.random.key(0), (2,), 0.0, 1.0), DTypeError, "uniform:", "<float>", "by name"),
    row(lambda: tk.grad(lambda x: float(total(x)))(V), GradientError, "grad:", "number of Python", "tk.sin"),
    row(lambda: tk.jacfwd(lambda x: math.sin(x))(S), GradientError, "jvp:", "float(x)", "tk.sin for math.sin"),
    row(lambda: tk.grad(tk.grad(lambda x: x.item() ** 2))(S), GradientError, "grad:", "x.item()", "tk.sin"),
    row(lambda: V.at.__setitem__(0, 1.0), ImmutableError, "assignment:", "immutable", r"x.at[i].set(v)"),
    row(lambda: bool(V), ArgumentError, "bool:", "(3,) is ambiguous", r"x.any()", "by & and |", "tk.where"),
    row(lambda: bool(E), ArgumentError, "bool:", "(0, 3) is ambiguous", "exactly 1"),
    row(lambda: 1 if V > 0 else 2, ArgumentError, "bool:", "(3,)", "tk.where"),
    row(lambda: len(S), ArgumentError, "len:", "shape ()", "x.item()"),
    row(lambda: list(S), ArgumentError, "iteration:", "shape ()", "x.item()"),
    row(lambda: range(S), ArgumentError, "index:", "integer of shape ()", "float32 of shape ()", "int(x)"),
    row(lambda: [1, 2, 3][I], ArgumentError, "index:", "integer of shape ()", "int32 of shape (3,)", "int(x)"),
    row(lambda: np.array(V, "int8", copy=False), ExchangeError, "__array__:", "copied", "leave out copy=False"),
    row(lambda: V + OTHER, MixedBackendError, "add:", "different backends", "move one with x.to"),
    row(lambda: tk.where(B, V, OTHER), MixedBackendError, "where:", "different backends", "x.to"),
    row(lambda: tk.concatenate([V, OTHER]), MixedBackendError, "concatenate:", "different backends", "x.to"),
    row(lambda: tk.sin(leak()), EscapedTensorError, "sin:", "inside grad", "has returned", "has_aux=True"),
    row(lambda: leak() + V, EscapedTensorError, "add:", "inside grad", "has returned", "has_aux=True"),
    row(lambda: tk.grad(lambda x: total(x.to(Fuse(Numpy()))))(V),
        ArgumentError, "to:", "inside a transform", "before"),
    row(lambda: tk.grad(lambda x: pickle.dumps(x))(V), ArgumentError, "pickle:", "inside a transform", "return it"),
    row(lambda: EXPRESSION.tolist(), ConcretizationError, "the string backend", "no values", "A", "another backend"),
    row(lambda: bool(EXPRESSION > 0), ConcretizationError, "the string backend", "no values", "print it"),
    row(lambda: tk.tensor(1.0, backend=3), ArgumentError, "backend=", "by name or by an interpreter", "int"),
    row(lambda: tk.tensor(1.0, backend=Numpy), ArgumentError, "backend=", "interpreter", "Numpy()"),
    row(lambda: tk.tensor(1.0, backend=FUSED, device="cpu"), ArgumentError, "backend=", "device='cpu'", "by name"),
    row(lambda: tk.tree.map(lambda a, b: a, [1, 2], (1, 2)), StructureError, "map:", "list of 2", "tuple of 2"),
]

GRADIENTS = [
    row(lambda: tk.grad(total)(I),
        GradientError, "grad:", "int32 of shape (3,)", r"at [0]", "pass floats", "argnums"),
    row(lambda: tk.grad(total)(B), GradientError, "grad:", "bool of shape (3,)", "pass floats"),
    row(lambda: tk.grad(lambda x: x * x)(3), GradientError, "grad:", "int32 of shape ()", "pass floats"),
    row(lambda: tk.grad(lambda p: total(p["a"][1]))({"a": [V, I]}), GradientError, "grad:", r'[0]["a"][1]', "floats"),
    row(lambda: tk.jvp(total, (I,), (I,)), GradientError, "jvp:", "int32", r"[0]", "pass floats"),
    row(lambda: tk.vjp(total, I), GradientError, "vjp:", "int32", r"[0]", "pass floats"),
    row(lambda: tk.jacfwd(total)(I), GradientError, "jacfwd:", "int32", "pass floats"),
    row(lambda: tk.jacrev(lambda x: x.argmax())(V), GradientError, "jacrev:", "int32", "floats"),
    row(lambda: tk.elementwise_grad(total)(I), GradientError, "elementwise_grad:", "int32", "floats"),
    row(lambda: tk.derivative(total)(I), GradientError, "derivative:", "int32", "floats"),
    row(lambda: tk.grad(lambda x: x * x)(V),
        GradientError, "grad ", "scalar-valued", "(3,)", "jacrev, vjp or elementwise_grad"),
    row(lambda: tk.value_and_grad(lambda x: x)(V),
        GradientError, "value_and_grad ", "scalar-valued", "(3,)", "jacrev"),
    row(lambda: tk.grad(lambda x: (x, x))(V), GradientError, "grad ", "2 results", "has_aux=True"),
    row(lambda: tk.grad(lambda x: None)(V), GradientError, "grad ", "0 results", "vjp"),
    row(lambda: tk.grad(lambda x: x.argmax())(V), GradientError, "grad ", "floating-point", "int32", "cast"),
    row(lambda: tk.grad(lambda x: "a")(V), ArgumentError, "grad:", "result", "str"),
    row(lambda: tk.grad(total(V)), ArgumentError, "grad:", "need a function", "Tensor", "grad(f), not grad(f(x))"),
    row(lambda: tk.jvp(3, (V,), (V,)), ArgumentError, "jvp:", "need a function", "int"),
    row(lambda: tk.vjp(V, V), ArgumentError, "vjp:", "need a function", "Tensor"),
    row(lambda: tk.jacfwd(None), ArgumentError, "jacfwd:", "need a function", "NoneType"),
    row(lambda: tk.grad(total, 1)(V), ArgumentError, "grad:", "argnums 1", "1 positional", "from 0"),
    row(lambda: tk.grad(total, "x")(V), ArgumentError, "grad:", "argnums 'x'", "1 positional"),
    row(lambda: tk.grad(total, 1.0)(V), ArgumentError, "grad:", "argnums 1.0", "1 positional"),
    row(lambda: tk.grad(total)(x=V), ArgumentError, "grad:", "0 positional arguments", "by position"),
    row(lambda: tk.grad(total, (0, -1))(V), ArgumentError, "grad:", "(0, -1)", "twice", "once"),
    row(lambda: tk.jacrev(total, (0, 0))(V), ArgumentError, "jacrev:", "(0, 0)", "twice"),
    row(lambda: tk.derivative(total, 3)(V), ArgumentError, "derivative:", "argnums 3", "1 positional"),
    row(lambda: tk.grad(total, has_aux=True)(V), ArgumentError, "grad:", "pair (result, aux)", "Tensor", "has_aux"),
    row(lambda: tk.grad(lambda a, b: total(a), (0, 1), allow_unused=False)(V, V),
        GradientError, "grad:", r"argument [1]", "allow_unused=True"),
    row(lambda: tk.grad(total)("abc"), ArgumentError, "grad:", "leaf 0", "str"),
    row(lambda: tk.jvp(total, V, V), ArgumentError, "jvp:", "tuple or list", "Tensor"),
    row(lambda: tk.hvp(total, V, (V,)), ArgumentError, "hvp:", "tuple or list", "Tensor"),
    row(lambda: tk.jvp(total, (V,), (V, V)),
        StructureError, "jvp:", "1 primals and 2 tangents", "one tangent for each"),
    row(lambda: tk.jvp(total, (V,), (M,)), ShapeError, "jvp:", "tangent has shape (2, 3)", "need (3,)", "reshape"),
    row(lambda: tk.jvp(total, (V,), (1.0,)), ShapeError, "jvp:", "tangent has shape ()", "need (3,)"),
    row(lambda: tk.jvp(total, (V,), (D,)), GradientError, "jvp:", "tangent is float64", "need float32", "cast"),
    row(lambda: tk.jvp(total, (V,), (I,)), GradientError, "jvp:", "tangent is int32", "need float32", "cast"),
    row(lambda: tk.jvp(lambda t: t[0], ([V, V],), ((V, V),)),
        StructureError, "jvp: tangents:", r"[0]", "list of 2", "tuple of 2"),
    row(lambda: tk.jvp(lambda t: t["a"], ({"a": V},), ({"b": V},)), StructureError, "jvp: tangents:", r'"a"', r'"b"'),
    row(lambda: tk.vjp(lambda x: x * x, V)[1](M), ShapeError, "vjp:", "cotangent has shape (2, 3)", "need (3,)"),
    row(lambda: tk.vjp(lambda x: x * x, V)[1](D), GradientError, "vjp:", "cotangent is float64", "need float32"),
    row(lambda: tk.vjp(lambda x: (x, x), V)[1](V), StructureError, "vjp: cotangent:", "tuple of 2", "leaf"),
    row(lambda: tk.vjp(lambda x: (x, x), V)[1]((V, V, V)), StructureError, "vjp: cotangent:", "of 2", "of 3"),
    row(lambda: tk.grad(lambda a, b: total(a), (0, 1))(V, OTHER),
        MixedBackendError, "grad:", "different backends", "x.to"),
    row(lambda: tk.testing.check_grads(total, (V,), order=0), ArgumentError, "check_grads:", "order >= 1", "order=0"),
    row(lambda: tk.testing.check_grads(total, (V,), modes=("up",)),
        ArgumentError, "check_grads:", "'fwd', 'rev'", "'up'"),
]
# fmt: on

FUNCTIONS = [
    row(lambda: tk.nanargmax([math.nan]), ArgumentError, "nanargmax:", "are NaN", "tk.where"),
    row(lambda: tk.max(V, where=B), ArgumentError, "max:", "where= needs initial=", "initial=-inf"),
    row(lambda: tk.sum(V, where=[True, False]), ShapeError, "sum:", "(2,)", "shape (3,) of x", "reshape"),
    row(lambda: tk.interp(V, V, M), ShapeError, "interp:", "vectors of one size", "(3,) and (2, 3)"),
    row(
        lambda: tk.convolve(V, M), ShapeError, "convolve:", "two vectors", "(3,) and (2, 3)", "tk.convolution"
    ),
    row(lambda: tk.convolve(V, V, "all"), ArgumentError, "convolve:", "'full', 'same' or 'valid'", "'all'"),
    row(lambda: tk.gradient(V, 1.0, 2.0), ArgumentError, "gradient:", "2 distances for 1 axes", "give one"),
    row(lambda: tk.gradient(V[:1]), ShapeError, "gradient:", "at least 2 elements", "(1,)"),
    row(lambda: tk.cov(T), ShapeError, "cov:", "at most two axes", "(2, 3, 4)", "reshape"),
    row(lambda: tk.select([B], [V, V]), ArgumentError, "select:", "as many conditions as choices", "1 and 2"),
    row(lambda: tk.choose([3], [V, V]), IndexingError, "choose:", "index 3", "size 2", "mode='clip'"),
    row(lambda: tk.choose([0.5], [V, V]), DTypeError, "choose:", "must be ints", "float32", "astype"),
    row(
        lambda: tk.vectorize(tk.dot, signature="n,n")(V, V),
        ArgumentError,
        "vectorize:",
        "'n,n'",
        "malformed",
        "write",
    ),
    row(
        lambda: tk.vectorize(tk.dot, signature="(n),(n)->()")(V, V[:2]),
        ShapeError,
        "vectorize:",
        "axis n has size 3 and 2",
        "equal",
    ),
    row(lambda: tk.unravel_index([6], (2, 3)), IndexingError, "unravel_index:", "index 6", "size 6"),
    row(
        lambda: tk.ravel_multi_index([[1], [3]], (2, 3)),
        IndexingError,
        "ravel_multi_index:",
        "index 3",
        "size 3",
    ),
    row(
        lambda: tk.digitize(V, [1.0, 3.0, 2.0]), ArgumentError, "digitize:", "ascending or descending", "sort"
    ),
    row(lambda: tk.gcd(V, 2), DTypeError, "gcd:", "integers", "float32", "astype"),
    row(lambda: tk.partition(V, 3), ArgumentError, "partition:", "from -3 to 2", "got 3"),
    row(lambda: tk.lexsort((V, V[:2])), ShapeError, "lexsort:", "(3,) and (2,)"),
    row(
        lambda: tk.put_along_axis(M, [0], 1.0, 1),
        ShapeError,
        "put_along_axis:",
        "as many axes",
        "(1,) and (2, 3)",
    ),
    row(
        lambda: tk.scatter(V, [0], 1.0, 0, "mean"), ArgumentError, "scatter:", "set, add, multiply", "'mean'"
    ),
    row(lambda: tk.polyfit(V, M, 1), ShapeError, "polyfit:", "(3,) and (2, 3)"),
    row(lambda: tk.polyval(M, V), ShapeError, "polyval:", "vector", "(2, 3)"),
    row(
        lambda: tk.block([[V], V]), ArgumentError, "block:", "nested equally deep", r"write [[a, b], [c, d]]"
    ),
    row(lambda: tk.r_["r", V], ArgumentError, "r_:", "directive", "'r'"),
    row(
        lambda: tk.vmap(tk.union1d)(M, M),
        ConcretizationError,
        "union1d:",
        "depends on the values",
        "unknown here: vmap",
    ),
    row(lambda: tk.special.polygamma(-1, V), ArgumentError, "polygamma:", "not be negative", "-1"),
]

ROWS = [*SHAPES, *AXES, *DTYPES, *NUMBERS, *CREATION, *INDICES, *USES, *GRADIENTS, *FUNCTIONS]


def source_of(mistake: Row) -> str:
    """The text of the mistake, as the id of its test."""
    lines, _ = inspect.getsourcelines(mistake.call)
    text = "".join(lines).strip()
    found = re.search(r"lambda: (.*?), (?:\w+Error|\w+ror), ", text)
    return found[1] if found else text


def answer(mistake: Row) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 the class is compared exactly
        mistake.call()
    return caught.value


def next_call_works() -> None:
    """Values, gradients and a second derivative, on the backend that the mistakes were made on."""
    assert (V * 2.0 + 1.0).tolist() == [3.0, 5.0, 7.0]
    assert (M @ V).tolist() == [14.0, 32.0]
    assert tk.grad(total)(V).tolist() == [2.0, 4.0, 6.0]
    assert tk.hvp(total, (V,), (V,)).tolist() == [2.0, 4.0, 6.0]
    assert tk.grad(tk.sin)(0.0).item() == 1.0


@pytest.mark.feature(10, 55)
@pytest.mark.parametrize("mistake", ROWS, ids=source_of)
def test_a_mistake_is_answered_and_the_next_call_works(mistake):
    error = answer(mistake)
    assert type(error) is mistake.error
    message = str(error)
    assert message.startswith(mistake.start), message
    place = 0
    for word in mistake.words:
        found = message.find(word.replace("\\", ""), place)
        assert found >= 0, f"{word!r} is not in its place in {message!r}"
        place = found + len(word.replace("\\", ""))
    next_call_works()


@pytest.mark.feature(55)
@each_of("mistake", ROWS)
def test_a_message_is_one_short_line_that_begins_with_the_call(mistake):
    message = str(answer(mistake))
    assert "\n" not in message
    assert len(message) < 300
    assert re.match(r"[a-zA-Z_]\w*[:= ]", message)
    assert "<lambda>" not in message
    assert "object at 0x" not in message


def test_there_are_enough_rows_and_messages():
    messages = {
        re.sub(r"[-\d]+|\(.*?\)|'.*?'", "", str(answer(mistake)).partition(":")[2]) for mistake in ROWS
    }
    assert len(ROWS) >= 60
    assert len(messages) >= 25
    assert {mistake.error for mistake in ROWS} >= {
        ArgumentError, AxisError, BackendError, ConcretizationError, DTypeError, EscapedTensorError, GradientError,
        ImmutableError,
        IndexingError, MixedBackendError, ScalarRangeError, ShapeError, StructureError,
    }  # fmt: skip


BUILT_IN = {
    errors.ShapeError: ValueError,
    errors.AxisError: IndexError,
    errors.DTypeError: TypeError,
    errors.ScalarRangeError: OverflowError,
    errors.IndexingError: IndexError,
    errors.ArgumentError: TypeError,
    errors.AxisNameError: NameError,
    errors.GroupError: RuntimeError,
    errors.StructureError: ValueError,
    errors.GradientError: TypeError,
    errors.EscapedTensorError: RuntimeError,
    errors.NestingError: RecursionError,
    errors.ExchangeError: BufferError,
    errors.ProgramError: ValueError,
    errors.ImmutableError: TypeError,
    errors.ConcretizationError: TypeError,
    errors.BackendError: RuntimeError,
    errors.SettingError: ValueError,
    errors.UnknownBackendError: LookupError,
    errors.MixedBackendError: ValueError,
    errors.MissingOpError: NotImplementedError,
    errors.NonFiniteError: FloatingPointError,
    errors.LinearAlgebraError: ValueError,
}


@pytest.mark.feature(55)
def test_every_error_is_also_the_built_in_that_people_expect():
    classes = {
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, errors.TensorkenError)
    }
    assert classes - {errors.TensorkenError, errors.OperandError} == set(BUILT_IN)
    for error, built_in in BUILT_IN.items():
        assert issubclass(error, built_in)
        assert issubclass(error, errors.TensorkenError)
        assert error.__doc__


@pytest.mark.feature(55, 204)
@pytest.mark.parametrize(
    "choose", [lambda: tk.tensor(1.0, backend="nump"), lambda: tk.use_backend("no such thing")]
)
def test_an_unknown_backend_is_answered_with_the_known_ones(choose):
    """The one message that may take several lines: at most eight."""
    with pytest.raises(UnknownBackendError, match=r"^unknown backend '.*'\n") as caught:
        choose()
    lines = str(caught.value).splitlines()
    assert len(lines) <= 8
    assert "installed:" in str(caught.value)
    assert lines[-1].startswith("  chosen by ")
    next_call_works()


@pytest.mark.feature(10, 55)
def test_an_error_in_the_middle_leaves_everything_usable():
    """A mistake inside nested transforms, a hundred times; then all is as before."""
    rng = random.Random(0)
    for _ in range(100):
        wrong = rng.choice(ROWS)

        def f(x, wrong=wrong):
            wrong.call()
            return total(x)

        with pytest.raises(errors.TensorkenError):
            tk.jvp(tk.grad(f), (V,), (V,))
    next_call_works()
    assert array(V).tolist() == [1.0, 2.0, 3.0]


# ---- names of other libraries ------------------------------------------------------------------------------


@each_of(
    ("call", "message"),
    [
        (lambda: tk.cat, r"^module 'tensorken' has no attribute 'cat'; use tk\.concatenate\(xs, axis\)$"),
        (
            lambda: tk.random.PRNGKey,
            r"^module 'tensorken.random' has no attribute 'PRNGKey'; use tk\.random\.key\(seed\)$",
        ),
        (lambda: V.detach(), r"^a tensor has no attribute 'detach'; use tk\.stop_gradient\(x\)$"),
        (lambda: V.softmax(), r"^a tensor has no attribute 'softmax'; use tk\.softmax\(x\)$"),
        (lambda: tk.no_such_name, "^module 'tensorken' has no attribute 'no_such_name'$"),
        (lambda: tk.random.no_such_name, "^module 'tensorken.random' has no attribute 'no_such_name'$"),
        (lambda: V.no_such_name, "^'Tensor' object has no attribute 'no_such_name'$"),
        (lambda: V._no_such_name, "^'Tensor' object has no attribute '_no_such_name'$"),
    ],
)
def test_an_unknown_name_is_answered_with_its_name_here(call, message):
    with pytest.raises(AttributeError, match=message):
        call()


def test_an_error_within_a_property_is_not_hidden():
    class Broken(Numpy):
        def shape(self, x):
            return x.no_such_shape

    with pytest.raises(AttributeError, match="'no_such_shape'"):
        _ = tk.Tensor(Broken(), np.ones(2)).shape
