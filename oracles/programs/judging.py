"""Comparison with JAX: each step for equal operands, and derivatives of orders 1 to 3."""

from __future__ import annotations

import random
import re
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
from core.tests.random_programs.judging import WAYS, Way, compiled_by, leaves_of, raised
from core.tests.random_programs.numbers import Array, epsilon, inexact, is_python, kind, magnitudes
from core.tests.random_programs.program import Program, Step
from oracles.programs.design import (
    CUT,
    KINK,
    LOSES_CUSTOM_RULES,
    LOSES_PRECISION,
    LOST,
    NEVER_ENDS,
    REFUSED_BY_JAX,
    RULES_OF_JAX,
    adds_bools,
    is_alone,
    never_ends,
)

NARROW_FLOATS = ("float16", "bfloat16", "float32", "complex64")
"""The dtypes whose intermediate results JAX may round in another way; float64 is the judge."""


def differentiated(x: Any) -> bool:
    """Whether a leaf is an operand of derivatives."""
    return not is_python(x) and inexact(x)


def on_jax(program: Program, values: Mapping[str, Array], rng: random.Random) -> Iterator[Disagreement]:
    """Run each step in JAX on Tensorken's values of its operands, and compare the results."""
    run_step = results_of_jax(program, values)
    for step in program.steps:
        operands = {name: values[name] for name in step.operands}
        if adds_bools(step, operands):
            continue
        try:
            results = run_step(step)
        except Exception as error:  # noqa: BLE001 -- any exception is a disagreement
            if not any(message in str(error) for message in REFUSED_BY_JAX):
                yield raised("JAX", error, step)
            continue
        for index, (name, theirs) in enumerate(zip(step.names, results, strict=True)):
            ours = values[name]
            if (kind(theirs), theirs.shape) == (kind(ours), ours.shape):
                theirs = theirs.astype(ours.dtype)
            if mismatch := type_mismatch(theirs, ours):
                if not is_alone(step):
                    yield Disagreement("JAX", step, mismatch)
                break
            different = differs(theirs, ours, step.exact)
            if different.any() and not step.exact:
                different &= exceeds(theirs, ours, step_tolerance(step, operands, index))
            if different.any() and not step.exact and ours.dtype.name in NARROW_FLOATS:
                different &= differs_from_float64(step, operands, index, ours)
            if different.any():
                different &= ~by_design(step, operands, theirs, ours, RULES_OF_JAX)
            if different.any():
                yield Disagreement("JAX", step, describe(theirs, ours, different))
                break


def differs_from_float64(step: Step, operands: Mapping[str, Array], index: int, ours: Array) -> Array:
    """Where Tensorken's result differs from JAX's in float64, whose intermediate results do not overflow."""
    text = re.sub("bfloat16|float16|float32", "float64", step.text).replace("complex64", "complex128")
    wide = {name: x if is_python(x) or not inexact(x) else widened(x) for name, x in operands.items()}
    try:
        other = Step(step.row, step.names, text, False)
        with np.errstate(all="ignore"):
            theirs = results_of_jax(Program((), (other,)), wide)(other)[index].astype(ours.dtype)
    except Exception:  # noqa: BLE001 -- then float64 is no reference
        return np.ones(ours.shape, bool)
    different = differs(theirs, ours, False)
    if not different.any():
        return different
    return different & exceeds(theirs, ours, step_tolerance(step, operands, index))


def widened(x: Array) -> Array:
    """The numbers in float64 or complex128."""
    return x.astype("complex128" if kind(x) == "c" else "float64")


def results_of_jax(program: Program, values: Mapping[str, Array]) -> Callable[[Step], tuple[Array, ...]]:
    """A function that returns JAX's results of a step on these values; one `jit` compiles all steps."""
    import jax

    from oracles.programs.names import NAMES

    errors: dict[Step, Exception] = {}

    endless = {step for step in program.steps if never_ends(step, {x: values[x] for x in step.operands})}

    def run(values: Any) -> dict[int, Any]:
        results = {}
        for number, step in enumerate(program.steps):
            try:
                if step in endless:
                    raise NotImplementedError(NEVER_ENDS)
                results[number] = step(NAMES, values)
            except Exception as error:  # noqa: BLE001 -- any exception is a disagreement
                errors[step] = error
        return results

    arrays = {name: x if is_python(x) else jax.numpy.asarray(x) for name, x in values.items()}
    try:
        results = jax.jit(run)(arrays)
    except (TypeError, NotImplementedError):  # JAX rejects some steps only at the end of a trace
        errors.clear()
        results = run(arrays)

    def result(step: Step) -> tuple[Array, ...]:
        if step in errors:
            raise errors[step]
        return tuple(numpy_of(x) for x in results[program.steps.index(step)])

    return result


