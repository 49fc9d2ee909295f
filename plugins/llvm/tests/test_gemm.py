"""Products of matrices as machine code of ours: each kind of vectors, each layout, and sizes beside those of blocks."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from llvmlite import ir

from plugins.llvm.tests.test_programs import machine
from tensorken_llvm import gemm
from tensorken_llvm.builder import Builder
from tensorken_llvm.dtypes import BIT, DOUBLE, FLOAT, INT64, POINTER
from tensorken_llvm.gemm import Product, Vectors, vectors_of, write_product
from tensorken_llvm.machine import load, object_code, triple

VECTORS = {
    "float32": (Vectors(FLOAT, 16, 14, 2), Vectors(FLOAT, 8, 6, 2), Vectors(FLOAT, 4, 5, 3)),
    "float64": (Vectors(DOUBLE, 8, 14, 2), Vectors(DOUBLE, 4, 6, 2), Vectors(DOUBLE, 2, 5, 3)),
}
"""LLVM splits vectors that are wider than those of the CPU."""

UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}


def machine_code(product: Product) -> Any:
    """A function that computes a product; its arguments are arrays, and whether to add to the result."""
    module = ir.Module("product")
    module.triple = triple()
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [*[POINTER] * 3, INT64]), "entry")
    builder = Builder(entry.append_basic_block("entry"))
    *pointers, adds = entry.args
    builder.call(write_product(module, product), [*pointers, builder.trunc(adds, BIT)])
    builder.ret_void()
    library = load(object_code(str(module), is_quick=False), ["entry"])
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(library.addresses["entry"])
    # the library is unloaded with the last function that refers to it
    return lambda a, b, y, adds, library=library: run(a.ctypes.data, b.ctypes.data, y.ctypes.data, adds)


def multiply(product: Product, a: Any, b: Any, y: Any) -> None:
    """Compute a product by its machine code."""
    machine_code(product)(a, b, y, False)


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["NN", "TN", "NT", "TT"])
def test_every_layout_and_remainder(
    layout: str, dtype: str, kind: int, copies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gemm, "MAX_DEPTH", 32)  # several parts of the inner axis
    if copies:
        monkeypatch.setattr(gemm, "NEAR_FIRST", 0)
        monkeypatch.setattr(gemm, "NEAR_SECOND", 0)
        monkeypatch.setattr(gemm, "MAX_READS", 0)
        monkeypatch.setattr(gemm, "FIRST_BYTES", 2**12)  # several groups of panels
        monkeypatch.setattr(gemm, "SECOND_BYTES", 2**13)
    vectors, rng = VECTORS[dtype][kind], np.random.default_rng(0)
    copied = set()
    for rows, columns, inner in ((6, 64, 8), (16, 16, 8), (17, 19, 9), (31, 129, 129), (5, 127, 70)):
        a, b = rng.normal(size=(rows, inner)).astype(dtype), rng.normal(size=(inner, columns)).astype(dtype)
        start = rng.normal(size=(rows, columns + 3)).astype(dtype)
        first = (inner, 1) if layout[0] == "N" else (1, rows)
        second = (columns, 1) if layout[1] == "N" else (1, inner)
        product = Product(vectors, rows, columns, inner, first, second, columns + 3)
        copied |= {(product.copies_first, product.copies_second)}
        stored = (
            np.ascontiguousarray(a if layout[0] == "N" else a.T),
            np.ascontiguousarray(b if layout[1] == "N" else b.T),
        )
        bound = (inner + 2) * UNIT[dtype] * (np.abs(a) @ np.abs(b) + np.abs(start[:, :columns]))
        run = machine_code(product)
        for adds in (False, True):
            y = start.copy()
            run(*stored, y, adds)
            expected = a.astype("longdouble") @ b.astype("longdouble") + adds * start[:, :columns]
            assert np.all(np.abs(y[:, :columns] - expected) <= bound)
            np.testing.assert_array_equal(y[:, columns:], start[:, columns:])
    assert (copies and layout[0] == "T", copies or layout[1] == "T") in copied


def test_elements_do_not_depend_on_other_rows_and_columns() -> None:
    vectors, rng = VECTORS["float32"][0], np.random.default_rng(0)
    a, b = rng.normal(size=(40, 200)).astype("float32"), rng.normal(size=(200, 90)).astype("float32")
    whole, part = np.empty((40, 90), "float32"), np.empty((17, 90), "float32")
    multiply(Product(vectors, 40, 90, 200, (200, 1), (90, 1), 90), a, b, whole)
    multiply(Product(vectors, 17, 90, 200, (200, 1), (90, 1), 90), a[20:37].copy(), b, part)
    np.testing.assert_array_equal(part, whole[20:37])
    few = np.empty((40, 21), "float32")
    multiply(Product(vectors, 40, 21, 200, (200, 1), (21, 1), 21), a, b[:, 50:71].copy(), few)
    np.testing.assert_array_equal(few, whole[:, 50:71])


def test_elements_do_not_depend_on_what_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(200, 60)).astype("float32"), rng.normal(size=(200, 90)).astype("float32")
    product = Product(VECTORS["float32"][0], 60, 90, 200, (1, 60), (90, 1), 90)
    found = [np.empty((60, 90), "float32") for _ in range(2)]
    multiply(product, a, b, found[0])
    for name in ("NEAR_FIRST", "NEAR_SECOND", "MAX_READS"):
        monkeypatch.setattr(gemm, name, 0)
    monkeypatch.setattr(gemm, "MAX_DEPTH", 48)
    multiply(product, a, b, found[1])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_a_panel_is_read_where_it_is(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm, "MAX_DEPTH", 48)
    vectors, rng = VECTORS["float32"][kind], np.random.default_rng(0)
    for columns in (vectors.columns, vectors.columns - 1, 3):
        a = rng.normal(size=(13, 130)).astype("float32")
        panel = np.full((130, vectors.columns), np.nan, "float32")
        panel[:, :columns] = rng.normal(size=(130, columns))
        product = Product(vectors, 13, columns, 130, (130, 1), (vectors.columns, 1), columns + 1)
        y = np.full((13, columns + 1), np.nan, "float32")
        multiply(product, a, panel, y)
        exact = a.astype("longdouble") @ panel[:, :columns].astype("longdouble")
        bound = 132 * UNIT["float32"] * (np.abs(a) @ np.abs(panel[:, :columns]))
        assert np.all(np.abs(y[:, :columns] - exact) <= bound)
        assert np.all(np.isnan(y[:, columns]))


def test_special_values_reach_their_elements_alone() -> None:
    a, b = np.ones((20, 30), "float32"), np.ones((30, 33), "float32")
    a[3, 5], b[7, 32], a[19, 29] = np.inf, np.nan, -np.inf
    y = np.empty((20, 33), "float32")
    multiply(Product(VECTORS["float32"][0], 20, 33, 30, (30, 1), (33, 1), 33), a, b, y)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(y, a @ b)


@pytest.mark.skipif(vectors_of("float32") is None, reason="the CPU has no fused multiply-adds of vectors")
def test_programs_use_it_for_all_but_small_products() -> None:
    def text(rows: int, inner: int, columns: int) -> str:
        rng = np.random.default_rng(0)
        a, b = rng.normal(size=(rows, inner)), rng.normal(size=(inner, columns))
        return machine(lambda a, b: a @ b, a.astype("float32"), b.astype("float32")).source().text()

    for sizes in ((64, 64, 64), (1000, 700, 1000)):
        assert "gemm" in text(*sizes)
        assert "sgemm" not in text(*sizes)
    for sizes in ((2, 300, 300), (300, 300, 4)):
        assert "fma" not in text(*sizes)
