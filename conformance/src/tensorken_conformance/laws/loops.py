"""programs.loops: loops and branches equal their steps run one by one, under every transform."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.laws.derivatives.scenarios import of_some
from tensorken_conformance.limits import NARROW
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core import tree
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.tensor.tensor import Tensor

SIZE = 3
"""The length of the three operands."""

EXAMPLES = 2
"""The number of examples of a batch."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A function of three vectors with a loop or a branch.

    Attributes:
        run: the function; its result is a tree of tensors.
        reverse: whether it has a reverse-mode derivative: a `while_loop` has none.
    """

    run: Callable[[Any, Any, Any], Any]
    reverse: bool = True


def _exchanged(a: Any, b: Any, c: Any) -> Any:
    return tk.scan(lambda carry, x: ((carry[1], carry[0] + x), carry[0] * 2), (a, b), c)


def _one_step_later(a: Any, b: Any, c: Any) -> Any:
    """A third carry depends on a only from the third step on."""

    def step(carry: Any, _: Any) -> Any:
        one, two, three, four = carry
        return (one, one * one, two + four, four), three

    return tk.scan(step, (a, b, c, b), None, length=4)


def _slices(a: Any, b: Any, c: Any) -> Any:
    """Rows that are scanned in reverse, with a carry and a constant."""
    rows = tk.stack([a, a * b, b, b + c])
    return tk.scan(lambda h, row: (h * c - row, (row * h, h)), a, rows, reverse=True)


def _columns(a: Any, b: Any, c: Any) -> Any:
    return tk.scan(lambda h, pair: (h + pair[0] * pair[1], h * pair[1]), c, (a, b))


def _nested(a: Any, b: Any, c: Any) -> Any:
    def inner(h: Any, x: Any) -> Any:
        return (h[0] + h[1] * x, h[1]), h[0] - a

    def outer(h: Any, _: Any) -> Any:
        (after, kept), ys = tk.scan(inner, (h, b), c)
        return after - kept, ys.sum(axis=0)

    return tk.scan(outer, a - b, None, length=2)


def _chosen_in_loop(a: Any, b: Any, c: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = tk.cond(x > 0, lambda h: h * 2 + b, lambda h: h - a, h)
        return h, h.sum()

    return tk.scan(step, a, c)


def _handed_through(a: Any, b: Any, c: Any) -> Any:
    first, second = tk.cond(c.sum() > 0, lambda a, b: (a, b * c), lambda a, b: (b, b), a, b)
    return tk.scan(lambda h, x: ((h[0] * h[1] + x, h[1]), h[1]), (first, second), c)


def _exchanged_in_branches(a: Any, b: Any, c: Any) -> Any:
    return tk.cond(c.sum() > 0, lambda a, b: (b, a, a * b), lambda a, b: (a, b, a), a, b)


def _repeated(a: Any, b: Any, c: Any) -> Any:
    return tk.fori_loop(1, 4, lambda i, h: (h[1] * i, h[0] - c), (a, b))


def _while(a: Any, b: Any, c: Any) -> Any:
    """Examples of a batch take different numbers of steps (`loops`); a carry and a constant are forwarded."""

    def more(carry: Any) -> Any:
        return carry[0].sum() < 20

    return tk.while_loop(more, lambda h: (h[0] + tk.abs(c) + 1, h[2], h[1] + b, h[3]), (a, b, a, c))


def _lengths(a: Any, b: Any, c: Any) -> Any:
    """No step, one, and numbers of steps beside those by which a loop may be unrolled."""

    def step(carry: Any, _: Any) -> Any:
        one, two, three = carry
        return (two - c, one + a, three + one), two

    return [tk.scan(step, (a, b, c), None, length=n) for n in LENGTHS]


LENGTHS = (0, 1, 5, 9, 17)
"""The numbers of steps of `lengths`."""

LOOPS: dict[str, Loop] = {
    "exchanged-carries": Loop(_exchanged),
    "carries-reached-later": Loop(_one_step_later),
    "slices-backwards": Loop(_slices),
    "slices-of-two": Loop(_columns),
    "scan-in-scan": Loop(_nested),
    "cond-in-scan": Loop(_chosen_in_loop),
    "cond-before-scan": Loop(_handed_through),
    "exchanged-in-branches": Loop(_exchanged_in_branches),
    "lengths": Loop(_lengths),
    "fori_loop": Loop(_repeated),
    "while_loop": Loop(_while, reverse=False),
}
"""All loops, by their names in reports."""

Transform = Callable[[Callable[..., Any], Sequence[Any]], Any]
"""Takes a function of vectors, its three operands and a direction for each; returns a tree of tensors."""


def _total(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of all results, with different weights."""

    def total(*xs: Any) -> Any:
        parts = [(leaf * (i + 1)).sum() for i, leaf in enumerate(tree.leaves(f(*xs)))]
        return sum(parts[1:], parts[0])

    return total


