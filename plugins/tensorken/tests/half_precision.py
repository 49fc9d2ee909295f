"""Rows of sums and counts of narrow floats: functions whose results are far off if a sum is kept in the dtype."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tensorken as tk

Row = tuple[str, Callable[..., Any], tuple[Any, ...], float]

N = 5000
"""How many ones are added: more than the 2048 from which float16 cannot count, and the 256 of bfloat16."""

TIES = 70_000
"""How many elements are equal: more than the largest float16."""


def stored(shape: tuple[int, ...], dtype: str) -> Any:
    """Ones in memory, not a repeated one."""
    return tk.asarray(np.ones(shape, "float32")).astype(dtype)


def rows(dtype: str) -> Iterator[Row]:
    """Functions, their operands and the numbers that they return."""
    x, m, many = (stored(shape, dtype) for shape in ((N,), (N, 3), (TIES,)))
    table, zeros = stored((4, 3), dtype), tk.zeros(N, "int32")
    sides = tk.where(tk.arange(N) % 2 == 0, 1, -1).astype(dtype)

    def at_zero(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda w: tk.grad(lambda w: f(w).sum())(w).ravel()[0]

    def shared(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda w: tk.grad(f)(w).max() * 30_000

    yield from [
        ("sum", lambda x: x.sum(), (x,), N),
        ("sum of rows", lambda m: m.sum(0)[1], (m,), N),
        ("sum of columns", lambda m: m.T.sum(1)[1], (m,), N),
        ("mean", lambda x: x.mean(), (many,), 1),
        ("average", lambda x: tk.average(x, weights=x), (many,), 1),
        ("nanmean", lambda x: tk.nanmean(x), (many,), 1),
        ("var", lambda x: tk.var(x), (sides,), 1),
        ("cov", lambda x: tk.cov(x), (sides,), 1),
        ("norm", lambda x: tk.linalg.norm(x), (x,), math.sqrt(N)),
        ("logsumexp", lambda x: tk.logsumexp(x), (x * 0,), math.log(N)),
        ("cumsum", lambda x: tk.cumsum(x)[-1], (x,), N),
        ("cumsum of rows", lambda m: tk.cumsum(m, axis=0)[-1, 0], (m,), N),
        ("cumprod", lambda x: tk.cumprod(x)[-1], (1 + x[:64] / 128,), (1 + 1 / 128) ** 64),
        ("matmul", lambda m: (m.T @ m)[0, 0], (m,), N),
        ("einsum", lambda m: tk.einsum("ij,ij->j", m, m)[0], (m,), N),
        ("convolve", lambda x: tk.convolve(x, x, "valid")[0], (x,), N),
        ("trapezoid", lambda x: tk.trapezoid(x), (x,), N - 1),
        ("scatter_add", lambda x, i: x.scatter_add(i, 0, 4)[0], (x, zeros), N),
        ("scatter_add of rows", lambda m, i: m.scatter_add(i, 0, 4)[0, 1], (m, zeros), N),
        ("at.add", lambda x, i: x[:4].at[i].add(x)[0], (x, zeros), N + 1),
        ("at.subtract", lambda x, i: -x[:4].at[i].subtract(x)[0], (x, zeros), N - 1),
        ("at.add of elements", lambda x, i: tk.zeros((4, 3), dtype).at[i, 1].add(x)[0, 1], (x, zeros), N),
        ("bincount", lambda x, i: tk.bincount(i, x, length=4)[0], (x, zeros), N),
        ("histogram", lambda x, i: tk.histogram(i * 1.0, 3, (0, 1), weights=x)[0][0], (x, zeros), N),
        ("take'", at_zero(lambda w: tk.take(w, zeros, axis=0)), (table,), N),
        ("x[i]'", at_zero(lambda w: w[zeros]), (table,), N),
        ("x[i, i]'", at_zero(lambda w: w[zeros, zeros]), (table,), N),
        ("take_along_axis'", at_zero(lambda w: tk.take_along_axis(w, zeros[:, None], 0)), (table,), N),
        ("broadcast_to'", at_zero(lambda w: tk.broadcast_to(w, (N, 4, 3))), (table,), N),
        ("repeat'", at_zero(lambda w: tk.repeat(w, N, axis=0)), (table,), N),
        ("cumsum'", at_zero(tk.cumsum), (x,), N),
        ("interp'", at_zero(lambda w: tk.interp(x * 0, tk.arange(4).astype(dtype), w[:, 0])), (table,), N),
        ("vmap'", at_zero(lambda w: tk.vmap(lambda i: w[i])(zeros)), (table,), N),
        ("scan'", at_zero(lambda w: tk.scan(lambda c, i: (c, w[i]), 0.0, zeros)[1]), (table,), N),
        ("map'", at_zero(lambda w: tk.map(lambda y: w * y, x)), (table,), N),
        ("max'", shared(lambda w: w.max()), (many,), 30_000 / TIES),
        ("min'", shared(lambda w: w.min()), (many,), 30_000 / TIES),
        ("nanmax'", shared(lambda w: tk.nanmax(w)), (many,), 30_000 / TIES),
        ("norm(inf)'", shared(lambda w: tk.linalg.norm(w, tk.inf)), (many,), 30_000 / TIES),
        ("mean'", shared(lambda w: w.mean()), (many,), 30_000 / TIES),
        ("max, pushed", lambda w: tk.jvp(lambda w: w.max(), (w,), (w,))[1], (many,), 1),
        (
            "at.max'",
            shared(lambda w: (w[:1] * 0).at[tk.zeros(TIES, "int32")].max(w)[0]),
            (many,),
            30_000 / TIES,
        ),
        ("psum", lambda x: tk.vmap(lambda y: tk.psum(y, "i"), axis_name="i")(x)[0], (x,), N),
        ("pmean", lambda x: tk.vmap(lambda y: tk.pmean(y, "i"), axis_name="i")(x)[0], (many,), 1),
    ]


def wrong(row: Row, dtype: str) -> list[str]:
    """The modes in which a row returns another number, or another dtype."""
    _, function, operands, expected = row
    found = []
    bound = 4 * max(tk.finfo(dtype).eps * abs(expected), tk.finfo(dtype).smallest_normal * 30_000)
    for mode, f in (("eager", function), ("jit", tk.jit(function))):
        y = f(*operands)
        if y.dtype != dtype or abs(y.item() - expected) > bound:
            found.append(f"{mode}: {y.dtype} {y.item()}, not {expected}")
    return found
