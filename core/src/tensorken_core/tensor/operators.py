"""Python's operators, and the elementwise methods, of tensors: each is one op, or a few."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self, TypeVar

from tensorken_core.errors import DTypeError, ScalarRangeError
from tensorken_core.language.dtypes import bool_, minus_one
from tensorken_core.language.op import OPS, Op
from tensorken_core.tensor.coercion import promoted_dtype
from tensorken_core.tensor.dispatch import all_equal, binary, unary, with_operand
from tensorken_core.tensor.value import V, Value

ADD, SUB, MUL, DIV, POW, EQ, LT = (OPS[name] for name in ("add", "sub", "mul", "div", "pow", "eq", "lt"))
FLOOR_DIVIDE, REMAINDER, INTEGER_POW = OPS["floor_divide"], OPS["remainder"], OPS["integer_pow"]
SHIFT_LEFT, SHIFT_RIGHT = OPS["shift_left"], OPS["shift_right"]


O = TypeVar("O", bound="Operators")


def _unary(name: str) -> Callable[[V], V]:
    """The method that runs an elementwise op on one tensor."""
    op = OPS[name]

    def method(self: V) -> V:
        return unary(op, self)

    method.__name__, method.__qualname__ = name, f"Operators.{name}"
    return method


def _reflected(op: Op, compute: Callable[[Any, Any], Any]) -> Callable[[V, Any], V]:
    """A reflected operator: `compute(other, self)`, with the other operand as a tensor."""

    def operator(self: V, other: Any) -> V:
        a, b = _pair(op, self, other)
        result: V = compute(b, a)
        return result

    return operator


class Operators(Value):
    """The elementwise part of Tensor."""

    __slots__ = ()

    exp, log, sin, cos = _unary("exp"), _unary("log"), _unary("sin"), _unary("cos")
    tan, tanh, sqrt = _unary("tan"), _unary("tanh"), _unary("sqrt")
    log1p, expm1, sigmoid, relu = _unary("log1p"), _unary("expm1"), _unary("sigmoid"), _unary("relu")
    sign, abs, square, reciprocal = _unary("sign"), _unary("abs"), _unary("square"), _unary("reciprocal")

    def floor(self) -> Self:
        return unary(OPS["floor"], self) if self.dtype.kind == "float" else self

    def __neg__(self) -> Self:
        return unary(OPS["neg"], self)

    def __pos__(self) -> Self:
        return self

    __abs__ = abs

    def __add__(self, other: Any) -> Self:
        return binary(ADD, self, other)

    def __radd__(self, other: Any) -> Self:
        return binary(ADD, self, other)

    def __sub__(self, other: Any) -> Self:
        return binary(SUB, self, other)

    def __mul__(self, other: Any) -> Self:
        return binary(MUL, self, other)

    def __rmul__(self, other: Any) -> Self:
        return binary(MUL, self, other)

    def __truediv__(self, other: Any) -> Self:
        return binary(DIV, self, other)

    def __pow__(self, other: Any) -> Self:
        if self.dtype.kind == "complex" and type(other) is float and other in range(-100, 100):
            other = int(other)  # a product, whose derivatives are right at 0, too
        if type(other) is int and other == 2 and self.dtype is not bool_:
            return self.square()
        if type(other) is int and self.dtype.kind in ("int", "complex"):
            return _integer_power(self, other)
        return _power(*_pair(POW, self, other))

    def __floordiv__(self, other: Any) -> Self:
        return _floor_divided(*_pair(FLOOR_DIVIDE, self, other))

    def __mod__(self, other: Any) -> Self:
        return binary(REMAINDER, self, other)

    def __and__(self, other: Any) -> Self:
        return _logical(self, other, "bitwise_and", lambda a, b: a.where(b, False))

    def __or__(self, other: Any) -> Self:
        return _logical(self, other, "bitwise_or", lambda a, b: a.where(True, b))

    def __xor__(self, other: Any) -> Self:
        return _logical(self, other, "bitwise_xor", lambda a, b: ~a.eq(b))

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Self:
        if self.dtype is bool_:
            return binary(EQ, self, False)
        return binary(OPS["bitwise_xor"], self, minus_one(self.dtype))

    def __lshift__(self, other: Any) -> Self:
        return binary(SHIFT_LEFT, self, other)

    def __rshift__(self, other: Any) -> Self:
        return _shifted_right(self, other)

    __rsub__ = _reflected(SUB, functools.partial(binary, SUB))
    __rtruediv__ = _reflected(DIV, functools.partial(binary, DIV))
    __rpow__ = _reflected(POW, lambda a, b: _power(a, b))
    __rfloordiv__ = _reflected(FLOOR_DIVIDE, lambda a, b: _floor_divided(a, b))
    __rmod__ = _reflected(REMAINDER, functools.partial(binary, REMAINDER))
    __rlshift__ = _reflected(SHIFT_LEFT, functools.partial(binary, SHIFT_LEFT))
    __rrshift__ = _reflected(SHIFT_RIGHT, lambda a, b: _shifted_right(a, b))

    def eq(self, other: Any) -> Self:
        """Elementwise equality, as bool.

        >>> import tensorken as tk
        >>> tk.tensor([1, 2]).eq(tk.tensor([1, 3])).tolist()
        [True, False]
        """
        return binary(EQ, self, other)

    def __eq__(self, other: Any) -> Self:  # type: ignore[override]
        return NotImplemented if other is None or isinstance(other, str) else binary(EQ, self, other)

    def __ne__(self, other: Any) -> Self:  # type: ignore[override]
        return NotImplemented if other is None or isinstance(other, str) else ~binary(EQ, self, other)

    def __lt__(self, other: Any) -> Self:
        return binary(LT, self, other)

    def __gt__(self, other: Any) -> Self:
        return _greater(self, other)

    def __le__(self, other: Any) -> Self:
        return binary(LT, self, other).where(True, self.eq(other))

    def __ge__(self, other: Any) -> Self:
        return _greater(self, other).where(True, self.eq(other))

    def maximum(self, other: Any) -> Self:
        return binary(OPS["maximum"], self, other)

    def minimum(self, other: Any) -> Self:
        return binary(OPS["minimum"], self, other)


def _pair(op: Op, a: V, b: Any) -> tuple[V, V]:
    """Both operands as tensors."""
    return (a, b) if isinstance(b, Value) else with_operand(op, a, b)  # type: ignore[return-value]


def _greater(a: O, b: Any) -> O:
    """Whether b is less than a."""
    try:
        x, y = _pair(LT, a, b)
        return binary(LT, y, x)
    except ScalarRangeError:
        return all_equal(a, b < 0)


def _floor_divided(a: O, b: O) -> O:
    """floor(a / b), minus 1 where a / b of floats was rounded up to an integer, which the remainder shows."""
    if not promoted_dtype(a, b).inexact:
        return binary(FLOOR_DIVIDE, a, b)
    quotient, modulus = binary(DIV, a, b), binary(REMAINDER, a, b)
    floor = quotient.floor()
    rounded_up = floor.eq(quotient) & (modulus / b > 0.5)
    return rounded_up.where(floor - 1.0, floor)


def _shifted_right(x: O, count: Any) -> O:
    """An arithmetic right shift, as in numpy: copies of the sign bit come in; zeros for unsigned integers."""
    if not x.dtype.signed:
        return binary(SHIFT_RIGHT, x, count)
    return (x < 0).where(~binary(SHIFT_RIGHT, ~x, count), binary(SHIFT_RIGHT, x, count))


def _power(a: O, b: O) -> O:
    """a**b; integers wrap, as their products do."""
    if promoted_dtype(a, b).inexact:
        return binary(POW, a, b)
    return binary(INTEGER_POW, a, b)


def _integer_power(x: O, exponent: int) -> O:
    """x multiplied by itself, by repeated squaring."""
    if exponent < 0 and x.dtype.kind == "complex":
        return _integer_power(x.reciprocal(), -exponent)
    if exponent < 0:
        raise DTypeError(
            f"pow: {x.dtype} to the negative power {exponent} is not an integer; cast to a float first (x.astype)"
        )
    result = x.scalar(1)
    factor = x
    while exponent:
        if exponent & 1:
            result = result * factor
        exponent >>= 1
        factor = factor * factor if exponent else factor
    return result


def _logical(a: O, b: Any, bitwise: str, logical: Callable[[Any, Any], Any]) -> O:
    """The logical op on two bools, else the bitwise op."""
    a, b = _pair(OPS[bitwise], a, b)
    return logical(a, b) if a.dtype is b.dtype is bool_ else binary(OPS[bitwise], a, b)
