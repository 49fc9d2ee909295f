"""Entries: machine code that Python calls as a method, with arrays as arguments.

CPython calls such a method (METH_FASTCALL) with a pointer to its arguments.  The machine code reads the pointers to
the elements out of the arrays, where numpy's C API documents them: after the head of each object, `data` is the first
field, `nd` the second, `dimensions` the third, `descr` the sixth, and `flags` the seventh (numpy, "C API: Python types
and C-structures", PyArrayObject).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llvmlite import ir

from tensorken_llvm.builder import Builder, declared, new_function
from tensorken_llvm.dtypes import BIT, BYTE, INT32, INT64, NUMPY, POINTER, index_number
from tensorken_llvm.machine import Library, define_symbol

HEAD = object.__basicsize__
"""Bytes of an object's head: its reference count and its type."""

_WORD = ctypes.sizeof(ctypes.c_void_p)
_TYPE = HEAD - _WORD
_AXES = HEAD + _WORD
_SIZES = HEAD + 2 * _WORD
_DTYPE = HEAD + 5 * _WORD
_FLAGS = HEAD + 6 * _WORD
_KIND = -1 ^ (0xFF << 24)
_CONTIGUOUS_AND_ALIGNED = 0x0001 | 0x0100
_METH_FASTCALL = 0x0080


def kind_of(dtype: Any) -> int:
    """What tells a dtype of numpy from others: its kind, character, byte order and number, as they are in memory.

    After the head and a pointer, a PyArray_Descr has these fields: three characters, one that is not for others, and
    an int.
    """
    return ctypes.c_int64.from_address(id(dtype) + HEAD + _WORD).value & _KIND


CALLS = "calls"
"""The variable of a module with the number of calls that are left."""

Pointer = Callable[[int], Any]

Type = tuple[tuple[int, ...] | None, str]
"""The shape of an array, or None if it need not be checked, and the name of its dtype."""


