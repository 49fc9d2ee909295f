"""Optimisers, against other libraries, closed forms and plain-Python versions of the published algorithms."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from core.tests.each import each_of
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ShapeError, StructureError
from tensorken_nn.optimizers.adam import bias_correction

pytestmark = pytest.mark.slow

Numbers = list[float]

RECORDED = Path(__file__).parent / "recorded" / "training.json"
EXPECTED = json.loads(RECORDED.read_text(encoding="ascii"))["optimizers"]

FALLING = nn.warmup(nn.cosine(0.1, 0.01, 6), 2)
EVERY: list[nn.Optimizer] = [
    nn.SGD(FALLING),
    nn.SGD(0.1, 0.9, dampening=0.5),
    nn.MomentumSGD(FALLING, nesterov=True, weight_decay=0.1),
    nn.Adam(FALLING),
    nn.Adam(0.1, beta1=0.0, beta2=0.0, epsilon=0.1),
    nn.AdamW(FALLING, weight_decay=0.3, mask=nn.only_matrices),
    nn.RMSProp(FALLING),
    nn.RMSProp(0.01, momentum=0.5, centered=True),
    nn.Adagrad(FALLING),
    nn.Lion(FALLING),
]
IDS = [f"{i} {type(optimizer).__name__}" for i, optimizer in enumerate(EVERY)]


def parameter_tree(values: Numbers) -> dict[str, Any]:
    """Nested parameters of six numbers."""
    a, b, c, d, e, f = values
    return {
        "first": {"W": tk.tensor([[a, b], [c, d]], tk.float64), "b": tk.tensor([e], tk.float64)},
        "last": (tk.tensor(f, tk.float64),),
    }


def numbers(parameters: Any) -> Numbers:
    return [x for leaf in tree.leaves(parameters) for x in leaf.ravel().tolist()]


def trace(optimizer: nn.Optimizer, start: Numbers, gradients: list[Numbers]) -> list[Numbers]:
    """The parameters after every step."""
    parameters = parameter_tree(start)
    state = optimizer.init(parameters)
    steps = []
    for gradient in gradients:
        parameters, state = optimizer.update(parameters, parameter_tree(gradient), state)
        steps.append(numbers(parameters))
    return steps


def plain_adam(
    rate: Callable[[int], float],
    start: Numbers,
    gradients: list[Numbers],
    b1: float,
    b2: float,
    epsilon: float,
) -> list[Numbers]:
    """Algorithm 1 of Kingma and Ba (2015), line by line, for each number."""
    theta, m, v = list(start), [0.0] * len(start), [0.0] * len(start)
    steps = []
    for t, gradient in enumerate(gradients, start=1):
        for i, g in enumerate(gradient):
            m[i] = b1 * m[i] + (1 - b1) * g
            v[i] = b2 * v[i] + (1 - b2) * g**2
            m_hat = m[i] / (1 - b1**t)
            v_hat = v[i] / (1 - b2**t)
            theta[i] = theta[i] - rate(t) * m_hat / (math.sqrt(v_hat) + epsilon)
        steps.append(list(theta))
    return steps


def draw(steps: int) -> tuple[Numbers, list[Numbers]]:
    """Parameters and gradients of very different sizes, one always zero."""
    rng = random.Random(5)
    scales = (1.0, 1e-3, 1e3, 1e-9, 0.0, 1.0)
    return [rng.gauss(0, 1) for _ in scales], [[rng.gauss(0.3, 1) * s for s in scales] for _ in range(steps)]


@pytest.mark.feature(157)
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.9)])
def test_adam_is_the_published_algorithm(backend: str, betas: tuple[float, float]) -> None:
    start, gradients = draw(100)
    steps = trace(nn.Adam(1e-2, *betas), start, gradients)
    expected = plain_adam(lambda step: 1e-2, start, gradients, *betas, 1e-8)
    worst = max(abs(a - b) for x, y in zip(steps, expected, strict=True) for a, b in zip(x, y, strict=True))
    assert worst < 1e-12
    assert steps[-1][4] == start[4]  # its gradient was always 0


@pytest.mark.feature(157)
def test_a_learning_rate_may_change_from_step_to_step(backend: str) -> None:
    start, gradients = draw(20)
    rate = nn.linear(0.1, 0.0, 20)
    steps = trace(nn.Adam(rate), start, gradients)
    expected = plain_adam(rate, start, gradients, 0.9, 0.999, 1e-8)
    assert steps[-1] == pytest.approx(expected[-1], abs=1e-13)


@pytest.mark.feature(157)
def test_gradient_descent_on_a_parabola_has_a_closed_form(backend: str) -> None:
    """On x**2 / 2 each step multiplies x by 1 - rate."""
    optimizer, x = nn.SGD(0.1), tk.tensor(3.0, tk.float64)
    state = optimizer.init(x)
    for _ in range(50):
        x, state = optimizer.update(x, tk.grad(lambda x: x * x / 2)(x), state)
    assert x.item() == pytest.approx(3.0 * 0.9**50, rel=1e-13)
    assert state.step == 50


@pytest.mark.feature(157)
def test_momentum_adds_up_the_gradients(backend: str) -> None:
    """For a constant gradient g the velocity is g * (1 - m**n) / (1 - m)."""
    start, rate, momentum, steps = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.01, 0.9, 30
    gradient = [1.0, -1.0, 0.5, 0.0, 2.0, 1e-3]
    result = trace(nn.SGD(rate, momentum), start, [gradient] * steps)[-1]
    moved = sum(rate * (1 - momentum**n) / (1 - momentum) for n in range(1, steps + 1))
    assert result == pytest.approx([p - moved * g for p, g in zip(start, gradient, strict=True)], rel=1e-13)


def test_without_momentum_there_is_no_velocity() -> None:
    assert tree.leaves(nn.SGD(0.1).init(parameter_tree([0.0] * 6)).velocity) == []


@pytest.mark.parametrize("optimizer", EVERY, ids=IDS)
def test_nothing_is_changed_in_place_and_the_dtype_is_kept(optimizer: nn.Optimizer) -> None:
    parameters = {"w": tk.tensor([1.0, 2.0])}
    gradients = {"w": tk.tensor([0.5, -0.5])}
    state = optimizer.init(parameters)
    first, after = optimizer.update(parameters, gradients, state)
    assert parameters["w"].tolist() == [1.0, 2.0]
    assert first["w"].dtype is tk.float32
    again, _ = optimizer.update(parameters, gradients, state)
    assert again["w"].tolist() == first["w"].tolist()
    assert after.step == 1 and state.step == 0


@pytest.mark.parametrize("optimizer", EVERY, ids=IDS)
def test_gradients_of_another_structure_are_refused(optimizer: nn.Optimizer) -> None:
    parameters = {"w": tk.zeros(2)}
    with pytest.raises(StructureError, match=r"\bv\b"):
        optimizer.update(parameters, {"v": tk.zeros(2)}, optimizer.init(parameters))


@pytest.mark.parametrize("optimizer", EVERY, ids=IDS)
def test_arguments_of_another_type_are_refused(optimizer: nn.Optimizer) -> None:
    x = tk.ones(2)
    state = optimizer.init(x)
    name, kind = type(optimizer).__name__, type(state).__name__
    for wrong in (x, None, optimizer.init, (0, x)):
        message = (
            rf"^{name}: update\(parameters, gradients, state\) needs an? {kind}, made by init\(parameters\)"
        )
        with pytest.raises(ArgumentError, match=message):
            optimizer.update(x, x, wrong)
    for gradient in (1.0, [1.0, 2.0], None):
        with pytest.raises(
            ArgumentError, match=r"^update: a gradient is a \w+, need a tensor; call update\(parameters"
        ):
            optimizer.update(x, gradient, state)
    with pytest.raises(StructureError, match=r"^update: the gradients"):
        optimizer.update([x], state, optimizer.init([x]))


def test_parameters_are_tensors() -> None:
    x, sgd = tk.ones(2), nn.SGD(0.1)
    with pytest.raises(ArgumentError, match=r"^update: a parameter is a float, need a tensor"):
        sgd.update([x, 1.0], [x, x], sgd.init([x, x]))


def test_gradients_of_another_shape_are_refused() -> None:
    """Otherwise gradients and parameters would broadcast."""
    parameters = {"w": tk.zeros(2)}
    with pytest.raises(ShapeError, match=r"a gradient has shape \(\), need \(2,\), that of its parameter"):
        nn.SGD(0.1).update(parameters, {"w": tk.zeros(())}, nn.SGD(0.1).init(parameters))


@pytest.mark.parametrize("optimizer", EVERY, ids=IDS)
def test_an_empty_tree_of_parameters_works(optimizer: nn.Optimizer) -> None:
    parameters: Any = {"w": (), "b": None}
    updated, state = optimizer.update(parameters, parameters, optimizer.init(parameters))
    assert updated == parameters
    assert state.step == 1


# ---- other libraries ---------------------------------------------------------------------------------------


@pytest.mark.feature(157)
@pytest.mark.parametrize("case", EXPECTED["cases"], ids=lambda case: f"{case['optimizer']} {case['options']}")
def test_a_hundred_steps_agree_with_other_libraries(case: Any) -> None:
    with tk.use_backend("numpy"):
        optimizer = getattr(nn, case["optimizer"])(**case["options"])
        steps = trace(optimizer, EXPECTED["start"], EXPECTED["gradients"])
    assert len(steps) == 100
    for step, expected in case["parameters"].items():
        assert steps[int(step) - 1] == pytest.approx(expected, rel=1e-11, abs=1e-13)


def test_each_optimizer_is_compared() -> None:
    names = {case["optimizer"] for case in EXPECTED["cases"]}
    assert names | {"MomentumSGD"} == {type(optimizer).__name__ for optimizer in EVERY}
    assert nn.MomentumSGD(0.1) == nn.MomentumSGD(0.1, 0.9)


# ---- compiled steps ----------------------------------------------------------------------------------------


def descend(optimizer: nn.Optimizer, dtype: Any, compiled: bool, steps: int = 10) -> tuple[Any, Any, int]:
    """The parameters and the state after steps on a small loss, and the number of times that the step was traced."""
    traces = 0

    def loss(p: Any) -> Any:
        return ((p["w"] @ p["b"][0] * p["b"][1]).square().sum() + (p["w"].square() * 0.1).sum()) * 0.1

    def step(parameters: Any, state: Any) -> Any:
        nonlocal traces
        traces += 1
        return optimizer.update(parameters, tk.grad(loss)(parameters), state)

    parameters: Any = {
        "w": tk.tensor([[1.0, 2.0], [3.0, -1.0]], dtype),
        "b": (tk.tensor([0.5, 1.0], dtype), tk.tensor(2.0, dtype)),
    }
    state = optimizer.init(parameters)
    run_step = tk.jit(step) if compiled else step
    for _ in range(steps):
        parameters, state = run_step(parameters, state)
    return parameters, state, traces


@pytest.mark.feature(157)
@pytest.mark.parametrize("optimizer", EVERY, ids=IDS)
@pytest.mark.parametrize("dtype", [tk.float64, tk.float32], ids=str)
def test_compiled_steps_are_traced_once_and_agree_with_eager_ones(
    backend: str, optimizer: nn.Optimizer, dtype: Any
) -> None:
    """In compiled steps, the step number, the rate and the bias correction are tensors."""
    expected, plain, eager_traces = descend(optimizer, dtype, compiled=False)
    parameters, state, compiled_traces = descend(optimizer, dtype, compiled=True)
    assert (eager_traces, compiled_traces) == (10, 1)
    assert (plain.step, int(state.step), state.step.dtype) == (10, 10, tk.int32)
    assert {x.dtype for x in tree.leaves(parameters)} == {dtype}
    bound = 1e-13 if dtype is tk.float64 else 3e-6
    assert numbers(parameters) == pytest.approx(numbers(expected), rel=bound, abs=bound)


def test_each_parameter_keeps_its_dtype() -> None:
    """Scalars have the dtype of the parameter; for float16, steps and moving averages are in float32."""
    parameters = {name: tk.ones(3, dtype=name) for name in ("float16", "float32", "float64")}
    optimizer = nn.AdamW(FALLING)
    step = tk.jit(lambda p, s: optimizer.update(p, p, s))
    updated, state = step(*step(parameters, optimizer.init(parameters)))
    assert {name: x.dtype.name for name, x in updated.items()} == {name: name for name in parameters}
    for slot in (state.mean, state.square):
        assert [x.dtype.name for x in slot.values()] == ["float32", "float32", "float64"]
    assert tree.map(lambda x: round(x[0].item(), 2), updated) == dict.fromkeys(parameters, 0.9)


@pytest.mark.parametrize("optimizer", EVERY, ids=IDS)
@each_of(("dtype", "relative"), [("float16", 3e-3), ("bfloat16", 2e-2)])
def test_narrow_floats_are_updated_in_float32(optimizer: nn.Optimizer, dtype: str, relative: float) -> None:
    """Also for gradients whose squares overflow float16, for zeros, where epsilon underflows, and for late steps."""
    halves = tk.tensor([1.0, -2.0, 0.5], dtype)
    slopes = tk.tensor([1e-4, 3e4, 0.0], dtype)
    results = []
    for p, g in ((halves, slopes), (halves.astype(tk.float32), slopes.astype(tk.float32))):
        state = optimizer.init(p)._replace(step=tk.tensor(70_000))
        for _ in range(3):
            p, state = optimizer.update(p, g, state)
        results.append(p.astype(tk.float32).clip(-1e3, 1e3).tolist())
    assert results[0] == pytest.approx(results[1], rel=relative)


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9, 0.999, 0.99999])
@pytest.mark.parametrize("step", [1, 2, 100, 10_000])
def test_bias_correction_is_accurate_in_float32(beta: float, step: int) -> None:
    expected = -math.expm1(step * math.log(beta)) if beta else 1.0
    assert bias_correction(beta, step) == pytest.approx(expected, rel=1e-10)
    assert float(bias_correction(beta, tk.tensor(float(step)))) == pytest.approx(expected, rel=3e-7)


@pytest.mark.parametrize("optimizer", EVERY, ids=IDS)
def test_an_ensemble_is_updated_by_vmap(optimizer: nn.Optimizer) -> None:
    """Under vmap, each member has its own state, and so its own step and rate."""

    def step(p: Any, state: Any) -> Any:
        return optimizer.update(p, tree.map(lambda x: x * 0.5 - 0.2, p), state)

    members = [(p, optimizer.init(p)) for p in (tk.tensor([1.0, 2.0 * i], tk.float64) for i in range(3))]
    members[1] = step(*members[1])
    together = tree.map(lambda *xs: tk.stack([tk.asarray(x) for x in xs]), *members)
    for _ in range(3):
        together = tk.vmap(step)(*together)
        members = [step(*member) for member in members]
    for i, (p, state) in enumerate(members):
        assert together[0][i].tolist() == pytest.approx(p.tolist(), rel=1e-14)
        assert together[1].step[i].item() == state.step


def test_the_learning_rate_is_differentiable() -> None:
    """The derivative of the loss after a step with respect to the rate of that step: -g * g for descent."""

    def after(rate: tk.Tensor) -> Any:
        optimizer, x = nn.SGD(rate), tk.tensor(3.0, tk.float64)
        updated, _ = optimizer.update(x, x * 2.0, optimizer.init(x))
        return updated.square()

    assert tk.grad(after)(tk.tensor(0.1, tk.float64)).item() == pytest.approx(-2 * 3.0 * (1 - 0.2) * 6.0)


# ---- weight decay ------------------------------------------------------------------------------------------

DECAYING: list[Callable[..., nn.Optimizer]] = [nn.SGD, nn.AdamW, nn.RMSProp, nn.Adagrad, nn.Lion]


@pytest.mark.parametrize("kind", DECAYING)
def test_a_mask_selects_the_parameters_that_decay(backend: str, kind: Callable[..., nn.Optimizer]) -> None:
    """A function of names and parameters, or a tree of bools: a module of them, for a module."""
    model = nn.mlp((2, 3, 1), key=tk.random.key(0))
    model = tree.map(lambda x: x + 0.5, model)
    zeros = tree.map(tk.zeros_like, model)
    trees = tree.map(lambda x: x.ndim == 2, model)
    masks: list[Any] = [nn.only_matrices, trees, lambda name, p: name.endswith("weight")]
    for mask in masks:
        optimizer = kind(0.1, weight_decay=0.5, mask=mask)
        updated, _ = optimizer.update(model, zeros, optimizer.init(model))
        for name, p in nn.named_parameters(model).items():
            same = nn.named_parameters(updated)[name].tolist() == p.tolist()
            assert same == name.endswith("bias"), name
    without_mask = kind(0.1, weight_decay=0.5)
    updated, _ = without_mask.update(model, zeros, without_mask.init(model))
    assert all(
        a.tolist() != b.tolist() for a, b in zip(tree.leaves(model), tree.leaves(updated), strict=True)
    )


def test_a_mask_of_another_structure_is_refused() -> None:
    optimizer, parameters = nn.SGD(0.1, weight_decay=0.1, mask={"v": True}), {"w": tk.zeros(2)}
    with pytest.raises(StructureError, match="the mask"):
        optimizer.update(parameters, parameters, optimizer.init(parameters))


def test_a_small_decay_is_not_lost_to_rounding() -> None:
    """In float32, a factor of 1 - 1e-5 would change the decay by one part in 700, always in the same direction."""
    optimizer, p = (
        nn.AdamW(1e-3, weight_decay=1e-2),
        tk.random.uniform(tk.random.key(0), (4000,), minval=1.0, maxval=2.0),
    )
    updated, _ = optimizer.update(p, tk.zeros_like(p), optimizer.init(p))
    before, after = p.astype(tk.float64), updated.astype(tk.float64)
    assert (1.0 - after / before).mean().item() == pytest.approx(1e-5, rel=4e-4)


# ---- arguments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.SGD(-0.1), r"SGD: learning_rate must not be negative, got -0\.1"),
        (lambda: nn.SGD(0.1, momentum=1.0), r"SGD: momentum must be in \[0, 1\), got 1\.0"),
        (lambda: nn.MomentumSGD(weight_decay=-1.0), "MomentumSGD: weight_decay must not be negative"),
        (
            lambda: nn.SGD(0.1, nesterov=True),
            r"SGD: nesterov needs a momentum and no dampening, got momentum=0\.0",
        ),
        (lambda: nn.Adam(beta2=1.0), r"Adam: beta2 must be in \[0, 1\), got 1\.0"),
        (lambda: nn.AdamW(epsilon=math.nan), "AdamW: epsilon must not be negative, got nan"),
        (lambda: nn.RMSProp(alpha=-0.5), r"RMSProp: alpha must be in \[0, 1\), got -0\.5"),
        (lambda: nn.Adagrad(initial_accumulator=-1.0), "Adagrad: initial_accumulator must not be negative"),
        (lambda: nn.Lion(beta1=2.0), r"Lion: beta1 must be in \[0, 1\), got 2\.0"),
    ],
)
def test_numbers_out_of_range_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()
