"""Products of matrices: BLAS reads operands where they lie, and computes what numpy's einsum does."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Program
from tensorken_llvm import blas, products, program as programs
from tensorken_llvm.blas import Blas, find_blas
from tensorken_llvm.dtypes import INT32, INT64
from tensorken_llvm.plans import Kernel
from tensorken_llvm.products import MatrixProduct, matrix_products
from tensorken_llvm.program import MachineProgram, compiled
from tensorken_numpy.backend import Numpy

NUMPY = Numpy()

pytestmark = pytest.mark.skipif(find_blas() is None, reason="numpy's BLAS has no known names")


def traced(f: Callable[..., Any], xs: Sequence[Any]) -> Program:
    """The program of a function."""
    return optimised(tk.trace(f)(*[tk.tensor(x, backend=NUMPY) for x in xs]), NUMPY)


def machine_program(f: Callable[..., Any], *xs: Any) -> MachineProgram:
    """A function as machine code."""
    found = compiled(traced(f, xs), NUMPY)
    assert isinstance(found, MachineProgram)
    return found


def steps(found: MachineProgram) -> list[str]:
    """What a program runs: a product, the ops of the values that a kernel writes, or a called op."""
    names = []
    plan = found.source().plan
    for step in plan.steps:
        if not isinstance(step, Kernel):
            names.append(f"call {step.op.name}")
        elif isinstance(step.computes, MatrixProduct):
            names.append("product")
        else:
            names.append(" ".join([plan.lowered.producers[v].op.name for v in step.writes]))
    return names


def product_of(found: MachineProgram) -> MatrixProduct:
    """The only product of a program."""
    (product,) = [
        x.computes
        for x in found.source().plan.steps
        if isinstance(x, Kernel) and isinstance(x.computes, MatrixProduct)
    ]
    return product


def integers(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    """Small integers, whose products and sums are exact."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def normal(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


# ---- contractions of many layouts ----------------------------------------------------------------------------


