"""Steps with functions in them: loops, choices, transforms, rules, trees, closures, in one another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from core.tests.random_programs.draft import Draft, Value
from core.tests.random_programs.steps.row import Row

WIDE = ("float32", "float64")
SIMPLE = (
    "xp.tanh({a} * {b})",
    "xp.sin({a}) * 0.5 + {b}",
    "xp.where({a} > {b}, {a}, {b} * 0.5)",
    "xp.maximum({a}, {b}) - 0.25",
    "0.5 * {a} - 0.25 * {b}",
    "{a} * xp.sigmoid({b})",
    "xp.sqrt(1.0 + {a} ** 2) - {b}",
    "{a} / (1.5 + xp.cos({b}))",
    "xp.clip({a}, -1.0, 1.0) + {b}",
    "xp.abs({a}) - xp.exp(-{b} ** 2)",
)
ALONG = (
    "xp.sum({a}, axis=-1, keepdims=True) * 0.1 + {b}",
    "{a} - xp.max({b}, axis=-1, keepdims=True)",
    "xp.cumsum({a}, axis=-1) * 0.3 + {b}",
    "xp.sort({a}, axis=-1) - {b}",
    "xp.flip({a}, -1) * {b}",
    "xp.softmax({a}, axis=-1) + {b} * 0.1",
    "{a} + xp.roll({b}, 1, -1)",
    "{a}.at[..., 0].add(1.5) * {b}",
)

WHOLE = (
    "{a} * {b}",
    "{a} + {b}",
    "{a} - 2.0 * {b}",
    "xp.where({a} > {b}, {a}, -{b})",
    "xp.maximum({a}, {b}) - 1.0",
    "xp.clip({a}, -2.0, 2.0) + {b}",
    "xp.abs({a}) - {b}",
)
"""The same for whole numbers."""
ALONG_WHOLE = (
    "xp.sum({a}, axis=-1, keepdims=True) + {b}",
    "xp.sum({a} * {b}, axis=-1, keepdims=True) - {b}",
    "xp.cumsum({a}, axis=-1) + {b}",
    "xp.sort({a}, axis=-1) - {b}",
    "xp.flip({a}, -1) * {b}",
    "{a} + xp.roll({b}, 1, -1)",
    "{a}.at[..., 0].add(2.0) * {b}",
)


def body(d: Draft, names: Sequence[str], ndim: int, depth: int = 2) -> str:
    """An expression of variables of one shape and of this many axes; it has that shape, and any of the others in it."""
    a, b = d.choice(names), d.choice(names)
    if depth and d.chance(0.4):
        return nested(d, names, ndim, depth - 1)
    simple, along = (WHOLE, ALONG_WHOLE) if d.whole else (SIMPLE, ALONG)
    text = d.choice(along if ndim and d.chance(0.35) else simple).format(a=a, b=b)
    return f"({text})"


def nested(d: Draft, names: Sequence[str], ndim: int, depth: int) -> str:
    """The same, by a function within it, which may use what is around it."""
    a, v = d.choice(names), d.name()
    inside = body(d, [v, *([d.choice(names)] if d.chance(0.5) else [])], ndim, depth)
    alone = body(d, [v], ndim, depth)
    half, curve, slope = (
        (f"-{v}", f"{v} * 2.0 - 1.0", f"3.0 * {v}")
        if d.whole
        else (f"{v} * 0.5", f"xp.sin({v})", f"2.0 * xp.cos({v})")
    )
    options = [
        f"xp.jit(lambda {v}: {inside})({a})",
        f"xp.checkpoint(lambda {v}: {inside})({a})",
        f"xp.cond(xp.sum({a}) > 0, lambda {v}: {inside}, lambda {v}: {half}, {a})",
        f"xp.fori_loop(0, 2, lambda i, {v}: {inside}, {a})",
        f"xp.scan(lambda {v}, _: ({inside}, None), {a}, None, length=2)[0]",
        f"with_jvp(xp, lambda {v}: {curve}, lambda {v}: {slope})({a})",
        f"with_vjp(xp, lambda {v}: {curve}, lambda {v}: 2.0 * {v})({a})",
        f"xp.jvp(lambda {v}: {alone}, ({a},), ({d.choice(names)},))[1]",
        f"xp.grad(lambda {v}: xp.sum({alone}))({a})",
    ]
    if ndim:
        within = body(d, [v], ndim - 1, depth)
        options += [f"xp.vmap(lambda {v}: {within})({a})"] * 2
        options += [f"xp.vmap(xp.jit(lambda {v}: {within}))({a})"]
    return str(d.choice(options))


def state(d: Draft, some: bool = True, fits: Callable[[Value], bool] | None = None) -> Value:
    """An operand of a loop."""
    return d.pick(
        (*WIDE, "float16") if d.chance(0.15) else WIDE,
        lambda x: (not some or x.size > 0) and x.size < 20 and (fits is None or fits(x)),
        fine=True,
    )


def with_axis(d: Draft) -> Value:
    """An operand with an axis to go along."""
    return state(d, fits=lambda x: x.ndim > 0 and x.shape[0] < 6)


def same(d: Draft, x: Value) -> str:
    """Another value of this shape, for a closure."""
    return str(d.pick((x.dtype,), shape=x.shape, fine=True))


def of_one(text: str) -> Callable[[Draft], str]:
    """A function of one operand, with an earlier value as a closure; {f} is its body, {v} its argument."""

    def draw(d: Draft) -> str:
        x, v = state(d), d.name()
        closed = [same(d, x)] if d.chance(0.6) else []
        return text.format(f=body(d, [v, *closed], x.ndim), g=body(d, [v], x.ndim), v=v, x=x, y=same(d, x))

    return draw


def _scan(d: Draft) -> str:
    xs = with_axis(d)
    row = "xp.sum({0}, axis=0)" if d.chance(0.5) else "{0}[0]"
    c, x = d.name(), d.name()
    carried, out = body(d, [c, x], xs.ndim - 1), body(d, [c, x], xs.ndim - 1)
    return (
        f"xp.scan(lambda {c}, {x}: ({carried}, {out}), {row.format(xs)}, {xs}"
        f"{', reverse=True' if d.chance(0.3) else ''})"
    )


def _scan_tree(d: Draft) -> str:
    """Two carries, one of which an integer, a tree of inputs, and a closure."""
    xs = with_axis(d)
    c, x, k = d.name(), d.name(), same(d, xs)
    carried = body(d, [f"{c}['c']", f"{x}[0]", f"{k}[0]"], xs.ndim - 1)
    out = body(d, [f"{x}[1]", f"{c}['c']"], xs.ndim - 1)
    made = (
        f"xp.scan(lambda {c}, {x}: ({{'n': {c}['n'] + 1, 'c': {carried}}}, {out}),"
        f" {{'n': xp.asarray(0), 'c': {xs}[-1]}}, ({xs}, {k}))"
    )
    return f"(lambda r: (r[0]['n'], r[0]['c'], r[1]))({made})"


def _scan_passes(d: Draft) -> str:
    """A carry that only passes through, and one that is replaced."""
    xs = with_axis(d)
    c, x = d.name(), d.name()
    out = body(d, [f"{c}[0]", f"{c}[1]", x], xs.ndim - 1)
    made = f"xp.scan(lambda {c}, {x}: (({c}[0], {x}), {out}), ({same(d, xs)}[0], {xs}[0]), {xs})"
    return f"(lambda r: (*r[0], r[1]))({made})"


def _fori(d: Draft) -> str:
    x, v = state(d), d.name()
    closed = same(d, x)
    first, last = d.choice((0, 1)), d.choice((0, 1, 3))
    inside = f"{body(d, [v, closed], x.ndim)} / xp.asarray(1 + i).astype('{x.dtype}')"
    return f"xp.fori_loop({first}, {last}, lambda i, {v}: {inside}, {x})"


def _fori_traced(d: Draft) -> str:
    x, v = state(d), d.name()
    n = d.pick(("int32",), shape=())
    return f"xp.fori_loop(0, {n} % 4, lambda i, {v}: {body(d, [v, same(d, x)], x.ndim)}, {x})"


def _while(d: Draft) -> str:
    x, c = state(d), d.name()
    inside = body(d, [f"{c}[1]", same(d, x)], x.ndim)
    goes = f"{c}[0] < {d.choice((0, 2, 3))}"
    return f"xp.while_loop(lambda {c}: {goes}, lambda {c}: ({c}[0] + 1, {inside}), (xp.asarray(0), {x}))"


def _while_values(d: Draft) -> str:
    """The number of steps depends on values."""
    x, c = state(d), d.name()
    goes = f"({c}[0] < 5) & (xp.sum(xp.abs({c}[1])) < {d.choice((4.5, 30.0))})"
    return f"xp.while_loop(lambda {c}: {goes}, lambda {c}: ({c}[0] + 1, 1.5 * {c}[1] + 0.25), (xp.asarray(0), {x}))"


def _cond(d: Draft) -> str:
    x, v = state(d), d.name()
    other = same(d, x)
    pred = d.choice((f"xp.sum({x}) > 0.1", f"xp.any({other} > {x})"))
    return (
        f"xp.cond({pred}, lambda {v}: {body(d, [v, other], x.ndim)}, lambda {v}: {body(d, [v], x.ndim)}, {x})"
    )


def _cond_closed(d: Draft) -> str:
    x = state(d)
    other = same(d, x)
    pred = d.pick(("bool",), shape=()) if not d.smooth else f"xp.max({x}) > 0.4"
    return f"xp.cond({pred}, lambda: {body(d, [str(x), other], x.ndim)}, lambda: {body(d, [other], x.ndim)})"


def _jit_tree(d: Draft) -> str:
    x, v = state(d), d.name()
    inside = body(d, [f"{v}['a']", f"{v}['b'][0]"], x.ndim)
    made = f"xp.jit(lambda {v}: {{'p': {inside}, 'q': ({v}['a'] * 2.0, {v}['b'])}})({{'a': {x}, 'b': [{same(d, x)}]}})"
    return f"(lambda r: (r['p'], r['q'][0], r['q'][1][0]))({made})"


def _vmap_axes(d: Draft) -> str:
    x = state(d, fits=lambda x: x.ndim > 1)
    a, v = d.axis(x), d.name()
    out = d.choice((0, -1, x.ndim - 1))
    return f"xp.vmap(lambda {v}: {body(d, [v], x.ndim - 1)}, in_axes={a}, out_axes={out})({x})"


def _vmap_two(d: Draft) -> str:
    """One argument batched, one not, and a closure."""
    x = with_axis(d)
    v, w = d.name(), d.name()
    k = same(d, x)
    inside = body(d, [v, w, f"{k}[0]"], x.ndim - 1)
    return f"xp.vmap(lambda {v}, {w}: {inside}, in_axes=(0, None))({x}, {same(d, x)}[-1])"


def _vmap_loop(d: Draft) -> str:
    x, v, w = with_axis(d), d.name(), d.name()
    inside = body(d, [w, v], x.ndim - 1)
    loops = [
        f"xp.fori_loop(0, 3, lambda i, {w}: {inside}, {v})",
        f"xp.scan(lambda {w}, _: ({inside}, None), {v}, None, length=2)[0]",
        f"xp.cond(xp.sum({v}) > 0.2, lambda {w}: {inside}, lambda {w}: -{w}, {v})",
    ]
    if not d.smooth:
        grown = f"2.0 * xp.abs({w}) + 1.0" if d.whole else f"1.5 * xp.abs({w}) + 0.5"
        loops.append(f"xp.while_loop(lambda {w}: xp.sum(xp.abs({w})) < 9.0, lambda {w}: {grown}, {v})")
    made = f"xp.vmap(lambda {v}: {d.choice(loops)})({x})"
    return f"xp.jit(lambda: {made})()" if d.chance(0.3) else made


def _vmap_of_ops(d: Draft) -> str:
    """Ops with axes, indices and products under vmap."""
    x = state(d, fits=lambda x: x.ndim > 1)
    v = d.name()
    inside = d.choice(
        (
            f"{v} @ {v}.T" if x.ndim == 3 else f"xp.outer({v}, {v})",
            f"xp.argsort({v}, axis=-1)",
            f"{v}[xp.argmax(xp.ravel({v})) % {x.shape[1]}]",
            f"xp.cumsum({v}, axis=0)",
            f"{v}.at[::2].set({same(d, x)}[0][::2])",
            f"xp.einsum('i...,i...->...', {v}, {v})",
            f"xp.median({v})",
            f"xp.topk({v}, 1)[0]",
            f"xp.concatenate([{v}, {v}[::-1]])",
            f"xp.roll({v}, 1, 0) + xp.max({v})",
            f"xp.take({v}, xp.asarray([0, -1]), axis=0)",
        )
    )
    if "arg" in inside and d.smooth:
        inside = f"xp.sort({v}, axis=0)"
    return f"xp.vmap(lambda {v}: {inside})({x})"


def _jacobian(name: str) -> Callable[[Draft], str]:
    def draw(d: Draft) -> str:
        x = state(d, fits=lambda x: x.size < 6 and x.ndim < 2)
        v = d.name()
        f = body(d, [v, same(d, x)], x.ndim, 1)
        return f"xp.{name}(lambda {v}: {f'xp.sum({f})' if name == 'hessian' else f})({x})"

    return draw


def _linearize(d: Draft) -> str:
    x, v = state(d), d.name()
    return f"xp.linearize(lambda {v}: {body(d, [v], x.ndim)}, {x})[1]({same(d, x)})"


def _nested_vmap(d: Draft) -> str:
    x = state(d, fits=lambda x: x.ndim == 1)
    v, w = d.name(), d.name()
    inside = body(d, [v, w], 0)
    return f"xp.vmap(xp.vmap(lambda {v}, {w}: {inside}, (None, 0)), (0, None))({x}, {same(d, x)})"


def _per_example(d: Draft) -> str:
    """Gradients of each example, by vmap of grad, with a shared closure."""
    x, v = with_axis(d), d.name()
    k = same(d, x)
    inside = f"xp.vmap(xp.grad(lambda {v}: xp.sum({body(d, [v, f'{k}[0]'], x.ndim - 1)})))({x})"
    return f"xp.jit(lambda: {inside})()" if d.chance(0.3) else inside


def _rows() -> Iterator[Row]:
    for name, text in {
        "jit": "xp.jit(lambda {v}: {f})({x})",
        "jit of a closure": "xp.jit(lambda: (lambda {v}: {f})({x}))()",
        "jit within jit": "xp.jit(lambda {v}: xp.jit(lambda {v}: {f})({v}) + {y})({x})",
        "jit of grad": "xp.jit(xp.grad(lambda {v}: xp.sum({f})))({x})",
        "grad of jit": "xp.grad(xp.jit(lambda {v}: xp.sum({f})))({x})",
        "checkpoint": "xp.checkpoint(lambda {v}: {f})({x})",
        "grad of checkpoint": "xp.grad(lambda {v}: xp.sum(xp.checkpoint(lambda {v}: {f})({v})))({x})",
        "custom_jvp": "with_jvp(xp, lambda {v}: xp.sin({v}), lambda {v}: 2.0 * xp.cos({v}))({x})",
        "custom_vjp": "with_vjp(xp, lambda {v}: xp.tanh({v}), lambda {v}: 0.5 * {v})({x})",
        "grad of custom_jvp": (
            "xp.grad(lambda {v}: xp.sum(with_jvp(xp, lambda {v}: {v} ** 2, lambda {v}: xp.sin({v}))({g})))({x})"
        ),
        "grad of custom_vjp": (
            "xp.grad(lambda {v}: xp.sum(with_vjp(xp, lambda {v}: {v} ** 2, lambda {v}: xp.sin({v}))({g})))({x})"
        ),
        "grad": "xp.grad(lambda {v}: xp.sum({f}))({x})",
        "grad of grad": "xp.grad(lambda {v}: xp.sum(xp.grad(lambda {v}: xp.sum({f}))({v}) * {y}))({x})",
        "value_and_grad": "xp.value_and_grad(lambda {v}: xp.sum({f}))({x})",
        "jvp": "xp.jvp(lambda {v}: {f}, ({x},), ({y},))",
        "vjp": "(lambda r: (r[0], *r[1]({y})))(xp.vjp(lambda {v}: {f}, {x}))",
        "stop_gradient": "xp.stop_gradient({x}) * {y} + {x}",
    }.items():
        yield Row(name, of_one(text), whole="custom" not in name)
    for name, text in {  # JAX refuses those of values that are differentiated
        "custom_jvp of a closure": (
            "with_jvp(xp, lambda {v}: xp.sin({v}) * {y}, lambda {v}: 2.0 * xp.cos({v}) + {y})({x})"
        ),
        "grad of a custom_vjp of a closure": (
            "xp.grad(lambda {v}: xp.sum("
            "with_vjp(xp, lambda {v}: xp.sin({v}) * {y}, lambda {v}: {v} * {y})({g})))({x})"
        ),
    }.items():
        yield Row(name, of_one(text), smooth=False)
    yield Row("scan", _scan, weight=2.0, whole=True)
    yield Row("scan of trees", _scan_tree, weight=2.0, whole=True)
    yield Row("scan that passes", _scan_passes, whole=True)
    yield Row("fori_loop", _fori)
    yield Row("fori_loop to a tensor", _fori_traced, smooth=False, whole=True)
    yield Row("while_loop", _while, smooth=False, whole=True)
    yield Row("while_loop of values", _while_values, smooth=False)
    yield Row("cond", _cond, whole=True)
    yield Row("cond of closures", _cond_closed, whole=True)
    yield Row("jit of trees", _jit_tree, whole=True)
    yield Row("vmap of axes", _vmap_axes, whole=True)
    yield Row("vmap of two", _vmap_two, whole=True)
    yield Row("vmap of loops", _vmap_loop, weight=2.0, whole=True)
    yield Row("vmap of ops", _vmap_of_ops, weight=2.0, whole=True)
    yield Row("vmap of vmap", _nested_vmap, whole=True)
    yield Row("vmap of grad", _per_example, whole=True)
    for name in ("jacfwd", "jacrev", "hessian"):
        yield Row(name, _jacobian(name), whole=True)
    yield Row("linearize", _linearize, whole=True)


ROWS = tuple(_rows())
