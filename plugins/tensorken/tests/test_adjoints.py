"""Adjoints as ops of the graph: they agree with reverse mode, and each is initialised and finalised once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tensorken as tk
from core.tests.examples import examples
from core.tests.random_programs.strategies import differentiable, programs
from core.tests.support import FUSED
from tensorken.programs.adjoints import levels
from tensorken_core.errors import ArgumentError, GradientError
from tensorken_core.program.program import Literal

STRATEGIES = [None, "accumulate", "pass on"]


def quadratic(a, b, c, x):
    return a * tk.square(x) + (b * x + c)


AT = (3.0, -2.0, 5.0, 1.5)


def ops(equations):
    return Counter(equation.op.name for equation in equations)


def values(tensors):
    return [t.tolist() for t in tensors]


def obeys_the_protocol(found):
    """Each value is initialised once, before its increments, and finalised once, after these and after its users."""
    open_values, done = set(), set()
    for step in found.steps:
        assert step.kind in ("initialise", "increment", "pass on", "finalise")
        assert step.value not in done
        if step.kind == "finalise":
            assert step.value in open_values
            done.add(step.value)
        elif step.kind == "increment":
            assert step.value in open_values
        elif step.kind == "initialise":
            assert step.value not in open_values
        open_values.add(step.value)
    assert open_values == done == set(found.record)


# ---- the numbers -------------------------------------------------------------------------------------------


@pytest.mark.feature(121, 122, 123)
@pytest.mark.parametrize("strategy", ["accumulate", None])
@settings(deadline=None, max_examples=examples(60))
@given(draft=programs(smooth=True, whole=True), data=st.data())
def test_adjoints_are_those_of_reverse_mode(strategy, draft, data):
    f, leaves = differentiable(draft, FUSED)
    y, pull_back = tk.vjp(f, *leaves)
    numbers = data.draw(st.lists(st.integers(-2, 2), min_size=y.size, max_size=y.size))
    t = tk.tensor(np.array(numbers, "float64").reshape(y.shape), backend=FUSED)
    program = tk.trace(f)(*leaves)
    found = program.adjoints(cotangent=True, strategy=strategy)
    obeys_the_protocol(found)
    assert values(found(*leaves, t)) == values(pull_back(t))
    assert values(tk.jit(found.program)(*leaves, t)) == values(pull_back(t))
    chosen = data.draw(st.sets(st.integers(0, len(leaves) - 1), min_size=1))
    some = program.adjoints(0, tuple(chosen), cotangent=True, strategy=strategy)
    assert values(some(*leaves, t)) == [pull_back(t)[i].tolist() for i in chosen]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_adjoints_of_batches_follow_the_rules_of_users(strategy):
    slope = tk.custom_vjp(lambda x: x * 2.0)
    slope.defvjp(lambda x: (x * 2.0, x), lambda kept, cotangent: (3.0 * kept * cotangent,))
    x = tk.tensor([[1.0, 2.0], [3.0, 4.0]], "float64", backend=FUSED)
    found = tk.trace(tk.vmap(slope))(x).adjoints(cotangent=True, strategy=strategy)
    assert values(found(x, tk.ones_like(x))) == [(3.0 * x).tolist()]


def softmax_loss(params, x):
    h = tk.tanh(x @ params["w"] + params["b"])
    return -tk.log_softmax(h, axis=1).crop(((0, 2), (0, 1))).mean()


PARAMS = {
    "b": tk.tensor([0.5, -0.25], "float64"),
    "w": tk.tensor([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]], "float64"),
}
X = tk.tensor([[1.0, 2.0, 3.0], [-1.0, 0.5, 0.25]], "float64")


@pytest.mark.parametrize(
    "f",
    [
        softmax_loss,
        lambda params, x: tk.jit(softmax_loss)(params, x) * params["b"].sum(),
        lambda params, x: tk.checkpoint(softmax_loss)(params, x) * params["b"].sum(),
        lambda params, x: (tk.concatenate([params["b"], x[0]]) ** 2).sum(),
        lambda params, x: (tk.linalg.qr(params["w"])[1] * 3.0).sum() + tk.linalg.qr(params["w"])[0][0, 0],
        lambda params, x: tk.grad(softmax_loss)(params, x)["w"].sum(),
        lambda params, x: tk.scan(lambda c, row: (tk.sin(c) + row @ params["w"], c), params["b"], x)[0].sum(),
        lambda params, x: tk.cond(x.sum() > 0.0, lambda v: v * v, tk.sin, params["w"]).sum() + (x * x).sum(),
    ],
    ids=["mlp", "jitted", "checkpointed", "concatenated", "factorised", "its-own-gradient", "scan", "cond"],
)
@pytest.mark.parametrize("strategy", ["accumulate", None])
def test_adjoints_of_real_functions(f, strategy):
    program = tk.trace(f)(PARAMS, X)
    found = program.adjoints(strategy=strategy)
    obeys_the_protocol(found)
    b, w, x = found(PARAMS, X)
    params, pulled = tk.grad(f, argnums=(0, 1))(PARAMS, X)
    for own, expected in ((b, params["b"]), (w, params["w"]), (x, pulled)):
        np.testing.assert_allclose(np.asarray(own), np.asarray(expected), rtol=1e-12, atol=1e-14)


@pytest.mark.feature(121)
def test_the_backward_graph_is_an_ordinary_program():
    found = tk.trace(lambda x, y: tk.sin(x) * y)(1.0, 2.0).adjoints(inputs="x")
    assert str(found(tk.symbol("x"), tk.symbol("y"))) == "((1.0 * y) * x.cos())"
    assert found.program(1.0, 2.0).item() == pytest.approx(2.0 * np.cos(1.0))
    assert tk.grad(found.program)(1.0, 2.0).item() == pytest.approx(-2.0 * np.sin(1.0))
    assert tk.vmap(found.program)(tk.ones(3), tk.ones(3)).shape == (3,)
    twice = found.program.adjoints(inputs="x")
    assert twice(1.0, 2.0).item() == pytest.approx(-2.0 * np.sin(1.0))


@pytest.mark.feature(122, 123)
def test_the_product_rule_adds_two_products_and_a_value_used_twice_adds_them_up():
    found = tk.trace(lambda x, y: x * y)(2.0, 5.0).adjoints()
    assert ops(found.added) == {"mul": 2}
    assert values(found(2.0, 5.0)) == [5.0, 2.0]
    found = tk.trace(lambda x: x * x)(3.0).adjoints(inputs="x")
    assert ops(found.added) == {"mul": 2, "add": 1}
    assert found(3.0).item() == 6.0
    assert found.record[found.forward.inputs[0]].increments == 2


@pytest.mark.feature(124)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_chain_of_ten_thousand_ops_is_walked_without_recursion(strategy):
    def chain(x):
        for _ in range(5_000):
            x = tk.sin(-x)
        return x

    found = tk.trace(chain)(0.5).adjoints(inputs="x", strategy=strategy)
    assert len(found.record) == 10_001
    assert found(0.5).item() == pytest.approx(tk.grad(chain)(0.5).item(), rel=1e-6)


# ---- the worked example ------------------------------------------------------------------------------------


@pytest.mark.feature(125)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_worked_example_has_the_levels_and_adjoints_of_its_source(strategy):
    program = tk.trace(quadratic)(*AT)
    t10, t20, t11, t21, t30 = [equation.results[0] for equation in program.equations]
    depth = levels(program)
    assert [depth[v] for v in (*program.inputs, t10, t11, t20, t21, t30)] == [0, 0, 0, 0, 1, 1, 2, 2, 3]
    assert program(*AT).item() == 8.75
    found = program.adjoints(inputs=(t30, t20, t21, t10, t11, "a", "b", "c", "x"), strategy=strategy)
    # dy = 1 dt30 = 1 dt20 + 1 dt21, then a dt10 and 1 dt11; then x^2 da + x db + 1 dc + (2 a x + b) dx
    assert values(found(*AT)) == [1.0, 1.0, 1.0, 3.0, 1.0, 2.25, 1.5, 1.0, 7.0]
    assert program.adjoints(inputs="x")(*AT).item() == 2 * 3.0 * 1.5 - 2.0


# ---- initialise, increment, finalise -----------------------------------------------------------------------


@pytest.mark.feature(126)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_value_is_finalised_once_after_all_its_increments(strategy):
    def f(x, y):
        t = x * y
        u = t + x
        return tk.sin(t) * u + tk.exp(u) * t

    program = tk.trace(f)(0.5, 2.0)
    found = program.adjoints(strategy=strategy)
    obeys_the_protocol(found)
    finalised = Counter(step.value for step in found.steps if step.kind == "finalise")
    assert set(finalised.values()) == {1}
    # A value is finalised after every equation that uses it, so after the values made from it.
    order = {step.value: i for i, step in enumerate(found.steps) if step.kind == "finalise"}
    for equation in program.equations:
        for v in equation.operands:
            assert order[v] > order[equation.results[0]]
    t = program.equations[0].results[0]
    if strategy == "accumulate":
        assert found.record[t].increments == 3
    assert found.record[t].accumulated == (strategy != "pass on")
    text = str(found)
    assert text.count("initialise by") == sum(step.kind == "initialise" for step in found.steps)
    assert text.count("finalise, the adjoint is") == sum(entry.accumulated for entry in found.record.values())


@pytest.mark.feature(127)
def test_accumulating_multiplies_once_where_passing_on_multiplies_for_each_increment():
    def f(a, b):
        t = a * b
        return tk.sin(t) + tk.cos(t)

    program = tk.trace(f)(0.5, 2.0)
    t = program.equations[0].results[0]
    counted = {}
    for strategy in STRATEGIES:
        found = program.adjoints(strategy=strategy)
        by_t = [
            e for e in found.added if e.op.name == "mul" and not set(program.inputs).isdisjoint(e.operands)
        ]
        counted[strategy] = (len(by_t), found.record[t].accumulated)
        assert values(found(0.5, 2.0)) == pytest.approx(values(program.adjoints()(0.5, 2.0)), rel=1e-6)
    assert counted == {"accumulate": (2, True), "pass on": (4, False), None: (2, True)}


@pytest.mark.feature(130)
def test_a_sum_passes_two_increments_on_and_a_value_used_once_accumulates_nothing():
    def f(a, b):
        t = a + b
        return tk.sin(t) * tk.cos(t)

    program = tk.trace(f)(0.5, 2.0)
    total, sine, cosine, product = [equation.results[0] for equation in program.equations]
    found = program.adjoints()
    assert [found.record[v].accumulated for v in (total, sine, cosine, product)] == [False] * 4
    assert [found.record[v].increments for v in (total, *program.inputs)] == [2, 2, 2]
    assert found.max_live == 0
    accumulated = program.adjoints(strategy="accumulate")
    assert [accumulated.record[v].increments for v in (total, *program.inputs)] == [2, 1, 1]
    assert accumulated.max_live > 0
    # As in the source: two increments through a sum are four below without storage; or two below, with storage.
    assert [sum(a.record[v].increments for v in program.inputs) for a in (found, accumulated)] == [4, 2]


def test_sums_of_sums_cost_no_more_than_their_number():
    def doubled(x):
        for _ in range(200):
            x = x + x
        return x

    found = tk.trace(doubled)(tk.scalar(1.0, "float64")).adjoints(inputs="x")
    assert len(found.added) < 1000
    assert found(tk.scalar(1.0, "float64")).item() == 2.0**200


@pytest.mark.feature(128)
def test_the_adjoints_of_a_chain_are_freed_on_the_way():
    def chain(x):
        for _ in range(100):
            x = tk.sin(x) * x
        return x.sum()

    found = tk.trace(chain)(tk.ones(3)).adjoints(inputs="x", strategy="accumulate")
    assert len(found.record) > 200
    assert found.max_live <= 3
    # Replaying drops each value after its last use: of the added values, few live at one time.
    added = {v for equation in found.added for v in equation.results}
    alive = most = 0
    for equation, dying in zip(found.program.equations, found.program._deaths(), strict=True):
        alive += len(added.intersection(equation.results))
        most = max(most, alive)
        alive -= len(added.intersection(dying))
    assert most <= 5


@pytest.mark.feature(129)
def test_inputs_that_are_not_requested_add_no_ops():
    def f(x, y):
        return tk.exp(x * tk.sin(tk.exp(y)))

    program = tk.trace(f)(1.0, 2.0)
    by_x = program.adjoints(inputs="x")
    assert ops(by_x.added) == {"mul": 2}
    assert set(by_x.record) == {
        program.inputs[0],
        program.equations[2].results[0],
        program.equations[3].results[0],
    }
    concatenated = tk.trace(lambda x, y: (tk.concatenate([x, tk.sin(y)]) ** 2.0).sum())(
        tk.ones(2), tk.ones(3)
    )
    by_x = concatenated.adjoints(inputs="x")
    assert ops(by_x.added)["crop"] == 1
    assert ops(by_x.added)["cos"] == 0
    without = tk.trace(lambda x, y: tk.exp(y))(1.0, 2.0).adjoints(inputs="x")
    assert without.added == without.steps == ()
    assert isinstance(without.program.outputs[0], Literal)
    assert without(1.0, 2.0).item() == 0.0


@pytest.mark.feature(162)
def test_value_and_adjoints_cost_a_few_times_the_value():
    width, batch = 1000, 8

    def mlp(w1, w2, w3, x):
        return (tk.tanh(tk.tanh(x @ w1) @ w2) @ w3).sum()

    shapes = [(width, width)] * 3 + [(batch, width)]
    program = tk.trace(mlp)(*[tk.zeros(shape) for shape in shapes])
    found = program.adjoints(inputs=(0, 1, 2))

    def multiplications(equations):
        return sum(np.prod(e.results[0].shape) for e in equations if e.op.name == "mul")

    assert multiplications(found.program.equations) < 4 * multiplications(program.equations)


# ---- what is refused ---------------------------------------------------------------------------------------


def test_mistakes_are_one_clear_error():
    program = tk.trace(lambda x, n: (x * x, x.sum(), n))(tk.ones(3), tk.tensor([1, 2]))
    with pytest.raises(GradientError, match=r"output 0 has shape \(3,\), need \(\); pass cotangent=True"):
        program.adjoints()
    with pytest.raises(GradientError, match="output 2 is int32"):
        program.adjoints(2)
    with pytest.raises(GradientError, match="'n' is int32"):
        program.adjoints(1, "n")
    with pytest.raises(ArgumentError, match="has no input 'z'; it has x, n"):
        program.adjoints(1, "z")
    with pytest.raises(ArgumentError, match="3 outputs, but no output 3"):
        program.adjoints(3)
    with pytest.raises(ArgumentError, match="strategy 'both' is unknown"):
        program.adjoints(1, strategy="both")
    with pytest.raises(ArgumentError, match="has no input <float32"):
        program.adjoints(1, tk.trace(tk.sin)(1.0).inputs[0])
    assert program.adjoints(1)(tk.ones(3), tk.tensor([1, 2]))[0].tolist() == [1.0] * 3


def test_the_adjoint_of_the_output_can_be_an_argument():
    program = tk.trace(lambda x, *, scale: {"y": x * scale})(tk.ones(2), scale=3.0)
    found = program.adjoints(inputs="x", cotangent=True)
    assert found(tk.ones(2), tk.tensor([1.0, 10.0]), scale=3.0).tolist() == [3.0, 30.0]
    assert "cotangent: float32[2]" in str(found)


def test_a_program_traced_inside_a_transform_is_differentiated_there():
    def f(a):
        return tk.trace(lambda x: x * x * a)(3.0).adjoints(inputs="x")(3.0)

    assert f(2.0).item() == 12.0
    assert tk.grad(f)(2.0).item() == 6.0
    assert tk.vmap(f)(tk.tensor([1.0, 2.0])).tolist() == [6.0, 12.0]
