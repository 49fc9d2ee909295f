"""Steps with functions in them over values of every dtype, with Python numbers as arguments and carries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from core.tests.random_programs.draft import COMPLEX, DTYPES, FIELDS, FLOATS, INTS, Draft, Value
from core.tests.random_programs.steps.flow import ALONG, SIMPLE
from core.tests.random_programs.steps.row import Row

BODIES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "float": (SIMPLE, ALONG, ("{a} * {n}", "{b} - {n} * {a}", "xp.where({a} > {n}, {a}, {b})", "{a} + {n}")),
    "int": (
        (
            "{a} + {b}",
            "{a} * 3 - {b}",
            "({a} & 7) | ({b} & 1)",
            "{a} ^ {b}",
            "xp.maximum({a}, {b}) // 2",
            "{a} % 5 + {b}",
            "xp.where({a} > {b}, {a}, {b} << 1)",
            "(xp.abs({a}) >> 1) + {b}",
        ),
        (
            "xp.flip({a}, -1) + {b}",
            "xp.sort({a}, axis=-1) - {b}",
            "{a}.at[..., 0].add(1) - {b}",
            "xp.max({a}, axis=-1, keepdims=True) - {b}",
            "{a} ^ xp.roll({b}, 1, -1)",
        ),
        (
            "{a} * {n}",
            "{a} + {n}",
            "xp.maximum({a}, {n}) - {b}",
            "({a} & {n}) | {b}",
            "xp.where({a} > {n}, {b}, {n})",
        ),
    ),
    "bool": (
        ("{a} & {b}", "{a} | ~{b}", "{a} ^ {b}", "xp.where({a}, {b}, ~{a})"),
        (
            "xp.flip({a}, -1) ^ {b}",
            "xp.any({a}, axis=-1, keepdims=True) & {b}",
            "{a}.at[..., 0].set(True) ^ {b}",
        ),
        ("{a} & {n}", "{b} ^ {n}", "xp.where({a}, {n}, {b})"),
    ),
    "complex": (
        (
            "0.5 * {a} * xp.conj({b})",
            "{a} * (0.5 - 0.5j) + {b}",
            "xp.conj({a}) - 0.25 * {b}",
            "{a} / (1.5 + xp.abs({b}))",
            "xp.real({a}) * 0.5 - 1j * xp.imag({b})",
            "xp.where(xp.real({a}) > xp.imag({b}), {a}, {b})",
            "xp.exp(0.3j * xp.real({a})) * {b}",
        ),
        (
            "xp.sum({a}, axis=-1, keepdims=True) * 0.1 + {b}",
            "xp.cumsum({a}, axis=-1) * 0.3 + {b}",
            "xp.flip({a}, -1) - {b}",
            "{a} + xp.roll({b}, 1, -1)",
            "{a}.at[..., 0].add(1.5j) * 0.5 + {b}",
        ),
        ("{a} * {n}", "{b} - {n} * {a}", "xp.conj({a}) + {n}"),
    ),
}
"""For each kind of carry: expressions of its elements, along its last axis, and with a Python number."""


def kind_of(x: Value) -> str:
    """The kind of its dtype, as in `BODIES`."""
    return (
        "complex"
        if x.dtype in COMPLEX
        else "int"
        if x.dtype in INTS
        else "bool"
        if x.dtype == "bool"
        else "float"
    )


NUMBERS_FOR = {"float": "iffb", "int": "ib", "bool": "b", "complex": "ifc"}
"""The kinds of Python numbers that do not change the dtype."""


def body(d: Draft, x: Value, names: Sequence[str], number: str | None = None, ndim: int | None = None) -> str:
    """An expression of variables with the dtype of x; it has their shape.  With a number, it is used."""
    simple, along, numbered = BODIES[kind_of(x)]
    a, b = d.choice(names), d.choice(names)
    ndim = x.ndim if ndim is None else ndim
    texts = numbered if number is not None else along if ndim and d.chance(0.35) else simple
    text = f"({d.choice(texts).format(a=a, b=b, n=number)})"
    if number is None and d.chance(0.35):
        v = d.name()
        inside = f"({d.choice(simple).format(a=v, b=d.choice((v, b)))})"
        text = d.choice(
            (
                f"xp.jit(lambda {v}: {inside})({text})",
                f"xp.fori_loop(0, 2, lambda i, {v}: {inside}, {text})",
                f"xp.cond({condition(x, a)}, lambda {v}: {inside}, lambda {v}: {v}, {text})",
                f"xp.scan(lambda {v}, _: ({inside}, {v}), {text}, None, length=2)[0]",
                f"xp.checkpoint(lambda {v}: {inside})({text})",
            )
        )
    return str(text)


def condition(x: Value, name: str) -> str:
    """A condition on a variable with the dtype of x."""
    return {
        "float": f"xp.sum({name}) > 0.1",
        "int": f"xp.sum({name}) % 2 == 0",
        "bool": f"xp.any({name})",
        "complex": f"xp.sum(xp.real({name})) > 0.1",
    }[kind_of(x)]


def state(d: Draft, dtypes: tuple[str, ...] = DTYPES, axes: bool = False) -> Value:
    """An operand of a transform or a loop."""
    return d.pick(
        dtypes, lambda x: 0 < x.size < 20 and (not axes or (x.ndim > 0 and x.shape[0] < 6)), fine=True
    )


def same(d: Draft, x: Value) -> str:
    """Another value of this shape and dtype."""
    return str(d.pick((x.dtype,), shape=x.shape, fine=True))


def of_one(text: str, dtypes: tuple[str, ...] = DTYPES, axes: bool = False) -> Callable[[Draft], str]:
    """A function of one operand; see `texts_of` for the names in the text."""

    def draw(d: Draft) -> str:
        x = state(d, dtypes, axes)
        v, m = d.name(), d.name()
        ndim = x.ndim - 1 if "vmap" in text else x.ndim
        closed = [same(d, x)] if d.chance(0.4) and "vmap" not in text else []
        made = {
            "f": lambda: body(d, x, [v, *closed], ndim=ndim),
            "g": lambda: body(d, x, [v], ndim=ndim),
            "h": lambda: body(d, x, [v], m, ndim=ndim),
            "k": lambda: body(d, x, [v], m, ndim=ndim),
            "n": lambda: d.python_number(NUMBERS_FOR[kind_of(x)]),
            "q": lambda: d.python_number("f"),
            "count": lambda: d.python_number("i"),
            "flag": lambda: d.python_number("b"),
            "y": lambda: same(d, x),
            "i": lambda: f"{d.pick(INTS, shape=(4,))} % {x.shape[0] if x.ndim else 1}",
            "test": lambda: condition(x, str(x)),
            "dtype": lambda: x.dtype,
        }
        used = {name: make() for name, make in made.items() if f"{{{name}}}" in text}
        return text.format(x=x, v=v, m=m, **used)

    return draw


WHILE = "xp.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, (lambda {v}: {f})(c[1]))"
LOOPS = {
    "jit of any": "xp.jit(lambda {v}: {f})({x})",
    "jit with a number": "xp.jit(lambda {v}, {m}: {h})({x}, {n})",
    "jit of a number alone": "{x} * xp.jit(lambda {m}: {m} + {m})({n})",
    "jit that returns a number": "(lambda r: r[0] * r[1])(xp.jit(lambda {v}, {m}: ({h}, {m}))({x}, {n}))",
    "cond of any": "xp.cond({test}, lambda {v}: {f}, lambda {v}: {g}, {x})",
    "cond of a bool": "xp.cond({flag}, lambda {v}: {f}, lambda {v}: {v}, {x})",
    "cond with a number": "xp.cond({test}, lambda {v}, {m}: {h}, lambda {v}, {m}: {k}, {x}, {n})",
    "cond that closes over a number": "(lambda {m}: xp.cond({test}, lambda {v}: {h}, lambda {v}: {v}, {x}))({n})",
    "scan of any": "xp.scan(lambda {v}, _: ({f}, {v}), {x}, None, length=3)",
    "scan with a number": "(lambda {m}: xp.scan(lambda {v}, _: ({h}, {v}), {x}, None, length=2)[0])({n})",
    "scan that carries a number": (
        "xp.scan(lambda c, _: ((lambda {v}, {m}: ({h}, {m}))(*c), None), ({x}, {n}), None, length=2)[0][0]"
    ),
    "fori_loop of any": "xp.fori_loop(0, 3, lambda i, {v}: {f}, {x})",
    "fori_loop to a number": "xp.fori_loop(0, {count} % 4, lambda i, {v}: {f}, {x})",
    "fori_loop with a number": "(lambda {m}: xp.fori_loop(0, 2, lambda i, {v}: {h}, {x}))({n})",
    "fori_loop of a number": "{x} * xp.fori_loop(0, 3, lambda i, {m}: {m} + {m}, {n})",
    "while_loop of any": f"{WHILE}, (xp.asarray(0), {{x}}))[1]",
    "while_loop from a number": f"{WHILE}, ({{count}}, {{x}}))[1]",
    "checkpoint of any": "xp.checkpoint(lambda {v}: {f})({x})",
    "checkpoint with a number": "xp.checkpoint(lambda {v}, {m}: {h})({x}, {n})",
}
ALONG_AXES = {
    "vmap of any": "xp.vmap(lambda {v}: {f})({x})",
    "vmap with a number": "xp.vmap(lambda {v}, {m}: {h}, in_axes=(0, None))({x}, {n})",
    "vmap of jit with a number": "xp.vmap(xp.jit(lambda {v}, {m}: {h}), in_axes=(0, None))({x}, {n})",
    "vmap of cond": (
        "xp.vmap(lambda {v}: xp.cond(xp.sum(xp.real({v})) > 0, lambda {v}: {f}, lambda {v}: {v}, {v}))({x})"
    ),
    "scan along": "xp.scan(lambda c, {v}: ({v}, c), {x}[0], {x})",
    "rows of a loop": "xp.fori_loop(0, {count} % 4, lambda i, {v}: {v}.at[i % {v}.shape[0]].set({v}[0]), {x})",
    "rows by a carry": "xp.scan(lambda c, _: ((c + 1) % {x}.shape[0], {x}[c]), xp.asarray(0), None, length=3)[1]",
}
DERIVATIVES = {
    "grad of any": "xp.grad(lambda {v}: xp.sum(xp.real({f})))({x})",
    "grad with a number": "xp.grad(lambda {v}, {m}: xp.sum(xp.real({h})))({x}, {n})",
    "jit of grad with a number": "xp.jit(xp.grad(lambda {v}, {m}: xp.sum(xp.real({h}))))({x}, {n})",
    "grad of checkpoint of any": "xp.grad(lambda {v}: xp.sum(xp.real(xp.checkpoint(lambda {v}: {f})({v}))))({x})",
    "grad in a number": "xp.grad(lambda {m}: xp.sum(xp.real((lambda {v}: {h})({x}))))({q})",
    "jvp of any": "xp.jvp(lambda {v}: {f}, ({x},), ({y},))",
    "vjp of any": "xp.vjp(lambda {v}: {f}, {x})[1]({y})[0]",
    "linearize of any": "xp.linearize(lambda {v}: {f}, {x})[1]({y})",
    "grad of grad of any": (
        "xp.grad(lambda {v}: xp.sum(xp.real(xp.grad(lambda {v}: xp.sum(xp.real({f})))({v}) * {y})))({x})"
    ),
    "custom_jvp of any": "with_jvp(xp, lambda {v}: xp.sin({v}), lambda {v}: 2.0 * xp.cos({v}))({x})",
    "grad of custom_jvp of any": (
        "xp.grad(lambda {v}: xp.sum(xp.real(with_jvp(xp, lambda {v}: {v} ** 2, lambda {v}: xp.sin({v}))({f}))))({x})"
    ),
    "grad of custom_vjp of any": (
        "xp.grad(lambda {v}: xp.sum(xp.real(with_vjp(xp, lambda {v}: {v} * 2.0, lambda {v}: 0.5 * {v})({f}))))({x})"
    ),
}
GATHERED = {
    "grad of a gather": "xp.grad(lambda {v}: xp.sum(xp.real({v}[{i}] * {v}[{i}])))({x})",
    "grad of a scatter": "xp.grad(lambda {v}: xp.sum(xp.real({y}.at[{i}].add({v}[{i}]) * {v})))({x})",
    "grad of take": "xp.grad(lambda {v}: xp.sum(xp.real(xp.take({v}, {i}, axis=0) * 0.5)))({x})",
    "vmap of grad of a gather": "xp.vmap(xp.grad(lambda {v}: xp.sum(xp.real({v} * {v}))))({x}[{i}])",
    "grad of sums": "xp.grad(lambda {v}: xp.sum(xp.real(xp.cumsum({v}, axis=0) * {y})))({x})",
}
EXTREMES = {
    "grad of max": "xp.grad(lambda {v}: xp.sum(xp.max({v}, axis=0)))({x})",
    "grad of sort": "xp.grad(lambda {v}: xp.sum(xp.sort({v}, axis=0) * {y}))({x})",
    "grad of mean and var": "xp.grad(lambda {v}: xp.mean({v}) + xp.var({v}))({x})",
    "grad of softmax": "xp.grad(lambda {v}: xp.sum(xp.softmax({v}, axis=-1) * {y}))({x})",
}


def _rows() -> Iterator[Row]:
    for name, text in LOOPS.items():
        smooth = "fori_loop to" not in name and "while" not in name
        yield Row(name, of_one(text), wide=True, smooth=smooth)
    for name, text in ALONG_AXES.items():
        yield Row(name, of_one(text, axes=True), wide=True, smooth="rows of" not in name)
    for name, text in DERIVATIVES.items():
        yield Row(name, of_one(text, FIELDS), wide=True, smooth="custom" not in name)
    for name, text in GATHERED.items():
        yield Row(name, of_one(text, FIELDS, axes=True), wide=True, smooth=False)
    for name, text in EXTREMES.items():
        yield Row(name, of_one(text, FLOATS, axes=True), wide=True, smooth=False)


ROWS = tuple(_rows())
