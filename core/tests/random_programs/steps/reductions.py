"""Steps along axes: reductions, cumulative ops, statistics, orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.tests.random_programs.draft import COMPLEX, DTYPES, FIELDS, FLOATS, INTS, Draft, Value
from core.tests.random_programs.steps.row import Row


def full(x: Value) -> bool:
    """Whether there are elements along each axis."""
    return x.size > 0


def has_axes(x: Value) -> bool:
    """Whether there is an axis, and elements along each."""
    return x.ndim > 0 and x.size > 0


def reduced(
    name: str, dtypes: tuple[str, ...], nonempty: bool = False, rest: str = ""
) -> Callable[[Draft], str]:
    """A reduction over axes."""

    def draw(d: Draft) -> str:
        x = d.pick(dtypes, full if nonempty else None)
        return f"xp.{name}({x}{rest}, axis={d.axes(x)}{', keepdims=True' if d.chance(0.35) else ''})"

    return draw


def placed(name: str) -> Callable[[Draft], str]:
    """The index of a maximum or minimum."""

    def draw(d: Draft) -> str:
        x = d.pick((*FLOATS, *INTS), has_axes)
        return f"xp.{name}({x}, axis={d.choice((d.axis(x), None))}, keepdims={d.chance(0.3)})"

    return draw


def along(
    name: str, dtypes: tuple[str, ...], rest: str = "", nonempty: bool = False
) -> Callable[[Draft], str]:
    """A function along one axis that keeps the shape."""

    def draw(d: Draft) -> str:
        x = d.pick(dtypes, has_axes if nonempty else lambda x: x.ndim > 0)
        return f"xp.{name}({x}, axis={d.axis(x)}{rest})"

    return draw


def spread(name: str) -> Callable[[Draft], str]:
    """A variance or a standard deviation, of at least two numbers."""

    def draw(d: Draft) -> str:
        x = d.pick(FLOATS, lambda x: x.ndim > 0 and min(x.shape) > 1)
        correction = d.choice(("", ", correction=1"))
        inner = f"{x} + xp.reshape(xp.arange({x.size}), {x.shape})" if d.smooth else str(x)
        return f"xp.{name}({inner}, axis={d.axes(x)}{correction})"

    return draw


def quantile(name: str, scale: float) -> Callable[[Draft], str]:
    """One quantile or several, at constant or computed fractions."""

    def draw(d: Draft) -> str:
        x = d.pick(("float32", "float64"), has_axes)
        q = d.choice((0.5, 0.25, 0.1, 1.0, 0.0, 2 / 3)) * scale
        given = d.choice((f"{q}", f"[{q}, {0.75 * scale}]", f"{q}"))
        return f"xp.{name}({x}, {given}, axis={d.choice((d.axis(x), None))})"

    return draw


def _prod(d: Draft) -> str:
    x = d.pick((*FLOATS, *INTS, *COMPLEX))
    return f"xp.prod({x}, axis={d.axes(x)})"


def _diff(d: Draft) -> str:
    x = d.pick((*FLOATS, *INTS, *COMPLEX), lambda x: x.ndim > 0 and x.shape[-1] > 2)
    return f"xp.diff({x}, n={d.choice((1, 2))})"


def _cumulative(name: str) -> Callable[[Draft], str]:
    def draw(d: Draft) -> str:
        x = d.pick((*FLOATS, *INTS, *COMPLEX), lambda x: x.ndim > 0)
        return f"xp.{name}({x}, axis={d.axis(x)}, include_initial={d.chance(0.5)})"

    return draw


def _average(d: Draft) -> str:
    x = d.pick(("float64", "float32"), has_axes, fine=True)
    axis = d.axis(x)
    return (
        f"xp.average({x}, axis={axis}, weights=xp.abs({d.pick((x.dtype,), shape=x.shape, fine=True)}) + 0.5)"
    )


def _topk(d: Draft) -> str:
    x = d.pick((*FLOATS, *INTS), lambda x: x.ndim > 0 and x.shape[-1] > 1)
    return f"xp.topk({x}, {d.choice((1, 2))})[0]"


def _topk_places(d: Draft) -> str:
    x = d.pick((*FLOATS, *INTS), lambda x: x.ndim > 0 and x.shape[-1] > 1)
    return f"xp.topk({x}, {d.choice((1, 2))})[1]"


def _searchsorted(d: Draft) -> str:
    x = d.pick((*FLOATS, *INTS), lambda x: x.ndim == 1)
    return f"xp.searchsorted(xp.sort({x}), {d.pick((x.dtype,))}, side='{d.choice(('left', 'right'))}')"


def _bincount(d: Draft) -> str:
    x = d.pick(INTS, lambda x: x.ndim == 1, shapes=((4,), (7,), (3,)))
    return f"xp.bincount({x} % 5, length=5)"


def _isin(d: Draft) -> str:
    x = d.pick(DTYPES)
    return f"xp.isin({x}, {d.pick((x.dtype,))})"


def _one_hot(d: Draft) -> str:
    return f"xp.one_hot({d.pick(INTS, lambda x: x.ndim < 3)} % 4, 4)"


def _norm(order: str) -> Callable[[Draft], str]:
    def draw(d: Draft) -> str:
        x = d.pick(("float64", "float32"), has_axes, fine=True)
        keep = d.chance(0.3)
        moved = 2.5 if d.smooth else d.choice((0.0, 2.5))  # at 0 there is no derivative
        return f"xp.linalg.vector_norm({x} + {moved}, axis={d.axis(x)}, keepdims={keep}, ord={order})"

    return draw


def _rows() -> Iterator[Row]:
    numbers = (*FLOATS, *INTS)
    yield Row("sum", reduced("sum", DTYPES), weight=2.0, whole=True)
    yield Row("mean", reduced("mean", FIELDS, nonempty=True))
    yield Row("prod", _prod, whole=True)
    for name in ("max", "min", "amax", "amin", "ptp"):
        yield Row(name, reduced(name, numbers, nonempty=True), exact=name != "ptp", whole=True)
    for name in ("any", "all", "count_nonzero"):
        yield Row(name, reduced(name, DTYPES), exact=True, smooth=False)
    for name in ("argmax", "argmin"):
        yield Row(name, placed(name), exact=True, smooth=False)
    yield Row("logsumexp", reduced("logsumexp", FLOATS, nonempty=True))
    for name in ("var", "std"):
        yield Row(name, spread(name))
    yield Row("median", along("median", ("float32", "float64"), nonempty=True))
    yield Row("quantile", quantile("quantile", 1.0))
    yield Row("percentile", quantile("percentile", 100.0))
    for name in ("cumsum", "cumprod"):
        yield Row(name, along(name, (*numbers, *COMPLEX)), whole=True)
    for name in ("cumulative_sum", "cumulative_prod"):
        yield Row(name, _cumulative(name), whole=True)
    for name in ("softmax", "log_softmax"):
        yield Row(name, along(name, FLOATS, nonempty=True))
    yield Row("sort", along("sort", DTYPES), exact=True)
    yield Row("sort descending", along("sort", numbers, ", descending=True"), exact=True)
    yield Row("argsort", along("argsort", numbers), exact=True, smooth=False)
    yield Row("argsort descending", along("argsort", numbers, ", descending=True"), exact=True, smooth=False)
    yield Row("topk", _topk, exact=True)
    yield Row("topk places", _topk_places, exact=True, smooth=False)
    yield Row("diff", _diff, whole=True)
    yield Row("average", _average)
    yield Row("searchsorted", _searchsorted, exact=True, smooth=False)
    yield Row("bincount", _bincount, exact=True, smooth=False)
    yield Row("isin", _isin, exact=True, smooth=False)
    yield Row("one_hot", _one_hot, exact=True, smooth=False, whole=False)  # it gives float32
    for order in ("2", "1", "inf", "3", "-inf"):
        yield Row(f"vector_norm {order}", _norm(order), weight=0.5)


ROWS = tuple(_rows())
