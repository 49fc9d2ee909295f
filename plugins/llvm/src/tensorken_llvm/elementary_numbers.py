"""Numbers: values in registers with the operators and methods of Tensors, so that formulas read as formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llvmlite import ir

from tensorken_core.language.dtypes import DType, bool_, float32, float64, int32, int64
from tensorken_core.language.op import Op
from tensorken_llvm.builder import Builder
from tensorken_llvm.dtypes import BIT, BYTE, DOUBLE, FLOAT, INT32, INT64, float_number

Function = Callable[..., Any]

_DTYPES = {BIT: bool_, FLOAT: float32, DOUBLE: float64, INT32: int32, INT64: int64}
_INTEGERS = {FLOAT: INT32, DOUBLE: INT64, INT32: INT32, INT64: INT64}


class Number:
    """A value of type float, double, i32, i64 or i1.

    Python numbers are rounded to the type of the other operand.  Comparisons with NaN are false.

    Args:
        builder: writes the instructions.
        value: of LLVM.
        functions: those of `apply` and of the methods, by the names of ops; they map Numbers to a Number.
    """

    __slots__ = ("builder", "functions", "value")

    def __init__(self, builder: Builder, value: Any, functions: Mapping[str, Function]) -> None:
        self.builder, self.value, self.functions = builder, value, functions

    @property
    def dtype(self) -> DType:
        """The dtype of the type."""
        return _DTYPES[self.value.type]

    def like(self, value: Any) -> Number:
        """Another value."""
        return Number(self.builder, value, self.functions)

    def scalar(self, value: Any) -> Number:
        """A constant of the same type."""
        type_ = self.value.type
        if type_ in (FLOAT, DOUBLE):
            return self.like(float_number(float(value), type_))
        return self.like(ir.Constant(type_, int(value)))

    def ones_like(self) -> Number:
        """1."""
        return self.scalar(1)

    def _operand(self, other: Any) -> Any:
        return other.value if isinstance(other, Number) else self.scalar(other).value

    def _arithmetic(self, name: str, a: Any, b: Any) -> Number:
        is_float = self.value.type in (FLOAT, DOUBLE)
        return self.like(getattr(self.builder, "f" + name if is_float else name)(a, b))

    # ---- arithmetic ----------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Number:
        return self._arithmetic("add", self.value, self._operand(other))

    def __radd__(self, other: Any) -> Number:
        return self._arithmetic("add", self._operand(other), self.value)

    def __sub__(self, other: Any) -> Number:
        return self._arithmetic("sub", self.value, self._operand(other))

    def __rsub__(self, other: Any) -> Number:
        return self._arithmetic("sub", self._operand(other), self.value)

    def __mul__(self, other: Any) -> Number:
        return self._arithmetic("mul", self.value, self._operand(other))

    def __rmul__(self, other: Any) -> Number:
        return self._arithmetic("mul", self._operand(other), self.value)

    def __truediv__(self, other: Any) -> Number:
        return self.like(self.builder.fdiv(self.value, self._operand(other)))

    def __rtruediv__(self, other: Any) -> Number:
        return self.like(self.builder.fdiv(self._operand(other), self.value))

    def __neg__(self) -> Number:
        if self.value.type in (FLOAT, DOUBLE):
            return self.like(self.builder.fneg(self.value))
        return 0 - self

    def fma(self, factor: Any, addend: Any) -> Number:
        """self * factor + addend, rounded once."""
        return self.like(self.builder.fma(self.value, self._operand(factor), self._operand(addend)))

    def polynomial(self, coefficients: Sequence[float]) -> Number:
        """The polynomial with these coefficients, the highest power first."""
        y = self.scalar(coefficients[0])
        for c in coefficients[1:]:
            y = y.fma(self, c)
        return y

    def abs(self) -> Number:
        """The magnitude."""
        return self.like(self.builder.intrinsic("fabs", self.value))

    def floor(self) -> Number:
        """Rounded down."""
        return self.like(self.builder.intrinsic("floor", self.value))

    def round(self) -> Number:
        """Rounded to the nearest whole number, half-way cases to the even one."""
        return self.like(self.builder.intrinsic("roundeven", self.value))

    def trunc(self) -> Number:
        """Rounded towards zero."""
        return self.like(self.builder.intrinsic("trunc", self.value))

    def sqrt(self) -> Number:
        """The square root."""
        return self.like(self.builder.intrinsic("sqrt", self.value))

    def copysign(self, sign: Number) -> Number:
        """The magnitude with the sign of another number."""
        return self.like(self.builder.intrinsic("copysign", self.value, sign.value))

    def maximum(self, other: Any) -> Number:
        """The larger one, NaN if one is."""
        return self.like(self.builder.intrinsic("maximum", self.value, self._operand(other)))

    def minimum(self, other: Any) -> Number:
        """The smaller one, NaN if one is."""
        return self.like(self.builder.intrinsic("minimum", self.value, self._operand(other)))

    def clip(self, low: float, high: float) -> Number:
        """Limited to an interval; NaN stays."""
        x = (self < low).where(low, self)
        return (x > high).where(high, x)

    # ---- comparisons ---------------------------------------------------------------------------------------

    def _compared(self, operator: str, other: Any) -> Number:
        b, y = self.builder, self._operand(other)
        if self.value.type in (FLOAT, DOUBLE):
            return self.like(b.fcmp_ordered(operator, self.value, y))
        return self.like(b.icmp_signed(operator, self.value, y))

    def __lt__(self, other: Any) -> Number:
        return self._compared("<", other)

    def __le__(self, other: Any) -> Number:
        return self._compared("<=", other)

    def __gt__(self, other: Any) -> Number:
        return self._compared(">", other)

    def __ge__(self, other: Any) -> Number:
        return self._compared(">=", other)

    def eq(self, other: Any) -> Number:
        """Whether both are equal."""
        return self._compared("==", other)

    def where(self, x: Any, y: Any) -> Number:
        """x where self is true, else y."""
        given = x if isinstance(x, Number) else y if isinstance(y, Number) else self
        return self.like(self.builder.select(self.value, given._operand(x), given._operand(y)))

    # ---- bits ----------------------------------------------------------------------------------------------

    def __and__(self, other: Any) -> Number:
        return self.like(self.builder.and_(self.value, self._operand(other)))

    def __or__(self, other: Any) -> Number:
        return self.like(self.builder.or_(self.value, self._operand(other)))

    def __xor__(self, other: Any) -> Number:
        return self.like(self.builder.xor(self.value, self._operand(other)))

    def __lshift__(self, places: int) -> Number:
        return self.like(self.builder.shl(self.value, self._operand(places)))

    def __rshift__(self, places: int) -> Number:
        """Zeros come in from the left."""
        return self.like(self.builder.lshr(self.value, self._operand(places)))

    def bits(self) -> Number:
        """The bits of a float as an integer."""
        return self.like(self.builder.bitcast(self.value, _INTEGERS[self.value.type]))

    def from_bits(self) -> Number:
        """The float with these bits."""
        return self.like(self.builder.bitcast(self.value, FLOAT if self.value.type is INT32 else DOUBLE))

    def truncated(self) -> Number:
        """The lowest 32 bits of an integer."""
        return self if self.value.type is INT32 else self.like(self.builder.trunc(self.value, INT32))

    def scaled(self, exponent: Number) -> Number:
        """self * 2**exponent for an i32, rounded once."""
        return self.like(self.builder.scaled(self.value, exponent.value))

    def widened(self) -> Number:
        """A float32 as a float64."""
        return self.like(self.builder.fpext(self.value, DOUBLE))

    def narrowed(self) -> Number:
        """A float64 rounded to float32."""
        return self.like(self.builder.fptrunc(self.value, FLOAT))

    def lookup(self, name: str, table: bytes, column: int) -> Number:
        """The float64 at the place self + column of a table of float64.

        Args:
            name: of the table in the module.
            table: its bytes.
            column: added to self.
        """
        b, module = self.builder, self.builder.module
        found = module.globals.get(name)
        if found is None:
            type_ = ir.ArrayType(BYTE, len(table))
            found = ir.GlobalVariable(module, type_, name)
            found.linkage, found.global_constant, found.align = "internal", True, 64
            found.initializer = ir.Constant(type_, bytearray(table))
        address = b.gep(found, [(self + column).value], source_etype=DOUBLE)
        return self.like(b.load(address, typ=DOUBLE))

    # ---- ops -----------------------------------------------------------------------------------------------

    def apply(self, op: Op, *others: Number) -> Number:
        """An op of the language."""
        found: Number = self.functions[op.name](self, *others)
        return found

    def __getattr__(self, name: str) -> Any:
        """A function as a method."""
        if name not in self.functions:
            raise AttributeError(name)
        return lambda *others: self.functions[name](self, *others)
