"""For each pass, programs that it changes, and programs that it must not change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.plain import on
from core.tests.support import Required, array
from tensorken.programs.ops import ADD_AT
from tensorken.programs.passes.algebra import simplified
from tensorken.programs.passes.common_subexpressions import without_common_subexpressions
from tensorken.programs.passes.concatenations import joined
from tensorken.programs.passes.constants import with_constants_folded
from tensorken.programs.passes.contractions import contracted
from tensorken.programs.passes.dead_code import without_dead_code
from tensorken.programs.passes.equation_writer import EquationWriter
from tensorken.programs.passes.factors import with_factors_out
from tensorken.programs.passes.inlining import inline
from tensorken.programs.passes.lowering import lowered
from tensorken.programs.passes.movement import with_movement_merged
from tensorken.programs.passes.pipeline import optimised, steps
from tensorken.programs.passes.raw_constants import with_raw_constants
from tensorken.programs.passes.updates import with_scatters_updating
from tensorken_core.errors import BackendError
from tensorken_core.language.dtypes import float32
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

pytestmark = pytest.mark.usefixtures("on_numpy")

NUMPY = Numpy()


def ops(program: Program) -> list[str]:
    """The names of the program's ops, in order."""
    return [e.op.name for e in program.equations]


def traced(f: Callable[..., Any], *xs: Any) -> Program:
    """The program of a function, by default of arguments of shape (2, 3)."""
    return tk.trace(f)(*(xs or [tk.ones((2, 3)) for _ in range(f.__code__.co_argcount)]))


# ---- algebra -----------------------------------------------------------------------------------------------

IDENTITIES: list[tuple[Callable[..., Any], list[str]]] = [
    (lambda x: x * 1.0, []),
    (lambda x: x / 1.0, []),
    (lambda x: x - 0.0, []),
    (lambda x: x + -0.0, []),
    (lambda x: tk.negative(-x), []),
    (lambda x: x**1.0, []),
    (lambda x: x.astype("float64").astype("float32"), []),
    (lambda x: tk.maximum(x, x), []),
    (lambda x: tk.where(x > 0, x, x), []),
    (lambda x: tk.abs(-x), ["abs"]),
    (lambda x: tk.square(-x), ["mul"]),
    (lambda x: x**2.0, ["mul"]),
    (lambda x: x**3.0, ["mul", "mul"]),
    (lambda x: x * -1.0, ["neg"]),
    (lambda x: x / 4.0, ["mul"]),
    (lambda x, y: x + -y, ["sub"]),
    (lambda x, y: -x + y, ["sub"]),
    (lambda x, y: x - -y, ["add"]),
    (lambda x, y: (-x) * (-y), ["mul"]),
    (lambda x, y: x - (-x) * y, ["mul", "add"]),
    (lambda x: -(x * 3.0), ["mul"]),
    (lambda x: x + x, ["mul"]),
    (lambda x: x < x, []),
]
NO_IDENTITIES: list[tuple[Callable[..., Any], list[str]]] = [
    (lambda x: x + 0.0, ["add"]),
    (lambda x: x - -0.0, ["sub"]),
    (lambda x: x * 0.0, ["mul"]),
    (lambda x: x / x, ["div"]),
    (lambda x: x - x, ["sub"]),
    (lambda x: x / 3.0, ["div"]),
    (lambda x: x**0.5, ["pow"]),
    (lambda x, y: -(x - y), ["sub", "neg"]),
    (lambda x: x.astype("float16").astype("float32"), ["cast", "cast"]),
    (lambda x: x / 2.0**127, ["div"]),
]


@pytest.mark.feature(60)
@pytest.mark.parametrize("case", range(len(IDENTITIES)))
def test_algebra_finds_identities(case: int) -> None:
    f, expected = IDENTITIES[case]
    assert ops(simplified(traced(f), NUMPY)) == expected


@pytest.mark.parametrize("case", range(len(NO_IDENTITIES)))
def test_algebra_keeps_expressions_that_are_not_identities_of_floats(case: int) -> None:
    f, expected = NO_IDENTITIES[case]
    assert ops(simplified(traced(f), NUMPY)) == expected


