"""Indices within rows: gathers and scatters of them are computed with the rows, and compute the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from plugins.llvm.tests.test_programs import NUMPY, check, kernels, traced
from tensorken.kernels.integer_bounds import end_of
from tensorken.kernels.positions import with_positions
from tensorken.kernels.reference import run_lowered
from tensorken.programs.ops import IOTA
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Program, Variable
from tensorken_llvm.program import MachineProgram, compiled
from tensorken_llvm.scatters import Scatter
from tensorken_reference.backend import Reference

ROWS = np.random.default_rng(0).normal(size=(7, 6)).astype("float32")
LABELS = np.array([5, 0, 3, 3, -1, 2, -6], "int32")


def ops(program: Program) -> list[str]:
    return [e.op.name for e in with_positions(program, NUMPY).equations]


def code_of(f: Callable[..., Any], *arrays: Any) -> MachineProgram:
    """The machine code of a function that computes the same as numpy's executor."""
    program = traced(f, *arrays)
    code = compiled(program, NUMPY)
    assert isinstance(code, MachineProgram)
    for y, z in zip(code(arrays), program.replay(NUMPY, arrays), strict=True):
        check(y, z)
    return code


def count(n: int) -> Any:
    return tk.tensor(np.arange(n, dtype="int32"), backend=NUMPY)


def loss(logits: Any, labels: Any) -> Any:
    return -tk.take_along_axis(tk.log_softmax(logits, axis=1), labels[:, None], 1).mean()


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (np.arange(7), (0, 0, 1)),
        (np.arange(5, 100, 10), (0, 5, 10)),
        (np.arange(7).reshape(7, 1), (0, 0, 1)),
        (np.arange(7).reshape(1, 7) * np.ones((3, 1), int), (1, 0, 1)),
        (np.arange(7).reshape(7, 1) * np.ones((1, 3), int), (0, 0, 1)),
        (np.arange(6).reshape(2, 3), None),  # along two axes
        (np.arange(6)[::-1], None),
        (np.arange(-1, 6), None),
        (np.array([0, 1, 2, 4]), None),
        (np.array([0.0, 1.0, 2.0]), None),
        (np.zeros(3, int), None),
    ],
)
def test_constants_that_count_along_an_axis_are_computed(x: Any, expected: Any) -> None:
    x = x.astype("float32" if x.dtype.kind == "f" else "int32")
    v, y = Variable(x.shape, tk.float32 if x.dtype.kind == "f" else tk.int32), Variable(x.shape, tk.float32)
    constant = tk.tensor(x, backend=NUMPY)
    program = Program((y,), (v,), (), {v: constant})
    found = with_positions(program, NUMPY)
    assert [e.params[1:4] for e in found.equations] == ([] if expected is None else [expected])
    if expected is not None:
        z = np.ones(x.shape, "float32")
        check(code_of(lambda y: y + constant.astype("float32"), z)([z])[0], z + x.astype("float32"))


@pytest.mark.parametrize("start", [-0.0, 3.0])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
def test_a_scatter_of_one_number_to_each_row_is_a_choice(dtype: str, start: float) -> None:
    x, v = (ROWS * 9).astype(dtype), (ROWS[:, 0] * 9).astype(dtype)
    v[0] = 0
    f: Callable[..., Any]
    for f in (
        lambda x, v, i: tk.grad(lambda x: (x[count(7), i] * v).sum())(x) if dtype != "int32" else x * 2,
        lambda x, v, i: x.at[count(7), i].add(v),
        lambda x, v, i: (x * 2).at[count(7), i].add(-v),
        lambda x, v, i: (x * 0 + int(start)).at[count(7), i].add(v),
    ):
        assert not {"add_at", "scatter_add"} & {*ops(traced(f, x, v, LABELS))}
        code_of(f, x, v, LABELS)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, i: x.at[count(7)[::-1], i].add(1.0),  # the rows in another order
        lambda x, i: x.at[count(7) * 0 + 2, i].add(1.0),
        lambda x, i: x.at[i].add(1.0),
        lambda x, i: x.at[count(6), i[:6]].add(1.0),  # of fewer rows
        lambda x, i: x.at[count(3)[:, None], i[:6].reshape((3, 2))].add(1.0),
    ],
)
def test_other_scatters_stay(f: Callable[..., Any]) -> None:
    code = code_of(f, ROWS, LABELS)
    assert any([isinstance(getattr(step, "computes", None), Scatter) for step in code.source().plan.steps])


