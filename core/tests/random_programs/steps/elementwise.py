"""Steps on elements: functions of one number and of two, comparisons, logic, bits, casts, choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.tests.random_programs.draft import (
    COMPLEX,
    DTYPES,
    FIELDS,
    FLOATS,
    INTS,
    NARROW,
    UNSIGNED,
    Draft,
    Value,
)
from core.tests.random_programs.steps.row import Row

IN_DOMAIN = {
    "acos": "0.9 * xp.tanh({x})",
    "acosh": "1.2 + {x} ** 2",
    "asin": "0.9 * xp.tanh({x})",
    "asinh": "{x}",
    "atan": "{x}",
    "atanh": "0.9 * xp.tanh({x})",
    "cos": "{x}",
    "cosh": "xp.clip({x}, -3.0, 3.0)",
    "deg2rad": "{x}",
    "degrees": "{x}",
    "erf": "{x}",
    "erfinv": "0.9 * xp.tanh({x})",
    "exp": "3.0 * xp.tanh({x})",
    "exp2": "3.0 * xp.tanh({x})",
    "expm1": "3.0 * xp.tanh({x})",
    "log": "0.3 + xp.abs({x})",
    "log10": "0.3 + {x} ** 2",
    "log1p": "{x} ** 2",
    "log2": "0.3 + {x} ** 2",
    "rad2deg": "{x}",
    "radians": "{x}",
    "reciprocal": "1.3 + xp.sin({x})",
    "sigmoid": "{x}",
    "sin": "{x}",
    "sinc": "{x}",
    "sinh": "3.0 * xp.tanh({x})",
    "softplus": "{x}",
    "sqrt": "0.3 + xp.abs({x})",
    "square": "{x}",
    "tan": "xp.tanh({x})",
    "tanh": "{x}",
}
"""Functions of one float that round, and how an operand is brought into the domain where derivatives are compared."""

EXACT = ("abs", "negative", "positive", "relu")
STEPPED = ("ceil", "fix", "floor", "rint", "round", "sign", "trunc", "nan_to_num")
TESTS = ("isfinite", "isinf", "isnan", "isneginf", "isposinf", "signbit")

BINARY = {
    "add": ("{a}", "{b}"),
    "subtract": ("{a}", "{b}"),
    "multiply": ("{a}", "{b}"),
    "divide": ("{a}", "1.5 + xp.sin({b})"),
    "atan2": ("{a}", "1.5 + xp.sin({b})"),
    "hypot": ("{a}", "1.5 + xp.sin({b})"),
    "logaddexp": ("{a}", "{b}"),
    "pow": ("0.5 + xp.abs({a})", "xp.tanh({b})"),
}
"""Functions of two floats that round, and operands of their domains."""

RANGES = {"int8": ("-100.0", "100.0"), "uint8": ("0.0", "200.0")}
"""The numbers that are cast to small integers."""

PAIRED = ("maximum", "minimum", "fmax", "fmin", "copysign")
STEPPED_PAIRS = ("floor_divide", "remainder", "fmod", "heaviside", "nextafter")
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def second_operand(d: Draft, x: Value, dtypes: tuple[str, ...] | None = None, fine: bool = False) -> Value:
    """An operand that broadcasts with x, of the same dtype by default."""
    shapes = {x.shape, x.shape[1:], (*x.shape[:-1], 1) if x.ndim else (), ()}
    shapes |= {tuple(3 if n == 1 else 1 for n in x.shape)} if 1 in x.shape else set()
    return d.pick(
        (x.dtype,) if dtypes is None else dtypes,
        lambda y: y.shape in shapes,
        shapes=sorted(shapes),
        fine=fine,
    )


def unary(name: str, domain: str | None, dtypes: tuple[str, ...] = FLOATS) -> Callable[[Draft], str]:
    """A function of one float."""

    def draw(d: Draft) -> str:
        x = d.pick(dtypes)
        if d.smooth and domain is not None:
            return f"xp.{name}({domain.format(x=x)})"
        return f"xp.{name}({x})"

    return draw


def of_numbers(name: str, dtypes: tuple[str, ...] = (*FLOATS, *INTS)) -> Callable[[Draft], str]:
    """A function of one number of any of these dtypes."""
    return lambda d: f"xp.{name}({d.pick(dtypes)})"


def binary(name: str, domains: tuple[str, str] | None, dtypes: tuple[str, ...]) -> Callable[[Draft], str]:
    """A function of two operands of one dtype that broadcast."""

    def draw(d: Draft) -> str:
        a = d.pick(dtypes)
        b = second_operand(d, a)
        if d.smooth and domains is not None:
            return f"xp.{name}({domains[0].format(a=a)}, {domains[1].format(b=b)})"
        if d.chance(0.3):
            a, b = b, a
        return f"xp.{name}({a}, {b})"

    return draw


def division(name: str) -> Callable[[Draft], str]:
    """A division of integers, by none that is zero."""

    def draw(d: Draft) -> str:
        a = d.pick(INTS)
        return f"xp.{name}({a}, xp.where({(b := second_operand(d, a))} == 0, 3, {b}))"

    return draw


def shift(name: str) -> Callable[[Draft], str]:
    """A shift by less than the number of bits."""

    def draw(d: Draft) -> str:
        a = d.pick(INTS)
        return f"xp.{name}({a}, {second_operand(d, a)} & 7)"

    return draw


def _where(d: Draft) -> str:
    a = d.pick(DTYPES)
    b = second_operand(d, a)
    real = f"xp.real({a})" if a.dtype in COMPLEX else str(a)
    c = second_operand(d, a, ("bool",)) if not d.smooth else f"({real} > 0.3)"
    return f"xp.where({c}, {a}, {b})"


def _where_number(d: Draft) -> str:
    a = d.pick(FLOATS)
    return f"xp.where({a} > {d.choice((0, 0.5, -1.0))}, {a}, {d.choice((0.0, 1.5, -2.0))})"


def _clip(d: Draft) -> str:
    a = d.pick((*FLOATS, *INTS))
    low, high = d.choice((("-1", "1"), ("None", "2"), ("0", "None"), ("-3", "-1")))
    return f"xp.clip({a}, {low}, {high})"


def _clip_by(d: Draft) -> str:
    a = d.pick((*FLOATS, *INTS))
    return f"xp.clip({a}, {(b := second_operand(d, a))}, {b} + 1)"


def _with_number(d: Draft) -> str:
    x, n = d.pick(FLOATS), d.choice((2, -1, 0.5, 3, 0, 1, -0.25))
    options = [f"{x} * {n}", f"{n} - {x}", f"{x} + {n}", f"{x} / {n or 4}", f"-{x} * {n} + {x}"]
    if d.whole:
        n = d.choice((2, -1, 3, 0, 1))
        options = [
            f"{x} * {n}",
            f"{n} - {x}",
            f"{x} * 2.0 * {n}",
            f"{x} / 1.0",
            f"-{x} * {n} + {x}",
            f"-{x} * 2 / 4",
        ]
    return str(d.choice(options))


def _int_with_number(d: Draft) -> str:
    x, n = d.pick(INTS), d.choice((2, -1, 3, 7, 100))
    options = [f"{x} * {n} + 1", f"{n} - {x}", f"{x} // {n}", f"{x} % {n}", f"({x} & {n}) | 1", f"{x} < {n}"]
    return str(d.choice(options))


def _power_of_number(d: Draft) -> str:
    x = d.pick(FLOATS)
    if d.smooth or d.whole:
        return (
            f"{x} ** {d.choice((2, 3, 1, 0))}"
            if d.whole or d.chance(0.6)
            else f"(xp.abs({x}) + 0.5) ** {d.choice((0.5, -1.5))}"
        )
    return f"{x} ** {d.choice((2, 3, 0.5, 0.5, -1, 0, 1, -2, 1.5))}"


def _int_power(d: Draft) -> str:
    return f"{d.pick(INTS)} ** {d.choice((0, 1, 2, 3, 5))}"


def _round_to(d: Draft) -> str:
    return f"xp.round({d.pick(('float64', 'float32'), fine=True)}, {d.choice((1, 2))})"


def _isclose(d: Draft) -> str:
    a = d.pick(FLOATS)
    return f"xp.isclose({a}, {second_operand(d, a)}, equal_nan={d.chance(0.5)})"


def _divmod(d: Draft) -> str:
    a = d.pick((*FLOATS, "int32"), fine=True)
    return f"xp.divmod({a}, xp.abs({second_operand(d, a, fine=True)}) + 1)"


def _mixed(d: Draft) -> str:
    """Operands of two dtypes."""
    a = d.pick(DTYPES)
    b = second_operand(d, a, DTYPES)
    both = {a.dtype, b.dtype}
    order = "!=" if both & {*COMPLEX} else ">"
    return (
        f"{a} {d.choice(('-', '*', '+'))} {b}" if "bool" not in both else f"xp.where({a} {order} {b}, 1, 2)"
    )


def _compare_numbers(d: Draft) -> str:
    return f"({d.pick(FLOATS)} {d.choice(('<', '<=', '>', '>=', '==', '!='))} {d.choice((0, 0.5, -1))})"


def _astype(dtype: str) -> Callable[[Draft], str]:
    def draw(d: Draft) -> str:
        x = d.pick(DTYPES)
        real = f"xp.real({x})" if x.dtype in COMPLEX and dtype not in COMPLEX else str(x)
        if (
            x.dtype in FIELDS and dtype in INTS
        ):  # the cast of an out-of-range number to an integer is unspecified
            low, high = RANGES.get(dtype, ("0.0" if dtype in UNSIGNED else "-1000.0", "1000.0"))
            return f"xp.clip(xp.nan_to_num({real}), {low}, {high}).astype('{dtype}')"
        return f"{real}.astype('{dtype}')"

    return draw


def _rows() -> Iterator[Row]:
    for name, domain in IN_DOMAIN.items():
        yield Row(name, unary(name, domain), whole=name == "square")
    for name in EXACT:
        dtypes = FIELDS if name in ("negative", "positive") else FLOATS
        yield Row(name, unary(name, None, dtypes), exact=True)
    for name in STEPPED:
        yield Row(name, unary(name, None), exact=True, smooth=False)
    for name in TESTS:  # a zero of a program of integers may have either sign
        yield Row(name, unary(name, None), exact=True, smooth=False, whole=name != "signbit")
    for name in ("abs", "negative", "sign", "square"):
        yield Row(f"{name} of ints", of_numbers(name, INTS), exact=True, smooth=False, weight=0.5)
    for name in ("sqrt", "exp", "sin", "mean"):
        yield Row(f"{name} of ints", of_numbers(name, INTS), smooth=False, weight=0.3)
    for name, domains in BINARY.items():
        whole = name in ("add", "subtract", "multiply")
        yield Row(name, binary(name, domains, FIELDS if whole else FLOATS), whole=whole)
    for name in PAIRED:
        yield Row(name, binary(name, None, FLOATS), exact=True, whole=name != "copysign")
    for name in STEPPED_PAIRS:
        yield Row(name, binary(name, None, FLOATS), smooth=False)
    for name in COMPARISONS:
        dtypes = DTYPES if "equal" in name[:9] else (*FLOATS, *INTS)
        yield Row(name, binary(name, None, dtypes), exact=True, smooth=False)
    for name in ("add", "subtract", "multiply", "maximum", "minimum"):
        yield Row(f"{name} of ints", binary(name, None, INTS), exact=True, smooth=False)
    for name in ("floor_divide", "remainder"):
        yield Row(f"{name} of ints", division(name), exact=True, smooth=False)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        yield Row(name, binary(name, None, (*INTS, "bool")), exact=True, smooth=False)
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield Row(name, binary(name, None, ("bool", "int32", "float32")), exact=True, smooth=False)
    for name in ("left_shift", "right_shift"):
        yield Row(name, shift(name), exact=True, smooth=False)
    yield Row(
        "logical_not", of_numbers("logical_not", ("bool", "int64", "float16")), exact=True, smooth=False
    )
    yield Row("invert", of_numbers("invert", ("bool", *INTS)), exact=True, smooth=False)
    for dtype in DTYPES:
        rounds = dtype in (*FIELDS, "bool") and dtype not in ("float64", "bool")
        yield Row(
            f"astype {dtype}",
            _astype(dtype),
            exact=True,
            smooth=False,
            whole=not rounds,
            wide=dtype not in NARROW,
            weight=1.0 if dtype in NARROW else 0.3,
        )
    yield Row("where", _where, exact=True)
    yield Row("where with numbers", _where_number, exact=True)
    yield Row("clip", _clip, exact=True)
    yield Row("clip by tensors", _clip_by, whole=True)
    yield Row("operators with numbers", _with_number, weight=2.0, whole=True)
    yield Row("operators of ints", _int_with_number, exact=True, smooth=False, weight=2.0)
    yield Row("power of a number", _power_of_number, weight=2.0, whole=True)
    yield Row("power of ints", _int_power, exact=True, smooth=False)
    yield Row("round to decimals", _round_to, smooth=False)
    yield Row("isclose", _isclose, smooth=False)
    yield Row("divmod", _divmod, smooth=False)
    yield Row("two dtypes", _mixed, smooth=False, weight=2.0, whole=True)
    yield Row("comparisons with numbers", _compare_numbers, exact=True, smooth=False)


ROWS = tuple(_rows())
