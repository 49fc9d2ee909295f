"""Entries: machine code that Python calls as a method, with arrays as arguments.

CPython calls such a method (METH_FASTCALL) with a pointer to its arguments.  The machine code reads the pointers to
the elements out of the arrays, where numpy's C API documents them: after the head of each object, `data` is the first
field, and `flags` the seventh (numpy, "C API: Python types and C-structures", PyArrayObject).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from tensorken_llvm.builder import Builder, declared, new_function
from tensorken_llvm.dtypes import BIT, BYTE, INT32, INT64, POINTER, index_number
from tensorken_llvm.machine import Library, define_symbol

HEAD = object.__basicsize__
"""Bytes of an object's head: its reference count and its type."""

_TYPE = HEAD - ctypes.sizeof(ctypes.c_void_p)
_FLAGS = HEAD + 6 * ctypes.sizeof(ctypes.c_void_p)
_CONTIGUOUS_AND_ALIGNED = 0x0001 | 0x0100
_METH_FASTCALL = 0x0080

Pointer = Callable[[int], Any]


class _MethodDefinition(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("call", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def method(address: int, library: Library) -> Callable[..., Any]:
    """The Python function at this address.

    Args:
        address: of machine code that `write_entry` wrote.
        library: has that code; it stays alive as long as the function.
    """
    definition = _MethodDefinition(b"program", address, _METH_FASTCALL, None)
    library.owned.append(
        definition
    )  # CPython frees `library` after it has read the definition for the last time
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    found: Callable[..., Any] = make(ctypes.addressof(definition), library, None)
    return found


def write_entry(
    module: ir.Module,
    name: str,
    checked: Sequence[int],
    is_long: bool,
    body: Callable[[Builder, Pointer, Callable[[], None]], None],
) -> None:
    """Write a function that CPython calls; it returns its last argument, or the first if it cannot read another.

    Where `body` stops, since there is an exception, such as that of Ctrl-C, it returns a null pointer.

    Args:
        module: to add it to.
        name: of the function.
        checked: the numbers of the arguments that may be no contiguous arrays: numpy computes scalars in place of
            0-d arrays.  The last argument is an array.
        is_long: whether other Python threads may run meanwhile.
        body: writes what the function does; it gets a function from an argument's number to its elements, and a
            function that writes the end of a block that stops.
    """
    function = ir.Function(module, ir.FunctionType(POINTER, [POINTER, POINTER, INT64]), name)
    b = Builder(function.append_basic_block("entry"))
    _, arguments, count = function.args
    refused = function.append_basic_block("refused")
    data: dict[int, Any] = {}

    def argument(number: Any) -> Any:
        return b.load(b.gep(arguments, [number], source_etype=POINTER), typ=POINTER)

    def pointer(number: int) -> Any:
        if number not in data:
            data[number] = b.load(
                b.gep(argument(index_number(number)), [index_number(HEAD)], source_etype=BYTE), typ=POINTER
            )
        return data[number]

    def returned(found: Any) -> None:
        b.call(declared(module, "Py_IncRef", ir.VoidType(), [POINTER]), [found])
        b.ret(found)

    def require(condition: Any) -> None:
        accepted = function.append_basic_block("accepted")
        b.cbranch(condition, accepted, refused)
        b.position_at_end(accepted)

    def type_of(x: Any) -> Any:
        return b.load(b.gep(x, [index_number(_TYPE)], source_etype=BYTE), typ=INT64)

    array_type = type_of(argument(b.sub(count, index_number(1))))
    for number in checked:
        x = argument(index_number(number))
        require(b.icmp_signed("==", type_of(x), array_type))
        flags = b.load(b.gep(x, [index_number(_FLAGS)], source_etype=BYTE), typ=INT32)
        mask = ir.Constant(INT32, _CONTIGUOUS_AND_ALIGNED)
        require(b.icmp_signed("==", b.and_(flags, mask), mask))
    state: Any = None

    def restore() -> None:
        if is_long:
            b.call(declared(module, "PyEval_RestoreThread", ir.VoidType(), [POINTER]), [state])

    def stop() -> None:
        restore()
        b.ret(ir.Constant(POINTER, None))

    if is_long:
        state = b.call(declared(module, "PyEval_SaveThread", POINTER, []), [])
    body(b, pointer, stop)
    restore()
    returned(argument(b.sub(count, index_number(1))))
    b.position_at_end(refused)
    returned(argument(index_number(0)))


def is_interrupted(b: Builder) -> Any:
    """Write a call that lets CPython handle signals, such as that of Ctrl-C; whether there is an exception then."""
    function = b.module.globals.get("interrupted")
    if function is None:
        function = new_function(b.module, "interrupted", [], BIT)
        function.attributes.add("noinline")
        inner = Builder(function.append_basic_block("entry"))
        state = inner.call(declared(b.module, "PyGILState_Ensure", INT32, []), [])
        found = inner.call(declared(b.module, "PyErr_CheckSignals", INT32, []), [])
        inner.call(declared(b.module, "PyGILState_Release", ir.VoidType(), [INT32]), [state])
        inner.ret(inner.icmp_signed("!=", found, ir.Constant(INT32, 0)))
    return b.call(function, [])


_FUNCTIONS = (
    "Py_IncRef",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyErr_CheckSignals",
)

for _name in _FUNCTIONS:
    define_symbol(_name, ctypes.cast(getattr(ctypes.pythonapi, _name), ctypes.c_void_p).value or 0)
