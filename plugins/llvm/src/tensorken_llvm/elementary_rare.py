"""Computations that few elements need, in loops that LLVM vectorises.

A branch would keep LLVM from vectorising a loop.  So such a computation is a function with variants for vectors, which
LLVM's vectoriser calls ("vector-function-abi-variant", LLVM Language Reference): a variant tests whether any element
needs the computation, and only then computes it, element by element.  The tests are inlined after loops have been
vectorised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from tensorken_llvm.builder import Builder
from tensorken_llvm.dtypes import FLOAT, INT32
from tensorken_llvm.elementary_numbers import Number


def rarely(name: str, compute: Callable[..., Number], bound: float, *operands: Number) -> Number:
    """compute(*operands) where the last operand is at least a bound; elsewhere anything.

    Args:
        name: of the function; those of different dtypes may have the same.
        compute: writes the computation; it may be run for any operands.
        bound: few elements reach it.
        operands: of one float dtype.
    """
    last = operands[-1]
    name = f"{name}.{last.dtype.name}"
    function = last.builder.module.globals.get(name) or _write(name, compute, bound, operands)
    return last.like(last.builder.call(function, [x.value for x in operands]))


def _write(name: str, compute: Callable[..., Number], bound: float, operands: Sequence[Number]) -> Any:
    module, type_ = operands[-1].builder.module, operands[-1].value.type
    widths = (4, 8, 16) if type_ is FLOAT else (2, 4, 8)
    rare, b = _function(module, f"{name}.rare", type_, len(operands), ("noinline", "cold"))
    rare.linkage = "internal"
    b.ret(compute(*[Number(b, x, operands[-1].functions) for x in rare.args]).value)
    parameters = "v" * len(operands)
    variants = ",".join([f"_ZGV_LLVM_N{n}{parameters}_{name}({name}.{n})" for n in widths])
    function, b = _function(
        module, name, type_, len(operands), ("noinline", f'"vector-function-abi-variant"="{variants}"')
    )
    _write_test(b, rare, bound, None)
    for n in widths:
        slow, b = _function(
            module, f"{name}.rare.{n}", ir.VectorType(type_, n), len(operands), ("noinline", "cold")
        )
        slow.linkage = "internal"
        _write_lanes(b, rare, n)
        _, b = _function(module, f"{name}.{n}", ir.VectorType(type_, n), len(operands), ("alwaysinline",))
        _write_test(b, slow, bound, n)
    return function


def _function(
    module: ir.Module, name: str, type_: Any, count: int, attributes: Sequence[str]
) -> tuple[ir.Function, Builder]:
    """A function of numbers that has no other effects."""
    function = ir.Function(module, ir.FunctionType(type_, [type_] * count), name)
    for attribute in (*attributes, "nounwind", "willreturn", "memory(none)"):
        set.add(function.attributes, attribute)  # llvmlite knows few attributes
    return function, Builder(function.append_basic_block("entry"))


def _write_test(b: Builder, rare: ir.Function, bound: float, lanes: int | None) -> None:
    """Call a function if an element reaches the bound, else return anything."""
    operands = b.function.args
    last = operands[-1]
    if lanes is None:
        reached = b.fcmp_ordered(">=", last, ir.Constant(last.type, bound))
    else:
        limit = ir.Constant(last.type, [ir.Constant(last.type.element, bound)] * lanes)
        mask = ir.IntType(lanes)
        reached = b.icmp_unsigned(
            "!=", b.bitcast(b.fcmp_ordered(">=", last, limit), mask), ir.Constant(mask, 0)
        )
    entry, needed, done = b.block, b.append_basic_block("needed"), b.append_basic_block("done")
    b.cbranch(reached, needed, done)
    b.position_at_end(needed)
    found = b.call(rare, operands)
    b.branch(done)
    b.position_at_end(done)
    result = b.phi(last.type)
    result.add_incoming(last, entry)
    result.add_incoming(found, needed)
    b.ret(result)


def _write_lanes(b: Builder, rare: ir.Function, lanes: int) -> None:
    """Call a function for each element; not the one with the test, whose calls LLVM would join to a vector's again."""
    operands = b.function.args
    result = operands[-1]
    for i in range(lanes):
        lane = ir.Constant(INT32, i)
        y = b.call(rare, [b.extract_element(x, lane) for x in operands])
        result = b.insert_element(result, y, lane)
    b.ret(result)
