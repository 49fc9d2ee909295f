"""Laws of vmap, for every op of the table: one pass over a batch is the loop over its examples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.laws.operands import (
    DIFFERENTIABLE,
    SAMPLES,
    as_function,
    draw,
    dtypes_of,
    over,
    random_like,
    smooth,
)
from core.tests.support import FUSED, STACKS, array, close
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import apply

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_numpy")]
IN_THE_LANGUAGE = [(op, sample) for op, sample in SAMPLES if op is not OPS["fused_multiply_add"]]
SIZE = 3
TOLERANCE = {1: 0.0, 2: 1e-2, 4: 1e-5, 8: 1e-12}  # by the bytes of an element


def flags_of(count):
    """Which operands have examples: every choice but none."""
    return [flags for flags in itertools.product((True, False), repeat=count) if any(flags)][:7]


def examples(op, sample, flags, dtype=None, backend=FUSED):
    """Operands and their in_axes; operands with a flag are drawn for each example and stacked."""
    dtype = dtype or [*dtypes_of(op)][-1]  # the widest
    drawn = [draw(op, sample, seed, dtype, backend) for seed in range(SIZE)]
    operands = [
        tk.stack([drawn[k][i] for k in range(SIZE)]) if flag else drawn[0][i] for i, flag in enumerate(flags)
    ]
    return operands, tuple(0 if flag else None for flag in flags)


def loop(f, operands, in_axes):
    """The results of f on each example, stacked."""
    rows = [
        f(*[x if a is None else x[k] for x, a in zip(operands, in_axes, strict=True)]) for k in range(SIZE)
    ]
    if isinstance(rows[0], tuple):
        return tuple(np.stack([array(row[i]) for row in rows]) for i in range(len(rows[0])))
    return (np.stack([array(row) for row in rows]),)


@pytest.mark.feature(197)
@over(IN_THE_LANGUAGE)
def test_vmap_of_an_op_is_the_loop(op, sample):
    for flags in flags_of(len(sample[0])):
        for dtype in dtypes_of(op):
            operands, in_axes = examples(op, sample, flags, dtype)
            f = lambda *xs: apply(op, xs, sample[1])  # noqa: E731
            close(tk.vmap(f, in_axes)(*operands), loop(f, operands, in_axes), TOLERANCE[dtype.itemsize])


@pytest.mark.feature(197)
@over(DIFFERENTIABLE)
def test_vmap_of_the_derivatives_of_an_op_is_the_loop(op, sample):
    places = tuple(i for i in smooth(op) if i < len(sample[0]))
    for flags in flags_of(len(sample[0])):
        operands, in_axes = examples(op, sample, flags)

        def push(*xs):
            f, at = as_function(op, sample, list(xs), places), [xs[i] for i in places]
            return tk.jvp(f, at, [random_like(x, i) for i, x in enumerate(at)])[1]

        def pull(*xs):
            f, at = as_function(op, sample, list(xs), places), [xs[i] for i in places]
            y, pull_back = tk.vjp(f, *at)
            return pull_back(tk.tree.map(lambda y: random_like(y, "u"), y))

        for derivative in (push, pull):
            close(tk.vmap(derivative, in_axes)(*operands), loop(derivative, operands, in_axes))


@pytest.mark.feature(197)
@over(DIFFERENTIABLE)
def test_the_derivatives_of_vmap_of_an_op_are_those_of_the_loop(op, sample):
    places = tuple(i for i in smooth(op) if i < len(sample[0]))
    for flags in flags_of(len(sample[0])):
        operands, in_axes = examples(op, sample, flags)
        at = [operands[i] for i in places]

        def batched(*chosen, operands=operands, in_axes=in_axes):
            full = list(operands)
            for i, x in zip(places, chosen, strict=True):
                full[i] = x
            return tk.vmap(lambda *xs: apply(op, xs, sample[1]), in_axes)(*full)

        def looped(*chosen, operands=operands, in_axes=in_axes):
            full = list(operands)
            for i, x in zip(places, chosen, strict=True):
                full[i] = x
            rows = [
                apply(op, [x if a is None else x[k] for x, a in zip(full, in_axes, strict=True)], sample[1])
                for k in range(SIZE)
            ]
            return tk.tree.map(lambda *parts: tk.stack(parts), rows[0], *rows[1:])

        v = [random_like(x, i) for i, x in enumerate(at)]
        close(tk.jvp(batched, at, v)[1], tuple(map(array, tk.tree.leaves(tk.jvp(looped, at, v)[1]))))
        y, pull_batched = tk.vjp(batched, *at)
        u = tk.tree.map(lambda y: random_like(y, "u"), y)
        close(pull_batched(u), tuple(map(array, tk.vjp(looped, *at)[1](u))))


@pytest.mark.feature(197)
@over(IN_THE_LANGUAGE)
def test_vmap_of_vmap_of_an_op_is_two_loops(op, sample):
    dtype = [*dtypes_of(op)][-1]
    inner = [draw(op, sample, seed, dtype) for seed in range(4)]
    f = lambda *xs: apply(op, xs, sample[1])  # noqa: E731
    grids = [
        tk.stack([tk.stack([inner[2 * i + j][k] for j in range(2)]) for i in range(2)])
        for k in range(len(sample[0]))
    ]
    results = tk.vmap(tk.vmap(f))(*grids)
    for i, j in itertools.product(range(2), repeat=2):
        expected = f(*inner[2 * i + j])
        for result, wanted in zip(tk.tree.leaves(results), tk.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(array(result)[i, j], array(wanted), rtol=1e-12, atol=1e-12)


@pytest.mark.nightly
@pytest.mark.feature(197)
@over(IN_THE_LANGUAGE)
@each_of("stack", STACKS)
def test_vmap_of_an_op_is_the_loop_on_every_stack_of_interpreters(op, sample, stack):
    operands, in_axes = examples(op, sample, [True] * len(sample[0]), backend=STACKS[stack])
    f = lambda *xs: apply(op, xs, sample[1])  # noqa: E731
    close(tk.vmap(f, in_axes)(*operands), loop(f, operands, in_axes))