@pytest.mark.parametrize(
    "f",
    [
        lambda i: i + 0,
        lambda i: i * 1,
        lambda i: i | 0,
        lambda i: i ^ 0,
        lambda i: i & i,
        lambda i: i << 0,
        lambda i: i // 1,
        lambda i: i * 0,
        lambda i: i - i,
        lambda i: i ^ i,
        lambda i: i & 0,
    ],
)
def test_algebra_has_more_identities_for_integers(f: Callable[..., Any]) -> None:
    assert ops(simplified(traced(f, tk.ones((2,), dtype=tk.int32)), NUMPY)) == []


def test_powers_stay_where_the_backend_declares_them_to_be_more_accurate_than_products() -> None:
    program = tk.trace(lambda x: x**3.0)(tk.ones((2,), backend=Reference()))
    assert ops(simplified(program, Reference())) == ["pow"]
    half = tk.ones((2,), dtype=tk.float16)
    assert ops(simplified(traced(lambda x: x**3.0, half), NUMPY)) == ["pow"]


# ---- movement ----------------------------------------------------------------------------------------------


@pytest.mark.feature(60)
@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: x.reshape((6,)).reshape((3, 2)), ["reshape"]),
        (lambda x: x.reshape((6,)).reshape((2, 3)), []),
        (lambda x: x.permute((1, 0)).permute((1, 0)), []),
        (lambda x: x.reshape((2, 1, 3)).permute((1, 2, 0)).reshape((3, 2)), ["permute"]),
        (lambda x: x.reshape((2, 1, 3)).permute((1, 0, 2)), ["reshape"]),
        (lambda x: x.permute((1, 0)).reshape((3, 1, 2)).permute((2, 1, 0)).reshape((2, 3)), []),
        (lambda x: tk.flip(tk.flip(x, axis=0), axis=(0, 1)), ["flip"]),
        (lambda x: tk.flip(tk.flip(x, axis=0), axis=0), []),
        (lambda x: tk.pad(x, ((1, 1), (2, 0)))[1:3, 2:], []),
        (lambda x: tk.pad(x, ((1, 1), (2, 0)))[:, 1:], ["pad"]),
        (lambda x: tk.pad(x, ((1, 1), (2, 0)))[2:3, 3:], ["crop"]),
        (lambda x: tk.pad(x, ((1, 1), (2, 0)))[:1, :], []),
        (lambda x: x[:, 1:][:, 1:], ["crop"]),
        (lambda x: x.permute((1, 0)).reshape((6,)), ["permute", "reshape"]),
    ],
)
def test_movement_is_merged_and_cancelled(f: Callable[..., Any], expected: list[str]) -> None:
    program = traced(f)
    after = with_movement_merged(program, NUMPY)
    assert ops(after) == expected
    elements = [[float(i) for i in range(6)]]
    assert on(after, NUMPY, elements) == on(program, NUMPY, elements)


# ---- diagonals ---------------------------------------------------------------------------------------------


def eye(n: int) -> Any:
    return tk.tensor(np.eye(n, dtype="float32"), backend=NUMPY)


DIAGONALS: list[Callable[..., Any]] = [
    lambda x, b: eye(5) @ b,
    lambda x, b: b.T @ eye(5),
    lambda x, b: (eye(5) * x) @ b,
    lambda x, b: (x * eye(5)).T @ b,
    lambda x, b: (eye(5) * x[:, None]) @ b,
    lambda x, b: (2.0 * eye(5) * x[:, None] * x) @ b,
    lambda x, b: b.T @ (eye(5) * x),
    lambda x, b: (eye(5).reshape((1, 5, 1, 5)) * x).sum((0, 2)) @ b,
    lambda x, b: (eye(5) @ b) + (eye(5) * x) @ b,
    lambda x, b: (eye(5) * x) @ x,
]
NO_DIAGONALS: list[Callable[..., Any]] = [
    lambda x, b: (eye(5) * (x[:, None] + x)) @ b,  # whose diagonal is no value of the program
    lambda x, b: (eye(5) + x) @ b,
    lambda x, b: eye(5)[::-1] @ b,
    lambda x, b: tk.tensor(np.eye(5, k=1, dtype="float32"), backend=NUMPY) @ b,
    lambda x, b: tk.tensor(np.ones((5, 5), "float32") + np.eye(5, dtype="float32"), backend=NUMPY) @ b,
    lambda x, b: x @ b,
]


