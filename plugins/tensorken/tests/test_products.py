"""Products and einsum: numpy's results, derivatives, vmap as a loop, products that are never built, mistakes."""

from __future__ import annotations

import math
import string
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import tensorken as tk
from core.tests.each import each_of
from core.tests.examples import examples
from core.tests.support import FUSED, STACKS, Counting, array, f64, peak_of
from tensorken_core import tree
from tensorken_core.errors import (
    ArgumentError,
    AxisError,
    MixedBackendError,
    ShapeError,
    TensorkenError,
)
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.rewriting.shape_tracker import ShapeTracker
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_numpy")]

FEW = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
MANY = settings(max_examples=examples(250), suppress_health_check=[HealthCheck.too_slow])
BACKENDS = [FUSED, STACKS["Fuse(Strict())"], STACKS["Numpy()"], "reference"]
NUMBERS = ["int32", "int64", "float16", "float32", "float64"]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


@st.composite
def filled(draw: st.DrawFn, shape: tuple[int, ...], dtype: str, special: bool = False) -> Any:
    """Small integers, whose sums are exact in any order, perhaps NaN and infinities, with strides of both signs."""
    elements: Any = st.integers(-3, 3)
    if special and dtype.startswith("float"):
        elements = st.one_of(elements, st.sampled_from([math.inf, -math.inf, math.nan]))
    values = np.array(draw(hnp.arrays("float64", shape, elements=elements)), dtype)
    return values[tuple(slice(None, None, draw(st.sampled_from([1, -1]))) for _ in shape)]


def same(got: Tensor, expected: Any) -> None:
    """Shape, dtype and values."""
    assert got.shape == expected.shape
    assert str(got.dtype) == str(expected.dtype)
    np.testing.assert_array_equal(array(got), expected)


def alike(mine: Callable[[Any], Tensor], theirs: Callable[[], Any]) -> None:
    """Both fail, ours with one of our errors; or both give the same, on every backend."""
    try:
        with np.errstate(all="ignore"):
            expected = np.asarray(theirs())
    except (ValueError, IndexError, TypeError):
        with pytest.raises(TensorkenError):
            mine(FUSED)
        return
    for backend in BACKENDS:
        same(mine(backend), expected)


# ---- products of two ---------------------------------------------------------------------------------------


@st.composite
def pairs(draw: st.DrawFn, name: str) -> tuple[Any, Any, dict[str, Any]]:
    """Two operands, whose shapes usually fit, and further arguments."""
    keywords: dict[str, Any] = {}
    signature = {"matmul": np.matmul.signature, "vecdot": np.vecdot.signature}.get(name)
    if signature:
        shapes = draw(
            hnp.mutually_broadcastable_shapes(signature=signature, max_dims=2, min_side=0, max_side=3)
        )
        a, b = shapes.input_shapes
        if name == "vecdot":
            axis = draw(st.integers(-max(len(a), len(b)), -1))
            keywords = {"axis": axis}
    elif name == "cross":
        shapes = draw(hnp.mutually_broadcastable_shapes(signature="(3),(3)->(3)", max_dims=2, max_side=3))
        a, b = shapes.input_shapes
    else:
        a, b = draw(SHAPES), draw(SHAPES)
        if a and b and name in ("dot", "inner") and draw(st.integers(0, 4)):
            place = -1 if name == "inner" else max(len(b) - 2, 0)
            b = (*b[:place], a[-1], *b[place:][1:]) if place >= 0 else (*b[:-1], a[-1])
        if name == "vdot" and draw(st.booleans()):
            b = tuple(draw(st.permutations(a)))
        if name == "tensordot":
            b = tuple(draw(st.permutations(a)))
            count = draw(st.integers(0, len(a)))
            if draw(st.booleans()):
                b = (*a[len(a) - count :], *b[count:])
                keywords = {"axes": count}
            else:
                first = tuple(draw(st.permutations(range(len(a))))[:count])
                left = list(range(len(b)))
                second = []
                for i in first:
                    j = next((j for j in left if b[j] == a[i]), left[0])
                    left.remove(j)
                    second.append(j if draw(st.booleans()) else j - len(b))
                keywords = {"axes": (first, tuple(second))}
    dtype = draw(st.sampled_from(NUMBERS))
    special = draw(st.booleans())
    return draw(filled(a, dtype, special)), draw(filled(b, dtype, special)), keywords


