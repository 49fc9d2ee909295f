"""A builder of instructions, with the intrinsics that kernels use."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from tensorken_llvm.dtypes import BIT, BYTE, DOUBLE, FLOAT, INT16, INT32, INT64, POINTER, index_number
from tensorken_llvm.machine import target_features

_SUFFIXES = {FLOAT: "f32", DOUBLE: "f64", BYTE: "i8", INT16: "i16", INT32: "i32", INT64: "i64"}


ALIGNMENT = 64
"""Bytes of the widest vectors."""

MAX_STACK = 2**14
"""The most bytes of scratch memory on the stack: some threads have small ones."""

MAX_UNROLLED = 64
"""Loops of at most this many iterations are unrolled after vectorisation, where a caller asks for it."""


@functools.cache
def has_wide_vectors() -> bool:
    """Whether the CPU has vectors of 512 bits, and instructions that multiply vectors by powers of two."""
    features = target_features()
    return bool(features.get("avx512f") and features.get("avx512vl"))


def declared(module: ir.Module, name: str, result: Any, arguments: Sequence[Any]) -> ir.Function:
    """The function of a module with a name, declared with these types if there is none."""
    found = module.globals.get(name)
    return ir.Function(module, ir.FunctionType(result, arguments), name) if found is None else found


def new_function(module: ir.Module, name: str, arguments: Sequence[Any], result: Any = None) -> ir.Function:
    """A function that other modules do not see; it returns nothing if `result` is None."""
    type_ = ir.FunctionType(ir.VoidType() if result is None else result, arguments)
    function = ir.Function(module, type_, name)
    function.linkage = "internal"
    return function


def _string(module: ir.Module, text: str) -> ir.GlobalVariable:
    """A constant of a module, ended by a zero."""
    found = module.globals.get(text)
    if found is None:
        content = bytearray(text.encode() + b"\0")
        found = ir.GlobalVariable(module, ir.ArrayType(BYTE, len(content)), text)
        found.initializer = ir.Constant(found.value_type, content)
        found.global_constant, found.linkage = True, "internal"
    return found


class _LoopId(ir.values.MDValue):  # type: ignore[misc]
    """The identity of a loop, which asks for several vectors per iteration: each hides the latency of the others.

    Args:
        module: of the loop.
        vectors: per iteration.
        is_unrolled: whether the loop is unrolled, but not before it is vectorised.
    """

    def __init__(self, module: ir.Module, vectors: int, is_unrolled: bool) -> None:
        def node(name: str, *values: Any) -> Any:
            return module.add_metadata([ir.MetaDataString(module, f"llvm.loop.{name}"), *values])

        self._nodes = [node("interleave.count", ir.Constant(INT32, vectors))]
        if is_unrolled:
            after = node("unroll.full"), node("isvectorized", ir.Constant(INT32, 1))
            self._nodes += [node("unroll.disable"), node("vectorize.followup_all", *after)]
        super().__init__(module, self._nodes, name=str(len(module.metadata)))

    def descr(self, buf: list[str]) -> None:
        """Write the node; llvmlite has none that are distinct and refer to themselves."""
        nodes = ", ".join([x.get_reference() for x in (self, *self._nodes)])
        buf.append(f"distinct !{{ {nodes} }}\n")


class Builder(ir.IRBuilder):  # type: ignore[misc]
    """Writes instructions at the end of a block.

    Attributes:
        vectors: that an iteration of a loop computes.
    """

    def __init__(self, block: Any) -> None:
        super().__init__(block)
        self.vectors = 2
        self._outside_loop = 0  # the number of blocks before the innermost loop
        self._invariant: set[Any] = set()
        self._numbers: dict[Any, int] = {}  # of the blocks of the function, in order

    def set_invariant(self, x: Any) -> None:
        """Note that an instruction has the same value in each iteration."""
        self._invariant.add(x)

    def is_invariant(self, x: Any) -> bool:
        """Whether an instruction has the same value in each iteration of the innermost loop."""
        if not self._outside_loop or not isinstance(x, ir.Instruction):
            return False
        return x in self._invariant or self._number(x.parent) < self._outside_loop

    def _number(self, block: Any) -> int:
        blocks = self.function.blocks
        for i in range(len(self._numbers), len(blocks)):
            self._numbers[blocks[i]] = i
        return self._numbers[block]

    def intrinsic(self, name: str, *operands: Any) -> Any:
        """One of LLVM's functions of numbers of one type, such as `fabs`."""
        type_ = operands[0].type
        return self._intrinsic(f"llvm.{name}.{_SUFFIXES[type_]}", type_, operands)

    def saturated(self, x: Any, type_: Any, signed: bool = True) -> Any:
        """A float truncated to an integer in range; NaN gives 0."""
        name = "fptosi" if signed else "fptoui"
        return self._intrinsic(f"llvm.{name}.sat.{_SUFFIXES[type_]}.{_SUFFIXES[x.type]}", type_, [x])

    def scaled(self, x: Any, exponent: Any) -> Any:
        """x * 2**exponent for an i32; slow without `has_wide_vectors`."""
        return self._intrinsic(f"llvm.ldexp.{_SUFFIXES[x.type]}.i32", x.type, [x, exponent])

    def _intrinsic(self, name: str, result: Any, operands: Sequence[Any]) -> Any:
        return self.call(declared(self.module, name, result, [x.type for x in operands]), operands)

    def fma(self, a: Any, x: Any, c: Any) -> Any:
        """a * x + c, rounded once."""
        return self.intrinsic("fma", a, x, c)

    def variable(self, size: int) -> Any:
        """A pointer to this many bytes of the function's own, on the stack; LLVM may promote them to registers."""
        with self.goto_entry_block():
            memory = self.alloca(ir.ArrayType(BYTE, max(size, 1)))
            memory.align = ALIGNMENT
            return self.bitcast(memory, POINTER)

    @contextmanager
    def scratch(self, size: int) -> Iterator[Any]:
        """A pointer to this many bytes, aligned for vectors, which are freed after the block: on the stack if few."""
        if size <= MAX_STACK:
            yield self.variable(size)
            return
        allocate = declared(self.module, "PyMem_RawMalloc", POINTER, [INT64])
        memory = self.call(allocate, [index_number(size + ALIGNMENT)])
        with self.if_then(self.icmp_unsigned("==", memory, ir.Constant(POINTER, None)), likely=False):
            text = _string(
                self.module, f"tensorken-llvm: no memory for {size} bytes of a product of matrices"
            )
            self.call(declared(self.module, "Py_FatalError", ir.VoidType(), [POINTER]), [text])
        rest = self.and_(self.neg(self.ptrtoint(memory, INT64)), index_number(ALIGNMENT - 1))
        yield self.gep(memory, [rest], source_etype=BYTE)
        self.call(declared(self.module, "PyMem_RawFree", ir.VoidType(), [POINTER]), [memory])

    def copy(self, destination: Any, source: Any, size: int) -> None:
        """Copy bytes."""
        if not size or destination is source:
            return
        types = [POINTER, POINTER, INT64, BIT]
        function = declared(self.module, "llvm.memcpy.p0.p0.i64", ir.VoidType(), types)
        self.call(function, [destination, source, index_number(size), ir.Constant(BIT, 0)])

    def loop(
        self,
        count: Any,
        body: Callable[[Any], None],
        in_registers: bool = False,
        first: Any = None,
        step: int = 1,
    ) -> None:
        """Run a body for the indices from 0, or the first one, up to count (exclusive), which is greater.

        Args:
            count: a number, or a value in a register.
            body: writes an iteration, for its index.
            in_registers: whether the body changes memory that may be registers, if the iterations are few: then LLVM
                makes vectors of them first, and unrolls them after that.
            first: the first index, in a register; None for 0.
            step: from one index to the next.
        """
        if isinstance(count, int):
            if count == 1 and first is None:
                body(index_number(0))
                return
            count = index_number(count)
        outside, self._outside_loop = self._outside_loop, len(self.function.blocks)
        before, head = self.block, self.append_basic_block("loop")
        after = self.append_basic_block("after")
        self.branch(head)
        self.position_at_end(head)
        i = self.phi(INT64)
        i.add_incoming(index_number(0) if first is None else first, before)
        body(i)
        following = self.add(i, index_number(step), flags=("nuw", "nsw"))
        i.add_incoming(following, self.block)
        again = self.cbranch(self.icmp_unsigned("<", following, count), head, after)
        is_unrolled = in_registers and isinstance(count, ir.Constant) and count.constant <= MAX_UNROLLED
        again.set_metadata("llvm.loop", _LoopId(self.module, self.vectors, is_unrolled))
        self.position_at_end(after)
        self._outside_loop = outside
