"""programs.closures: captured tensors have their own values in each program and in each call."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor

SHAPES: tuple[Shape, ...] = ((2, 3), (70,))
"""The shapes of the operand and the captured tensors; the last is too large to be written into compiled code."""

FORMS = ("anew", "traced")
"""Whether each function closes over its own tensors, or one function closes over its arguments."""


ANEW = ("alone",)
"""The ways of the smoke run in which each function has its own tensors, so that each is another program."""


@dataclass(frozen=True, slots=True)
class Way:
    """A function that closes over tensors, and its expected result.

    Attributes:
        run: from an operand and two tensors, which are closed over within, to a result.
        expected: the same with arrays.
        derivative: whether it is a derivative, of floats alone.
    """

    run: Callable[[Any, Any, Any], Any]
    expected: Callable[[Array, Array, Array], Array]
    derivative: bool = False


def _scanned(x: Array, c: Array, d: Array) -> Array:
    return np.stack([x + d, x + x * c + d])


def _counted(x: Array, c: Array, d: Array) -> Array:
    while (x < d + c).any():
        x = x + c
    return x


def _ruled_forward(x: Any, c: Any, d: Any) -> Any:
    f = tk.custom_jvp(lambda y: y * c)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * d - tangents[0] * c))
    return tk.grad(lambda x: (f(x) * x).sum())(x)


def _ruled_back(x: Any, c: Any, d: Any) -> Any:
    f = tk.custom_vjp(lambda y: y * c)
    f.defvjp(lambda y: (f(y), y), lambda y, t: (t * d + y,))
    return tk.grad(lambda x: f(x).sum())(x)


WAYS: dict[str, Way] = {
    "alone": Way(lambda x, c, d: x * c - d, lambda x, c, d: x * c - d),
    "jit": Way(lambda x, c, d: tk.jit(lambda y: y * c - d)(x), lambda x, c, d: x * c - d),
    "scan": Way(lambda x, c, d: tk.scan(lambda h, u: (h + u * c, h + d), x, tk.stack([x, x]))[1], _scanned),
    "fori_loop": Way(
        lambda x, c, d: tk.fori_loop(0, 3, lambda i, h: h + c, x - d), lambda x, c, d: x - d + c * 3
    ),
    "while_loop": Way(
        lambda x, c, d: tk.while_loop(lambda h: tk.any(h < d + c), lambda h: h + c, x), _counted
    ),
    "cond": Way(
        lambda x, c, d: tk.cond(x.max() > 2, lambda y: y * c, lambda y: y - d, x),
        lambda x, c, d: x * c if x.max() > 2 else x - d,
    ),
    "vmap": Way(
        lambda x, c, d: tk.vmap(lambda e: c * e - d)(x), lambda x, c, d: np.stack([c * e - d for e in x])
    ),
    "checkpoint": Way(lambda x, c, d: tk.checkpoint(lambda y: y * c - d)(x), lambda x, c, d: x * c - d),
    "grad-of-checkpoint": Way(
        lambda x, c, d: tk.grad(lambda c: (tk.checkpoint(lambda y: y * c * c - d * c)(x)).sum())(c),
        lambda x, c, d: x * c + x * c - d,
        derivative=True,
    ),
    "grad-of-jit": Way(
        lambda x, c, d: tk.grad(lambda c: tk.jit(lambda y: (y * c * d - c).sum())(x))(c),
        lambda x, c, d: x * d - 1,
        derivative=True,
    ),
    "grad-of-scan": Way(
        lambda x, c, d: tk.grad(
            lambda c: tk.scan(lambda h, _: (h * c + d, None), x, None, length=2)[0].sum()
        )(c),
        lambda x, c, d: x * c + x * c + d,
        derivative=True,
    ),
    "grad-of-custom-jvp": Way(_ruled_forward, lambda x, c, d: x * d, derivative=True),
    "grad-of-custom-vjp": Way(_ruled_back, lambda x, c, d: d + x, derivative=True),
    "jvp": Way(
        lambda x, c, d: tk.jvp(lambda y: y * c - d, (x,), (d,))[1], lambda x, c, d: c * d, derivative=True
    ),
}


def cases(subject: Subject) -> Iterator[Case]:
    """Each way to close over tensors, in one float dtype, or an integer dtype where there is none."""
    names = [dtype.name for kind in ("float", "int") for dtype in subject.dtypes() if dtype.kind == kind]
    if not names:
        return
    name = "float32" if "float32" in names else names[0]
    for op, way in WAYS.items():
        if DTYPES[name].kind == "float" or not way.derivative:
            few = subject.depth == "smoke" and op not in ANEW
            for form in FORMS[few:]:
                yield Case("programs.closures", op, name, detail=form)


@law("programs.closures", cases, level=4, stage=3)
def closures(subject: Subject, case: Case) -> None:
    """A tensor that a function closes over has its own value in each program and each call, and keeps it.

    Functions that differ only in the tensors that they close over are compiled in sequence, and called in turn, also
    after earlier ones are collected; and one function that closes over its arguments is called with several.  The
    tensors differ in one element, in all, or only in their order.
    """
    random, dtype = subject.random(case), DTYPES[case.dtype]
    few = subject.depth == "smoke" and case.op not in ANEW
    for shape in SHAPES[:1] if few else SHAPES:
        count = int(np.prod(shape))
        xs = [
            np.array([random.randint(low, low + 3) for _ in range(count)]).reshape(shape) for low in (1, -3)
        ]
        pairs = [_tensors(subject, pair, dtype) for pair in _alike(random, shape)]
        if case.detail == "traced":
            _of_one_function(subject, case, xs, pairs)
        else:
            _of_several(subject, case, xs, pairs)
        for i, (arrays, tensors) in enumerate(pairs):
            for array, x in zip(arrays, tensors, strict=True):
                _agree(subject, x, array, f"{case.op}: a tensor of pair {i} that was closed over")


Pair = tuple[Sequence[Array], Sequence[Tensor]]
"""The captured tensors, as arrays and as tensors."""


def _alike(random: Any, shape: Shape) -> list[tuple[Array, Array]]:
    """Pairs that differ in few elements, of which no subset identifies the pair."""
    count = int(np.prod(shape))
    c = np.array([random.randint(2, 4) for _ in range(count)])
    d = np.array([random.randint(5, 8) for _ in range(count)])
    last, first, middle = c.copy(), c.copy(), d.copy()
    last[-1] += 1
    first[0] -= 1
    middle[count // 2] += 1
    found = [(c, d), (last, d), (first, middle), (d - 3, c + 2), (c[::-1], d[::-1])]
    return [(a.reshape(shape), b.reshape(shape)) for a, b in found]


def _tensors(subject: Subject, pair: Sequence[Array], dtype: DType) -> Pair:
    return pair, [subject.tensor(x, dtype, subject.stack) for x in pair]


def _of_several(subject: Subject, case: Case, xs: Sequence[Array], pairs: Sequence[Pair]) -> None:
    """Functions that each close over their own tensors, called three times in turn; then new functions."""
    way, dtype = WAYS[case.op], DTYPES[case.dtype]

    def made(c: Tensor, d: Tensor) -> Callable[[Tensor], Tensor]:
        return tk.jit(lambda x: way.run(x, c, d))

    functions = [made(*tensors) for _, tensors in pairs]
    for turn, x in enumerate([xs[0], xs[1], xs[0]]):  # a second run may differ from the first
        order = range(len(pairs)) if turn % 2 == 0 else reversed(range(len(pairs)))
        for i in order:
            arrays = pairs[i][0]
            got = functions[i](subject.tensor(x, dtype, subject.stack))
            _agree(subject, got, way.expected(x, *arrays), f"{case.op}: function {i} in turn {turn}")
    del functions
    gc.collect()
    for i, (arrays, _) in enumerate(pairs):
        alone = made(*_tensors(subject, arrays, dtype)[1])  # nothing else refers to these tensors
        got = alone(subject.tensor(xs[0], dtype, subject.stack))
        _agree(subject, got, way.expected(xs[0], *arrays), f"{case.op}: function {i} when others are gone")
        del alone, got


def _of_one_function(subject: Subject, case: Case, xs: Sequence[Array], pairs: Sequence[Pair]) -> None:
    """One function that closes over its arguments, called with equal and with other ones."""
    way, dtype = WAYS[case.op], DTYPES[case.dtype]
    function = tk.jit(way.run)
    for turn, x in enumerate(xs):
        for i, (arrays, tensors) in enumerate([pairs[0], *pairs]):  # the first is the same twice
            got = function(subject.tensor(x, dtype, subject.stack), *tensors)
            _agree(subject, got, way.expected(x, *arrays), f"{case.op}: call {i} in turn {turn}")


def _agree(subject: Subject, got: Tensor, expected: Array, what: str) -> None:
    values = subject.read(got)
    exact.same(values, expected.astype(values.dtype), what, either_zero=True)
