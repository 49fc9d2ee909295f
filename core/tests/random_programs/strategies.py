"""Programs that hypothesis draws, as Python and as traced programs of the language."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from hypothesis import strategies as st

import tensorken as tk
from core.tests.random_programs.draft import Draft
from core.tests.random_programs.drawing import drawn
from core.tests.random_programs.steps import idioms
from core.tests.random_programs.steps.row import Row
from tensorken.programs.names import all_programs
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program
from tensorken_core.tensor.tensor import Tensor


def for_passes(row: Row) -> float:
    """The frequencies of steps in programs for tests of passes: mostly steps that passes simplify."""
    return row.weight * (10.0 if row in idioms.ROWS else 1.0)


def programs(
    smooth: bool = False, whole: bool = False, weight: Callable[[Row], float] = attrgetter("weight")
) -> st.SearchStrategy[Draft]:
    """Programs, drawn evenly from a seed: drawn choice by choice they would be few steps of one kind.

    Args:
        smooth: whether derivatives can be compared.
        whole: whether all numbers are small integers, so that nothing is rounded.
        weight: the relative frequency of each kind of step.
    """

    def draw(seed: int) -> Draft:
        found = drawn(seed, smooth, whole, weight)
        if found.error is not None:
            raise found.error
        return found

    return st.builds(draw, st.integers(0, 2**32 - 1))


def on(backend: RawTensor[Any], draft: Draft) -> list[Tensor]:
    """The leaves as tensors of a backend."""
    return [tk.tensor(leaf.values, backend=backend) for leaf in draft.leaves]


def differentiable(draft: Draft, backend: RawTensor[Any]) -> tuple[Any, list[Tensor]]:
    """A function from the floating-point leaves to the last value, and those leaves."""
    leaves, run = on(backend, draft), function_of(draft, backend)
    floats = [i for i, leaf in enumerate(draft.leaves) if leaf.values.dtype.kind == "f"]

    def last(*xs: Any) -> Any:
        given = dict(zip(floats, xs, strict=True))
        return run(*[given.get(i, x) for i, x in enumerate(leaves)])[-1].astype("float64")

    return last, [leaves[i] for i in floats]


def function_of(draft: Draft, backend: RawTensor[Any], everything: bool = False) -> Any:
    """A function from the leaves to the values that no step uses, or to all values of steps."""
    program = draft.program
    names = [name for step in program.steps for name in step.names] if everything else program.ends

    def run(*leaves: Any) -> list[Any]:
        with tk.use_backend(backend), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = program.run(tk, {leaf.name: x for leaf, x in zip(program.leaves, leaves, strict=True)})
        return [found[name] for name in names]

    return run


def of_the_table(program: Program, loops: bool = True) -> bool:
    """Whether all ops of a program are in the op table; without `loops` also none of them runs programs."""
    found = [e.op for inner in all_programs(program) for e in inner.equations]
    return all(OPS.get(op.name) is op and (loops or op.higher_order is None) for op in found)


def traced(draft: Draft, backend: RawTensor[Any]) -> tuple[Program, list[Tensor]]:
    """The program of the language, and tensors for its inputs; a quarter of the leaves are constants of it.

    On a bare backend, numbers are constants of the program; with `Fuse` they are literals.
    """
    rng = random.Random(len(draft.steps))
    leaves = on(backend, draft)
    run = function_of(draft, backend)
    inputs = [i for i in range(len(leaves)) if rng.random() < 0.75]

    def f(*xs: Any) -> Any:
        given = dict(zip(inputs, xs, strict=True))
        return run(*[given.get(i, x) for i, x in enumerate(leaves)])

    with tk.use_backend(backend):
        program = tk.trace(f)(*[leaves[i] for i in inputs])
    return program, [leaves[i] for i in inputs]