@pytest.mark.parametrize("f", [*DIAGONALS, *NO_DIAGONALS])
def test_products_with_diagonal_matrices_are_products_of_elements(f: Callable[..., Any]) -> None:
    x, b = np.arange(5, dtype="float32") - 2, np.arange(15, dtype="float32").reshape(5, 3) - 7
    program = tk.trace(f)(*[tk.tensor(each, backend=NUMPY) for each in (x, b)])
    after = optimised(program, NUMPY)
    assert ("fused_multiply_add" not in ops(after)) == (f in DIAGONALS)
    (y,), (z,) = after.replay(NUMPY, [x, b]), program.replay(NUMPY, [x, b])
    np.testing.assert_array_equal(y, z)


def test_a_matrix_without_elements_is_no_diagonal() -> None:
    program = tk.trace(lambda b: eye(0) @ b)(tk.ones((0, 3), backend=NUMPY))
    (y,) = optimised(program, NUMPY).replay(NUMPY, [np.ones((0, 3), "float32")])
    assert y.shape == (0, 3)


def test_an_infinity_beside_a_diagonal_stays_in_its_row() -> None:
    b = np.array([[1.0, np.inf], [np.nan, -0.0]], "float32")
    program = optimised(tk.trace(lambda b: eye(2) @ b)(tk.tensor(b, backend=NUMPY)), NUMPY)
    (y,) = program.replay(NUMPY, [b])
    np.testing.assert_array_equal(y, b)
    assert np.signbit(y[1, 1])


@pytest.mark.parametrize("n", [6, 80])
@pytest.mark.parametrize("derivative", [tk.jacfwd, tk.jacrev, tk.hessian])
def test_derivatives_of_all_inputs_multiply_by_no_identity_matrix(derivative: Any, n: int) -> None:
    rng = np.random.default_rng(0)
    w = rng.normal(size=(n, n)).astype("float32") / np.float32(n)
    x = rng.normal(size=n).astype("float32")

    def f(x: Any, w: Any) -> Any:
        y = tk.tanh(tk.tanh(x @ w) @ w)
        return (y * y).sum() if derivative is tk.hessian else y

    program = tk.trace(derivative(f))(*[tk.tensor(each, backend=NUMPY) for each in (x, w)])
    after = optimised(program, NUMPY)
    square = [
        e for e in after.equations if e.op.name == "fused_multiply_add" and len(e.results[0].shape) == 3
    ]
    assert len(square) <= (3 if derivative is tk.hessian else 1)
    assert not after.constants
    (y,), (z,) = after.replay(NUMPY, [x, w]), program.replay(NUMPY, [x, w])
    np.testing.assert_allclose(y, z, rtol=2e-4, atol=2e-6)


# ---- updates -----------------------------------------------------------------------------------------------

PLACES = np.array([1, 0, 1], "int32")
UPDATES: list[tuple[Callable[..., Any], list[str]]] = [
    (lambda x, v, i: x + v.scatter_add(i, 0, 2), ["add_at"]),
    (lambda x, v, i: v.scatter_add(i, 0, 2) + x, ["add_at"]),
    (lambda x, v, i: x - v.scatter_add(i, 0, 2), ["neg", "add_at"]),
    (lambda x, v, i: x - (-v).scatter_add(i, 0, 2), ["add_at"]),
    (lambda x, v, i: v.scatter_add(i, 0, 2) - x, ["neg", "add_at"]),
    (lambda x, v, i: v.scatter_add(i, 0, 2) + (v * v).scatter_add(i, 0, 2), ["mul", "scatter_add", "add_at"]),
    (lambda x, v, i: 1.0 + v.scatter_add(i, 0, 2), ["add_at"]),
    (
        lambda x, v, i: x.reshape((6,)) + v.scatter_add(i, 0, 2).reshape((6,)),
        ["reshape", "reshape", "add_at", "reshape"],
    ),
    (lambda x, v, i: (y := v.scatter_add(i, 0, 2), x + y), ["scatter_add", "add"]),
    (
        lambda x, v, i: (y := v.scatter_add(i, 0, 2).reshape((6,)), x.reshape((6,)) + y),
        ["scatter_add", "reshape", "reshape", "add"],
    ),
    (lambda x, v, i: x * v.scatter_add(i, 0, 2), ["scatter_add", "mul"]),
]


