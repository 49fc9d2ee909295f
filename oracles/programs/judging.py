"""Comparison with JAX: each step for equal operands, and derivatives of orders 1 to 3."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import tensorken as tk
from core.tests.random_programs.comparing import (
    Disagreement,
    describe,
    differs,
    exceeds,
    numpy_of,
    perturbed,
    step_tolerance,
    tolerance,
    type_mismatch,
)
from core.tests.random_programs.design import by_design
from core.tests.random_programs.judging import WAYS, Way, leaves_of, raised
from core.tests.random_programs.program import Array, Program, Step
from oracles.programs.design import LOSES_RULES, REFUSED_BY_JAX, RULES_OF_JAX


def on_jax(program: Program, values: Mapping[str, Array], rng: random.Random) -> Iterator[Disagreement]:
    """Run each step in JAX, on Tensorken's values of its operands, and compare the results."""
    results = results_of_jax(program, values)
    for step in program.steps:
        operands = {name: values[name] for name in step.operands}
        try:
            found = results(step)
        except Exception as error:  # noqa: BLE001 -- whatever it raises is judged
            if not any(says in str(error) for says in REFUSED_BY_JAX):
                yield raised("JAX", error, step)
            continue
        for place, (name, f) in enumerate(zip(step.names, found, strict=True)):
            w = values[name]
            if f.dtype != w.dtype and f.dtype.kind == w.dtype.kind and f.shape == w.shape:
                f = f.astype(w.dtype)
            if wrong := type_mismatch(f, w):
                yield Disagreement("JAX", step, wrong)
                break
            off = differs(f, w, step.exact)
            if off.any() and not step.exact:
                off &= exceeds(f, w, step_tolerance(step, operands, place))
            if off.any() and not step.exact and w.dtype in ("float16", "float32"):
                off &= far_from_float64(step, operands, place, w)
            if off.any():
                off &= ~by_design(step, operands, f, w, RULES_OF_JAX)
            if off.any():
                yield Disagreement("JAX", step, describe(f, w, off))
                break


def far_from_float64(step: Step, operands: Mapping[str, Array], place: int, ours: Array) -> Array:
    """Where our result differs from JAX's for the same operands in float64, which has no overflow on the way."""
    text = step.text.replace("float16", "float64").replace("float32", "float64")
    wide = {name: x.astype("float64") if x.dtype.kind == "f" else x for name, x in operands.items()}
    try:
        other = Step(step.row, step.names, text, False)
        with np.errstate(all="ignore"):
            right = results_of_jax(Program((), (other,)), wide)(other)[place].astype(ours.dtype)
    except Exception:  # noqa: BLE001 -- then float64 is no reference
        return np.ones(ours.shape, bool)
    off = differs(right, ours, False)
    return off & exceeds(right, ours, step_tolerance(step, operands, place)) if off.any() else off


def results_of_jax(program: Program, values: Mapping[str, Array]) -> Callable[[Step], tuple[Array, ...]]:
    """A function that returns JAX's results of a step for these values; all steps are compiled together."""
    import jax

    from oracles.programs.names import NAMES

    refused: dict[Step, Exception] = {}

    def run(values: Any) -> dict[int, Any]:
        found = {}
        for number, step in enumerate(program.steps):
            try:
                found[number] = step(NAMES, values)
            except Exception as error:  # noqa: BLE001 -- whatever it raises is judged
                refused[step] = error
        return found

    given = {name: jax.numpy.asarray(x) for name, x in values.items()}
    try:
        results = jax.jit(run)(given)
    except (TypeError, NotImplementedError):  # JAX rejects some steps only at the end of a trace
        refused.clear()
        results = run(given)

    def result(step: Step) -> tuple[Array, ...]:
        if step in refused:
            raise refused[step]
        return tuple(numpy_of(x) for x in results[program.steps.index(step)])

    return result


