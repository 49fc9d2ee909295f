"""Random programs on arrays that lie in memory in any way, with how far apart two right results of them may be."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np

from core.tests.plain import Plain
from core.tests.random_programs.comparing import MOVED, differs, exceeds, perturbed, tolerance
from core.tests.random_programs.design import none_finite
from core.tests.random_programs.drawing import drawn
from core.tests.random_programs.strategies import traced
from tensorken.programs.names import all_programs
from tensorken.programs.passes.inlining import inline
from tensorken.programs.passes.pipeline import optimised
from tensorken.programs.passes.raw_constants import with_raw_constants
from tensorken_core.program.program import Program
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy

RAW = Numpy()

EXACT = frozenset(
    {
        "add", "sub", "mul", "div", "neg", "abs", "square", "sign", "relu", "sqrt", "maximum", "minimum", "where", "lt",
        "eq", "expand", "reshape", "permute", "flip", "crop", "pad", "concatenate", "gather", "scatter_add", "cumsum",
        "sort", "argsort", "cast", "max", "min", "call", "cond", "scan", "while_loop",
    }
)  # fmt: skip
"""Ops whose results are rounded correctly, or not at all: numpy gives the same bits however the operands lie."""


def program_on_arrays(seed: int) -> tuple[Program, list[Any]]:
    """A program as it is traced, or as passes leave it, and arrays for its inputs; a third computes whole numbers."""
    rng = random.Random(f"arrays {seed}")
    draft = drawn(seed, smooth=False, whole=seed % 3 == 0)
    if draft.error is not None:
        raise draft.error
    program, tensors = traced(draft, Fuse(RAW))
    program = optimised(program, RAW) if rng.random() < 0.6 else with_raw_constants(inline(program), RAW)
    return program, [laid_out(np.asarray(x), rng) for x in tensors]


def laid_out(x: Any, rng: random.Random) -> Any:
    """These numbers, or their first row again and again, laid out in one of several ways."""
    way = rng.randrange(5)
    if way == 0:
        return np.asfortranarray(x).reshape(x.shape, order="F")
    if way == 1 and x.ndim:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    if way == 2 and x.ndim and x.shape[0]:
        return np.broadcast_to(x[:1], x.shape)
    if way == 3 and x.ndim:
        return x[::-1].copy()[::-1]
    return x


def is_exact(program: Program) -> bool:
    """Whether all its ops are rounded correctly, or not at all."""
    return all(e.op.name in EXACT for inner in all_programs(program) for e in inner.equations)


def check_near(program: Program, arrays: list[Any], found: Any, expected: Any) -> None:
    """Fail where results are farther apart than they are if those of each equation move in their last places.

    Infinities and NaN depend on the order of terms, as sums may overflow on the way.
    """
    rng = random.Random(len(program.equations))
    runs: list[list[Any]] = []
    for y, (f, w) in enumerate(zip(found, expected, strict=True)):
        f, w = np.asarray(f), np.asarray(w)
        assert (f.shape, f.dtype) == (w.shape, w.dtype)
        off = differs(f, w, False)
        if off.any() and not runs:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                noisy = Plain(RAW, lambda op, y: y if op.name in EXACT else perturbed(np.asarray(y), rng))
                runs += [noisy.run(program, arrays) for _ in range(MOVED)]
        if off.any():
            off &= exceeds(f, w, tolerance(w, [np.asarray(run[y]) for run in runs])) & ~none_finite(f, w)
        assert not off.any(), f"expected {w}, got {f}, differently at {np.argwhere(off).tolist()}"