@pytest.mark.parametrize(("f", "expected"), UPDATES)
def test_scatters_start_from_the_value_that_they_are_added_to(
    f: Callable[..., Any], expected: list[str]
) -> None:
    x, v = np.arange(6.0, dtype="float32").reshape(2, 3), np.arange(9.0, dtype="float32").reshape(3, 3) - 4
    program = tk.trace(f)(*[tk.tensor(each, backend=NUMPY) for each in (x, v, PLACES)])
    after = without_dead_code(with_scatters_updating(simplified(program, NUMPY), NUMPY))
    assert ops(without_dead_code(after)) == expected
    for y, z in zip(after.replay(NUMPY, [x, v, PLACES]), program.replay(NUMPY, [x, v, PLACES]), strict=True):
        np.testing.assert_array_equal(y, z)
    assert ops(with_scatters_updating(program, Reference())) == ops(program)  # which has no such op


def test_a_scatter_and_a_reduction_are_added_on_a_backend_with_placements() -> None:
    """Started from the reduction, the scatter would wait for its communication."""

    class Placed(Numpy):
        def with_placement(self, x: Any, placement: Any, batch_axes: int) -> Any:
            return x

    placed = Placed()
    x, v = np.ones((2, 4), "float32"), np.ones((3, 3), "float32")
    for f, names in (
        (lambda x, v, i: x.sum(1, keepdims=True).reshape((2,)) + v.sum(1).scatter_add(i, 0, 2), ["add"]),
        (lambda x, v, i: x.sum(1) - v.sum(1).scatter_add(i, 0, 2), ["sub"]),
        (lambda x, v, i: x[:, 0] + v.sum(1).scatter_add(i, 0, 2), ["add_at"]),
    ):
        program = tk.trace(f)(*[tk.tensor(each, backend=NUMPY) for each in (x, v, PLACES)])
        assert ops(with_scatters_updating(program, placed))[-1:] == names
        assert "add_at" in ops(with_scatters_updating(program, NUMPY))


def test_an_update_keeps_the_bits_of_elements_without_a_slice_and_adds_in_order() -> None:
    program = optimised(
        tk.trace(lambda x, v, i: x.at[i].add(v))(
            *[
                tk.tensor(each, backend=NUMPY)
                for each in (np.zeros(2, "float32"), PLACES.astype("float32"), PLACES)
            ]
        ),
        NUMPY,
    )
    assert ops(program)[-1] == "add_at"
    huge, one = np.float32(2**25), np.float32(1)
    x, v = np.array([-0.0, huge]), np.array([one, one, -huge])
    (found,) = program.replay(NUMPY, [x.astype("float32"), v.astype("float32"), PLACES * 0 + 1])
    assert np.signbit(found[0])
    assert found[1] == 0  # (huge + 1 + 1) - huge


def test_the_body_of_an_update_is_what_numpy_computes() -> None:
    rng = np.random.default_rng(0)
    for axis in range(3):
        y = rng.integers(-9, 9, (2, 3, 4)).astype("float32")
        x = rng.integers(-9, 9, tuple([5 if i == axis else n for i, n in enumerate(y.shape)])).astype(
            "float32"
        )
        indices = rng.integers(0, y.shape[axis], 5).astype("int32")
        assert ADD_AT.body is not None
        tensors = [tk.tensor(each, backend=NUMPY) for each in (y, x, indices)]
        np.testing.assert_array_equal(ADD_AT.body(*tensors, axis), NUMPY.add_at(y, x, indices, axis))


# ---- common subexpressions, constants, lowering ------------------------------------------------------------


def test_common_subexpressions_are_found_whichever_operand_comes_first() -> None:
    program = traced(lambda x, y: (x * y) + (y * x) + (x - y) + (y - x))
    assert ops(without_common_subexpressions(program)) == ["mul", "add", "sub", "add", "sub", "add"]


def test_signed_zeros_are_distinct_literals_and_maximum_of_them_depends_on_the_order() -> None:
    x = Variable((), float32)
    zeros = [Literal((), float32, z) for z in (0.0, -0.0)]
    results = [Variable((), float32) for _ in range(4)]
    pairs = [(x, zeros[0]), (zeros[0], x), (x, zeros[1]), (zeros[1], x)]
    for name, kept in (("div", 4), ("maximum", 4), ("mul", 2)):
        equations = [Equation(OPS[name], pair, (), (y,)) for pair, y in zip(pairs, results, strict=True)]
        program = Program((x,), tuple(results), tuple(equations))
        assert len(without_common_subexpressions(program).equations) == kept


