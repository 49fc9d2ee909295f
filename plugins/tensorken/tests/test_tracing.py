"""Tracing: the equations are the ops of the function; constants, literals, scopes, and errors."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken_core.errors import (
    ArgumentError,
    ConcretizationError,
    EscapedTensorError,
    ShapeError,
    StructureError,
)
from tensorken_core.program.program import Literal


def names(program):
    return [equation.op.name for equation in program.equations]


def test_a_program_is_the_ops_of_its_function_in_order():
    program = tk.trace(lambda x, y: (tk.sin(x) * y, {"sum": x.sum()}))(tk.ones((2, 3)), 2.0)
    assert names(program) == ["sin", "reshape", "expand", "mul", "sum", "reshape"]
    product, rest = program(tk.zeros((2, 3)), 5.0)
    assert product.tolist() == [[0.0] * 3] * 2
    assert rest["sum"].item() == 0.0


def test_nothing_is_computed_while_a_function_is_traced():
    x = tk.symbol("x", (2,))
    program = tk.trace(lambda v: v * v + x)(tk.symbol("v", (2,)))
    assert str(program(tk.symbol("w", (2,)))) == str(tk.symbol("w", (2,)) * tk.symbol("w", (2,)) + x)


def test_each_equation_has_its_line_of_user_code():
    def f(x):
        y = tk.exp(x)
        return y + 1.0

    program = tk.trace(f)(1.0)
    exp, add = program.equations
    assert exp.origin is not None
    assert add.origin is not None
    assert exp.origin.file == __file__
    assert add.origin.line == exp.origin.line + 1
    assert "y = tk.exp(x)" in str(exp.origin)


def test_each_captured_tensor_is_one_constant():
    weights, offset = tk.tensor([1.0, 2.0]), tk.tensor(3.0)
    program = tk.trace(lambda x: (x * weights + offset) * weights)(tk.ones(2))
    assert len(program.constants) <= 3
    assert program(tk.ones(2)).tolist() == [4.0, 10.0]


def test_numbers_are_literals():
    program = tk.trace(lambda x: (x * 2 + tk.zeros((3,))).sum() - 1.5)(tk.ones(3))
    literals = {v.value for e in program.equations for v in e.operands if isinstance(v, Literal)}
    assert literals == {2.0, 0.0, 1.5}
    assert not program.constants
    assert all(type(value) is float for value in literals)


def test_values_that_depend_on_no_argument_are_computed_once():
    program = tk.trace(lambda x: x + tk.arange(3).astype("float32") ** 2)(tk.ones(3))
    assert names(program) == ["add"]


@pytest.mark.parametrize("backend", ["numpy", "reference", "string"])
def test_a_program_runs_on_any_backend(backend):
    weights = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
    program = tk.trace(lambda x: tk.tanh(x @ weights) - 0.5)(tk.ones((3, 2)))
    make = {"string": lambda: tk.symbol("x", (3, 2))}.get(backend, lambda: tk.ones((3, 2), backend=backend))
    y = program(make())
    assert y.backend == backend
    assert y.shape == (3, 2)
    if backend != "string":
        expected = tk.tanh(tk.ones((3, 2)) @ weights) - 0.5
        assert y.flatten().tolist() == pytest.approx(expected.flatten().tolist(), rel=1e-6)


def test_a_program_is_differentiated_and_mapped_as_its_function():
    def f(x):
        return (tk.sin(x) * x).sum()

    x = tk.tensor([0.5, 1.5])
    program = tk.trace(f)(x)
    assert tk.grad(program)(x).tolist() == tk.grad(f)(x).tolist()
    assert tk.hessian(program)(x).tolist() == tk.hessian(f)(x).tolist()
    rows = tk.stack([x, 2 * x])
    assert tk.vmap(tk.grad(program))(rows).tolist() == tk.vmap(tk.grad(f))(rows).tolist()
    again = tk.trace(tk.grad(program))(x)
    assert again(x).tolist() == tk.grad(f)(x).tolist()


def test_derivatives_are_taken_while_tracing():
    program = tk.trace(tk.grad(lambda x: x**3))(2.0)
    assert "pow" in names(program)
    assert program(2.0).item() == 12.0


def test_a_trace_inside_a_transform_keeps_the_derivative():
    def f(a):
        program = tk.trace(lambda x: x * a)(3.0)
        return program(3.0)

    assert tk.grad(f)(2.0).item() == 3.0


def test_custom_rules_survive_tracing():
    @tk.custom_jvp
    def f(x):
        return x * x

    f.defjvp(lambda primals, tangents: (primals[0] ** 2, 100.0 * tangents[0]))
    program = tk.trace(f)(3.0)
    assert program(3.0).item() == 9.0
    assert tk.grad(program)(3.0).item() == 100.0


@pytest.mark.parametrize("made", ["inside", "outside"])
def test_functions_with_rules_may_use_constants(made):
    numbers = [1.0, 2.0, 4.0]
    mask = tk.tensor(numbers)

    def f(x):
        return x * x * (mask if made == "outside" else tk.tensor(numbers))

    ruled = tk.custom_vjp(f)
    ruled.defvjp(lambda x: (f(x), x), lambda x, t: (2.0 * x * t * mask,))
    pushed = tk.custom_jvp(f)
    pushed.defjvp(lambda primals, tangents: (f(primals[0]), 2.0 * primals[0] * tangents[0] * mask))
    x = tk.tensor([3.0, 5.0, 7.0])
    for g in (tk.checkpoint(f), ruled, pushed, tk.checkpoint(tk.jit(f)), tk.jit(tk.checkpoint(f))):
        assert tk.trace(g)(x)(x).tolist() == f(x).tolist()
        for h in (lambda x, g=g: tk.jit(g)(x).sum(), tk.jit(lambda x, g=g: g(x).sum())):
            assert tk.grad(h)(x).tolist() == tk.jit(tk.grad(h))(x).tolist() == [6.0, 20.0, 56.0]
        assert tk.vmap(tk.jit(g))(tk.stack([x, x])).tolist() == [f(x).tolist()] * 2


def test_a_rule_whose_forward_half_calls_the_function_is_traced_inside_a_derivative():
    @tk.custom_vjp
    def product(x, y):
        return x * y

    product.defvjp(
        lambda x, y: (product(x, y), (x, y)), lambda kept, t: (3.0 * t * kept[1], 5.0 * t * kept[0])
    )

    def f(x):
        return product(x, tk.sin(x)).sum()

    def slope(g):
        return lambda x: tk.grad(g)(x).sum()

    x = tk.tensor([1.0, -2.0])
    traced = (tk.jit(f), tk.trace(f)(x), lambda x: tk.cond(True, f, lambda x: x.sum(), x))
    traced += (lambda x: tk.scan(lambda c, _: (c + f(x), None), 0.0, length=1)[0],)
    for g in traced:
        for expected, found in ((f, g), (slope(f), slope(g)), (slope(slope(f)), slope(tk.jit(slope(g))))):
            assert tk.grad(found)(x).tolist() == pytest.approx(tk.grad(expected)(x).tolist())


def test_data_dependent_control_flow_is_one_clear_error():
    with pytest.raises(
        ConcretizationError, match=r"trace: this bool of shape \(\) has no value while.*if x > 0.*tk.where"
    ):
        tk.trace(lambda x: x if x > 0 else -x)(1.0)
    with pytest.raises(ConcretizationError, match=r"tk\.fori_loop"):
        tk.trace(lambda x: sum(range(int(x)), x))(1.0)
    assert tk.trace(lambda x: -x)(1.0)(2.0).item() == -2.0


def clipped(x, low, high=2.0):
    return x if low < x.sum() else high


def of_trees(params, *rest, scale=1.0):
    return params if (params["w"][0] * rest[1] * scale).sum() > 0 else rest


def keeps(carry, row):
    return (carry if carry["n"] > row else {"n": row}), None


W = {"w": [np.ones(2), np.ones(3)]}

UNKNOWN = {
    "jit": (
        lambda: tk.jit(clipped)(1.0, 0.0),
        "jit: this bool of shape () has no value while clipped is traced, as it "
        "depends on the arguments x and low (at ",
        "static_argnames=['x', 'low']",
    ),
    "one argument": (
        lambda: tk.jit(lambda x, n: x if n > 0 else -x)(1.0, 2),
        "while <lambda> is traced, as it depends on the argument n (at ",
        "or make it static: tk.jit(f, static_argnames='n')",
    ),
    "an argument beside a static one": (
        lambda: tk.jit(clipped, static_argnums=0)(np.float32(1), 0.0),
        "on the argument low (at ",
        "static_argnames='low'",
    ),
    "a part of an argument": (
        lambda: tk.jit(of_trees)(W, 1.0, 2.0, scale=3.0),
        'on the arguments params["w"][0], rest_1 and scale (at',
        "tk.while_loop",
    ),
    "a tensor with axes": (
        lambda: tk.jit(lambda x: x if tk.all(x) else -x)(tk.ones(2)),
        "the argument x (at",
        "while_loop",
    ),
    "many arguments": (
        lambda: tk.jit(lambda *xs: int(sum(xs)))(1, 2, 3, 4),
        "on the arguments xs_0, xs_1 and 2 more (at",
        "tk.while_loop",
    ),
    "trace": (
        lambda: tk.trace(clipped)(1.0, 0.0),
        "trace: this bool of shape () has no value while clipped is traced, as it "
        "depends on the arguments x and low (at",
        "tk.while_loop",
    ),
    "a derivative within": (
        lambda: tk.jit(lambda x, n: tk.grad(lambda y: y if y * n > 0 else -y)(x))(1.0, 2.0),
        "on the arguments x and n (at",
        "static_argnames=['x', 'n']",
    ),
    "a constant": (
        lambda: tk.jit(lambda x: x if tk.random.normal(tk.random.key(0)) < 9 and x < 3 else -x)(1.0),
        "argument x",
        "static_argnames='x'",
    ),
    "scan": (
        lambda: tk.scan(keeps, {"n": 0.0}, tk.ones(3)),
        "scan: this bool of shape () has no value while keeps is traced, "
        'as it depends on the arguments carry["n"] and row (at',
        "tk.while_loop",
    ),
    "while_loop": (
        lambda: tk.while_loop(lambda c: c < 3, lambda c: c + 1 if c > 1 else c + 2, 0),
        "while_loop: ",
        "argument c ",
    ),
    "the condition": (
        lambda: tk.while_loop(lambda state: 0 < state < 3, lambda c: c, 0),
        "while_loop: ",
        "argument state ",
    ),
    "fori_loop, i": (
        lambda: tk.fori_loop(0, 3, lambda i, v: v if i > 1 else -v, 0),
        "fori_loop: ",
        "argument i ",
    ),
    "fori_loop": (
        lambda: tk.fori_loop(0, 3, lambda i, v: v if v["a"] > 1 else {"a": i}, {"a": 0}),
        "fori_loop: ",
        'argument v["a"] ',
    ),
    "fori_loop to a traced bound": (
        lambda: tk.jit(lambda n: tk.fori_loop(0, n, lambda i, v: v if v * i > 1 else -v, 0))(3),
        "fori_loop: ",
        "arguments i and v ",
    ),
    "cond": (lambda: tk.cond(True, lambda y: y if y > 1 else -y, lambda y: y, 0), "cond: ", "argument y "),
    "an outer argument": (
        lambda: tk.jit(lambda n: tk.scan(lambda c, _: (c if n > 0 else -c, None), 1, length=2))(3),
        "jit: ",
        "argument n ",
        "static_argnames='n'",
    ),
    "checkpoint": (
        lambda: tk.jit(tk.checkpoint(lambda x: x if x > 0 else -x))(1.0),
        "jit: ",
        "while <lambda> is traced",
    ),
}


@each_of("name", UNKNOWN)
def test_an_unknown_value_names_the_arguments_that_it_depends_on(name):
    call, *words = UNKNOWN[name]
    with pytest.raises(ConcretizationError) as caught:
        call()
    message = str(caught.value)
    for word in words:
        assert word in message
    static = "static_argnames" in words[-1]
    assert ("static_argnames" in message) is static
    assert "\n" not in message


SIZES = {
    "zeros": tk.zeros,
    "full": lambda n: tk.full((2, n), 1.0),
    "arange": tk.arange,
    "linspace": lambda n: tk.linspace(0.0, 1.0, n),
    "eye": tk.eye,
    "tri": lambda n: tk.tri(3, k=n),
    "reshape": lambda n: tk.ones(6).reshape((n, -1)),
    "sum": lambda n: tk.ones((2, 3)).sum(n),
    "moveaxis": lambda n: tk.moveaxis(tk.ones((2, 3)), n, 0),
    "repeat": lambda n: tk.repeat(tk.ones(3), n),
    "pad": lambda n: tk.pad(tk.ones(3), n),
    "split": lambda n: tk.split(tk.ones(3), [n]),
    "roll": lambda n: tk.roll(tk.ones(3), n),
    "topk": lambda n: tk.topk(tk.ones(3), n),
    "one_hot": lambda n: tk.one_hot(tk.tensor([1]), n),
    "delete": lambda n: tk.delete(tk.ones(3), [n]),
    "normal": lambda n: tk.random.normal(tk.random.key(1), (n,)),
    "matrix_power": lambda n: tk.linalg.matrix_power(tk.ones((2, 2)), n),
    "scan": lambda n: tk.scan(lambda c, _: (c, None), 1.0, length=n),
}


@each_of("name", SIZES)
def test_an_unknown_size_names_the_argument(name):
    with pytest.raises(
        ConcretizationError, match=rf"^{name}: jit: .*on the argument n .*static_argnames=\'n\'\)$"
    ):
        tk.jit(lambda n: SIZES[name](n))(1)
    tk.jit(lambda n: SIZES[name](n), static_argnames="n")(1)
    with pytest.raises(
        ConcretizationError, match=rf"^{name}: vmap: this value differs between the 2 examples"
    ):
        tk.vmap(SIZES[name])(tk.tensor([1, 1]))


def test_an_argument_that_is_not_a_tensor_is_one_clear_error():
    with pytest.raises(
        ArgumentError, match=r"^trace: argument leaf 1 is a str, need .*; bind .*functools.partial"
    ):
        tk.trace(lambda x, how: x)(1.0, "mean")
    assert tk.trace(functools.partial(lambda how, x: x, "mean"))(1.0)(2.0).item() == 2.0


def test_a_captured_value_can_be_read_while_tracing():
    flag = tk.tensor(True)
    assert names(tk.trace(lambda x: x if flag else -x)(1.0)) == []


def test_escaped_tensors_are_refused():
    kept = []
    tk.trace(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(EscapedTensorError, match=r"made inside trace, which has returned"):
        kept[0] + 1.0


def test_arguments_must_be_like_those_traced():
    program = tk.trace(lambda x, y: x + y["a"])(tk.ones(3), {"a": 1.0})
    with pytest.raises(
        ShapeError, match=r"argument leaf 0 is float32 \(2,\), and this program was traced for float32 \(3,\)"
    ):
        program(tk.ones(2), {"a": 1.0})
    with pytest.raises(StructureError):
        program(tk.ones(3), {"b": 1.0})
    with pytest.raises(ArgumentError, match="need a function"):
        tk.trace(3.0)
    with pytest.raises(ArgumentError, match=r"x.trace\(\)"):
        tk.trace(tk.ones((2, 2)))


def test_a_long_chain_is_traced_and_replayed_without_recursion():
    def chain(x):
        for _ in range(20_000):
            x = x.sin()
        return x

    program = tk.trace(chain)(0.5)
    assert len(program.equations) == 20_000
    assert program(0.5).item() == chain(tk.tensor(0.5)).item()