def derivatives(program: Program, values: Mapping[str, Array], rng: random.Random) -> Iterator[Disagreement]:
    """Compare derivatives of orders 1 to 3 in random modes, with or without `jit`, with JAX's."""
    if not program.smooth or any(map(is_alone, program.steps)):
        return
    leaves = leaves_of(program)
    modes = ["r", *("".join(rng.choice("fr") for _ in range(order)) for order in (2, 3))]
    xs = [x for x in leaves.values() if differentiated(x)]
    if not xs:
        return
    ts = [np.cos(np.arange(x.size) + k).reshape(x.shape).astype(x.dtype) for k, x in enumerate(xs)]
    ts = [t * (1 - 0.5j) if kind(t) == "c" else t for t in ts]
    compiled = rng.random() < 0.5

    def ours(xs: list[Array]) -> list[list[Array]]:
        f = derivatives_by_modes(tk, tk, program, leaves, modes)
        orders = (tk.jit(f) if compiled else f)([tk.tensor(x) for x in xs], [tk.tensor(t) for t in ts])
        return [[numpy_of(x) for x in values] for values in orders]

    way = f"derivatives {' '.join(modes)}{' under jit' if compiled else ''}"
    try:
        actual = ours(xs)
    except Exception as error:  # noqa: BLE001 -- any exception is a disagreement
        yield Disagreement(way, None, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
        return
    try:
        expected = derivatives_of_jax(program, leaves, modes)(xs, ts)
    except Exception as error:  # noqa: BLE001 -- any exception is a disagreement
        if not any(message in str(error) for message in REFUSED_BY_JAX):
            yield Disagreement(
                way, None, f"JAX: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
            )
        return
    script = program.script()
    is_complex = any(kind(x) == "c" for x in xs)
    if CUT in script and is_complex:
        return
    at_kink = KINK in script and any(kind(x) == "c" and (x == 0).any() for x in xs)
    others: list[list[list[Array]]] = []
    forward: list[list[Array]] = []
    orders = 1 if at_kink else len(modes)
    for order, pairs in enumerate(zip(actual[:orders], expected[:orders], strict=True)):
        finite = [w for w in pairs[1] if w.size and np.isfinite(w).any()]
        scale = max([1.0, *(float(np.nanmax(magnitudes(w), initial=0.0)) for w in finite)])
        for k, (f, w) in enumerate(zip(*pairs, strict=True)):
            if mismatch := type_mismatch(f, w):
                yield Disagreement(way, None, f"order {order + 1}: {mismatch}")
                return
            with np.errstate(all="ignore"):
                different = ~(np.abs(f - w) <= 1e-11 * np.abs(w) + 1e-12 * scale) & ~np.isnan(w) & (f != w)
            if different.any():
                others = others or [ours([perturbed(x, rng) for x in xs]) for _ in range(3)]
                sensitivity = tolerance(f, [other[order][k] for other in others])
                rounding = 2 * epsilon(f) * np.abs(w)  # to the dtype of the leaf
                lost = LOST * scale if LOSES_PRECISION in script else 0.0
                different &= exceeds(f, w, 40 * sensitivity + 1e-10 * scale + rounding + lost)
            if different.any() and LOSES_CUSTOM_RULES in script:
                if is_complex:  # JAX's forward mode has no gradient of complex numbers
                    return
                forward = forward or derivatives_of_jax(program, leaves, modes, forward=True)(xs, ts)
                different &= ~(np.abs(f - forward[order][k]) <= 1e-10 * scale)
            if different.any():
                yield Disagreement(way, None, f"order {order + 1}: {describe(f, w, different)}, by leaf {k}")
                return


def derivatives_by_modes(
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
    names = [name for name, x in leaves.items() if differentiated(x)]
    rest = {name: x if is_python(x) else xp.asarray(x) for name, x in leaves.items() if not differentiated(x)}
    ends = program.ends

    def loss(*xs: Any) -> Any:
        values = program.run(xp, {**rest, **dict(zip(names, xs, strict=True))})
        total = xp.asarray(0.0, dtype="float64")
        for k, name in enumerate(ends):
            y = values[name]
            weights = np.cos(np.arange(int(np.prod(y.shape)), dtype="float64") + k).reshape(y.shape)
            reals = (xp.real(y), xp.imag(y) * 0.5) if "complex" in str(y.dtype) else (y,)
            for part in reals:
                total = total + xp.sum(part.astype("float64") * xp.asarray(weights))
        return total

    def along(f: Any, letter: str, ts: list[Any]) -> Any:
        if letter == "f":
            return lambda *xs: library.jvp(f, tuple(xs), tuple(ts))[1]
        gradients = gradient(f, tuple(range(len(ts))))
        return lambda *xs: sum(xp.sum(xp.real(g * t)) for g, t in zip(gradients(*xs), ts, strict=True))

    def everything(xs: list[Any], ts: list[Any]) -> list[list[Any]]:
        derivatives = []
        for word in modes:
            f = loss
            for letter in word[:-1]:
                f = along(f, letter, ts)
            if word[-1] == "r":
                derivatives.append(list(gradient(f, tuple(range(len(xs))))(*xs)))
            else:
                derivatives.append([along(f, "f", ts)(*xs)])
        return derivatives

    return everything


def derivatives_of_jax(
    program: Program, leaves: Mapping[str, Array], modes: list[str], forward: bool = False
) -> Any:
    """`derivatives_by_modes` in JAX, compiled, with numpy arrays as results."""
    import jax

    from oracles.programs.names import NAMES

    compiled = jax.jit(derivatives_by_modes(jax, NAMES, program, leaves, modes, forward))

    def run(xs: list[Array], ts: list[Array]) -> list[list[Array]]:
        return [[numpy_of(x) for x in values] for values in compiled(xs, ts)]

    return run


WAYS_OF_JAX: dict[str, Way] = {"JAX": on_jax, "derivatives": derivatives}
EVERY_WAY: dict[str, Way] = {
    **WAYS,
    "jit": compiled_by("none", WAYS["jit"]),
    "llvm": compiled_by("llvm", WAYS["jit"]),
    **WAYS_OF_JAX,
}
"""All ways; `llvm` needs the distribution tensorken-llvm."""