def _push(f: Callable[..., Any], xs: Sequence[Any], positions: Sequence[int]) -> Any:
    return tk.jvp(*of_some(f, xs[:3], positions), [xs[3 + i] for i in positions])


FEW = ((0,), (0, 1, 2))
"""The sets of operands that the smoke run batches."""

SUBSETS = [positions for count in (1, 2, 3) for positions in itertools.combinations(range(3), count)]

TRANSFORMS: dict[str, tuple[Transform, bool]] = {
    "values": (lambda f, xs: f(*xs[:3]), False),
    "jit": (lambda f, xs: tk.jit(f)(*xs[:3]), False),
    "jvp": (lambda f, xs: [_push(f, xs, positions) for positions in SUBSETS], False),
    "grad": (lambda f, xs: tk.grad(_total(f), (0, 1, 2))(*xs[:3]), True),
    "grad-of-one": (lambda f, xs: [tk.grad(_total(f), i)(*xs[:3]) for i in range(3)], True),
    "jit-of-grad": (lambda f, xs: tk.jit(tk.grad(_total(f), (0, 1, 2)))(*xs[:3]), True),
    "jvp-of-grad": (lambda f, xs: _push(tk.grad(_total(f), (0, 1, 2)), xs, (0, 1, 2)), True),
}
"""Transforms by name, and whether each needs reverse mode."""

BATCHED: dict[str, tuple[Transform, bool]] = {
    "vmap": TRANSFORMS["values"],
    "vmap-of-grad": TRANSFORMS["grad"],
    "jit-of-vmap": TRANSFORMS["values"],
}


def cases(subject: Subject) -> Iterator[Case]:
    """Each loop under each transform; a smoke run takes one loop."""
    floats = [dtype.name for dtype in subject.dtypes() if dtype.kind == "float" and dtype.name not in NARROW]
    if not floats:
        return
    dtype = "float32" if "float32" in floats else floats[0]
    for name, loop in LOOPS.items():
        if subject.depth == "smoke" and name not in ("carries-reached-later", "while_loop"):
            continue
        for transform, (_, needs_reverse) in {**TRANSFORMS, **BATCHED}.items():
            if loop.reverse or not needs_reverse:
                yield Case("programs.loops", name, dtype, detail=transform)


@law("programs.loops", cases, level=4, stage=3)
def loops(subject: Subject, case: Case) -> None:
    """A loop or a branch equals its steps run one by one, also under derivatives, `vmap` and `jit`.

    All numbers are small and whole, so results are equal. Under `vmap` each subset of the operands is batched in turn.
    """
    loop, dtype, random = LOOPS[case.op], DTYPES[case.dtype], subject.random(case)
    batched = case.detail in BATCHED
    transform, _ = {**TRANSFORMS, **BATCHED}[case.detail]

    def drawn(low: int) -> Array:
        shape = (EXAMPLES, SIZE) if batched else (SIZE,)
        return np.array([random.randint(low, 2) for _ in range(int(np.prod(shape)))]).reshape(shape)

    arrays = [drawn(low) for low in (1, -2, -2, -1, -1, -1)]
    if batched:  # so that a `while_loop` takes fewer steps for the last example
        arrays[2][-1] += np.where(arrays[2][-1] < 0, -5, 5)

    def tensors(values: Sequence[Array]) -> list[Tensor]:
        return [subject.tensor(x, dtype, subject.stack) for x in values]

    def one_by_one(values: Sequence[Array]) -> list[Array]:
        with tk.disable_jit():
            return _read(subject, transform(loop.run, tensors(values)))

    if not batched:
        got = _read(subject, transform(loop.run, tensors(arrays)))
        _agree(case, got, one_by_one(arrays), arrays)
        return
    for positions in FEW if subject.depth == "smoke" else SUBSETS:
        own = [x if i in positions else x[0] for i, x in enumerate(arrays[:3])]
        axes = tuple([0 if i in positions else None for i in range(3)])
        run = tk.vmap(lambda *xs: transform(loop.run, xs), axes)
        compiled = tk.jit(run) if case.detail == "jit-of-vmap" else run
        got = _read(subject, compiled(*tensors(own)))
        examples = [
            one_by_one([x[k] if i in positions else x for i, x in enumerate(own)]) for k in range(EXAMPLES)
        ]
        _agree(case, got, [np.stack(parts) for parts in zip(*examples, strict=True)], own)


def _read(subject: Subject, found: Any) -> list[Array]:
    return [subject.read(leaf) for leaf in subject.together(tree.leaves(found))]


def _agree(case: Case, got: Sequence[Array], expected: Sequence[Array], operands: Sequence[Array]) -> None:
    for i, (one, other) in enumerate(zip(got, expected, strict=True)):
        says = f"{case.op}, {case.detail}: result {i} of operands {[x.tolist() for x in operands]}"
        exact.same(one, other, f"{says}, compared with the steps one by one", either_zero=True)