class Contraction:
    """A random einsum of two operands, with rows, columns, inner and batch axes in any order, some of them cropped."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        labels = iter("abcdefgh")
        names = {
            dimension: [next(labels) for _ in range(rng.choice(counts))]
            for dimension, counts in {
                "batch": (0, 0, 1, 2),
                "rows": (1, 1, 2),
                "columns": (1, 1, 2),
                "inner": (1, 1, 2),
            }.items()
        }
        self.sizes = {name: rng.choice([1, 2, 3, 5, 8]) for found in names.values() for name in found}
        if rng.random() < 0.1:
            self.sizes[rng.choice([*self.sizes])] = 0

        def order(*dimensions: str) -> str:
            found = [name for dimension in dimensions for name in names[dimension]]
            if rng.random() < 0.7:
                rng.shuffle(found)
            return "".join(found)

        self.first = order("batch", "rows", "inner")
        self.second = order("batch", "inner", "columns")
        self.spec = f"{self.first},{self.second}->{order('batch', 'rows', 'columns')}"
        self.dtype = rng.choice(["float32", "float64", "float32", "float64", "int32", "float16"])
        self.is_cropped = rng.random() < 0.4
        self.is_computed = rng.random() < 0.3

    def operand(self, labels: str, make: Callable[..., Any]) -> Any:
        """An operand, with a margin if it is cropped."""
        margin = 3 if self.is_cropped else 0
        return make(*[self.sizes[name] + margin for name in labels], dtype=self.dtype, seed=len(labels))

    def of(self, lib: Any, a: Any, b: Any) -> Any:
        """The result in a library."""
        if self.is_cropped:
            a, b = [x[(slice(1, -2),) * x.ndim] for x in (a, b)]
        if self.is_computed:
            a = a * 2
        return lib.einsum(self.spec, a, b) + 1

    def operands(self, make: Callable[..., Any]) -> list[Any]:
        """Both operands."""
        return [self.operand(labels, make) for labels in (self.first, self.second)]


@pytest.mark.parametrize("work", [1, products.MIN_WORK])
@pytest.mark.parametrize(
    "first", [0, *[pytest.param(first, marks=pytest.mark.nightly) for first in range(30, 120, 30)]]
)
def test_contractions_of_small_integers_are_exact(first: int, work: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(products, "MIN_WORK", work)
    found = 0
    for seed in range(first, first + 30):
        contraction = Contraction(seed)
        xs = contraction.operands(integers)
        expected = contraction.of(np, *[x.astype("float64") for x in xs])
        code = compiled(traced(lambda a, b, c=contraction: c.of(tk, a, b), xs), NUMPY)
        if code is None:
            continue
        for _ in range(2):  # the second call has the memory of the first
            (y,) = code(xs)
            np.testing.assert_array_equal(y, expected.astype(contraction.dtype), str(vars(contraction)))
            assert y.dtype == contraction.dtype
        found += steps(code).count("product")  # type: ignore[arg-type]
    assert found > 5 or work > 1


@pytest.mark.parametrize("first", range(1000, 1060, 30))
def test_contractions_are_as_accurate_as_sums_can_be(first: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(products, "MIN_WORK", 1)
    for seed in range(first, first + 30):
        contraction = Contraction(seed)
        if contraction.dtype not in blas.GEMM:
            continue
        xs = contraction.operands(normal)
        code = compiled(traced(lambda a, b, c=contraction: c.of(tk, a, b), xs), NUMPY)
        if code is None:
            continue
        wide = [x.astype("longdouble") for x in xs]
        exact, size = contraction.of(np, *wide), contraction.of(np, *map(np.abs, wide))
        terms = np.prod(
            [n for name, n in contraction.sizes.items() if name not in contraction.spec.split(">")[1]]
        )
        (y,) = code(xs)
        assert np.all(np.abs(y - exact) <= (terms + 3) * np.finfo(contraction.dtype).eps * size)


LAYOUTS: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...], tuple[int, ...]]] = {
    "plain": (lambda a, b: a @ b, (20, 30), (30, 40)),
    "first transposed": (lambda a, b: a.mT @ b, (30, 20), (30, 40)),
    "second transposed": (lambda a, b: a @ b.mT, (20, 30), (40, 30)),
    "result transposed": (lambda a, b: (a @ b).mT, (20, 30), (30, 40)),
    "batch": (lambda a, b: a @ b, (5, 20, 30), (5, 30, 40)),
    "one matrix for a batch": (lambda a, b: a @ b, (5, 20, 30), (30, 40)),
    "broadcast batches": (lambda a, b: a @ b, (2, 1, 20, 30), (3, 30, 40)),
    "cropped": (lambda a, b: a[3:23] @ b[:, 5:-7], (30, 30), (30, 40)),
    "heads": (lambda a, b: tk.einsum("bqhd,bkhd->bhqk", a, b), (2, 16, 3, 8), (2, 15, 3, 8)),
    "heads of one array": (
        lambda a, b: tk.permute_dims(a[:, :24].reshape(16, 3, 8), (1, 0, 2)) @ b,
        (16, 72),
        (3, 8, 16),
    ),
    "two inner axes": (lambda a, b: tk.einsum("iajb,akb->ijk", a, b), (6, 3, 20, 16), (3, 16, 16)),
    "inner axes stored as one": (lambda a, b: tk.tensordot(a, b, 2), (20, 5, 6), (5, 6, 40)),
    "inner axes in another order": (lambda a, b: tk.einsum("iab,bak->ik", a, b), (20, 5, 6), (6, 5, 40)),
    "batches backwards": (lambda a, b: a[::-1] @ b, (5, 20, 30), (5, 30, 40)),
    "one row": (lambda a, b: tk.einsum("ij,jkl->ikl", a, b), (1, 30), (30, 6, 7)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_operands_are_read_where_they_lie(name: str, dtype: str) -> None:
    f, *shapes = LAYOUTS[name]
    xs = [integers(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]
    code = machine_program(f, *xs)
    expected = traced(f, xs).replay(NUMPY, xs)
    np.testing.assert_array_equal(code(xs)[0], expected[0])
    if name == "result transposed":
        assert steps(code)[-1] in ("product", "permute")
    elif name != "one row":  # a matrix and a vector
        assert steps(code) == ["product"]
        assert product_of(code).reads == code.source().plan.program.inputs


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_sizes_of_zero(dtype: str) -> None:
    for m, n, k in [(0, 40, 30), (20, 0, 30), (20, 40, 0), (0, 0, 0), (20, 40, 30)]:
        xs = [np.ones((m, k), dtype), np.ones((k, n), dtype)]
        y, total = machine_program(lambda a, b: (a @ b + 1, a.sum() + 1), *xs)(xs)
        np.testing.assert_array_equal(y, np.full((m, n), k + 1, dtype))
        assert total == m * k + 1
    xs = [np.ones((0, 20, 30), dtype), np.ones((0, 30, 40), dtype)]
    y, total = machine_program(lambda a, b: (a @ b, (a @ b).sum() + 1), *xs)(xs)
    assert y.shape == (0, 20, 40)
    assert total == 1


def test_one_array_may_be_both_operands() -> None:
    x = integers(40, 30)
    code = machine_program(lambda x: (x @ x.mT, x.mT @ x), x)
    assert steps(code) == ["product", "product"]
    for y, expected in zip(code([x]), (x @ x.T, x.T @ x), strict=True):
        np.testing.assert_array_equal(y, expected)


def test_inputs_that_are_not_contiguous() -> None:
    a, b = integers(60, 40)[::2].T, integers(30, 50)[:, ::-1]
    np.testing.assert_array_equal(machine_program(lambda a, b: a @ b, a, b)([a, b])[0], a @ b)


# ---- which steps compute a program ---------------------------------------------------------------------------


def test_small_matrices_are_multiplied_in_the_kernel_of_later_ops() -> None:
    xs = integers(2, 3), integers(3, 4), integers(1, 4)
    code = machine_program(lambda a, b, c: tk.relu(a @ b + c), *xs)
    assert steps(code) == ["relu"]
    np.testing.assert_array_equal(code(xs)[0], np.maximum(xs[0] @ xs[1] + xs[2], 0))


def test_a_matrix_and_a_vector_are_multiplied_in_the_kernel_of_other_ops() -> None:
    xs = integers(100, 70), integers(70)
    code = machine_program(lambda a, x: tk.relu(a @ x), *xs)
    assert steps(code) == ["relu"]
    np.testing.assert_array_equal(code(xs)[0], np.maximum(xs[0] @ xs[1], 0))


def test_a_crop_of_a_computed_operand_is_computed_alone() -> None:
    xs = normal(1000, 30), normal(30, 40)
    code = machine_program(lambda a, b: tk.exp(a)[:50] @ b, *xs)
    assert steps(code) == ["crop" if "crop" in steps(code) else "exp", "product"]
    assert code.source().plan.steps[0].writes[0].shape == (50, 30)  # type: ignore[union-attr]


def attention(x: Any, weights: Any) -> Any:
    """Attention of 4 heads of width 8."""
    batch, context, width = x.shape
    together = x @ weights
    q, k, v = [
        tk.permute_dims(
            together[:, :, i * width : (i + 1) * width].reshape(batch, context, 4, width // 4), (0, 2, 1, 3)
        )
        for i in range(3)
    ]
    mixed = tk.softmax(q @ k.mT / 3.0, -1) @ v
    return tk.permute_dims(mixed, (0, 2, 1, 3)).reshape(x.shape)


def test_attention_copies_and_calls_nothing() -> None:
    # Small weights give scores near 1: the exponential of a large score multiplies the error of its sum.
    xs = normal(3, 20, 32), 0.1 * normal(32, 96, seed=1)
    code = machine_program(attention, *xs)
    found = steps(code)
    assert found.count("product") == 3
    assert [name for name in found if "call" in name] == []
    assert {name for name in found if name != "product"} <= {"div", "permute", "reshape"}
    assert len(found) <= 5  # with a softmax, and the permuted result
    np.testing.assert_allclose(code(xs)[0], traced(attention, xs).replay(NUMPY, xs)[0], rtol=1e-5, atol=1e-5)


def test_the_gradient_of_a_perceptron_copies_and_calls_nothing() -> None:
    def loss(w: Any, v: Any, x: Any) -> Any:
        return (tk.relu(x @ w) @ v).square().sum()

    gradient = tk.grad(loss, (0, 1))
    xs = normal(40, 50, seed=1), normal(50, 30, seed=2), normal(20, 40, seed=3)
    code = machine_program(gradient, *xs)
    found = steps(code)
    assert found.count("product") == 5
    assert not {"permute", "expand", "reshape"}.intersection(" ".join(found).split())
    assert [name for name in found if "call" in name] == []
    for y, expected in zip(code(xs), traced(gradient, xs).replay(NUMPY, xs), strict=True):
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-4 * np.abs(expected).max())


def batches_last(a: Any, b: Any) -> Any:
    """A batch of products whose neighbours in memory belong to different products."""
    return tk.einsum("ikb,kjb->ijb", a, b) + 1


def test_operands_and_results_are_moved_to_a_layout_of_blas() -> None:
    for dtype in blas.GEMM:
        xs = integers(20, 30, 4, dtype=dtype), integers(30, 40, 4, dtype=dtype)
        code = machine_program(batches_last, *xs)
        assert sorted(steps(code)) == ["add", "permute", "permute", "product"]  # copies of the operands
        np.testing.assert_array_equal(code(xs)[0], np.einsum("ikb,kjb->ijb", *xs) + 1)


COPIED: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...], tuple[int, ...]]] = {
    "rows of two axes": (
        lambda a, b: tk.permute_dims(a, (1, 0, 2)).reshape(48, 32) @ b,
        (16, 3, 32),
        (32, 40),
    ),
    "rows backwards": (lambda a, b: a[::-1] @ b, (20, 30), (30, 40)),
    "repeated rows": (
        lambda a, b: a.broadcast_to((20, 30, 1)).apply(OPS["fused_multiply_add"], b, (1,)),
        (1, 30, 1),
        (1, 30, 40),
    ),
    "repeated columns": (
        lambda a, b: a.broadcast_to((20, 30, 1)).apply(OPS["fused_multiply_add"], b, (1,)),
        (20, 1, 1),
        (1, 30, 40),
    ),
    "batches of two axes": (
        lambda a, b: tk.permute_dims(a, (1, 0, 2, 3)).reshape(12, 20, 30) @ b,
        (4, 3, 20, 30),
        (12, 30, 40),
    ),
    "every second column": (lambda a, b: a @ b[:, ::2], (20, 30), (30, 80)),
}


@pytest.mark.parametrize("name", COPIED)
def test_operands_that_are_no_matrices_in_memory_are_copied(name: str) -> None:
    f, *shapes = COPIED[name]
    xs = [integers(*shape, seed=i) for i, shape in enumerate(shapes)]
    program = traced(f, xs)
    code = compiled(program, NUMPY)
    assert isinstance(code, MachineProgram)
    if "repeated" not in name:  # the passes multiply these once
        assert len(steps(code)) == 2
        assert steps(code)[1] == "product"
    np.testing.assert_array_equal(code(xs)[0], program.replay(NUMPY, xs)[0])


@pytest.mark.parametrize("dtype", ["int32", "int64", "float16"])
def test_products_of_other_dtypes_are_kernels(dtype: str) -> None:
    for f in (
        batches_last,
        lambda a, b: a[:, :, 0] @ b[:, :, 0] + 1,
        lambda a, b: a[:, :, 0] @ b[0, :30] + 1,
    ):
        xs = integers(20, 30, 4, dtype=dtype), integers(30, 40, 4, dtype=dtype)
        code = machine_program(f, *xs)
        assert not [name for name in steps(code) if "call" in name or name == "product"]
        expected = traced(f, xs).replay(NUMPY, xs)[0]
        np.testing.assert_array_equal(code(xs)[0], expected)
        assert code(xs)[0].dtype == dtype


def test_products_of_float16_are_summed_in_float32() -> None:
    xs = normal(40, 3000, dtype="float16"), normal(3000, 30, dtype="float16", seed=1)
    (y,) = machine_program(lambda a, b: a @ b, *xs)(xs)
    a, b = [x.astype("float64") for x in xs]
    error = np.abs(y - a @ b) - np.abs(a @ b) * 2**-11  # the result is rounded
    assert np.all(error <= 3000 * 2**-24 * (np.abs(a) @ np.abs(b)) + 2**-25)


# ---- the library ---------------------------------------------------------------------------------------------


def test_without_blas_products_are_called(monkeypatch: Any) -> None:
    monkeypatch.setattr(programs, "find_blas", lambda: None)
    xs = integers(20, 30), integers(30, 40)
    code = machine_program(lambda a, b: tk.relu(a.mT + 1).mT @ b, *xs)
    assert steps(code) == ["relu", "call fused_multiply_add"]
    np.testing.assert_array_equal(code(xs)[0], np.maximum(xs[0] + 1, 0) @ xs[1])


def test_a_library_of_other_names_is_not_used(monkeypatch: Any) -> None:
    monkeypatch.setattr(
        blas, "_libraries", lambda: [SimpleNamespace(sgemm=1), SimpleNamespace(cblas_sgemm=1)]
    )
    assert find_blas.__wrapped__() is None


@pytest.mark.parametrize(
    ("pattern", "configuration", "integer"),
    [
        ("cblas_{}", None, INT32),
        ("cblas_{}", b"OpenBLAS 0.3 NO_AFFINITY Haswell", INT32),
        ("cblas_{}", b"OpenBLAS 0.3 USE64BITINT Haswell", INT64),
        ("scipy_cblas_{}", None, INT32),
        ("scipy_cblas_{}64_", None, INT64),
        ("cblas_{}$NEWLAPACK$ILP64", None, INT64),
    ],
)
def test_the_integers_of_a_library_follow_from_its_names(
    pattern: str, configuration: bytes | None, integer: Any, monkeypatch: Any
) -> None:
    addresses: dict[str, int] = {}

    def describe() -> bytes | None:
        return configuration

    routine = ctypes.CFUNCTYPE(None)(lambda: None)
    names = {pattern.format(name): routine for name in blas.GEMM.values()}
    library = SimpleNamespace(**names, **({} if configuration is None else {"openblas_get_config": describe}))
    monkeypatch.setattr(blas, "_libraries", lambda: [library])
    monkeypatch.setattr(blas, "define_symbol", addresses.__setitem__)
    assert find_blas.__wrapped__() == Blas(integer, False)
    assert addresses == dict.fromkeys(
        ["tensorken_sgemm", "tensorken_dgemm"], ctypes.cast(routine, ctypes.c_void_p).value
    )


def test_machine_code_has_no_addresses() -> None:
    text = machine_program(lambda a, b: a @ b, normal(2000, 300), normal(300, 4)).source().text()
    assert 'declare void @"tensorken_sgemm"' in text
    assert "inttoptr" not in text


def test_integers_of_32_bits_limit_the_sizes(monkeypatch: Any) -> None:
    program = traced(lambda a, b: a @ b, [normal(20, 30), normal(30, 40)])
    (product,) = matrix_products(program, Blas(INT32, False)).values()
    assert product.largest == 1200
    monkeypatch.setattr(MatrixProduct, "largest", 2**31)
    assert matrix_products(program, Blas(INT32, False)) == {}
    assert len(matrix_products(program, Blas(INT64, False))) == 1