def derivatives(program: Program, values: Mapping[str, Array], rng: random.Random) -> Iterator[Disagreement]:
    """Compare derivatives of orders 1 to 3 in random modes, with or without `jit`, with JAX's."""
    if not program.smooth:
        return
    leaves = leaves_of(program)
    modes = ["r", *("".join(rng.choice("fr") for _ in range(order)) for order in (2, 3))]
    xs = [x for x in leaves.values() if x.dtype.kind == "f"]
    if not xs:
        return
    ts = [np.cos(np.arange(x.size) + k).reshape(x.shape) for k, x in enumerate(xs)]
    compiled = rng.random() < 0.5

    def ours(xs: list[Array]) -> list[list[Array]]:
        f = of_orders(tk, tk, program, leaves, modes)
        found = (tk.jit(f) if compiled else f)([tk.tensor(x) for x in xs], [tk.tensor(t) for t in ts])
        return [[numpy_of(x) for x in values] for values in found]

    way = f"derivatives {' '.join(modes)}{' under jit' if compiled else ''}"
    try:
        found = ours(xs)
    except Exception as error:  # noqa: BLE001 -- whatever it raises is judged
        yield Disagreement(way, None, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
        return
    try:
        theirs = orders_of_jax(program, leaves, modes)(xs, ts)
    except Exception as error:  # noqa: BLE001 -- whatever it raises is judged
        if not any(says in str(error) for says in REFUSED_BY_JAX):
            yield Disagreement(
                way, None, f"JAX: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
            )
        return
    others: list[list[list[Array]]] = []
    forward: list[list[Array]] = []
    for order, (values, wanted) in enumerate(zip(found, theirs, strict=True)):
        scale = max([1.0, *(float(np.nanmax(np.abs(w))) for w in wanted if w.size and np.isfinite(w).any())])
        for k, (f, w) in enumerate(zip(values, wanted, strict=True)):
            if wrong := type_mismatch(f, w):
                yield Disagreement(way, None, f"order {order + 1}: {wrong}")
                return
            with np.errstate(all="ignore"):
                off = ~(np.abs(f - w) <= 1e-11 * np.abs(w) + 1e-12 * scale) & ~np.isnan(w) & (f != w)
            if off.any():
                others = others or [ours([perturbed(x, rng) for x in xs]) for _ in range(3)]
                off &= exceeds(f, w, 40 * tolerance(f, [other[order][k] for other in others]) + 1e-10 * scale)
            if off.any() and LOSES_RULES in program.script():
                forward = forward or orders_of_jax(program, leaves, modes, forward=True)(xs, ts)
                off &= ~(np.abs(f - forward[order][k]) <= 1e-10 * scale)
            if off.any():
                yield Disagreement(way, None, f"order {order + 1}: {describe(f, w, off)}, by leaf {k}")
                return


def of_orders(
    library: Any,
    xp: Any,
    program: Program,
    leaves: Mapping[str, Array],
    modes: list[str],
    forward: bool = False,
) -> Callable[[list[Any], list[Any]], list[list[Any]]]:
    """A function of floating-point leaves and tangents: for each word in `modes` the derivative of that order.

    Each letter takes a derivative along the tangents, by `jvp` (f) or by `grad` (r), of the function made by the
    letters before it; a final r takes the gradient.  With `forward`, gradients are computed in forward mode too.
    """
    gradient = library.jacfwd if forward else library.grad
    names = [name for name, x in leaves.items() if x.dtype.kind == "f"]
    rest = {name: xp.asarray(x) for name, x in leaves.items() if x.dtype.kind != "f"}
    ends = program.ends

    def loss(*xs: Any) -> Any:
        values = program.run(xp, {**rest, **dict(zip(names, xs, strict=True))})
        total = xp.asarray(0.0, dtype="float64")
        for k, name in enumerate(ends):
            y = values[name]
            weights = np.cos(np.arange(int(np.prod(y.shape)), dtype="float64") + k).reshape(y.shape)
            total = total + xp.sum(y.astype("float64") * xp.asarray(weights))
        return total

    def along(f: Any, letter: str, ts: list[Any]) -> Any:
        if letter == "f":
            return lambda *xs: library.jvp(f, tuple(xs), tuple(ts))[1]
        gradients = gradient(f, tuple(range(len(ts))))
        return lambda *xs: sum(xp.sum(g * t) for g, t in zip(gradients(*xs), ts, strict=True))

    def everything(xs: list[Any], ts: list[Any]) -> list[list[Any]]:
        found = []
        for word in modes:
            f = loss
            for letter in word[:-1]:
                f = along(f, letter, ts)
            if word[-1] == "r":
                found.append(list(gradient(f, tuple(range(len(xs))))(*xs)))
            else:
                found.append([along(f, "f", ts)(*xs)])
        return found

    return everything


def orders_of_jax(
    program: Program, leaves: Mapping[str, Array], modes: list[str], forward: bool = False
) -> Any:
    """`of_orders` in JAX, compiled, with numpy arrays as results."""
    import jax

    from oracles.programs.names import NAMES

    compiled = jax.jit(of_orders(jax, NAMES, program, leaves, modes, forward))

    def run(xs: list[Array], ts: list[Array]) -> list[list[Array]]:
        return [[numpy_of(x) for x in values] for values in compiled(xs, ts)]

    return run


WAYS_OF_JAX: dict[str, Way] = {"JAX": on_jax, "derivatives": derivatives}
EVERY_WAY: dict[str, Way] = {**WAYS, **WAYS_OF_JAX}