PRODUCTS = ["matmul", "dot", "vdot", "inner", "outer", "tensordot", "vecdot", "kron", "cross"]


@pytest.mark.feature(176, 177)
@pytest.mark.parametrize("name", PRODUCTS)
@FEW
@given(st.data())
def test_products_are_numpys(name, data):
    a, b, keywords = data.draw(pairs(name))
    mine, theirs = getattr(tk, name), getattr(np, name)
    alike(
        lambda backend: mine(tk.tensor(a, backend=backend), tk.tensor(b, backend=backend), **keywords),
        lambda: exactly(theirs, a, b, keywords),
    )


def exactly(theirs: Callable[..., Any], a: Any, b: Any, keywords: dict[str, Any]) -> Any:
    """A product by numpy; with infinities by Python floats, since BLAS may skip products with 0."""
    if np.isfinite(a).all() and np.isfinite(b).all():
        return theirs(a, b, **keywords)
    return np.asarray(theirs(a.astype(object), b.astype(object), **keywords)).astype(a.dtype)


@pytest.mark.feature(176)
@FEW
@given(SHAPES, SHAPES)
def test_the_shapes_of_dot_are_numpys(a, b):
    alike(
        lambda backend: tk.dot(
            tk.ones(a, "float64", backend=backend), tk.ones(b, "float64", backend=backend)
        ),
        lambda: np.dot(np.ones(a), np.ones(b)),
    )


@pytest.mark.feature(177)
@FEW
@given(SHAPES, SHAPES)
def test_the_shapes_of_matmul_are_numpys(a, b):
    alike(
        lambda backend: tk.matmul(
            tk.ones(a, "float64", backend=backend), tk.ones(b, "float64", backend=backend)
        ),
        lambda: np.matmul(np.ones(a), np.ones(b)),
    )


@pytest.mark.feature(176, 177)
def test_operands_may_be_lists_arrays_and_numbers():
    for name in PRODUCTS:
        a, b = [1.0, 2.0, 3.0], np.array([2.0, 0.5, 1.0], "float32")
        keywords = {"axes": 1} if name == "tensordot" else {}
        expected = getattr(np, name)(np.array(a, "float32"), b, **keywords)
        for left, right in ((a, tk.tensor(b)), (tk.tensor(a), b), (a, b)):
            same(getattr(tk, name)(left, right, **keywords), np.asarray(expected))
    assert tk.dot(2, 3).item() == 6
    assert tk.matmul(tk.tensor([1, 2]), tk.tensor([0.5, 1.0])).dtype is tk.float32


def test_axes_of_tensordot_may_be_ints():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    same(tk.tensordot(f64(a), f64(b), (1, 0)), np.tensordot(a, b, (1, 0)))
    same(tk.tensordot(f64(a), f64(b), [[-1], [0]]), np.tensordot(a, b, [[-1], [0]]))
    same(tk.tensordot(f64(a), f64(a)), np.tensordot(a, a))


# ---- einsum ------------------------------------------------------------------------------------------------


