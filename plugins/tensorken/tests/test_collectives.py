"""Collectives over named axes: values and derivatives against the same computation on the stacked values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk

ROWS = np.linspace(-1.2, 1.9, 12).reshape(3, 4).astype("float32")
X = tk.tensor(ROWS)
W = tk.tensor([0.3, -0.8, 0.5, 1.1])


def rows(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    return tk.vmap(f, in_axes, out_axes, axis_name="rows")


def total(x: Any) -> Any:
    return tk.psum(x, "rows")


def everywhere(y: Any) -> Any:
    """A value that all examples share."""
    return tk.broadcast_to(y, (3, *y.shape))


RING = [(0, 1), (1, 2), (2, 0)]
SHIFT = [(0, 1), (1, 2)]

VALUES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "psum": (total, lambda x: everywhere(x.sum(0))),
    "psum of a shared value": (lambda r: total(W) + 0 * r, lambda x: everywhere(3 * W)),
    "psum of a tree": (lambda r: total({"a": r, "b": (2 * r,)})["b"][0], lambda x: everywhere(2 * x.sum(0))),
    "psum of a number": (lambda r: r * total(2), lambda x: x * 6),
    "psum of bools": (lambda r: total(r > 0) + 0 * r, lambda x: everywhere((x > 0).astype("int32").sum(0)) + 0 * x),
    "pmean": (lambda r: r - tk.pmean(r, "rows"), lambda x: x - x.mean(0)),
    "pmax": (lambda r: tk.pmax(r, "rows") * r, lambda x: x.max(0) * x),
    "pmin": (lambda r: tk.pmin(r, "rows") * r, lambda x: x.min(0) * x),
    "all_gather": (lambda r: tk.all_gather(r, "rows"), everywhere),
    "all_gather along the last axis": (lambda r: tk.all_gather(r, "rows", axis=-1), lambda x: everywhere(x.T)),
    "all_gather of tiles": (lambda r: tk.all_gather(r, "rows", tiled=True), lambda x: everywhere(x.ravel())),
    "all_gather of a shared value": (
        lambda r: tk.all_gather(W, "rows") + 0 * r,
        lambda x: everywhere(everywhere(W)) + 0 * x[:, None],
    ),
    "all_to_all": (lambda r: tk.all_to_all(r[:3], "rows", 0, 0), lambda x: x[:, :3].T),
    "all_to_all of tiles": (
        lambda r: tk.all_to_all(tk.concatenate([r, r[:2]]), "rows", 0, 0, tiled=True),
        lambda x: tk.concatenate([x, x[:, :2]], 1).reshape((3, 3, 2)).permute((1, 0, 2)).reshape((3, 6)),
    ),
    "all_to_all of a shared value": (
        lambda r: tk.all_to_all(W[:3], "rows", 0, 0) + 0 * r[:3],
        lambda x: everywhere(W[:3]).T,
    ),
    "psum_scatter": (lambda r: tk.psum_scatter(r[:3], "rows"), lambda x: x[:, :3].sum(0)),
    "psum_scatter of tiles": (
        lambda r: tk.psum_scatter(tk.concatenate([r, r[:2]]), "rows", tiled=True),
        lambda x: tk.concatenate([x, x[:, :2]], 1).sum(0).reshape((3, 2)),
    ),
    "ppermute": (lambda r: tk.ppermute(r, "rows", RING) * r, lambda x: x[tk.tensor([2, 0, 1])] * x),
    "ppermute with zeros": (
        lambda r: tk.ppermute(r, "rows", SHIFT) * r,
        lambda x: tk.concatenate([0 * x[:1], x[:2]]) * x,
    ),
    "ppermute of a shared value": (
        lambda r: tk.ppermute(W, "rows", SHIFT) + 0 * r,
        lambda x: tk.stack([0 * W, W, W]) + 0 * x,
    ),
    "axis_index": (lambda r: r * tk.axis_index("rows"), lambda x: x * tk.arange(3)[:, None]),
    "axis_size": (lambda r: r / tk.axis_size("rows"), lambda x: x / 3),
    "softmax over the axis": (
        lambda r: tk.exp(r - tk.pmax(r, "rows")) / total(tk.exp(r - tk.pmax(r, "rows"))),
        lambda x: tk.exp(x - x.max(0)) / tk.exp(x - x.max(0)).sum(0),
    ),
    "batch norm": (
        lambda r: (r - tk.pmean(r, "rows")) / tk.sqrt(tk.pmean((r - tk.pmean(r, "rows")) ** 2, "rows") + 0.1),
        lambda x: (x - x.mean(0)) / tk.sqrt(((x - x.mean(0)) ** 2).mean(0) + 0.1),
    ),
    "inner vmap": (lambda r: tk.vmap(lambda e: total(e) * e)(r), lambda x: x.sum(0) * x),
    "inner vmap of all_gather": (
        lambda r: tk.vmap(lambda e: tk.all_gather(e, "rows") * e)(r),
        lambda x: x.T * x[:, :, None],
    ),
    "inner vmap of all_to_all": (
        lambda r: tk.vmap(lambda e: tk.all_to_all(e * r[:3], "rows", 0, 0))(r),
        lambda x: (x[:, :, None] * x[:, None, :3]).permute((2, 1, 0)),
    ),
    "two axes": (
        lambda r: tk.vmap(lambda e: tk.psum(e, ("rows", "columns")) * e, axis_name="columns")(r),
        lambda x: x.sum() * x,
    ),
    "two axes, gathered": (
        lambda r: tk.vmap(lambda e: e + tk.all_gather(e, ("columns", "rows")), axis_name="columns")(r),
        lambda x: x[:, :, None] + x.T.ravel(),
    ),
    "two axes, exchanged": (
        lambda r: tk.vmap(
            lambda e: tk.all_to_all(e * tk.arange(12.0), ("rows", "columns"), 0, 0), axis_name="columns"
        )(r),
        lambda x: (x.ravel()[:, None] * tk.arange(12.0)).T.reshape((3, 4, 12)),
    ),
    "two axes, permuted": (
        lambda r: tk.vmap(lambda e: tk.ppermute(e, ("rows", "columns"), [(1, 7), (7, 2)]), axis_name="columns")(r),
        lambda x: tk.stack([x[0, 1] if i == 7 else x[1, 3] if i == 2 else 0.0 for i in range(12)]).reshape((3, 4)),
    ),
    "indices of two axes": (
        lambda r: tk.vmap(lambda e: e * tk.axis_index(("rows", "columns")), axis_name="columns")(r),
        lambda x: x * tk.arange(12).reshape((3, 4)),
    ),
    "jit": (tk.jit(lambda r: total(r) * r), lambda x: x.sum(0) * x),
    "jit of a shared value": (lambda r: tk.jit(total)(W) * r, lambda x: 3 * W * x),
    "jit without arguments": (
        lambda r: r * tk.jit(lambda: tk.axis_index("rows"))(),
        lambda x: x * tk.arange(3)[:, None],
    ),
    "scan": (
        lambda r: tk.scan(lambda c, e: (c + total(e * c), c), 1.0, r)[1],
        lambda x: tk.scan(lambda c, e: (c + (e * c).sum() * tk.ones(3), c), tk.ones(3), x.T)[1].T,
    ),
    "fori_loop": (
        lambda r: tk.fori_loop(0, 3, lambda i, c: c + tk.pmean(c * r, "rows"), r),
        lambda x: tk.fori_loop(0, 3, lambda i, c: c + (c * x).mean(0), x),
    ),
    "cond on a shared value": (
        lambda r: tk.cond(total(r).sum() > 0, lambda r: total(r * r), lambda r: r, r),
        lambda x: everywhere((x * x).sum(0)) if (x.sum() > 0).item() else x,
    ),
    "checkpoint": (tk.checkpoint(lambda r: total(tk.sin(r)) * r), lambda x: tk.sin(x).sum(0) * x),
    "jvp": (
        lambda r: tk.jvp(lambda v: total(v**2), (r,), (r,))[1],
        lambda x: everywhere((2 * x * x).sum(0)),
    ),
    "linearize": (
        lambda r: tk.linearize(lambda v: total(v**2), r)[1](r),
        lambda x: everywhere((2 * x * x).sum(0)),
    ),
    "hessian": (  # a cotangent of each of three results, and a tangent of each of three operands
        lambda r: tk.hessian(lambda v: (total(v) ** 3).sum())(r),
        lambda x: everywhere(tk.diag(3 * 3 * 6 * x.sum(0))),
    ),
}  # fmt: skip


def scalar(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A sum of the results, each with another weight."""

    def weighted(x: Any) -> Any:
        y = function(x)
        return (y * tk.sin(1.0 + tk.arange(float(y.size))).reshape(y.shape)).sum()

    return weighted