def test_numbers_in_params_are_compared_by_their_bits() -> None:
    x, nan = Variable((2,), float32), float("nan")
    op = replace(OPS["copysign"], name="like", params=("data",))
    found = [Variable((2,), float32) for _ in range(7)]
    given = [(op, (x, x), (z,)) for z in (0.0, -0.0, 1, True, 1.0)]
    given += [(OPS["copysign"], (x, Literal((2,), float32, z)), ()) for z in (nan, -nan)]
    equations = [Equation(*one, (y,)) for one, y in zip(given, found, strict=True)]
    program = Program((x,), tuple(found), tuple(equations))
    assert len(without_common_subexpressions(program).equations) == 7


def test_recomputed_values_are_not_merged_with_the_first_ones() -> None:
    block = tk.checkpoint(lambda x: tk.exp(tk.sin(x)))
    program = optimised(traced(tk.grad(lambda x: block(x).sum()), tk.ones(3)), NUMPY)
    plain = optimised(traced(tk.grad(lambda x: tk.exp(tk.sin(x)).sum()), tk.ones(3)), NUMPY)
    assert ops(plain).count("sin") == 1
    both = optimised(traced(tk.value_and_grad(lambda x: block(x).sum()), tk.ones(3)), NUMPY)
    assert (ops(program).count("sin"), ops(both).count("sin")) == (1, 2)


def test_the_body_of_a_user_op_is_merged_with_the_equations_around_it() -> None:
    sine = tk.custom_jvp(lambda x: tk.sin(x))
    sine.defjvp(lambda primals, tangents: (tk.sin(primals[0]), tk.cos(primals[0]) * tangents[0]))
    program = optimised(traced(tk.value_and_grad(lambda x: (sine(x) + tk.sin(x)).sum()), tk.ones(3)), NUMPY)
    assert (ops(program).count("sin"), ops(program).count("cos")) == (1, 1)


def test_constants_are_folded_and_equal_elements_become_a_literal() -> None:
    ones, places = tk.full((2, 3), 2.5) * 2.0, tk.arange(3)
    program = traced(lambda x: x * (ones + 1.0) + (places * 2).astype("float32"))
    program = with_constants_folded(with_raw_constants(program, NUMPY), NUMPY)
    assert ops(program)[-3:] == ["mul", "expand", "add"]  # expansions stay for the contraction pass
    assert [v.value for e in program.equations for v in e.operands if isinstance(v, Literal)] == [6.0]


def test_large_constants_are_not_multiplied() -> None:
    large = tk.arange(10_000, dtype=tk.float32)
    program = traced(lambda x: x * (large + 1.0), large)
    assert ops(with_constants_folded(program, NUMPY)) == ops(program)


def test_lowering_leaves_only_ops_that_the_backend_has() -> None:
    backend = Required()
    x = tk.ones((2, 3), backend=backend)
    program = tk.trace(tk.grad(lambda x: (tk.softmax(tk.sort(x, axis=1), axis=1) * tk.erf(x)).sum()))(x)
    assert not all([backend.has(e.op) for e in program.equations])
    after = lowered(inline(program), backend)
    assert all([backend.has(e.op) for e in after.equations])
    assert all([e.origin is not None for e in after.equations])


def test_an_optimal_program_stays_the_same_object_and_no_pass_sees_it_twice() -> None:
    for f in (tk.sin, lambda x: tk.exp(tk.sin(x)) / x, lambda x: (x * x).reshape((3, 2)), lambda x: x):
        program = tk.trace(f)(tk.ones((2, 3), backend=NUMPY))
        assert all([after is program for _, after in steps(program, NUMPY)])
        assert (
            optimised(program, NUMPY) is not program
        )  # a program caches its executable, which refers to the optimised program


def test_equations_that_are_not_part_of_a_contraction_stay_themselves() -> None:
    program = tk.trace(lambda a, b: tk.sin(tk.exp(a) @ b) * 2.0)(product((4, 5)), product((5, 6)))
    after = contracted(program, NUMPY)
    assert ops(after).count("fused_multiply_add") == 1
    (exp,) = [e for e in program.equations if e.op.name == "exp"]
    assert exp in after.equations
    assert {*program.equations}.isdisjoint(
        after.equations[-2:]
    )  # equations that use its results have new operands


