"""The string backend: ops build the text of an expression, which has a shape and a dtype but no value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensorken_core.errors import ConcretizationError
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType, as_dtype, float32
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape

MAX_NUMBERS = 8
"""The largest constant whose numbers are printed; of others only the count is printed."""

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "eq": "==", "lt": "<"}


@dataclass(frozen=True, slots=True)
class Expression:
    """The text of a formula, with the shape and dtype of its value."""

    text: str
    shape: Shape
    dtype: DType

    def __str__(self) -> str:
        return self.text


class String(RawTensor[Expression]):
    """The string backend: `str()` of a tensor is the expression that computes it.

    >>> from tensorken_core import Tensor
    >>> backend = String()
    >>> x = Tensor(backend, backend.symbol("x"))
    >>> print((x * x + x.sin()).representation)
    ((x * x) + x.sin())
    """

    capabilities = Capabilities(dtypes=tuple(DTYPES), symbolic=True)

    def symbol(self, name: str, shape: Shape = (), dtype: Any = float32) -> Expression:
        """An expression that consists of a name."""
        return Expression(name, shape, as_dtype(dtype))

    def new(self, shape: Shape, data: Any, dtype: DType) -> Expression:
        values = list(data)
        contents = (
            repr([float(v) for v in values] if dtype.kind == "float" else values)
            if len(values) <= MAX_NUMBERS
            else len(values)
        )
        return Expression(f"new({list(shape)}, {contents})", shape, dtype)

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Expression:
        return Expression(repr(float(value) if dtype.kind == "float" else value), shape, dtype)

    def shape(self, x: Expression) -> Shape:
        return x.shape

    def dtype(self, x: Expression) -> DType:
        return x.dtype

    def ravel(self, x: Expression) -> Any:
        raise ConcretizationError(
            f"the string backend has no values, only the expression {x.text}; print it, or use another backend"
        )

    def has(self, op: Op) -> bool:
        return op.name != "matmul"  # a product is printed in the ops that are required of a backend

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        if op.per_example or (op.opaque and not op.method):  # a user's function, defined by its body
            return super().interpret(op, operands, params)
        shape = op.shape(*[x.shape for x in operands], *params)
        dtype = op.result_dtype(tuple([x.dtype for x in operands]), params)
        first, *rest = [x.text for x in operands]
        if op.name in _INFIX:
            left = _parenthesised(first) if op.name == "pow" else first
            text = f"({left} {_INFIX[op.name]} {rest[0]})"
        elif op.name == "neg":
            text = f"-{first}"
        else:
            text = f"{_parenthesised(first)}.{op.name}({', '.join([*rest, *map(_param_text, params)])})"
        if op.results == 1:
            return Expression(text, shape, dtype)
        return tuple(
            [Expression(f"{text}[{i}]", s, d) for i, (s, d) in enumerate(zip(shape, dtype, strict=True))]
        )


def _parenthesised(text: str) -> str:
    """Parenthesise an expression to the left of a dot or a power if a sign or a number would bind differently."""
    return f"({text})" if text.startswith("-") or text.isdecimal() else text


def _param_text(param: Any) -> str:
    """The text of a param; sequences are lists, as in Rust and JSON."""
    return str([_as_lists(p) for p in param]) if isinstance(param, tuple) else str(param)


def _as_lists(param: Any) -> Any:
    return [_as_lists(p) for p in param] if isinstance(param, tuple) else param