def agrees(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", VALUES)
def test_a_collective_is_an_op_on_the_stacked_values(name: str) -> None:
    """In vmap, in jit of vmap, and under derivatives from outside."""
    of_example, stacked = VALUES[name]
    agrees(rows(of_example)(X), stacked(X))
    agrees(tk.jit(rows(of_example))(X), stacked(X))
    if name != "cond on a shared value":  # the stacked function reads a value
        agrees(tk.grad(scalar(rows(of_example)))(X), tk.grad(scalar(stacked))(X))
        agrees(tk.jvp(rows(of_example), (X,), (X,))[1], tk.jvp(stacked, (X,), (X,))[1])


@pytest.mark.parametrize("name", [n for n in VALUES if n != "cond on a shared value"])
def test_a_gradient_inside_is_that_of_the_sum_of_all_results(name: str) -> None:
    of_example, stacked = VALUES[name]

    def inside(r: Any) -> Any:
        return tk.sin(of_example(r)).sum()

    expected = tk.grad(lambda x: tk.sin(stacked(x)).sum())
    agrees(rows(tk.grad(inside))(X), expected(X))
    agrees(rows(tk.jit(tk.grad(inside)))(X), expected(X))
    agrees(rows(tk.grad(tk.jit(inside)))(X), expected(X))
    agrees(tk.jit(rows(tk.grad(inside)))(X), expected(X))


@pytest.mark.parametrize(
    "name", ["pmax", "softmax over the axis", "batch norm", "ppermute", "all_to_all", "scan"]
)
def test_derivatives_of_derivatives(name: str) -> None:
    of_example, stacked = VALUES[name]
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
    agrees(outer, 3 * X.sum(0))  # each of the three copies of w gets the sum

    @tk.custom_jvp
    def doubled(x: Any) -> Any:
        return total(x)

    doubled.defjvp(lambda primals, tangents: (doubled(*primals), 2 * total(tangents[0])))
    agrees(rows(lambda r: doubled(W) + 0 * r)(X), everywhere(3 * W))
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
    sums, numbers = np.zeros(3), np.zeros(3)
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
    assert len(traces) == 2
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
    "too few parts": (lambda: rows(lambda r: tk.all_to_all(r, "rows", 0, 0))(X), "has size 4, need 3"),
    "tiles": (lambda: rows(lambda r: tk.psum_scatter(r, "rows", tiled=True))(X), "need a multiple of 3"),
    "permutation": (lambda: rows(lambda r: tk.ppermute(r, "rows", [(0, 3)]))(X), "must be an int from 0 to 2"),
    "a source twice": (lambda: rows(lambda r: tk.ppermute(r, "rows", [(0, 1), (0, 2)]))(X), "each source"),
    "shared result": (lambda: rows(lambda r: r, 0, None)(X), "differs between the examples"),
    "a value": (lambda: rows(lambda r: float(tk.psum(r, "rows").sum() + r.sum()))(X), "differs between the 3 examples"),
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