def test_an_int_operand_of_floats_becomes_a_float() -> None:
    x = Variable((3,), float32)
    y = Variable((3,), float32)
    program = Program((x,), (y,), (Equation(OPS["add"], (x, Literal((3,), float32, 1)), (), (y,)),))
    (e,) = optimised(program, NUMPY).equations
    assert isinstance(e.operands[1], Literal)
    assert isinstance(e.operands[1].value, float)


# ---- contractions ------------------------------------------------------------------------------------------


def product(shape: tuple[int, ...]) -> Any:
    return tk.arange(float(np.prod(shape)), dtype=tk.float32).reshape(shape)


@pytest.mark.feature(111, 113)
def test_a_matrix_product_is_one_contraction_of_operands_that_are_not_permuted() -> None:
    program = optimised(tk.trace(lambda a, b: a @ b)(product((4, 5)), product((5, 6))), NUMPY)
    assert ops(program) == ["reshape", "reshape", "fused_multiply_add", "reshape"]


@pytest.mark.feature(111, 113)
def test_the_gradient_of_the_sum_of_a_matrix_product_needs_only_sums_of_rows_and_columns() -> None:
    f = tk.trace(tk.grad(lambda a, b: (a @ b).sum(), argnums=(0, 1)))
    program = optimised(f(product((4, 5)), product((5, 6))), NUMPY)
    assert sorted(ops(program)) == ["expand", "expand", "reshape", "reshape", "sum", "sum"]
    assert all([len(e.operands[0].shape) == 2 for e in program.equations])


@pytest.mark.feature(112, 113)
def test_sums_of_products_are_contractions_that_are_added() -> None:
    def f(x: Any, y: Any, u: Any, v: Any) -> Any:
        return (x[:, None, :] * y[None, :, :] + u[:, None, :] * v[None, :, :]).sum(axis=2)

    program = optimised(tk.trace(f)(*[product((3, 4)) for _ in range(4)]), NUMPY)
    assert ops(program).count("fused_multiply_add") == 2
    assert "mul" not in ops(program)
    assert max([len(v.shape) for e in program.equations for v in e.results if 1 not in v.shape]) == 2


def test_a_product_that_is_needed_anyway_is_summed_directly() -> None:
    def f(x: Any, y: Any) -> Any:
        z = x * y
        return tk.exp(z), z.sum(axis=0)

    assert ops(optimised(traced(f), NUMPY)).count("mul") == 1
    assert "fused_multiply_add" not in ops(optimised(traced(f), NUMPY))


def test_a_sum_that_is_needed_anyway_is_summed_further() -> None:
    def f(x: Any, y: Any) -> Any:
        z = (x * y).sum(axis=1)
        return tk.exp(z), z.sum()

    assert ops(optimised(traced(f), NUMPY)).count("fused_multiply_add") == 1
    assert ops(optimised(traced(f), NUMPY)).count("sum") == 1


def test_no_array_of_three_axes_is_built_for_a_network_nor_its_gradient() -> None:
    def loss(w: Any, v: Any, x: Any) -> Any:
        return (tk.relu(x @ w) @ v).sum()

    program = optimised(
        tk.trace(tk.value_and_grad(loss, argnums=(0, 1)))(product((5, 6)), product((6, 7)), product((4, 5))),
        NUMPY,
    )
    assert ops(program).count("permute") == 0
    for e in program.equations:
        assert all([1 in v.shape or len(v.shape) < 3 for v in e.results])


def test_a_contraction_stays_at_the_position_of_its_sum() -> None:
    """Else all gradients of weights would be computed at the end, and their operands would live until then."""

    def loss(ws: Any, x: Any) -> Any:
        for w in ws:
            x = tk.tanh(x @ w)
        return x.sum()

    weights = [product((3, 3)) * 0.1 for _ in range(4)]
    program = optimised(tk.trace(tk.grad(loss))(weights, product((2, 3))), NUMPY)
    names = ops(program)
    last = len(names) - 1 - names[::-1].index("sech_squared")
    assert "fused_multiply_add" in names[names.index("sech_squared") : last]
    assert names[last:].count("fused_multiply_add") == 1


