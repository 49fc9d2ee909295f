"""The derivative rules of the ops, against numbers from an independent implementation, and their edges."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tensorken as tk

SEEDS = json.loads((Path(__file__).parents[1] / "fixtures" / "seeds.json").read_text(encoding="utf-8"))
CASES = {case["name"]: case for case in SEEDS["op_rules"]["cases"]}
TOLERANCES: dict[str, float] = SEEDS["op_rules"]["tol"]

# What each case applies to its arguments; reductions keep their axes, as the raw ops do.
FUNCTIONS: dict[str, Callable[..., tk.Tensor]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "sum[0]": lambda x: x.sum(0, keepdims=True),
    "sum[0,1]": lambda x: x.sum((0, 1), keepdims=True),
    "max[1]": lambda x: x.max(1, keepdims=True),
    "reshape[3,2]": lambda x: x.reshape(3, 2),
    "permute[1,0]": lambda x: x.permute(1, 0),
    "pad[(1,2),(3,4)]": lambda x: x.pad([(1, 2), (3, 4)]),
    "crop[(0,1),(1,3)]": lambda x: x.crop([(0, 1), (1, 3)]),
    "flip[T,F]": lambda x: x.flip(0),
    "flip[T,T]": lambda x: x.flip((0, 1)),
    "sigmoid": tk.sigmoid,
    "tanh": tk.tanh,
    "expand[1,3]->[4,3]": lambda x: x.expand((4, 3)),
    "max[1] with ties": lambda x: x.max(1, keepdims=True),
    "add broadcast [3,1]+[2,3,4]": lambda a, b: a + b,
    "matmul [2,3]@[3,2]": lambda a, b: a @ b,
}


def test_no_case_is_left_out() -> None:
    assert FUNCTIONS.keys() == CASES.keys()


def inner_product(a: tk.Tensor, b: tk.Tensor) -> float:
    return math.fsum((a * b).reshape(-1).tolist())


@pytest.mark.feature(22, 86, 88, 89, 97, 99, 103, 106, 107, 131, 132, 164, 178)
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_jvp_and_vjp(name: str, dtype: str, backend: str, close: Callable[..., None]) -> None:
    case, f, tolerance = CASES[name], FUNCTIONS[name], {"rtol": TOLERANCES[dtype], "atol": TOLERANCES[dtype]}
    arguments = [tk.tensor(x, dtype) for x in case["args"]]
    tangents = [tk.tensor(t, dtype) for t in case["tangents"]]
    cotangent = tk.tensor(case["cotangent"], dtype)
    close(f(*arguments), case["out"], **tolerance)

    value, pushed = tk.jvp(f, arguments, tangents)
    close(value, case["out"], **tolerance)
    close(pushed, case["jvp"], **tolerance)

    value, pull_back = tk.vjp(f, *arguments)
    pulled = pull_back(cotangent)
    close(value, case["out"], **tolerance)
    assert len(pulled) == len(arguments)
    for found, expected, x in zip(pulled, case["vjp"], arguments, strict=True):
        close(found, expected, **tolerance)
        assert (found.shape, found.dtype) == (x.shape, x.dtype)

    # Each mode is the transpose of the other: <cotangent, jvp> = <vjp, tangent>.
    across = math.fsum(inner_product(p, t) for p, t in zip(pulled, tangents, strict=True))
    assert inner_product(cotangent, pushed) == pytest.approx(
        across, rel=TOLERANCES[dtype], abs=TOLERANCES[dtype]
    )


@pytest.mark.feature(30, 107)
@pytest.mark.parametrize("order", [(1, 2, 0), (2, 0, 1), (0, 2, 1)], ids=str)
def test_permute_is_undone_by_the_inverse_order(
    order: tuple[int, ...], backend: str, close: Callable[..., None]
) -> None:
    """An order of two axes is its own inverse, and so could hide a rule that forgets to invert it."""
    x = tk.linspace(0.0, 23.0, 24).reshape(2, 3, 4)
    y, pull_back = tk.vjp(lambda x: x.permute(order), x)
    assert y.shape == tuple(x.shape[axis] for axis in order)
    close(pull_back(y)[0], x.tolist(), rtol=0.0)
    close(tk.jvp(lambda x: x.permute(order), (x,), (x,))[1], y.tolist(), rtol=0.0)


@pytest.mark.feature(16, 104, 167)
def test_equality_has_no_derivative(backend: str, close: Callable[..., None]) -> None:
    a, b = tk.tensor([1.0, 2.0, 3.0]), tk.tensor([1.0, 5.0, 3.0])

    def f(a: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
        return a.eq(b).astype("float32")

    assert a.eq(b).dtype is tk.bool
    assert a.eq(b).tolist() == [True, False, True]
    close(tk.jvp(f, (a, b), (a, b))[1], [0.0] * 3, rtol=0.0)
    for pulled in tk.vjp(f, a, b)[1](a):
        close(pulled, [0.0] * 3, rtol=0.0)


@pytest.mark.feature(16, 196)
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("case", SEEDS["edge_rules"]["pow"], ids=str)
def test_pow_where_a_careless_rule_gives_nan(
    case: dict[str, Any], dtype: str, backend: str, close: Callable[..., None]
) -> None:
    base, exponent = tk.scalar(case["base"], dtype), tk.scalar(case["exponent"], dtype)
    close(tk.grad(tk.power, 0)(base, exponent), case["d_base"], rtol=0.0)
    close(tk.grad(tk.power, 1)(base, exponent), case["d_exponent"], rtol=0.0)
    # With a constant exponent there is no derivative by it that could be NaN.
    for constant in (case["exponent"], int(case["exponent"]), exponent):
        close(tk.grad(lambda a, c=constant: a**c)(base), case["d_base"], rtol=0.0)
        close(tk.derivative(lambda a, c=constant: a**c)(base), case["d_base"], rtol=0.0)
    close(tk.jvp(tk.power, (base, exponent), (1.0, 0.0))[0], case["base"] ** case["exponent"], rtol=1e-6)


@pytest.mark.feature(178, 196)
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_sigmoid_far_out(dtype: str, backend: str, close: Callable[..., None]) -> None:
    far = tk.scalar(-1000.0, dtype)
    for derivative in (tk.grad, tk.derivative):
        close(derivative(tk.sigmoid)(far), SEEDS["edge_rules"]["sigmoid_grad_at_minus_1000"], rtol=0.0)
        close(derivative(tk.sigmoid)(-far), 0.0, rtol=0.0)
    close(tk.sigmoid(far), 0.0, rtol=0.0)
    close(tk.sigmoid(-far), 1.0, rtol=0.0)


@pytest.mark.feature(178)
def test_reciprocal_and_negative(backend: str, close: Callable[..., None]) -> None:
    x = tk.tensor([0.5, -4.0, 1.0], "float64")
    close(tk.reciprocal(x), [2.0, -0.25, 1.0], rtol=0.0)
    close(tk.elementwise_grad(tk.reciprocal)(x), [-4.0, -0.0625, -1.0], rtol=0.0)
    close(-x, [-0.5, 4.0, -1.0], rtol=0.0)
    assert [math.copysign(1.0, v) for v in (-tk.tensor([0.0, -0.0])).tolist()] == [-1.0, 1.0]
    assert tk.reciprocal(tk.tensor([0.0, -0.0])).tolist() == [math.inf, -math.inf]
    close(tk.derivative(tk.negative)(x), [-1.0] * 3, rtol=0.0)