@st.composite
def sums(draw: st.DrawFn) -> tuple[str, list[Any]]:
    """Subscripts and operands that fit."""
    sizes = {letter: draw(st.integers(0, 3)) for letter in "abcXY"}
    hidden = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    terms, operands = [], []
    dtype = draw(st.sampled_from(["int64", "float64"]))
    for _ in range(draw(st.integers(1, 4))):
        term = draw(st.text("abcXY", max_size=3))
        repeated = {letter for letter in set(term) if draw(st.integers(0, 5)) == 0}  # of size 1
        shape = tuple(1 if letter in repeated else sizes[letter] for letter in term)
        if draw(st.booleans()):
            cut = draw(st.integers(0, len(term)))
            own = tuple(
                1 if draw(st.integers(0, 3)) == 0 else n for n in hidden[draw(st.integers(0, len(hidden))) :]
            )
            term, shape = f"{term[:cut]}...{term[cut:]}", shape[:cut] + own + shape[cut:]
        terms.append(term)
        operands.append(draw(filled(shape, dtype)))
    subscripts = ",".join(terms)
    if draw(st.booleans()):
        letters = sorted(set(subscripts) - set(",."))
        chosen = draw(st.permutations(letters))[: draw(st.integers(0, len(letters)))] if letters else []
        output = "".join(chosen)
        if "..." in subscripts:
            cut = draw(st.integers(0, len(output)))
            output = f"{output[:cut]}...{output[cut:]}"
        subscripts += f"->{output}"
    return subscripts, operands


WAYS = st.sampled_from(["optimal", "greedy", True, False, "path"])


@pytest.mark.feature(177)
@MANY
@given(sums(), WAYS)
def test_einsum_is_numpys(problem, optimize):
    subscripts, operands = problem
    expected = np.asarray(np.einsum(subscripts, *operands))
    if optimize == "path":
        optimize = np.einsum_path(subscripts, *operands, optimize="greedy")[0]
    for backend in BACKENDS:
        found = [tk.tensor(a, backend=backend) for a in operands]
        same(tk.einsum(subscripts, *found, optimize=optimize), expected)


@MANY
@given(sums())
def test_lists_of_ints_equal_letters(problem):
    subscripts, operands = problem
    before, arrow, after = subscripts.partition("->")

    def listed(term: str) -> list[Any]:
        first, _, second = term.partition("...")
        places = (
            [string.ascii_letters.index(c) for c in first],
            [string.ascii_letters.index(c) for c in second],
        )
        return [*places[0], Ellipsis, *places[1]] if "..." in term else [*places[0], *places[1]]

    # Without an output the order is that of the letters, and Python's is that of numpy: upper case first.
    given: list[Any] = []
    for a, term in zip(operands, before.split(","), strict=True):
        given += [f64(a), listed(term)]
    if arrow:
        given.append(listed(after))
        np.testing.assert_array_equal(array(tk.einsum(*given)), np.einsum(subscripts, *operands))
    else:
        expected = np.einsum(*[x if isinstance(x, list) else array(x) for x in given])
        np.testing.assert_array_equal(array(tk.einsum(*given)), expected)


def test_einsum_reads_spaces_and_keeps_bools():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    same(tk.einsum(" i j , j k -> i k ", f64(a), f64(b)), a @ b)
    same(tk.einsum("ij->ji", tk.tensor([[True, False]])), np.array([[True], [False]]))
    assert tk.einsum("i,i->", [1, 2], f64([0.5, 0.5])).dtype is tk.float64
    same(tk.einsum("ij,jk", a.tolist(), b.tolist(), optimize=[]), (a @ b).astype("float32"))
    same(tk.einsum("ij,jk", f64(a), f64(b), optimize=["einsum_path", (0, 1)]), a @ b)


