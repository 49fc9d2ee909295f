"""Collectives over named axes, beyond the programs of the conformance kit: custom rules, loops, caches and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken_conformance.laws.collectives import EXAMPLES, LENGTH, PROGRAMS, everywhere, total

ROWS = np.linspace(-1.2, 1.9, EXAMPLES * LENGTH).reshape(EXAMPLES, LENGTH).astype("float32")
X = tk.tensor(ROWS)
W = tk.tensor([0.3, -0.8, 0.5, 1.1, -0.4])


def rows(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    return tk.vmap(f, in_axes, out_axes, axis_name="rows")


def scalar(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A sum of the results, each with another weight."""

    def weighted(x: Any) -> Any:
        y = function(x)
        return (y * tk.sin(1.0 + tk.arange(float(y.size))).reshape(y.shape)).sum()

    return weighted


def agrees(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    "name", ["pmax", "softmax over the axis", "batch norm", "ppermute", "all_to_all", "scan"]
)
def test_derivatives_of_derivatives(name: str) -> None:
    of_example, stacked = PROGRAMS[name]
    inside = tk.grad(lambda r: tk.sin(of_example(r)).sum())
    expected = tk.grad(lambda x: tk.sin(stacked(x)).sum())
    agrees(tk.grad(scalar(rows(inside)))(X), tk.grad(scalar(expected))(X))
    second = tk.grad(lambda x: tk.cos(expected(x)).sum())
    agrees(rows(tk.grad(lambda r: tk.cos(inside(r)).sum()))(X), second(X))


def test_custom_rules_with_collectives() -> None:
    """The operator that is the identity, and whose backward pass adds the cotangents of all examples."""

    @tk.custom_vjp
    def shared(x: Any) -> Any:
        return x

    shared.defvjp(lambda x: (x, None), lambda _, t: (total(t),))
    agrees(rows(tk.grad(lambda r: (shared(r) * r).sum()))(X), X.sum(0) + X)
    agrees(rows(lambda r: tk.grad(lambda w: (shared(w) * r).sum())(W))(X), everywhere(X.sum(0)))
    outer = tk.grad(lambda w: rows(lambda r: (shared(w) * r).sum())(X).sum())(W)
    agrees(outer, EXAMPLES * X.sum(0))  # each copy of w gets the sum

    @tk.custom_jvp
    def doubled(x: Any) -> Any:
        return total(x)

    doubled.defjvp(lambda primals, tangents: (doubled(*primals), 2 * total(tangents[0])))
    agrees(rows(lambda r: doubled(W) + 0 * r)(X), everywhere(EXAMPLES * W))
    agrees(rows(lambda r: tk.jvp(doubled, (r,), (r,))[1])(X), everywhere(2 * X.sum(0)))


def test_results_of_custom_rules_stay_shared() -> None:
    """A step of training that clips the gradient, which all examples share, returns shared parameters."""

    def step(w: Any, r: Any) -> Any:
        gradient = total(tk.grad(lambda w: (w * r).sum() ** 2)(w))
        norm = tk.checkpoint(tk.linalg.norm)(gradient)
        return w - 0.1 * gradient / norm

    gradient = tk.grad(lambda w: ((X * w).sum(1) ** 2).sum())(W)
    agrees(rows(step, (None, 0), None)(W, X), W - 0.1 * gradient / tk.linalg.norm(gradient))
    agrees(tk.jit(rows(step, (None, 0), None))(W, X), W - 0.1 * gradient / tk.linalg.norm(gradient))


def test_a_loop_while_some_example_goes_on() -> None:
    def steps(r: Any) -> Any:
        return tk.while_loop(lambda c: c[1] < r.sum(), lambda c: (c[0] + total(c[1]), c[1] + 1.0), (0.0, 0.0))

    counts = np.ceil(np.maximum(ROWS.sum(1), 0))
    sums, numbers = np.zeros(EXAMPLES), np.zeros(EXAMPLES)
    for i in range(int(counts.max())):
        going = i < ROWS.sum(1)
        sums, numbers = np.where(going, sums + numbers.sum(), sums), np.where(going, numbers + 1, numbers)
    agrees(rows(lambda r: steps(r)[0])(X), sums)
    agrees(rows(lambda r: steps(r)[1])(X), numbers)


