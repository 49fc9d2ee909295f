"""Steps on integers and bools of every width: divisors, bits, products of bools, two dtypes, wider sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.tests.random_programs.draft import INTS, NUMBERS, UNSIGNED, Draft
from core.tests.random_programs.steps.elementwise import second_operand
from core.tests.random_programs.steps.row import Row

SIGNED = tuple(name for name in INTS if name not in UNSIGNED)


def one(*texts: str, dtypes: tuple[str, ...] = INTS) -> Callable[[Draft], str]:
    """One of these expressions of an operand x, of one of its axes, and of a second operand y of the same dtype."""

    def draw(d: Draft) -> str:
        text = d.choice(texts)
        x = d.pick(dtypes, (lambda x: x.ndim > 0 and x.size > 0) if "{axis}" in text else None)
        y = second_operand(d, x) if "{y}" in text else None
        return str(text.format(x=x, y=y, axis=d.axis(x) if x.ndim else None, dtype=x.dtype))

    return draw


def _two_widths(d: Draft) -> str:
    """Operands of two dtypes of integers."""
    a = d.pick(INTS)
    b = second_operand(d, a, INTS)
    options = [
        f"{a} & {b}",
        f"{a} ^ {b}",
        f"{a} < {b}",
        f"{a} == {b}",
        f"{a} - {b}",
        f"xp.maximum({a}, {b})",
        f"xp.where({a} > {b}, {a}, {b})",
    ]
    unsigned, signed = {a.dtype, b.dtype} & {*UNSIGNED}, {a.dtype, b.dtype} & {*SIGNED}
    if "uint64" in unsigned and signed:  # no dtype of integers has all numbers of both
        options = [f"{a} < {b}", f"{a} == {b}", f"{a} * {b}", f"{a} + {b}"]
    return str(d.choice(options))


def _rows() -> Iterator[Row]:
    def row(name: str, draw: Callable[[Draft], str], weight: float = 1.0, whole: bool | None = None) -> Row:
        return Row(name, draw, exact=True, smooth=False, wide=True, weight=weight, whole=whole)

    yield row("gcd", one("xp.gcd({x}, {y})", "xp.gcd({x}, 12)", "xp.lcm({x} & 15, {y} & 15)"))
    yield row("bitwise_count", one("xp.bitwise_count({x})"))
    yield row(
        "bits",
        one(
            "({x} | {y}) & ~{x}",
            "({x} >> 1) ^ ({y} << 3)",
            "~({x} ^ {y})",
            "{x} & -{x}",
            "({x} << 2) + ({x} >> 1)",
        ),
        weight=2.0,
    )
    yield row(
        "divisions",
        one(
            "({x} // 3, {x} % 3)",
            "xp.divmod({x}, ({y} & 7) + 1)",
            "xp.fmod({x}, 5)",
            "{x} // (({y} & 3) + 1)",
        ),
        weight=2.0,
    )
    yield row("powers", one("{x} ** ({y} & 3)", "xp.square({x}) - {x}", "({x} & 3) ** ({y} & 7)"))
    yield row("signs", one("xp.abs({x})", "xp.abs(-{x})", "xp.sign({x}) * {x}", "-{x}", "xp.abs({x} - {y})"))
    yield row("two widths", _two_widths, weight=2.0)
    yield row(
        "sums in other dtypes",
        one(
            "xp.sum({x}, axis={axis}, dtype='int64')",
            "xp.prod({x} & 3, axis={axis}, dtype='uint32')",
            "xp.cumsum({x}, axis={axis}, dtype='int16')",
            "xp.sum({x} > 2, axis={axis})",
            "xp.cumsum({x} > 2, axis={axis}).astype('{dtype}')",
        ),
    )
    yield row(
        "bools",
        one(
            "xp.argmax({x})",
            "~{x} & {y}",
            "{x} ^ {y}",
            "{x} <= {y}",
            "{x} * 3",
            "xp.outer(xp.ravel({x}), xp.ravel({y}))",
            dtypes=("bool",),
        ),
    )
    yield row(
        "shifts by tensors", one("{x} << ({y} & 7)", "{x} >> ({y} & 7)", "xp.right_shift({x}, {y} & 3)")
    )
    yield row("running extremes", one("xp.sort({x}, axis={axis})[..., ::-1]", "xp.max({x}, axis={axis}) - 1"))
    yield Row(
        "means of ints",
        one("xp.mean({x}, axis={axis})", "xp.sqrt(xp.abs({x}) + 1)", "{x} / (xp.abs({y}) + 1)"),
        smooth=False,
        wide=True,
    )
    yield row(
        "order", one("xp.argsort({x}, axis={axis})", "xp.sort({x}, axis={axis})", dtypes=(*NUMBERS, "bool"))
    )


ROWS = tuple(_rows())
