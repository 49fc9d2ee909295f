"""Comparison of all ways to run a program: their results must be equal, or equal up to rounding.

All ways are compared with eager evaluation on numpy.  Each step also runs on the reference backend, from the eager
values of its operands, so that errors do not accumulate.  The program also runs on every stack of
interpreters, under `jit` (from some step on, so that arguments have all memory layouts) and under `vmap` (over three
sets of leaves, compared with a loop).
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

import tensorken as tk
from core.tests.random_programs.comparing import (
    Disagreement,
    compared,
    describe,
    differs,
    evaluated,
    exceeds,
    numpy_of,
    program_tolerances,
    step_tolerance,
    tensors,
    type_mismatch,
)
from core.tests.random_programs.design import by_design, refused_by_rule
from core.tests.random_programs.draft import Draft
from core.tests.random_programs.numbers import Array, inexact, is_python, kind
from core.tests.random_programs.program import Program
from core.tests.random_programs.shrinking import shrink
from core.tests.support import LAZIES, STACKS

MOST_EXAMPLES = 3

Way = Callable[[Program, Mapping[str, Array], random.Random], Iterator[Disagreement]]
"""A way to run a program, from the program, the eager values of all names, and a generator of choices."""


def leaves_of(program: Program) -> dict[str, Array]:
    """The values of the leaves."""
    return {leaf.name: leaf.values for leaf in program.leaves}


def raised(way: str, error: Exception, step: Any = None) -> Disagreement:
    """An error where a result was expected."""
    return Disagreement(way, step, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")


def on_reference(program: Program, values: Mapping[str, Array], rng: random.Random) -> Iterator[Disagreement]:
    """Run each step on the reference backend, from the eager values of its operands."""
    for step in program.steps:
        operands = {name: values[name] for name in step.operands}
        try:
            with tk.use_backend("reference"):
                found = [numpy_of(x) for x in step(tk, tensors(operands))]
        except Exception as error:  # noqa: BLE001 -- whatever it raises is judged
            yield raised("reference", error, step)
            continue
        for place, (name, f) in enumerate(zip(step.names, found, strict=True)):
            w = values[name]
            if wrong := type_mismatch(f, w):
                yield Disagreement("reference", step, wrong)
                break
            exact = step.exact or program.whole
            off = differs(f, w, exact, signs=step.exact and not program.whole)
            if off.any() and not exact:
                off &= exceeds(f, w, step_tolerance(step, operands, place))
            if off.any():
                off &= ~by_design(step, operands, f, w)
            if off.any():
                yield Disagreement("reference", step, describe(f, w, off))
                break


def under_jit(program: Program, values: Mapping[str, Array], rng: random.Random) -> Iterator[Disagreement]:
    """Run the program under `jit` from some step on, after a call with other numbers."""
    leaves = leaves_of(program)
    cut = rng.choice((0, 0, len(program.steps) // 2, len(program.steps) - 1))
    head, tail = Program(program.leaves, program.steps[:cut]), program.steps[cut:]
    some = [name for step in tail for name in step.names]
    ends = tuple(
        name for name in some if name in program.ends or (len(program.steps) % 2 and rng.random() < 0.2)
    )
    before = evaluated(head, leaves)
    given = tuple(sorted({name for step in tail for name in step.operands} & before.keys()))

    def run(*xs: Any) -> list[Any]:
        known = dict(zip(given, xs, strict=True))
        for step in tail:
            known.update(zip(step.names, step(tk, known), strict=True))
        return [known[name] for name in ends]

    wanted = [values[name] for name in ends]
    kept = [x if is_python(x) else np.array(numpy_of(x)) for x in map(before.get, given)]
    try:
        compiled = tk.jit(run)
        compiled(*[other_number(before[name]) for name in given])
        found = compiled(*[before[name] for name in given])
    except Exception as error:  # noqa: BLE001 -- whatever it raises is judged
        yield raised(f"jit from step {cut}", error)
        return
    for name, x in zip(given, kept, strict=True):
        if not is_python(x) and differs(numpy_of(before[name]), x, True).any():
            yield Disagreement(f"jit from step {cut}", None, f"the call changed its argument {name}")
            return
    yield from compared(
        f"jit from step {cut}",
        program,
        ends,
        found,
        wanted,
        lambda: program_tolerances(program, leaves, ends),
        [leaves],
    )


def other_number(x: Any) -> Any:
    """Another argument of the same type: flipped, or another Python number."""
    if not is_python(x):
        return tk.flip(x)
    return not x if isinstance(x, bool) else x + 1


def variant(x: Any, number: int) -> Any:
    """Different numbers of the same dtype, for another example; Python numbers stay."""
    if is_python(x):
        return x
    if not number:
        return x
    y = np.roll(x.reshape(-1), number).reshape(x.shape)
    if x.size > 1:
        return y
    if kind(x) == "b":
        return np.asarray(x ^ (number % 2 == 1))
    with np.errstate(all="ignore"):
        if inexact(x):
            return np.asarray(x * np.asarray(0.5, x.dtype) + np.asarray(number, x.dtype), x.dtype)
        return np.asarray(x + np.asarray(number, x.dtype), x.dtype)


def exact(x: Any) -> bool:
    """Whether sums of products of such integers are exact."""
    return bool((np.abs(np.asarray(x).astype("float64")) < 2.0**20).all())


def under_vmap(program: Program, values: Mapping[str, Array], rng: random.Random) -> Iterator[Disagreement]:
    """Run the program under `vmap`, in one of three nestings with `jit`, and compare with a loop over the examples."""
    leaves = leaves_of(program)
    names = list(leaves)
    axes: list[int | None] = [
        None if is_python(leaves[name]) or rng.random() < 0.25 else rng.randrange(leaves[name].ndim + 1)
        for name in names
    ]
    if all(axis is None for axis in axes):
        arrays = [i for i, name in enumerate(names) if not is_python(leaves[name])]
        if not arrays:
            return
        axes[arrays[0]] = 0
    examples = [
        {
            name: leaves[name] if axis is None else variant(leaves[name], k)
            for name, axis in zip(names, axes, strict=True)
        }
        for k in range(rng.randint(1, MOST_EXAMPLES))
    ]
    ends = program.ends
    try:
        each = [evaluated(program, example) for example in examples]
    except tk.errors.TensorkenError:  # some values are refused if they are known, such as singular matrices
        return

    if program.whole and not all(exact(x) for one in each for x in one.values()):
        return

    def run(*xs: Any) -> list[Any]:
        found = program.run(tk, dict(zip(names, xs, strict=True)))
        return [found[name] for name in ends]

    way, f = rng.choice(
        (
            ("vmap", tk.vmap(run, tuple(axes))),
            ("jit of vmap", tk.jit(tk.vmap(run, tuple(axes)))),
            ("vmap of jit", tk.vmap(tk.jit(run), tuple(axes))),
        )
    )
    stacked = [
        examples[0][name] if axis is None else np.stack([example[name] for example in examples], axis)
        for name, axis in zip(names, axes, strict=True)
    ]
    try:
        found = f(*tensors(dict(enumerate(stacked))).values())
    except Exception as error:  # noqa: BLE001 -- whatever it raises is judged
        yield raised(way, error)
        return
    wanted = [np.stack([numpy_of(one[name]) for one in each]) for name in ends]

    def allowed() -> dict[str, Array]:
        rooms = [program_tolerances(program, example, ends) for example in examples]
        return {name: np.stack([r[name] for r in rooms]) for name in ends}

    yield from compared(way, program, ends, found, wanted, allowed, examples)


def on_stack(program: Program, values: Mapping[str, Array], rng: random.Random) -> Iterator[Disagreement]:
    """Run the program on a random stack of interpreters, which may be lazy."""
    name = rng.choice(sorted(STACKS | LAZIES))
    leaves, ends = leaves_of(program), program.ends
    with tk.use_backend((STACKS | LAZIES)[name]):
        try:
            results = evaluated(program, leaves)
            found = [results[end] for end in ends]
        except Exception as error:  # noqa: BLE001 -- whatever it raises is judged
            yield raised(name, error)
            return
        arrays = [numpy_of(x) for x in found]
    yield from compared(
        name,
        program,
        ends,
        arrays,
        [values[end] for end in ends],
        lambda: program_tolerances(program, leaves, ends),
        [leaves],
    )


@contextmanager
def compilers(names: str) -> Iterator[None]:
    """Within the block `jit` uses these compiler plugins."""
    before = os.environ.get("TENSORKEN_COMPILERS")
    os.environ["TENSORKEN_COMPILERS"] = names
    try:
        yield
    finally:
        del os.environ["TENSORKEN_COMPILERS"]
        if before is not None:
            os.environ["TENSORKEN_COMPILERS"] = before


def compiled_by(names: str, way: Way) -> Way:
    """A way with other compiler plugins."""

    def run(program: Program, values: Mapping[str, Array], rng: random.Random) -> Iterator[Disagreement]:
        with compilers(names):
            found = list(way(program, values, rng))
        yield from [replace(one, way=f"{one.way} by {names}") for one in found]

    return run


WAYS: dict[str, Way] = {
    "reference": on_reference,
    "stack": on_stack,
    "jit": under_jit,
    "vmap": under_vmap,
}


def disagreements(program: Program, seed: int, ways: Mapping[str, Way]) -> Iterator[Disagreement]:
    """The disagreements of all ways about a program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = {name: numpy_of(x) for name, x in evaluated(program, leaves_of(program)).items()}
        for name, way in ways.items():
            yield from way(program, values, random.Random(f"{name} {seed}"))


