"""Scatters as machine code: every axis and dtype, repeated and invalid indices, and the memory that they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from plugins.llvm.tests.test_programs import NUMPY, check, machine, traced
from tensorken.programs.ops import ADD_AT
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Program, Variable
from tensorken_llvm.program import MachineProgram, compiled
from tensorken_llvm.scatters import Scatter

NUMBERS = np.random.default_rng(0).normal(size=(9, 6, 8)).astype("float32")


def scatters_of(code: MachineProgram) -> list[Scatter]:
    """The scatters among the steps, each of which is machine code."""
    assert len(code.layout.names) == len(code.layout.segments)
    return [
        step.computes
        for step in code.source().plan.steps
        if isinstance(getattr(step, "computes", None), Scatter)
    ]


def agrees(f: Callable[..., Any], *arrays: Any) -> MachineProgram:
    """Compare a compiled function, called twice, with numpy's executor."""
    program = traced(f, *arrays)
    code = compiled(program, NUMPY)
    assert isinstance(code, MachineProgram)
    for factor in (1, 2):
        given = [x if x.dtype.kind == "i" and x.ndim == 1 else x * x.dtype.type(factor) for x in arrays]
        for y, z in zip(code(given), program.replay(NUMPY, given), strict=True):
            check(y, z)
    return code


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_slices_are_added_along_every_axis(dtype: str, kind: str, axis: int) -> None:
    x = (NUMBERS * 4).astype(dtype)
    indices = np.random.default_rng(axis).integers(0, 5, x.shape[axis]).astype(kind)
    (scatter,) = scatters_of(agrees(lambda x, i: x.scatter_add(i, axis, 7), x, indices))
    assert scatter.start is None
    y = np.ones((*x.shape[:axis], 5, *x.shape[axis + 1 :]), dtype)
    (scatter,) = scatters_of(agrees(lambda y, x, i: y + x.scatter_add(i, axis, 5), y, x, indices))
    assert scatter.equation.op is ADD_AT


def test_additions_are_made_in_order_and_other_elements_keep_their_bits() -> None:
    huge = np.float32(2**25)
    x, v = np.array([-0.0, huge], "float32"), np.array([1, 1, -huge], "float32")
    code = machine(lambda x, v, i: x.at[i].add(v), x, v, np.zeros(3, "int32"))
    (found,) = code([x, v, np.ones(3, "int32")])
    assert np.signbit(found[0])
    assert found[1] == 0  # (huge + 1 + 1) - huge


def added_to_itself(x: Any) -> Any:
    """Each element is added to the one of which it is the index."""
    return x.at[x % 3].add(x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: added_to_itself(x[::-1]),
        lambda x: added_to_itself(x.reshape(4, 3).T.reshape(-1)),
        lambda x: added_to_itself(x[:7]),
        lambda x: tk.vmap(added_to_itself, 1)(x.reshape(4, 3)),
    ],
    ids=["flipped", "transposed", "cropped", "batched along the last axis"],
)
def test_slices_that_are_the_value_itself_are_read_before_it_changes(f: Callable[..., Any]) -> None:
    agrees(f, np.arange(12, dtype="int32"))


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("invalid", [-1, 4, 2**31 - 1, -(2**31)])
def test_slices_out_of_range_are_left_out(start: bool, invalid: int) -> None:
    y, x, indices = [
        Variable(shape, tk.float32 if len(shape) == 2 else tk.int32) for shape in ((4, 3), (5, 3), (5,))
    ]
    v = Variable((4, 3), tk.float32)
    op, operands, params = (
        (ADD_AT, (y, x, indices), (0,)) if start else (OPS["scatter_add"], (x, indices), (0, 4))
    )
    code = compiled(Program((y, x, indices), (v,), (Equation(op, operands, params, (v,)),)), NUMPY)
    assert code is not None
    arrays = [
        NUMBERS[0, :4, :3].copy(),
        NUMBERS[1, :5, :3].copy(),
        np.array([0, invalid, 3, 0, invalid], "int32"),
    ]
    expected = arrays[0].copy() if start else np.zeros((4, 3), "float32")
    np.add.at(expected, arrays[2][[0, 2, 3]], arrays[1][[0, 2, 3]])
    np.testing.assert_array_equal(code(arrays)[0], expected)


