"""Results do not depend on the layout of operands: strides, alignment, and repeated axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tensorken as tk
from core.tests.each import each_of
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Program, Variable
from tensorken_core.tensor.tensor import apply
from tensorken_numpy.backend import Numpy
from tensorken_numpy.compiled.program import compiled

RAW = Numpy()


def unaligned(x: Any) -> Any:
    """The same array, one byte off its alignment."""
    y: Any = np.ndarray(x.shape, x.dtype, np.empty(x.nbytes + 1, np.uint8), 1)
    y[...] = x
    return y


def stepped(x: Any) -> Any:
    """The same array as every second element of a larger one along each axis."""
    larger = np.zeros([2 * n + 1 for n in x.shape], x.dtype)
    y = larger[(..., *[slice(1, None, 2)] * x.ndim)]
    y[...] = x
    return y


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "row-major": lambda x: x.copy(),
    "column-major": lambda x: x.copy(order="F"),
    "reversed": lambda x: np.flip(np.flip(x).copy()),
    "stepped": stepped,
    "unaligned": unaligned,
    "repeated": lambda x: np.broadcast_to(x.reshape(-1)[:1].reshape((1,) * x.ndim), x.shape),
    "repeated-along-last": lambda x: np.broadcast_to(x[..., :1].copy(), x.shape),
    "repeated-along-first": lambda x: np.broadcast_to(x[:1].copy(), x.shape),
}

SIZE_ONE: dict[str, Callable[[Any], Any]] = {
    "one": lambda x: x.reshape(-1)[:1].reshape((1,) * x.ndim),
    "one-along-first": lambda x: x[:1].copy(),
    "one-along-last": lambda x: x[..., :1].copy(),
}
"""Operands with size 1 along axes that others have, as from an interpreter that delays expands."""

ALL_LAYOUTS = {**LAYOUTS, **SIZE_ONE}
PAIRS = [(a, b) for a in ALL_LAYOUTS for b in ALL_LAYOUTS if "row-major" in (a, b) or a == b]

SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 3.0, -3.0, np.inf, -np.inf, np.nan, 1e-40, 1e30]
INTEGERS = [0, 1, -1, 2, 3, -3, 7, 31, 32, 33, 2**31 - 1, -(2**31)]


def same(a: Any, b: Any, message: str = "") -> None:
    """Equal, with the same signs of zeros."""
    np.testing.assert_array_equal(a, b, message)
    if np.asarray(a).dtype.kind == "f":
        zero = a == 0
        np.testing.assert_array_equal(np.signbit(a)[zero], np.signbit(b)[zero], message)


@each_of("dtype", ["float32", "float64"])
def test_powers_of_infinity_and_zero_by_a_half(dtype: str) -> None:
    x = tk.tensor([[-np.inf, -0.0], [4.0, -0.0]], dtype)
    for exponent in (0.5, tk.tensor([[0.5], [1.5]], dtype), tk.tensor(0.5, dtype)):
        for power in (tk.power, tk.jit(tk.power)):
            found = np.asarray(power(x, exponent))
            same(found[0], np.array([np.inf, 0.0], dtype))


@each_of("dtype", ["float32", "float64"])
def test_powers_of_long_rows_by_a_column_of_exponents(dtype: str) -> None:
    """numpy's loop repeats the exponent only along rows that are long enough."""
    x = np.full((3, 20_000), -np.inf, dtype)
    found = RAW.pow(x, np.array([[0.5], [0.5], [2.0]], dtype))
    assert (found == np.inf).all()


def pairs(name: str, dtype: str) -> tuple[Any, Any]:
    """Each special number paired with each other one, as two matrices."""
    if dtype == "bool":
        numbers = np.array([False, True])
    elif np.dtype(dtype).kind in "iu":
        chosen = [0, 1, -1, 7, 31, 32, 63, 64] if name.startswith("shift") else INTEGERS
        numbers = np.array(chosen).astype(dtype)
    else:
        with np.errstate(over="ignore"):
            numbers = np.array(SPECIAL).astype(dtype)
    return tuple(np.meshgrid(numbers, np.roll(numbers, -2), indexing="ij"))  # type: ignore[return-value]


BINARY = [op for op in OPS.values() if op.elementwise and not op.params and op.arity == 2 and RAW.has(op)]
ULPS = {"logaddexp": 4, "pow": 2, "atan2": 2, "hypot": 2}
"""By how many ulps numpy's loops for different strides differ."""


@each_of("op", BINARY)
def test_binary_ops_on_all_layouts(op: Any) -> None:
    method = getattr(RAW, op.name)
    for dtype in [dtype for name, dtype in DTYPES.items() if name != "bfloat16"]:
        try:
            result = op.result_dtype((dtype, dtype), ())
        except tk.errors.DTypeError:
            continue
        a, b = pairs(op.name, dtype.name)
        for first, second in PAIRS:
            x, y = ALL_LAYOUTS[first](a), ALL_LAYOUTS[second](b)
            plain = [np.array(np.broadcast_to(v, a.shape)) for v in (x, y)]
            expected = np.asarray(method(*plain))
            inputs = tuple(Variable(a.shape, dtype) for _ in range(2))
            output = Variable(a.shape, result)
            run = compiled(Program(inputs, (output,), (Equation(op, inputs, (), (output,)),)), RAW)
            assert run is not None
            for found in (method(x, y), *run([np.broadcast_to(v, a.shape) for v in (x, y)])):
                message = f"{op.name} {dtype} {first} {second}"
                full = np.broadcast_to(found, a.shape)
                if op.name in ULPS:
                    rtol = ULPS[op.name] * float(np.finfo(expected.dtype).eps)
                    np.testing.assert_allclose(full, expected, rtol, rtol, err_msg=message)
                    zero = (full == 0) & (expected == 0)
                    np.testing.assert_array_equal(np.signbit(full)[zero], np.signbit(expected)[zero], message)
                elif op.name in ("maximum", "minimum"):  # the sign of a zero beside the other is left open
                    np.testing.assert_array_equal(full, expected, message)
                else:
                    same(full, expected, message)


@each_of("axes", [(0,), (1,), (0, 1), ()])
def test_threefry_with_repeated_keys(axes: tuple[int, ...]) -> None:
    """A key of two equal words is one repeated number; two such keys are not one key of two words."""
    keys = np.array([[5, 7], [11, 13]], np.int32)
    counters = np.arange(4, dtype=np.int32).reshape(2, 2)
    few = keys[tuple([slice(0, 1) if i in axes else slice(None) for i in range(2)])]
    repeated = np.broadcast_to(few.copy(), keys.shape)
    expected = RAW.threefry2x32(np.array(repeated), counters)
    np.testing.assert_array_equal(RAW.threefry2x32(repeated, counters), expected)
    operands = [tk.broadcast_to(tk.tensor(few), keys.shape), tk.tensor(counters)]
    np.testing.assert_array_equal(apply(OPS["threefry2x32"], operands), expected)