class _MethodDefinition(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("call", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Method:
    """A Python function in machine code, which other machine code may replace.

    Args:
        address: of machine code that `write_entry` wrote.
        library: has that code; it stays alive as long as the function.

    Attributes:
        call: the function.
        owner: of the function: what it needs.
    """

    def __init__(self, address: int, library: Library) -> None:
        self._definition = _MethodDefinition(b"program", address, _METH_FASTCALL, None)
        # CPython frees the owner of a function after it has read the definition for the last time.
        self.owner: list[Any] = [self._definition, library]
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        self.call: Callable[..., Any] = make(ctypes.addressof(self._definition), self.owner, None)

    def replace(self, address: int, library: Library) -> None:
        """Let later calls run other machine code; earlier calls may still run the code before."""
        self.owner.append(library)
        self._definition.call = address


MAX_INLINE = 16
"""The most arguments that a program checks itself; of more, those of one shape are checked by one function."""


MAX_CHECKS = 256
"""The most arguments that one function checks: the time of LLVM grows faster than a function."""

Body = Callable[[Builder, Pointer, Callable[[], None]], None]
"""Writes what an entry does, or a part of it; see `write_entry`."""


def write_entry(
    module: ir.Module,
    name: str,
    checked: Mapping[int, Type],
    is_long: bool,
    bodies: Sequence[Body],
    calls: int = 0,
) -> None:
    """Write a function that CPython calls; it returns its last argument, or the first if it cannot read another.

    Where a body stops, since there is an exception, such as that of Ctrl-C, it returns a null pointer.  When it has
    been called often enough, it does nothing and returns its owner; see `Method`.

    Args:
        module: to add it to.
        name: of the function.
        checked: the numbers of the arguments that may be no contiguous arrays of the right type: numpy computes
            scalars in place of 0-d arrays, and other levels may compute in other dtypes; for each its type.  The last
            argument is an array.
        is_long: whether other Python threads may run meanwhile.
        bodies: write what the function does, in order; several are functions of their own. Each gets a function from
            an argument's number to its elements, and a function that writes the end of a block that stops.
        calls: how often the function runs; 0 if always.  The number of calls that are left is the variable `CALLS`.
    """
    function = ir.Function(module, ir.FunctionType(POINTER, [POINTER, POINTER, INT64]), name)
    b = Builder(function.append_basic_block("entry"))
    owner, arguments, count = function.args
    refused = function.append_basic_block("refused")

    def argument(number: Any) -> Any:
        return _argument(b, arguments, number)

    def returned(found: Any) -> None:
        b.call(declared(module, "Py_IncRef", ir.VoidType(), [POINTER]), [found])
        b.ret(found)

    def require(condition: Any) -> None:
        accepted = function.append_basic_block("accepted")
        b.cbranch(condition, accepted, refused)
        b.position_at_end(accepted)

    if calls:
        variable = ir.GlobalVariable(module, INT64, CALLS)
        variable.initializer = index_number(calls)
        left = b.load(variable, typ=INT64)
        used_up, runs = (function.append_basic_block(name) for name in ("used_up", "runs"))
        b.cbranch(b.icmp_signed("<=", left, index_number(0)), used_up, runs)
        b.position_at_end(used_up)
        returned(owner)
        b.position_at_end(runs)
        b.store(b.sub(left, index_number(1)), variable)
    array_type = _field(b, argument(b.sub(count, index_number(1))), _TYPE, INT64)
    conditions = [*checked.items()]
    for start in range(0, len(conditions), MAX_CHECKS):
        part = dict(conditions[start : start + MAX_CHECKS])
        if len(conditions) > MAX_CHECKS:
            require(b.call(_checks(module, f"{name}.checks{start}", part), [arguments, array_type]))
        else:
            _check_all(b, arguments, array_type, part, require)
    state: Any = None

    def restore() -> None:
        if is_long:
            b.call(declared(module, "PyEval_RestoreThread", ir.VoidType(), [POINTER]), [state])

    def stop() -> None:
        restore()
        b.ret(ir.Constant(POINTER, None))

    if is_long:
        state = b.call(declared(module, "PyEval_SaveThread", POINTER, []), [])
    if len(bodies) == 1:
        bodies[0](b, _pointers(b, arguments), stop)
    else:
        for i, body in enumerate(bodies):
            with b.if_then(b.call(_part(module, f"{name}.part{i}", body), [arguments]), likely=False):
                stop()
    restore()
    returned(argument(b.sub(count, index_number(1))))
    b.position_at_end(refused)
    returned(argument(index_number(0)))


def _argument(b: Builder, arguments: Any, number: Any) -> Any:
    """An object among the arguments."""
    return b.load(b.gep(arguments, [number], source_etype=POINTER), typ=POINTER)


def _pointers(b: Builder, arguments: Any) -> Pointer:
    """From the number of an argument, an array, to a pointer to its elements."""
    data: dict[int, Any] = {}

    def pointer(number: int) -> Any:
        if number not in data:
            data[number] = _field(b, _argument(b, arguments, index_number(number)), HEAD, POINTER)
        return data[number]

    return pointer


def _part(module: ir.Module, name: str, body: Body) -> ir.Function:
    """The function of a part of an entry; it gets the arguments, and returns whether it stops."""
    function = new_function(module, name, [POINTER], BIT)
    function.attributes.add("noinline")
    b = Builder(function.append_basic_block("entry"))
    (arguments,) = function.args
    body(b, _pointers(b, arguments), lambda: b.ret(ir.Constant(BIT, 1)))
    b.ret(ir.Constant(BIT, 0))
    return function


def _field(b: Builder, x: Any, offset: int, type_: Any) -> Any:
    """The field of an object at an offset in bytes."""
    return b.load(b.gep(x, [index_number(offset)], source_etype=BYTE), typ=type_)


def _check(b: Builder, x: Any, array_type: Any, type_: Type, require: Callable[[Any], None]) -> None:
    """Write the conditions that an argument is a contiguous array of a type."""
    shape, dtype = type_
    require(b.icmp_signed("==", _field(b, x, _TYPE, INT64), array_type))
    mask = ir.Constant(INT32, _CONTIGUOUS_AND_ALIGNED)
    require(b.icmp_signed("==", b.and_(_field(b, x, _FLAGS, INT32), mask), mask))
    found = _field(b, _field(b, x, _DTYPE, POINTER), HEAD + _WORD, INT64)
    kind = index_number(kind_of(NUMPY[dtype]))
    require(b.icmp_signed("==", b.and_(found, index_number(_KIND)), kind))
    if shape is not None:
        require(b.icmp_signed("==", _field(b, x, _AXES, INT32), ir.Constant(INT32, len(shape))))
        sizes = _field(b, x, _SIZES, POINTER)
        for axis, size in enumerate(shape):
            require(b.icmp_signed("==", _field(b, sizes, axis * _WORD, INT64), index_number(size)))


def _check_all(
    b: Builder,
    arguments: Any,
    array_type: Any,
    checked: Mapping[int, Type],
    require: Callable[[Any], None],
) -> None:
    """Write the conditions of several arguments, by their numbers."""
    for number, type_ in checked.items():
        x = _argument(b, arguments, index_number(number))
        if len(checked) > MAX_INLINE:
            require(b.call(_check_function(b.module, type_), [x, array_type]))
        else:
            _check(b, x, array_type, type_, require)


def _check_function(module: ir.Module, type_: Type) -> ir.Function:
    """The function of these conditions for a type; its arguments are an object and the type of arrays."""
    name = f"is array {type_}"
    found = module.globals.get(name)
    return found or _conditions(module, name, lambda b, x, *others: _check(b, x, others[0], type_, others[1]))


def _checks(module: ir.Module, name: str, checked: Mapping[int, Type]) -> ir.Function:
    """The function of the conditions of several arguments; it gets all arguments and the type of arrays."""
    return _conditions(module, name, lambda b, xs, *others: _check_all(b, xs, others[0], checked, others[1]))


def _conditions(
    module: ir.Module, name: str, write: Callable[[Builder, Any, Any, Callable[[Any], None]], None]
) -> ir.Function:
    """A function of a pointer and the type of arrays that returns whether all conditions hold.

    Args:
        module: to add it to.
        name: of the function.
        write: writes the conditions; it gets the arguments, and a function that requires a condition.
    """
    function = new_function(module, name, [POINTER, INT64], BIT)
    function.attributes.add("noinline")
    b = Builder(function.append_basic_block("entry"))
    refused = function.append_basic_block("refused")

    def require(condition: Any) -> None:
        accepted = function.append_basic_block("accepted")
        b.cbranch(condition, accepted, refused)
        b.position_at_end(accepted)

    x, array_type = function.args
    write(b, x, array_type, require)
    b.ret(ir.Constant(BIT, 1))
    b.position_at_end(refused)
    b.ret(ir.Constant(BIT, 0))
    return function


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
    "Py_FatalError",
    "PyMem_RawMalloc",
    "PyMem_RawFree",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyErr_CheckSignals",
)

for _name in _FUNCTIONS:
    define_symbol(_name, ctypes.cast(getattr(ctypes.pythonapi, _name), ctypes.c_void_p).value or 0)