def check_draft(draft: Draft, seed: int, ways: Mapping[str, Way] = WAYS) -> str | None:
    """The first disagreement about a drawn program, with a small program that shows it; None if there is none."""
    program = draft.program
    values = {name: numpy_of(x) for name, x in draft.found.items()}
    for step, error in draft.refused:
        if refused_by_rule(error) is None:
            says = f"{type(error).__name__}: {error}"
            return (
                f"refused: {step.row}: {says}\n{program.only([replace(step, names=('y',))], values).script()}"
            )
    if not program.steps:
        return None
    if draft.error is not None:
        step = program.steps[-1]
        says = f"{type(draft.error).__name__}: {draft.error}"
        return f"refused: {step.row}: {says}\n{program.only([step], values).script()}"
    for name, way in ways.items():
        if found := first_disagreement(program, seed, {name: way}):
            small = shrink(
                program,
                values,
                lambda other, one={name: way}: first_disagreement(other, seed, one) is not None,
            )  # type: ignore[misc]
            return f"{first_disagreement(small, seed, {name: way}) or found}\n{small.script()}"
    return None


def first_disagreement(program: Program, seed: int, ways: Mapping[str, Way]) -> Disagreement | None:
    """The first disagreement about a program; None if there is none."""
    try:
        return next(disagreements(program, seed, ways), None)
    except tk.errors.TensorkenError:  # the smaller program is invalid
        return None
