"""Steps with Python numbers that are arguments of the program: they take the dtype of the tensor in every mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.tests.random_programs.draft import COMPLEX, DTYPES, FIELDS, FLOATS, INTS, Draft, Value
from core.tests.random_programs.steps.row import Row

ALL = (*FLOATS, *INTS, *COMPLEX)


def number_for(d: Draft, x: Value) -> str:
    """A Python number of a kind that does not change the dtype of x, or rarely of another kind."""
    if d.chance(0.1):
        return d.python_number("ifb")
    kinds = (
        "b" if x.dtype == "bool" else "ib" if x.dtype in INTS else "ifbc" if x.dtype in COMPLEX else "iffb"
    )
    return d.python_number(kinds)


def with_number(
    *texts: str, dtypes: tuple[str, ...] = ALL, kinds: str = "", axes: bool = False
) -> Callable[[Draft], str]:
    """One of these expressions of x and a Python number n."""

    def draw(d: Draft) -> str:
        x = d.pick(dtypes, (lambda x: x.ndim > 0 and x.size > 0) if axes else None, fine=d.chance(0.6))
        n = d.python_number(kinds) if kinds else number_for(d, x)
        return str(d.choice(texts).format(x=x, n=n, size=x.shape[0] if x.ndim else 1, shape=x.shape))

    return draw


def _rows() -> Iterator[Row]:
    def row(
        name: str,
        *texts: str,
        dtypes: tuple[str, ...] = ALL,
        kinds: str = "",
        axes: bool = False,
        exact: bool = False,
        smooth: bool = True,
        weight: float = 1.0,
    ) -> Row:
        draw = with_number(*texts, dtypes=dtypes, kinds=kinds, axes=axes)
        return Row(name, draw, exact=exact, smooth=smooth, wide=True, weight=weight)

    real = (*FLOATS, *INTS)
    yield row(
        "arithmetic with arguments", "{x} * {n}", "{n} - {x}", "{x} + {n}", "{n} * {x} - {n}", weight=4.0
    )
    yield row("quotient by an argument", "{x} / ({n} + 2.25)", "({x} + {n}) / 4", dtypes=FIELDS)
    yield row("power of an argument", "{x} ** {n}", dtypes=real, kinds="i", smooth=False)
    yield row(
        "comparison with an argument",
        "{x} < {n}",
        "{x} >= {n}",
        "{n} == {x}",
        dtypes=real,
        exact=True,
        smooth=False,
    )
    yield row(
        "where of an argument",
        "xp.where({x} > 0, {x}, {n})",
        "xp.where({x} > {n}, {n}, {x})",
        dtypes=real,
        exact=True,
        smooth=False,
    )
    yield row(
        "extremes with arguments",
        "xp.maximum({x}, {n})",
        "xp.minimum({n}, {x})",
        "xp.clip({x}, {n}, None)",
        dtypes=real,
        exact=True,
        smooth=False,
    )
    yield row(
        "filled with an argument", "xp.full_like({x}, {n})", "xp.where({x} == {x}, {n}, {x})", exact=True
    )
    yield row(
        "array of an argument", "xp.asarray({n})", "xp.full((2,), {n})", "xp.asarray({n}) * 2", exact=True
    )
    yield row(
        "update by an argument",
        "{x}.at[0].set({n})",
        "{x}.at[..., 0].add({n})",
        "{x}.at[::2].multiply({n})",
        axes=True,
    )
    yield row(
        "key of an argument",
        "{x}[{n} % {size}]",
        "{x}[..., -({n} % 2)]",
        "xp.take({x}, {n} % {size}, axis=0)",
        "{x}.at[{n} % {size}].add(1)",
        kinds="i",
        axes=True,
    )
    yield row(
        "function of an argument",
        "xp.sin({n}) * {x}",
        "xp.exp(-{n} * {n}) + {x}",
        "xp.sqrt({n} * {n}) * {x}",
        dtypes=("float16", "bfloat16", "float32", "complex64"),
        kinds="if",
    )
    yield row(
        "floats with arguments",
        "xp.atan2({x}, {n} + 2.0)",
        "xp.logaddexp({x}, {n})",
        "xp.hypot({x}, {n} + 0.3)",
        "xp.isclose({x}, {n})",
        dtypes=FLOATS,
        smooth=False,
    )
    yield row(
        "division by an argument",
        "{x} // ({n} + 1)",
        "{x} % ({n} + 1)",
        "{x} // 2 * {n}",
        dtypes=real,
        kinds="ib",
        smooth=False,
    )
    yield row(
        "bits with arguments",
        "{x} & {n}",
        "({x} | {n}) ^ {n}",
        "{x} << ({n} % 7)",
        "{x} >> ({n} % 5)",
        dtypes=INTS,
        kinds="i",
        exact=True,
        smooth=False,
    )
    yield row("tensor and complex argument", "{x} * {n}", "{x} + {n}", dtypes=(*FLOATS, *COMPLEX), kinds="c")
    yield row(
        "bools with arguments",
        "{x} & {n}",
        "{x} ^ {n}",
        "xp.where({x}, {n}, {x})",
        dtypes=("bool",),
        kinds="b",
        exact=True,
        smooth=False,
    )
    yield row(
        "sums with arguments",
        "xp.sum({x} * {n}, axis=0)",
        "xp.cumsum({x} + {n}, axis=-1)",
        "xp.sum({x}, axis=-1) * {n}",
        axes=True,
    )
    yield row(
        "joined with an argument",
        "xp.concatenate([{x}, xp.full_like({x}, {n})])",
        "xp.stack([{x}, {x} * {n}])",
        "xp.pad({x}, 1, constant_values={n})",
        axes=True,
    )
    yield row(
        "searched argument",
        "xp.searchsorted(xp.sort(xp.ravel({x})), {n})",
        dtypes=real,
        axes=True,
        exact=True,
        smooth=False,
    )
    yield row(
        "any dtype and any argument",
        "{x} * {n}",
        "{x} + {n}",
        "xp.where({x} == {n}, {x}, {n})",
        dtypes=DTYPES,
        kinds="ifb",
        smooth=False,
        weight=2.0,
    )


ROWS = tuple(_rows())
