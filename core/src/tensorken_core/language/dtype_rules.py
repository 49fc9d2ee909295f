"""DType rules: which operand dtypes an op takes, and the dtype of its result.

The caller puts the op's name before the message of an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import DType, Kind, bool_, float32, float64, int32, int64

DTypeRule = Callable[..., DType]

_PLURALS: dict[Kind, str] = {"bool": "bools", "int": "integers", "float": "floats"}


def _one_dtype(kinds: tuple[Kind, ...], dtypes: tuple[DType, ...], hint: str = "") -> DType:
    first = dtypes[0]
    if any(dtype is not first for dtype in dtypes[1:]):
        raise DTypeError(f"operands need one dtype, got {' and '.join(map(str, dtypes))}; cast them first")
    if first.kind not in kinds:
        takes = " and ".join(_PLURALS[kind] for kind in kinds)
        remedy = hint if hint and first is bool_ else "cast first (x.astype)"
        raise DTypeError(f"not defined for {first}; it takes {takes}; {remedy}")
    return first


def of_kinds(*kinds: Kind, params: int = 0, result: DType | None = None, for_bools: str = "") -> DTypeRule:
    """The rule for operands of one dtype of these kinds, then `params` params; the result dtype is theirs, or `result`.

    `for_bools` is the remedy in the error for bools.
    """

    def rule(*args: Any) -> DType:
        dtype = _one_dtype(kinds, args[: len(args) - params], for_bools)
        return result or dtype

    return rule


floating = of_kinds("float")
numeric = of_kinds("int", "float")
difference = of_kinds("int", "float", for_bools="cast first (x.astype), or use a ^ b (logical_xor)")
negated = of_kinds("int", "float", for_bools="cast first (x.astype), or use ~x (logical_not)")
float_to_bool = of_kinds("float", result=bool_)
integer = of_kinds("int")
anything = of_kinds("bool", "int", "float")
predicate = of_kinds("bool", "int", "float", result=bool_)


def movement(params: int = 1) -> DTypeRule:
    """One operand of any dtype; the result has the same dtype."""
    return of_kinds("bool", "int", "float", params=params)


def numeric_with(params: int = 1) -> DTypeRule:
    """Numbers, and then params."""
    return of_kinds("int", "float", params=params)


def position(params: int = 1) -> DTypeRule:
    """Operands of any dtype; the result holds int32 indices."""
    return of_kinds("bool", "int", "float", params=params, result=int32)


def selected(condition: DType, a: DType, b: DType) -> DType:
    """Where: a bool condition, and two operands of one dtype."""
    if condition is not bool_:
        raise DTypeError(f"the condition must be bool, got {condition}; compare first, as in x > 0")
    return _one_dtype(("bool", "int", "float"), (a, b))


def indexed(x: DType, indices: DType, *params: Any) -> DType:
    """Gather: integer indices; the data keep their dtype."""
    if indices is not int32 and indices is not int64:
        raise DTypeError(f"indices must be int32 or int64, got {indices}; cast them (x.astype)")
    return x


def indexed_sum(x: DType, indices: DType, *params: Any) -> DType:
    """Scatter-add: integer indices, and numbers to add."""
    indexed(x, indices)
    return _one_dtype(("int", "float"), (x,))


def cast_to(x: DType, dtype: DType) -> DType:
    """Cast: the dtype param."""
    return dtype


def bits_of(x: DType) -> DType:
    """The bits of a float: the int of its size, or int32 for a smaller one."""
    return int64 if _one_dtype(("float",), (x,)) is float64 else int32


def float_of_bits(x: DType) -> DType:
    """The float of an int's size."""
    if x is not int32 and x is not int64:
        raise DTypeError(f"not defined for {x}; it takes int32 and int64; cast first (x.astype)")
    return float64 if x is int64 else float32
