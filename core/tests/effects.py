"""Random functions with effects, and the log of the effects of a run."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tensorken as tk

Step = tuple[Any, ...]
Entry = tuple[str, tuple[list[float], ...]]

LOG: list[Entry] = []
"""The effects of the current run, in order: a label, and the values of the operands."""

OPS: tuple[Callable[..., Any], ...] = (
    lambda x, y: tk.sin(x) + y,
    lambda x, y: x * 0.5 - y,
    lambda x, y: tk.maximum(x, y),
    lambda x, y: -x.sum() * 0.25 + y,
    lambda x, y: x * 1.0 + y * 0.0,
)
"""All of these depend on both operands, so that no effect is shared by the examples of a batch."""


def logged(f: Callable[..., Any], *args: Any) -> tuple[Any, list[Entry]]:
    """The result of a call, and its log."""
    LOG.clear()
    result = f(*args)
    leaves = [tk.asarray(y).tolist() for y in tk.tree.leaves(result)]  # which waits for the result
    return leaves, LOG.copy()


def assert_same(run: tuple[Any, Any], expected: tuple[Any, Any], what: object) -> None:
    """The same effects in the same order, on the same values up to rounding; and the same results."""
    (result, log), (expected_result, expected_log) = run, expected
    assert_same_log(log, expected_log, what)
    assert all(map(_near, result, expected_result)), what


def assert_same_log(log: Sequence[Entry], expected: Sequence[Entry], what: object) -> None:
    """The same effects in the same order, on the same values up to rounding."""
    assert [label for label, _ in log] == [label for label, _ in expected], what
    for (_, xs), (_, ys) in zip(log, expected, strict=True):
        assert all(map(_near, xs, ys)), what


def _near(a: Any, b: Any) -> bool:
    return np.allclose(a, b, rtol=1e-4, atol=1e-5)


def draw(
    seed: int,
    *,
    kinds: Sequence[str] = ("debug", "io", "value"),
    choices: bool = True,
    shared: bool = True,
) -> list[Step]:
    """The steps of a function, decided by the seed.

    Args:
        seed: of the random numbers.
        kinds: the kinds of effects: `debug`; `io`; `value`, an `io` with a result; `stopped`, the same without a
            derivative; `pure`; `number`, without operands.
        choices: whether there are branches, and loops that end by a condition.
        shared: whether there are effects that do not depend on the arguments, which a batch has once.
    """
    rng = random.Random(seed)
    labels = iter(range(10**6))

    def steps(depth: int, count: int) -> list[Step]:
        found: list[Step] = []
        for _ in range(count):
            i, j = rng.randrange(4), rng.randrange(4)
            roll = rng.random()
            if roll < 0.35 or (depth == 0 and roll > 0.75):
                found.append(("op", rng.randrange(len(OPS)), i, j))
            elif roll < 0.75:
                step = ("effect", rng.choice(kinds), f"e{next(labels)}", i, j)
                found += [step] * rng.choice((1, 1, 1, 2))  # the same twice: none may be merged
            elif roll < 0.85:
                of_captured = ("effect", rng.choice(kinds), f"e{next(labels)}", 0, 1)
                found.append(("scan", rng.randrange(3), rng.random() < 0.5, steps(depth - 1, 3), of_captured))
            elif roll < 0.9 or not choices:
                where = rng.choice(("values", "nothing", "constants") if shared else ("values", "nothing"))
                found.append(("jit", where, rng.choice((1, 2)), steps(depth - 1, 3)))
            elif roll < 0.96:
                found.append(("cond", i, steps(depth - 1, 2), steps(depth - 1, 2)))
            else:
                found.append(("while", rng.randrange(3), steps(depth - 1, 2)))
        return found

    return steps(2, 6)


def function_of(steps: Sequence[Step]) -> Callable[[Any, Any], Any]:
    """The function of two tensors of shape (3,) that takes these steps."""

    def f(x: Any, y: Any) -> Any:
        values = [x, y]
        for step in steps:
            _take(step, values)
        return values[-1], (values[-2] * 2.0).sum()

    return f


def _take(step: Step, values: list[Any]) -> None:
    def at(i: int) -> Any:
        return values[-1 - i % len(values)]

    match step:
        case "op", number, i, j:
            values.append(OPS[number](at(i), at(j)))
        case "effect", kind, label, i, j:
            y = _effect(kind, label, at(i), at(j))
            if y is not None and i != j:  # else the result is not used
                values.append(y)
        case "scan", length, reverse, inner, of_captured:
            f, captured = function_of(inner), [at(0), at(1)]

            def body(carry: Any, row: Any) -> Any:
                same = captured.copy()
                _take(of_captured, same)
                return f(carry * (same[-1] * 0.125 + 1.0), row)

            rows = tk.stack([at(0), at(1), at(0) * 0.5])[:length]
            values.append(tk.scan(body, at(1), rows, reverse=reverse)[0])
        case "jit", where, times, inner:
            f, pair = function_of(inner), [at(0), at(1)]
            returned = 0 if where == "nothing" else 1
            jitted = tk.jit(lambda x, y: f(x, y)[:returned])
            if where == "constants":
                pair = [tk.tensor([x, -x, 0.5], backend=pair[0].interpreter.base) for x in (0.25, 0.75)]
            for _ in range(times):  # the second call has equal equations, which may not be merged
                values.extend(jitted(*pair))
        case "cond", i, first, second:
            branches = [function_of(inner) for inner in (first, second)]
            values.append(tk.cond(at(i).sum() > 0, *branches, at(0), at(1))[0])
        case "while", count, inner:
            f = function_of(inner)

            def goes_on(state: Any) -> Any:
                tk.debug.callback(_note("condition"), state[1])
                return state[0] < count

            def advanced(state: Any) -> Any:
                return state[0] + 1, f(state[1], state[1])[0]

            # disable_jit runs the first step again if a number changes its dtype, so the counter is a tensor
            start = (at(0) * 0.0).sum(), at(0)
            values.append(tk.while_loop(goes_on, advanced, start)[1])


def _note(label: str) -> Callable[..., Any]:
    def note(*xs: Any) -> None:
        LOG.append((label, tuple([x.tolist() for x in xs])))

    return note


def _effect(kind: str, label: str, x: Any, y: Any) -> Any:
    note = _note(label)

    def value(x: Any, y: Any) -> Any:
        note(x, y)
        return x - y

    match kind:
        case "debug":
            return tk.debug.callback(note, x, y)
        case "io":
            return tk.io_callback(note, None, x, y)
        case "number":
            return tk.debug.callback(note)
        case "value":
            return tk.io_callback(value, x, x, y)
        case "stopped":
            return tk.io_callback(value, x, tk.stop_gradient(x), tk.stop_gradient(y))
        case "pure":
            return tk.pure_callback(lambda x, y: x - y, x, x, y)
    raise AssertionError(kind)