@each_of(
    ("subscripts", "shapes"),
    [
        ("ij,jk,kl->il", [(10, 100), (100, 5), (5, 50)]),
        ("ij,jk,k->i", [(8, 9), (9, 7), (7,)]),
        ("ea,fb,abcd,gc,hd->efgh", [(4, 4), (4, 4), (4, 4, 4, 4), (4, 4), (4, 4)]),
        ("...ij,jk->...ik", [(2, 3, 4), (4, 5)]),
        ("ij,jk,kl,li", [(2, 3), (3, 4), (4, 5), (5, 2)]),
        ("ii->", [(3, 3)]),
    ],
)
def test_paths_of_einsum_are_as_good_as_numpys_and_numpy_takes_them(
    subscripts: str, shapes: list[tuple[int, ...]]
) -> None:
    arrays = [np.random.default_rng(i).standard_normal(shape) for i, shape in enumerate(shapes)]
    expected = np.einsum(subscripts, *arrays)
    for choice in ("optimal", "greedy", False):
        path, report = tk.einsum_path(subscripts, *map(tk.tensor, arrays), optimize=choice)
        assert len(report.splitlines()) == len(shapes)
        assert report.startswith(subscripts)
        found = tk.einsum(subscripts, *map(tk.tensor, arrays), optimize=path)
        np.testing.assert_allclose(array(found), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(
            np.einsum(subscripts, *arrays, optimize=path), expected, rtol=1e-12, atol=1e-12
        )
    best, _ = tk.einsum_path(subscripts, *map(tk.tensor, arrays))
    if len(shapes) == 3:
        assert best == np.einsum_path(subscripts, *arrays, optimize="optimal")[0]


def test_a_path_of_einsum_needs_shapes_alone() -> None:
    def f(a, b, c):
        path, _ = tk.einsum_path("ij,jk,k->i", a, b, c)
        assert path == ["einsum_path", (1, 2), (0, 1)]
        return tk.einsum("ij,jk,k->i", a, b, c, optimize=path)

    assert tk.jit(f)(tk.ones((8, 9)), tk.ones((9, 7)), tk.ones(7)).tolist() == [63.0] * 8
    with pytest.raises(ArgumentError, match=r"^einsum_path: no operands for 'ij'"):
        tk.einsum_path("ij")


def test_a_diagonal_uses_no_product_with_a_mask():
    x = f64([[1.0, math.inf], [math.nan, 2.0]])
    assert tk.einsum("ii->i", x).tolist() == [1.0, 2.0]
    assert tk.grad(lambda x: tk.einsum("ii", x) ** 2)(x).tolist() == [[6.0, 0.0], [0.0, 6.0]]


@FEW
@given(st.integers(9, 11), st.randoms())
def test_many_operands_are_ordered_greedily(count, rng):
    sizes = [rng.randint(1, 3) for _ in range(count + 1)]
    operands = [
        np.random.default_rng(i).integers(-2, 3, sizes[i : i + 2]).astype("float64") for i in range(count)
    ]
    letters = string.ascii_lowercase[: count + 1]
    subscripts = ",".join(letters[i : i + 2] for i in range(count)) + f"->{letters[0]}{letters[-1]}"
    same(tk.einsum(subscripts, *map(f64, operands)), np.linalg.multi_dot(operands))


# ---- derivatives, vmap, shapes alone -----------------------------------------------------------------------

RNG = np.random.default_rng(0)
A, B, C, T = (RNG.uniform(0.5, 1.5, shape) for shape in ((3, 4), (4, 2), (2, 3), (2, 3, 4)))
V3 = RNG.uniform(-1.0, 1.0, 3)

CALLS: dict[str, tuple[Callable[..., Tensor], tuple[Any, ...]]] = {
    "matmul": (tk.matmul, (A, B)),
    "matmul of batches": (tk.matmul, (T, B)),
    "matmul with a vector": (tk.matmul, (V3, A)),
    "dot": (tk.dot, (T, B)),
    "dot of many axes": (tk.dot, (A.T, T)),
    "vdot": (tk.vdot, (A, A.T)),
    "inner": (tk.inner, (A, T)),
    "outer": (tk.outer, (V3, B)),
    "tensordot": (lambda a, b: tk.tensordot(a, b, ((2, 1), (1, 0))), (T, A)),
    "tensordot, no axes": (lambda a, b: tk.tensordot(a, b, 0), (V3, B)),
    "vecdot": (lambda a, b: tk.vecdot(a, b, axis=-2), (T, A)),
    "kron": (tk.kron, (A, C)),
    "cross": (lambda a, b: tk.cross(a, b, axis=-2), (T, A)),
    "einsum of a matrix product": (lambda a, b: tk.einsum("ij,jk->ik", a, b), (A, B)),
    "einsum of a chain": (lambda a, b, c: tk.einsum("ij,jk,kl->il", a, b, c), (A, B, C)),
    "einsum of a chain that closes": (lambda a, b, c: tk.einsum("ij,jk,ki", a, b, c), (A, B, C)),
    "einsum of a trace": (lambda a: tk.einsum("iij->j", a), (T[:2, :2],)),
    "einsum with ...": (lambda a, b: tk.einsum("...j,jk->k...", a, b), (T, B)),
    "einsum with a batch": (lambda a, b: tk.einsum("bij,bik->bjk", a, b), (T, T)),
    "einsum that adds axes up": (lambda a, b: tk.einsum("ij,k->k", a, b), (A, V3)),
    "einsum of one operand": (lambda a: tk.einsum("ijk->kj", a), (T,)),
    "einsum with a repeated axis": (lambda a, b: tk.einsum("ij,ik->jk", a, b), (A[:1], A)),
    "einsum of squares": (lambda a: tk.einsum("ij,ij->i", a, a), (A,)),
}


@pytest.mark.feature(176, 177)
@pytest.mark.parametrize("name", CALLS)
def test_derivatives(name):
    f, operands = CALLS[name]
    tk.testing.check_grads(f, tuple(f64(a) for a in operands))


@pytest.mark.parametrize("name", CALLS)
def test_vmap_is_the_loop(name):
    f, operands = CALLS[name]
    batches = [f64(np.stack([a, a + 1.0])) for a in operands]
    singles = [f64(a) for a in operands]
    alone = (None,) * (len(operands) - 1)
    slopes = tk.grad(lambda *xs: (f(*xs) ** 2).sum(), tuple(range(len(operands))))
    for axes in ((0,) * len(operands), (0, *alone), (*alone, 0)):
        arguments = [
            x if axis is None else batch for x, axis, batch in zip(singles, axes, batches, strict=True)
        ]

        def row(i, arguments=arguments, axes=axes):
            return [x if axis is None else x[i] for x, axis in zip(arguments, axes, strict=True)]

        expected = np.stack([array(f(*row(i))) for i in range(2)])
        np.testing.assert_allclose(array(tk.vmap(f, in_axes=axes)(*arguments)), expected, rtol=1e-13)
        found = tk.vmap(slopes, in_axes=axes)(*arguments)
        loops = [slopes(*row(i)) for i in range(2)]
        for k, mine in enumerate(found):
            np.testing.assert_allclose(array(mine), np.stack([array(loop[k]) for loop in loops]), rtol=1e-12)
        total = tk.grad(lambda *xs, axes=axes: (tk.vmap(f, in_axes=axes)(*xs) ** 2).sum(), 0)(*arguments)
        per_row = np.stack([array(loop[0]) for loop in loops])
        np.testing.assert_allclose(array(total), per_row if axes[0] == 0 else per_row.sum(0), rtol=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_shapes_are_known_without_values(name):
    f, operands = CALLS[name]
    expected = f(*map(f64, operands)).shape
    tracker = ShapeTracker(Fuse(Numpy()))
    assert f(*[tk.tensor(a, backend=tracker) for a in operands]).shape == expected
    assert f(*[tk.symbol(c, a.shape) for c, a in zip("abc", operands, strict=False)]).shape == expected


# ---- what is computed --------------------------------------------------------------------------------------

N = 40


def counted(call: Callable[..., Any], *shapes: tuple[int, ...]) -> Counting:
    """The calls of a backend below Fuse during a call, whose results are read completely."""
    counting = Counting()
    stack = Fuse(counting)
    operands = [f64(np.ones(shape), stack) for shape in shapes]
    counting.clear()
    for x in tree.leaves(call(*operands)):
        x.interpreter.ravel(x.representation)
    return counting


PLAIN = lambda a, b: tk.einsum("ij,jk->ik", a, b)  # noqa: E731
DOTTED = lambda a, b: tk.tensordot(a, b, 1)  # noqa: E731


@pytest.mark.feature(177)
@pytest.mark.parametrize("product", [PLAIN, DOTTED, tk.matmul, tk.dot, lambda a, b: tk.inner(a, b.T)])
@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: f,
        lambda f: tk.grad(lambda a, b: (f(a, b) ** 2).sum(), (0, 1)),
        lambda f: lambda a, b: tk.jvp(f, (a, b), (b, a)),
        lambda f: lambda a, b: tk.hvp(lambda a, b: (f(a, b) ** 2).sum(), (a, b), (b, a)),
    ],
    ids=["", "grad", "jvp", "hvp"],
)
def test_the_product_of_matrices_is_never_built(product, transformed):
    counting = counted(transformed(product), (N, N), (N, N))
    assert counting.calls["fused_multiply_add"] >= 1
    assert max(math.prod(shape) for _, shape in counting.sizes) == N * N


