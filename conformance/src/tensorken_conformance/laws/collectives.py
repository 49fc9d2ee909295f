"""programs.collectives: collectives over a named axis equal the same computation on the stacked values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES

EXAMPLES, LENGTH = 4, 5
"""The numbers of examples, and of elements of each."""

Function = Callable[[Any], Any]
"""From a vector of LENGTH elements to a tensor, or from a matrix with EXAMPLES rows."""


def total(x: Any) -> Any:
    """The sum over the examples."""
    return tk.psum(x, "rows")


def everywhere(y: Any) -> Any:
    """A value that all examples share, for each of them."""
    return tk.broadcast_to(y, (EXAMPLES, *y.shape))


def weights() -> Any:
    """A vector that all examples share."""
    return tk.tensor([0.5, -0.75, 0.25, 1.0, -0.5])


RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
SHIFT = [(0, 1), (1, 2), (2, 3)]

SHARED_CONDITION = "cond on a shared value"

PROGRAMS: dict[str, tuple[Function, Function]] = {
    "psum": (total, lambda x: everywhere(x.sum(0))),
    "psum of a shared value": (lambda r: total(weights()) + 0 * r, lambda x: everywhere(4 * weights())),
    "psum of a tree": (lambda r: total({"a": r, "b": (2 * r,)})["b"][0], lambda x: everywhere(2 * x.sum(0))),
    "psum of a number": (lambda r: r * total(2), lambda x: x * 8),
    "psum of bools": (lambda r: total(r > 0) + 0 * r, lambda x: everywhere((x > 0).astype("int32").sum(0)) + 0 * x),
    "pmean": (lambda r: r - tk.pmean(r, "rows"), lambda x: x - x.mean(0)),
    "pmax": (lambda r: tk.pmax(r, "rows") * r, lambda x: x.max(0) * x),
    "pmin": (lambda r: tk.pmin(r, "rows") * r, lambda x: x.min(0) * x),
    "all_gather": (lambda r: tk.all_gather(r, "rows"), everywhere),
    "all_gather along the last axis": (lambda r: tk.all_gather(r, "rows", axis=-1), lambda x: everywhere(x.T)),
    "all_gather of tiles": (lambda r: tk.all_gather(r, "rows", tiled=True), lambda x: everywhere(x.ravel())),
    "all_gather of a shared value": (
        lambda r: tk.all_gather(weights(), "rows") + 0 * r,
        lambda x: everywhere(everywhere(weights())) + 0 * x[:, None],
    ),
    "all_to_all": (lambda r: tk.all_to_all(r[:4], "rows", 0, 0), lambda x: x[:, :4].T),
    "all_to_all of tiles": (
        lambda r: tk.all_to_all(tk.concatenate([r, r[:3]]), "rows", 0, 0, tiled=True),
        lambda x: tk.concatenate([x, x[:, :3]], 1).reshape((4, 4, 2)).permute((1, 0, 2)).reshape((4, 8)),
    ),
    "all_to_all of a shared value": (
        lambda r: tk.all_to_all(weights()[:4], "rows", 0, 0) + 0 * r[:4],
        lambda x: everywhere(weights()[:4]).T,
    ),
    "psum_scatter": (lambda r: tk.psum_scatter(r[:4], "rows"), lambda x: x[:, :4].sum(0)),
    "psum_scatter of tiles": (
        lambda r: tk.psum_scatter(tk.concatenate([r, r[:3]]), "rows", tiled=True),
        lambda x: tk.concatenate([x, x[:, :3]], 1).sum(0).reshape((4, 2)),
    ),
    "ppermute": (lambda r: tk.ppermute(r, "rows", RING) * r, lambda x: x[tk.tensor([3, 0, 1, 2])] * x),
    "ppermute with zeros": (
        lambda r: tk.ppermute(r, "rows", SHIFT) * r,
        lambda x: tk.concatenate([0 * x[:1], x[:3]]) * x,
    ),
    "ppermute of a shared value": (
        lambda r: tk.ppermute(weights(), "rows", SHIFT) + 0 * r,
        lambda x: tk.stack([0 * weights(), *[weights()] * 3]) + 0 * x,
    ),
    "sum of permuted values": (
        lambda r: total(tk.ppermute(r, "rows", SHIFT)) + r,
        lambda x: everywhere(x[:3].sum(0)) + x,
    ),
    "axis_index": (lambda r: r * tk.axis_index("rows"), lambda x: x * tk.arange(4)[:, None]),
    "axis_size": (lambda r: r / tk.axis_size("rows"), lambda x: x / 4),
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
        lambda r: tk.vmap(lambda e: tk.all_to_all(e * r[:4], "rows", 0, 0))(r),
        lambda x: (x[:, :, None] * x[:, None, :4]).permute((2, 1, 0)),
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
            lambda e: tk.all_to_all(e * tk.arange(20.0), ("rows", "columns"), 0, 0), axis_name="columns"
        )(r),
        lambda x: (x.ravel()[:, None] * tk.arange(20.0)).T.reshape((4, 5, 20)),
    ),
    "two axes, permuted": (
        lambda r: tk.vmap(lambda e: tk.ppermute(e, ("rows", "columns"), [(1, 7), (7, 2)]), axis_name="columns")(r),
        lambda x: tk.stack([{7: x[0, 1], 2: x[1, 2]}.get(i, 0 * x[0, 0]) for i in range(20)]).reshape((4, 5)),
    ),
    "indices of two axes": (
        lambda r: tk.vmap(lambda e: e * tk.axis_index(("rows", "columns")), axis_name="columns")(r),
        lambda x: x * tk.arange(20).reshape((4, 5)),
    ),
    "jit": (lambda r: tk.jit(lambda v: total(v) * v)(r), lambda x: x.sum(0) * x),
    "jit of a shared value": (lambda r: tk.jit(total)(weights()) * r, lambda x: 4 * weights() * x),
    "jit without arguments": (
        lambda r: r * tk.jit(lambda: tk.axis_index("rows"))(),
        lambda x: x * tk.arange(4)[:, None],
    ),
    "scan": (
        lambda r: tk.scan(lambda c, e: (c + total(e * c), c), 0 * r[0] + 1, r)[1],
        lambda x: tk.scan(lambda c, e: (c + (e * c).sum(), c), 0 * x[:, 0] + 1, x.T)[1].T,
    ),
    "fori_loop": (
        lambda r: tk.fori_loop(0, 3, lambda i, c: c + tk.pmean(c * r, "rows"), r),
        lambda x: tk.fori_loop(0, 3, lambda i, c: c + (c * x).mean(0), x),
    ),
    SHARED_CONDITION: (
        lambda r: tk.cond(total(r).sum() > 0, lambda r: total(r * r), lambda r: r, r),
        lambda x: everywhere((x * x).sum(0)) if (x.sum() > 0).item() else x,
    ),
    "checkpoint": (lambda r: tk.checkpoint(lambda v: total(tk.sin(v)) * v)(r), lambda x: tk.sin(x).sum(0) * x),
    "jvp": (
        lambda r: tk.jvp(lambda v: total(v**2), (r,), (r,))[1],
        lambda x: everywhere((2 * x * x).sum(0)),
    ),
    "linearize": (
        lambda r: tk.linearize(lambda v: total(v**2), r)[1](r),
        lambda x: everywhere((2 * x * x).sum(0)),
    ),
    "hessian": (  # a cotangent of each of four results, and a tangent of each of four operands
        lambda r: tk.hessian(lambda v: (total(v) ** 3).sum())(r),
        lambda x: everywhere(tk.diag(4 * 4 * 6 * x.sum(0))),
    ),
}  # fmt: skip
"""For each name a function of one example with collectives, and the same computation on the matrix of all examples."""

ONLY_VALUES = ("vmap", "jit-inside", "grad-inside", "threads", "threads-of-grad")
"""The modes in which the function of the matrix may read values."""

FEW = ("batch norm", "all_gather of tiles")


def cases(subject: Subject) -> Iterator[Case]:
    """Each program in each mode; a smoke run takes two programs."""
    floats = [dtype.name for dtype in subject.dtypes() if dtype.kind == "float" and dtype.itemsize >= 4]
    if not floats:
        return
    for name in PROGRAMS if subject.depth != "smoke" else FEW:
        for mode in MODES:
            if name != SHARED_CONDITION or mode in ONLY_VALUES:
                yield Case("programs.collectives", name.replace(" ", "-"), floats[-1], detail=mode)


def weighted(f: Function) -> Function:
    """The sum of the squares of a function's results, each with another weight."""

    def sum_of_squares(x: Any) -> Any:
        y = f(x)
        return (y * y * (1 + tk.arange(float(y.size)) / 8).reshape(y.shape)).sum()

    return sum_of_squares