def test_the_derivative_of_a_split_is_a_concatenation() -> None:
    def f(x: Any) -> Any:
        return (tk.sin(x[:, :2]) * 2.0).sum() + tk.exp(x[:, 2:4]).sum() + tk.cos(x[:, 4:]).sum()

    program = tk.trace(tk.grad(f))(product((2, 6)))
    names = ops(optimised(program, NUMPY))
    assert names.count("concatenate") == 1
    assert "pad" not in names
    unlike = tk.trace(tk.grad(lambda x: tk.sin(x[:, :2]).sum() + tk.exp(x[:, 3:]).sum()))(product((2, 6)))
    assert "pad" in ops(joined(inline(unlike), NUMPY))


FACTORS: list[tuple[Callable[..., Any], list[str]]] = [
    (lambda x: (-x).sum(axis=1, keepdims=True), ["sum", "neg"]),
    (lambda x, y: (x / y[:, :1]).sum(axis=1, keepdims=True), ["crop", "sum", "div"]),
    (lambda x, y: (x / y[:1]).sum(axis=1, keepdims=True), ["crop", "expand", "div", "sum"]),
    (lambda x, y: x * (1.0 / y), ["div"]),
    (lambda x: x * 3.0 * 5.0, ["mul"]),
    (lambda x: x * 3.0 / 7.0, ["mul"]),
    (lambda x, y: (x * 3.0) * (y * 5.0), ["mul", "mul"]),
    (lambda x, y: (x * 3.0) / (y * 5.0), ["mul", "mul", "div"]),
    (lambda x: x * 1e30 * 1e30, ["mul", "mul"]),
]


@pytest.mark.parametrize("case", range(len(FACTORS)))
def test_factors_move_out_of_sums_and_numbers_are_multiplied(case: int) -> None:
    f, expected = FACTORS[case]
    program = inline(traced(f))
    after = with_factors_out(program, NUMPY)
    assert ops(after) == expected
    xs = [np.linspace(1.0, 2.0, 6).tolist() for _ in program.inputs]
    for y, z in zip(on(after, NUMPY, xs), on(program, NUMPY, xs), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-6)


def test_a_factor_with_other_uses_stays() -> None:
    program = traced(lambda x: ((-x).sum(axis=1), tk.exp(-x)))
    assert ops(with_factors_out(without_common_subexpressions(program), NUMPY)) == [
        "neg",
        "sum",
        "reshape",
        "exp",
    ]


def test_the_rows_of_a_scatter_are_summed_without_building_them() -> None:
    def loss(z: Any, labels: Any) -> Any:
        return -tk.take_along_axis(tk.log_softmax(z, axis=1), labels[:, None], axis=1).sum()

    z, labels = product((4, 6)) * 0.1, tk.tensor([5, 0, 3, 3])
    program = optimised(tk.trace(tk.grad(loss))(z, labels), NUMPY)
    assert "sum" not in ops(program)
    assert (ops(program).count("scatter_add"), ops(program).count("add_at")) == (1, 1)
    np.testing.assert_allclose(
        array(program(z, labels)), array(tk.grad(loss)(z, labels)), rtol=1e-6, atol=1e-7
    )


# ---- real programs -----------------------------------------------------------------------------------------


def network(w: Any, b: Any, v: Any, x: Any) -> Any:
    z = tk.relu(x @ w + b) @ v
    return -(tk.log_softmax(z, axis=-1) * x[:, :3]).sum() / 4


def normalized(x: Any, g: Any, b: Any) -> Any:
    c = x - x.mean(axis=-1, keepdims=True)
    y = c / tk.sqrt((c * c).mean(axis=-1, keepdims=True) + 1e-5) * g + b
    return (y**3).sum()


def attention(q: Any, k: Any, v: Any) -> Any:
    mask = tk.tril(tk.ones((5, 5))) > 0
    scores = tk.where(mask, q @ tk.swapaxes(k, -1, -2) * 0.5, -1e9)
    return tk.tanh(tk.softmax(scores, axis=-1) @ v).sum()


def chain(x: Any) -> Any:
    return (tk.tanh(tk.exp(-x * x) / 2 + x) / (1 + x * x)).sum()


REAL: list[tuple[Callable[..., Any], tuple[tuple[int, ...], ...], dict[str, int]]] = [
    (
        network,
        ((5, 6), (6,), (6, 3), (4, 5)),
        {"fused_multiply_add": 7, "permute": 0, "log_softmax": 1},
    ),
    (normalized, ((4, 6), (6,), (6,)), {"sqrt": 1, "pow": 0, "neg": 0}),
    (attention, ((2, 5, 4),) * 3, {"fused_multiply_add": 7, "softmax": 1}),
    (chain, ((7,),), {"exp": 1, "tanh": 1, "sech_squared": 1, "div": 3, "neg": 1}),
]