@pytest.mark.parametrize("product", [PLAIN, DOTTED, tk.matmul])
@pytest.mark.parametrize(
    ("axes", "batches"),
    [((0, None), ((3, N, N), (N, N))), ((0, 0), ((3, N, N), (3, N, N)))],
    ids=["shared", "own"],
)
def test_nor_is_that_of_a_batch(product, axes, batches):
    def loss(a, b):
        return (product(a, b) ** 2).sum()

    each = tk.vmap(tk.grad(loss, (0, 1)), in_axes=axes)
    whole = tk.grad(lambda a, b: tk.vmap(loss, in_axes=axes)(a, b).sum(), (0, 1))
    for f in (tk.vmap(product, in_axes=axes), each, whole):
        counting = counted(f, *batches)
        assert counting.calls["fused_multiply_add"] >= 1
        assert max(math.prod(shape) for _, shape in counting.sizes) == 3 * N * N


@pytest.mark.feature(177)
def test_einsum_and_tensordot_are_one_contraction_as_matmul_is():
    for product in (PLAIN, DOTTED, tk.matmul):
        counting = counted(product, (N, N), (N, N))
        assert counting.calls["fused_multiply_add"] == 1
        assert counting.calls["mul"] == counting.calls["sum"] == 0


def test_several_axes_are_one_contraction():
    counting = counted(lambda a, b: tk.einsum("aibj,jbk->aik", a, b), (2, 3, 4, 5), (5, 4, 6))
    assert counting.calls["fused_multiply_add"] == 1
    assert counting.calls["mul"] == counting.calls["sum"] == 0


