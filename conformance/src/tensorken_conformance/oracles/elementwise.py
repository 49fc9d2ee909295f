"""Elementwise: the correctly rounded result of every elementwise op, computed without any backend.

There are four kinds of ops: elementary functions (elementwise_functions.py); arithmetic, for which double has more than
twice the digits of a narrower float, so that rounding its result again is innocuous (S. A. Figueroa, "When is double
rounding innocuous?", 1995), and which for float64 is Python's own; exact ops; and ops of plugins, whose meaning is
their function on Python numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorken_conformance.numbers.host_arrays import in_dtype
from tensorken_conformance.numbers.rounding import FORMATS, Format, nearest
from tensorken_conformance.oracles.elementwise_functions import BINARY, UNARY, Binary, Unary, exactly, mp
from tensorken_core.language.dtypes import DType, bool_, float64, integer_bounds
from tensorken_core.language.op import Op

Array = np.ndarray[Any, Any]

inf, nan = math.inf, math.nan

FUNCTIONS: dict[str, Unary | Binary] = {**UNARY, **BINARY}
"""The elementary functions."""

_TRUSTED = 2.0**-40
"""A relative error that estimates of the math module never reach; C libraries have errors of a few units of 2**-53."""

_TURNS = 2.0**17
"""Sines of larger angles are not trusted: some C libraries reduce them with too few digits of pi."""


def expected(op: Op, dtype: DType, rows: tuple[Array, ...]) -> Array:
    """The correctly rounded results of an elementwise op.

    Args:
        op: any elementwise op in the table.
        dtype: the dtype of the data operands.
        rows: the operands, an array of one axis each; row i is the i-th element of each.

    Raises:
        LookupError: if the op has no meaning on numbers.

    >>> from tensorken_core.language.dtypes import float32
    >>> from tensorken_core.language.op import OPS
    >>> expected(OPS["exp"], float32, (np.float32([0.0, 1.0, np.inf]),)).tolist()
    [1.0, 2.7182817459106445, inf]
    """
    name = op.name
    dtypes = tuple([bool_ if column.dtype.kind == "b" else dtype for column in rows])
    result: DType = op.result_dtype(dtypes, ())
    if dtype.kind == "float" and name in FUNCTIONS:
        return _rounded(FUNCTIONS[name], dtype, rows)
    if name in _BITS:
        return np.asarray(_BITS[name](dtype, *rows)).astype(result.name, copy=False)
    meaning = _EXACT[dtype.kind].get(name)
    if meaning is not None:
        values = [meaning(*row) for row in zip(*[column.tolist() for column in rows], strict=True)]
    elif op.scalar is not None:
        values = [_attempt(op.scalar, row) for row in zip(*[c.tolist() for c in rows], strict=True)]
    else:
        raise LookupError(f"nothing is known of the op {name!r}: it has no meaning on numbers (Op.scalar)")
    return numbers(values, result)


def settled(op: Op, dtype: DType, rows: tuple[Array, ...]) -> Array:
    """Where a rounded op must return an exact result: 0, 1, an infinity or NaN at special operands.

    >>> from tensorken_core.language.dtypes import float32
    >>> from tensorken_core.language.op import OPS
    >>> settled(OPS["exp"], float32, (np.float32([0.0, 1.0, np.inf, 1000.0]),)).tolist()
    [True, False, True, False]
    """
    found = ~np.all([np.isfinite(column) for column in rows], 0)
    if dtype.kind == "float" and op.name in FUNCTIONS:
        facts = [
            FUNCTIONS[op.name].fact(*point) for point in zip(*[x.ravel().tolist() for x in rows], strict=True)
        ]
        certain = [f is not None and (f != f or abs(f) in (0.0, 1.0, inf)) for f in facts]
        found = np.array(certain, bool).reshape(rows[0].shape)
    return np.asarray(found)


def overflows(op: Op, dtype: DType, point: tuple[float, ...], units: int) -> bool:
    """Whether the exact value exceeds the largest number by more than so many units in the last place.

    >>> from tensorken_core.language.dtypes import float32
    >>> from tensorken_core.language.op import OPS
    >>> overflows(OPS["exp"], float32, (89.0,), 3), overflows(OPS["mul"], float32, (2.0**64, 2.0**64), 3)
    (True, False)
    """
    form = FORMATS[dtype.name]
    mp.prec = 200
    if op.name not in VALUES:
        return False
    value = VALUES[op.name](*(point if op.name in BINARY else map(mp.mpf, point)))
    return bool(abs(value) > mp.ldexp(1 + units * mp.ldexp(1, 1 - form.precision), form.top))


_OPERATORS = {name: getattr(operator, name) for name in ("neg", "add", "sub", "mul")}

VALUES: dict[str, Callable[..., Any]] = {
    **_OPERATORS,
    "div": operator.truediv,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "hypot": lambda a, b: mp.sqrt(a * a + b * b),
    **{name: function.value for name, function in FUNCTIONS.items()},
}
"""The smooth ops on real numbers, at the precision of `mp`."""


def known(op: Op) -> bool:
    """Whether an op has an oracle other than its scalar function."""
    return op.name in {**FUNCTIONS, **_BITS, **_EXACT["float"], **_EXACT["int"], **_EXACT["bool"]}


def numbers(values: Sequence[Any], dtype: DType) -> Array:
    """Python numbers in a dtype: ints wrap, floats round; floats to int truncate and saturate, and NaN is 0.

    >>> from tensorken_core.language.dtypes import int32
    >>> numbers([2**31, 1.5, float("inf")], int32).tolist()
    [-2147483648, 1, 2147483647]
    """
    if dtype.kind == "int":
        low, high = integer_bounds(dtype)
        whole = [v if isinstance(v, int) else _whole(v, low, high) for v in values]
        return np.array([(v - low) % (high - low + 1) + low for v in whole], dtype.name)
    if dtype.kind == "bool":
        return np.array([bool(v) for v in values], bool)
    with np.errstate(over="ignore", under="ignore"):
        return in_dtype(np.array(values, np.float64), dtype.name)


def _whole(value: float, low: int, high: int) -> int:
    if math.isfinite(value):
        return min(max(int(value), low), high)
    return 0 if value != value else high if value > 0.0 else low


# ---- the elementary functions --------------------------------------------------------------------------------


def _rounded(function: Unary | Binary, dtype: DType, rows: tuple[Array, ...]) -> Array:
    form, name = FORMATS[dtype.name], dtype.name
    points = list(zip(*[column.tolist() for column in rows], strict=True))
    if dtype is float64 or function.estimate is None:
        return np.array([exactly(function, point, form) for point in points], name)
    results = np.empty(len(points), np.float64)
    special, ordinary, estimates = [], [], []
    for i, point in enumerate(points):
        fact = function.fact(*point)
        if fact is not None:
            results[i] = fact
        elif max(map(abs, point)) > _TURNS:
            special.append(i)
        else:
            ordinary.append(i)
            estimates.append(function.estimate(*point))
    middle = np.array(estimates, np.float64)
    with np.errstate(over="ignore", under="ignore"):
        low, high = in_dtype(middle * (1.0 - _TRUSTED), name), in_dtype(middle * (1.0 + _TRUSTED), name)
    results[ordinary] = low
    special += [ordinary[i] for i in np.flatnonzero(low != high)]
    for i in special:
        results[i] = exactly(function, points[i], form)
    return results.astype(name)


# ---- arithmetic, and what is exact ---------------------------------------------------------------------------


def _div(a: float, b: float) -> float:
    if b == 0.0:
        return nan if a == 0.0 or a != a else math.copysign(inf, a) * math.copysign(1.0, b)
    return a / b


def _remainder(a: float, b: float) -> float:
    """a - floor(a / b) * b: the exact result of fmod, moved to the sign of b with one rounding."""
    if a != a or b != b or abs(a) == inf or b == 0.0:
        return nan
    rest = math.fmod(a, b)
    if rest == 0.0:
        return math.copysign(0.0, b)
    return rest if (rest < 0.0) == (b < 0.0) else rest + b


def _to_whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: math.copysign(function(x), x) if math.isfinite(x) else x


def _extreme(better: Callable[[float, float], bool]) -> Callable[[float, float], float]:
    return lambda a, b: nan if a != a or b != b else b if better(b, a) else a


def _sign(x: float) -> float:
    return x if x != x else float((x > 0.0) - (x < 0.0))


def _integer_pow(a: int, b: int) -> int:
    if b < 0:
        return 0 if abs(a) != 1 else a if b % 2 else 1
    return pow(a, b, 2**64)


_NUMBERS: dict[str, Callable[..., Any]] = {**_OPERATORS, "square": lambda x: x * x, "abs": abs}

_COMPARED: dict[str, Callable[..., Any]] = {
    "eq": operator.eq,
    "lt": operator.lt,
    "where": lambda c, a, b: a if c else b,
}

_EXACT: dict[str, dict[str, Callable[..., Any]]] = {
    "float": {
        **_NUMBERS,
        **_COMPARED,
        "div": _div,
        "reciprocal": lambda x: _div(1.0, x),
        "remainder": _remainder,
        "sign": _sign,
        "maximum": _extreme(operator.gt),
        "minimum": _extreme(operator.lt),
        "relu": lambda x: x if x > 0.0 or x != x else 0.0,
        "floor": _to_whole(math.floor),
        "ceil": _to_whole(math.ceil),
        "trunc": _to_whole(math.trunc),
        "round": _to_whole(round),
        "signbit": lambda x: math.copysign(1.0, x) < 0.0,
        "copysign": math.copysign,
    },
    "int": {
        **_NUMBERS,
        **_COMPARED,
        "sign": lambda x: (x > 0) - (x < 0),
        "maximum": max,
        "minimum": min,
        "remainder": lambda a, b: a % b if b else 0,
        "floor_divide": lambda a, b: a // b if b else 0,
        "bitwise_and": operator.and_,
        "bitwise_or": operator.or_,
        "bitwise_xor": operator.xor,
        "integer_pow": _integer_pow,
    },
    "bool": _COMPARED,
}


def _shift(shifted: Callable[[int, int, int], int]) -> Callable[[DType, Array, Array], Array]:
    """A shift of the bits of a number, from its value, the amount and the number of bits."""

    def call(dtype: DType, a: Array, b: Array) -> Array:
        bits = 8 * dtype.itemsize
        pairs = zip(a.tolist(), b.tolist(), strict=True)
        return numbers([shifted(p, q, bits) if 0 <= q < bits else 0 for p, q in pairs], dtype)

    return call


def _bits_as(kind: str) -> Callable[[DType, Array], Array]:
    return lambda dtype, x: np.ascontiguousarray(x).view(f"{kind}{dtype.itemsize}")


def _nextafter(dtype: DType, a: Array, b: Array) -> Array:
    """One step in the order of the bits, in which a float of each sign counts up from zero."""
    bits = f"i{dtype.itemsize}"
    smallest = np.array([1], bits).view(dtype.name)[0]
    results = []
    for p, q in zip(a, b, strict=True):
        if p != p or q != q:
            results.append(np.array(nan, dtype.name))
        elif p == q:
            results.append(q)
        elif p == 0:
            results.append(np.copysign(smallest, q))
        else:
            step = 1 if (p < q) == (p > 0) else -1
            results.append((p.view(bits) + np.array(step, bits)).view(dtype.name))
    return np.array(results, dtype.name)


def _hypot(dtype: DType, a: Array, b: Array) -> Array:
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return np.array([_hypotenuse(p, q, FORMATS[dtype.name]) for p, q in pairs], dtype.name)


def _hypotenuse(a: float, b: float, form: Format) -> float | None:
    """The root of the sum of squares from integers, with a sticky bit, since it may be a tie."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return inf if inf in (abs(a), abs(b)) else nan
    (n, m), (p, q) = a.as_integer_ratio(), b.as_integer_ratio()
    bits = max(m, q).bit_length() + 63
    square = ((n << bits) // m) ** 2 + ((p << bits) // q) ** 2
    root = math.isqrt(square)
    return nearest(2 * root + (root * root != square), -bits - 1, form)


_BITS: dict[str, Callable[..., Array]] = {
    "hypot": _hypot,
    "shift_left": _shift(lambda p, q, bits: p << q),
    "shift_right": _shift(lambda p, q, bits: p % (1 << bits) >> q),
    "to_bits": _bits_as("i"),
    "from_bits": _bits_as("f"),
    "nextafter": _nextafter,
}
"""Ops that depend on the number of bits of the dtype."""


def _attempt(meaning: Callable[..., Any], row: tuple[Any, ...]) -> Any:
    try:
        value = meaning(*row)
    except OverflowError:
        return inf
    except (ArithmeticError, ValueError):
        return nan
    return nan if isinstance(value, complex) else value
