"""Steps that passes simplify: sums of products, equal steps, adjacent pads, scattered rows, signs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.tests.random_programs.draft import FLOATS, INTS, LARGEST, Draft
from core.tests.random_programs.steps.row import Row

NUMBERS = (*FLOATS, *INTS)


PAIR = re.compile(r"\b(x\d+)( [-+*/<] |, )(x\d+)\b")
"""Two operands."""


def _again(d: Draft) -> str | None:
    """An expression that there is already, or the same with two operands in the other order."""
    if not d.steps:
        return None
    text = str(d.choice(d.steps).text)
    pair = PAIR.search(text)
    if pair is not None and d.chance(0.5):
        facts = {x.name: (x.shape, x.dtype) for x in d.values}
        if facts[pair[1]] == facts[pair[3]]:
            return PAIR.sub(r"\3\2\1", text, 1)
    return text


def _contraction(d: Draft) -> str:
    """A sum of products, perhaps with further terms, transposed, or summed on."""
    a = d.pick(NUMBERS, lambda x: x.ndim == 2 and x.size < 13, shapes=((2, 3), (3, 3), (1, 3), (3, 2)))
    b = d.pick(
        (a.dtype,), lambda x: x.ndim == 2 and x.shape[1] == a.shape[1] and x.size < 13, shapes=(a.shape,)
    )
    terms = f"{a}[:, None, :] * {b}[None, :, :]"
    if d.chance(0.3):
        other = d.pick((a.dtype,), shape=a.shape)
        terms = f"{terms} {d.choice('+-')} {other}[:, None, :]"
    if d.chance(0.2):
        terms = f"-({terms})"
    summed = f"xp.sum({terms}, axis={d.choice((2, 2, 1, 0, (0, 2), (1, 2)))})"
    ends = ["", "", f" * {d.choice((2, -1, 0.5) if a.dtype in FLOATS else (2, -1))}", f" + {summed}"]
    return str(f"xp.sum({summed}, axis=0)" if d.chance(0.2) else summed + d.choice(ends))


def _quotients(d: Draft) -> str:
    """A sum of negated numbers, or of products or quotients with a factor that is constant along the axis."""
    x = d.pick(FLOATS, lambda x: x.ndim == 2 and x.shape[1] > 0, shapes=((2, 3), (3, 3), (3, 4)))
    column = f"{d.pick((x.dtype,), shape=x.shape)}[:, :1]"
    divisor = "2.0" if d.whole else f"(1.5 + xp.sin({column}))" if d.smooth else column
    term = d.choice(
        (
            f"-{x}",
            f"{x} * {column}",
            f"{x} / {divisor}",
            f"{x} * 3.0 * 2.0",
            f"({x} * 2.0) * ({column} * 4.0)",
        )
    )
    return f"xp.sum({term}, axis={d.choice((1, 0, -1))}, keepdims={d.chance(0.5)})"


def _cut(d: Draft) -> str:
    """Borders, and a part that may lie in them."""
    x = d.pick(NUMBERS, lambda x: x.ndim in (1, 2) and x.size < 20)
    width = tuple((d.below(3), d.below(3)) for _ in x.shape)
    keys = []
    for n, (before, after) in zip(x.shape, width, strict=True):
        first = d.below(before + n + after)
        keys.append(f"{first}:{d.random.randint(first, before + n + after)}")
    return f"xp.pad({x}, {width})[{', '.join(keys)}]"


def _side_by_side(d: Draft) -> str | None:
    """A sum of padded values that are adjacent, or almost."""
    x = d.pick(NUMBERS, lambda x: x.ndim > 0 and x.shape[0] > 0)
    if x.size * 4 > LARGEST:
        return None
    n = x.shape[0]
    length = n * d.choice((3, 3, 4))
    rest = ((0, 0),) * (x.ndim - 1)
    parts = []
    for before in d.random.sample((0, n, 2 * n), 3):
        width = ((before, length - n - before), *rest)
        parts.append(f"xp.pad({d.pick((x.dtype,), shape=x.shape)}, {width})")
    return " + ".join(parts)


def _scattered(d: Draft) -> str:
    """Few numbers scattered to many positions, and the sums of the rows, or sums with another value."""
    x = d.pick(FLOATS, lambda x: x.ndim == 1 and 0 < x.size < 5, shapes=((3,), (2,), (1,)))
    rows, columns = d.random.randint(1, 3), 4 * d.random.randint(1, 3)
    places = [d.below(rows * columns) for _ in range(x.size)]
    shape = d.choice(((rows, columns), (columns, rows)))
    v = d.name()
    zeros = f"xp.zeros({rows * columns}, dtype='{x.dtype}')"
    put = f"xp.grad(lambda {v}: xp.sum({v}[np.array({places})] * {x}))({zeros})"
    matrix = f"xp.reshape({put}, {shape})"
    if d.chance(0.4):
        y = d.pick((x.dtype,), shape=shape)
        return str(d.choice((f"{y} + {matrix}", f"{y} - {matrix}", f"{matrix} - xp.abs({y})")))
    return f"xp.sum({matrix}, axis={d.choice((0, 1, 1, 1, None))})"


def _signs(d: Draft) -> str:
    """Numbers that are negated or halved, and sums and products of these."""
    x = d.pick(FLOATS)
    y = d.pick((x.dtype,), shape=x.shape)
    text = str(x)
    for _ in range(d.random.randint(1, 3)):
        text = d.choice((f"-{text}", f"-{text}", f"({text} / 2.0)", f"({text} * -4.0)"))
    return str(
        d.choice((f"-({text} - {y})", f"{text} + {y}", f"{y} - {text}", f"{text} * -{y}", f"xp.sum({text})"))
    )


SAME = (
    *(
        "{x} + {zero}",
        "{x} - {zero}",
        "{zero} + {x}",
        "{zero} - {x}",
        "{x} * 1",
        "{x} * -1",
        "-(-{x})",
        "{x} - -{y}",
    ),
    *(
        "{x} * {zero}",
        "{x} - {x}",
        "{x} + {x}",
        "-{x} + {y}",
        "(-{x}) * (-{y})",
        "{x} - (-{x}) * {y}",
        "{x} + -{y}",
    ),
    *(
        "({x} - {y}) * ({y} - {x})",
        "({x} - {y}) - ({y} - {x})",
        "xp.maximum({x}, {y}) - xp.minimum({y}, {x})",
    ),
    *(
        "xp.maximum({x}, {x})",
        "xp.where({x} > 0, {x}, {x})",
        "xp.abs(-{x})",
        "xp.square(-{x})",
        "{x} ** 1",
        "{x} ** 2",
    ),
)
"""Expressions equal to a simpler one, or equal except for signs of zeros, infinities and NaN."""
SAME_WHOLE = (
    "{x} * 4.0 / 2.0",
    "{x} / 2.0 * 4.0",
    "({x} * 2.0) * ({y} * 3.0)",
    "({x} * 8.0) / 4.0 * {y}",
    "{x} / 1.0",
)
SAME_FLOATS = (
    *("(0.0 * {x}) + {zero}", "(0.0 * {x}) - {zero}", "{zero} - (0.0 * {x})", "-(0.0 * {x}) * 1.0"),
    "{x} / 1",
    "{x} / {x}",
    "{x} / 4",
    "{x} / 3",
    "{x} * 2.0 / 4.0",
    "{x} * (1.0 / {y})",
    "{x} * 3.0 / 7.0",
)
SAME_INTS = ("{x} | 0", "{x} ^ 0", "{x} & {x}", "{x} << 0", "{x} // 1", "{x} ^ {x}", "{x} & 0")


def _identity(d: Draft) -> str:
    """Five of these at once, of one operand or two."""
    x = d.pick(NUMBERS)
    y = d.pick((x.dtype,), shape=x.shape)
    of_dtype = SAME_INTS if x.dtype in INTS else SAME_WHOLE if d.smooth or d.whole else SAME_FLOATS
    zero = "0" if x.dtype in INTS else d.choice(("0.0", "-0.0"))
    texts = d.random.sample((*SAME, *of_dtype), 5)
    return f"({', '.join(text.format(x=x, y=y, zero=zero) for text in texts)})"


def _rows() -> Iterator[Row]:
    yield Row("identities", _identity, weight=6.0, whole=True)
    yield Row("equal step", _again, weight=3.0, whole=True)
    yield Row("contraction", _contraction, weight=3.0, whole=True)
    yield Row("factors of sums", _quotients, weight=2.0, whole=True)
    yield Row("pad and part", _cut, exact=True, weight=2.0)
    yield Row("pads side by side", _side_by_side, weight=2.0, whole=True)
    yield Row("scattered rows", _scattered, whole=True)
    yield Row("signs and halves", _signs, weight=2.0, whole=True)


ROWS = tuple(_rows())
