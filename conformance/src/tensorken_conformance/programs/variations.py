"""Variations: calls of compiled functions that differ in one thing, such as dtypes, axes or how operands lie."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case
from tensorken_conformance.operands import chains
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DType
from tensorken_core.tensor.tensor import Tensor

SIZE = 4
"""Of both axes of the matrices; a product of two of small numbers needs few digits."""

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a compiled function, and what it gives.

    Attributes:
        says: what tells it from the other calls.
        run: the compiled function.
        operands: the values of its tensors.
        expected: of its results.
        statics: its further arguments.
        chain: how the first operand is made.
        same: whether the first operand is all of them.
        donated: whether the first operand is given away; a view of it is kept.
    """

    says: str
    run: Function
    operands: tuple[Array, ...]
    expected: tuple[Any, ...]
    statics: tuple[Any, ...] = ()
    chain: chains.Chain = ()
    same: bool = False
    donated: bool = False


class Numbers:
    """Whole numbers for the operands of calls, others each time."""

    def __init__(self, subject: Subject, case: Case) -> None:
        self._rng = np.random.default_rng([subject.seed, zlib.crc32(case.id.encode())])

    def of(self, dtype: str, *shape: int, largest: int = 5) -> Array:
        """Numbers other than 0, of either sign."""
        size = shape or (SIZE, SIZE)
        whole = self._rng.integers(1, largest, size, endpoint=True) * self._rng.choice([-1, 1], size)
        return np.asarray(whole.astype(dtype))


def _call(says: str, run: Function, plain: Function, *operands: Array, **facts: Any) -> Call:
    """A call whose results are those of another function of the same operands in numpy."""
    found = plain(*operands, *facts.get("statics", ()))
    results = found if isinstance(found, tuple) else (found,)
    return Call(says, run, operands, tuple([np.asarray(y, operands[0].dtype) for y in results]), **facts)


def _each(
    functions: Sequence[Function], numbers: Numbers, dtype: str, *shapes: tuple[int, ...]
) -> list[Call]:
    """Functions that are the same in numpy, each compiled and called with operands of these shapes."""
    return [
        _call(f"function {i}", tk.jit(f), f, *[numbers.of(dtype, *shape) for shape in shapes])
        for i, f in enumerate(functions)
    ]


# ---- what varies -------------------------------------------------------------------------------------------


