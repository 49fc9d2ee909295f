"""Fusion groups: elementwise equations that run together, in an order in which operands are computed before use."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import tensorken as tk
from core.tests.examples import examples
from core.tests.plain import bits, elements_of, on
from core.tests.random_programs.draft import Draft
from core.tests.random_programs.strategies import for_passes, programs, traced
from core.tests.support import FUSED
from tensorken.programs.passes.fusion_groups import FusionGroup, fusion_groups, is_elementwise
from tensorken.programs.passes.inlining import inline
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.program.program import Literal, Program
from tensorken_numpy.backend import Numpy

pytestmark = pytest.mark.usefixtures("on_numpy")

NUMPY = Numpy()


def check(program: Program, found: tuple[FusionGroup, ...]) -> None:
    """Each equation is in one group; each group's operands are computed before it; its inputs and outputs are right."""
    assert sorted([id(e) for g in found for e in g.equations]) == sorted([id(e) for e in program.equations])
    known = {*program.inputs, *program.constants}
    used = [{v for e in g.equations for v in e.operands} for g in found]
    for i, g in enumerate(found):
        trailing = [e for e in g.equations if not is_elementwise(e)]
        if len(g.equations) > 1:
            assert all([e.op.name in ("sum", "max", "min") for e in trailing])
            assert (
                len({((e.operands if e in trailing else e.results)[0].shape, e.scope) for e in g.equations})
                == 1
            )
            assert used[i].isdisjoint([v for e in trailing for v in e.results])
        defined = {v for e in g.equations for v in e.results}
        assert set(g.inputs) == {v for v in used[i] - defined if not isinstance(v, Literal)}
        assert len(set(g.inputs)) == len(g.inputs)
        assert known.issuperset(g.inputs)
        elsewhere = set(program.outputs).union(*used[:i], *used[i + 1 :])
        assert set(g.outputs) == defined & elsewhere
        known |= defined


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(weight=for_passes))
def test_groups_in_their_order_are_the_program(draft: Draft) -> None:
    program, xs = traced(draft, FUSED)
    elements = elements_of(xs)
    for one in (inline(program), optimised(program, NUMPY)):
        found = fusion_groups(one)
        assert all([len(g.equations) == 1 or all([is_elementwise(e) for e in g.equations]) for g in found])
        check(one, found)
        check(one, fusion_groups(one, reductions=True))
        in_order = tuple([e for g in found for e in g.equations])
        assert bits(on(one.changed(equations=in_order), NUMPY, elements)) == bits(on(one, NUMPY, elements))


def names(f: Any, *xs: Any) -> list[list[str]]:
    program = optimised(tk.trace(f)(*xs), NUMPY)
    return [
        [e.op.name for e in g.equations] for g in fusion_groups(program) if is_elementwise(g.equations[0])
    ]


@pytest.mark.feature(58)
def test_a_chain_and_its_gradient_are_one_group() -> None:
    f = tk.value_and_grad(lambda x: (tk.tanh(tk.exp(-x * x) / 2 + x) / (1 + x * x)).sum())
    assert len(names(f, tk.ones(7))) == 1


def test_a_value_that_one_later_group_uses_is_computed_there() -> None:
    def f(x: Any, w: Any) -> Any:
        return tk.exp(x) * (w @ x)  # exp(x) could come first, and would have to be stored

    assert [sorted(run) for run in names(f, tk.ones((3, 3)), tk.ones((3, 3)))] == [["exp", "mul"]]


def test_a_user_of_a_groups_sum_is_in_another_group() -> None:
    def f(x: Any) -> Any:
        y = tk.exp(x)
        return y / y.sum(axis=1, keepdims=True)

    assert names(f, tk.ones((2, 3))) == [["exp"], ["div"]]
    program = optimised(tk.trace(f)(tk.ones((2, 3))), NUMPY)
    runs = [[e.op.name for e in g.equations] for g in fusion_groups(program, reductions=True)]
    assert runs == [["exp", "sum"], ["expand"], ["div"]]


def test_groups_do_not_cross_scopes() -> None:
    block = tk.checkpoint(lambda x: tk.exp(tk.sin(x)))
    program = optimised(
        tk.trace(tk.value_and_grad(lambda x: tk.sin(block(x * 2.0)).sum()))(tk.ones(3)), NUMPY
    )
    for g in fusion_groups(program):
        assert len({e.scope for e in g.equations}) == 1
    assert len({e.scope for e in program.equations}) > 1
