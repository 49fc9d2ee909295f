"""Packing: the second matrix of products of a loop is copied to panels once, before the loop.

Each panel has as many columns as a block in registers; the elements of each inner index are contiguous (gemm.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from llvmlite import ir

from tensorken_llvm.builder import Builder, new_function
from tensorken_llvm.dtypes import BIT, POINTER, float_number, index_number
from tensorken_llvm.gemm import Product, write_product


def packed_size(product: Product) -> int:
    """The number of elements of all panels of the second matrix."""
    columns = product.vectors.columns
    return -(-product.columns // columns) * columns * product.inner


def write_packing(module: ir.Module, product: Product) -> ir.Function:
    """The function that copies the second matrix of a product to panels; its arguments are pointers to both.

    Panels have zeros where there are no more columns.
    """
    vectors, (along_inner, along_columns) = product.vectors, product.second
    name = f"pack {product}"
    found = module.globals.get(name)
    if found is not None:
        return found
    function = new_function(module, name, [POINTER, POINTER])
    source, target = function.args
    for argument in function.args:
        argument.add_attribute("noalias")
    b = Builder(function.append_basic_block("entry"))

    def panel(j: Any, count: int) -> None:
        start = b.mul(j, index_number(vectors.columns))
        first = b.gep(source, [b.mul(start, index_number(along_columns))], source_etype=vectors.element)
        to = b.gep(target, [b.mul(start, index_number(product.inner))], source_etype=vectors.element)

        def row(k: Any) -> None:
            def element(i: Any) -> None:
                at = b.add(b.mul(k, index_number(along_inner)), b.mul(i, index_number(along_columns)))
                x = b.load(b.gep(first, [at], source_etype=vectors.element), typ=vectors.element)
                b.store(x, place(i))

            def place(i: Any) -> Any:
                at = b.add(b.mul(k, index_number(vectors.columns)), i)
                return b.gep(to, [at], source_etype=vectors.element)

            b.loop(count, element)
            if count < vectors.columns:
                zero = float_number(0.0, vectors.element)
                b.loop(
                    index_number(vectors.columns),
                    lambda i: b.store(zero, place(i)),
                    first=index_number(count),
                )

        b.loop(product.inner, row)

    _each_panel(b, product, panel)
    b.ret_void()
    return function


def write_packed_product(module: ir.Module, product: Product) -> ir.Function:
    """The function of a product whose second matrix is packed; its arguments are those of `write_product`."""
    name = f"packed {product}"
    found = module.globals.get(name)
    if found is not None:
        return found
    vectors = product.vectors
    function = new_function(module, name, [POINTER, POINTER, POINTER, BIT])
    first, second, result, adds = function.args
    b = Builder(function.append_basic_block("entry"))

    def panel(j: Any, count: int) -> None:
        start = b.mul(j, index_number(vectors.columns))
        one = replace(product, columns=count, second=(vectors.columns, 1))
        panel_at = b.gep(second, [b.mul(start, index_number(product.inner))], source_etype=vectors.element)
        y = b.gep(result, [start], source_etype=vectors.element)
        b.call(write_product(module, one), [first, panel_at, y, adds])

    _each_panel(b, product, panel)
    b.ret_void()
    return function


def _each_panel(b: Builder, product: Product, body: Callable[[Any, int], None]) -> None:
    """Write the loop over panels, and the last one if it has fewer columns."""
    full, rest = divmod(product.columns, product.vectors.columns)
    if full:
        b.loop(full, lambda j: body(j, product.vectors.columns))
    if rest:
        body(index_number(full), rest)
