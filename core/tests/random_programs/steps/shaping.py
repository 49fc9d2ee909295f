"""Steps that move elements: movement, joins, splits, editing, triangles; none of them rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.tests.random_programs.draft import DTYPES, LARGEST, Draft, Value
from core.tests.random_programs.steps.row import Row


def has_axes(x: Value) -> bool:
    """Whether there is an axis."""
    return x.ndim > 0


def is_matrix(x: Value) -> bool:
    """Whether there are at least two axes."""
    return x.ndim > 1


def of(
    text: Callable[[Draft, Value], str | None], fits: Callable[[Value], bool] | None = None
) -> Callable[[Draft], str | None]:
    """A step of one operand of any dtype."""

    def draw(d: Draft) -> str | None:
        return text(d, d.pick(DTYPES, fits))

    return draw


def _reshape(d: Draft, x: Value) -> str:
    n = x.size
    options = [(n,), (n, 1), (1, n)]
    options += [(k, n // k) for k in (2, 3, 4) if n and n % k == 0]
    options += [(2, 2, n // 4)] if n and n % 4 == 0 else []
    options += [(0, 3), (2, 0)] if not n else []
    return (
        f"xp.reshape({x}, {d.choice(options)})"
        if not n or d.chance(0.5)
        else f"{x}.reshape(({d.choice((-1, n))},))"
    )


def _permute(d: Draft, x: Value) -> str:
    axes = list(range(x.ndim))
    d.random.shuffle(axes)
    return f"xp.permute_dims({x}, {tuple(axes)})"


def _moved(d: Draft, x: Value) -> str:
    name = d.choice(("swapaxes", "moveaxis"))
    return f"xp.{name}({x}, {d.axis(x)}, {d.axis(x)})"


def _roll(d: Draft, x: Value) -> str:
    return f"xp.roll({x}, {d.choice((1, -1, 2, -5))}, {d.choice((d.axis(x), None))})"


def _broadcast(d: Draft, x: Value) -> str | None:
    if x.size > LARGEST // 3:
        return None
    lead = d.choice(((2,), (3,), (1,), ()))
    return f"xp.broadcast_to({x}, {(*lead, *[d.choice((1, 2, 3)) if n == 1 else n for n in x.shape])})"


def _expand_dims(d: Draft, x: Value) -> str:
    return f"xp.expand_dims({x}, {d.below(x.ndim + 1)})"


def _squeeze(d: Draft, x: Value) -> str | None:
    ones = [i for i, n in enumerate(x.shape) if n == 1]
    return f"xp.squeeze({x}, {d.choice(ones)})" if ones else f"xp.squeeze({x})"


def _pad(mode: str) -> Callable[[Draft, Value], str | None]:
    def draw(d: Draft, x: Value) -> str | None:
        width = tuple((d.below(3), d.below(3)) for _ in x.shape)
        if mode == "constant":
            value = "" if x.dtype == "bool" or d.chance(0.5) else ", constant_values=7"
            return f"xp.pad({x}, {width}{value})"
        if (min(x.shape) < 3 and mode == "reflect") or not x.size:
            return None
        width = tuple((min(a, n), min(b, n)) for (a, b), n in zip(width, x.shape, strict=True))
        return f"xp.pad({x}, {width}, mode='{mode}')"

    return draw


def _tile(d: Draft, x: Value) -> str | None:
    return f"xp.tile({x}, {d.choice((2, (2, 1), (1, 2), 1, (1,)))})" if x.size <= LARGEST // 2 else None


def _repeat(d: Draft, x: Value) -> str | None:
    return (
        f"xp.repeat({x}, {d.choice((2, 1, 3))}, axis={d.choice((d.axis(x), None))})" if x.size <= 32 else None
    )


def _repeat_each(d: Draft, x: Value) -> str:
    return f"xp.repeat({x}, np.array({[d.below(3) for _ in range(x.shape[0])]}, dtype='int32'), axis=0)"


def _joined(name: str) -> Callable[[Draft], str]:
    def draw(d: Draft) -> str:
        x = d.pick(DTYPES, has_axes)
        others = [d.pick((x.dtype,), shape=x.shape) for _ in range(1 + d.below(2))]
        listed = ", ".join([str(x), *map(str, others)])
        if name == "stack":
            return f"xp.stack([{listed}], {d.below(x.ndim + 1)})"
        if name in ("concatenate", "concat"):
            return f"xp.{name}([{listed}], {d.axis(x)})"
        return f"xp.{name}([{listed}])"

    return draw


def _parts(name: str) -> Callable[[Draft, Value], str | None]:
    def draw(d: Draft, x: Value) -> str | None:
        axis = d.axis(x)
        n = x.shape[axis]
        if name == "unstack":
            return f"xp.unstack({x}, axis={axis})" if 0 < n < 5 else None
        if name == "array_split":
            return f"xp.array_split({x}, {d.choice((2, 3))}, axis={axis})" if n else None
        if n and n % 2 == 0 and d.chance(0.6):
            return f"xp.split({x}, 2, axis={axis})"
        return f"xp.split({x}, [1, {max(n - 1, 1)}], axis={axis})" if n > 1 else None

    return draw


def _diagonal(d: Draft, x: Value) -> str:
    return f"xp.diagonal({x}, {d.choice((0, 1, -1))}, {d.choice(('0, 1', '1, 0', '-2, -1'))})"


def _triangle(name: str) -> Callable[[Draft, Value], str]:
    return lambda d, x: f"xp.{name}({x}, {d.choice((0, 1, -1))})"


def _append(d: Draft) -> str:
    x = d.pick(DTYPES, has_axes)
    return f"xp.append({x}, {d.pick((x.dtype,), shape=x.shape)}, axis={d.choice((0, -1, None))})"


def _insert(d: Draft) -> str:
    x = d.pick(DTYPES, lambda x: x.ndim > 0 and x.shape[0] > 0)
    return f"xp.insert({x}, {d.below(x.shape[0])}, {d.pick((x.dtype,), shape=x.shape[1:])}, axis=0)"


def _delete(d: Draft, x: Value) -> str:
    return f"xp.delete({x}, {d.below(x.shape[0])}, axis=0)"


def _meshgrid(d: Draft) -> str:
    x = d.pick(DTYPES, lambda x: x.ndim == 1)
    y = d.pick((x.dtype,), lambda x: x.ndim == 1)
    return f"xp.meshgrid({x}, {y}, indexing='{d.choice(('ij', 'xy'))}')"


def _broadcast_arrays(d: Draft) -> str:
    x = d.pick(DTYPES, lambda x: x.ndim > 0)
    return f"xp.broadcast_arrays({x}, {d.pick(DTYPES, shape=x.shape[-1:])})"


def _rows() -> Iterator[Row]:
    def row(
        name: str, text: Callable[[Draft, Value], str | None], fits: Callable[[Value], bool] | None = None
    ) -> Row:
        return Row(name, of(text, fits), exact=True)

    yield row("reshape", _reshape)
    yield row("permute_dims", _permute, is_matrix)
    yield row("transpose", lambda d, x: f"{x}.T", lambda x: x.ndim == 2)
    yield row("matrix_transpose", lambda d, x: f"{x}.mT", is_matrix)
    yield row("swapaxes or moveaxis", _moved, has_axes)
    yield row("flip", lambda d, x: f"xp.flip({x}, {d.axes(x)})", has_axes)
    yield row("fliplr", lambda d, x: f"xp.fliplr({x})", is_matrix)
    yield row("flipud", lambda d, x: f"xp.flipud({x})", has_axes)
    yield row("rot90", lambda d, x: f"xp.rot90({x}, {d.choice((1, 2, -1))})", is_matrix)
    yield row("roll", _roll, has_axes)
    yield row("broadcast_to", _broadcast)
    yield row("expand_dims", _expand_dims, lambda x: x.ndim < 4)
    yield row("squeeze", _squeeze)
    for mode in ("constant", "edge", "reflect", "wrap", "symmetric"):
        yield row(f"pad {mode}", _pad(mode), has_axes)
    yield row("tile", _tile, has_axes)
    yield row("repeat", _repeat, has_axes)
    yield row("repeat each", _repeat_each, lambda x: x.ndim > 0 and x.shape[0] > 0)
    for name in ("concatenate", "stack", "hstack", "vstack", "dstack", "column_stack", "concat"):
        yield Row(name, _joined(name), exact=True)
    for name in ("split", "array_split", "unstack"):
        yield row(name, _parts(name), has_axes)
    yield row("diagonal", _diagonal, is_matrix)
    yield row(
        "diag",
        lambda d, x: f"xp.diag({x}, {d.choice((0, 1, -1))})",
        lambda x: x.ndim in (1, 2) and x.size < 10,
    )
    yield row("tril", _triangle("tril"), is_matrix)
    yield row("triu", _triangle("triu"), is_matrix)
    yield row("ravel", lambda d, x: f"xp.ravel({x})")
    yield row("atleast_2d", lambda d, x: f"xp.atleast_2d({x})")
    yield row("zeros_like and ones_like", lambda d, x: f"xp.{d.choice(('zeros_like', 'ones_like'))}({x})")
    yield row("full_like", lambda d, x: f"xp.full_like({x}, {d.choice((0, 1))})")
    yield Row("append", _append, exact=True)
    yield Row("insert", _insert, exact=True)
    yield row("delete", _delete, lambda x: x.ndim > 0 and x.shape[0] > 0)
    yield Row("meshgrid", _meshgrid, exact=True)
    yield Row("broadcast_arrays", _broadcast_arrays, exact=True)


ROWS = tuple(_rows())
