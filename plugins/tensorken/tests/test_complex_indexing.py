"""Indexing and updating of complex tensors is that of their parts, with every kind of index, under every transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of

pytestmark = [pytest.mark.usefixtures("on_numpy"), pytest.mark.slow]

SHAPE = (4, 3)
INDICES = (2, 0, -1)
MASK = np.array([[True, False, True], [False, False, False], [True, True, True], [False, True, False]])

Function = Callable[[Any, Any, Any], Any]
"""Of a matrix, an index of its rows that a transform may know, and a number."""


def drawn(shape: Any, seed: int) -> tk.Tensor:
    rng = np.random.default_rng(seed)
    return tk.tensor(rng.normal(size=shape) + 1j * rng.normal(size=shape))


def few(i: Any, *others: int) -> tk.Tensor:
    """A vector of an index that may be traced and of others."""
    return tk.stack([tk.asarray(i).astype("int32"), *[tk.tensor(k) for k in others]])


def wrapped(i: Any) -> Any:
    """The index counted from the front, which functions need that take no negative ones."""
    return i % SHAPE[0]


READ: dict[str, Function] = {
    "an int": lambda x, i, v: x[1],
    "ints": lambda x, i, v: x[-1, 2],
    "a slice": lambda x, i, v: x[1:3],
    "a step": lambda x, i, v: x[::-2, 1:],
    "a new axis": lambda x, i, v: x[None, :, None, 2],
    "an ellipsis": lambda x, i, v: x[..., 1],
    "a list": lambda x, i, v: x[[3, 0, 3]],
    "two lists": lambda x, i, v: x[[3, 0], [1, 2]],
    "a mask": lambda x, i, v: x[MASK],
    "a mask of rows": lambda x, i, v: x[MASK[:, 0], 1:],
    "an index": lambda x, i, v: x[i],
    "an index and an int": lambda x, i, v: x[i, 1],
    "an index of int64": lambda x, i, v: x[tk.asarray(i).astype("int64")],
    "an index of uint8": lambda x, i, v: x[tk.asarray(wrapped(i)).astype("uint8")],
    "an index behind an ellipsis": lambda x, i, v: x.mT[..., i],
    "an index, a new axis and a slice": lambda x, i, v: x[i, None, ::2],
    "a vector of indices": lambda x, i, v: x[few(i, 1, 1)],
    "two vectors of indices": lambda x, i, v: x[few(i, 1), few(2, 0)],
    "a matrix of indices": lambda x, i, v: x[few(i, 1).reshape((2, 1)), few(2, 0)],
    "an index and a list": lambda x, i, v: x[i, [2, 0]],
    "oindex": lambda x, i, v: x.oindex[few(i, 1), [2, 0, 2]],
    "vindex": lambda x, i, v: x.vindex[:, few(i % 3, 1)],
    "at.get": lambda x, i, v: x.at[i].get(),
    "take": lambda x, i, v: tk.take(x, few(i, 1, 2), axis=0),
    "take of one": lambda x, i, v: tk.take(x, i, axis=0),
    "take of all": lambda x, i, v: tk.take(x, few(i, 7)),
    "take_along_axis": lambda x, i, v: tk.take_along_axis(x, few(i, 1, 0).reshape((1, 3)), axis=0),
    "gather": lambda x, i, v: x.gather(few(wrapped(i), 1, 1), 0),
    "scatter_add": lambda x, i, v: x.scatter_add(few(wrapped(i), 1, 1, 0), 0, 5),
    "roll": lambda x, i, v: tk.roll(x, (1, -1), (0, 1)),
    "flip": lambda x, i, v: tk.flip(x, 0),
    "diagonal": lambda x, i, v: tk.diagonal(x, 1),
    "compress": lambda x, i, v: tk.compress([True, False, True, True], x, 0),
    "extract": lambda x, i, v: tk.extract(MASK, x),
    "choose": lambda x, i, v: tk.choose(wrapped(i), [x[0], x[1], x[2], x[3]]),
    "select": lambda x, i, v: tk.select([tk.arange(3) < i, tk.arange(3).eq(2)], [x[0], x[1]], 0.0),
    "where": lambda x, i, v: tk.where(tk.arange(3) < i, x, 2.0 * x),
    "repeat": lambda x, i, v: tk.repeat(x, [1, 0, 2, 1], axis=0),
    "delete": lambda x, i, v: tk.delete(x, 1, 0),
    "pad": lambda x, i, v: tk.pad(x, ((1, 0), (2, 1)), mode="wrap"),
    "as_strided": lambda x, i, v: tk.as_strided(x, (3, 2), (4, 1)),
}

WRITTEN: dict[str, Function] = {
    "set of an int": lambda x, i, v: x.at[1].set(v),
    "set of a slice": lambda x, i, v: x.at[::2, 1:].set(v),
    "set of a list": lambda x, i, v: x.at[[3, 0, 3]].set(v),
    "set of a mask": lambda x, i, v: x.at[MASK].set(v),
    "set of an index": lambda x, i, v: x.at[i].set(v),
    "set of an index and an int": lambda x, i, v: x.at[i, 1].set(v),
    "set of a row": lambda x, i, v: x.at[i].set(x[1] * 2.0),
    "set of indices": lambda x, i, v: x.at[few(i, 1)].set(x[:2]),
    "set of pairs of indices": lambda x, i, v: x.at[few(i, 1), few(2, 0)].set(v),
    "set at oindex": lambda x, i, v: x.at.oindex[few(i, 1), [2, 0]].set(v),
    "set of the last of several": lambda x, i, v: x.at[few(i, 1, 1)].set(x[:3]),
    "add at a mask": lambda x, i, v: x.at[MASK].add(v),
    "add at an index": lambda x, i, v: x.at[i].add(v),
    "add at indices": lambda x, i, v: x.at[few(i, 1, 1)].add(x[:3]),
    "add at pairs of indices": lambda x, i, v: x.at[few(i, 1), [2, 0]].add(v),
    "subtract at an index": lambda x, i, v: x.at[i].subtract(v),
    "subtract at indices": lambda x, i, v: x.at[few(i, 1, 1)].subtract(v),
    "put_along_axis": lambda x, i, v: tk.put_along_axis(x, few(i, 1, 0).reshape((1, 3)), v, 0),
    "put": lambda x, i, v: tk.put(x, few(i, 7), v),
    "place": lambda x, i, v: tk.place(x, MASK, v),
    "fill_diagonal": lambda x, i, v: tk.fill_diagonal(x, v),
    "insert": lambda x, i, v: tk.insert(x, 1, v, 0),
    "append": lambda x, i, v: tk.append(x, x[:1], 0),
}

LINEAR = READ | WRITTEN


def _written_in_turn(x: Any, places: list[Any], step: Callable[[Any], Any]) -> Any:
    y = x.copy()
    for place in places:
        y[place] = step(y[place])
    return y


PRODUCTS: dict[str, tuple[Function, Function]] = {
    "multiply at an int": (
        lambda x, i, v: x.at[1].multiply(v),
        lambda x, i, v: _written_in_turn(x, [1], lambda a: a * v),
    ),
    "multiply at an index": (
        lambda x, i, v: x.at[i].multiply(v),
        lambda x, i, v: _written_in_turn(x, [i], lambda a: a * v),
    ),
    "multiply at indices": (
        lambda x, i, v: x.at[few(i, 1, 1)].multiply(v),
        lambda x, i, v: _written_in_turn(x, [i, 1, 1], lambda a: a * v),
    ),
    "multiply at a mask": (
        lambda x, i, v: x.at[MASK].multiply(v),
        lambda x, i, v: _written_in_turn(x, [MASK], lambda a: a * v),
    ),
    "divide at an index": (
        lambda x, i, v: x.at[i].divide(v),
        lambda x, i, v: _written_in_turn(x, [i], lambda a: a / v),
    ),
    "divide at indices": (
        lambda x, i, v: x.at[few(i, 1, 1)].divide(v),
        lambda x, i, v: _written_in_turn(x, [i, 1, 1], lambda a: a / v),
    ),
}
"""Updates that are not linear, with numpy's result."""