@pytest.mark.parametrize("case", range(len(REAL)))
def test_gradients_of_real_functions_keep_their_values_and_compute_nothing_twice(case: int) -> None:
    f, shapes, most = REAL[case]
    generator = np.random.default_rng(case)
    xs = [tk.tensor(generator.normal(size=shape), dtype=tk.float64) for shape in shapes]
    every = tuple(range(len(xs)))
    program = tk.trace(tk.value_and_grad(f, argnums=every))(*xs)
    after = optimised(program, NUMPY)
    counts = {name: ops(after).count(name) for name in most}
    assert all([counts[name] <= most[name] for name in most]), counts
    value, gradients = after(*xs)
    expected, pulled = tk.value_and_grad(f, argnums=every)(*xs)
    for y, z in zip((value, *gradients), (expected, *pulled), strict=True):
        np.testing.assert_allclose(array(y), array(z), rtol=1e-10, atol=1e-12)


def test_explain_shows_the_changes_of_each_pass() -> None:
    text = tk.trace(tk.value_and_grad(lambda a, b: (a @ b).sum()))(product((4, 5)), product((5, 6))).explain()
    first, heads, *rows = text.splitlines()
    assert first.startswith("<lambda>: ")
    assert heads.split() == ["pass", "equations", "removed", "added", "lines"]
    contractions = next(row for row in rows if row.startswith("contractions"))
    assert "fused_multiply_add" in contractions
    assert "test_passes_find.py:" in contractions


@pytest.mark.parametrize(
    ("per_step", "calls"),
    [
        pytest.param(lambda y: [(y,), (y,), (y,)], 1, id="values"),
        pytest.param(lambda y: [(y,), (tk.full_like(y, 2.0),), (y,)], 2, id="a literal"),
        pytest.param(lambda y: [(1,), (2,), (3,)], 3, id="whole numbers"),
        pytest.param(lambda y: [(y,)], 1, id="one step"),
    ],
)
def test_a_step_of_a_loop_runs_once_while_it_is_written_unless_it_gets_numbers(
    per_step: Callable[[Any], Any], calls: int
) -> None:
    called = []

    def step(x: Any, y: Any) -> Any:
        called.append(y)
        return tk.tanh(x) * y + x.constant([1.0, 2.0, 4.0], float32, (3,)), x + y

    writer = EquationWriter(NUMPY)
    inputs = (Variable((3,), float32), Variable((3,), float32))
    x, y = [tk.Tensor(writer, v, v.shape, v.dtype) for v in inputs]
    (z,), left = writer.loop(step, (x,), per_step(y))
    assert len(called) == calls
    program = writer.program_from(
        Program(inputs, (), (), backend=NUMPY), [z.representation, *[v.representation for (v,) in left]]
    )
    a, b = tk.tensor([0.5, -1.0, 2.0], backend=NUMPY), tk.tensor([1.5, 0.25, -3.0], backend=NUMPY)
    (expected,), rest = NUMPY.loop(step, (a,), per_step(b))
    results = [result.tolist() for result in program.on((a, b))]
    assert results == [expected.tolist(), *[result.tolist() for (result,) in rest]]


def test_explain_takes_the_name_of_a_backend() -> None:
    program = traced(lambda x: tk.softmax(x, axis=1))
    assert "lower" in program.explain("reference")
    assert program.explain("numpy") == program.explain(Numpy()) == program.explain()
    with pytest.raises(BackendError, match="nonesuch"):
        program.explain("nonesuch")


def test_passes_take_linear_time(calls: Callable[[Callable[[], object]], int]) -> None:
    def f(x: Any, n: int) -> Any:
        for i in range(n):
            x = tk.sin(x @ x) * (i + 0.5) + x.permute((1, 0))
        return x.sum()

    counts = []
    for n in (100, 400):
        program = tk.trace(tk.grad(lambda x, n=n: f(x, n)))(product((3, 3)))
        counts.append(calls(lambda program=program: optimised(program, NUMPY)))
    assert len(program.equations) > 5000
    assert counts[1] < 4.5 * counts[0]