def _chain(x: Any, v: Any, i: Any) -> Any:
    return tk.exp(x).at[i].add(v).at[i].add(v * 2.0)


@pytest.mark.parametrize(
    ("f", "in_place"),
    [
        (lambda x, v, i: tk.exp(x) + v.scatter_add(i, 0, 6), 1),
        (lambda x, v, i: (tk.exp(x) - v.scatter_add(i, 0, 6)) * 2.0, 1),
        (lambda x, v, i: v.scatter_add(i, 0, 6) - tk.exp(x), 1),
        (lambda x, v, i: tk.exp(x).reshape((48,)) + v.scatter_add(i, 0, 6).reshape((48,)), 1),
        (lambda x, v, i: tk.softmax(x, 1) + v.scatter_add(i, 0, 6), 1),
        (lambda x, v, i: (x @ x.T @ x).at[i].add(v), 1),
        (lambda x, v, i: x[:1].expand((6, 8)).at[i].add(v), 1),
        (_chain, 2),
        (lambda x, v, i: tk.tanh(_chain(x, v, i)).sum(0), 2),
        (lambda x, v, i: x.at[i].add(v), 0),  # the memory is the caller's
        (lambda x, v, i: 2.0 + v.scatter_add(i, 0, 6), 0),
        (lambda x, v, i: (y := tk.exp(x), y.at[i].add(v)), 0),  # another output
        (lambda x, v, i: (y := tk.exp(x)).at[i].add(v) * y, 0),
        (lambda x, v, i: (y := tk.exp(x)).at[i].add(y[:5]), 0),
        (lambda x, v, i: (y := tk.exp(x)).at[i].add(v) + y.at[i].add(v * 2.0), 0),
    ],
)
def test_a_scatter_takes_memory_that_nothing_else_needs(f: Any, in_place: int) -> None:
    code = agrees(f, NUMBERS[0], NUMBERS[1, :5], np.array([5, 0, 3, 0, 0], "int32"))
    assert len(code.source().plan.updated) == in_place


def test_slices_and_indices_are_computed_in_the_loops() -> None:
    places = np.array([5, 0, 3, 0, 0], "int32")
    code = agrees(lambda x, i: (tk.exp(x) * x[:, :1]).scatter_add((i + 1) % 6, 0, 6), NUMBERS[0, :5], places)
    assert len(code.source().plan.steps) == 1
    code = agrees(lambda x, i: x.T.scatter_add(i * 1, 1, 6), NUMBERS[0, :5], places)
    assert len(code.source().plan.steps) == 1
    code = agrees(lambda x, i: (y := tk.exp(x), y.scatter_add(i, 0, 6)), NUMBERS[0, :5], places)
    assert len(code.source().plan.steps) == 2  # which something else needs


def test_a_scatter_within_other_ops_of_the_backend() -> None:
    places = np.array([5, 0, 3, 0, 0], "int32")
    program = traced(
        lambda x, v, i: tk.sort(tk.sort(x, axis=0).at[i].add(v), axis=1), NUMBERS[0], NUMBERS[1, :5], places
    )
    code = compiled(program, NUMPY)
    assert code is not None
    arrays = [NUMBERS[0], NUMBERS[1, :5], places]
    check(code(arrays)[0], program.replay(NUMPY, arrays)[0])


@pytest.mark.parametrize("shapes", [((0, 3), (4, 3)), ((5, 0), (4, 0))])
def test_scatters_of_no_elements(shapes: Any) -> None:
    arrays = [*[np.ones(shape, "float32") for shape in shapes], np.zeros(shapes[0][0], "int32"), NUMBERS]
    code = machine(lambda x, y, i, z: (y + x.scatter_add(i, 0, len(y)), tk.exp(z)), *arrays)
    np.testing.assert_array_equal(code(arrays)[0], arrays[1])


def test_gradients_of_an_embedding_and_of_a_cross_entropy_are_machine_code() -> None:
    table, tokens = NUMBERS[0], np.array([1, 5, 1, 0], "int32")

    def loss(table: Any, tokens: Any) -> Any:
        x = tk.tanh(table[tokens])
        logs = tk.log_softmax(x @ table.T, axis=1)
        return -tk.take_along_axis(logs, tokens[:, None], 1).mean()

    agrees(tk.grad(loss), table, tokens)
