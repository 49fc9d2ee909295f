"""Passes on the programs of branches and loops, and equations that move into or out of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.support import array
from tensorken.programs.passes.control_flow_arguments import with_necessary_arguments
from tensorken.programs.passes.inner_programs import inner_programs, with_inner_programs
from tensorken.programs.passes.loop_invariants import with_loop_invariants_hoisted
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.program.program import Program
from tensorken_numpy.backend import Numpy

pytestmark = pytest.mark.usefixtures("on_numpy")

NUMPY = Numpy()


def ops(program: Program) -> list[str]:
    """The names of the program's ops, in order."""
    return [e.op.name for e in program.equations]


def matrix(*shape: int, seed: int = 0) -> Any:
    """A drawn tensor."""
    return tk.tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))


def after_passes(f: Callable[..., Any], *xs: Any) -> Program:
    """The optimised program; checks that it and the jitted function give the function's results."""
    program = optimised(tk.trace(f)(*xs), NUMPY)
    expected = tk.tree.leaves(f(*xs))
    for found in (program(*xs), tk.jit(f)(*xs)):
        for x, y in zip(tk.tree.leaves(found), expected, strict=True):
            np.testing.assert_allclose(array(x), array(y), rtol=1e-5)
    return program


def recurrent(w: Any, xs: Any) -> Any:
    """The states of a recurrent network along xs, and results that nothing uses."""

    def step(state: Any, x: Any) -> Any:
        state = tk.tanh(state @ w + x)
        return state, (state, tk.exp(x))

    return tk.scan(step, tk.zeros(w.shape[0]), xs)[1][0]


# ---- inside ------------------------------------------------------------------------------------------------


def test_the_body_of_a_scan_is_contracted_and_has_no_dead_code() -> None:
    program = after_passes(recurrent, matrix(5, 5), matrix(7, 5))
    (body,) = inner_programs(program)
    assert ops(body) == ["reshape", "fused_multiply_add", "reshape", "add", "tanh"]
    assert [len(e.results) for e in program.equations if e.op.name == "scan"] == [2]


def test_explain_shows_inner_programs() -> None:
    program = tk.trace(recurrent)(matrix(5, 5), matrix(7, 5))
    whole, step = program.explain().split("\n\n")
    assert whole.splitlines()[0] == "recurrent: 10 equations, 7 after all passes"
    rows = {line.split("  ")[0]: line for line in whole.splitlines()[2:]}
    assert "exp" in rows["control flow arguments"]
    assert "fused_multiply_add" in rows["inner programs"]
    assert step.splitlines()[0] == "step: 7 equations, 5 after all passes"
    assert step.splitlines()[2].startswith("contractions")
    assert "test_passes_inner.py:" in step


@pytest.mark.parametrize("mode", [tk.grad, tk.jacfwd, lambda f: tk.vmap(tk.grad(f), in_axes=(None, 0))])
def test_contractions_are_found_in_derivatives_and_batches_of_a_scan(mode: Any) -> None:
    xs = matrix(7, 5) if mode in (tk.grad, tk.jacfwd) else matrix(3, 7, 5)
    program = after_passes(mode(lambda w, xs: recurrent(w, xs).sum()), matrix(5, 5), xs)
    inner = inner_programs(program)
    assert inner
    assert all(["fused_multiply_add" in ops(body) for body in inner])


def test_both_programs_of_a_while_loop_and_loops_in_loops_are_optimised() -> None:
    def f(w: Any, x: Any) -> Any:
        def outer(x: Any) -> Any:
            return tk.fori_loop(0, 2, lambda i, x: tk.tanh(w @ x) * 1.0, x) * 0.1

        return tk.while_loop(lambda x: (x @ x) + 0.0 * x.sum() > 0.1, outer, x)

    program = after_passes(f, matrix(4, 4), matrix(4))
    condition, body = inner_programs(program)
    assert ops(condition)[-1] in ("lt", "gt")
    assert "fused_multiply_add" in ops(condition)
    assert "fused_multiply_add" in ops(inner_programs(body)[0])
    assert ops(inner_programs(body)[0])[-1] == "tanh"  # the product with 1 is gone


def test_backends_get_optimised_inner_programs() -> None:
    for f in (recurrent, tk.grad(lambda w, xs: recurrent(tk.sin(w), xs).sum())):
        for inner in inner_programs(optimised(tk.trace(f)(matrix(5, 5), matrix(7, 5)), NUMPY)):
            assert optimised(inner, NUMPY) is inner


# ---- control flow arguments --------------------------------------------------------------------------------


def test_literals_are_sunk_into_the_branches() -> None:
    def f(p: Any, x: Any) -> Any:
        return tk.cond(p, lambda x, n: x * n, lambda x, n: x / (n + 0.0), x, 1.0)

    (choice,) = after_passes(f, tk.tensor(True), matrix(3)).equations
    assert len(choice.operands) == 2
    assert [ops(branch) for branch in choice.params] == [[], []]