def test_axes_of_only_one_operand_are_summed_first():
    counting = counted(lambda a, b: tk.einsum("ij,kl->ik", a, b), (N, N), (N, N))
    assert counting.calls["sum"] == 2
    assert ("mul", (N, N)) in counting.sizes or ("fused_multiply_add", (N, N)) in counting.sizes
    assert max(math.prod(shape) for _, shape in counting.sizes) == N * N


@pytest.mark.parametrize("optimize", ["optimal", "greedy"])
def test_the_cheapest_order_is_taken(optimize):
    """A vector at the end of a chain is multiplied first; written from left to right, matrices would be."""
    chain = "ij,jk,kl,l->i"
    shapes = (N, N), (N, N), (N, N), (N,)
    good = counted(lambda *xs: tk.einsum(chain, *xs, optimize=optimize), *shapes)
    assert all(math.prod(shape) == N for name, shape in good.sizes if name == "fused_multiply_add")
    assert good.calls["fused_multiply_add"] == 3
    bad = counted(lambda *xs: tk.einsum(chain, *xs, optimize=False), *shapes)
    assert (
        bad.sizes["fused_multiply_add", (1, N, N)]
        + bad.sizes["fused_multiply_add", (N, N, 1)]
        + bad.sizes["fused_multiply_add", (N, 1, N)]
        == 2
    )


