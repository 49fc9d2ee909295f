"""Steps that index: every form of key, take and its relatives, and updates by `.at`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.tests.random_programs.draft import COMPLEX, DTYPES, FIELDS, FLOATS, INTS, Draft, Value
from core.tests.random_programs.steps.row import Row

NUMBERS = (*FLOATS, *INTS, *COMPLEX)


def has_axes(x: Value) -> bool:
    """Whether there is an axis, and elements along each."""
    return x.ndim > 0 and x.size > 0


def part(d: Draft, n: int) -> str:
    """A number, a slice or a new axis for an axis of this size."""
    options = [":", "1:", "::-1", "::2", ":-1", "-2:", "1::2", "::-2", "None, :", ":0", "2:1"]
    options += [str(n - 1), "0", f"-{n}"] if n else []
    return str(d.choice(options))


def basic(d: Draft, x: Value) -> str:
    """A basic key."""
    parts = [part(d, n) for n in x.shape[: 1 + d.below(x.ndim)]]
    if d.chance(0.2):
        parts = ["...", part(d, x.shape[-1])]
    return ", ".join(parts)


def places(d: Draft, n: int, count: int | None = None) -> str:
    """Indices along an axis of this size, with repetitions and negative ones."""
    found = [d.random.randint(-n, n - 1) for _ in range(count or d.choice((1, 2, 3, 3)))]
    return f"np.array({found})"


def traced(d: Draft, n: int, shape: tuple[int, ...] | None = None) -> str:
    """Indices computed from values."""
    i = d.pick(INTS, lambda i: i.size < 9) if shape is None else d.pick(INTS, shape=shape)
    return f"({i} % {n})"


def key(d: Draft, x: Value) -> str:
    """A key of any kind, without masks."""
    n, style = x.shape[0], d.below(7)
    if style == 0:
        return basic(d, x)
    if style == 1:
        return places(d, n)
    if style == 2:
        return traced(d, n)
    if x.ndim == 1 or style == 3:
        return traced(d, n, ())
    m = x.shape[1]
    if style == 4:
        return f"{places(d, n, 3)}, {places(d, m, 3)}"
    if style == 5:
        return f"{d.choice((':', '::-1', '0', '1:'))}, {places(d, m)}"
    return f"{traced(d, n, ())}, {d.choice((':', '::-1', traced(d, m, ())))}"


def _basic(d: Draft) -> str:
    x = d.pick(DTYPES, lambda x: x.ndim > 0)
    return f"{x}[{basic(d, x)}]"


def _key(d: Draft) -> str:
    x = d.pick(DTYPES, has_axes)
    return f"{x}[{key(d, x)}]"


def _places(d: Draft) -> str:
    x = d.pick(DTYPES, has_axes)
    return f"{x}[{places(d, x.shape[0])}]"


def _two_lists(d: Draft) -> str:
    x = d.pick(DTYPES, lambda x: x.ndim > 1 and x.size > 0)
    lists = f"{places(d, x.shape[0], 3)}, {places(d, x.shape[1], 3)}"
    return (
        f"{x}[{lists}]"
        if d.chance(0.6)
        else f"{x}[{places(d, x.shape[0], 2)}[:, None], {places(d, x.shape[1], 3)}]"
    )


def _apart(d: Draft) -> str:
    x = d.pick(DTYPES, lambda x: x.ndim > 2 and x.size > 0, shapes=((2, 2, 3), (2, 1, 3)))
    return f"{x}[{places(d, x.shape[0], 2)}, :, {places(d, x.shape[2], 2)}]"


def _traced(d: Draft) -> str:
    x = d.pick(DTYPES, has_axes)
    return f"{x}[{traced(d, x.shape[0])}]"


def _scalar(d: Draft) -> str:
    x = d.pick(DTYPES, has_axes)
    return f"{x}[..., {traced(d, x.shape[-1], ())}]"


def _mask(d: Draft) -> str:
    x = d.pick(DTYPES, lambda x: 0 < x.ndim < 3 and x.size > 0)
    mask = [d.chance(0.5) for _ in range(x.shape[0])]
    return f"{x}[np.array({mask})]"


def _take(d: Draft) -> str:
    x = d.pick(DTYPES, has_axes)
    axis = d.axis(x)
    return f"xp.take({x}, {d.choice((traced(d, x.shape[axis]), places(d, x.shape[axis])))}, axis={axis})"


def _take_along(d: Draft) -> str:
    x = d.pick(DTYPES, has_axes)
    axis = d.axis(x)
    if d.chance(0.6):
        i = d.pick(INTS, shape=x.shape)
        return f"xp.take_along_axis({x}, {i} % {x.shape[axis]}, axis={axis})"
    y = d.pick(FLOATS, shape=x.shape, fine=True)
    return f"xp.take_along_axis({x}, xp.argsort({y}, axis={axis}), axis={axis})"


def _update(name: str) -> Callable[[Draft], str | None]:
    def draw(d: Draft) -> str | None:
        dtypes = (*FLOATS, *INTS) if name in ("min", "max") else NUMBERS
        x = d.pick(dtypes, has_axes, fine=name in ("multiply", "divide"))
        style = d.below(4)
        where = basic(d, x) if style == 0 else places(d, x.shape[0]) if style == 1 else key(d, x)
        if (
            name == "set" and style and "np" in where
        ) or "%" in where:  # which of two values at one index is written last is unspecified
            where = (
                traced(d, x.shape[0], ())
                if d.chance(0.5)
                else f"np.array([0, {x.shape[0] - 1}])"
                if x.shape[0] > 1
                else "0"
            )
        elif name == "set":
            where = basic(d, x)
        value = d.choice(
            (
                "2",
                "1.5" if x.dtype in FIELDS else "3",
                str(d.pick((x.dtype,), shape=(), fine=name == "divide")),
            )
        )
        if name == "divide":
            value = f"({value} * 0 + 4)" if value[0] == "x" else value
            if x.dtype in INTS:
                return None
        if d.chance(0.4):
            last = d.pick((x.dtype,), shape=x.shape, fine=True)
            value = f"{last}[{where}]" if name != "divide" else f"(xp.abs({last}[{where}]) + 0.5)"
        return f"{x}.at[{where}].{name}({value})"

    return draw


def _at_places(d: Draft) -> str:
    """Sums of values at repeated indices."""
    x = d.pick(NUMBERS, lambda x: x.ndim == 1 and x.size > 0)
    values = d.pick((x.dtype,), lambda v: v.ndim == 1 and v.size < 9)
    return f"{x}.at[{d.pick(INTS, shape=values.shape)} % {x.size}].add({values})"


def _rows() -> Iterator[Row]:
    yield Row("basic key", _basic, exact=True, weight=3.0)
    yield Row("any key", _key, exact=True, weight=2.0)
    yield Row("key of places", _places, exact=True)
    yield Row("key of two lists", _two_lists, exact=True)
    yield Row("key of lists apart", _apart, exact=True)
    yield Row("key of a tensor", _traced, exact=True)
    yield Row("key of a scalar", _scalar, exact=True)
    yield Row("key of a mask", _mask, exact=True)
    yield Row("take", _take, exact=True)
    yield Row("take_along_axis", _take_along, exact=True)
    for name in ("set", "add", "subtract", "multiply", "divide", "min", "max"):
        exact = name in ("set", "min", "max")
        yield Row(f"at {name}", _update(name), exact=exact, whole=name != "divide")
    yield Row("at add of places", _at_places, whole=True)


ROWS = tuple(_rows())
