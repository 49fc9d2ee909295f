"""Variations: calls of compiled functions that differ in one thing, such as dtypes, axes or layouts."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case
from tensorken_conformance.layouts import chains
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DType
from tensorken_core.tensor.tensor import Tensor

SIZE = 4
"""The size of both axes of the matrices; products of small numbers need few digits."""

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a compiled function, and its results.

    Attributes:
        says: how the call differs from the others.
        run: the compiled function.
        operands: the values of its tensors.
        expected: the values of its results.
        statics: its further arguments.
        chain: the movements that make the first operand.
        same: whether the first operand is passed for each operand.
        donated: whether the first operand is donated; the law keeps a view of it.
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
    """Random whole numbers for the operands of calls, in the dtype of a case."""

    def __init__(self, subject: Subject, case: Case) -> None:
        self._rng = np.random.default_rng([subject.seed, zlib.crc32(case.id.encode())])
        self._dtype = case.dtype

    def of(self, *shape: int, dtype: str = "", largest: int = 5) -> Array:
        """Numbers other than 0, of either sign; by default a matrix."""
        size = shape or (SIZE, SIZE)
        whole = self._rng.integers(1, largest, size, endpoint=True) * self._rng.choice([-1, 1], size)
        return np.asarray(whole.astype(dtype or self._dtype))


def _call(says: str, run: Function, plain: Function, *operands: Array, **facts: Any) -> Call:
    """A call whose expected results come from `plain`, the same function in numpy."""
    found = plain(*operands, *facts.get("statics", ()))
    results = found if isinstance(found, tuple) else (found,)
    return Call(says, run, operands, tuple([np.asarray(y, operands[0].dtype) for y in results]), **facts)


def _calls(
    function: Function,
    rows: Iterable[tuple[Any, Sequence[Array]]],
    plain: Function | None = None,
    **facts: Any,
) -> list[Call]:
    """Calls of one compiled function, with these names and operands; by default it is the same in numpy."""
    run = tk.jit(function, donate_argnums=0 if facts.get("donated") else ())
    return [_call(str(says), run, plain or function, *operands, **facts) for says, operands in rows]


def _each(functions: Sequence[Function], numbers: Numbers, *shapes: tuple[int, ...]) -> list[Call]:
    """A call of each of several functions that are the same in numpy, with operands of these shapes."""
    return [
        call
        for i, function in enumerate(functions)
        for call in _calls(function, [(f"function {i}", [numbers.of(*shape) for shape in shapes])])
    ]


# ---- what varies -------------------------------------------------------------------------------------------


def _dtypes(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """The narrowest dtype comes first: a program cached for it would have too few digits for the others."""
    largest = {"float16": 40, "float32": 4_000, "float64": 2**25, "int32": 2**15, "int64": 2**31 - 1}
    rows = [
        (name, [numbers.of(3, dtype=name, largest=top) for _ in "xy"])
        for name, top in largest.items()
        if name in subject.capabilities.dtypes
    ]
    return _calls(lambda x, y: (x * y - x, x + y), rows)


def _sizes(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    shapes = [(2, 6), (6, 2), (3, 4), (4, 3), (12, 1), (1, 12), (5, 5)]
    rows = [(f"{m} x {n}", [numbers.of(m, n)]) for m, n in shapes]
    return _calls(lambda x: (x.sum(axis=0) * x.shape[0] + x.shape[1], x.max(axis=1)), rows)


def _ranks(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    shapes = [(12,), (3, 4), (2, 3, 2), (1, 12)]
    return _calls(lambda x: x.reshape(-1) + x.ndim, [(shape, [numbers.of(*shape)]) for shape in shapes])


def _statics(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    def flipped(x: Array, axis: int | None) -> Array:
        return x if axis is None else np.flip(x, axis)

    scaled = tk.jit(lambda x, k: x * k, static_argnums=1)
    turned = tk.jit(lambda x, axis: x.flip((axis,)) if axis is not None else x, static_argnums=1)
    by: list[Any] = [2, 3, -1] + [0.5, 0.0, -0.0, 1.0] * (dtype.kind == "float")
    x = numbers.of()
    calls = [_call(f"times {k!r}", scaled, lambda x, k: x * k, x, statics=(k,)) for k in by]
    axes = (0, 1, None)
    return calls + [_call(f"flipped along {axis}", turned, flipped, x, statics=(axis,)) for axis in axes]


def _literals(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """More functions than a small cache keeps, which differ in a number."""
    found = _each([lambda x, k=k: x * k + k for k in range(1, 10)], numbers, (3,))
    if dtype.kind == "float":
        found += _each([lambda x, k=k: x * k for k in (0.0, -0.0)], numbers, (3,))
    return found


def _constants(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    values = [numbers.of(3) for _ in range(4)]
    values.append(values[0][::-1].copy())
    found = []
    for i, c in enumerate(values):
        constant = subject.tensor(c, dtype, subject.stack)
        row = [(f"constant {i}", [numbers.of(3)])]
        found += _calls(lambda x, c=constant: x * c - c, row, lambda x, c=c: x * c - c)
    return found


def _params(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    found = []
    for order in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]:
        row = [(order, [numbers.of(3, 3, 3)])]
        found += _calls(lambda x, o=order: x.permute(o) + x, row, lambda x, o=order: x.transpose(o) + x)
    for axis in range(2):
        xs = [numbers.of()]
        found += [
            *_calls(
                lambda x, a=axis: x.flip((a,)) + x,
                [(f"flip {axis}", xs)],
                lambda x, a=axis: np.flip(x, a) + x,
            ),
            *_calls(lambda x, a=axis: x + x.sum(axis=a, keepdims=True), [(f"sum {axis}", xs)]),
            *_calls(lambda x, a=axis: x.sum(axis=a), [(f"total {axis}", xs)]),
            *_calls(lambda x, a=axis: x[a : a + 2] * 2, [(f"window {axis}", xs)]),
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
    return _each(functions, numbers, (3,), (3,))


def _outputs(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    functions: list[Function] = [
        lambda x, y: (x + y, x * y, x - y),
        lambda x, y: (x * y, x - y, x + y),
        lambda x, y: (x - y, x + y, x * y),
        lambda x, y: (x + y, x + y),
        lambda x, y: (x, x + y, y),
        lambda x, y: (y, x + y, x),
    ]
    return _each(functions, numbers, (3,), (3,))


def _layouts(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """The same shapes, with the first operand made by each chain in turn."""
    run = tk.jit(plain := lambda x, y: (x * 2 + y, x @ y, x.sum(axis=0), x.reshape(-1)))
    found = []
    for name, chain in chains.possible(subject, dtype.name, 2).items():
        x = chains.fitted(chain, numbers.of())
        y = np.abs(numbers.of())  # no column adds up to zero, since the sign of a zero is not determined
        found.append(_call(name, run, plain, x, y, chain=chain))
    return found


def _operands(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """Operands of one shape with other numbers, which may reuse the memory of earlier ones."""
    x = numbers.of()
    return _calls(lambda x, y: (x @ y, y - x), [(f"operands {i}", [x, numbers.of()]) for i in range(6)])


def _same(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """One tensor as both operands, and then two."""
    run = tk.jit(plain := lambda x, y: (x * y + x, x - y))
    x, y = numbers.of(70), numbers.of(70)
    return [
        _call("one tensor twice", run, plain, x, x, same=True),
        _call("two tensors", run, plain, x, y),
        _call("another twice", run, plain, y, y, same=True),
    ]


def _large(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """Operands with so many elements that a backend may reuse their memory."""
    rows = [(f"{n} elements", [numbers.of(n)]) for n in (1024, 4097, 1024, 20_000)]
    return _calls(lambda x: x * 2 + 1, rows)


def _passed(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """Operands, and views of them, as results."""
    rows = [(f"operands {i}", [numbers.of(), numbers.of()]) for i in range(4)]
    return _calls(lambda x, y: (y, x + y, x.flip((0,)), x), rows, lambda x, y: (y, x + y, np.flip(x, 0), x))


def _donated(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """The first operand is donated, while a view of it lives on."""
    rows = [(f"{n} elements", [numbers.of(n), numbers.of(n)]) for n in (4, 2000, 2000)]
    return _calls(lambda x, y: x * 2 - y, rows, donated=True)


def _scans(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """Carries that are exchanged in each step, stacked rows, and several lengths."""

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

    functions = [(tk.jit(exchanged), exchanged_in_turn), (tk.jit(kept), kept_in_turn)]
    return [
        _call(f"scan {i} of {n} steps", run, plain, numbers.of(3), numbers.of(3), numbers.of(n, 3))
        for n in (3, 5, 1, 5)
        for i, (run, plain) in enumerate(functions)
    ]


def _branches(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    """Both branches of a cond on operands; loops of zero and of several steps."""

    def chosen(x: Tensor, y: Tensor) -> Any:
        return tk.cond((x < y)[0], lambda x, y: x + y, lambda x, y: x - y, x, y)

    def grown(x: Tensor, y: Tensor) -> Any:
        return tk.while_loop(lambda v: (v[0] < v[1])[0], lambda v: (v[0] + 2, v[1]), (x, y))[0]

    def grown_in_turn(x: Array, y: Array) -> Array:
        while x[0] < y[0]:
            x = x + 2
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
    rows = [(shape, [numbers.of(*shape), numbers.of(*shape)]) for shape in [(3, 4), (4, 3), (2, 6)]]
    batched = tk.vmap(lambda x, y: x * y + x.sum())
    return _calls(batched, rows, lambda x, y: x * y + x.sum(axis=1, keepdims=True))


def _gradients(subject: Subject, dtype: DType, numbers: Numbers) -> list[Call]:
    runs = [tk.jit(tk.grad(lambda x, y: (x * x * y).sum(), argnums=i)) for i in range(2)]
    plain: list[Function] = [lambda x, y: 2 * x * y, lambda x, y: x * x]
    return [
        _call(f"of {n} by argument {i}", runs[i], plain[i], numbers.of(n), numbers.of(n))
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
"""The calls of each variation, and the ops that they need in addition to sums and products."""