def test_the_best_order_is_found_among_all():
    """Costs of matrix chains, by the textbook's recursion."""
    from tensorken.arrays.functions.contraction_order import steps_of

    rng = np.random.default_rng(0)
    for _ in range(30):
        count = int(rng.integers(3, 8))
        dims = [int(n) for n in rng.integers(1, 30, count + 1)]
        best = [[0] * (count + 1) for _ in range(count + 1)]
        for span in range(2, count + 1):
            for i in range(count - span + 1):
                j = i + span
                best[i][j] = min(
                    best[i][k] + best[k][j] + dims[i] * dims[k] * dims[j] for k in range(i + 1, j)
                )
        labels: list[Any] = [tuple(string.ascii_lowercase[i : i + 2]) for i in range(count)]
        output = (string.ascii_lowercase[0], string.ascii_lowercase[count])
        sizes: Any = dict(zip(string.ascii_lowercase, dims, strict=False))
        cost, live = 0, [set(term) for term in labels]
        for i, j in steps_of(labels, output, sizes, "optimal", ""):
            both = live[i] | live[j]
            cost += math.prod(sizes[c] for c in both)
            live = [term for k, term in enumerate(live) if k not in (i, j)]
            live.append(both & set(output).union(*live))
        assert cost == best[0][count]


def test_memory_of_einsum_is_that_of_its_operands_and_results():
    rng = np.random.default_rng(0)
    a, b = (tk.tensor(rng.standard_normal((256, 256), "float32")) for _ in range(2))
    gradient = tk.grad(lambda a, b: (PLAIN(a, b) ** 2).sum(), (0, 1))
    assert (
        peak_of(lambda: [array(g) for g in gradient(a, b)]) < 12 * 4 * 256 * 256
    )  # the product has 256 times one
    batched = tk.vmap(gradient, in_axes=(0, None))
    several = tk.stack([a, b])
    assert peak_of(lambda: [array(g) for g in batched(several, b)]) < 24 * 4 * 256 * 256


# ---- mistakes ----------------------------------------------------------------------------------------------

V = tk.tensor([1.0, 2.0, 3.0], backend=FUSED)
M = tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], backend=FUSED)
OTHER = tk.tensor([1.0, 2.0, 3.0], backend=Fuse(Numpy()))