def test_a_cross_entropy_and_its_gradient_are_one_pass_over_the_rows() -> None:
    code = code_of(loss, ROWS, LABELS)
    assert kernels(code) == 1
    rows = [step for step in code.source().plan.steps if any([v.shape == ROWS.shape for v in step.reads])]  # type: ignore[union-attr]
    assert len(rows) == 1
    code = code_of(tk.grad(loss), ROWS, LABELS)
    assert len(code.source().plan.steps) == 1
    code_of(tk.value_and_grad(loss), ROWS, LABELS)


@pytest.mark.parametrize("labels", [[6] * 7, [100, -100, 5, 2**31 - 1, -(2**31), 0, -7]])
def test_labels_out_of_range_are_clamped(labels: list[int]) -> None:
    program = traced(tk.value_and_grad(loss), ROWS, LABELS)
    code = compiled(program, NUMPY)
    assert code is not None
    given = [ROWS, np.array(labels, "int32")]
    for y, z in zip(code(given), program.replay(NUMPY, given), strict=True):
        check(y, z)


def _bounded(name: str, x: Variable, number: int) -> Equation:
    from tensorken_core.program.program import Literal

    return Equation(OPS[name], (x, Literal(x.shape, x.dtype, number)), (), (Variable(x.shape, x.dtype),))


def test_integers_between_numbers_have_bounds() -> None:
    x = Variable((3,), tk.int32)
    low = _bounded("maximum", x, 0)
    both = _bounded("minimum", low.results[0], 9)
    below = _bounded("minimum", x, 9)
    negative = _bounded("maximum", x, -1)
    least = _bounded("minimum", negative.results[0], 9)
    wide = Equation(OPS["cast"], both.results, (tk.int64,), (Variable((3,), tk.int64),))
    count = Equation(IOTA, (), ((3,), 0, 5, 10, tk.int32), (Variable((3,), tk.int32),))
    equations = [low, both, below, negative, least, wide, count]
    producers = {e.results[0]: e for e in equations}
    assert [end_of(e.results[0], producers) for e in equations] == [None, 10, None, None, None, 10, 26]


def test_positions_in_the_reference_target() -> None:
    x = Variable((2, 3), tk.int32)
    count, total = (Variable((2, 3), tk.int32) for _ in range(2))
    equations = (
        Equation(IOTA, (), ((2, 3), 1, 4, 2, tk.int32), (count,)),
        Equation(OPS["add"], (x, count), (), (total,)),
    )
    reference = Reference()
    found = run_lowered(
        Program((x,), (total, count), equations),
        reference,
        [reference.new((2, 3), [0, 1, 2, 3, 4, 5], tk.int32)],
    )
    assert [y.data for y in found] == [(4, 7, 10, 7, 10, 13), (4, 6, 8, 4, 6, 8)]


def test_a_gather_by_a_sum_of_a_position_and_an_index_reads_the_row() -> None:
    """In the reference target, where each index is checked."""
    reference = Reference()
    x, i = Variable((3, 4), tk.float32), Variable((3,), tk.int32)
    flat, found = Variable((12,), tk.float32), Variable((3,), tk.float32)
    low = _bounded("maximum", i, 0)
    index = _bounded("minimum", low.results[0], 3)
    start, place = (Variable((3,), tk.int32) for _ in range(2))
    equations = (
        low,
        index,
        Equation(IOTA, (), ((3,), 0, 0, 4, tk.int32), (start,)),
        Equation(OPS["add"], (start, index.results[0]), (), (place,)),
        Equation(OPS["reshape"], (x,), ((12,),), (flat,)),
        Equation(OPS["gather"], (flat, place), (0,), (found,)),
    )
    xs = [
        reference.new((3, 4), [float(n) for n in range(12)], tk.float32),
        reference.new((3,), [9, -1, 2], tk.int32),
    ]
    (y,) = run_lowered(Program((x, i), (found,), equations), reference, xs)
    assert y.data == (3.0, 4.0, 10.0)