def test_a_cond_with_a_known_predicate_becomes_its_branch() -> None:
    limit = tk.tensor(2.0)

    def f(x: Any) -> Any:
        return tk.cond(limit * 2.0 > 3.0, lambda x: tk.cond(False, tk.cos, tk.sin, x), tk.exp, x)

    assert ops(after_passes(f, matrix(3))) == ["sin"]


def test_an_operand_that_both_branches_use_is_passed_once() -> None:
    def f(p: Any, w: Any, x: Any) -> Any:
        return tk.cond(p, lambda x: x + w, lambda x: x - w, x)

    (choice,) = after_passes(f, tk.tensor(False), matrix(3), matrix(3, seed=1)).equations
    assert len(choice.operands) == 3


def test_an_unused_counter_is_not_carried() -> None:
    program = after_passes(lambda x: tk.fori_loop(0, 3, lambda i, x: tk.sin(x), x), matrix(3))
    (loop,) = program.equations
    assert len(loop.results) == 1
    assert ops(loop.params[0]) == ["sin"]
    (loop,) = after_passes(lambda x: tk.fori_loop(0, 3, lambda i, x: x + i, x), matrix(3)).equations
    assert len(loop.results) == 2


def test_an_unchanged_carry_is_replaced_by_its_first_value() -> None:
    def f(n: Any, x: Any) -> Any:
        _, x, end, _ = tk.while_loop(
            lambda c: c[0] < c[2], lambda c: (c[0] + 1, c[1] * 2.0, c[2], c[3] + c[0]), (0, x, n, 5)
        )
        return x, end

    program = after_passes(f, tk.tensor(3), matrix(2))
    (loop,) = program.equations
    assert program.outputs[1] is program.inputs[0]
    assert len(loop.results) == 2
    assert len(loop.operands) == 3


def test_a_loop_that_changes_nothing_is_dropped() -> None:
    assert not after_passes(lambda x: tk.fori_loop(0, 3, lambda i, x: x, x), matrix(2)).equations


def test_an_op_keeps_one_operand_for_its_backend() -> None:
    def f() -> Any:
        return tk.scan(lambda c, x: (c, x * 2.0), 0.0, tk.ones(3))[1]

    program = with_necessary_arguments(tk.trace(f)())
    assert [len(e.operands) for e in program.equations if e.op.name == "scan"] in ([], [1])
    assert tk.jit(f)().tolist() == program().tolist() == [2.0, 2.0, 2.0]


def test_a_loop_whose_results_do_not_depend_on_carries_runs() -> None:
    def f(x: Any) -> Any:
        return tk.scan(lambda c, _: (tk.sin(c), x * 0.0 + 2.0), x, length=3)[1]

    def g(x: Any) -> Any:
        return tk.scan(
            lambda c, y: (tk.sin(c), (tk.full((2,), 2.0), tk.full((), -tk.nan))), x, tk.ones((3, 1))
        )[1]

    program = after_passes(g, matrix(2))
    assert [len(e.operands) for e in program.equations if e.op.name == "scan"] in ([], [1])
    assert tk.grad(tk.jit(lambda x: f(x).sum()))(matrix(2)).tolist() == [0.0, 0.0]


# ---- invariants --------------------------------------------------------------------------------------------


def counted(w: Any, x: Any) -> Any:
    """The loop's arguments are carries, so that tracing does not capture them."""
    return tk.fori_loop(0, 3, lambda i, c: (c[0], c[1] * tk.exp(c[0]).sum()), (w, x))[1]


def test_invariants_of_a_body_are_hoisted() -> None:
    program = after_passes(counted, matrix(2, 3), matrix(4))
    assert ops(program)[:2] == ["exp", "sum"]
    (body,) = inner_programs(program)
    assert ops(body) == [
        "expand",
        "mul",
    ]  # expansions stay, since their results are larger than their operands


def test_invariants_of_a_condition_are_hoisted() -> None:
    def f(w: Any, x: Any) -> Any:
        return tk.while_loop(lambda c: c[1] < tk.exp(c[0]).sum(), lambda c: (c[0], c[1] * 2.0), (w, x))[1]

    program = after_passes(f, matrix(2, 3), tk.tensor(1.0))
    assert ops(program)[:2] == ["exp", "sum"]
    condition, body = inner_programs(program)
    assert ops(condition) == ["lt"]
    assert ops(body) == ["mul"]
    assert len(condition.inputs) == len(body.inputs)


def test_equations_with_their_own_scope_are_not_hoisted() -> None:
    program = with_necessary_arguments(tk.trace(counted)(matrix(2, 3), matrix(4)))
    (body,) = inner_programs(program)
    scoped = body.changed(equations=tuple([replace(e, scope=1) for e in body.equations]))
    moved = with_loop_invariants_hoisted(program)
    stays = with_loop_invariants_hoisted(with_inner_programs(program, lambda p: scoped))
    assert "exp" in ops(moved)
    assert "exp" not in ops(stays)