def of_parts(f: Function, x: Any, i: Any, v: Any) -> Any:
    """A linear function of the real and of the imaginary parts."""
    return np.asarray(f(x.real, i, v.real)) + 1j * np.asarray(f(x.imag, i, v.imag))


def real_part(f: Function, i: Any) -> Callable[..., Any]:
    """The real part of a sum of the elements of the result with complex weights."""

    def total(x: Any, v: Any) -> Any:
        y = f(x, i, v)
        return (y * weights(y.shape)).sum().real

    return total


def weights(shape: Any) -> tk.Tensor:
    return drawn(shape, 9)


def check_in_all_modes(f: Function, expected: Callable[[Any, Any, Any], Any]) -> None:
    """Compare the results in each mode, and the derivatives with those of the parts."""
    x, v = drawn(SHAPE, 1), drawn((), 2)
    others = [x, tk.flip(x, 0), 1j * x]
    wanted = [expected(x, i, v) for i in INDICES]
    of_others = [expected(other, i, v) for other, i in zip(others, INDICES, strict=True)]
    indices = tk.tensor(INDICES)
    i = indices[0]

    def same(found: Any, result: Any) -> None:
        np.testing.assert_allclose(np.asarray(found), result, rtol=1e-12, atol=1e-12)

    for k, result in zip(INDICES, wanted, strict=True):
        same(f(x, k, v), result)
        same(f(x, tk.tensor(k), v), result)
    same(tk.jit(f)(x, i, v), wanted[0])
    same(tk.vmap(lambda i: f(x, i, v))(indices), wanted)
    same(tk.vmap(lambda x: f(x, 2, v))(tk.stack(others)), [expected(other, 2, v) for other in others])
    same(tk.vmap(lambda x, i: f(x, i, v))(tk.stack(others), indices), of_others)
    same(tk.jit(tk.vmap(lambda x, i: f(x, i, v)))(tk.stack(others), indices), of_others)
    zeros = tk.zeros(wanted[0].shape, "complex128")
    total = sum(np.asarray(expected(x, k, v)) for k in range(3))
    same(tk.fori_loop(0, 3, lambda k, c: c + f(x, k, v), zeros), total)
    same(tk.jit(lambda x: tk.fori_loop(0, 3, lambda k, c: c + f(x, k, v), zeros))(x), total)
    last, rows = tk.scan(lambda c, k: (c + f(x, k, v), f(x, k, v)), zeros, indices)
    same(last, sum(wanted))
    same(rows, wanted)
    same(tk.cond(i > 0, lambda i: f(x, i, v), lambda i: zeros, i), wanted[0])
    check_derivatives(f, x, i, v)