def test_jit_traces_again_for_another_axis() -> None:
    traces = []

    @tk.jit
    def share(x: Any) -> Any:
        traces.append(x)
        return x / tk.axis_size("rows")

    for size in (3, 2, 3):
        agrees(rows(share)(tk.ones(size)), tk.ones(size) / size)
        agrees(rows(lambda r: share(2.0) + 0 * r)(tk.ones(size)), 2 * tk.ones(size) / size)
    assert len(traces) == 4  # a number is not a tensor of its dtype
    with pytest.raises(tk.errors.AxisNameError):
        share(tk.tensor(2.0))


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "unknown": (lambda: rows(lambda r: tk.psum(r, "columns"))(X), "psum: no axis is named 'columns'; the enclosing"),
    "outside": (lambda: tk.pmax(X, "rows"), "pmax: no axis is named 'rows'; call it inside of tk.vmap"),
    "outside, in jit": (lambda: tk.jit(total)(X), "psum: no axis is named 'rows'"),
    "index": (lambda: rows(lambda r: r * tk.axis_index("in"))(X), "axis_index: no axis is named 'in'"),
    "cond": (
        lambda: rows(lambda r: tk.cond(r.sum() > 0, total, lambda r: r, r))(X),
        "cond: a branch has a collective over 'rows'",
    ),
    "two of a name": (lambda: rows(rows(lambda e: e))(X), "vmap: an enclosing transform has an axis named 'rows'"),
    "a name twice": (lambda: rows(lambda r: tk.psum(r, ("rows", "rows")))(X), "has a name twice"),
    "no name": (lambda: rows(lambda r: tk.psum(r, ()))(X), "an empty tuple"),
    "a tuple as a name": (lambda: tk.vmap(lambda r: r, axis_name=("a",))(X), "axis_name must not be a tuple"),
    "a list as a name": (lambda: tk.vmap(lambda r: r, axis_name=["a"])(X), "axis_name must be hashable"),
    "too few parts": (lambda: rows(lambda r: tk.all_to_all(r, "rows", 0, 0))(X), "has size 5, need 4"),
    "tiles": (lambda: rows(lambda r: tk.psum_scatter(r, "rows", tiled=True))(X), "need a multiple of 4"),
    "permutation": (lambda: rows(lambda r: tk.ppermute(r, "rows", [(0, 4)]))(X), "must be an int from 0 to 3"),
    "a source twice": (lambda: rows(lambda r: tk.ppermute(r, "rows", [(0, 1), (0, 2)]))(X), "each source"),
    "shared result": (lambda: rows(lambda r: r, 0, None)(X), "differs between the examples"),
    "a maximum of pairs": (lambda: rows(lambda r: tk.pmax([r * 1j], "rows"))(X), "pmax: not defined for complex64"),
    "a minimum of a number": (lambda: rows(lambda r: tk.pmin(2j, "rows"))(X), "pmin: not defined for complex64"),
    "a value": (lambda: rows(lambda r: float(tk.psum(r, "rows").sum() + r.sum()))(X), "differs between the 4 examples"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_call_gets_one_clear_line(name: str) -> None:
    function, message = BAD[name]
    with pytest.raises(tk.errors.TensorkenError) as caught:
        function()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_program_that_needs_an_axis_says_so() -> None:
    programs = []
    rows(lambda r: programs.append(tk.trace(total)(r)) or r)(X)  # type: ignore[func-returns-value]
    with pytest.raises(tk.errors.AxisNameError, match="outside of the transform with the axis 'rows'"):
        programs[0](X[0])


NOT_NAMES = [tk.scalar(1), [1], {}, ("rows", tk.scalar(1)), (("rows",),), "columns", (), ("rows", "rows")]
COLLECTIVES: dict[str, Callable[[Any, Any], Any]] = {
    "psum": tk.psum,
    "pmean": tk.pmean,
    "pmax": tk.pmax,
    "pmin": tk.pmin,
    "all_gather": tk.all_gather,
    "all_to_all": lambda r, name: tk.all_to_all(r[:4], name, 0, 0),
    "psum_scatter": lambda r, name: tk.psum_scatter(r[:4], name),
    "ppermute": lambda r, name: tk.ppermute(r, name, [(0, 1)]),
    "axis_index": lambda r, name: tk.axis_index(name),
    "axis_size": lambda r, name: tk.axis_size(name),
}


@each_of("name", COLLECTIVES)
def test_every_collective_refuses_what_is_no_name_of_an_axis(name: str) -> None:
    for wrong in NOT_NAMES:
        with pytest.raises(tk.errors.AxisNameError, match=rf"^{name}: [^\n]*$"):
            rows(lambda r, wrong=wrong: COLLECTIVES[name](r, wrong))(X)


def test_a_permutation_is_pairs() -> None:
    for wrong in (5, None, [1], [(0,)], [(0, 1, 2)]):
        with pytest.raises(
            tk.errors.ArgumentError, match=r"^ppermute: perm must be pairs \(source, destination\)"
        ):
            rows(lambda r, wrong=wrong: tk.ppermute(r, "rows", wrong))(X)