def rows(f: Function) -> Function:
    """The function of an example for all of them."""
    return tk.vmap(f, axis_name="rows")


def in_threads(f: Function, x: Any) -> Any:
    """The results for all examples, each in a thread."""
    return tk.stack(
        tk.distributed.run_threads(
            lambda group: tk.spread(f, group, axis_name="rows")(x[group.rank]), EXAMPLES, timeout=60
        )
    )


def of_each(f: Function, x: Any) -> Any:
    """The gradient of the sum of the results for all examples, each weighted alike."""
    return tk.grad(lambda x: sum([weighted(lambda y: y)(y) for y in f(x)]))(x)


def of_all(f: Function, x: Any) -> Any:
    """The results of the function of the matrix."""
    return f(x)


Mode = Callable[[Function, Any], Any]

MODES: dict[str, tuple[Mode, Mode]] = {
    "vmap": (lambda f, x: rows(f)(x), of_all),
    "jit": (lambda f, x: tk.jit(rows(f))(x), of_all),
    "jit-inside": (lambda f, x: rows(tk.jit(f))(x), of_all),
    "grad-inside": (lambda f, x: rows(tk.grad(weighted(f)))(x), of_each),
    "grad-outside": (lambda f, x: tk.grad(weighted(rows(f)))(x), lambda f, x: tk.grad(weighted(f))(x)),
    "jvp-outside": (lambda f, x: tk.jvp(rows(f), (x,), (x,))[1], lambda f, x: tk.jvp(f, (x,), (x,))[1]),
    "threads": (in_threads, of_all),
    "threads-of-grad": (lambda f, x: in_threads(tk.grad(weighted(f)), x), of_each),
}
"""For each mode the results of a function of examples, and the same from the function of the matrix."""