def check_derivatives(f: Function, x: Any, i: Any, v: Any) -> None:
    """Compare gradients, JVPs and VJPs with difference quotients along random directions."""
    total, steps = real_part(f, i), (drawn(SHAPE, 3), drawn((), 4))
    ahead, behind = [total(x + s * steps[0], v + s * steps[1]) for s in (1e-4, -1e-4)]
    slope = float((ahead - behind) / 2e-4)
    gradients = tk.grad(total, (0, 1))(x, v)
    jitted = tk.jit(lambda x, i, v: tk.grad(real_part(f, i), (0, 1))(x, v))(x, i, v)
    looped = tk.grad(
        lambda x, v: tk.fori_loop(0, 2, lambda k, c: c + real_part(f, i + 0 * k)(x, v), 0.0 * total(x, v)),
        (0, 1),
    )
    y, tangent = tk.jvp(lambda x, v: f(x, i, v), (x, v), steps)
    pulled = tk.vjp(lambda x, v: f(x, i, v), x, v)[1](weights(y.shape))
    # The gradient of a real value is df/dx - i df/dy, so the slope is the real part of its product with the step.
    for found in (gradients, jitted, [g / 2.0 for g in looped(x, v)], pulled):
        along = sum(float((g * step).sum().real) for g, step in zip(found, steps, strict=True))
        assert abs(along - slope) < 1e-7 * (1.0 + abs(slope)), (along, slope)
    along = float((tangent * weights(y.shape)).sum().real)
    assert abs(along - slope) < 1e-7 * (1.0 + abs(slope)), (along, slope)


@each_of("name", LINEAR)
def test_indexing_and_updating_of_complex_tensors_is_that_of_their_parts(name: str) -> None:
    f = LINEAR[name]
    check_in_all_modes(f, lambda x, i, v: of_parts(f, x, i, v))


@each_of("name", PRODUCTS)
def test_updates_by_products_and_quotients_are_numpys(name: str) -> None:
    f, of_numpy = PRODUCTS[name]
    check_in_all_modes(f, lambda x, i, v: of_numpy(np.asarray(x), int(i), np.asarray(v)))