# fmt: off
MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    *[(lambda name=name: getattr(tk, name)(V, OTHER), MixedBackendError, f"{name}: operands live on different backends")
      for name in PRODUCTS],
    (lambda: V @ OTHER, MixedBackendError, "matmul: .* move one with x.to"),
    (lambda: tk.dot(M, M), ShapeError, r"dot: sizes differ, axis -1 of \(2, 3\) and axis -2 of \(2, 3\); they must"),
    (lambda: tk.dot(M, tk.ones(2)), ShapeError, r"dot: sizes differ, axis -1 of \(2, 3\) and axis -1 of \(2,\)"),
    (lambda: tk.inner(M, tk.ones(2)), ShapeError, r"inner: the last sizes differ, 3 of \(2, 3\) and 2 of \(2,\)"),
    (lambda: tk.vdot(M, V), ShapeError, r"vdot: 6 elements of shape \(2, 3\) and 3 of \(3,\)"),
    (lambda: tk.vecdot(M, tk.ones(2)), ShapeError, "vecdot: sizes 3 and 2 differ along axis -1"),
    (lambda: tk.vecdot(M, tk.ones((3, 3))), ShapeError, "vecdot: shapes .* do not broadcast"),
    (lambda: tk.vecdot(M, V, axis=-2), AxisError, "vecdot: axis -2 is out of range"),
    (lambda: tk.cross(M, tk.ones(2)), ShapeError, "cross: vectors need 3 elements, got sizes 3 and 2 along axis -1"),
    (lambda: tk.cross(M, tk.ones((3, 3))), ShapeError, "cross: shapes .* do not broadcast"),
    (lambda: tk.tensordot(M, M, 1), ShapeError, r"tensordot: axis 1 of \(2, 3\) has size 3, axis 0 of \(2, 3\) has 2"),
    (lambda: tk.tensordot(M, V, 2), AxisError, r"tensordot: cannot pair 2 axes of shapes \(2, 3\) and \(3,\)"),
    (lambda: tk.tensordot(M, M, ((0, 0), (0, 0))), AxisError, r"tensordot: axes \(0, 0\) name an axis twice"),
    (lambda: tk.tensordot(M, M, ((0, 1), (0,))), ArgumentError, "tensordot: 2 axes of a and 1 of b"),
    (lambda: tk.tensordot(M, M, ((0,), (2,))), AxisError, "tensordot: axis 2 is out of range"),
    (lambda: tk.tensordot(M, M, 0.5), ArgumentError, "tensordot: axes must be an int or a pair of axes"),
    (lambda: tk.einsum("ij,jk->ik", M, M),
     ShapeError, r"einsum: 'j' of 'ij,jk->ik' has size 3 in operand 0 of shape \(2, 3\) and 2 in operand 1"),
    (lambda: tk.einsum("...i,...i", M, tk.ones((5, 3))), ShapeError, "einsum: axis -1 of '...' of .* has size 2"),
    (lambda: tk.einsum("ii", M), ShapeError, r"einsum: 'i' names sizes 2 and 3 in operand 0 of shape \(2, 3\)"),
    (lambda: tk.einsum("i", M), ShapeError, r"einsum: term 'i' of 'i' names 1 axes, operand 0 of shape \(2, 3\) has 2"),
    (lambda: tk.einsum("ijk...", M), ShapeError, "einsum: term 'ijk...' of 'ijk...' names 3 axes"),
    (lambda: tk.einsum("ij,jk", M), ArgumentError, "einsum: 'ij,jk' has 2 terms for 1 operands; give one for each"),
    (lambda: tk.einsum("ij->k", M), ArgumentError, "einsum: the result's 'k' in 'ij->k' is in no operand"),
    (lambda: tk.einsum("ij->ii", M), ArgumentError, "einsum: the result's 'i' in 'ij->ii' occurs twice"),
    (lambda: tk.einsum("i...->i", M), ArgumentError, "einsum: 'i...->i' has '...' for 1 axes, but the result has no"),
    (lambda: tk.einsum("i$", M), ArgumentError, r"einsum: '\$' in 'i\$' is not a letter"),
    (lambda: tk.einsum("i..", M), ArgumentError, r"einsum: '\.' in 'i\.\.' is not a letter"),
    (lambda: tk.einsum("ij->i->j", M), ArgumentError, "einsum: '-' in 'ij->i->j' is not a letter"),
    (lambda: tk.einsum("ij,j"), ArgumentError, "einsum: no operands for 'ij,j'; write einsum"),
    (lambda: tk.einsum(M, "ij"), ArgumentError, "einsum: need subscripts, or operands and lists of ints"),
    (lambda: tk.einsum(M, [0, 60]), ArgumentError, r"einsum: need subscripts, .* got \[0, 60\]"),
    (lambda: tk.einsum("i,i", V, OTHER), MixedBackendError, "einsum: operands live on different backends"),
    (lambda: tk.einsum("i,i", V, V, optimize="best"), ArgumentError, "einsum: unknown optimize='best'"),
    (lambda: tk.einsum("i,i", V, V, optimize=[(0, 2)]), ArgumentError, r"einsum: step \(0, 2\) of the path"),
    (lambda: tk.einsum("i,i", V, V, optimize=[0.5]), ArgumentError, "einsum: a path must be pairs of operands"),
]
# fmt: on


@pytest.mark.parametrize(("call", "error", "message"), MISTAKES, ids=lambda value: "")
def test_mistakes_are_one_clear_line(call, error, message):
    with pytest.raises(error, match=f"^{message}") as caught:
        call()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