@law("programs.collectives", cases, level=4, stage=3)
def collectives(subject: Subject, case: Case) -> None:
    """A collective over a named axis equals the computation on the stacked values, also under derivatives.

    It is computed by `vmap`, `jit` and derivatives on either side of it, and by `spread` over threads.
    """
    of_example, of_matrix = PROGRAMS[case.op.replace("-", " ")]
    run, expected = MODES[case.detail]
    random = subject.random(case)
    values = np.array([random.uniform(-1.5, 1.5) for _ in range(EXAMPLES * LENGTH)], case.dtype)
    with tk.use_backend(subject.stack):
        x = subject.tensor(values.reshape(EXAMPLES, LENGTH), DTYPES[case.dtype], subject.stack)
        got = subject.read(run(of_example, x))
        wanted = subject.read(expected(of_matrix, x))
    agree(case, got, wanted, values)


def agree(case: Case, got: Array, wanted: Array, values: Array) -> None:
    """Raise a Failure unless the results differ by the rounding of sums in another order alone."""
    tolerance = 256 * np.finfo(wanted.dtype).eps * (1 + np.abs(wanted).max(initial=0))
    if got.shape != wanted.shape or not np.allclose(got, wanted, rtol=0, atol=tolerance):
        raise Failure(
            f"{case.op}, {case.detail}: examples {values.tolist()!r:.120}: the stacked values give "
            f"{wanted.tolist()!r:.120}, got {got.tolist()!r:.120}"
        )