def _dtypes(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """The narrowest first: what is kept of it has too few digits for the others."""
    run = tk.jit(lambda x, y: (x * y - x, x + y))
    largest = {"float16": 40, "float32": 4_000, "float64": 2**25, "int32": 2**15, "int64": 2**31 - 1}
    return [
        _call(name, run, lambda x, y: (x * y - x, x + y), *[numbers.of(name, 3, largest=top) for _ in "xy"])
        for name, top in largest.items()
        if name in subject.capabilities.dtypes
    ]


def _sizes(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    run = tk.jit(lambda x: (x.sum(axis=0) * x.shape[0] + x.shape[1], x.max(axis=1)))

    def plain(x: Array) -> Any:
        return x.sum(0, x.dtype) * x.shape[0] + x.shape[1], x.max(1)

    shapes = [(2, 6), (6, 2), (3, 4), (4, 3), (12, 1), (1, 12), (5, 5)]
    return [_call(f"{m} x {n}", run, plain, numbers.of(dtype.name, m, n)) for m, n in shapes]


def _ranks(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    run = tk.jit(lambda x: x.reshape(-1) + x.ndim)
    shapes = [(12,), (3, 4), (2, 3, 2), (1, 12)]
    plain = lambda x: x.reshape(-1) + x.dtype.type(x.ndim)  # noqa: E731
    return [_call(f"{shape}", run, plain, numbers.of(dtype.name, *shape)) for shape in shapes]


def _statics(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    scaled = tk.jit(lambda x, k: x * k, static_argnums=1)
    turned = tk.jit(lambda x, axis: x.flip((axis,)) if axis is not None else x, static_argnums=1)
    by: list[Any] = [2, 3, -1] + [0.5, 0.0, -0.0, 1.0] * (dtype.kind == "float")
    x = numbers.of(dtype.name)
    calls = [_call(f"times {k!r}", scaled, lambda x, k: x * x.dtype.type(k), x, statics=(k,)) for k in by]
    for axis in (0, 1, None):
        flip = lambda x, axis: x if axis is None else np.flip(x, axis)  # noqa: E731
        calls.append(_call(f"flipped along {axis}", turned, flip, x, statics=(axis,)))
    return calls


def _literals(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """More functions than a small cache keeps, which differ in a number."""
    found = _each([lambda x, k=k: x * k + k for k in range(1, 10)], numbers, dtype.name, (3,))
    if dtype.kind == "float":
        found += _each([lambda x, k=k: x * k for k in (0.0, -0.0)], numbers, dtype.name, (3,))
    return found


def _constants(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    values = [numbers.of(dtype.name, 3) for _ in range(4)]
    values.append(values[0][::-1].copy())
    place = subject.stack
    found = []
    for i, c in enumerate(values):
        constant = subject.tensor(c, dtype, place)
        run = tk.jit(lambda x, c=constant: x * c - c)
        found.append(_call(f"constant {i}", run, lambda x, c=c: x * c - c, numbers.of(dtype.name, 3)))
    return found


def _params(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    found = [
        _call(
            f"{order}", tk.jit(lambda x, o=order: x.permute(o) + x), lambda x, o=order: x.transpose(o) + x, x
        )
        for order in orders
        for x in [numbers.of(dtype.name, 3, 3, 3)]
    ]
    for axis in range(2):
        x = numbers.of(dtype.name)
        found += [
            _call(
                f"flip {axis}",
                tk.jit(lambda x, a=axis: x.flip((a,)) + x),
                lambda x, a=axis: np.flip(x, a) + x,
                x,
            ),
            _call(
                f"sum {axis}",
                tk.jit(lambda x, a=axis: x + x.sum(axis=a, keepdims=True)),
                lambda x, a=axis: x + x.sum(a, x.dtype, keepdims=True),
                x,
            ),
            _call(
                f"total {axis}",
                tk.jit(lambda x, a=axis: x.sum(axis=a)),
                lambda x, a=axis: x.sum(a, x.dtype),
                x,
            ),
            _call(
                f"window {axis}",
                tk.jit(lambda x, a=axis: x[a : a + 2] * 2),
                lambda x, a=axis: x[a : a + 2] * x.dtype.type(2),
                x,
            ),
        ]
    return found


def _wiring(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    functions: list[Function] = [
        lambda x, y: x - y,
        lambda x, y: y - x,
        lambda x, y: x - x,
        lambda x, y: x * y - x,
        lambda x, y: x * y - y,
        lambda x, y: y * y - x,
        lambda x, y: (x - y) * (y - x) - x,
        lambda x, y: (y - x) * (x - y) - y,
    ]
    return _each(functions, numbers, dtype.name, (3,), (3,))


def _outputs(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    functions: list[Function] = [
        lambda x, y: (x + y, x * y, x - y),
        lambda x, y: _turned(x + y, x * y, x - y),
        lambda x, y: _turned(*_turned(x + y, x * y, x - y)),
        lambda x, y: (x + y, x + y),
        lambda x, y: (x, x + y, y),
        lambda x, y: (y, x + y, x),
    ]
    return _each(functions, numbers, dtype.name, (3,), (3,))


def _turned(a: Any, b: Any, c: Any) -> Any:
    return b, c, a


def _layouts(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """The same shapes, the first operand made in each way in turn."""
    run = tk.jit(lambda x, y: (x * 2 + y, x @ y, x.sum(axis=0), x.reshape(-1)))

    def plain(x: Array, y: Array) -> Any:
        return x * x.dtype.type(2) + y, x @ y, x.sum(0, x.dtype), x.reshape(-1)

    return [
        _call(
            name,
            run,
            plain,
            chains.fitted(chain, numbers.of(dtype.name)),
            np.abs(numbers.of(dtype.name)),  # no column adds up to a zero, whose sign would be open
            chain=chain,
        )
        for name, chain in chains.possible(subject, dtype.name, 2).items()
    ]


def _operands(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """The same kinds of operands with other numbers, which may come to lie where those before them lay."""
    run = tk.jit(lambda x, y: (x @ y, y - x))
    plain = lambda x, y: (x @ y, y - x)  # noqa: E731
    x = numbers.of(dtype.name)
    return [_call(f"operands {i}", run, plain, x, numbers.of(dtype.name)) for i in range(6)]


def _same(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """One tensor as both operands, and then two."""
    run = tk.jit(lambda x, y: (x * y + x, x - y))
    plain = lambda x, y: (x * y + x, x - y)  # noqa: E731
    x, y = numbers.of(dtype.name, 70), numbers.of(dtype.name, 70)
    return [
        _call("one tensor twice", run, plain, x, x, same=True),
        _call("two tensors", run, plain, x, y),
        _call("another twice", run, plain, y, y, same=True),
    ]


def _large(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """Of so many elements that memory is worth using again."""
    run = tk.jit(lambda x: x * 2 + 1)
    plain = lambda x: x * x.dtype.type(2) + x.dtype.type(1)  # noqa: E731
    return [_call(f"{n} elements", run, plain, numbers.of(dtype.name, n)) for n in (1024, 4097, 1024, 20_000)]


def _passed(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """Operands, and views of them, that are results."""
    run = tk.jit(lambda x, y: (y, x + y, x.flip((0,)), x))
    plain = lambda x, y: (y, x + y, np.flip(x, 0), x)  # noqa: E731
    return [
        _call(f"operands {i}", run, plain, numbers.of(dtype.name), numbers.of(dtype.name)) for i in range(4)
    ]


def _donated(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """The first operand is given away, while a view of it lives on."""
    run = tk.jit(lambda x, y: x * 2 - y, donate_argnums=0)
    plain = lambda x, y: x * x.dtype.type(2) - y  # noqa: E731
    return [
        _call(f"{n} elements", run, plain, numbers.of(dtype.name, n), numbers.of(dtype.name, n), donated=True)
        for n in (4, 2000, 2000)
    ]


def _scans(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """Two carries of which each becomes what the other was, rows that are stacked, and several lengths."""

    def exchanged(a: Tensor, b: Tensor, xs: Tensor) -> Any:
        (a, b), ys = tk.scan(lambda c, x: ((c[1] + x, c[0]), c[0] - x), (a, b), xs)
        return a, b, ys

    def kept(a: Tensor, b: Tensor, xs: Tensor) -> Any:
        (a, b), ys = tk.scan(lambda c, x: ((c[0] - x, c[0] + c[1]), c[1]), (a, b), xs, reverse=True)
        return a, b, ys

    def exchanged_in_turn(a: Array, b: Array, xs: Array) -> Any:
        ys = []
        for x in xs:
            ys.append(a - x)
            a, b = b + x, a
        return a, b, np.array(ys)

    def kept_in_turn(a: Array, b: Array, xs: Array) -> Any:
        ys = []
        for x in xs[::-1]:
            ys.append(b)
            a, b = a - x, a + b
        return a, b, np.array(ys[::-1])

    pairs = [(tk.jit(exchanged), exchanged_in_turn), (tk.jit(kept), kept_in_turn)]
    return [
        _call(
            f"scan {i} of {n} steps",
            run,
            plain,
            *[numbers.of(dtype.name, 3) for _ in "ab"],
            numbers.of(dtype.name, n, 3),
        )
        for n in (3, 5, 1, 5)
        for i, (run, plain) in enumerate(pairs)
    ]


def _branches(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """A branch that is chosen by an operand, one way and the other; and loops of no step and of some."""

    def chosen(x: Tensor, y: Tensor) -> Any:
        return tk.cond((x < y)[0], lambda x, y: x + y, lambda x, y: x - y, x, y)

    def grown(x: Tensor, y: Tensor) -> Any:
        return tk.while_loop(lambda v: (v[0] < v[1])[0], lambda v: (v[0] + 2, v[1]), (x, y))[0]

    def grown_in_turn(x: Array, y: Array) -> Array:
        while x[0] < y[0]:
            x = x + x.dtype.type(2)
        return x

    def picked(x: Tensor, y: Tensor, p: Tensor) -> Any:
        return tk.cond(p, lambda x, y: x + y, lambda x, y: x - y, x, y)

    choose, grow, pick = tk.jit(chosen), tk.jit(grown), tk.jit(picked)
    ends = [np.array(pair, dtype.name) for pair in ([1, 2], [9, 4], [3, 3], [-4, 7])]
    found = []
    for first, second in ((0, 1), (1, 0), (3, 1), (2, 0), (0, 2)):
        x, y = ends[first], ends[second]
        found += [
            _call(f"cond {x[0]} < {y[0]}", choose, lambda x, y: x + y if x[0] < y[0] else x - y, x, y),
            _call(f"while {x[0]} < {y[0]}", grow, grown_in_turn, x, y),
        ]
        if "bool" in subject.capabilities.dtypes:
            p = np.array(first < second)
            found.append(_call(f"cond {p}", pick, lambda x, y, p: x + y if p else x - y, x, y, p))
    return found


def _batches(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    run = tk.jit(tk.vmap(lambda x, y: x * y + x.sum()))

    def plain(x: Array, y: Array) -> Any:
        return x * y + x.sum(1, x.dtype, keepdims=True)

    shapes = [(3, 4), (4, 3), (2, 6)]
    return [
        _call(f"{shape}", run, plain, numbers.of(dtype.name, *shape), numbers.of(dtype.name, *shape))
        for shape in shapes
    ]


def _gradients(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    runs = [tk.jit(tk.grad(lambda x, y: (x * x * y).sum(), argnums=i)) for i in range(2)]
    plain: list[Function] = [lambda x, y: 2 * x * y, lambda x, y: x * x]
    return [
        _call(
            f"of {n} by argument {i}", runs[i], plain[i], numbers.of(dtype.name, n), numbers.of(dtype.name, n)
        )
        for n in (3, 5, 2)
        for i in range(2)
    ]


Calls = Callable[[Subject, DType, Numbers], list[Call]]

VARIATIONS: dict[str, tuple[Calls, tuple[str, ...]]] = {
    "dtypes": (_dtypes, ()),
    "sizes": (_sizes, ("max",)),
    "ranks": (_ranks, ("reshape",)),
    "statics": (_statics, ("flip",)),
    "literals": (_literals, ()),
    "constants": (_constants, ()),
    "params": (_params, ("permute", "flip", "crop")),
    "wiring": (_wiring, ()),
    "outputs": (_outputs, ()),
    "layouts": (_layouts, ("fused_multiply_add", "permute", "reshape")),
    "operands": (_operands, ("fused_multiply_add",)),
    "same": (_same, ()),
    "large": (_large, ()),
    "passed": (_passed, ("flip",)),
    "donated": (_donated, ("flip",)),
    "scans": (_scans, ("crop", "concatenate", "reshape")),
    "branches": (_branches, ("lt", "crop", "reshape")),
    "batches": (_batches, ()),
    "gradients": (_gradients, ()),
}
"""What varies from call to call, the calls, and the ops that they need beside sums and products."""
