"""The rule of each op that is defined for complex tensors; importing this module sets `Interpreter.apply_complex`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken.complex_numbers import arithmetic, eigenvalues, elementary, matrix_ops  # noqa: F401
from tensorken.complex_numbers.arithmetic import bilinear, each_part
from tensorken.complex_numbers.parts import FORMS
from tensorken.complex_numbers.tensor import ComplexTensor, complex_of
from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import bool_, promote
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.op import OPS, Op
from tensorken_core.tensor.tensor import Tensor

_LINEAR: tuple[str, ...] = (
    "concatenate",
    "crop",
    "cumsum",
    "expand",
    "flip",
    "gather",
    "pad",
    "permute",
    "reshape",
)
_LINEAR += ("scatter_add", "sum", "with_placement")

RULES: dict[str, Callable[..., Any]] = {
    **{name: each_part(OPS[name]) for name in _LINEAR},
    **{name: bilinear(OPS[name]) for name in ("convolution", "fused_multiply_add", "mul")},
    "abs": arithmetic.magnitude,
    "add": arithmetic.add,
    "argsort": arithmetic.argsort,
    "cumprod": arithmetic.cumprod,
    "div": arithmetic.div,
    "eq": arithmetic.equal,
    "neg": arithmetic.neg,
    "prod": arithmetic.prod,
    "reciprocal": arithmetic.reciprocal,
    "round": arithmetic.round_parts,
    "sign": arithmetic.sign,
    "sort": arithmetic.sort,
    "square": arithmetic.square,
    "sub": arithmetic.sub,
    "where": arithmetic.select,
    **{
        name: getattr(elementary, name)
        for name in (
            *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "exp2", "expm1"),
            *("log", "log10", "log1p", "log2", "norm", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh"),
        )
    },
    "pow": elementary.power,
    **FORMS,
}
"""From the operands, as complex tensors, and the params to the result."""

_NOT_DATA = frozenset({"gather", "scatter_add"})  # their second operand holds indices

_ORDER = frozenset({"lt", "max", "min", "maximum", "minimum", "argmax", "argmin"})


def apply_complex(op: Op, operands: Sequence[Tensor], params: tuple[Any, ...]) -> Any:
    """Run an op of which at least one operand is complex, by its rule.

    Raises:
        DTypeError: if the op has no rule.

    >>> import tensorken as tk
    >>> apply_complex(OPS["square"], [tk.tensor([1j, 1 + 1j])], ()).tolist()
    [(-1+0j), 2j]
    """
    rule = RULES.get(op.name)
    if op.name == "where" and operands[0].dtype is not bool_:
        raise DTypeError(
            f"where: the condition must be bool, got {operands[0].dtype}; compare first, as in x != 0"
        )
    dtype = next(x.dtype for x in operands if x.dtype.kind == "complex")
    if rule is None:
        hint = "complex numbers have no order" if op.name in _ORDER else "take x.real, x.imag or abs(x)"
        raise DTypeError(f"{op.name}: not defined for {dtype}; {hint}")
    data = operands[:1] if op.name in _NOT_DATA else operands[op.name == "where" :]
    for x in data:
        dtype = promote(dtype, x.dtype)
    converted = [
        (x.astype(dtype) if isinstance(x, ComplexTensor) else complex_of(x, dtype))
        if any(x is y for y in data)
        else x
        for x in operands
    ]
    return rule(*converted, *params)


Interpreter.apply_complex = staticmethod(apply_complex)
